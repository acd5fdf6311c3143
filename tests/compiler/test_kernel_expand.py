"""Every scalar op, expanded into primitives and evaluated in NumPy, means what the scalar table says."""

from itertools import product

import numpy as np
import pytest

from orchestrion.compiler.kernel.emitter import UnsupportedScalar
from orchestrion.compiler.kernel.expand import EXPANSIONS
from orchestrion.compiler.kernel.numpy_emitter import NumpyEmitter
from orchestrion.compiler.kernel.primitives import BY_OP_NAME, KINDS
from orchestrion.schema import scalars
from orchestrion.schema.dtypes import BOOL, BY_NAME, DTYPES, FLOAT, DType

#: computed by polynomials of bounded error (`compiler/kernel/math`), tested there
MATH = {
    "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "cbrt", "sine", "cosine",
    "tan", "tanh", "atan2",
}  # fmt: skip
MATH_OF_FLOATS = {"power", "remainder"}
#: of the table, but made by no StableHLO op: no kernel needs it yet
UNREACHED = {"fma"}


def signatures() -> list[tuple[str, DType, DType]]:
    """(op, T, result) for each way that each row can be applied."""
    found = []
    for row, subject in product(scalars.SCALARS, DTYPES):
        results = DTYPES if row.result == "U" else (subject if row.result == "T" else BY_NAME["i1"],)
        for result in results:
            types = [subject if variable == "T" else BY_NAME["i1"] for variable in row.operands]
            if row.accepts(types, result):
                found.append((row.name, subject, result))
    return found


def is_math(name: str, subject: DType) -> bool:
    return name in MATH or (name in MATH_OF_FLOATS and subject.kind == FLOAT)


def samples(dtype: DType) -> np.ndarray:
    """The hard values of a type and some random ones."""
    rng = np.random.default_rng(dtype.code)
    if dtype.kind == BOOL:
        return np.array([False, True])
    if dtype.kind == FLOAT:
        info = np.finfo(dtype.numpy)
        values = [0.0, -0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 3.0, 127.0, 127.5, 128.0, 255.5, 32767.5, 2.0**31, 2.0**32]
        values += [2.0**63, 2.0**64, float(info.max), float(info.tiny), np.inf, np.nan, 0.49999997, 8388607.5, 4.0e9]
        both = np.array(values + [-value for value in values], dtype.numpy)
        return np.concatenate([both, (rng.standard_normal(8) * 10).astype(dtype.numpy)])
    info = np.iinfo(dtype.numpy)
    edge = [
        0,
        1,
        2,
        3,
        7,
        8,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        65,
        100,
        -1,
        -2,
        -3,
        -8,
        -33,
        info.max,
        info.max - 1,
        info.min,
    ]
    edge = [value for value in edge if info.min <= value <= info.max]
    return np.concatenate(
        [np.array(edge, dtype.numpy), rng.integers(info.min, info.max, 8, dtype.numpy, endpoint=True)]
    )


def same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Equal bit for bit, any NaN being as good as another."""
    if got.dtype.kind != "f":
        return got == want
    view = f"u{got.itemsize}"
    return (got.view(view) == want.view(view)) | (np.isnan(got) & np.isnan(want))


EXACT = [case for case in signatures() if not is_math(case[0], case[1]) and case[0] not in UNREACHED]


@pytest.mark.parametrize(("name", "subject", "result"), EXACT, ids=lambda part: str(part))
def test_expansion_means_what_the_scalar_table_says(name: str, subject: DType, result: DType) -> None:
    row = scalars.BY_NAME[name]
    spaces = [samples(subject if variable == "T" else BY_NAME["i1"]) for variable in row.operands]
    if len(spaces) == 3:
        spaces = [space[:: max(1, len(space) // 17)] for space in spaces]
    operands = [np.ascontiguousarray(grid.reshape(-1)) for grid in np.meshgrid(*spaces, indexing="ij")]
    got = NumpyEmitter().op(name, *operands, to=result.name)
    want = scalars.evaluate(row, operands, result)
    assert got.dtype == want.dtype
    wrong = np.flatnonzero(~same(got, want))
    detail = [(tuple(operand[i] for operand in operands), got[i], want[i]) for i in wrong[:5]]
    assert not len(wrong), f"{len(wrong)} differ: (operands, got, want) {detail}"


def test_every_scalar_op_is_a_primitive_or_expanded_or_math() -> None:
    missing = set()
    for name, subject, result in signatures():
        row = BY_OP_NAME.get(name)
        types = [subject if variable == "T" else BY_NAME["i1"] for variable in scalars.BY_NAME[name].operands]
        lowered = (row is not None and row.accepts(types, result)) or (name, KINDS[subject.kind]) in EXPANSIONS
        if not lowered and not is_math(name, subject):
            missing.add(name)
    assert missing == UNREACHED


def test_no_expansion_without_a_row() -> None:
    reachable = {(name, KINDS[subject.kind]) for name, subject, _ in signatures()}
    assert set(EXPANSIONS) <= reachable


def test_a_constant_shift_costs_one_primitive() -> None:
    e = NumpyEmitter()
    x = np.arange(4, dtype=np.int32)
    e.op("unchecked_shift_left", x, e.const(3, "i32"))
    assert e.counts == {"unchecked_shift_left": 1}


@pytest.mark.parametrize(
    ("name", "operands", "message"),
    [
        ("gamma", ("f32",), "gamma is not a scalar op"),
        ("popcnt", ("f32",), r"popcnt does not take \(f32\) -> f32"),
        ("fma", ("f32", "f32", "f32"), r"no kernel computes fma of \(f32, f32, f32\) -> f32"),
        ("unchecked_divide", ("f32", "f32"), r"unchecked_divide does not take \(f32, f32\) -> f32"),
        ("convert", ("f32",), "convert needs the name of a result type"),
    ],
)
def test_what_has_no_lowering_is_refused_by_name(name: str, operands: tuple[str, ...], message: str) -> None:
    values = [np.zeros(1, BY_NAME[dtype].numpy) for dtype in operands]
    with pytest.raises(UnsupportedScalar, match=message):
        NumpyEmitter().op(name, *values)
