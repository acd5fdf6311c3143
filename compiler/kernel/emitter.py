"""What scalar code is written against: an emitter of ops over values that it knows the element type of.

`op` takes every scalar op of `schema/scalars.py` and every primitive of `primitives.py`. What is a primitive for the
given types is emitted as it is; everything else is expanded into primitives (`expand.py`) on the way. The same
expansion makes `kernel` IR (`builder.py`) and, here, NumPy arrays: what a device will compute is tested without one.

Element types are named as in `schema/dtypes.py`. Values are opaque: whoever writes expansions uses these methods only.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from orchestrion.schema.dtypes import BY_NAME, BY_NUMPY, DType
from orchestrion.schema.scalar_meanings import Array

from .expand import UnsupportedScalar, expand
from .primitives import BY_OP_NAME, Primitive

V = TypeVar("V")
Number = int | float | bool


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
    def primitive(self, row: Primitive, operands: Sequence[V], result: DType) -> V:
        """Emit one primitive; the types are checked already."""

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

    def op(self, name: str, *operands: V, to: str | None = None) -> V:
        """Emit a scalar op or primitive; `to` names the result type of `convert`, `bitcast` and other `U` rows.

        Raises UnsupportedScalar when the op has no lowering for these types.
        """
        types = [BY_NAME[self.dtype(operand)] for operand in operands]
        row = BY_OP_NAME.get(name)
        if row is not None:
            result = _result_type(row.result, types, to)
            if row.accepts(types, result):
                return self.primitive(row, operands, result)
        return expand(self, name, operands, to)

    def select(self, chosen: V, x: V, y: V) -> V:
        """x where the i1 is true, else y."""
        return self.op("select", chosen, x, y)


def _result_type(variable: str, types: Sequence[DType], to: str | None) -> DType:
    if variable == "U":
        if to is None:
            raise UnsupportedScalar("the op needs the name of a result type")
        return BY_NAME[to]
    return BY_NAME["i1"] if variable == "i1" else types[-1]


class NumpyEmitter(Emitter[Array]):
    """Computes at once over arrays, primitive by primitive, as a device does. Constants are arrays of rank 0.

    `counts` says how often each primitive was emitted: the length of an expansion.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def dtype(self, value: Array) -> str:
        return BY_NUMPY[value.dtype].name

    def bits(self, pattern: int, dtype: str) -> Array:
        row = BY_NAME[dtype]
        return np.array(pattern, dtype=f"<u{row.itemsize}").view(row.numpy)

    def known(self, value: Array) -> Number | None:
        return value[()].item() if value.ndim == 0 else None

    def primitive(self, row: Primitive, operands: Sequence[Array], result: DType) -> Array:
        self.counts[row.name] = self.counts.get(row.name, 0) + 1
        return row.evaluate(operands, result)

    def branch(
        self, condition: Array, yes: Callable[[], Sequence[Array]], no: Callable[[], Sequence[Array]]
    ) -> list[Array]:
        return [self.select(condition, x, y) for x, y in zip(yes(), no(), strict=True)]

    def loop(
        self, count: Array, start: Sequence[Array], body: Callable[[Sequence[Array]], Sequence[Array]]
    ) -> list[Array]:
        carried = list(start)
        for turn in range(int(np.max(count, initial=0))):
            going = np.asarray(turn < count)
            carried = [self.select(going, new, old) for new, old in zip(body(carried), carried, strict=True)]
        return carried
