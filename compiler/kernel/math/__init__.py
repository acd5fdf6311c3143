"""Transcendental functions as arithmetic: expansions over an emitter, for f32 and f64, the same on every device.

An expansion uses the arithmetic of its own format and integers of the same width, no table in memory and no function
of the device beyond +, -, *, /, sqrt and rounding. Bound: 3 units in the last place against mpmath, anywhere; results
that are subnormal may flush to zero where the device does that. The last object is the index.
"""

from collections.abc import Callable
from typing import Any

from .algebraic import expand_atan2, expand_cbrt, expand_remainder, expand_rsqrt
from .error_function import expand_erf, expand_erfc
from .exponential import expand_exponential, expand_exponential_minus_one, expand_logistic, expand_tanh
from .logarithm import expand_log, expand_log_plus_one, expand_power
from .trigonometric import expand_cosine, expand_sine, expand_tan

#: scalar op of floats -> its expansion: emitter and operands in, value out
EXPANSIONS: dict[str, Callable[..., Any]] = {
    "exponential": expand_exponential,
    "exponential_minus_one": expand_exponential_minus_one,
    "log": expand_log,
    "log_plus_one": expand_log_plus_one,
    "logistic": expand_logistic,
    "sine": expand_sine,
    "cosine": expand_cosine,
    "tan": expand_tan,
    "tanh": expand_tanh,
    "erf": expand_erf,
    "erfc": expand_erfc,
    "power": expand_power,
    "atan2": expand_atan2,
    "cbrt": expand_cbrt,
    "rsqrt": expand_rsqrt,
    "remainder": expand_remainder,
}
