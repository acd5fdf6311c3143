"""Inverse trigonometric and hyperbolic functions of complex numbers, all derived from acos and atanh.

Branch cuts are those of C99: on a cut, the sign of the zero part says from which side it is approached. Source of asin
and acos: T. Hull, T. Fairgrieve, P. Tang, "Implementing the complex arcsine and arccosine functions using exception
handling", 1997; rewritten so that the imaginary part is never squared alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log as _log
from math import pi

from orchestrion.compiler.stablehlo.builders.tensors import Tensor

from .numbers import Complex, log, magnitude


@dataclass(frozen=True, slots=True)
class _Arc:
    """For x = |re|, y = |im|: `side`, with Re asin = atan2(x, side), and the magnitude of the imaginary part."""

    side: Tensor
    height: Tensor


def _arc(z: Complex) -> _Arc:
    limit = z.re.format.large
    x, y = abs(z.re), abs(z.im)
    large = (x > limit) | (y > limit)
    one = x.of(1.0)
    x, y = large.select(one, x), large.select(one, y)  # large arguments are handled elsewhere
    right, beyond = x + 1.0, x - 1.0
    far = (right * right + y * y).op("sqrt")
    near = beyond.eq(0.0).select(y, (beyond * beyond + y * y).op("sqrt"))
    mean = (far + near) * 0.5
    from_far, from_near = 1.0 / (far + right), near + abs(beyond)
    less = (y * y * from_far + from_near) * 0.5  # mean - x if x <= 1, mean - 1 if x >= 1, without cancellation
    across = (from_far + 1.0 / from_near) * 0.5  # factor of y^2 in the other difference
    beside = ((mean + x) * less).op("sqrt")
    side = (beyond <= 0.0).select(beside, y * ((mean + x) * across).op("sqrt"))
    inside = y * (y * across + (across * (mean + 1.0)).op("sqrt"))
    growth = (beyond < 0.0).select(inside, less + (less * (mean + 1.0)).op("sqrt"))
    distant = log(z).re + _log(2.0)
    return _Arc(large.select(abs(z.im), side), large.select(distant, growth.op("log_plus_one")))


def asin(z: Complex) -> Complex:
    arc = _arc(z)
    re = z.re.eq(0.0).select(z.re, abs(z.re).op("atan2", arc.side).signed(z.re))
    return Complex(re, arc.height.signed(z.im))


def acos(z: Complex) -> Complex:
    arc = _arc(z)
    re = z.re.eq(0.0).select(pi / 2, arc.side.op("atan2", z.re))
    return Complex(re, arc.height.signed(-z.im))


def asinh(z: Complex) -> Complex:
    return asin(z.times_i()).over_i()


def acosh(z: Complex) -> Complex:
    turned = acos(z)
    return Complex(abs(turned.im), turned.re.signed(z.im))


def atanh(z: Complex) -> Complex:
    x, y = abs(z.re), abs(z.im)
    limit = x.format.large
    large = (x > limit) | (y > limit)
    side = 1.0 - x
    square = side * side + y * y
    near = (4.0 * x / square).op("log_plus_one") * 0.25
    # at x = 1 the square of a small y underflows, but y can be factored out
    at_pole = ((4.0 + y * y).op("sqrt").op("log") - y.op("log")) * 0.5
    length = magnitude(z)
    far = z.is_infinite.select(0.0, x / length / length)
    re = large.select(far, x.eq(1.0).select(at_pole, near))
    steep = (y + y).op("atan2", side * (x + 1.0) - y * y) * 0.5
    steep = (x.eq(1.0) & y.ne(0.0)).select(x.of(2.0).op("atan2", -y) * 0.5, steep)
    im = y.is_nan.select(y, large.select(pi / 2, steep))
    return Complex(z.re.eq(0.0).select(z.re, re.signed(z.re)), im.signed(z.im))


def atan(z: Complex) -> Complex:
    return atanh(z.times_i()).over_i()
