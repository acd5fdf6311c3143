"""Where the numbers of compiler/scalars/math/coefficients_generated.py come from: recomputed here and compared.

`BLESS=1 pytest tests/compiler/test_math_coefficients.py` writes the file. Polynomials are Chebyshev fits (close to
minimax) with the fewest terms whose error, weighted as the expansion uses it, stays 2^-6 below the last place.
"""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from coefficients import render
from mpmath import mp, mpf

from orchestrion.compiler.scalars import math

FILE = Path(math.__file__).with_name("coefficients_generated.py")
DOC = """Constants and polynomial coefficients of the expansions, per float format. Generated: do not edit.

Polynomials give the constant term first. What each is a fit of, on which interval and how exactly, stands in
tests/compiler/test_math_coefficients.py, which recomputes every number.
"""
LARGEST_F = mpmath.sqrt(2) - 1
LARGEST_Z = (LARGEST_F / (2 + LARGEST_F)) ** 2

# precision -> type, fraction bits, bias, word width
FORMATS = {"f32": (24, 127, 32, np.float32, np.uint32), "f64": (53, 1023, 64, np.float64, np.uint64)}


def series(terms: Callable[[int], Any]) -> Callable[[Any], Any]:
    """The first 61 terms of a power series, after which it stands still: no cancellation at zero."""

    @functools.cache
    def factors(precision: int) -> list[Any]:
        assert precision == mp.prec
        return [mpf(terms(n)) for n in range(60, -1, -1)]

    return lambda x: functools.reduce(lambda total, factor: total * x + factor, factors(mp.prec), mpf(0))


# name -> (function of r or z, interval, what its error is multiplied with before it meets a result of size one)
FITS: dict[str, tuple[Callable[[Any], Any], tuple[Any, Any], Any]] = {
    "exp": (series(lambda n: 1 / mpmath.factorial(n + 2)), (-mpmath.log(2) / 2, mpmath.log(2) / 2), mpf("0.35")),
    "exp2": (
        series(lambda n: mpmath.log(2) ** (n + 1) / mpmath.factorial(n + 1)),
        (mpf("-0.5"), mpf("0.5")),
        mpf("0.15"),
    ),
    "log": (series(lambda n: mpf(1) / (2 * n + 3)), (0, LARGEST_Z), LARGEST_Z),
    "log_tail": (series(lambda n: mpf(1) / (2 * n + 5)), (0, LARGEST_Z), LARGEST_Z**2 * 2**10),
    "sine": (series(lambda n: mpf(-1) ** (n + 1) / mpmath.factorial(2 * n + 3)), (0, mpf("0.6169")), mpf("0.6169")),
    "cosine": (series(lambda n: mpf(-1) ** n / mpmath.factorial(2 * n + 4)), (0, mpf("0.6169")), mpf("0.55")),
    "arctangent": (series(lambda n: mpf(-1) ** (n + 1) / (2 * n + 3)), (0, mpf("0.1716")), mpf("0.1716")),
    "erf": (
        series(lambda n: 2 / mpmath.sqrt(mpmath.pi) * mpf(-1) ** n / (mpmath.factorial(n) * (2 * n + 1)) - (n == 0)),
        (0, mpf("0.5626")),
        mpf(1),
    ),
}
#: precision -> the middle of the tail of erfc, and where the tail is below every number of the format
TAILS = {24: (2.75, 10.5), 53: (4.5, 27.5)}
#: points that a fit with weights goes past
POINTS = 120


def tail(precision: int) -> tuple[Callable[[Any], Any], tuple[Any, Any]]:
    """(1 + 2 a) e^(a^2) erfc(a), nearly constant, as a function of t = (a - K) / (a + K), from a = 3/4 on."""
    center, most = map(mpf, TAILS[precision])

    def function(t: Any) -> Any:
        a = center * (1 + t) / (1 - t)
        return (1 + 2 * a) * mpmath.exp(a * a) * mpmath.erfc(a)

    return function, ((mpf("0.75") - center) / (mpf("0.75") + center), (most - center) / (most + center))


def far_erf(precision: int, rounded: Callable[[Any], float]) -> dict[str, Any]:
    """-log2(erfc a) / a from a = 3/4 to where erf is one. An error is multiplied with a erfc a / erf a."""
    with mp.workprec(300):
        most = mpmath.findroot(lambda a: mpmath.log(mpmath.erfc(a) * mpf(2) ** (precision + 2)), mpmath.sqrt(precision))
        middle, half = (mpf("0.75") + most) / 2, (most - mpf("0.75")) / 2
        points = [middle + half * mpmath.cos(mpmath.pi * (2 * j + 1) / (2 * POINTS)) for j in range(POINTS)]
        wanted = [-mpmath.log(mpmath.erfc(a), 2) / a for a in points]
        weights = [a * mpmath.erfc(a) / mpmath.erf(a) for a in points]
        for terms in range(6, 40):
            columns = mpmath.matrix([[w * a**j for j in range(terms)] for a, w in zip(points, weights, strict=True)])
            found = mpmath.lu_solve(columns, mpmath.matrix([w * y for w, y in zip(weights, wanted, strict=True)]))
            errors = [
                abs(mpmath.polyval(list(found)[::-1], a) - y) * w
                for a, y, w in zip(points, wanted, weights, strict=True)
            ]
            if max(errors) < mpf(2) ** -(precision + 5):
                return {"erf_most": rounded(most), "erf_far": tuple(map(rounded, found))}
    raise AssertionError(f"no fit of erf reaches {precision} bits")


