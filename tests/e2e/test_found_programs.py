"""Small programs that the compiler once got wrong, found by random ones (`make fuzz`): right now, on every device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from stablehlo_text import filled

from orchestrion import compiler

Oracle = Callable[..., list[np.ndarray]]

#: what went wrong -> the program
FOUND = {
    "a position that was computed in a branch was used after it": """
        func.func @main(%x: tensor<2x3x2xi32>, %u: tensor<2x1x1xi32>) -> (tensor<3x2xi32>, tensor<3x2xi32>) {
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %y = stablehlo.dynamic_update_slice %x, %u, %zero, %one, %one
            : (tensor<2x3x2xi32>, tensor<2x1x1xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x2xi32>
          %z = stablehlo.negate %x : tensor<2x3x2xi32>
          %r:2 = "stablehlo.reduce"(%y, %z, %zero, %zero) <{dimensions = array<i64: 0>}> ({
          ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
            %e = stablehlo.add %a, %c : tensor<i32>
            %f = stablehlo.xor %b, %d : tensor<i32>
            stablehlo.return %e, %f : tensor<i32>, tensor<i32>
          }) : (tensor<2x3x2xi32>, tensor<2x3x2xi32>, tensor<i32>, tensor<i32>) -> (tensor<3x2xi32>, tensor<3x2xi32>)
          return %r#0, %r#1 : tensor<3x2xi32>, tensor<3x2xi32>
        }""",
    "a gather without index vectors, into a batch, was taken for one slice": """
        func.func @main(%x: tensor<4xi32>) -> (tensor<4x3x2xi32>, tensor<4xi32>) {
          %i = stablehlo.constant dense<> : tensor<3x0x2xi16>
          %y = "stablehlo.gather"(%x, %i) <{
            dimension_numbers = #stablehlo.gather<offset_dims = [0], index_vector_dim = 1>, slice_sizes = array<i64: 4>
          }> : (tensor<4xi32>, tensor<3x0x2xi16>) -> tensor<4x3x2xi32>
          return %y, %x : tensor<4x3x2xi32>, tensor<4xi32>
        }""",
    "lavapipe chose between y and x with the sign of y wrongly": """
        func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
          %sign = stablehlo.constant dense<-2147483648> : tensor<4xi32>
          %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
          %a = stablehlo.abs %x : tensor<4xf32>
          %b = stablehlo.bitcast_convert %a : (tensor<4xf32>) -> tensor<4xi32>
          %c = stablehlo.bitcast_convert %y : (tensor<4xf32>) -> tensor<4xi32>
          %d = stablehlo.and %c, %sign : tensor<4xi32>
          %e = stablehlo.or %b, %d : tensor<4xi32>
          %f = stablehlo.bitcast_convert %e : (tensor<4xi32>) -> tensor<4xf32>
          %g = stablehlo.compare EQ, %y, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
          %h = stablehlo.select %g, %y, %f : tensor<4xi1>, tensor<4xf32>
          return %h : tensor<4xf32>
        }""",
}


@pytest.mark.parametrize("device", ("reference", "cpu", "opencl", "vulkan"))
@pytest.mark.parametrize("name", FOUND)
def test_program(name: str, device: str, interpreter: Oracle, load_on: Callable[[bytes, str], Any]) -> None:
    text = FOUND[name]
    arguments = [filled(tuple(map(int, shape.split("x")[:-1])), shape.split("x")[-1]) for shape in _arguments(text)]
    module = compiler.compile(text, targets=["spirv" if device == "vulkan" else device])
    found = load_on(module, device).main(*arguments)
    found = found if isinstance(found, tuple) else (found,)
    for got, want in zip(found, interpreter(text, *arguments), strict=True):
        np.testing.assert_array_equal(np.asarray(got), want)


def _arguments(text: str) -> list[str]:
    """The types of `@main`'s arguments: 2x3xi32."""
    head = text[text.index("@main(") : text.index("->")]
    return [part.split(">")[0] for part in head.split("tensor<")[1:]]
