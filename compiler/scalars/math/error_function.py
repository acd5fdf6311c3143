"""erf and erfc.

Near zero erf x = x + x P(x^2). Beyond 3/4, erf x = 1 - 2^(-x R(x)): an error of the power counts less than a third.
erfc x has to keep the digits of the power: it is e^(-x^2) Q(t) / (1 + 2 x), where t = (x - K) / (x + K) is between -1
and 1 and Q is nearly constant; x^2 is exact, as a double word. Source of the scheme: M. M. Shepherd, J. G. Laframboise,
"Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", 1981.
"""

from .coefficients_generated import TABLES, Table
from .exponential import change_of, reduce_exponent
from .number import (
    Number,
    fast_two_sum,
    polynomial,
    scale,
    scale_normal,
    select,
    sign_of,
    two_product,
    with_sign,
)

NEAR = 0.75


def _rest(x: Number, table: Table) -> Number:
    """erf x - x for |x| < 3/4."""
    return x * polynomial(x * x, table.erf)


def _remainder(x: Number, quotient: Number, divisor: Number) -> Number:
    """x - quotient * divisor, exact but for f32 where the emitter fuses and the instruction set does not."""
    if x.emitter.fuses and x.dtype == "f32":
        return quotient.multiply_add(-divisor, x)
    product = two_product(quotient, divisor)
    return (x - product.high) - product.low


def _tail(magnitude: Number, table: Table) -> Number:
    """erfc of a magnitude of at least 3/4."""
    a = select(magnitude > table.erfc_most, magnitude.constant(table.erfc_most), magnitude)
    t = (a - table.erfc_center) / (a + table.erfc_center)
    above = fast_two_sum(a.constant(table.erfc[0]), t * polynomial(t, table.erfc[1:]))
    below = fast_two_sum(a + a, a.constant(1.0))
    quotient = above.high / below.high
    # what is missing in the quotient, in parts of it, is a change of the exponent; Q is about 6 / 5
    change = (_remainder(above.high, quotient, below.high) + (above.low - quotient * below.low)) * (5 / 6)
    high = a.most_significant()
    k, r, rest = reduce_exponent(-(high * high), table, (high - a) * (high + a) + change)
    return scale(change_of(r, rest, table) + 1.0, k) * quotient


def erf(x: Number) -> Number:
    """erf(x)."""
    table, magnitude = TABLES[x.dtype], abs(x)
    a = select(magnitude > table.erf_most, magnitude.constant(table.erf_most), magnitude)
    exponent = a * polynomial(a, table.erf_far)
    whole = exponent.rounded()
    rest = whole - exponent
    power = rest.multiply_add(polynomial(rest, table.exp2), 1.0)
    scaled = scale(power, -whole) if x.emitter.scales else scale_normal(power, -whole.integer())
    far = with_sign(1.0 - scaled, sign_of(x))
    return select(magnitude >= NEAR, far, x + _rest(x, table))  # NaN is near: an integer of it is any


def erfc(x: Number) -> Number:
    """erfc(x)."""
    table, magnitude = TABLES[x.dtype], abs(x)
    tail = _tail(magnitude, table)
    far = select(x < 0.0, 2.0 - tail, tail)
    return select(magnitude < NEAR, (1.0 - x) - _rest(x, table), far)
