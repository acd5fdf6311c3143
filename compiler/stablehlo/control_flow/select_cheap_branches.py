"""select-cheap-branches: computes all branches of a cheap `if` or `case`, and selects the results.

A branch requires reading its predicate back: a submission and a wait. Computing a few elements more is cheaper, and the
following ops can join the same dispatch. `docs/decisions/branches-as-selects.md` has the measurement behind the limit.
"""

from __future__ import annotations

from math import prod
from typing import Final

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import typical
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.loops import move_block
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops import structural
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Return
from orchestrion.compiler.stablehlo.ops.control_flow import Choice, If
from orchestrion.compiler.stablehlo.ops.costs import cost_of
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise

#: Maximum number of elements computed in all branches and selected.
MAX_WORK: Final = 1 << 15


def run(module: Module) -> None:
    for op in reversed(list(module.walk())):  # inner ops come first
        if isinstance(op, Choice) and _work(op) <= MAX_WORK:
            _select(op)


def _work(op: Choice) -> float:
    """Number of elements to compute; infinite if a branch has others than elementwise ops and data movement."""
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
    """Replaces the op by all its branches; each result is selected from those of the branches."""
    rewriter = Rewriter.before(op)
    given = [[Tensor(rewriter, value) for value in move_block(branch.block, rewriter)] for branch in op.regions]
    *others, values = given
    selector = Tensor(rewriter, op.operands[0])
    for number, branch in reversed(list(enumerate(others))):
        predicate = selector if isinstance(op, If) else selector.eq(number)
        pairs = zip(branch, values, strict=True)
        values = [a if a.value is b.value else predicate.select(a, b) for a, b in pairs]
    rewriter.replace(op, [x.value for x in values])
