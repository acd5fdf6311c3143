"""Scalar ops: each row and type against XLA on difficult values, transcendentals against mpmath, and the
table itself.
"""

import itertools
import math
import warnings
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stablehlo_text import op_name

from orchestrion.schema import dtypes, scalars
from orchestrion.schema.dtypes import COMPUTED, FLOAT, DType
from orchestrion.schema.scalars import SCALARS, ScalarOp

I1 = dtypes.BY_NAME["i1"]
CASES = [(row, dtype) for row in SCALARS for dtype in COMPUTED if dtype.kind in row.kinds]
#: Rows whose float results XLA approximates; all others must agree exactly.
APPROXIMATE = (
    "exponential exponential_minus_one log log_plus_one logistic rsqrt cbrt sine cosine tan tanh power atan2 erf "
    "erfc".split()
)
MPMATH = {
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "log": "log",
    "log_plus_one": "log1p",
    "sqrt": "sqrt",
    "cbrt": "cbrt",
    "sine": "sin",
    "cosine": "cos",
    "tan": "tan",
    "tanh": "tanh",
    "erf": "erf",
    "erfc": "erfc",
}


def hard(dtype: DType) -> np.ndarray:
    """Values at which the rules matter: zeros, ones, extremes, ties, shift amounts around the width. No subnormals."""
    if dtype is I1:
        return np.array([False, True])
    if dtype.kind != FLOAT:
        info = np.iinfo(dtype.numpy)
        raw = [0, 1, 2, 3, 7, -1, -2, -3, dtype.bits - 1, dtype.bits, dtype.bits + 1, info.max, info.max - 1, info.min]
        return np.unique(np.array([value % 2**dtype.bits for value in raw], np.uint64)).astype(dtype.numpy)
    info = np.finfo(dtype.numpy)
    values = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        0.49999997,
        0.49999999999999994,
        1 / 3,
        math.pi,
        100.7,
        255.9,
        8388609.0,
    ]
    values += [2.0**31, 2.0**32, 2.0**52 + 1, 2.0**63, 2.0**64, 1e18, float(info.max), float(info.tiny), math.inf]
    return np.array([*values, *(-value for value in values), math.nan], dtype.numpy)


def operands(row: ScalarOp, dtype: DType) -> list[np.ndarray]:
    """All combinations of difficult values, with a sample of them for a third operand."""
    choices = [hard(I1 if variable == "i1" else dtype) for variable in row.operands]
    combos = list(itertools.product(*choices))
    if len(combos) > 4000:
        combos = combos[:: len(combos) // 3000 | 1]
    return [np.array(column, choice.dtype) for column, choice in zip(zip(*combos, strict=True), choices, strict=True)]


def results(row: ScalarOp, dtype: DType) -> list[DType]:
    types = [I1 if variable == "i1" else dtype for variable in row.operands]
    return [result for result in COMPUTED if row.accepts(types, result)]


def stablehlo(row: ScalarOp, types: list[str], result: str, kind: int) -> str:
    """The row's StableHLO op in generic syntax."""
    names = ", ".join(f"%a{i}" for i in range(len(types)))
    attributes, op = "", row.name
    if row.name.startswith("compare_"):
        *_, total, direction = ("", *row.name.split("_"))
        order = "TOTALORDER" if total == "total" else {1: "UNSIGNED", 2: "SIGNED", 3: "UNSIGNED", 4: "FLOAT"}[kind]
        op = "compare"
        attributes = (
            f" {{comparison_direction = #stablehlo<comparison_direction {direction.upper()}>,"
            f" compare_type = #stablehlo<comparison_type {order}>}}"
        )
    op = "bitcast_convert" if op == "bitcast" else op
    return f'"{op_name(op)}"({names}){attributes} : ({", ".join(types)}) -> {result}'


def evaluate(row: ScalarOp, arrays: list[np.ndarray], result: DType) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return scalars.evaluate(row, arrays, result)


def flushed(array: np.ndarray) -> np.ndarray:
    """The values with subnormals replaced by zeros of the same sign, as XLA does."""
    if array.dtype.kind != "f":
        return array
    return np.where(np.abs(array) < np.finfo(array.dtype).tiny, np.copysign(0, array), array)


def assert_same(got: np.ndarray, want: np.ndarray, arrays: list[np.ndarray], tolerance: float) -> None:
    __tracebackhide__ = True
    assert got.dtype == want.dtype and got.shape == want.shape
    same = got == want
    if got.dtype.kind == "f":
        got, want = flushed(got), flushed(want)
        with np.errstate(all="ignore"):
            close = np.abs(got - want) <= tolerance * np.abs(want)
        same = (got == want) & (np.signbit(got) == np.signbit(want)) | (np.isnan(got) & np.isnan(want)) | close
    wrong = np.flatnonzero(~same)[:5]
    shown = [(*(array[i] for array in arrays), "got", got[i], "want", want[i]) for i in wrong]
    assert same.all(), f"{(~same).sum()} of {same.size} differ: {shown}"


#: StableHLO has no fma: test_fma_is_rounded_once.
XLA_CASES = [(row, dtype) for row, dtype in CASES if row.name != "fma"]


@pytest.mark.sampled
@pytest.mark.parametrize(("row", "dtype"), XLA_CASES, ids=lambda part: getattr(part, "name", None))
def test_row_agrees_with_xla(row, dtype, xla):
    arrays = operands(row, dtype)
    if row.name == "power" and dtype.kind != FLOAT:
        # XLA reads only the low six bits of the exponent; the specification does not say so.
        keep = arrays[1].astype(object) < 64
        arrays = [array[keep.astype(bool)] for array in arrays]
    length = len(arrays[0])
    types = [f"tensor<{length}x{dtypes.BY_NUMPY[array.dtype].name}>" for array in arrays]
    arguments = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(types))
    wanted = results(row, dtype)
    lines = [stablehlo(row, types, f"tensor<{length}x{result.name}>", dtype.kind) for result in wanted]
    body = "\n".join(f"%r{i} = {line}" for i, line in enumerate(lines))
    kinds = ", ".join(f"tensor<{length}x{result.name}>" for result in wanted)
    values = ", ".join(f"%r{i}" for i in range(len(wanted)))
    text = f"func.func @main({arguments}) -> ({kinds}) {{\n{body}\nreturn {values} : {kinds}\n}}"
    tolerance = 0.0
    if dtype.kind == FLOAT and row.name in APPROXIMATE:
        tolerance = 2e-6 if dtype.bits == 32 else 1e-14
    for result, want in zip(wanted, xla(text, *arrays), strict=True):
        assert_same(evaluate(row, arrays, result), want, arrays, tolerance)


