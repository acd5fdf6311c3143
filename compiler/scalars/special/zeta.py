"""zeta(x, q), Hurwitz's: the sum of (q + k)^-x over k = 0, 1, ...; and polygamma, which is a factorial times it.

Euler and Maclaurin's summation: the first terms as they are, the rest as an integral and corrections with Bernoulli's
numbers. The terms know what rounding took from q + k: raised to a large x it would show.
"""

from orchestrion.compiler.scalars.math.number import Double, Number, branch, polynomial, select, two_sum

from .coefficients_generated import TABLES, Table
from .gamma import FAR, INFINITY, NAN, digamma, trigamma

#: the factorials below the range of Stirling's series
_FACTORIALS = {2: 2.0, 3: 6.0, 4: 24.0, 5: 120.0}


def _power(base: Double, exponent: Number) -> Number:
    """(high + low)^exponent, low being less than the last place of high."""
    return base.high.op("power", exponent) * (exponent * (base.low / base.high) + 1.0)


def _rest(x: Number, start: Double, table: Table) -> Number:
    """The sum of (start + k)^-x over k = 0, 1, ..."""
    a = start.high
    inverse = 1.0 / a
    # terms with a larger x are below every number of the format
    s = select(x < table.zeta_most, x, x.constant(table.zeta_most))
    square = inverse * inverse
    corrections = s.constant(table.zeta[-1])
    for j in range(len(table.zeta) - 2, -1, -1):
        corrections = (s + float(2 * j + 1)) * (s + float(2 * j + 2)) * square * corrections + table.zeta[j]
    return _power(start, 1.0 - x) * (1.0 / (x - 1.0) + inverse * (0.5 + inverse * s * corrections))


def zeta(x: Number, q: Number) -> Number:
    """For x > 1; negative q only with integral x, as far as the terms summed reach. Poles at q = 0, -1, -2, ..."""
    table = TABLES[x.dtype]
    start, *shifts = (two_sum(q, q.constant(float(k))) for k in range(int(table.zeta_terms), 0, -1))
    terms = [*(_power(shift, -x) for shift in shifts), q.op("power", -x)]
    total = sum(terms[1:], terms[0]) + _rest(x, start, table)
    result = select(q < -table.zeta_reach, q.constant(NAN), total)
    result = select(q.equals(INFINITY), q.constant(0.0), result)

    half = x * 0.5
    even = half.floor().equals(half)
    at_pole = select(even, x.constant(INFINITY), NAN)
    result = select((q <= 0.0) & q.floor().equals(q), at_pole, result)
    result = select(x.equals(1.0), x.constant(INFINITY), result)
    result = select(x < 1.0, x.constant(NAN), result)
    return select(x.is_nan() | q.is_nan(), x + q, result)


def _factorial(n: Number, table: Table) -> Number:
    """n! of an integral n from 2 on, by Stirling's formula in an order that overflows where n! does."""
    large = select(n > FAR, n, n.constant(FAR))
    half_power = large.op("power", large * 0.5)
    inverse = 1.0 / large
    series = (inverse * polynomial(inverse * inverse, table.stirling)).op("exponential")
    size = (large * table.two_pi).sqrt() * series
    result = half_power * (-large).op("exponential") * half_power * size
    for number, factorial in _FACTORIALS.items():
        result = select(n.equals(float(number)), n.constant(factorial), result)
    return result


def _higher_polygamma(n: Number, x: Number) -> Number:
    """The derivative of order n of digamma for an integral n from 2 on, else NaN."""
    half = n * 0.5
    even = half.floor().equals(half)
    magnitude = _factorial(n, TABLES[n.dtype]) * zeta(n + 1.0, x)
    result = select(even, -magnitude, magnitude)
    known = (n >= 2.0) & n.floor().equals(n)
    return select(known, result, n.constant(NAN))


def polygamma(n: Number, x: Number) -> Number:
    """The derivative of order n of digamma; NaN for a negative n and one that is not integral."""
    order = n.known()
    if order in (0, 1):
        return digamma(x) if order == 0 else trigamma(x)

    def low() -> list[Number]:
        return [select(n.equals(0.0), digamma(x), trigamma(x))]

    (result,) = branch((n.equals(0.0) | n.equals(1.0)), low, lambda: [_higher_polygamma(n, x)])
    return result
