"""Any IR in a module: `vm-codegen --style=vulkan` and `--style=c` refuse it with a named error, or write text, the same
each time.
"""

import random
from functools import cache

from fuzzing import ROOT, check, tokens_mutated

from orchestrion.compiler.codegen.c.generate import generate as c_code
from orchestrion.compiler.codegen.styles import STYLES
from orchestrion.compiler.codegen.subject import Subject, verified_ir
from orchestrion.compiler.codegen.vulkan.generate import generate as vulkan_code
from orchestrion.compiler.driver import EMBEDDED, Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.lexer import Tokens
from orchestrion.compiler.ir.printer import print_module

MAX_BYTES = 32768
SECONDS = 20.0
#: a loop that the host runs, with a fill; sizes that calls bring
_LOOP = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %limit = stablehlo.constant dense<9.0> : tensor<f32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = stablehlo.while(%a = %x, %b = %zero) : tensor<4xf32>, tensor<4xf32>
    cond {
      %s = stablehlo.reduce(%b init: %none) applies stablehlo.add across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %c = stablehlo.compare LT, %s, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %a, %b : tensor<4xf32>
      stablehlo.return %b, %n : tensor<4xf32>, tensor<4xf32>
    }
  return %r#1 : tensor<4xf32>
}
"""
_ROWS = """
func.func @main(%x: tensor<?x4xi8>) -> tensor<?x4xi8> {
  %y = stablehlo.add %x, %x : tensor<?x4xi8>
  return %y : tensor<?x4xi8>
}
"""


@cache
def _texts() -> list[str]:
    sources = [_LOOP, _ROWS, ROOT / "examples/simple_mul.mlir"]
    return [
        print_module(Compilation(targets=(target,)).module(source, EMBEDDED))
        for source in sources
        for target in ("spirv", "cpu")
    ]


@cache
def _pool() -> list[str]:
    return sorted({token for text in _texts() for token in Tokens(text, "t").tokens if token})


def seeds():
    return [text.encode() for text in _texts() if len(text) <= MAX_BYTES]


def mutate(choose: random.Random, data: bytes) -> bytes:
    tokens = [token for token in Tokens(data.decode(errors="ignore"), "t").tokens if token]
    return " ".join(tokens_mutated(choose, tokens, _pool())).encode()


def one_input(data: bytes) -> None:
    try:
        ir = verified_ir(data, "t")
    except CompileError:
        return
    subject = Subject("t", lambda: check(False, "styles read IR"), lambda: ir)  # type: ignore[arg-type, return-value]
    for name, generate in (("c", c_code), ("vulkan", vulkan_code)):
        options = {option: next(iter(values)) for option, values in STYLES[name].options.items()}
        try:
            files = generate(subject, "model", options)
        except CompileError:
            continue
        check(generate(subject, "model", options) == files, "other text the second time")