@lru_cache
def sweep(bits: int) -> list[float]:
    """Arguments of all magnitudes, dense where functions change quickly."""
    random = np.random.default_rng(7)
    info = np.finfo(f"f{bits // 8}")
    spread = np.concatenate(
        [random.uniform(-30, 30, 120), random.uniform(-1, 1, 60), 10.0 ** random.uniform(-37, 37, 80)]
    )
    near = [1 - 2**-20, 1 + 2**-20, math.pi / 2, math.pi, 1e-8, -1e-8, 1e5, 700.0, -700.0, -745.0, 88.7, -87.3, -103.9]
    edges = [float(info.smallest_subnormal), float(info.tiny), float(info.max)]
    return [float(value) for value in np.array([*spread, *-spread, *near, *edges], info.dtype)]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", sorted(MPMATH) + ["logistic", "rsqrt", "power", "atan2"])
def test_transcendentals_are_within_3_ulp_of_mpmath(name, bits):
    mpmath = pytest.importorskip("mpmath")
    row, dtype = scalars.BY_NAME[name], dtypes.BY_NAME[f"f{bits}"]
    exact = {
        "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
        "rsqrt": lambda x: 1 / mpmath.sqrt(x),
        "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
        "power": lambda x, y: x**y,
        "atan2": mpmath.atan2,
        "erfc": lambda x: mpmath.erfc(max(min(x, mpmath.mpf(100)), mpmath.mpf(-100))),  # no oracle for 1e30
    }.get(name) or getattr(mpmath, MPMATH[name])
    xs = sweep(bits)
    if name in ("log", "log_plus_one", "sqrt", "rsqrt", "power"):
        xs = [x for x in xs if x > (-1 if name == "log_plus_one" else 0)]
    arrays = [np.array(xs, dtype.numpy)]
    if row.arity == 2:
        arrays.append(np.array(xs[::-1] if name == "atan2" else np.linspace(-9, 9, len(xs)), dtype.numpy))
    got = evaluate(row, arrays, dtype)
    with mpmath.workprec(200):
        for arguments, value in zip(zip(*arrays, strict=True), got, strict=True):
            want = exact(*(mpmath.mpf(float(argument)) for argument in arguments))
            if abs(want) > float(np.finfo(dtype.numpy).max):
                assert np.isinf(value), arguments
                continue
            # An ulp of the result in its type, at least the least subnormal.
            ulp = float(np.spacing(np.abs(dtype.numpy.type(float(want)))))
            assert abs(mpmath.mpf(float(value)) - want) <= 3 * mpmath.mpf(ulp), (arguments, value, float(want))


