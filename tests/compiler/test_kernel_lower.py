"""From an entry's tensors to a kernel: tables that cover the dialect, schedules, and everything refused at once."""

from collections import Counter
from typing import Any

import pytest
from stablehlo_text import ints, main, reducer, reduction, tensor

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.core import UnregisteredOp
from orchestrion.compiler.kernel.elemental import ELEMENT_RULES
from orchestrion.compiler.kernel.fold import FOLDS, HEROES
from orchestrion.compiler.kernel.fold_limits import FEW_FOLDS
from orchestrion.compiler.kernel.loops import BLOCK, elements_per_turn
from orchestrion.compiler.kernel.machine import LLVMPIPE_TURNS, Machine
from orchestrion.compiler.kernel.rows import MANY_ROWS
from orchestrion.compiler.kernel.schedule import LONG_FOLD, SCHEDULES
from orchestrion.compiler.stablehlo.ops import control_flow, dynamic
from orchestrion.compiler.stablehlo.ops.chlo import DIALECT as CHLO
from orchestrion.compiler.stablehlo.ops.dialect import DIALECT

T = tensor([8], "f32")


def test_each_stablehlo_op_has_a_rule() -> None:
    other = {"stablehlo.return", "stablehlo.custom_call", *control_flow.OPS}
    names = ("convolution", "fft", "reduce_window", "scatter", "select_and_scatter", "sort")
    lowered = {f"stablehlo.{name}" for name in names} | set(dynamic.OPS)
    flow = {"flow.set_encoding", "flow.unset_encoding", "flow.windows", "flow.size"}
    assert set(ELEMENT_RULES) == set(DIALECT.ops) - other - lowered | set(CHLO.ops) | flow
    assert set(HEROES) == set(FOLDS)


def test_everything_that_cannot_be_lowered_is_said_at_once(lowered: Any) -> None:
    wide = "dense<[" + ", ".join(f"{value}.0" for value in range(17)) + "]> : tensor<17xf32>"
    lines = [
        f'%c = "stablehlo.constant"() <{{value = {wide}}}> : () -> tensor<17xf32>',
        f'%d = "stablehlo.cholesky"(%a0) : ({T}) -> {T}',
        f'%e = "stablehlo.negate"(%a0) : ({T}) -> tensor<8xf16>',
        f'%f = "stablehlo.popcnt"(%a0) : ({T}) -> {T}',
        f'%r = "stablehlo.negate"(%a0) : ({T}) -> {T}',
    ]
    with pytest.raises(CompileError) as caught:
        lowered(main([T], lines, [("%r", T)]), "opencl")
    said = [str(diagnostic) for diagnostic in caught.value.diagnostics]
    assert said == [
        "test.mlir:3:6: stablehlo.constant: a constant of 68 bytes inside a kernel, which holds 64 at most",
        "test.mlir:4:6: stablehlo.cholesky: no kernel computes this op",
        "test.mlir:5:6: stablehlo.negate: no kernel holds values of type tensor<8xf16>",
        "test.mlir:6:6: stablehlo.popcnt: popcnt does not take (f32) -> f32",
    ]


def test_ops_keep_the_location_of_their_source(lowered: Any) -> None:
    lines = [f'%q = "stablehlo.abs"(%a0) : ({T}) -> {T}', f'%r = "stablehlo.sqrt"(%q) : ({T}) -> {T}']
    module = lowered(main([T], lines, [("%r", T)]), "spirv").module
    places = {op.name: str(op.loc) for op in module.walk() if op.name in ("kernel.abs", "kernel.sqrt", "kernel.load")}
    assert places == {
        "kernel.load": 'loc("test.mlir":3:6)',
        "kernel.abs": 'loc("test.mlir":3:6)',
        "kernel.sqrt": 'loc("test.mlir":4:6)',
    }
    assert not any(isinstance(op, UnregisteredOp) for op in module.walk())


@pytest.mark.parametrize(
    ("shape", "schedule"),
    [
        ([3, LONG_FOLD], "thread"),
        ([3, LONG_FOLD + 1], "workgroup_of_128"),
        ([FEW_FOLDS, LONG_FOLD + 1], "thread"),
        ([FEW_FOLDS - 1, LONG_FOLD + 1], "workgroup_of_128"),
    ],
)
def test_long_and_few_folds_take_a_workgroup_each(lowered: Any, shape: list[int], schedule: str) -> None:
    made = lowered(reduction(shape, [1], "add", "f32", "0.0"), "spirv")
    row = SCHEDULES[schedule]
    assert made.workgroup_size == (row.workgroup_size, 1, 1)
    assert made.workload == (shape[0] * (row.workgroup_size if schedule == "workgroup_of_128" else 1), 1, 1)
    assert bool(made.payload.shared_memory_bytes) == (schedule == "workgroup_of_128")


