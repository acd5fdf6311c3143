"""split-wide-concatenates: a concatenation with more operands than a dispatch may bind becomes a tree."""

from __future__ import annotations

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate
from orchestrion.compiler.stablehlo.ops.structural import Concatenate

from .groups import MAX_BINDINGS


def run(module: Module) -> None:
    """Splits all wide concatenations."""
    for op in list(module.walk(Concatenate)):
        _split(op)


def _split(op: Concatenate) -> None:
    """Joins neighbouring operands until the rest and the result can be bound."""
    width = MAX_BINDINGS - 1
    values: list[Value] = list(op.inputs)
    while len(values) > width:
        values = [_join(op, values[at : at + width]) for at in range(0, len(values), width)]
    op.set_operands(values)


def _join(op: Concatenate, values: list[Value]) -> Value:
    if len(values) == 1:
        return values[0]
    rewriter = Rewriter.before(op)
    return concatenate([Tensor(rewriter, value) for value in values], op.dimension.value).value
