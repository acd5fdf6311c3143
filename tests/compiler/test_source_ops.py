"""Each entry keeps the names of the ops it was made from, main op first, through every text to the source map."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.driver import compile as compile_module
from orchestrion.compiler.ir.locations import UNKNOWN
from orchestrion.schema.container import open_bytes
from orchestrion.schema.decoder import decode

EXAMPLES = Path(__file__).parents[2] / "examples"
#: of columns, which are not reduced in one dispatch as rows are
SOFTMAX = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %max = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  %maxs = stablehlo.broadcast_in_dim %max, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %less = stablehlo.subtract %x, %maxs : tensor<4x8xf32>
  %exp = stablehlo.exponential %less : tensor<4x8xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %y = stablehlo.divide %exp, %sums : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
"""


def ops(blob: bytes, program: int) -> list[tuple[str, ...]]:
    module = decode(open_bytes(blob))
    row = module.programs[program]
    rows = enumerate(module.executables[row.executables_start : row.executables_end])
    return [
        module.source_ops(program, ordinal, entry)
        for ordinal, executable in rows
        for entry in range(executable.entries_end - executable.entries_start)
    ]


def test_every_target_names_the_same_ops() -> None:
    blob = compile_module(SOFTMAX)
    found = [ops(blob, program) for program in range(3)]
    assert found[0] == found[1] == found[2]
    assert [names[0] for names in found[0]] == [
        "stablehlo.reduce(maximum)",
        "stablehlo.exponential",
        "stablehlo.reduce(add)",
        "stablehlo.divide",
    ]
    assert set(found[0][1]) == {"stablehlo.exponential", "stablehlo.broadcast_in_dim", "stablehlo.subtract"}


def test_the_hero_stands_first() -> None:
    first = ops(compile_module(EXAMPLES / "mlp.mlir", targets=["reference"]), 0)[0]
    assert first[0] == "stablehlo.dot_general"
    assert set(first[1:]) == {"stablehlo.broadcast_in_dim", "stablehlo.add", "stablehlo.tanh"}


def test_text_without_names_is_taken(tmp_path: Path) -> None:
    text = Compilation(("reference",)).text(EXAMPLES / "simple_mul.mlir", "executables")
    assert 'source_ops = ["stablehlo.multiply"]' in text
    path = tmp_path / "m.fb"
    stripped = text.replace('source_ops = ["stablehlo.multiply"], ', "")
    assert stripped != text
    Compilation(("reference",), start="executables").write(stripped, path)
    assert ops(path.read_bytes(), 0) == [()]


def test_what_a_loop_of_ours_does_has_a_place() -> None:
    """QR factors are a loop that the compiler writes: each op of it stands where the call stood."""
    module = Compilation(targets=("spirv",)).module(jax.jit(jnp.linalg.qr).lower(np.ones((6, 4), np.float32)), "flow")
    functions = [op for op in module.walk() if op.name == "func.func"]
    assert not [op.name for func in functions for op in func.walk() if op is not func and op.loc is UNKNOWN]
