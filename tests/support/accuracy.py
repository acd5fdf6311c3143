"""How far a float function is from the truth: mpmath as the oracle, hard cases, distances in units in the last place.

On `sys.path` of the tests (pyproject.toml, `pythonpath`), since several folders use it.
"""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

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
    "erf": mpmath.erf,
    "erfc": lambda x: mpmath.erfc(max(min(x, mpmath.mpf(100)), mpmath.mpf(-100))),
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


def ulps(got: np.ndarray, want: list[Any], dtype: Any, sizes: list[Any] | None = None) -> np.ndarray:
    """Distances in units in the last place of the exact value; overflow and flushed subnormals count as exact.

    `sizes`: the last place is that of the larger of the exact value and this, where a function is a difference.
    """
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
            size = abs(w) if sizes is None else max(abs(w), sizes[i])
            exponent = max(int(mpmath.floor(mpmath.log(size, 2))) if size else info.minexp, info.minexp)
            errors[i] = float(abs(mpmath.mpf(g) - w) / mpmath.mpf(2) ** (exponent - info.nmant))
            if abs(w) < float(info.tiny) * 1.000001 and abs(g) <= float(info.tiny):
                errors[i] = min(errors[i], 1.0) if errors[i] <= 4 or g == 0 else errors[i]
    return errors


def expected(name: str, *operands: np.ndarray) -> list[Any]:
    # reducing 2^1024 modulo pi takes 1024 bits more than the rest
    with mpmath.workprec(1300 if name in {"sine", "cosine", "tan"} else 200):
        return [+ORACLES[name](*map(mpmath.mpf, row)) for row in zip(*(o.tolist() for o in operands), strict=True)]


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
