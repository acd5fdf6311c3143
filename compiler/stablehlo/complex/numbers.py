"""Complex arithmetic by real ops: a number is a pair of reals, and functions take and return pairs.

Special values follow C99's Annex G, and XLA on CPU where Annex G says nothing. The product is the plain formula, as in
XLA and NumPy, so that it is NaN where an infinity meets a zero. Magnitudes are scaled by powers of two, so that
intermediate values neither overflow nor underflow if the result is in range.

Sources: ISO C99, Annex G; W. Kahan, "Branch cuts for complex elementary functions", 1987.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrion.compiler.stablehlo.builders.tensors import Tensor

INFINITY = float("inf")
NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Complex:
    """The number `re + im i`."""

    re: Tensor
    im: Tensor

    @property
    def is_infinite(self) -> Tensor:
        """Whether a part is infinite, even if the other is NaN."""
        return self.re.is_infinite | self.im.is_infinite

    @property
    def is_finite(self) -> Tensor:
        """Whether both parts are finite."""
        return self.re.is_finite & self.im.is_finite

    @property
    def is_zero(self) -> Tensor:
        """Whether both parts are zero."""
        return self.re.eq(0.0) & self.im.eq(0.0)

    @property
    def largest(self) -> Tensor:
        """The greater magnitude of the two parts."""
        return abs(self.re).op("maximum", abs(self.im))

    def times(self, factor: Tensor | float) -> Complex:
        """The product with a real number."""
        return Complex(self.re * factor, self.im * factor)

    def times_i(self) -> Complex:
        return Complex(-self.im, self.re)

    def over_i(self) -> Complex:
        return Complex(self.im, -self.re)


def pick(condition: Tensor, yes: Complex, no: Complex) -> Complex:
    """`yes` where the condition is true, else `no`."""
    return Complex(condition.select(yes.re, no.re), condition.select(yes.im, no.im))


@dataclass(frozen=True, slots=True)
class Scaled:
    """`number * 2^(exponent - bias)`: parts are below 4, and one is at least 2^-24 (2^-53), or both are zero."""

    number: Complex
    exponent: Tensor
    #: |number|; infinite if a part is
    magnitude: Tensor


def scaled(z: Complex, even: bool = False) -> Scaled:
    """Scales a number by a power of two, an even one if `even`."""
    largest = z.largest
    exponent = largest.exponent()
    if even:
        exponent = exponent | 1  # the bias is odd
    number = z.times(largest.power(2 * largest.format.bias - exponent))
    square = number.re * number.re + number.im * number.im
    return Scaled(number, exponent, z.is_infinite.select(INFINITY, square.op("sqrt")))


def add(z: Complex, w: Complex) -> Complex:
    return Complex(z.re + w.re, z.im + w.im)


def subtract(z: Complex, w: Complex) -> Complex:
    return Complex(z.re - w.re, z.im - w.im)


def negate(z: Complex) -> Complex:
    return Complex(-z.re, -z.im)


def multiply(z: Complex, w: Complex) -> Complex:
    """The product by the plain formula: NaN where an infinity meets a zero."""
    return Complex(z.re * w.re - z.im * w.im, z.re * w.im + z.im * w.re)


def divide(z: Complex, w: Complex) -> Complex:
    """The quotient, scaled so that no intermediate value overflows; infinities and zeros as in Annex G."""
    above, below = scaled(z), scaled(w)
    a, b = above.number, below.number
    square = b.re * b.re + b.im * b.im
    product = _by_conjugate(a, b)
    exponent = above.exponent - below.exponent
    half = exponent >> 1  # the power itself may be out of range, that of one half is not
    bias = z.re.format.bias
    quotient = Complex(product.re / square, product.im / square)
    for part in (half, exponent - half):
        quotient = quotient.times(z.re.power(part + bias))
    return _recovered(quotient, z, w, above, below)


def _by_conjugate(z: Complex, w: Complex) -> Complex:
    return Complex(z.re * w.re + z.im * w.im, z.im * w.re - z.re * w.im)


def _recovered(quotient: Complex, z: Complex, w: Complex, above: Scaled, below: Scaled) -> Complex:
    """The infinities and zeros of Annex G where the formula gave NaN for both parts."""
    lost = quotient.re.is_nan & quotient.im.is_nan
    pole = lost & w.is_zero
    endless = w.re.of(INFINITY).signed(w.re)
    quotient = pick(pole, Complex(endless * z.re, endless * z.im), quotient)
    far, near = z.is_infinite, w.is_infinite
    product = _by_conjugate(pick(far, _direction(z), above.number), pick(near, _direction(w), below.number))
    known = lost & ((far & w.is_finite) | (near & z.is_finite))
    return pick(known, product.times(far.select(z.re.of(INFINITY), 0.0)), quotient)


def _direction(z: Complex) -> Complex:
    """1 for infinite parts and 0 for others, with their signs."""
    parts = (part.is_infinite.select(part.of(1.0), 0.0).signed(part) for part in (z.re, z.im))
    return Complex(*parts)


def magnitude(z: Complex) -> Tensor:
    """|z| without intermediate overflow."""
    parts = scaled(z)
    return parts.magnitude * z.re.power(parts.exponent)


def sign(z: Complex) -> Complex:
    parts = scaled(z)
    made = Complex(parts.number.re / parts.magnitude, parts.number.im / parts.magnitude)
    return pick(z.is_zero, z, made)


def sqrt(z: Complex) -> Complex:
    """The square root with a real part that is not negative."""
    parts, root = _root(z)
    made = root.times(z.re.power((parts.exponent + z.re.format.bias) >> 1))
    endless = z.im.is_infinite  # even if the other part is NaN
    return Complex(endless.select(INFINITY, made.re), endless.select(z.im, made.im))


def _root(z: Complex) -> tuple[Scaled, Complex]:
    """The number scaled by an even power of two, and its square root."""
    parts = scaled(z, even=True)
    a, b = parts.number.re, abs(parts.number.im)
    longer = ((abs(a) + parts.magnitude) * 0.5).op("sqrt")
    shorter = longer.eq(0.0).select(0.0, b / (longer + longer))
    left = a < 0.0
    return parts, Complex(left.select(shorter, longer), left.select(longer, shorter).signed(z.im))


def rsqrt(z: Complex) -> Complex:
    parts, root = _root(z)
    bias = z.re.format.bias
    power = z.re.power(2 * bias - ((parts.exponent + bias) >> 1))
    made = Complex(root.re / parts.magnitude, -root.im / parts.magnitude).times(power)
    zero = z.re.of(0.0)
    made = pick(z.is_infinite, Complex(zero, zero.signed(-z.im)), made)
    return pick(z.is_zero, Complex(z.re.of(INFINITY), z.re.of(NAN)), made)


def cbrt(z: Complex) -> Complex:
    large = z.largest > z.re.format.large
    length = magnitude(z.times(large.select(z.re.of(0.125), 1.0))).op("cbrt") * large.select(z.re.of(2.0), 1.0)
    return _polar(length, z.im.op("atan2", z.re) * z.re.of(1.0 / 3.0))


def _polar(length: Tensor, angle: Tensor) -> Complex:
    """The number with this magnitude and angle. A zero angle keeps its sign."""
    return Complex(length * angle.op("cosine"), angle.eq(0.0).select(angle, length * angle.op("sine")))


def exponential(z: Complex) -> Complex:
    a, b = z.re, z.im
    large = a > a.format.exponent
    factor = large.select(a * 0.5, a).op("exponential")
    rest = large.select(factor, 1.0)
    turned = a.is_infinite & ~b.is_finite  # the angle is undefined, the magnitude is not
    cosine = turned.select(1.0, b.op("cosine"))
    sine = turned.select((a < 0.0).select(a.of(0.0), NAN), b.op("sine"))
    return Complex(factor * cosine * rest, b.eq(0.0).select(b, factor * sine * rest))


def exponential_minus_one(z: Complex) -> Complex:
    a, b = z.re, z.im
    whole = exponential(z)
    half = (b * 0.5).op("sine")
    near = a.op("exponential_minus_one") * b.op("cosine") - 2.0 * half * half
    near = a.eq(-INFINITY).select(-1.0, near)
    return Complex((a > a.format.exponent).select(whole.re, near), whole.im)


def log(z: Complex) -> Complex:
    a, b = abs(z.re), abs(z.im)
    large, small = a.op("maximum", b), a.op("minimum", b)
    bounded = large.is_finite & large.ne(0.0)
    ratio = (bounded | large.is_nan).select(small / large, 0.0)
    length = large.op("log") + (ratio * ratio).op("log_plus_one") * 0.5
    return Complex(z.is_infinite.select(INFINITY, length), z.im.op("atan2", z.re))


def log_plus_one(z: Complex) -> Complex:
    a, b = z.re, z.im
    moved = a + 1.0
    near = (a * (a + 2.0) + b * b).op("log_plus_one") * 0.5
    length = (z.largest < 0.5).select(near, log(Complex(moved, b)).re)
    return Complex(length, b.op("atan2", moved))


def atan2(y: Complex, x: Complex) -> Complex:
    """-i log((x + i y) / sqrt(x^2 + y^2)), as in XLA."""
    length = sqrt(add(multiply(x, x), multiply(y, y)))
    return log(divide(add(x, y.times_i()), length)).over_i()


def maximum(z: Complex, w: Complex) -> Complex:
    """The later number in the order of the real parts, then of the imaginary parts; NaN if one of them is."""
    return pick(_is_less(w, z) & ~_is_nan(w) | _is_nan(z), z, w)


def minimum(z: Complex, w: Complex) -> Complex:
    """The earlier number in the same order; NaN if one of them is."""
    return pick(_is_less(z, w) & ~_is_nan(w) | _is_nan(z), z, w)


def clamp(low: Complex, z: Complex, high: Complex) -> Complex:
    return minimum(maximum(z, low), high)


def _is_less(z: Complex, w: Complex) -> Tensor:
    return (z.re < w.re) | z.re.eq(w.re) & (z.im < w.im)


def _is_nan(z: Complex) -> Tensor:
    return z.re.is_nan | z.im.is_nan


def power(z: Complex, w: Complex) -> Complex:
    """|z|^c e^(-d t) at the angle c t + d log|z|, where t is the angle of z, and w = c + d i."""
    logarithm = log(z)
    angle = logarithm.im
    real = w.im.eq(0.0)
    growth = magnitude(z).op("power", w.re) * (-(w.im * angle)).op("exponential")
    outside = ~growth.is_finite | growth.eq(0.0)
    # a factor may be out of range while the product is not
    both = (w.re * logarithm.re - w.im * angle).op("exponential")
    length = (outside & ~real).select(both, growth)
    turn = w.re * angle
    made = _polar(length, real.select(turn, turn + w.im * logarithm.re))
    zero, one = z.re.of(0.0), z.re.of(1.0)
    vanishing = z.is_zero & (w.re > 0.0)
    return pick(w.is_zero, Complex(one, zero), pick(vanishing, Complex(zero, zero), made))


def logistic(z: Complex) -> Complex:
    """1 / (1 + e^-z), multiplied by e^(z/2) above and below so that nothing cancels near its poles."""
    a, b = z.re, z.im
    falling = (-abs(a)).op("exponential")
    rising = -(-abs(a)).op("exponential_minus_one")
    turned = a.is_infinite & ~b.is_finite
    cosine = turned.select(1.0, (b * 0.5).op("cosine"))
    sine = turned.select(0.0, (b * 0.5).op("sine"))
    across, along = (falling + 1.0) * cosine, rising * sine
    square = across * across + along * along
    left = a < 0.0
    beside = across * cosine + left.select(-along, along) * sine
    twice = sine * cosine * 2.0
    return Complex(left.select(falling * beside, beside) / square, falling * twice / square)


def _hyperbolic(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """sinh, cosh and a common factor for both, which is 1 unless they would be out of range."""
    length = abs(x)
    large = length > x.format.exponent
    change = large.select(length * 0.5, length).op("exponential_minus_one")
    grown = change + 1.0
    odd = large.select(grown, change + change / grown) * 0.5
    even = large.select(grown, grown + 1.0 / grown) * 0.5
    return odd.signed(x), even, large.select(grown, 1.0)


def sinh(z: Complex) -> Complex:
    a, b = z.re, z.im
    odd, even, factor = _hyperbolic(a)
    turned = (a.is_infinite | a.eq(0.0)) & ~b.is_finite
    cosine = turned.select(1.0, b.op("cosine"))
    im = even * b.op("sine") * factor
    return Complex(odd * cosine * factor, b.eq(0.0).select(b, im))


def cosh(z: Complex) -> Complex:
    a, b = z.re, z.im
    odd, even, factor = _hyperbolic(a)
    wild = ~b.is_finite
    cosine = (wild & a.is_infinite).select(1.0, b.op("cosine"))
    sine = (wild & a.eq(0.0)).select(1.0, b.op("sine"))
    im = b.eq(0.0).select(b * a.of(1.0).signed(a), odd * sine * factor)
    return Complex(even * cosine * factor, im)


def sine(z: Complex) -> Complex:
    return sinh(z.times_i()).over_i()


def cosine(z: Complex) -> Complex:
    return cosh(z.times_i())


def tanh(z: Complex) -> Complex:
    a, b = z.re, z.im
    flat = a.format.flat
    far = abs(a) > flat
    odd, even, _ = _hyperbolic(a.of(-flat).op("maximum", a).op("minimum", flat))
    sine, cosine = b.op("sine"), b.op("cosine")
    square = odd * odd + cosine * cosine
    turned = a.is_infinite & ~b.is_finite
    twice = sine * cosine
    tail = 4.0 * twice * (abs(a) * -2.0).op("exponential")
    re = far.select(a.of(1.0).signed(a), odd * even / square)
    im = turned.select(0.0, far.select(tail, twice / square))
    return Complex(a.eq(0.0).select(a, re), b.eq(0.0).select(b, im))


def tan(z: Complex) -> Complex:
    return tanh(z.times_i()).over_i()
