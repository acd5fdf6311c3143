"""elide-empty: no tensor without elements is computed or read.

What is returned becomes `flow.empty`. Where an op reads one (a reduction over nothing, a concatenation with nothing),
it reads a broadcast of a scalar instead, which needs no memory. Ops whose results are all empty disappear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.compiler.ir.attributes import ELEMENT_BYTES, DenseElements, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.func import Func
from orchestrion.compiler.stablehlo.structural import BroadcastInDim, Constant

from .dialect import Empty

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options


def run(module: Module, options: Options) -> None:
    for func in module.block:
        if isinstance(func, Func):
            _elide(func.body.block)


def _elide(block: Block) -> None:
    for argument in block.arguments:
        _replace(argument, block.first)
    for op in block.ops:
        if isinstance(op, Empty):
            continue
        for result in op.results:
            _replace(result, op)
        if op.results and all(not r.uses and _is_empty(r) for r in op.results):
            op.erase()


def _is_empty(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.num_elements == 0


def _replace(value: Value, anchor: Operation | None) -> None:
    """Gives every reader of an empty tensor its substitute, made before `anchor`."""
    if not _is_empty(value) or anchor is None or anchor.parent is None:
        return
    builder = Builder(anchor.parent, anchor, value.loc)
    for user, index in list(value.uses):
        is_return = user.next_op is None
        user.set_operand(index, _returned(builder, value) if is_return else _broadcast(builder, value))


def _returned(builder: Builder, value: Value) -> Value:
    return builder.build(Empty, output=value.type).output


def _broadcast(builder: Builder, value: Value) -> Value:
    assert isinstance(value.type, TensorType)
    scalar = value.type.with_shape(())
    zero = DenseElements(scalar, bytes(ELEMENT_BYTES[str(scalar.element)]))
    constant = builder.build(Constant, value=zero, out=scalar)
    broadcast = builder.build(BroadcastInDim, operand_=constant.out, broadcast_dimensions=dense_ints(), out=value.type)
    return broadcast.out
