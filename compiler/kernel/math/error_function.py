"""erf and erfc.

Near zero erf x = x + x P(x^2). Beyond 3/4, erfc x = e^(-x^2) Q(t) / (1 + 2 x), where t = (x - K) / (x + K) is between
-1 and 1 and Q is nearly constant; x^2 is exact, as a double word. Source of the scheme: M. M. Shepherd,
J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", 1981.
"""

from .coefficients_generated import TABLES, Table
from .exponential import exponential_of
from .number import Number, polynomial, select, sign_of, two_product, two_sum, with_sign

NEAR = 0.75


def _rest(x: Number, table: Table) -> Number:
    """erf x - x for |x| < 3/4."""
    return x * polynomial(x * x, table.erf)


def _tail(magnitude: Number, table: Table) -> Number:
    """erfc of a magnitude of at least 3/4."""
    a = select(magnitude > table.erfc_most, magnitude.constant(table.erfc_most), magnitude)
    square = two_product(a, a)
    t = (a - table.erfc_center) / (a + table.erfc_center)
    above = two_sum(a.constant(table.erfc[0]), t * polynomial(t, table.erfc[1:]))
    below = two_sum(a + a, a.constant(1.0))
    quotient = above.high / below.high
    product = two_product(quotient, below.high)
    rest = ((above.high - product.high) - product.low) + (above.low - quotient * below.low)
    # what rounding took from the quotient, in parts of it, is a change of the exponent
    return exponential_of(-square.high, table, rest / above.high - square.low) * quotient


def erf(x: Number) -> Number:
    """erf(x)."""
    table, magnitude = TABLES[x.dtype], abs(x)
    far = with_sign(1.0 - _tail(magnitude, table), sign_of(x))
    return select(magnitude < NEAR, x + _rest(x, table), far)


def erfc(x: Number) -> Number:
    """erfc(x)."""
    table, magnitude = TABLES[x.dtype], abs(x)
    tail = _tail(magnitude, table)
    far = select(x < 0.0, 2.0 - tail, tail)
    return select(magnitude < NEAR, (1.0 - x) - _rest(x, table), far)
