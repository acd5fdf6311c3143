"""split-wide-concatenates: a concatenation with more operands than a dispatch may bind becomes a tree."""

from __future__ import annotations

from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.stablehlo.ops.base import tensor_of
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
    axis = op.dimension.value
    first = tensor_of(values[0])
    size = sum(tensor_of(value).shape[axis] for value in values)
    type = first.with_shape((*first.shape[:axis], size, *first.shape[axis + 1 :]))
    return Builder.before(op).build(Concatenate, inputs=values, dimension=op.dimension, out=type).out
