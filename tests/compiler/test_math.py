"""The expansions of transcendental functions against mpmath, in units in the last place, over hard cases.

They run over NumPy arrays, primitive by primitive, as a device runs them; tests/e2e does the same on the devices.
"""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from orchestrion.compiler.kernel.math import EXPANSIONS
from orchestrion.compiler.kernel.numpy_emitter import NumpyEmitter

DTYPES = {"f32": np.float32, "f64": np.float64}
BOUND = 4.0

ORACLES: dict[str, Callable[..., Any]] = {
    "exponential": mpmath.exp,
    "exponential_minus_one": mpmath.expm1,
    "log": mpmath.log,
    "log_plus_one": mpmath.log1p,
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
    "sine": mpmath.sin,
    "cosine": mpmath.cos,
    "tan": mpmath.tan,
    "tanh": mpmath.tanh,
    "power": mpmath.power,
    "atan2": mpmath.atan2,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
}
POSITIVE = {"log", "rsqrt"}


def hard_cases(dtype: Any) -> np.ndarray:
    """Powers of two and their neighbours, multiples of pi/2 and of ln 2 and theirs, all exponents, values near one."""
    info = np.finfo(dtype)
    random = np.random.default_rng(1)
    powers = np.ldexp(dtype(1), np.arange(info.minexp, info.maxexp)).astype(dtype)
    turns = (np.arange(1, 200) * (math.pi / 2)).astype(dtype)
    logs = (np.arange(1, 150) * math.log(2)).astype(dtype)
    near_one = dtype(1) + random.normal(size=200).astype(dtype) * np.ldexp(dtype(1), -random.integers(0, 50, 200))
    mixed = np.ldexp(random.uniform(1, 2, 600), random.integers(info.minexp, info.maxexp - 1, 600)).astype(dtype)
    moderate = random.uniform(0, 100, 600).astype(dtype)
    small = random.uniform(0, 2, 600).astype(dtype)
    base = np.concatenate([powers, turns, logs, near_one, mixed, moderate, small]).astype(dtype)
    neighbours = [base, np.nextafter(base, dtype(np.inf)), np.nextafter(base, dtype(0))]
    positive = np.concatenate(neighbours)
    positive = positive[np.isfinite(positive) & (positive >= info.tiny)]
    return np.concatenate([positive, -positive])


def ulps(got: np.ndarray, want: list[Any], dtype: Any) -> np.ndarray:
    """Distances in units in the last place of the exact value; overflow and flushed subnormals count as exact."""
    info = np.finfo(dtype)
    limit = mpmath.mpf(float(info.max)) * (1 + mpmath.mpf(2) ** -(info.nmant + 2))
    errors = np.zeros(len(got))
    for i, (g, w) in enumerate(zip(got.tolist(), want, strict=True)):
        if mpmath.isnan(w) or math.isnan(g):
            errors[i] = 0 if mpmath.isnan(w) and math.isnan(g) else np.inf
        elif abs(w) > limit or math.isinf(g):
            close = abs(w) > limit * (1 - mpmath.mpf(2) ** -(info.nmant - 1))
            errors[i] = (
                0
                if close and (math.isinf(g) or abs(g) >= float(info.max) / 1.000001) and (g > 0) == (w > 0)
                else np.inf
            )
        else:
            exponent = max(int(mpmath.floor(mpmath.log(abs(w), 2))) if w else info.minexp, info.minexp)
            errors[i] = float(abs(mpmath.mpf(g) - w) / mpmath.mpf(2) ** (exponent - info.nmant))
            if abs(w) < float(info.tiny) * 1.000001 and abs(g) <= float(info.tiny):
                errors[i] = min(errors[i], 1.0) if errors[i] <= 4 or g == 0 else errors[i]
    return errors


def run(name: str, *operands: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(EXPANSIONS[name](NumpyEmitter(), *operands))


def expected(name: str, *operands: np.ndarray) -> list[Any]:
    # reducing 2^1024 modulo pi takes 1024 bits more than the rest
    with mpmath.workprec(1300 if name in {"sine", "cosine", "tan"} else 200):
        return [+ORACLES[name](*map(mpmath.mpf, row)) for row in zip(*(o.tolist() for o in operands), strict=True)]


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


def pairs(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    x = hard_cases(dtype)
    return random.permutation(x)[:3000], random.permutation(x)[:3000]


def near_powers(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Bases of every size with exponents that keep the power finite, where errors of the logarithm show most."""
    random = np.random.default_rng(3)
    x = np.abs(random.permutation(hard_cases(dtype))[:3000])
    log = np.log2(x.astype(np.float64))
    log[log == 0] = 1
    span = np.finfo(dtype).maxexp - 1
    return x, np.clip(random.uniform(-span, span, len(x)) / log, -1e30, 1e30).astype(dtype)


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
        "remainder": np.fmod,
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
