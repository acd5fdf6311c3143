"""Loops and branches in the analysis of `vm-dump --html`: those of recordings, and those that the host follows."""

import pytest

from orchestrion import compiler
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.writer import write
from orchestrion.tools.html import sequence
from orchestrion.tools.html.model import FunctionView, NodeView, module_view

RECORDED = ("reference", "cpu")
#: a branch around a loop, whose body has a branch; the dots keep the compiler from replacing branches by selects
NESTED = """
func.func @main(%x: tensor<4x4xf32>, %p: tensor<i1>, %q: tensor<i1>) -> tensor<4x4xf32> {
  %limit = stablehlo.constant dense<100.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.if"(%p) ({
    %y = stablehlo.while(%v = %x) : tensor<4x4xf32>
    cond {
      %sum = stablehlo.reduce(%v init: %zero) applies stablehlo.add across dimensions = [0, 1]
        : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
      %more = stablehlo.compare LT, %sum, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %w = "stablehlo.if"(%q) ({
        %a = stablehlo.dot_general %v, %x, contracting_dims = [1] x [0]
          : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
        stablehlo.return %a : tensor<4x4xf32>
      }, {
        %b = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0]
          : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
        stablehlo.return %b : tensor<4x4xf32>
      }) : (tensor<i1>) -> tensor<4x4xf32>
      stablehlo.return %w : tensor<4x4xf32>
    }
    stablehlo.return %y : tensor<4x4xf32>
  }, {
    %z = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    stablehlo.return %z : tensor<4x4xf32>
  }) : (tensor<i1>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
"""


#: commands of a recording that the function then runs, with what the analysis makes of them
BADLY_NESTED = {
    "an end of nothing": ("END fill fill", [[]], []),
    "a next arm of nothing": ("ARM fill", [[]], []),
    "a next arm of a loop": ("LOOP fill ARM fill END fill", [[1], [2, 3], [1], []], [(0, 2)]),
    "a loop without end": ("LOOP fill", [[1], [2, 3], [1], []], [(0, 1)]),
    "a branch without end": ("BRANCH fill ARM fill", [[1, 2], [3], [3], []], []),
    "a loop in a branch, without ends": (
        "BRANCH LOOP fill",
        [[1], [2, 3], [1], [4], []],
        [(1, 2)],
    ),
}
WORDS = {
    "fill": "call_import @hal.recording.fill(%r0, %r1, %i0, %l0, %l1, %l0, %i1)",
    "LOOP": "call_import @hal.recording.begin_loop(%r0, %r1, %i0, %l0)",
    "BRANCH": "call_import @hal.recording.begin_branch(%r0, %r1, %i0, %l0, %i1, %i2)",
    "ARM": "call_import @hal.recording.next_arm(%r0)",
    "END": "call_import @hal.recording.end(%r0)",
}
TEXT = """producer "x"
import @hal.allocate (i64) -> hal.buffer
import @hal.recording.create_control_flow (i32) -> hal.recording
import @hal.recording.fill (hal.recording, hal.buffer, i32, i64, i64, i64, i32) -> ()
import @hal.recording.begin_loop (hal.recording, hal.buffer, i32, i64) -> ()
import @hal.recording.begin_branch (hal.recording, hal.buffer, i32, i64, i32, i32) -> ()
import @hal.recording.next_arm (hal.recording) -> ()
import @hal.recording.end (hal.recording) -> ()
import @hal.execute (hal.recording, hal.buffer*) -> ()

program @p profile "reference" {
  func @main () -> () {
    %i0 = i32.const 0 %i1 = i32.const 1 %i2 = i32.const 2 %l0 = i64.const 0 %l1 = i64.const 16
    %r1 = call_import @hal.allocate(%l1) %r0 = call_import @hal.recording.create_control_flow(%i0)
    BODY
    call_import @hal.execute(%r0)
    return ()
  }
}
"""


def main_of(module: bytes) -> FunctionView:
    (program,) = module_view(read_module(module), "test").programs
    return next(row for row in program.functions if row.name == "main")


def compiled(text: str, target: str) -> FunctionView:
    if target == "cpu":
        pytest.importorskip("llvmlite")
    return main_of(compiler.compile(text, targets=[target]))


