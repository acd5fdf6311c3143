"""e^x and its kin: exponential, exponential_minus_one, logistic, tanh.

x = k ln 2 + r with |r| <= ln(2) / 2; e^r is a polynomial, 2^k goes into the exponent bits in two steps, so that
results at both ends of the range are rounded once. One step is enough where no result is near them. Source of the
scheme: J.-M. Muller, "Elementary Functions", ch. 11.
"""

import math

from .coefficients_generated import TABLES, Table
from .number import Number, everywhere, polynomial, power_of_two, scale, scale_normal, select, sign_of, with_sign

VANISHING = 60


def reduce_exponent(x: Number, table: Table, low: Number | None = None) -> tuple[Number, Number, Number]:
    """k (as `scale` takes it), and two numbers whose sum is r = x + low - k ln 2, |r| <= ln(2) / 2: the first is exact,
    the second small. `x` is in range already.
    """
    k = (x * table.log2_e).rounded()
    rest = k * -table.ln2_low if low is None else less_product(low, k, table.ln2_low)
    return k if k.emitter.scales else k.integer(), less_product(x, k, table.ln2_high), rest


def less_product(x: Number, k: Number, factor: float) -> Number:
    """x - k * factor, rounded once if the emitter fuses."""
    return k.multiply_add(-factor, x) if k.emitter.fuses else x - k * factor


def change_of(r: Number, rest: Number, table: Table) -> Number:
    """e^(r + rest) - 1 = (r + rest) + (r + rest)^2 P; the square does not mind a rounded sum."""
    rounded = r + rest
    return r + (rounded * rounded).multiply_add(polynomial(rounded, table.exp), rest)


def exponential_of(x: Number, table: Table, low: Number | None = None) -> Number:
    """e^(x + low), from 0 to inf."""
    if not x.emitter.asks:
        return _exponential_anywhere(x, table, low)

    def normal() -> Number:
        k, r, rest = reduce_exponent(x, table, low)
        return scale_normal(change_of(r, rest, table) + 1.0, k)

    most = (x.format.bias - 2) * math.log(2.0)  # the result and all steps are normal numbers
    return everywhere(abs(x) < most, normal, lambda: _exponential_anywhere(x, table, low))


def _exponential_anywhere(x: Number, table: Table, low: Number | None) -> Number:
    clamped = select(x > table.exp_most, x.constant(table.exp_most), x)
    clamped = select(clamped < table.exp_least, x.constant(table.exp_least), clamped)
    kept = None if low is None else select(clamped.equals(x), low, 0.0)
    k, r, rest = reduce_exponent(clamped, table, kept)
    return scale(change_of(r, rest, table) + 1.0, k)


def exponential(x: Number) -> Number:
    """e^x."""
    return exponential_of(x, TABLES[x.dtype])


def exponential_minus_one_of(x: Number, table: Table) -> Number:
    """e^x - 1."""
    clamped = select(x > table.exp_most, x.constant(table.exp_most), x)
    clamped = select(clamped < table.expm1_least, x.constant(table.expm1_least), clamped)
    whole, r, rest = reduce_exponent(clamped, table)
    k, change = whole.integer() if whole.emitter.scales else whole, change_of(r, rest, table)
    # 2^-k vanishes beside one long before it leaves the range of normal numbers
    bounded = select(k < VANISHING, k, k.constant(VANISHING))
    grown = scale(change + (1.0 - power_of_two(-bounded, x.format)), whole)
    # what is smaller than the last place of one is its own answer, with its sign of zero
    return select(abs(x) < table.tiny, x, select(k.equals(0), change, grown))


def exponential_minus_one(x: Number) -> Number:
    """e^x - 1."""
    return exponential_minus_one_of(x, TABLES[x.dtype])


def logistic(x: Number) -> Number:
    """1 / (1 + e^-x)."""
    table = TABLES[x.dtype]
    grown = exponential_of(-abs(x), table)
    return select(x < 0.0, grown, 1.0) / (grown + 1.0)


def tanh(x: Number) -> Number:
    """tanh |x| = t / (t + 2) with t = e^2|x| - 1 = 2^k change + (2^k - 1), which has no cancellation."""
    table = TABLES[x.dtype]
    magnitude = abs(x)
    limited = select(magnitude > table.tanh_most, x.constant(table.tanh_most), magnitude)
    k, r, rest = reduce_exponent(limited + limited, table)
    power = power_of_two(k.integer() if k.emitter.scales else k, x.format)
    # exact up to the last place of one, from where on the quotient is one; the change itself for k = 0
    grown = power.multiply_add(change_of(r, rest, table), power - 1.0)
    return with_sign(grown / (grown + 2.0), sign_of(x))
