"""sine, cosine, tan: exact argument reduction, then polynomials on [-pi/4, pi/4].

x 2/pi = 4n + q + f. For any finite x the quadrant q and the fraction f come from integer arithmetic alone: the
significand is multiplied by the three machine words of 2/pi that matter for its exponent. Source: M. Payne and
R. Hanek, "Radian reduction for trigonometric functions", 1983.
"""

from .coefficients_generated import TABLES, Table
from .number import Double, Number, branch, fast_two_sum, polynomial, select, sign_of, two_product, two_sum

HALF_WORD = {"ui32": 16, "ui64": 32}


def wide_product(a: Number, b: Number) -> tuple[Number, Number]:
    """The high and the low word of the product of two unsigned words."""
    half = HALF_WORD[a.dtype]
    mask = (1 << half) - 1
    a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
    low, middle = a_low * b_low, a_high * b_low
    carry = (low >> half) + (middle & mask) + a_low * b_high
    return a_high * b_high + (middle >> half) + (carry >> half), a * b


def window(first: Number, word: Number, table: Table) -> list[Number]:
    """Words `first` to `first + 3` of 2/pi, by halving the candidates once per bit of `first`."""
    words = [word.constant(number) for number in table.two_over_pi]
    step = 1 << (len(words) - 4).bit_length() - 1
    while step:
        chosen = (first & step).differs(0)
        keep = 4 + step - 1
        words = [
            select(chosen, words[i + step], words[i]) if i + step < len(words) else words[i]
            for i in range(min(keep, len(words)))
        ]
        step >>= 1
    return words[:4]


def shifted(words: list[Number], amount: Number, width: int) -> list[Number]:
    """Three words that start `amount` (0 to width - 1) bits into four."""
    rest = (width - 1) - amount
    return [(high << amount) | ((low >> 1) >> rest) for high, low in zip(words, words[1:], strict=False)]


def reduce_large(magnitude: Number, table: Table) -> list[Number]:
    """q (unsigned word) and f pi/2 as high and low float, for a finite magnitude above pi/4."""
    format = magnitude.format
    bits = magnitude.bits()
    significand = (bits & ((1 << format.fraction_bits) - 1)) | (1 << format.fraction_bits)
    # bits of 2/pi before this one only add multiples of four; the table starts with one word of zeros
    exponent = (bits >> format.fraction_bits) - (format.bias + format.fraction_bits)
    offset = exponent + (format.width - 2)
    log_width = format.width.bit_length() - 1
    words = window(offset >> log_width, bits, table)
    w0, w1, w2 = shifted(words, offset & (format.width - 1), format.width)

    high2, p2 = wide_product(significand, w2)
    high1, low1 = wide_product(significand, w1)
    p1 = low1 + high2
    carry = select(p1 < low1, p1.constant(1), 0)
    p0 = significand * w0 + high1 + carry

    quadrant = p0 >> (format.width - 2)
    fraction = [(p0 << 2) | (p1 >> (format.width - 2)), (p1 << 2) | (p2 >> (format.width - 2))]
    # a fraction of half or more belongs to the next quadrant, with the fraction less one
    next_quadrant = fraction[0] >> (format.width - 1)
    quadrant = (quadrant + next_quadrant) & 3
    angle = fraction_to_angle(fraction, table, format.name, format.width)
    return [quadrant, angle.high, angle.low]


def fraction_to_angle(fraction: list[Number], table: Table, dtype: str, width: int) -> Double:
    """A two-word fixed-point fraction, signed, times pi/2. Half words convert exactly."""
    half = width // 2
    mask = (1 << half) - 1
    top = fraction[0].bits_as(f"i{width}") >> half
    pieces = [top, fraction[0] & mask, fraction[1] >> half, fraction[1] & mask]
    parts = [piece.to(dtype) * 2.0 ** -(half * (i + 1)) for i, piece in enumerate(pieces)]
    total = two_sum(parts[0], parts[1])
    second = two_sum(total.low, parts[2])
    lead = two_sum(total.high, second.high)
    low = lead.low + (second.low + parts[3])
    exact = fast_two_sum(lead.high, low)
    product = two_product(exact.high, exact.high.constant(table.half_pi_high))
    tail = product.low + (exact.high * table.half_pi_low + exact.low * table.half_pi_high)
    return fast_two_sum(product.high, tail)


def reduced(x: Number, table: Table) -> tuple[Number, Double]:
    """The quadrant of |x| and its angle in [-pi/4, pi/4]."""
    magnitude = abs(x)

    def near() -> list[Number]:
        return [magnitude.bits().constant(0), magnitude, magnitude.constant(0.0)]

    quadrant, high, low = branch(magnitude <= table.quarter_pi, near, lambda: reduce_large(magnitude, table))
    return quadrant, Double(high, low)


def sine_kernel(angle: Double, table: Table) -> Number:
    """The sine of an angle in [-pi/4, pi/4]."""
    r = angle.high
    z = r * r
    return r + (r * z * polynomial(z, table.sine) + angle.low * (1.0 - 0.5 * z))


def cosine_kernel(angle: Double, table: Table) -> Number:
    """The cosine of an angle in [-pi/4, pi/4]."""
    r = angle.high
    z = r * r
    half = 0.5 * z
    head = 1.0 - half
    return head + (((1.0 - head) - half) + (z * z * polynomial(z, table.cosine) - r * angle.low))


def finite_or_nan(x: Number, result: Number) -> Number:
    """`result` if x is finite, else NaN."""
    return select(abs(x) < float("inf"), result, float("nan"))


def negated_where(condition: Number, x: Number) -> Number:
    """-x if the condition is true, else x."""
    return select(condition, -x, x)


def sine(x: Number) -> Number:
    """sin(x)."""
    table = TABLES[x.dtype]
    quadrant, angle = reduced(x, table)
    swapped = (quadrant & 1).differs(0)
    result = select(swapped, cosine_kernel(angle, table), sine_kernel(angle, table))
    negative = (quadrant & 2).differs(0) ^ sign_of(x).differs(0)
    # a value below the last place of one is its own sine, with its sign of zero
    result = select(abs(x) < table.tiny, x, negated_where(negative, result))
    return finite_or_nan(x, result)


def cosine(x: Number) -> Number:
    """cos(x)."""
    table = TABLES[x.dtype]
    quadrant, angle = reduced(x, table)
    swapped = (quadrant & 1).differs(0)
    result = select(swapped, sine_kernel(angle, table), cosine_kernel(angle, table))
    negative = ((quadrant + 1) & 2).differs(0)
    return finite_or_nan(x, negated_where(negative, result))


def tan(x: Number) -> Number:
    """tan(x)."""
    table = TABLES[x.dtype]
    quadrant, angle = reduced(x, table)
    swapped = (quadrant & 1).differs(0)
    sine, cosine = sine_kernel(angle, table), cosine_kernel(angle, table)
    result = select(swapped, -cosine, sine) / select(swapped, sine, cosine)
    result = select(abs(x) < table.tiny, x, negated_where(sign_of(x).differs(0), result))
    return finite_or_nan(x, result)