def fit(name: str, precision: int, rounded: Callable[[Any], float]) -> tuple[float, ...]:
    function, interval, weight = FITS[name]
    return fit_of(name, function, interval, weight, precision, rounded)


def tail_fit(precision: int, rounded: Callable[[Any], float]) -> tuple[float, ...]:
    """With fewer digits: what is no short series is slow."""
    with mp.workprec(200):
        return fit_of("erfc", *tail(precision), mpf(1), precision, rounded)


def fit_of(
    name: str,
    function: Callable[[Any], Any],
    interval: tuple[Any, Any],
    weight: Any,
    precision: int,
    rounded: Callable[[Any], float],
) -> tuple[float, ...]:
    for terms in range(2, 40):
        coefficients, error = mpmath.chebyfit(function, list(interval), terms, error=True)
        if error * weight < mpf(2) ** -(precision + 6):
            return tuple(rounded(c) for c in reversed(coefficients))
    raise AssertionError(f"no fit of {name} reaches {precision} bits")


def table(name: str) -> dict[str, Any]:
    precision, bias, width, scalar, word = FORMATS[name]
    fraction = precision - 1

    def rounded(x: Any) -> float:
        return float(scalar(mpmath.nstr(x, 40)))

    def truncated(x: Any, bits: int) -> float:
        exponent = int(mpmath.floor(mpmath.log(x, 2))) + 1
        return float(mpmath.floor(mpmath.ldexp(x, bits - exponent)) * mpf(2) ** (exponent - bits))

    def bits(x: float) -> int:
        return int(np.array(x, scalar).view(word))

    ln2_high = truncated(mpmath.log(2), precision - (9 if precision == 24 else 12))
    half_pi = mpmath.pi / 2
    most = (bias + 1) * mpmath.log(2)
    words = ((bias - fraction + width - 2) >> width.bit_length() - 1) + 4
    digits = int(mpmath.floor(mpmath.ldexp(2 / mpmath.pi, (words - 1) * width)))
    sqrt_half = rounded(mpmath.sqrt(mpf(1) / 2))
    kept = fraction - (precision // 2 - 1)
    return {
        "log2_e": rounded(1 / mpmath.log(2)),
        "ln2_high": ln2_high,
        "ln2_low": rounded(mpmath.log(2) - mpf(ln2_high)),
        "exp_most": float(mpmath.ceil(most)),
        "exp_least": -float(mpmath.ceil(most + precision * mpmath.log(2))),
        "expm1_least": -float(mpmath.ceil((precision + 4) * mpmath.log(2))),
        "tanh_most": float(mpmath.ceil((precision + 2) * mpmath.log(2) / 2)),
        "tiny": 2.0 ** -(precision + 2),
        "sqrt_half_bits": bits(sqrt_half),
        "sqrt_half_carry": bits(1.0) - bits(sqrt_half),
        "third_high": rounded(mpf(1) / 3),
        "third_low": rounded(mpf(1) / 3 - mpf(rounded(mpf(1) / 3))),
        "power_most": 2.0 ** (precision + 17),
        "pi_high": rounded(mpmath.pi),
        "pi_low": rounded(mpmath.pi - mpf(rounded(mpmath.pi))),
        "half_pi_high": rounded(half_pi),
        "half_pi_low": rounded(half_pi - mpf(rounded(half_pi))),
        "quarter_pi": rounded(half_pi / 2),
        "quarter_pi_low": rounded(half_pi / 2 - mpf(rounded(half_pi / 2))),
        "two_over_pi": tuple(digits >> (words - 1 - i) * width & (1 << width) - 1 for i in range(words)),
        "tan_eighth_pi": rounded(mpmath.tan(mpmath.pi / 8)),
        "atan2_huge": 2.0 ** (bias - 4),
        "atan2_shrink": 2.0**-8,
        "atan2_tiny": 2.0 ** (2 * precision - bias),
        "atan2_grow": 2.0**precision,
        "cbrt_middle": 2.0 ** (bias // 2),
        "cbrt_factor": 2.0 ** (bias // 6),
        "cbrt_guess": int((mpf(2) / 3 * bias - mpf("0.0331")) * 2**fraction),
        "cbrt_half_bit": 1 << kept - 1,
        "cbrt_mask": (1 << width) - (1 << kept),
        "erfc_center": TAILS[precision][0],
        "erfc_most": TAILS[precision][1],
        **{name: fit(name, precision, rounded) for name in FITS},
        "erfc": tail_fit(precision, rounded),
        **far_erf(precision, rounded),
    }


def test_the_coefficients_are_what_they_are_said_to_be() -> None:
    with mp.workprec(1400):
        text = render(DOC, {name: table(name) for name in FORMATS})
    if os.environ.get("BLESS"):
        FILE.write_text(text)
    assert FILE.read_text() == text
