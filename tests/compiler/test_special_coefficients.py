"""Where the numbers of compiler/scalars/special/coefficients_generated.py come from: recomputed here and compared.

`BLESS=1 pytest tests/compiler/test_special_coefficients.py` writes the file. Fits are Chebyshev series (close to
minimax) with the fewest terms whose error, as the function uses it, stays 2^-6 below the last place.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from coefficients import chebyshev, rational_variable, render
from mpmath import mp, mpf

from orchestrion.compiler.scalars import special
from orchestrion.compiler.scalars.special.gamma import FAR

FILE = Path(special.__file__).with_name("coefficients_generated.py")
DOC = """Constants and polynomial coefficients of the special functions, per float format. Generated: do not edit.

Polynomials give the constant term first. What each is a fit of, on which interval and how exactly, stands in
tests/compiler/test_special_coefficients.py, which recomputes every number.
"""
#: type -> precision, scalar
FORMATS: dict[str, tuple[int, type[Any]]] = {"f32": (24, np.float32), "f64": (53, np.float64)}
NAMES = {precision: name for name, (precision, _) in FORMATS.items()}


def inverse_erfc(d: Any) -> Any:
    """Newton's method on the logarithm, which is concave."""
    y = mpmath.sqrt(-mpmath.log(d * (2 - d)))
    while True:
        value = mpmath.erfc(y)
        step = mpmath.log(value / d) * value * mpmath.exp(y * y) * mpmath.sqrt(mpmath.pi) / 2
        y += step
        if abs(step) < mpf(2) ** -(mp.prec // 2 + 4) * y:
            return y


def erf_inv(precision: int) -> dict[str, Any]:
    """erf_inv(x) / x up to 3/4 in x^2; beyond, erf_inv(x) / sqrt(w) in (w - K) / (w + K), w = -log(1 - x^2)."""
    near = mpf(9) / 16
    least, most = -mpmath.log(1 - near), (precision - 1) * mpmath.log(2)
    center = float(np.float32(mpmath.sqrt(least * most)))
    w_of, interval = rational_variable(center, least, most)

    def small(z: Any) -> Any:
        x = mpmath.sqrt(z)
        return inverse_erfc(1 - x) / x

    def tail(t: Any) -> Any:
        rest = mpmath.exp(-w_of(t))
        return inverse_erfc(rest / (1 + mpmath.sqrt(1 - rest))) / mpmath.sqrt(w_of(t))

    return {
        "erf_inv_center": center,
        "erf_inv": chebyshev(small, (0, near), precision),
        "erf_inv_tail": chebyshev(tail, interval, precision),
    }


def even_series(function: Callable[[Any], Any], at_zero: Any, near: Any, precision: int, weight: Any) -> list[Any]:
    """A fit in z = x^2 up to `near`, of a function of x that is even and needs more digits close to zero."""

    def in_square(z: Any) -> Any:
        if z < mpf(2) ** -90:
            return mpf(at_zero)
        with mp.workprec(4 * mp.prec):
            return +function(mpmath.sqrt(z))

    return chebyshev(in_square, (0, near), precision, weight)


def lost(value: Any, precision: int) -> Any:
    """What rounding takes from a number."""
    return value - float(FORMATS[NAMES[precision]][1](mpmath.nstr(value, 40)))


def around_one(precision: int) -> dict[str, Any]:
    """What lgamma, digamma and trigamma are near one, their roots taken out."""
    root = mpmath.findroot(mpmath.digamma, mpf("1.4616"))
    middle, center = (float(np.float32(mpmath.sqrt(least * FAR))) for least in (0.5, 1))
    x_of, interval = rational_variable(middle, mpf(1) / 2, mpf(FAR))
    z_of, narrow = rational_variable(center, mpf(1), mpf(FAR))

    def lgamma(x: Any) -> Any:
        return mpmath.loggamma(x) / ((x - 1) * (x - 2))

    def digamma(z: Any) -> Any:
        return mpmath.digamma(z) / (z - root)

    of_lgamma = chebyshev(lambda t: lgamma(x_of(t)), interval, precision, 4)
    of_digamma = chebyshev(lambda t: digamma(z_of(t)), narrow, precision, 4)
    return {
        "lgamma_center": middle,
        "lgamma": of_lgamma,
        "lgamma_low": lost(of_lgamma[0], precision),
        "digamma_center": center,
        "digamma": of_digamma,
        "digamma_low": lost(of_digamma[0], precision),
        "digamma_root_high": root,
        "digamma_root_low": lost(root, precision),
        "trigamma": chebyshev(lambda t: z_of(t) * mpmath.psi(1, z_of(t)), narrow, precision),
    }


def stirling(precision: int) -> dict[str, Any]:
    """What Stirling's series add from `FAR` on, in 1 / x^2; beyond `lgamma_huge` they add nothing."""
    near, half = mpf(1) / FAR**2, mpf(1) / 2

    def lgamma(u: Any) -> Any:
        return (mpmath.loggamma(1 / u) + 1 / u + (1 / u - half) * mpmath.log(u) - mpmath.log(2 * mpmath.pi) / 2) / u

    def digamma(u: Any) -> Any:
        return (-mpmath.log(u) - u / 2 - mpmath.digamma(1 / u)) / u**2

    def trigamma(u: Any) -> Any:
        return (mpmath.psi(1, 1 / u) - u - u * u / 2) / u**3

    return {
        "lgamma_huge": 2.0 ** (precision + 6),
        "stirling_constant": mpmath.log(2 * mpmath.pi) / 2 - half,
        "stirling": even_series(lgamma, mpf(1) / 12, near, precision, near),
        "digamma_far": even_series(digamma, mpf(1) / 12, near, precision, near),
        "trigamma_far": even_series(trigamma, mpf(1) / 6, near, precision, near),
    }


def reflection(precision: int) -> dict[str, Any]:
    """sin(pi x) / (pi x), pi x cot(pi x) / (1/4 - x^2) and (pi x / sin(pi x))^2 up to 1/2, in x^2."""
    quarter = mpf(1) / 4
    return {
        "two_pi": 2 * mpmath.pi,
        "sine_of_pi": even_series(lambda x: mpmath.sinpi(x) / (mpmath.pi * x), 1, quarter, precision, 2),
        "cotangent_of_pi": even_series(
            lambda x: mpmath.pi * x * mpmath.cospi(x) / mpmath.sinpi(x) / (quarter - x * x), 4, quarter, precision, 1
        ),
        "cosecant_of_pi": even_series(lambda x: (mpmath.pi * x / mpmath.sinpi(x)) ** 2, 1, quarter, precision, 1),
    }


def bessel_i1(precision: int) -> dict[str, Any]:
    """I1(x) / x up to 8, its power series; sqrt(x) e^-x I1(x) beyond, in 16 / x - 1."""

    def far(u: Any) -> Any:
        x = 16 / (u + 1)
        if x > 2000:  # 2F0, whose terms fall for long enough
            term, total = mpf(1), mpf(1)
            for k in range(1, 40):
                term *= -(4 - (2 * k - 1) ** 2) / (8 * k * x)
                total += term
            return total / mpmath.sqrt(2 * mpmath.pi)
        return mpmath.exp(-x) * mpmath.besseli(1, x) * mpmath.sqrt(x)

    terms: list[Any] = []
    while not terms or terms[-1] * mpf(64) ** (len(terms) - 1) > mpf(2) ** -(precision + 6) * mpmath.besseli(1, 8) / 8:
        k = len(terms)
        terms.append(mpf(1) / (2 * mpf(4) ** k * mpmath.factorial(k) * mpmath.factorial(k + 1)))
    return {"bessel_i1": terms, "bessel_i1e": chebyshev(far, (-1, 1), precision, 3)}


def zeta(precision: int) -> dict[str, Any]:
    """B(2j) / (2j)!, the terms before the series, the largest x that leaves one, the least q that they reach."""
    terms, corrections, most, reach = {24: (5, 6, 100, 2), 53: (10, 12, 800, 4)}[precision]
    return {
        "zeta_terms": mpf(terms),
        "zeta_most": mpf(most),
        "zeta_reach": mpf(reach),
        "zeta": [mpmath.bernoulli(2 * j) / mpmath.factorial(2 * j) for j in range(1, corrections + 1)],
    }


#: each gives a part of the table for a precision
PARTS: tuple[Callable[[int], dict[str, Any]], ...] = (erf_inv, around_one, stirling, reflection, bessel_i1, zeta)


def table(name: str) -> dict[str, Any]:
    precision, scalar = FORMATS[name]

    def rounded(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(rounded(item) for item in value)
        return float(scalar(mpmath.nstr(value, 40)))

    return {key: rounded(value) for part in PARTS for key, value in part(precision).items()}


def test_the_coefficients_are_what_they_are_said_to_be() -> None:
    with mp.workprec(160):
        text = render(DOC, {name: table(name) for name in FORMATS})
    if os.environ.get("BLESS"):
        FILE.write_text(text)
    assert FILE.read_text() == text
