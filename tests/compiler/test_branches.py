"""Branches between the blocks of a function: what they say of themselves, their text, and what is refused."""

import pytest

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.ir.util import BranchOp, Edge
from orchestrion.compiler.ir.verifier import verify

LOOP = """"builtin.module"() ({
  "func.func"() <{function_type = (i1, f32, i32) -> f32, sym_name = "main"}> ({
  ^bb0(%0: i1, %1: f32, %2: i32):
    "util.cond_branch"(%0, %1, %0, %1)[^bb1, ^bb2] <{counts = array<i64: 2, 1>}> : (i1, f32, i1, f32) -> ()
  ^bb1(%3: f32, %4: i1):
    "util.cond_branch"(%4, %3, %4)[^bb1, ^bb3] <{counts = array<i64: 2, 0>}> : (i1, f32, i1) -> ()
  ^bb2(%5: f32):
    "util.switch"(%2, %5, %5)[^bb3, ^bb4, ^bb4] <{counts = array<i64: 0, 1, 1>}> : (i32, f32, f32) -> ()
  ^bb3:
    "util.branch"(%1)[^bb4] : (f32) -> ()
  ^bb4(%6: f32):
    "func.return"(%6) : (f32) -> ()
  }) : () -> ()
}) : () -> ()
"""


def _branches(module: Module) -> list[BranchOp]:
    return [op for op in module.walk() if isinstance(op, BranchOp)]


def test_the_text_survives_and_jaxlib_reads_it() -> None:
    module = parse(LOOP, "loop.mlir")
    assert verify(module) == []
    text = print_module(module, locations=False)
    assert text == LOOP and print_module(parse(text, "again.mlir"), locations=False) == text
    ir = pytest.importorskip("jaxlib.mlir.ir")
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        for given in (text, print_module(module)):
            assert ir.Module.parse(given).operation.verify()


def test_edges_say_what_goes_where() -> None:
    module = parse(LOOP, "loop.mlir")
    entry, turn, switch, jump = _branches(module)
    blocks = entry.parent.region.blocks
    predicate, start, number = blocks[0].arguments
    assert entry.edges == (Edge(blocks[1], 1, (start, predicate)), Edge(blocks[2], 3, (start,)))
    assert turn.edges == (Edge(blocks[1], 1, tuple(blocks[1].arguments)), Edge(blocks[3], 3, ()))
    assert switch.index is number and switch.targets == (blocks[3], blocks[4], blocks[4])
    value = blocks[2].arguments[0]
    assert switch.edges == (Edge(blocks[3], 1, ()), Edge(blocks[4], 1, (value,)), Edge(blocks[4], 2, (value,)))
    assert jump.edges == (Edge(blocks[4], 0, (start,)),)


def test_a_function_with_branches_is_copied_whole() -> None:
    func = parse(LOOP, "loop.mlir").block.first
    copy = func.clone()
    assert str(copy) == str(func)
    assert not {b for op in copy.walk() for b in op.successors} & {b for op in func.walk() for b in op.successors}


#: op, successors, counts -> what is wrong
REFUSED = [
    ("branch", "[^bb1]", None, "gives (f32) to successor 0, which takes ()"),
    ("branch", "[^bb2]", None, "gives (f32) to successor 0, which takes (i1)"),
    ("branch", "[^bb0]", None, "successor 0 is the entry block, to which nothing may go"),
    ("branch", "", None, "needs 1 successors, has 0"),
    ("cond_branch", "[^bb1, ^bb1]", None, "property counts is missing"),
    ("cond_branch", "[^bb1]", ": 0", "needs 2 successors, has 1"),
    ("cond_branch", "[^bb1, ^bb1]", ": 1, 0", "counts [1, 0] do not fit 2 successors and 0 arguments"),
    ("cond_branch", "[^bb1, ^bb1]", ": -1, 1", "counts [-1, 1] do not fit 2 successors and 0 arguments"),
    ("switch", "[^bb1]", ": 0, 0", "counts [0, 0] do not fit 1 successors and 0 arguments"),
    ("switch", "", "", "needs a target"),
]


@pytest.mark.parametrize(("op", "targets", "counts", "message"), REFUSED)
def test_what_does_not_fit_is_refused(op: str, targets: str, counts: str | None, message: str) -> None:
    properties = "" if counts is None else f" <{{counts = array<i64{counts}>}}>"
    branch = f'"util.{op}"(%x){targets}{properties}'
    text = f""""func.func"() <{{function_type = (f32) -> (), sym_name = "main"}}> ({{
    ^bb0(%x: f32):
      {branch} : (f32) -> ()
    ^bb1:
      "func.return"() : () -> ()
    ^bb2(%p: i1):
      "func.return"() : () -> ()
    }}) : () -> ()
    """
    assert [found.message for found in verify(parse(text, "wrong.mlir"))] == [message]


def test_nothing_branches_out_of_its_region() -> None:
    module = parse(LOOP, "loop.mlir")
    entry, turn, _, _ = _branches(module)
    other = _branches(parse(LOOP, "other.mlir"))[0]
    turn.successors[1] = other.successors[1]
    assert "successor 1 is a block of another region" in [found.message for found in verify(module)]
