"""What scalar code is written against: an emitter of ops over values that it knows the element type of.

`op` takes every scalar op of `schema/scalars.py` and every primitive of `primitives.py`. Emitters (`builder.py` makes
`kernel` IR; one in the tests computes over NumPy arrays) share what `lowering.py` does: a primitive is emitted as it
is, everything else is expanded into primitives on the way.

Element types are named as in `schema/dtypes.py`. Values are opaque: whoever writes expansions uses these methods only.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from orchestrion.schema.dtypes import BY_NAME

V = TypeVar("V")
Number = int | float | bool


class UnsupportedScalar(Exception):
    """A scalar op that has neither a primitive nor an expansion for these types."""


class Emitter(ABC, Generic[V]):
    """Emits scalar ops. One method per thing an expansion may do."""

    @abstractmethod
    def dtype(self, value: V) -> str:
        """The element type of a value."""

    @abstractmethod
    def bits(self, pattern: int, dtype: str) -> V:
        """A constant by its bit pattern, an unsigned number of the type's width: the way to write NaNs."""

    @abstractmethod
    def known(self, value: V) -> Number | None:
        """The number that a value is when the emitter knows it as a constant, else None."""

    @abstractmethod
    def branch(self, condition: V, yes: Callable[[], Sequence[V]], no: Callable[[], Sequence[V]]) -> list[V]:
        """The values of one side; the other side's ops may be left out. Both sides give the same types."""

    @abstractmethod
    def loop(self, count: V, start: Sequence[V], body: Callable[[Sequence[V]], Sequence[V]]) -> list[V]:
        """Apply `body` to the carried values `count` (an i32, not negative) times."""

    def const(self, value: Number, dtype: str) -> V:
        """A constant by its value: an integer in the type's range, or a float, rounded to nearest even."""
        row = BY_NAME[dtype]
        array = np.array(value, dtype=row.numpy)
        return self.bits(int(array.view(f"<u{row.itemsize}")), dtype)

    @abstractmethod
    def op(self, name: str, *operands: V, to: str | None = None) -> V:
        """Emit a scalar op or primitive; `to` names the result type of `convert`, `bitcast` and other `U` rows.

        Raises UnsupportedScalar when the op has no lowering for these types.
        """

    def select(self, chosen: V, x: V, y: V) -> V:
        """x where the i1 is true, else y."""
        return self.op("select", chosen, x, y)
