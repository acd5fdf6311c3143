"""Entries with a predicate: what the rules refuse in text of `ll_seq`, that compilation goes on from the text, and
where the report places the ops of a loop in batches.
"""

import pytest

from orchestrion.compiler import compile
from orchestrion.compiler.driver import Compilation, read_source
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.placement import Report
from orchestrion.schema import writer

TEXT = """
func.func @main(%m: tensor<256x256xf32>, %x: tensor<256xf32>) -> tensor<256xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<99.0> : tensor<f32>
  %r = stablehlo.while(%v = %x) : tensor<256xf32>
  cond {
    %sum = stablehlo.reduce(%v init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<256xf32>, tensor<f32>) -> tensor<f32>
    %go = stablehlo.compare LT, %sum, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %y = stablehlo.dot_general %m, %v, contracting_dims = [1] x [0]
      : (tensor<256x256xf32>, tensor<256xf32>) -> tensor<256xf32>
    %z = stablehlo.sine %y : tensor<256xf32>
    %w = stablehlo.add %z, %v : tensor<256xf32>
    stablehlo.return %w : tensor<256xf32>
  }
  return %r : tensor<256xf32>
}
"""


@pytest.fixture(scope="module", params=["opencl", "spirv"])
def ll_seq(request: pytest.FixtureRequest) -> str:
    return Compilation(targets=(request.param,)).text(read_source(TEXT, (), {}), "ll_seq")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("predicate = 3", "predicate = 2", "predicate 2 is not its last binding"),
        ("predicate = 3", "predicate = 4", "predicate 4 is not its last binding"),
        (
            '{access = "read", length = 1 : i64}], kind = "contraction"',
            '{access = "readwrite", length = 1 : i64}], kind = "contraction"',
            "predicate 3 is for readwrite, not for read only",
        ),
    ],
)
def test_what_is_refused(old: str, new: str, message: str, ll_seq: str) -> None:
    assert old in ll_seq
    with pytest.raises(CompileError, match=message):
        Compilation(start="ll_seq").rows(read_source(ll_seq.replace(old, new), (), {}))


def test_compilation_goes_on_from_the_text(ll_seq: str) -> None:
    target = "opencl" if 'sym_name = "opencl"' in ll_seq else "spirv"
    whole = Compilation(targets=(target,)).rows(read_source(TEXT, (), {}))
    assert writer.write(Compilation(start="ll_seq").rows(read_source(ll_seq, (), {}))) == writer.write(whole)


def test_the_report_names_the_entries() -> None:
    """The product has an entry with a predicate, and the condition is a part of the kernel of small commands."""
    report = Report()
    compile(TEXT, targets=["opencl"], report=report)
    entries = {row.op: {place.entry for place in row.places if place.kind == "dispatch"} for row in report.ops}
    assert any("_predicated" in entry for entry in entries["stablehlo.dot_general"])
    assert any("_loop" in entry for entry in entries["stablehlo.compare"])
