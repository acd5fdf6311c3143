"""rsqrt, cbrt, atan2 and the remainder of floats."""

from collections.abc import Sequence

from .coefficients_generated import TABLES, Table
from .number import Number, loop, polynomial, select, sign_of, with_sign


def rsqrt(x: Number) -> Number:
    """1 / sqrt(x)."""
    return 1.0 / x.sqrt()


def cbrt(x: Number) -> Number:
    """The cube root. A third of the exponent is the first guess; two steps of Halley's method and one of Newton's
    follow.
    """
    format = x.format
    table = TABLES[x.dtype]
    magnitude = abs(x)
    # powers of eight keep tiny and huge values away from the ends of the range
    small, large = magnitude < 1.0 / table.cbrt_middle, magnitude > table.cbrt_middle
    factor = select(
        small, magnitude.constant(table.cbrt_factor**3), select(large, magnitude.constant(table.cbrt_factor**-3), 1.0)
    )
    a = magnitude * factor
    t = (a.bits() / 3 + table.cbrt_guess).bits_as(format.name)
    for _ in range(2):
        cube = t * t * t
        t = t * ((cube + (a + a)) / ((cube + cube) + a))
    # the last step works on the error alone: t^2 has few enough bits to divide by exactly
    t = ((t.bits() + table.cbrt_half_bit) & table.cbrt_mask).bits_as(format.name)
    quotient = a / (t * t)
    t = t + t * ((quotient - t) / ((t + t) + quotient))
    result = t * select(small, t.constant(1.0 / table.cbrt_factor), select(large, t.constant(table.cbrt_factor), 1.0))
    special = magnitude.equals(0.0) | (magnitude < float("inf")).op("not")
    return select(special, x, with_sign(result, sign_of(x)))


def arctangent(numerator: Number, denominator: Number, table: Table) -> tuple[Number, Number]:
    """atan(numerator / denominator) for 0 <= numerator <= denominator, as a constant part and the rest."""
    steep = numerator > denominator * table.tan_eighth_pi
    top = select(steep, numerator - denominator, numerator)
    bottom = select(steep, numerator + denominator, denominator)
    t = top / bottom
    z = t * t
    rest = t * z * polynomial(z, table.arctangent)
    base = select(steep, t.constant(table.quarter_pi), 0.0)
    lost = select(steep, t.constant(table.quarter_pi_low), 0.0)
    return base, t + (rest + lost)


def atan2(y: Number, x: Number) -> Number:
    """The angle of the point (x, y), as C's atan2."""
    table = TABLES[y.dtype]
    infinity = float("inf")
    height, width = abs(y), abs(x)
    tall = height > width
    small, large = select(tall, width, height), select(tall, height, width)

    # keep the sum of both and the ratio in range
    factor = select(large > table.atan2_huge, large.constant(table.atan2_shrink), 1.0)
    factor = select(large < table.atan2_tiny, large.constant(table.atan2_grow), factor)
    both_infinite = height.equals(infinity) & width.equals(infinity)
    both_zero = height.equals(0.0) & width.equals(0.0)
    top = select(both_infinite, small.constant(1.0), small * factor)
    bottom = select(both_infinite, large.constant(1.0), large * factor)
    bottom = select(both_zero, large.constant(1.0), bottom)
    # a finite value over an infinite one is zero, and so is its angle
    one_infinite = bottom.equals(infinity)
    base, rest = arctangent(
        select(one_infinite, top.constant(0.0), top), select(one_infinite, bottom.constant(1.0), bottom), table
    )

    # mirrored at the diagonal, then at the vertical: a multiple of pi/2 plus or minus the angle
    left = sign_of(x).differs(0)
    mirrored = tall ^ left
    offset = select(tall, small.constant(table.half_pi_high), select(left, small.constant(table.pi_high), 0.0))
    offset_low = select(tall, small.constant(table.half_pi_low), select(left, small.constant(table.pi_low), 0.0))
    angle = (offset + select(mirrored, -base, base)) + (offset_low + select(mirrored, -rest, rest))
    result = with_sign(angle, sign_of(y))
    return select(y.is_nan() | x.is_nan(), x + y, result)


def remainder(x: Number, y: Number) -> Number:
    """C's fmod, exact: long division of the significands, as many bits a step as the word has to spare."""
    format = x.format
    magnitude_x, magnitude_y = abs(x), abs(y)
    exponent_x, significand_x = unpacked(magnitude_x)
    exponent_y, significand_y = unpacked(magnitude_y)
    # a divisor of zero gives NaN below, and must not divide here
    significand_y = select(significand_y.equals(0), significand_y.constant(1), significand_y)
    spare = format.width - format.precision
    distance = exponent_x - exponent_y
    steps = select(distance > 0, (distance + (spare - 1)) / spare, 0).to("i32")

    def step(carried: Sequence[Number]) -> list[Number]:
        rest, left = carried
        amount = select(left > spare, left.constant(spare), left)
        return [(rest << amount.bits_as(format.unsigned)) % significand_y, left - spare]

    rest, _ = loop(steps, [significand_x % significand_y, distance], step)
    result = packed(rest, exponent_y, x)
    result = select(magnitude_x < magnitude_y, magnitude_x, result)
    result = with_sign(result, sign_of(x))
    undefined = (magnitude_x < float("inf")).op("not") | y.is_nan() | magnitude_y.equals(0.0)
    return select(undefined, x.constant(float("nan")), result)


def unpacked(magnitude: Number) -> tuple[Number, Number]:
    """Exponent field (signed, at least 1) and significand (unsigned), with subnormals as they are."""
    format = magnitude.format
    bits = magnitude.bits()
    field = (bits >> format.fraction_bits).bits_as(format.signed)
    fraction = bits & ((1 << format.fraction_bits) - 1)
    normal = field > 0
    significand = select(normal, fraction | (1 << format.fraction_bits), fraction)
    return select(normal, field, 1), significand


def packed(significand: Number, exponent: Number, like: Number) -> Number:
    """significand * 2^(exponent - fraction bits), exact, from an exponent field and an integer below 2^precision."""
    format = like.format
    leading = significand.op("count_leading_zeros") - (format.width - format.precision)
    shift = leading.bits_as(format.signed)
    normal = shift < exponent
    kept = select(normal, shift, exponent - 1)
    fraction = (significand << kept.bits_as(format.unsigned)) & ((1 << format.fraction_bits) - 1)
    field = select(normal, exponent - shift, 0)
    bits = (field.bits_as(format.unsigned) << format.fraction_bits) | fraction
    return select(significand.equals(0), bits.constant(0), bits).bits_as(format.name)
