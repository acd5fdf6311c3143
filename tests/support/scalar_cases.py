"""Every way that a scalar op can be applied, and values that are hard for it: for tests of what kernels compute.

On `sys.path` of the tests (pyproject.toml, `pythonpath`).
"""

from collections.abc import Iterator

import numpy as np

from orchestrion.schema import scalars
from orchestrion.schema.dtypes import BOOL, BY_NAME, COMPUTED, FLOAT, DType
from orchestrion.schema.scalars import ScalarOp

#: of the scalar table, but made by no StableHLO op: no kernel needs it yet
UNREACHED = {"fma"}
#: on floats, of bounded error instead of one right answer
BOUNDED = {
    "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "cbrt", "sine", "cosine",
    "tan", "tanh", "atan2", "power", "erf", "erfc",
}  # fmt: skip


def applications(subject: DType) -> Iterator[tuple[ScalarOp, tuple[DType, ...], DType]]:
    """(row, operand types, result type) for each op of StableHLO that takes the type."""
    for row in scalars.SCALARS:
        operands = tuple(subject if variable == "T" else BY_NAME["i1"] for variable in row.operands)
        results = COMPUTED if row.result == "U" else (subject if row.result == "T" else BY_NAME["i1"],)
        for result in results:
            if row.name not in UNREACHED and row.accepts(operands, result):
                yield row, operands, result


def is_exact(row: ScalarOp, subject: DType) -> bool:
    return subject.kind != FLOAT or row.name not in BOUNDED


def samples(dtype: DType) -> np.ndarray:
    """The hard values of a type and some random ones. No subnormals: a device may flush them."""
    rng = np.random.default_rng(dtype.code)
    if dtype.kind == BOOL:
        return np.array([False, True])
    if dtype.kind == FLOAT:
        info = np.finfo(dtype.numpy)
        values = [0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 127.5, 128.0, 255.5, 2.0**31, 2.0**32, 2.0**63, 2.0**64]
        values += [float(info.max), float(info.tiny), np.inf, np.nan, 0.49999997, 8388607.5, 4.0e9]
        both = np.array(values + [-value for value in values], dtype.numpy)
        return np.concatenate([both, (rng.standard_normal(8) * 10).astype(dtype.numpy)])
    info = np.iinfo(dtype.numpy)
    edge = [0, 1, 2, 3, 7, 8, 15, 31, 32, 63, 64, 65, 100, -1, -2, -3, -8, -33, info.max, info.max - 1, info.min]
    random = rng.integers(info.min, info.max, 8, dtype.numpy, endpoint=True)
    return np.concatenate([np.array([v for v in edge if info.min <= v <= info.max], dtype.numpy), random])


def grid(types: tuple[DType, ...]) -> list[np.ndarray]:
    """Every combination of samples, thinned for three operands."""
    spaces = [samples(dtype) for dtype in types]
    if len(spaces) == 3:
        spaces = [space[:: max(1, len(space) // 13)] for space in spaces]
    return [np.ascontiguousarray(part.reshape(-1)) for part in np.meshgrid(*spaces, indexing="ij")]


def differing(got: np.ndarray, want: np.ndarray, flushes: bool) -> np.ndarray:
    """Where they are not equal bit for bit; any NaN is as good as another; `flushes` allows zero for a subnormal."""
    if got.dtype.kind != "f":
        return np.flatnonzero(got != want)
    view = f"u{got.itemsize}"
    same = (got.view(view) == want.view(view)) | (np.isnan(got) & np.isnan(want))
    if flushes:
        same |= (np.abs(want) < np.finfo(want.dtype).tiny) & (got == 0)
    return np.flatnonzero(~same)
