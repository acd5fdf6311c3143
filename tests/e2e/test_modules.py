"""What is said of whole modules: exports with names and aliases, several functions, names that clash with ours."""

from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.schema.decoder import read_module
from orchestrion.schema.rows import NONE

jax = pytest.importorskip("jax")

FUNCTION = """
  "func.func"() <{{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>), sym_name = "{name}"}}> ({{
  ^bb0(%x: tensor<4xf32>):
    %c = "stablehlo.constant"() <{{value = dense<[{values}]> : tensor<4xf32>}}> : () -> tensor<4xf32>
    %z = "stablehlo.constant"() <{{value = dense<0.0> : tensor<f32>}}> : () -> tensor<f32>
    %0 = "stablehlo.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.multiply"(%0, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.reduce"(%0, %z) <{{dimensions = array<i64: 0>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }}) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%1, %2) : (tensor<4xf32>, tensor<f32>) -> ()
  }}) : () -> ()
"""
#: names that passes give to what they make
NAMES = (
    "arena", "constants", "constant_0", "constants_buffer", "program_initializer", "context_initializer",
    "main", "main_dispatch_0", "main_recording", "main_dispatch_0_executable", "hal.execute",
)  # fmt: skip


def test_any_name_may_be_exported_and_functions_share_the_context() -> None:
    values = [", ".join(f"{i + j}.0" for j in range(4)) for i in range(len(NAMES))]
    functions = [FUNCTION.format(name=name, values=v) for name, v in zip(NAMES, values, strict=True)]
    text = f'"builtin.module"() ({{{"".join(functions)}}}) : () -> ()'
    program = vm.load(compiler.compile(text, targets=["reference"]))
    x = np.array([-1, 0, 0.5, 2], np.float32)
    for i, name in enumerate(NAMES):
        scaled, total = program[name](x)
        np.testing.assert_allclose(scaled, np.tanh(x) * (np.arange(4) + i), rtol=1e-6)
        np.testing.assert_allclose(total, np.tanh(x).sum(), rtol=1e-6)
    load = program.statistics()["load"]
    assert load["command_buffers_recorded"] == len(NAMES)
    assert load["executables_created"] == 1  # shared by all: tanh and the product, and their sum


def test_names_types_and_aliases_of_exports() -> None:
    def step(state: Any, rate: Any) -> Any:
        return {"state": state * rate, "norm": abs(state).sum()}

    shapes = jax.ShapeDtypeStruct((3, 5), "float32"), jax.ShapeDtypeStruct((), "float32")
    module = read_module(compiler.compile(jax.jit(step, donate_argnums=0).lower(*shapes)))
    assert [module.strings[row.name] for row in module.exports] == ["main"]
    assert [module.strings[row.name] for row in module.arguments] == ["state", "rate"]
    dims = [tuple(module.dims[row.dims_start : row.dims_end]) for row in (*module.arguments, *module.results)]
    assert dims == [(3, 5), (), (), (3, 5)]
    assert [row.alias for row in module.results] == [NONE, 0]
    assert [module.strings[row.name] for row in module.programs] == ["reference", "spirv", "opencl", "cpu"]


def test_a_function_of_nothing_has_no_recording() -> None:
    lowered = jax.jit(lambda x: x[:0], keep_unused=True).lower(jax.ShapeDtypeStruct((4,), "int32"))
    program = vm.load(compiler.compile(lowered, targets=["reference"]))
    assert program.main(np.zeros(4, np.int32)).shape == (0,)
    assert program.statistics()["load"]["command_buffers_recorded"] == 0
    with pytest.raises(vm.VmError, match="4"):
        program.main(np.zeros(5, np.int32))


@pytest.mark.parametrize("name", ["a\\00b", "a\\FFb"])
def test_a_name_that_no_module_can_hold_is_refused(name: str) -> None:
    text = f'"builtin.module"() ({{{FUNCTION.format(name=name, values="1.0, 2.0, 3.0, 4.0")}}}) : () -> ()'
    with pytest.raises(compiler.CompileError, match="NUL or is not UTF-8"):
        compiler.compile(text)


def test_too_many_operands_are_refused_in_words() -> None:
    def reduce(*xs: Any) -> Any:
        zeros = tuple(np.float32(0) for _ in xs)
        return jax.lax.reduce(xs, zeros, lambda a, b: tuple(p + q for p, q in zip(a, b, strict=True)), (0,))

    shapes = [jax.ShapeDtypeStruct((4,), "float32")] * 9
    with pytest.raises(compiler.CompileError, match="needs .* buffers, a dispatch has at most 16"):
        compiler.compile(jax.jit(reduce).lower(*shapes))
