"""select-cheap-branches: an `if` or `case` of little work computes all its branches, and selects.

To branch, a predicate must be read back: a submission and a wait. Computing a few elements more costs less, and what
follows can be one dispatch with it. `docs/decisions/branches-as-selects.md` has the measurement behind the bound.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.dims import typical
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise
from orchestrion.compiler.stablehlo.ops import structural
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Return
from orchestrion.compiler.stablehlo.ops.control_flow import Choice, If
from orchestrion.compiler.stablehlo.ops.costs import cost_of
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise

if TYPE_CHECKING:
    from orchestrion.compiler.options import Options

#: elements computed in all branches together, and selected
MOST_WORK: Final = 1 << 15


def run(module: Module, options: Options) -> None:
    for op in reversed(list(module.walk())):  # what is inside comes first
        if isinstance(op, Choice) and _work(op) <= MOST_WORK:
            _select(op)


def _work(op: Choice) -> float:
    """Elements that would be computed; infinite when a branch holds anything but elementwise ops and movement."""
    selected = sum(_elements(result) for result in op.results) * (len(op.regions) - 1)
    return selected + sum(_cost(inner) for branch in op.regions for inner in branch.block)


def _cost(op: Operation) -> float:
    match op:
        case Return() | structural.Constant():
            return 0
        case Elementwise():
            return _elements(op.results[0]) * cost_of(op).time
        case _ if op.name in structural.OPS:
            return _elements(op.results[0])
        case _:
            return float("inf")


def _elements(value: Value) -> int:
    return typical(prod(tensor_of(value).shape))


def _select(op: Choice) -> None:
    """All branches in place of the op; result i is that of the branch that the op would have taken."""
    rewriter = Rewriter({})
    rewriter.at(op)
    given = [_moved(branch.block, rewriter) for branch in op.regions]
    *others, values = given
    for number, branch in reversed(list(enumerate(others))):
        if isinstance(op, If):
            predicate = op.pred
        else:
            index = op.operands[0]
            predicate = compare(rewriter, "EQ", index, constant(rewriter, number, tensor_of(index)))
        pairs = zip(branch, values, strict=True)
        values = [a if a is b else elementwise(rewriter, "select", predicate, a, b) for a, b in pairs]
    rewriter.replace(op, values)


def _moved(block: Block, rewriter: Rewriter) -> list[Value]:
    """Moves the ops of a branch before its op; gives what it returns."""
    *inner, last = block.ops
    for op in inner:
        op.detach()
        rewriter.insert(op)
    return list(last.operands)
