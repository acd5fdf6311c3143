"""Transcendental functions as arithmetic: functions of `Number`s, for f32 and f64, the same on every device.

An expansion uses the arithmetic of its own format and integers of the same width, no table in memory and no function
of the device beyond +, -, *, /, sqrt and rounding. Bound: 3 units in the last place against mpmath, anywhere; results
that are subnormal may flush to zero where the device does that. The last object is the index.
"""

from .algebraic import atan2, cbrt, remainder, rsqrt
from .error_function import erf, erfc
from .exponential import exponential, exponential_minus_one, logistic, tanh
from .logarithm import log, log_plus_one, power
from .trigonometric import cosine, sine, tan

#: the functions, each with the name of its scalar op
FUNCTIONS = (
    exponential, exponential_minus_one, log, log_plus_one, logistic, sine, cosine, tan, tanh, erf, erfc, power, atan2,
    cbrt, rsqrt, remainder,
)  # fmt: skip
