"""Real arithmetic as Python expressions: `2.0 * x + y` inserts the ops and is again a `Real`.

Expansions use it so that formulas read like formulas. All operands have one type, a float tensor; a Python number is a
splat of that type. Nothing is simplified: every operation is computed as written, and rounds once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.ops.base import tensor_of

from .basic import bitcast, compare, constant, elementwise
from .shape_builders import broadcast, reduce_axes


@dataclass(frozen=True, slots=True)
class Format:
    """Properties of a float format that formulas need. `fraction` (bits) and `bias` are those of IEEE 754."""

    integer: str
    fraction: int
    bias: int
    #: Squares of magnitudes between 1 / large and large neither overflow nor underflow
    large: float
    #: e^x is finite and normal for |x| up to this bound
    exponent: float
    #: tanh(x) rounds to 1 above this bound, since e^-2x vanishes beside 1
    flat: float


FORMATS: Final = {
    "f32": Format("i32", 23, 127, 2.0**60, 80.0, 12.0),
    "f64": Format("i64", 52, 1023, 2.0**500, 700.0, 24.0),
}


class Bits:
    """Integer arithmetic on the bits and exponents of reals."""

    __slots__ = ("_rewriter", "value")

    def __init__(self, rewriter: Rewriter, value: Value) -> None:
        self._rewriter = rewriter
        self.value = value

    def _op(self, name: str, other: Bits | int, swapped: bool = False) -> Bits:
        right = constant(self._rewriter, other, tensor_of(self.value)) if isinstance(other, int) else other.value
        operands = (right, self.value) if swapped else (self.value, right)
        return Bits(self._rewriter, elementwise(self._rewriter, name, *operands))

    def __and__(self, other: Bits | int) -> Bits:
        return self._op("and", other)

    def __or__(self, other: Bits | int) -> Bits:
        return self._op("or", other)

    def __add__(self, other: Bits | int) -> Bits:
        return self._op("add", other)

    def __sub__(self, other: Bits | int) -> Bits:
        return self._op("subtract", other)

    def __rsub__(self, other: int) -> Bits:
        return self._op("subtract", other, swapped=True)

    def __lshift__(self, other: int) -> Bits:
        return self._op("shift_left", other)

    def __rshift__(self, other: int) -> Bits:
        return self._op("shift_right_arithmetic", other)

    def clamped(self, least: int, most: int) -> Bits:
        """Clamps each integer to `least` .. `most`."""
        return self._op("maximum", least)._op("minimum", most)

    def real(self, like: Real) -> Real:
        """The float with these bits."""
        return Real(self._rewriter, bitcast(self._rewriter, self.value, str(like.type.element)))


class Mask:
    """A boolean per element."""

    __slots__ = ("_rewriter", "value")

    def __init__(self, rewriter: Rewriter, value: Value) -> None:
        self._rewriter = rewriter
        self.value = value

    def __and__(self, other: Mask) -> Mask:
        return Mask(self._rewriter, elementwise(self._rewriter, "and", self.value, other.value))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self._rewriter, elementwise(self._rewriter, "or", self.value, other.value))

    def __invert__(self) -> Mask:
        return Mask(self._rewriter, elementwise(self._rewriter, "not", self.value))

    def select(self, yes: Real | float, no: Real | float) -> Real:
        """`yes` where the mask is true, else `no`; at least one of them must be a `Real`."""
        like = yes if isinstance(yes, Real) else no
        assert isinstance(like, Real), "one value has a type"
        chosen = elementwise(self._rewriter, "select", self.value, like.of(yes).value, like.of(no).value)
        return Real(self._rewriter, chosen)


class Real:
    """A real number per element."""

    __slots__ = ("_rewriter", "value")

    def __init__(self, rewriter: Rewriter, value: Value) -> None:
        self._rewriter = rewriter
        self.value = value

    @property
    def type(self) -> TensorType:
        """The tensor type of the value."""
        return tensor_of(self.value)

    @property
    def format(self) -> Format:
        """The properties of the element type."""
        return FORMATS[str(self.type.element)]

    def of(self, number: Real | float) -> Real:
        """A Python number as a `Real` of this type; a `Real` unchanged."""
        if isinstance(number, Real):
            return number
        return Real(self._rewriter, constant(self._rewriter, number, self.type))

    def op(self, name: str, *others: Real | float) -> Real:
        """An elementwise op of StableHLO; this value is its first operand."""
        operands = (self.value, *(self.of(other).value for other in others))
        return Real(self._rewriter, elementwise(self._rewriter, name, *operands))

    def __add__(self, other: Real | float) -> Real:
        return self.op("add", other)

    def __radd__(self, other: float) -> Real:
        return self.of(other) + self

    def __sub__(self, other: Real | float) -> Real:
        return self.op("subtract", other)

    def __rsub__(self, other: float) -> Real:
        return self.of(other) - self

    def __mul__(self, other: Real | float) -> Real:
        return self.op("multiply", other)

    def __rmul__(self, other: float) -> Real:
        return self.of(other) * self

    def __truediv__(self, other: Real | float) -> Real:
        return self.op("divide", other)

    def __rtruediv__(self, other: float) -> Real:
        return self.of(other) / self

    def __neg__(self) -> Real:
        return self.op("negate")

    def __abs__(self) -> Real:
        return self.op("abs")

    def compare(self, direction: str, other: Real | float) -> Mask:
        """Compares by EQ, NE, LT, LE, GT or GE; NaN makes all but NE false."""
        return Mask(self._rewriter, compare(self._rewriter, direction, self.value, self.of(other).value))

    def broadcast(self, shape: Sequence[int], axes: Sequence[int]) -> Real:
        """Broadcasts to `shape`: axis i becomes axis axes[i]."""
        return Real(self._rewriter, broadcast(self._rewriter, self.value, shape, list(axes)))

    def reduce(self, axes: Sequence[int], name: str = "add") -> Real:
        """Reduces along axes, with `add` or another elementwise op."""
        return Real(self._rewriter, reduce_axes(self._rewriter, self.value, list(axes), name))

    @property
    def is_finite(self) -> Mask:
        """True for numbers that are neither infinite nor NaN."""
        return abs(self).compare("LT", float("inf"))

    @property
    def is_infinite(self) -> Mask:
        """True for infinities of both signs."""
        return abs(self).compare("EQ", float("inf"))

    @property
    def is_nan(self) -> Mask:
        """True for NaN."""
        return self.compare("NE", self)

    def bits(self) -> Bits:
        """The bits of each number, as integers of the same width."""
        return Bits(self._rewriter, bitcast(self._rewriter, self.value, self.format.integer))

    def signed(self, sign: Real) -> Real:
        """This magnitude with the sign of `sign`, including that of a zero or NaN."""
        least = -(1 << self.format.fraction + self.format.bias.bit_length() + 1)
        return ((abs(self).bits()) | (sign.bits() & least)).real(self)

    def exponent(self) -> Bits:
        """The biased exponent of a magnitude, clamped so that 2 to this power and its inverse are normal numbers."""
        shifted = self.bits() >> self.format.fraction
        return shifted.clamped(1, 2 * self.format.bias - 1)

    def power(self, exponent: Bits) -> Real:
        """2^(exponent - bias) in this type."""
        return (exponent << self.format.fraction).real(self)
