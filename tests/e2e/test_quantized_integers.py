"""Arithmetic on quantized values in integers: against exact rational numbers, against StableHLO's interpreter, and
against the float arithmetic that the specification writes.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import oracles
import pytest

from orchestrion.compiler.driver import compile
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.options import Options
from orchestrion.compiler.pipeline import passes_named, run_passes

Array = np.ndarray[Any, Any]

ACTIVATION = "!quant.uniform<i8:f32, 0.043:-7>"
UNSIGNED = "!quant.uniform<u8:f32, 0.02:130>"
HALVES = "!quant.uniform<i8:f32, 0.5:3>"
EIGHTHS = "!quant.uniform<i8:f32, 0.125:-2>"
TOTAL = "!quant.uniform<i32:f32, 0.001>"
TENTHS = "!quant.uniform<i8:f32, 0.1:5>"
SCALES = (0.011, 0.0031, 0.007, 0.0009)
WEIGHTS = "!quant.uniform<i8<-127:127>:f32:{}, {{0.011, 0.0031, 0.007, 0.0009}}>"
SUMS = "!quant.uniform<i32:f32:{}, {{4.73e-04, 1.333e-04, 3.01e-04, 3.87e-05}}>"
DOT = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
CONVOLUTION = (
    "window_strides = array<i64: 2, 1>, padding = dense<[[1, 2], [0, 1]]> : tensor<2x2xi64>, "
    "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, batch_group_count = 1 : i64"
)


def program(arguments: dict[str, str], ops: str, results: dict[str, str]) -> str:
    """A program in the generic form. `ops`: lines `%r = op(operands) <{properties}> -> type`."""
    types = {f"%{name}": f"tensor<{type}>" for name, type in arguments.items()}
    lines = []
    for line in ops.strip().splitlines():
        name, _, rest = line.strip().partition(" = ")
        call, _, result = rest.rpartition(" -> ")
        op, _, rest = call.partition("(")
        operands, _, properties = rest.partition(")")
        types[name] = f"tensor<{result}>"
        given = ", ".join(types[operand.strip()] for operand in operands.split(","))
        lines.append(f'  {name} = "stablehlo.{op}"({operands}){properties} : ({given}) -> {types[name]}')
    takes = ", ".join(f"%{name}: tensor<{type}>" for name, type in arguments.items())
    gives = ", ".join(f"tensor<{type}>" for type in results.values())
    inputs = ", ".join(f"tensor<{type}>" for type in arguments.values())
    return (
        f'"func.func"() <{{sym_name = "main", function_type = ({inputs}) -> ({gives})}}> ({{\n^bb0({takes}):\n'
        + "\n".join(lines)
        + f'\n  "func.return"({", ".join(f"%{name}" for name in results)}) : ({gives}) -> ()\n}}) : () -> ()\n'
    )


def dense(rows: int, depth: int, given: str = ACTIVATION, out: str = TENTHS) -> str:
    weights, sums = WEIGHTS.format(1), SUMS.format(1)
    if given == UNSIGNED:
        sums = "!quant.uniform<i32:f32:1, {2.2e-04, 6.2e-05, 1.4e-04, 1.8e-05}>"
    return program(
        {"x": f"{rows}x{depth}x{given}", "w": f"{depth}x4x{weights}", "b": f"4x{sums.replace('f32:1', 'f32:0')}"},
        f"""%d = dot_general(%x, %w) <{{{DOT}}}> -> {rows}x4x{sums}
        %c = broadcast_in_dim(%b) <{{broadcast_dimensions = array<i64: 1>}}> -> {rows}x4x{sums}
        %s = add(%d, %c) -> {rows}x4x{sums}
        %r = uniform_quantize(%s) -> {rows}x4x{out}""",
        {"r": f"{rows}x4x{out}"},
    )


def convolution(features: int, groups: int, dilation: str = "") -> str:
    kernel = f"3x2x{features // groups}x4x{WEIGHTS.format(3)}"
    height = 9 if dilation else 5
    return program(
        {"x": f"2x9x6x{features}x{ACTIVATION}", "w": kernel},
        f"%r = convolution(%x, %w) <{{{CONVOLUTION}, {dilation}feature_group_count = {groups} : i64}}>"
        f" -> 2x{height}x6x4x{TENTHS}",
        {"r": f"2x{height}x6x4x{TENTHS}"},
    )


ELEMENTWISE = program(
    {"a": f"64x{ACTIVATION}", "b": f"64x{TENTHS}", "c": f"64x{TENTHS}"},
    f"""%s = add(%a, %b) -> 64x{TENTHS}
    %d = subtract(%s, %a) -> 64x{UNSIGNED}
    %m = multiply(%a, %b) -> 64x{TENTHS}
    %n = negate(%m) -> 64x{ACTIVATION}
    %g = maximum(%b, %c) -> 64x{TENTHS}
    %q = uniform_quantize(%n) -> 64x{TOTAL}""",
    {
        name: f"64x{type}"
        for name, type in zip("sdmngq", (TENTHS, UNSIGNED, TENTHS, ACTIVATION, TENTHS, TOTAL), strict=True)
    },
)
BATCHES = program(
    {"x": f"3x5x7x{ACTIVATION}", "w": f"7x2x3x{UNSIGNED}"},
    "%r = dot_general(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], "
    "rhs_batching_dimensions = [2], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}>"
    f" -> 3x5x2x{TENTHS}",
    {"r": f"3x5x2x{TENTHS}"},
)
POWERS = program(
    {"x": f"16x24x{HALVES}", "w": "24x8x!quant.uniform<i8:f32, 0.00390625>", "y": f"16x8x{EIGHTHS}"},
    f"""%d = dot_general(%x, %w) <{{{DOT}}}> -> 16x8x{HALVES}
    %s = add(%d, %y) -> 16x8x{EIGHTHS}""",
    {"d": f"16x8x{HALVES}", "s": f"16x8x{EIGHTHS}"},
)
LAYER = program(
    {"x": f"9x40x{UNSIGNED}", "w": f"40x4x{WEIGHTS.format(1)}"},
    f"""%d = dot_general(%x, %w) <{{{DOT}}}> -> 9x4x{TENTHS}
    %r = add(%d, %d) -> 9x4x{EIGHTHS}
    %f = negate(%r) -> 9x4x{EIGHTHS}""",
    {"d": f"9x4x{TENTHS}", "r": f"9x4x{EIGHTHS}", "f": f"9x4x{EIGHTHS}"},
)
PROGRAMS = {
    "layer": LAYER,
    "dense": dense(9, 40),
    "dense_unsigned": dense(9, 40, UNSIGNED),
    "long_sums": dense(2, 2500),
    "convolution": convolution(6, 1),
    "dilated": convolution(6, 1, "lhs_dilation = array<i64: 2, 1>, "),
    "groups": convolution(4, 4),
    "elementwise": ELEMENTWISE,
    "batches": BATCHES,
    "powers": POWERS,
}


def expanded(text: str, quantized: str, float_sums: bool = True) -> str:
    """The program without quantized types."""
    module = parse(text, "quantized.mlir")
    options = Options(("reference",), quantized=quantized, float_sums=float_sums)
    run_passes(module, passes_named(["expand-quantized"]), options)
    return print_module(module, locations=False)


def arguments(text: str) -> list[Array]:
    random = np.random.default_rng(3)
    types = text[text.index("function_type = (") + 17 : text.index(") -> (")].split("tensor<")[1:]
    made = []
    for type in types:
        *sizes, storage = type.partition("!quant.uniform<")[0].split("x")[:-1] + [type.partition("uniform<")[2]]
        least, most = {"i8": (-127, 128), "u8": (0, 256), "i3": (-3000, 3000)}[storage[:2]]
        dtype = {"i8": np.int8, "u8": np.uint8, "i3": np.int32}[storage[:2]]
        made.append(random.integers(least, most, [int(size) for size in sizes]).astype(dtype))
    return made


@pytest.mark.sampled
@pytest.mark.parametrize("device", ["reference", "cpu", "opencl", "vulkan"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_devices_compute_the_integers_of_the_interpreter(name: str, device: str, load_on: Callable[..., Any]) -> None:
    pytest.importorskip("jaxlib")
    text = PROGRAMS[name]
    given = arguments(text)
    program = load_on(compile(text, targets=device), device)
    got = program.main(*given)
    program.close()
    want = oracles.interpreter(expanded(text, "integer"), *given)
    for result, expected in zip(got if isinstance(got, tuple) else [got], want, strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_sums_in_i32_are_those_in_f32(name: str) -> None:
    """As microcontrollers compute them: with corrections for zero points, and images padded with zero points."""
    pytest.importorskip("jaxlib")
    text = PROGRAMS[name]
    given, plain = arguments(text), expanded(text, "integer", float_sums=False)
    assert "f32" not in plain
    found, wanted = (oracles.interpreter(one, *given) for one in (plain, expanded(text, "integer")))
    for result, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_integers_are_those_of_float_arithmetic_up_to_ties(name: str) -> None:
    """They differ by one step, seldom; never if scales are powers of two."""
    pytest.importorskip("jaxlib")
    text = PROGRAMS[name]
    given = arguments(text)
    pairs = zip(*(oracles.interpreter(expanded(text, way), *given) for way in ("integer", "float")), strict=True)
    for integer, float in pairs:
        assert len(np.unique(integer)) > 3, "results are not all clamped"
        distance = np.abs(integer.astype(np.int64) - float.astype(np.int64))
        if integer.dtype == np.int32:
            assert distance.max() <= 1 + np.abs(float).max() * 2.0**-20
            continue
        assert distance.max() <= (0 if name == "powers" else 1)
        assert distance.mean() < 0.02


@pytest.mark.parametrize("depth", [40, 2500])
def test_a_dense_layer_rounds_the_exact_sum_once(depth: int) -> None:
    text = dense(9, depth, out="!quant.uniform<i8:f32, 0.9:5>")
    x, w, b = arguments(text)
    (got,) = [np.array(compile_and_run(text, x, w, b))]
    sums = (x.astype(np.int64) + 7) @ w.astype(np.int64) + b
    ratios = [
        Fraction(float(np.float32(0.043)) * float(np.float32(s))) / Fraction(float(np.float32(0.9))) for s in SCALES
    ]
    for (row, column), total in np.ndenumerate(sums):
        exact = int(total) * ratios[column] + 5
        wanted = max(-128, min(127, round(exact)))
        tie = abs(exact - (exact // 1) - Fraction(1, 2))
        assert got[row, column] == wanted or tie < abs(exact) / 2**20


def compile_and_run(text: str, *given: Array) -> Array:
    from orchestrion import vm

    with vm.load(compile(text, targets="reference"), device="reference") as program:
        result: Array = program.main(*given)
        return result


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_sums_of_large_integers_are_exact(device: str, load_on: Callable[..., Any]) -> None:
    """A convolution by 3 x 3 whose sums are just below 2^24: transformed operands would not keep all bits."""
    ones, sums = "!quant.uniform<i8:f32, 1.0>", "!quant.uniform<i32:f32, 1.0>"
    steps = CONVOLUTION.replace("array<i64: 2, 1>", "array<i64: 1, 1>").replace("[[1, 2], [0, 1]]", "[[1, 1], [1, 1]]")
    text = program(
        {"x": f"1x10x10x112x{ones}", "w": f"3x3x112x32x{ones}"},
        f"%r = convolution(%x, %w) <{{{steps}, feature_group_count = 1 : i64}}> -> 1x10x10x32x{sums}",
        {"r": f"1x10x10x32x{sums}"},
    )
    random = np.random.default_rng(5)
    x = random.integers(-128, -124, (1, 10, 10, 112)).astype(np.int8)
    w = random.integers(124, 128, (3, 3, 112, 32)).astype(np.int8)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), (3, 3), (1, 2))
    want = np.einsum("bhwcuv,uvco->bhwo", windows, w, dtype=np.int64)
    assert 1 << 23 < np.abs(want).max() < 1 << 24
    with load_on(compile(text, targets=device), device) as loaded:
        np.testing.assert_array_equal(loaded.main(x, w), want)


def test_a_sum_of_32_bits_saturates() -> None:
    text = program({"a": f"4x{TOTAL}", "b": f"4x{TOTAL}"}, f"%s = add(%a, %b) -> 4x{TOTAL}", {"s": f"4x{TOTAL}"})
    a = np.array([2**31 - 1, -(2**31), 2**30, 7], np.int32)
    b = np.array([1, -1, 2**30 - 1, -9], np.int32)
    np.testing.assert_array_equal(compile_and_run(text, a, b), [2**31 - 1, -(2**31), 2**31 - 1, -2])


def test_floats_compute_what_integers_do_not() -> None:
    """Functions, numbers of 16 bits, and the option."""
    text = program({"a": f"4x{ACTIVATION}"}, f"%t = tanh(%a) -> 4x{EIGHTHS}", {"t": f"4x{EIGHTHS}"})
    assert "stablehlo.tanh" in expanded(text, "integer") and "shift" not in expanded(text, "integer")
    half = ELEMENTWISE.replace("f32", "f16")
    assert expanded(half, "integer") == expanded(half, "float")
    assert expanded(PROGRAMS["dense"], "integer") != expanded(PROGRAMS["dense"], "float")


@pytest.mark.parametrize("quantized", ["integer", "float"])
@pytest.mark.parametrize("name", ["layer", "batches"])
def test_dynamic_sizes(name: str, quantized: str) -> None:
    from orchestrion import vm

    size = {"layer": "9x", "batches": "5x"}[name]
    text, given = PROGRAMS[name], arguments(PROGRAMS[name])
    assert size in text
    results = []
    for source in (text, text.replace(f"<{size}", "<?x").replace(f"x{size}", "x?x")):
        with vm.load(compile(source, targets="reference", quantized=quantized), device="reference") as program:
            found = program.main(*given)
            results.append(found if isinstance(found, tuple) else (found,))
    for result, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(result, expected)


def test_an_arithmetic_that_is_none() -> None:
    with pytest.raises(CompileError, match="quantized is 'exact', one of integer, float expected"):
        compile(ELEMENTWISE, quantized="exact")
