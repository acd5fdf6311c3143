"""The expansions of transcendental functions against mpmath, in units in the last place, over hard cases.

They run over NumPy arrays, primitive by primitive, as a device runs them; tests/e2e does the same on the devices.
"""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from accuracy import BOUND, DTYPES, ORACLES, POSITIVE, expected, hard_cases, near_powers, pairs, ulps

from orchestrion.compiler.kernel.math import EXPANSIONS
from orchestrion.compiler.kernel.numpy_emitter import NumpyEmitter


def run(name: str, *operands: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(EXPANSIONS[name](NumpyEmitter(), *operands))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(set(ORACLES) - {"power", "atan2"}))
def test_unary_functions_stay_within_the_bound(name: str, dtype: str) -> None:
    x = hard_cases(DTYPES[dtype])[:: 3 if dtype == "f32" else 5]
    if name in POSITIVE:
        x = x[x > 0]
    if name == "log_plus_one":
        x = x[x > -1]
    errors = ulps(run(name, x), expected(name, x), DTYPES[dtype])
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUND, f"{name}({float(x[worst]).hex()}): {errors[worst]:.2f} ulp"


@pytest.mark.parametrize("dtype", DTYPES)
def test_power_stays_within_the_bound(dtype: str) -> None:
    x, y = near_powers(DTYPES[dtype])
    with mpmath.workprec(200):
        want = [mpmath.power(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    errors = ulps(run("power", x, y), want, DTYPES[dtype])
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUND, f"{float(x[worst]).hex()} ^ {float(y[worst]).hex()}: {errors[worst]:.2f} ulp"


@pytest.mark.parametrize("dtype", DTYPES)
def test_atan2_stays_within_the_bound(dtype: str) -> None:
    y, x = pairs(DTYPES[dtype])
    with mpmath.workprec(200):
        want = [mpmath.atan2(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(y.tolist(), x.tolist(), strict=True)]
    errors = ulps(run("atan2", y, x), want, DTYPES[dtype])
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUND, f"atan2({float(y[worst]).hex()}, {float(x[worst]).hex()}): {errors[worst]:.2f} ulp"


@pytest.mark.parametrize("dtype", DTYPES)
def test_remainder_is_exact(dtype: str) -> None:
    x, y = pairs(DTYPES[dtype])
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, np.finfo(DTYPES[dtype]).max], DTYPES[dtype])
    x, y = np.concatenate([x, np.repeat(special, len(special))]), np.concatenate([y, np.tile(special, len(special))])
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    got = run("remainder", x, y)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, np.inf, -np.inf, np.nan, 1e300, -1e300]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(EXPANSIONS))
def test_special_values_are_those_of_c(name: str, dtype: str) -> None:
    """NumPy in double precision (the C library) is the oracle for signs of zero, infinities and NaN."""
    functions: dict[str, Callable[..., Any]] = {
        "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p,
        "logistic": lambda x: 1 / (1 + np.exp(-x)), "sine": np.sin, "cosine": np.cos, "tan": np.tan, "tanh": np.tanh,
        "power": np.power, "atan2": np.arctan2, "cbrt": np.cbrt, "rsqrt": lambda x: 1 / np.sqrt(x),
        "remainder": np.fmod, "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc),
    }  # fmt: skip
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(DTYPES[dtype])
        operands = [values]
        if name in {"power", "atan2", "remainder"}:
            operands = [np.repeat(values, len(values)), np.tile(values, len(values))]
        want = functions[name](*(operand.astype(np.float64) for operand in operands)).astype(DTYPES[dtype])
    got = run(name, *operands)
    tiny = np.finfo(DTYPES[dtype]).tiny
    got, want = (np.where(np.abs(x) < tiny, np.copysign(0, x), x) for x in (got, want))
    np.testing.assert_allclose(got, want, rtol=4 * np.finfo(DTYPES[dtype]).eps, atol=0)
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))
