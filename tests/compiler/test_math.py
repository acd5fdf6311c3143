"""The expansions of transcendental and special functions, in units in the last place, over the hardest cases known.

They run over NumPy arrays, primitive by primitive, as a device runs them; tests/e2e does the same on the devices.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accuracy import DTYPES, cases, pairs

from orchestrion.compiler.scalars import math as transcendental
from orchestrion.compiler.scalars import special
from orchestrion.compiler.scalars.numpy_emitter import NumpyEmitter

TRANSCENDENTAL = {function.__name__ for function in transcendental.FUNCTIONS}
SPECIAL_FUNCTIONS = {function.__name__ for function in special.FUNCTIONS}
ALL = TRANSCENDENTAL | SPECIAL_FUNCTIONS


def run(name: str, *operands: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(NumpyEmitter().op(name, *operands))


@pytest.mark.parametrize("dtype", DTYPES)
def test_expansions_stay_within_the_bound(dtype: str) -> None:
    found = {index: case for index, case in cases(dtype).items() if case.function.op.partition(".")[2] in ALL}
    assert {case.function.op.partition(".")[2] for case in found.values()} == ALL - {"remainder"}
    refusals = (case.refusal(run(case.function.op.partition(".")[2], *case.operands)) for case in found.values())
    assert not [refusal for refusal in refusals if refusal]


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
@pytest.mark.parametrize("name", sorted(TRANSCENDENTAL))
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


INF, NAN = np.inf, np.nan
#: function -> operands and result; those of JAX on CPU, but limits where it gives NaN
SPECIAL_RESULTS: dict[str, list[tuple[float, ...]]] = {
    "bessel_i1e": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (-INF, -0.0), (NAN, NAN)],
    "digamma": [(0.0, NAN), (-0.0, NAN), (-1.0, NAN), (-1e30, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "erf_inv": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN), (NAN, NAN)],
    "lgamma": [
        (0.0, INF), (-0.0, INF), (1.0, 0.0), (2.0, 0.0), (-1.0, INF), (-3.0, INF), (-1e30, INF), (INF, INF),
        (-INF, INF), (NAN, NAN),
    ],
    "polygamma": [
        (0.0, -1.0, NAN), (1.0, 0.0, INF), (1.0, -1.0, INF), (1.0, INF, 0.0), (2.0, 0.0, NAN), (3.0, -2.0, INF),
        (1.5, 2.0, NAN), (-1.0, 2.0, NAN), (NAN, 2.0, NAN), (1.0, NAN, NAN), (2.0, INF, -0.0),
    ],
    "zeta": [
        (1.0, 2.0, INF), (0.5, 2.0, NAN), (-1.0, 2.0, NAN), (2.0, 0.0, INF), (2.0, -1.0, INF), (3.0, -1.0, NAN),
        (2.5, -1.5, NAN), (2.0, INF, 0.0), (2.0, -INF, INF), (NAN, 2.0, NAN), (2.0, NAN, NAN),
    ],
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(SPECIAL_FUNCTIONS))
def test_special_values_of_special_functions(name: str, dtype: str) -> None:
    *operands, want = np.array(SPECIAL_RESULTS[name], DTYPES[dtype]).T
    got = run(name, *operands)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))