@pytest.mark.parametrize("dtype", [dtypes.BY_NAME["f32"], dtypes.BY_NAME["f64"]], ids=str)
def test_subnormals_are_kept(dtype):
    least = np.array([np.finfo(dtype.numpy).smallest_subnormal])
    for name, want in (("add", 2 * least), ("subtract", 0 * least), ("maximum", least), ("multiply", 0 * least)):
        assert (evaluate(scalars.BY_NAME[name], [least, least], dtype) == want).all()
    assert evaluate(scalars.BY_NAME["compare_ne"], [least, 0 * least], I1).all()
    assert evaluate(scalars.BY_NAME["convert"], [least], I1).all()


@pytest.mark.parametrize("dtype", [dtypes.BY_NAME["f32"], dtypes.BY_NAME["f64"]], ids=str)
def test_fma_is_rounded_once(dtype):
    mpmath = pytest.importorskip("mpmath")
    row, random = scalars.BY_NAME["fma"], np.random.default_rng(3)
    x, y = (random.normal(size=300).astype(dtype.numpy) for _ in range(2))
    scale = np.concatenate([np.zeros(100), np.full(100, 1.0), 2.0 ** random.integers(-60, 60, 100)]).astype(dtype.numpy)
    z = -(x * y) + scale * np.spacing(x)  # cancellation, where rounding twice shows
    hard_values = operands(row, dtype)
    x, y, z = (np.concatenate(pair).astype(dtype.numpy) for pair in zip((x, y, z), hard_values, strict=True))
    got = evaluate(row, [x, y, z], dtype)
    largest = float(np.finfo(dtype.numpy).max)
    with mpmath.workprec(2500), np.errstate(all="ignore"):
        for a, b, c, value in zip(x, y, z, got, strict=True):
            if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
                want = c if np.isfinite(a) and np.isfinite(b) else a * b + c
                assert value == want or (np.isnan(value) and np.isnan(want))
                continue
            exact = mpmath.mpf(float(a)) * float(b) + float(c)
            if np.isinf(value):
                assert abs(exact) > largest
                continue
            for neighbour in (np.nextafter(value, value.dtype.type(side)) for side in (-np.inf, np.inf)):
                assert abs(exact - float(value)) <= abs(exact - float(neighbour)), (a, b, c, value)


@pytest.mark.parametrize(("row", "dtype"), CASES, ids=lambda part: getattr(part, "name", None))
def test_out_may_be_an_operand_and_shapes_may_be_empty_or_rank_0(row, dtype):
    arrays = [array[:12] for array in operands(row, dtype)]
    for result in results(row, dtype):
        want = evaluate(row, arrays, result)
        empty = evaluate(row, [array[:0].reshape(0, 3) for array in arrays], result)
        assert empty.shape == (0, 3) and empty.dtype == result.numpy
        first = evaluate(row, [array[0].reshape(()) for array in arrays], result)
        assert first.shape == () and first.tobytes() == want[:1].tobytes()
        for position, operand in enumerate(arrays):
            if operand.dtype != result.numpy:
                continue
            copies = [array.copy() for array in arrays]
            with np.errstate(all="ignore"):
                got = row.meaning(dtype.kind)(*copies, copies[position])
            assert got is copies[position]
            assert got.tobytes() == want.tobytes() or np.isnan(want).any()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_power_of_integers_is_exact_modulo_2_to_the_n(data):
    dtype = data.draw(st.sampled_from([row for row in COMPUTED if row.kind in (dtypes.SIGNED, dtypes.UNSIGNED)]))
    info = np.iinfo(dtype.numpy)
    base = data.draw(st.integers(info.min, info.max))
    exponent = data.draw(st.integers(0, info.max))
    arrays = [np.array([base], dtype.numpy), np.array([exponent], dtype.numpy)]
    got = evaluate(scalars.BY_NAME["power"], arrays, dtype)
    assert int(got[0]) % 2**dtype.bits == pow(base, exponent, 2**dtype.bits)


def test_rows_are_named_once_and_documented():
    assert len(scalars.BY_NAME) == len(SCALARS)
    assert all(row.doc and row.kinds and row.arity in (1, 2, 3) for row in SCALARS)
    assert all({*row.operands, row.result} <= {"T", "U", "i1"} for row in SCALARS)


def test_types_that_no_row_takes_are_refused_by_name():
    with pytest.raises(TypeError, match=r"add does not take \(f32, f64\) -> f32"):
        scalars.evaluate(scalars.BY_NAME["add"], [np.zeros(1, np.float32), np.zeros(1)], dtypes.BY_NAME["f32"])
    f32, f64, i32, i1 = (dtypes.BY_NAME[name] for name in ("f32", "f64", "i32", "i1"))
    bitcast = scalars.BY_NAME["bitcast"]
    assert bitcast.accepts([f32], i32) and not bitcast.accepts([f32], f64) and not bitcast.accepts([i1], i1)
    assert not scalars.BY_NAME["sine"].accepts([i32], i32) and not scalars.BY_NAME["sine"].accepts([f32, f32], f32)
