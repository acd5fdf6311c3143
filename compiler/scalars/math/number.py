"""Numbers to write expansions with: Python's operators over an emitter's values, and double-word arithmetic.

An expansion is arithmetic on `Number`s. What it becomes is the emitter's affair: `kernel` ops in the compiler, NumPy
arrays in the tests. Python numbers in an expression become constants of the other operand's type.

Rules: no fused multiply-add is assumed and none may be formed (the targets forbid contraction), so the error-free
transformations below hold on every IEEE device. Nothing here relies on subnormal results.
Source of the transformations: T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrion.compiler.scalars.emitter import Emitter
from orchestrion.schema.dtypes import BY_NAME


@dataclass(frozen=True, slots=True)
class Format:
    """An IEEE binary format: its type names, precision (with the hidden bit), width and exponent bias."""

    name: str
    signed: str
    unsigned: str
    width: int
    precision: int
    bias: int

    @property
    def fraction_bits(self) -> int:
        """Number of stored bits of the significand."""
        return self.precision - 1

    @property
    def infinity(self) -> int:
        """The bits of infinity. The magnitude of a NaN is greater."""
        return 2 * self.bias + 1 << self.fraction_bits

    @property
    def splitter(self) -> float:
        """Dekker's constant: multiplying by it cuts a significand into two halves."""
        return float(2 ** ((self.precision + 1) // 2) + 1)

    @property
    def min_normal(self) -> float:
        """The least positive normal number."""
        return 2.0 ** (1 - self.bias)


FORMATS: dict[str, Format] = {
    "f32": Format("f32", "i32", "ui32", 32, 24, 127),
    "f64": Format("f64", "i64", "ui64", 64, 53, 1023),
}


def _operator(name: str, swapped: bool = False) -> Callable[[Number, Number | int | float], Number]:
    """The method of an operator that is a scalar op. `swapped`: of its right operand."""

    def method(self: Number, other: Number | int | float) -> Number:
        return self._lift(other).op(name, self) if swapped else self.op(name, other)

    return method


class Number:
    """A value of an emitter with Python's operators, written where they are known to be defined."""

    __slots__ = ("emitter", "value")

    def __init__(self, emitter: Emitter[Any], value: Any) -> None:
        self.emitter = emitter
        self.value = value

    @property
    def dtype(self) -> str:
        return self.emitter.dtype(self.value)

    @property
    def format(self) -> Format:
        """The format of a float."""
        return FORMATS[self.dtype]

    def constant(self, number: int | float, dtype: str | None = None) -> Number:
        """A constant, of this number's type unless another one is given."""
        return Number(self.emitter, self.emitter.const(number, dtype or self.dtype))

    def known(self) -> int | float | None:
        """The number that it is where the emitter knows it, else None."""
        return self.emitter.known(self.value)

    def _lift(self, other: Number | int | float) -> Number:
        return other if isinstance(other, Number) else self.constant(other)

    def op(self, name: str, *others: Number | int | float, to: str | None = None) -> Number:
        """A scalar op on this number and others."""
        values = [self._lift(other).value for other in others]
        return Number(self.emitter, self.emitter.op(name, self.value, *values, to=to))

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", swapped=True)
    __and__, __or__, __xor__ = map(_operator, ("and", "or", "xor"))
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("compare_lt", "compare_le", "compare_gt", "compare_ge"))

    def __truediv__(self, other: Number | int | float) -> Number:
        """The quotient. Integers round towards zero; the divisor must be neither 0 nor -1."""
        return self.op("divide" if self.dtype in FORMATS else "unchecked_divide", other)

    def __mod__(self, other: Number | int) -> Number:
        """The remainder of integers. The divisor must be neither 0 nor -1."""
        return self.op("unchecked_remainder", other)

    def __rtruediv__(self, other: int | float) -> Number:
        return self._lift(other) / self

    def __neg__(self) -> Number:
        return self.op("negate")

    def __abs__(self) -> Number:
        return self.op("abs")

    def __invert__(self) -> Number:
        return self.op("not")

    def __lshift__(self, other: Number | int) -> Number:
        """The amount is less than the width."""
        return self.op("unchecked_shift_left", other)

    def __rshift__(self, other: Number | int) -> Number:
        """Arithmetic on signed types, logical on unsigned ones. The amount is less than the width."""
        kind = "logical" if self.dtype.startswith("u") else "arithmetic"
        return self.op(f"unchecked_shift_right_{kind}", other)

    def equals(self, other: Number | int | float) -> Number:
        """Whether two numbers are equal, an i1."""
        return self.op("compare_eq", other)

    def differs(self, other: Number | int | float) -> Number:
        """Whether two numbers differ, an i1."""
        return self.op("compare_ne", other)

    def is_nan(self) -> Number:
        """Whether the number is NaN, by its bits, since a Vulkan device need not honour NaN in comparisons."""
        return abs(self).bits() > self.format.infinity

    def multiply_add(self, factor: Number | float, term: Number | float) -> Number:
        """self * factor + term, rounded once if the emitter fuses."""
        factor, term = self._lift(factor), self._lift(term)
        return Number(self.emitter, self.emitter.fused(self.value, factor.value, term.value))

    def sqrt(self) -> Number:
        """The square root."""
        return self.op("sqrt")

    def floor(self) -> Number:
        """The greatest integral value that is not larger."""
        return self.op("floor")

    def rounded(self) -> Number:
        """The nearest integral value, ties to even."""
        return self.op("round_nearest_even")

    def to(self, dtype: str) -> Number:
        """The value converted to another type."""
        return self.op("convert", to=dtype)

    def integer(self) -> Number:
        """A float with a small integral value as a signed integer of the same width; NaN gives any integer."""
        return self.op("unchecked_convert", to=self.format.signed)

    def bits_as(self, dtype: str) -> Number:
        """The same bits read as another type of the same width."""
        return self if dtype == self.dtype else self.op("bitcast", to=dtype)

    def most_significant(self) -> Number:
        """The upper half of the significand of a float, whose square is exact."""
        rest = (self.format.precision + 1) // 2
        return (self.bits() & ~((1 << rest) - 1) % (1 << self.format.width)).bits_as(self.dtype)

    def bits(self) -> Number:
        """The same bits as an unsigned integer."""
        return self.bits_as(f"ui{BY_NAME[self.dtype].bits}")


def select(condition: Number, yes: Number, no: Number | int | float) -> Number:
    """`yes` if the condition is true, else `no`."""
    return condition.op("select", yes, no if isinstance(no, Number) else yes.constant(no))


def branch(condition: Number, yes: Callable[[], Sequence[Number]], no: Callable[[], Sequence[Number]]) -> list[Number]:
    """Compute only the side that is needed, where the target has branches."""
    emitter = condition.emitter
    values = emitter.branch(
        condition.value, lambda: [number.value for number in yes()], lambda: [number.value for number in no()]
    )
    return [Number(emitter, value) for value in values]


def everywhere(condition: Number, yes: Callable[[], Number], no: Callable[[], Number]) -> Number:
    """The number of `no`, which is that of `yes` wherever the condition holds; `yes` is shorter."""
    emitter = condition.emitter
    (value,) = emitter.everywhere(condition.value, lambda: [yes().value], lambda: [no().value])
    return Number(emitter, value)


def loop(count: Number, start: Sequence[Number], body: Callable[[Sequence[Number]], Sequence[Number]]) -> list[Number]:
    """Apply `body` `count` times (an i32, per lane) to the carried numbers."""
    emitter = count.emitter

    def step(values: Sequence[Any]) -> Sequence[Any]:
        return [number.value for number in body([Number(emitter, value) for value in values])]

    return [Number(emitter, value) for value in emitter.loop(count.value, [n.value for n in start], step)]


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """Horner's scheme; the first coefficient is the constant term."""
    result = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result.multiply_add(x, coefficient)
    return result


def power_of_two(exponent: Number, format: Format) -> Number:
    """2^exponent for a signed integer exponent in the normal range of the format."""
    return ((exponent + format.bias) << format.fraction_bits).bits_as(format.name)


def scale_normal(x: Number, exponent: Number) -> Number:
    """x * 2^exponent, of a signed integer exponent and a normal product of a normal number."""
    return (x.bits() + (exponent << x.format.fraction_bits).bits()).bits_as(x.dtype)


def scale(x: Number, exponent: Number) -> Number:
    """x * 2^exponent, rounded at most once, for |exponent| up to twice the bias. The exponent is a signed integer, or
    an integral float if the emitter scales.
    """
    if exponent.dtype == x.dtype:
        return Number(x.emitter, x.emitter.scale(x.value, exponent.value))
    half = exponent >> 1
    return x * power_of_two(half, x.format) * power_of_two(exponent - half, x.format)


def sign_of(x: Number) -> Number:
    """The sign bit of a float, in place, as an unsigned integer."""
    return x.bits() & (1 << (x.format.width - 1))


def with_sign(magnitude: Number, sign: Number) -> Number:
    """A magnitude that is not negative, given the sign bit that `sign_of` took."""
    return (magnitude.bits() | sign).bits_as(magnitude.dtype)


@dataclass(frozen=True, slots=True)
class Double:
    """An unevaluated sum `high + low` with |low| at most half a unit in the last place of `high`."""

    high: Number
    low: Number

    def __add__(self, other: Double) -> Double:
        total = two_sum(self.high, other.high)
        return fast_two_sum(total.high, total.low + (self.low + other.low))

    def __mul__(self, other: Double) -> Double:
        product = two_product(self.high, other.high)
        return fast_two_sum(product.high, product.low + (self.high * other.low + self.low * other.high))


def double(x: Number, high: float, low: float) -> Double:
    """A constant as a double word of the format of x."""
    return Double(x.constant(high), x.constant(low))


def fast_two_sum(a: Number, b: Number) -> Double:
    """The exact sum, for |a| >= |b| or a = 0."""
    total = a + b
    return Double(total, b - (total - a))


def two_sum(a: Number, b: Number) -> Double:
    """The exact sum."""
    total = a + b
    virtual = total - a
    return Double(total, (a - (total - virtual)) + (b - virtual))


def split(a: Number) -> tuple[Number, Number]:
    """Two halves whose products are exact; |a| must stay below the largest value over the splitter."""
    scaled = a * a.format.splitter
    high = scaled - (scaled - a)
    return high, a - high


def two_product(a: Number, b: Number) -> Double:
    """The exact product, where neither overflow nor underflow comes in its way."""
    product = a * b
    a_high, a_low = split(a)
    b_high, b_low = split(b)
    return Double(product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low)