def _centred(shape: list[int], expensive: bool) -> str:
    """Rows without their sums, negated or exponentials of that, times the sums of those."""
    rows, source, scalar = tensor(shape[:1], "f32"), tensor(shape, "f32"), tensor([], "f32")
    spread = f'"stablehlo.broadcast_in_dim"(%s) <{{broadcast_dimensions = {ints([0])}}}> : ({rows}) -> {source}'
    fold = f"<{{dimensions = {ints([1])}}}> {reducer('add', 'f32')} : ({source}, {scalar}) -> {rows}"
    lines = [
        f'%c = "stablehlo.constant"() <{{value = dense<0.0> : {scalar}}}> : () -> {scalar}',
        f'%s = "stablehlo.reduce"(%a0, %c) {fold}',
        f"%b = {spread}",
        f'%d = "stablehlo.subtract"(%a0, %b) : ({source}, {source}) -> {source}',
        f'%e = "stablehlo.{"exponential" if expensive else "negate"}"(%d) : ({source}) -> {source}',
        f'%t = "stablehlo.reduce"(%e, %c) {fold}',
        f"%u = {spread.replace('%s', '%t')}",
        f'%r = "stablehlo.multiply"(%e, %u) : ({source}, {source}) -> {source}',
    ]
    return main([source], lines, [("%r", source)])


@pytest.mark.parametrize(
    ("target", "shape", "expensive", "invocations"),
    [
        ("opencl", [MANY_ROWS, 256], False, 1),
        ("opencl", [MANY_ROWS, 256], True, 16),
        ("opencl", [MANY_ROWS - 1, 256], False, 8),
        ("opencl", [MANY_ROWS, 257], False, 8),
        ("spirv", [MANY_ROWS, 256], False, 8),
    ],
)
def test_many_short_rows_are_an_invocation_s_on_opencl(
    lowered: Any, target: str, shape: list[int], expensive: bool, invocations: int
) -> None:
    assert lowered(_centred(shape, expensive), target).workload == (shape[0] * invocations, 1, 1)


def test_a_row_is_held(lowered: Any) -> None:
    """Each element is loaded, computed and written once, in fours, though three turns over the row need it."""
    module = lowered(_centred([64, 256], True), "spirv").module
    names = Counter(op.name.removeprefix("kernel.") for op in module.walk())
    assert (names["load_vector"], names["load"], names["store_vector"], names["store"], names["for"]) == (4, 0, 4, 0, 0)
    assert (names["round_nearest_even"], names["barrier"]) == (16, 2)


def test_a_single_long_fold_is_made_once(lowered: Any) -> None:
    """By the workgroup: what is written finds it, whatever the shape it is asked for in."""
    source, folded, scalar = tensor([1, 1, 4001], "f32"), tensor([1, 1], "f32"), tensor([], "f32")
    lines = [
        f'%c = "stablehlo.constant"() <{{value = dense<0.0> : {scalar}}}> : () -> {scalar}',
        f'%f = "stablehlo.reduce"(%a0, %c) <{{dimensions = {ints([2])}}}> {reducer("add", "f32")}'
        f" : ({source}, {scalar}) -> {folded}",
        f'%r = "stablehlo.reshape"(%f) : ({folded}) -> {scalar}',
    ]
    module = lowered(main([source], lines, [("%r", scalar)]), "spirv").module
    assert [op.name for op in module.walk() if op.name in ("kernel.load", "kernel.load_vector")] == ["kernel.load"]


def test_workgroups_are_a_power_of_two_that_every_device_takes() -> None:
    assert all(row.workgroup_size & (row.workgroup_size - 1) == 0 for row in SCHEDULES.values())
    assert all(row.workgroup_size <= 128 for row in SCHEDULES.values())
    rows = {f"rows_of_{lanes}" for lanes in (1, 8, 16, 32, 64, 128)}
    lines = {f"fft_of_{lanes}" for lanes in (16, 32, 64, 128)}
    groups = {f"workgroup_of_{lanes}" for lanes in (16, 128)}
    others = {"thread", "tiled", "packed", "blocked", "pack", "scatter", "merge", "solve_rows"}
    assert set(SCHEDULES) == {*others, *rows, *lines, *groups}


@pytest.mark.parametrize("count", [1, 1000, 32_768, 327_680, 800_000])
def test_a_fold_stays_below_the_turns_that_llvmpipe_makes(count: int) -> None:
    assert elements_per_turn(count, Machine()) == 1
    unroll = elements_per_turn(count, Machine(loop_turns=LLVMPIPE_TURNS))
    turns, left = count / unroll, count
    while left > BLOCK:
        left /= BLOCK
        turns += left
    assert turns < 65535
    assert unroll == 1 or count > 16_384


LINE = "tensor<3x{0}x2x{2}>", "tensor<{0}x2x{2}>", '"flow.fft"(%a0, %a1) <{{dimension = 1 : i64, inverse = false}}>'
SOLVE = "tensor<1x{0}x{0}x{2}>", "tensor<1x40x{0}x{2}>", '"flow.solve_rows"(%a0, %a1) <{{factor = true}}>'


@pytest.mark.parametrize(
    ("op", "size", "dtype"), [(LINE, 2048, "f32"), (LINE, 1024, "f64"), (SOLVE, 32, "f32"), (SOLVE, 32, "f64")]
)
def test_shared_memory_is_what_every_device_has(lowered: Any, op: tuple[str, str, str], size: int, dtype: str) -> None:
    first, second, text = (part.format(size, 0, dtype) for part in op)
    out = first if op is LINE else second
    made = lowered(main([first, second], [f"%r = {text} : ({first}, {second}) -> {out}"], [("%r", out)]), "spirv")
    assert 0 < made.payload.shared_memory_bytes <= 16 << 10
