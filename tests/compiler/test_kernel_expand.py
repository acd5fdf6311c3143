"""Every scalar op, expanded into primitives and evaluated in NumPy, means what the scalar table says."""

import numpy as np
import pytest
from scalar_cases import applications, differing, grid, is_exact

from orchestrion.compiler.scalars import narrow_floats, special
from orchestrion.compiler.scalars.emitter import UnsupportedScalar
from orchestrion.compiler.scalars.lowering import EXPANSIONS, refusal
from orchestrion.compiler.scalars.numpy_emitter import NumpyEmitter
from orchestrion.compiler.scalars.primitives import KINDS
from orchestrion.schema import scalars
from orchestrion.schema.dtypes import BY_NAME, COMPUTED, DType
from orchestrion.schema.scalars import ScalarOp

ALL = [(row, operands, result) for subject in COMPUTED for row, operands, result in applications(subject)]
EXACT = [case for case in ALL if is_exact(case[0], case[1][-1])]


@pytest.mark.parametrize(("row", "operands", "result"), EXACT, ids=lambda part: getattr(part, "name", None))
def test_expansion_means_what_the_scalar_table_says(row: ScalarOp, operands: tuple[DType, ...], result: DType) -> None:
    arrays = grid(operands)
    got = NumpyEmitter().op(row.name, *arrays, to=result.name)
    want = scalars.evaluate(row, arrays, result)
    assert got.dtype == want.dtype
    wrong = differing(got, want, flushes=False)
    detail = [(tuple(array[i] for array in arrays), got[i], want[i]) for i in wrong[:5]]
    assert not len(wrong), f"{len(wrong)} differ: (operands, got, want) {detail}"


def test_every_scalar_op_of_stablehlo_is_a_primitive_or_expanded() -> None:
    assert not [
        refusal(row.name, operands, result) for row, operands, result in ALL if refusal(row.name, operands, result)
    ]


def test_no_expansion_without_a_row() -> None:
    known = {(row.name, KINDS[operands[-1].kind]) for row, operands, _ in ALL}
    own = {(name, KINDS[kind]) for name, row in (special.ROWS | narrow_floats.ROWS).items() for kind in row.kinds}
    assert set(EXPANSIONS) <= known | own


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
