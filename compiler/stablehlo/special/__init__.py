"""Special functions of CHLO as arithmetic: written once over an emitter, for f32 and f64, the same on every device.

A function takes and gives `Number`s. In the compiler these become elementwise StableHLO ops before anything else looks
at the program (`expand_chlo.py`), so that fusion, every target and the reference device know no special function; in
the tests they are NumPy arrays. Both sides of a choice are computed, as an elementwise program does.

Polynomials are fits of nearly constant functions, in t = (x - K) / (x + K) where the range is wide. What each is a fit
of stands in tests/compiler/test_special_coefficients.py. Bounds: docs/numerics.md. The last object is the index.
"""

from collections.abc import Callable
from typing import Final

from orchestrion.compiler.kernel.math.number import Number

from .error_function import erf_inv

#: op of CHLO without its dialect -> number of operands, function
FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Number]]]] = {
    "erf_inv": (1, erf_inv),
}
