"""Bindings that share a buffer: what the rules refuse in text of `ll_seq`, and that lowering once changes no byte."""

from dataclasses import replace

import pytest

from orchestrion.compiler.driver import Compilation, read_source
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.targets.spirv.target import SpirvTarget
from orchestrion.schema import writer

TEXT = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xi32>) -> tensor<4xf32> {
  %u = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %v = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %0 = stablehlo.add %a, %u : tensor<4xf32>
  %1 = stablehlo.add %b, %v : tensor<4xi32>
  %2 = stablehlo.convert %1 : (tensor<4xi32>) -> tensor<4xf32>
  %3 = stablehlo.multiply %0, %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def ll_seq() -> str:
    return Compilation(targets=("spirv_least",)).text(read_source(TEXT, (), {}), "ll_seq")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("shared = array<i64: 0, 1, 2, 1, 3>", "shared = array<i64: 0, 1, 2, 1>", "is not a number per binding"),
        ("shared = array<i64: 0, 1, 2, 1, 3>", "shared = array<i64: 0, 2, 1, 2, 3>", "counted from 0 in their order"),
        ("shared = array<i64: 0, 1, 2, 1, 3>, ", "", "has 4 spans, .* shares 0 bindings"),
        (", spans = array<i64: 16, 528, 16, 16>", "", "has 0 spans, .* shares 4 bindings"),
        ("shared = array<i64: 0, 1, 2, 1, 3>", "shared = array<i64: 0, 1, 1, 2, 3>", "lie in several buffers"),
        ("offsets = array<i64: 0, 0, 0, 512, 0>", "offsets = array<i64: 0, 0, 0, 8, 0>", "not all multiples of 512"),
    ],
)
def test_what_is_refused(old: str, new: str, message: str, ll_seq: str) -> None:
    assert old in ll_seq
    with pytest.raises(CompileError, match=message):
        Compilation(start="ll_seq").rows(read_source(ll_seq.replace(old, new), (), {}))


def test_compilation_goes_on_from_the_text(ll_seq: str) -> None:
    whole = Compilation(targets=("spirv_least",)).rows(read_source(TEXT, (), {}))
    assert writer.write(Compilation(start="ll_seq").rows(read_source(ll_seq, (), {}))) == writer.write(whole)


@pytest.fixture(scope="module")
def executables() -> str:
    return Compilation(targets=("spirv",)).text(read_source(TEXT, (), {}), "executables")


def test_only_the_first_level_holds_code(executables: str) -> None:
    first, least = executables.split('sym_name = "spirv_least"')
    assert "kernel.load" in first and "kernel.load" not in least and 'code = "spirv"' in least
    whole = Compilation(targets=("spirv",)).rows(read_source(TEXT, (), {}))
    again = Compilation(start="executables").rows(read_source(executables, (), {}))
    assert writer.write(again) == writer.write(whole)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('code = "spirv"', 'code = "opencl"', 'program "opencl" has no code of an executable'),
        ('code = "spirv"', 'code = "spirv_least"', 'program "spirv_least" has no code'),
        ('code = "spirv", ', "", "needs a body of one block that ends with kernel.return"),
        ("workgroup_size = array<i64: 64, 1, 1>", "workgroup_size = array<i64: 32, 1, 1>", "its workgroup_size is"),
    ],
)
def test_code_that_is_not_there(old: str, new: str, message: str, executables: str) -> None:
    first, least = executables.split('sym_name = "spirv_least"')
    assert old in least
    with pytest.raises(CompileError, match=message):
        text = f'{first}sym_name = "spirv_least"{least.replace(old, new)}'
        Compilation(start="executables").rows(read_source(text, (), {}))


def test_code_stands_in_one_place(executables: str) -> None:
    first, least = executables.split('sym_name = "spirv_least"')
    first = first.replace("workgroup_size", 'code = "spirv_least", workgroup_size', 1)
    text = f'{first}sym_name = "spirv_least"{least}'
    with pytest.raises(CompileError, match='has code of its own, and names that of program "spirv_least"'):
        Compilation(start="executables").rows(read_source(text, (), {}))


def test_a_program_is_the_same_alone_and_beside_its_first_level() -> None:
    alone = Compilation(targets=("spirv_least",)).rows(read_source(TEXT, (), {}))
    both = Compilation(targets=("spirv",)).rows(read_source(TEXT, (), {}))
    assert [row.profile for row in both.programs] == ["spirv", "spirv_least"]
    assert writer.write(replace(both, programs=both.programs[1:])) == writer.write(alone)


def test_levels_serialize_equal_executables_once(monkeypatch: pytest.MonkeyPatch) -> None:
    dot = "stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>"
    text = TEXT.replace("-> tensor<4xf32> {", "-> (tensor<4xf32>, tensor<f32>) {")
    text = text.replace("return %3 :", f"%4 = {dot}\n  return %3, %4 : tensor<f32>,").replace(
        "tensor<f32>, tensor<4xf32>", "tensor<4xf32>, tensor<f32>"
    )
    serialized, serialize = [], SpirvTarget.serialize
    monkeypatch.setattr(SpirvTarget, "serialize", lambda self, op: serialized.append(op) or serialize(self, op))
    rows = Compilation(targets=("spirv",)).rows(read_source(text, (), {}))
    first, least = ([one.variants[0].payload for one in program.executables] for program in rows.programs)
    assert len(first) == len(least) == 2 and len(serialized) == 3
    assert [one == other for one, other in zip(first, least, strict=True)].count(True) == 1
