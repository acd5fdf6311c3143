"""From an entry's tensors to a kernel: tables that cover the dialect, schedules, and everything refused at once."""

from collections import Counter
from typing import Any

import pytest
from stablehlo_text import ints, main, reducer, tensor

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.core import UnregisteredOp
from orchestrion.compiler.ir.dialect import ops_in
from orchestrion.compiler.kernel.elements.elemental import ELEMENT_RULES
from orchestrion.compiler.kernel.elements.loops import BLOCK, elements_per_iteration
from orchestrion.compiler.kernel.elements.reductions import HEROES, REDUCTIONS
from orchestrion.compiler.kernel.machine import Machine, Quirks
from orchestrion.compiler.scalars import narrow_floats
from orchestrion.compiler.stablehlo.ops import control_flow, dynamic
from orchestrion.compiler.stablehlo.ops.chlo import DIALECT as CHLO
from orchestrion.compiler.stablehlo.ops.dialect import DIALECT
from orchestrion.schema.quirks import LLVMPIPE_ITERATIONS

T = tensor([8], "f32")


def test_each_stablehlo_op_has_a_rule() -> None:
    other = {"stablehlo.return", "stablehlo.custom_call", *(op.name for op in ops_in(vars(control_flow)))}
    names = ("convolution", "fft", "reduce_window", "scatter", "select_and_scatter", "sort")
    lowered = {f"stablehlo.{name}" for name in names} | {op.name for op in ops_in(vars(dynamic))}
    flow = {"flow.set_encoding", "flow.unset_encoding", "flow.windows", "flow.size"} | {
        f"flow.{name}" for name in narrow_floats.ROWS
    }
    assert set(ELEMENT_RULES) == set(DIALECT.ops) - other - lowered | set(CHLO.ops) | flow
    assert set(HEROES) == set(REDUCTIONS)


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


def _centred(shape: list[int], expensive: bool) -> str:
    """Rows without their sums, negated or exponentials of that, times the sums of those."""
    rows, source, scalar = tensor(shape[:1], "f32"), tensor(shape, "f32"), tensor([], "f32")
    spread = f'"stablehlo.broadcast_in_dim"(%s) <{{broadcast_dimensions = {ints([0])}}}> : ({rows}) -> {source}'
    reduction = f"<{{dimensions = {ints([1])}}}> {reducer('add', 'f32')} : ({source}, {scalar}) -> {rows}"
    lines = [
        f'%c = "stablehlo.constant"() <{{value = dense<0.0> : {scalar}}}> : () -> {scalar}',
        f'%s = "stablehlo.reduce"(%a0, %c) {reduction}',
        f"%b = {spread}",
        f'%d = "stablehlo.subtract"(%a0, %b) : ({source}, {source}) -> {source}',
        f'%e = "stablehlo.{"exponential" if expensive else "negate"}"(%d) : ({source}) -> {source}',
        f'%t = "stablehlo.reduce"(%e, %c) {reduction}',
        f"%u = {spread.replace('%s', '%t')}",
        f'%r = "stablehlo.multiply"(%e, %u) : ({source}, {source}) -> {source}',
    ]
    return main([source], lines, [("%r", source)])


def test_a_row_is_held(lowered: Any) -> None:
    """Each element is loaded, computed and written once, in fours, though three passes over the row need it."""
    schedule = "[bind(grid, workgroup), reduce(k, tree, 16), stage(k, register)]"
    module = lowered(_centred([64, 256], True), "spirv", schedule=schedule).module
    names = Counter(op.name.removeprefix("kernel.") for op in module.walk())
    assert (names["load_vector"], names["load"], names["store_vector"], names["store"], names["for"]) == (4, 0, 4, 0, 0)
    assert (names["round_nearest_even"], names["barrier"]) == (16, 2)


def test_a_single_long_reduction_is_made_once(lowered: Any) -> None:
    """By the workgroup: what is written finds it, whatever the shape it is asked for in."""
    source, reduced, scalar = tensor([1, 1, 4001], "f32"), tensor([1, 1], "f32"), tensor([], "f32")
    lines = [
        f'%c = "stablehlo.constant"() <{{value = dense<0.0> : {scalar}}}> : () -> {scalar}',
        f'%f = "stablehlo.reduce"(%a0, %c) <{{dimensions = {ints([2])}}}> {reducer("add", "f32")}'
        f" : ({source}, {scalar}) -> {reduced}",
        f'%r = "stablehlo.reshape"(%f) : ({reduced}) -> {scalar}',
    ]
    schedule = "[bind(grid, workgroup), reduce(k, tree, 128)]"
    module = lowered(main([source], lines, [("%r", scalar)]), "spirv", schedule=schedule).module
    assert [op.name for op in module.walk() if op.name in ("kernel.load", "kernel.load_vector")] == ["kernel.load"]


@pytest.mark.parametrize("count", [1, 1000, 32_768, 327_680, 800_000])
def test_a_reduction_stays_below_the_iterations_of_llvmpipe(count: int) -> None:
    assert elements_per_iteration(count, Machine()) == 1
    unroll = elements_per_iteration(count, Machine(quirks=Quirks(max_loop_iterations=LLVMPIPE_ITERATIONS)))
    iterations, left = count / unroll, count
    while left > BLOCK:
        left /= BLOCK
        iterations += left
    assert iterations < 65535
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
