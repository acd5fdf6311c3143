"""log, log_plus_one and power.

x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f): log m = 2 atanh s, a series in s^2 (Muller,
"Elementary Functions", ch. 11). `power` needs y log x to a few bits more than the format has, so there the logarithm
is a double word.
"""

from .coefficients_generated import TABLES, Table
from .exponential import exponential_of
from .number import Double, Number, double, fast_two_sum, polynomial, select, sign_of, two_product, two_sum, with_sign


def decompose(x: Number, table: Table) -> tuple[Number, Number]:
    """k (as a float) and m in [sqrt(1/2), sqrt(2)) of a positive x; subnormals are scaled up first."""
    format = x.format
    subnormal = x < format.min_normal
    bits = select(subnormal, x * 2.0**format.precision, x).bits()
    # adding the distance from sqrt(1/2) to 1 carries into the exponent exactly where m would exceed sqrt(2)
    carried = bits + table.sqrt_half_carry
    k = (carried >> format.fraction_bits).bits_as(format.signed) - format.bias
    m = (carried & ((1 << format.fraction_bits) - 1)) + table.sqrt_half_bits
    k = k - select(subnormal, k.constant(format.precision), 0)
    return k.to(format.name), m.bits_as(format.name)


def log_of(x: Number, correction: Number, table: Table) -> Number:
    """log(x) + correction for positive x, a correction being less than the last place of x over x."""
    k, m = decompose(x, table)
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    # 2 atanh s = f - s (f - 2 z L(z)): the rounding of s is damped by the size of s
    rest = s * (f - 2.0 * z * polynomial(z, table.log)) - (k * table.ln2_low + correction)
    return k * table.ln2_high + (f - rest)


def log_specials(x: Number, result: Number) -> Number:
    """The values that the series does not give: +inf and NaN as they are, -inf at zero, NaN below."""
    infinity = float("inf")
    result = select(x < infinity, result, x)
    result = select(x.equals(0.0), x.constant(-infinity), result)
    return select(x < 0.0, x.constant(float("nan")), result)


def log(x: Number) -> Number:
    """The natural logarithm."""
    return log_specials(x, log_of(x, x.constant(0.0), TABLES[x.dtype]))


def log_plus_one(x: Number) -> Number:
    """log(1 + x)."""
    table = TABLES[x.dtype]
    total = x + 1.0
    # what rounding took from 1 + x, as a change of the logarithm
    lost = select(x > 1.0, 1.0 - (total - x), x - (total - 1.0))
    result = log_specials(total, log_of(total, lost / total, table))
    return select(abs(x) < table.tiny, x, result)


def log_double(x: Number, table: Table) -> Double:
    """log(x) of a positive x as a double word, to about 10 bits beyond the format."""
    k, m = decompose(x, table)
    f = m - 1.0
    divisor = two_sum(f, x.constant(2.0))
    quotient = f / divisor.high
    product = two_product(quotient, divisor.high)
    remainder = ((f - product.high) - product.low) - quotient * divisor.low
    s = fast_two_sum(quotient, remainder / divisor.high)
    z = s * s
    tail = z.high * polynomial(z.high, table.log_tail)
    series = double(x, table.third_high, table.third_low) + Double(tail, x.constant(0.0))
    correction = s * (z * series)
    log_m = s + correction
    doubled = Double(log_m.high + log_m.high, log_m.low + log_m.low)
    whole = Double(k * table.ln2_high, k * table.ln2_low)
    return whole + doubled


def power(x: Number, y: Number) -> Number:
    """C's pow: x^0 = 1^y = 1 even for NaN; a negative x only to integral y."""
    table = TABLES[x.dtype]
    infinity = float("inf")
    magnitude = abs(x)

    log = log_double(magnitude, table)
    # beyond this no finite power is left, and the exact product stays clear of overflow
    limit = table.power_most
    bounded = select(y > limit, y.constant(limit), y)
    bounded = select(bounded < -limit, y.constant(-limit), bounded)
    product = two_product(bounded, log.high)
    total = fast_two_sum(product.high, product.low + bounded * log.low)
    result = exponential_of(total.high, table, total.low)

    # zeros and infinities of the base, by the sign of the exponent
    grows = y > 0.0
    at_zero = select(grows, x.constant(0.0), infinity)
    at_infinity = select(grows, x.constant(infinity), 0.0)
    result = select(magnitude.equals(0.0), at_zero, result)
    result = select(magnitude.equals(infinity), at_infinity, result)

    # an infinite exponent moves away from one
    widens = (magnitude > 1.0).op("compare_eq", grows)
    at_limit = select(widens, x.constant(infinity), 0.0)
    at_limit = select(magnitude.equals(1.0), x.constant(1.0), at_limit)
    result = select(abs(y).equals(infinity), at_limit, result)

    integral = y.floor().equals(y)
    half = y * 0.5
    odd = integral & half.floor().differs(half)
    negative = sign_of(x).differs(0)
    signed = with_sign(result, select(odd & negative, sign_of(x), 0))
    result = select(negative, signed, result)
    undefined = (x < 0.0) & (magnitude < infinity) & integral.op("not") & (abs(y) < infinity)
    result = select(undefined, x.constant(float("nan")), result)

    result = select(x.is_nan() | y.is_nan(), x + y, result)
    return select(y.equals(0.0) | x.equals(1.0), x.constant(1.0), result)
