"""lgamma, digamma and trigamma.

One fit from 1/2 (lgamma) or 1 to 6 with the roots at 1, 2 and 1.4616 as factors, so that results beside them keep
their digits; Stirling's series from 6 on, its logarithm as a double word; one step of the recurrence below; Euler's
reflection for negative arguments, with the distance to the nearest integer, which is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrion.compiler.scalars.math.coefficients_generated import TABLES as MATH
from orchestrion.compiler.scalars.math.logarithm import log_double
from orchestrion.compiler.scalars.math.number import (
    Double,
    Number,
    fast_two_sum,
    polynomial,
    select,
    two_product,
    two_sum,
)

from .coefficients_generated import TABLES

#: where Stirling's series begins
FAR = 6.0
INFINITY = float("inf")
NAN = float("nan")


@dataclass(frozen=True, slots=True)
class _Argument:
    """The parts of an argument that every function here needs."""

    x: Number
    magnitude: Number
    #: 1 / |x|^2, for series that begin at `FAR`
    inverse_square: Number

    @classmethod
    def of(cls, x: Number) -> _Argument:
        magnitude = abs(x)
        inverse = 1.0 / select(magnitude > FAR, magnitude, magnitude.constant(FAR))
        return cls(x, magnitude, inverse * inverse)

    @property
    def from_integer(self) -> Number:
        """How far |x| is from the nearest integer, with a sign: exact."""
        return self.magnitude - self.magnitude.rounded()


def _capped(x: Number) -> Number:
    return select(x < FAR, x, x.constant(FAR))


def _quotient(above: Double, below: Double) -> Double:
    quotient = above.high / below.high
    product = two_product(quotient, below.high)
    rest = ((above.high - product.high) - product.low) + (above.low - quotient * below.low)
    return Double(quotient, rest / below.high)


def _central(x: Double, center: float, low: float, coefficients: tuple[float, ...]) -> Double:
    """A polynomial in (x - center) / (x + center), its first coefficient and its last steps in double words."""

    def moved(by: float) -> Double:
        total = two_sum(x.high, x.high.constant(by))
        return fast_two_sum(total.high, total.low + x.low)

    t = _quotient(moved(-center), moved(center))
    change = two_product(t.high, polynomial(t.high, coefficients[1:]))
    slope = polynomial(t.high, [power * c for power, c in enumerate(coefficients[:6])][1:])
    total = two_sum(change.high.constant(coefficients[0]), change.high)
    return fast_two_sum(total.high, total.low + (change.low + (t.low * slope + low)))


def lgamma(x: Number) -> Number:
    """log |gamma(x)|; inf at 0, -1, -2, ... and at both ends."""
    table, a = TABLES[x.dtype], _Argument.of(x)
    y = a.magnitude
    low = y < 0.5
    # gamma(x + 1) = x gamma(x) serves both signs; x - 1 and x - 2 of the shifted argument need no rounded sum
    near = select(low, x, _capped(y) - 1.0)
    below = two_sum(near, near.constant(-1.0))
    roots = two_product(near, below.high)
    roots = fast_two_sum(roots.high, roots.low + near * below.low)
    product = roots * _central(two_sum(near.constant(1.0), near), table.lgamma_center, table.lgamma_low, table.lgamma)
    core = product.high + product.low

    log = log_double(y, MATH[x.dtype])
    bounded = select(y < table.lgamma_huge, y, y.constant(1.0))
    product = two_product(bounded - 0.5, log.high - 1.0)
    rest = y.constant(table.stirling_constant) + polynomial(a.inverse_square, table.stirling) / y
    far = product.high + (product.low + ((bounded - 0.5) * log.low + rest))
    far = select(y < table.lgamma_huge, far, y * (log.high - 1.0))

    positive = select(y < FAR, core, far)
    distance = a.from_integer
    sine = distance * polynomial(distance * distance, table.sine_of_pi)
    mirrored = -abs(y * sine).op("log") - positive
    result = select(x > -0.5, positive, mirrored)
    result = select(low, -log.high + (core - log.low), result)
    pole = (x <= 0.0) & distance.equals(0.0) | y.equals(INFINITY)
    return select(x.is_nan(), x, select(pole, x.constant(INFINITY), result))


def digamma(x: Number) -> Number:
    """The derivative of lgamma; NaN at 0, -1, -2, ... and at -inf, as JAX has it."""
    table, a = TABLES[x.dtype], _Argument.of(x)
    y = a.magnitude
    low, negative = y < 1.0, x < 0.0
    z = two_sum(select(low, y.constant(1.0), 0.0), _capped(y))
    from_root = two_sum(z.high, z.high.constant(-table.digamma_root_high))
    from_root = fast_two_sum(from_root.high, from_root.low + (z.low - table.digamma_root_low))
    core = from_root * _central(z, table.digamma_center, table.digamma_low, table.digamma)
    far = y.op("log") - (0.5 / y + a.inverse_square * polynomial(a.inverse_square, table.digamma_far))
    direct, lost = select(y < FAR, core.high, far), select(y < FAR, core.low, 0.0)
    # psi(1 + y) where psi(y) was not shifted already, for the reflection; psi(y) where it was, for the argument itself
    step = 1.0 / y
    shift = select(low, select(negative, step.constant(0.0), -step), select(negative, step, 0.0))
    distance = a.from_integer
    square = distance * distance
    cotangent = (0.25 - square) * polynomial(square, table.cotangent_of_pi) / distance
    result = direct + (shift + select(negative, cotangent + lost, lost))
    undefined = (x <= 0.0) & distance.equals(0.0) | x.equals(-INFINITY)
    return select(x.is_nan(), x, select(undefined, x.constant(NAN), result))


def trigamma(x: Number) -> Number:
    """The derivative of digamma; inf at 0, -1, -2, ..., 0 at inf."""
    table, a = TABLES[x.dtype], _Argument.of(x)
    y = a.magnitude
    low, negative = y < 1.0, x < 0.0
    z = select(low, y + 1.0, _capped(y))
    core = polynomial((z - table.digamma_center) / (z + table.digamma_center), table.trigamma) / z
    step = 1.0 / y
    far = step + step * step * (0.5 + step * polynomial(a.inverse_square, table.trigamma_far))
    direct = select(y < FAR, core, far)
    shift = select(low, select(negative, step.constant(0.0), step * step), select(negative, -(step * step), 0.0))
    distance = a.from_integer
    square = distance * distance
    cosecant = polynomial(square, table.cosecant_of_pi) / square
    result = direct + shift
    result = select(negative, cosecant - result, result)
    pole = (x <= 0.0) & distance.equals(0.0) | x.equals(-INFINITY)
    return select(x.is_nan(), x, select(pole, x.constant(INFINITY), result))
