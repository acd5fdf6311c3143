"""Where the numbers of compiler/stablehlo/special/coefficients_generated.py come from: recomputed here and compared.

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

from orchestrion.compiler.stablehlo import special

FILE = Path(special.__file__).with_name("coefficients_generated.py")
DOC = """Constants and polynomial coefficients of the special functions, per float format. Generated: do not edit.

Polynomials give the constant term first. What each is a fit of, on which interval and how exactly, stands in
tests/compiler/test_special_coefficients.py, which recomputes every number.
"""
#: type -> precision, scalar
FORMATS: dict[str, tuple[int, type[Any]]] = {"f32": (24, np.float32), "f64": (53, np.float64)}


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


#: each gives a part of the table for a precision
PARTS: tuple[Callable[[int], dict[str, Any]], ...] = (erf_inv,)


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