def assembled(words: str) -> FunctionView:
    body = "\n    ".join(WORDS[word] for word in words.split())
    return main_of(write(assemble(TEXT.replace("BODY", body))))


def in_block(main: FunctionView, block: int) -> list[NodeView]:
    return [node for node in main.nodes if node.block == block]


@pytest.mark.parametrize("target", [*RECORDED, "spirv_least"])
def test_a_loop_in_a_branch_and_a_branch_in_the_loop(target: str) -> None:
    """The blocks are the same, wherever the predicates are read."""
    main = compiled(NESTED, target)
    outer, loop, inner = (node for node in main.nodes if node.kind == "read")
    labels = ["branch", "loop", "branch"] if target in RECORDED else ["read"] * 3
    assert [node.label for node in (outer, loop, inner)] == labels
    assert [node.block for node in (outer, loop, inner)] == [0, 2, 3]
    assert main.blocks == [[1, 8], [2], [3, 7], [4, 5], [6], [6], [2], [9], [9], []]
    ((first, last),) = main.loops
    assert {node.block for node in main.nodes[first : last + 1]} == set(range(2, 7 if target in RECORDED else 6))
    assert (
        [node.kind for node in in_block(main, 4)] == [node.kind for node in in_block(main, 5)] == ["dispatch", "copy"]
    )


@pytest.mark.parametrize("target", RECORDED)
def test_edges_of_a_loop_in_a_branch(target: str) -> None:
    main = compiled(NESTED, target)
    number = {id(node): at for at, node in enumerate(main.nodes)}
    edges = {(writer, reader): carried for writer, reader, carried, _ in main.edges}
    (loop,) = (number[id(node)] for node in main.nodes if node.label == "loop")
    before, after = (at for at, node in enumerate(main.nodes) if node.label == "main_dispatch_0")
    assert (edges[before, loop], edges[after, loop]) == (0, 1), "the predicate of the first and of later iterations"
    (entered,) = (number[id(node)] for node in in_block(main, 1) if node.kind == "copy")
    (other,) = (number[id(node)] for node in in_block(main, 8))
    arms = [[number[id(node)] for node in in_block(main, block)] for block in (4, 5)]
    for product, state in arms:
        assert edges[product, state] == 0 and edges[entered, product] == 0
        assert [edges[state, reader] for reader, _ in arms] == [1, 1], "either arm reads the state of either"
        assert (product, after) not in edges and edges[state, after] == 0
    assert not any((other, reader) in edges for reader in range(len(main.nodes) - 1)), "the other arm of the branch"
    results = len(main.nodes) - 1
    assert {writer for writer, reader in edges if reader == results} == {entered, other, arms[0][1], arms[1][1]}


@pytest.mark.parametrize("name", BADLY_NESTED)
def test_recordings_of_a_stranger_may_nest_wrongly(name: str) -> None:
    words, blocks, loops = BADLY_NESTED[name]
    main = assembled(words)
    assert (main.blocks, main.loops) == (blocks, loops)
    assert [node.kind for node in main.nodes] == [
        "fill" if word == "fill" else "read" for word in words.split() if word not in ("ARM", "END")
    ]


def test_an_export_that_never_ends() -> None:
    text = TEXT.replace(
        "    call_import @hal.execute(%r0)\n    return ()", "  ^a:\n    call_import @hal.execute(%r0)\n    br ^a"
    )
    text = text.replace("\nprogram", "export @main () -> ()\n\nprogram").replace("  }\n}", "  }\n  entry @main\n}")
    main = main_of(write(assemble(text.replace("BODY", WORDS["fill"]))))
    assert (main.kind, main.blocks, main.loops) == ("export", [[1], [1]], [(0, 0)])


def test_nodes_and_blocks_have_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "MAX_NODES", 10)
    main = assembled(" ".join(["BRANCH fill ARM fill END"] * 50))
    assert len(main.nodes) + len(main.blocks) <= 11 and main.left_out == 150 - len(main.nodes)
    monkeypatch.setattr(sequence, "MAX_NODES", 100)
    assert len(assembled("fill " + "LOOP " * 40 + "END " * 40).nodes) <= 100
    main = assembled("fill BRANCH " + "ARM " * 1000 + "END fill")
    assert len(main.blocks) <= 100 and main.left_out == 1
