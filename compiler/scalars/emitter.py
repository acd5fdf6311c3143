"""The interface that scalar code is written against: an emitter of ops over values with element types.

`op` accepts every scalar op of `schema/scalars.py` and every primitive of `primitives.py`. Emitters (`builder.py` makes
`kernel` IR, `numpy_emitter.py` computes) share `lowering.py`: a primitive is emitted as it is, any other op is expanded
into primitives.

Element types have the names of `schema/dtypes.py`. Values are opaque: expansions use these methods only.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from orchestrion.schema.dtypes import BY_NAME

V = TypeVar("V")
Number = int | float | bool


class UnsupportedScalar(Exception):
    """A scalar op without a primitive or an expansion for its types."""


class Emitter(ABC, Generic[V]):
    """Emits scalar ops, with one method per construct that an expansion may use."""

    @abstractmethod
    def dtype(self, value: V) -> str:
        """The element type of a value."""

    @abstractmethod
    def bits(self, pattern: int, dtype: str) -> V:
        """A constant by its bit pattern, an unsigned number of the width of the type. NaNs are written this way."""

    @abstractmethod
    def known(self, value: V) -> Number | None:
        """The number of a constant; None for a value that is no constant to the emitter."""

    def low_bits(self, value: V, bits: int) -> V:
        """An integer of 32 bits with the same low bits; other bits may differ, where that saves ops."""
        return value

    def branch(self, condition: V, yes: Callable[[], Sequence[V]], no: Callable[[], Sequence[V]]) -> list[V]:
        """The values of one of two functions. Both return values of the same types; only one may be emitted. Both are
        if an emitter has no branches.
        """
        return [self.select(condition, x, y) for x, y in zip(yes(), no(), strict=True)]

    def everywhere(self, condition: V, yes: Callable[[], Sequence[V]], no: Callable[[], Sequence[V]]) -> list[V]:
        """The values of `no`, which are those of `yes` wherever the condition holds. An emitter that `asks` whether it
        holds in all invocations that run together uses `yes` then, which is shorter.
        """
        return list(no())

    @abstractmethod
    def loop(self, count: V, start: Sequence[V], body: Callable[[Sequence[V]], Sequence[V]]) -> list[V]:
        """Applies `body` `count` times to the carried values. `count`: an i32, not negative."""

    def const(self, value: Number, dtype: str) -> V:
        """A constant by its value: an integer in the range of the type, or a float, rounded to nearest even."""
        row = BY_NAME[dtype]
        array = np.array(value, dtype=row.numpy)
        return self.bits(int(array.view(f"<u{row.itemsize}")), dtype)

    @abstractmethod
    def op(self, name: str, *operands: V, to: str | None = None) -> V:
        """Emits a scalar op or primitive. `to`: the result type of `convert`, `bitcast` and other rows of kind `U`.

        Raises UnsupportedScalar if the op has no lowering for these types.
        """

    #: whether `fused` rounds once, `scale` is an op, and `everywhere` uses both functions
    fuses = False
    scales = False
    asks = False

    def fused(self, x: V, y: V, z: V) -> V:
        """x * y + z of floats, rounded once if the emitter `fuses`, else after the product and after the sum."""
        return self.op("add", self.op("multiply", x, y), z)

    def scale(self, x: V, exponent: V) -> V:
        """x * 2^exponent, rounded once, of floats of which the exponent is integral, if the emitter `scales`."""
        raise NotImplementedError

    def select(self, chosen: V, x: V, y: V) -> V:
        """x if the i1 is true, else y."""
        return self.op("select", chosen, x, y)
