"""Quantized types in float arithmetic after StableHLO's specification, written in NumPy, on every device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrion.compiler.driver import compile
from orchestrion.compiler.errors import CompileError

Array = np.ndarray[Any, Any]

TENSOR = "!quant.uniform<i8:f32, 0.05:3>"
COLUMNS = "!quant.uniform<i8<-127:127>:f32:1, {0.1, 0.2, 0.3, 0.25:-5}>"
WIDE = "!quant.uniform<i32:f32:1, {5.0e-3, 1.0e-2, 1.5e-2, 1.25e-2}>"
UNSIGNED = "!quant.uniform<u4:f32, 0.5:7>"
F32 = np.float32
SCALES, POINTS = np.array([0.1, 0.2, 0.3, 0.25], F32), np.array([0, 0, 0, -5], np.int32)
WIDE_SCALES = np.array([5.0e-3, 1.0e-2, 1.5e-2, 1.25e-2], F32)

TEXT = f"""
"func.func"() <{{sym_name = "main", function_type = (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x3x{TENSOR}>) ->
    (tensor<2x4xf32>, tensor<2x3x{TENSOR}>, tensor<3x4x{COLUMNS}>, tensor<2x3x{UNSIGNED}>, tensor<2x4xf32>)}}> ({{
^bb0(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %c: tensor<2x3x{TENSOR}>):
  %qa = "stablehlo.uniform_quantize"(%a) : (tensor<2x3xf32>) -> tensor<2x3x{TENSOR}>
  %qb = "stablehlo.uniform_quantize"(%b) : (tensor<3x4xf32>) -> tensor<3x4x{COLUMNS}>
  %q = "stablehlo.dot_general"(%qa, %qb) <{{
    dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>
  }}> : (tensor<2x3x{TENSOR}>, tensor<3x4x{COLUMNS}>) -> tensor<2x4x{WIDE}>
  %f = "stablehlo.uniform_dequantize"(%q) : (tensor<2x4x{WIDE}>) -> tensor<2x4xf32>
  %s = "stablehlo.add"(%qa, %c) : (tensor<2x3x{TENSOR}>, tensor<2x3x{TENSOR}>) -> tensor<2x3x{TENSOR}>
  %r = "stablehlo.reverse"(%s) <{{dimensions = array<i64: 1>}}> : (tensor<2x3x{TENSOR}>) -> tensor<2x3x{TENSOR}>
  %u = "stablehlo.uniform_quantize"(%c) : (tensor<2x3x{TENSOR}>) -> tensor<2x3x{UNSIGNED}>
  %h = "stablehlo.dot_general"(%a, %qb) <{{
    dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>
  }}> : (tensor<2x3xf32>, tensor<3x4x{COLUMNS}>) -> tensor<2x4xf32>
  "func.return"(%f, %r, %qb, %u, %h) :
    (tensor<2x4xf32>, tensor<2x3x{TENSOR}>, tensor<3x4x{COLUMNS}>, tensor<2x3x{UNSIGNED}>, tensor<2x4xf32>) -> ()
}}) : () -> ()
"""


def quantized(x: Array, scale: Any, point: Any, least: int = -128, most: int = 127) -> Array:
    return np.rint(np.clip(x / F32(scale) + F32(point), least, most)).astype(np.int32)


def numbers(stored: Array, scale: Any, point: Any) -> Array:
    return (stored.astype(np.int32) - point).astype(F32) * F32(scale)


@pytest.mark.parametrize("device", ["reference", "opencl", "vulkan"])
def test_a_program(device: str, load_on: Callable[..., Any]) -> None:
    """Numbers to integers and back, ties, dots of both kinds of operand, a sum that saturates, a scale for another."""
    pytest.importorskip("ml_dtypes")
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(F32) * 8 for shape in ((2, 3), (3, 4)))
    c = random.integers(-128, 128, (2, 3)).astype(np.int8)
    a[0], b[0, 3], b[1, 3] = (0.025, 0.075, -0.025), 0.125, 0.375  # halfway between two integers
    program = load_on(compile(TEXT, targets=[device], quantized="float"), device)
    got = program.main(a, b, c)
    program.close()
    qa, qb = quantized(a, 0.05, 3), quantized(b, SCALES, POINTS, -127, 127)
    columns = numbers(qb, SCALES, POINTS)
    product = np.rint(numbers(qa, 0.05, 3) @ columns / WIDE_SCALES).astype(np.int32)
    total = quantized(numbers(qa, 0.05, 3) + numbers(c, 0.05, 3), 0.05, 3)
    np.testing.assert_allclose(got[0], numbers(product, WIDE_SCALES, 0), atol=float(WIDE_SCALES.max()))
    np.testing.assert_array_equal(got[1], total[:, ::-1])
    np.testing.assert_array_equal(got[2], qb)
    np.testing.assert_array_equal(got[3].astype(np.int32), quantized(numbers(c, 0.05, 3), 0.5, 7, 0, 15))
    np.testing.assert_allclose(got[4], a @ columns, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ("!quant.uniform<i8:f32:0, {0.5, 0.25}>", "2 scales do not fit axis 0 of tensor<3x!quant.uniform"),
        ("!quant.uniform<i8:f32:{0:1}, {0.5}>", "is not supported; supported are"),
        ("!quant.uniform<i8:f32, -0.5>", "is not supported; supported are"),
        ("!quant.uniform<i8<-200:3>:f32, 0.5>", "is not supported; supported are"),
    ],
)
def test_what_is_no_quantized_type(element: str, message: str) -> None:
    type = f"tensor<3x{element}>"
    text = (
        f'"func.func"() <{{sym_name = "main", function_type = ({type}) -> {type}}}> ({{ ^bb0(%a: {type}):\n'
        f'  %b = "stablehlo.negate"(%a) : ({type}) -> {type}\n  "func.return"(%b) : ({type}) -> () }}) : () -> ()'
    )
    with pytest.raises(CompileError, match=message.replace("(", r"\(")):
        compile(text)
