"""Rules of encoded tensors: only the ops that make, keep and dispatch them may have them as operands or results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrion.compiler.flow.dialect import Dispatch, HoistableDispatch, SetEncoding, UnsetEncoding, Yield
from orchestrion.compiler.flow.layout import has_layout, plain, problem
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Region
from orchestrion.compiler.ir.types import TensorType, Type
from orchestrion.compiler.ir.util import GlobalLoad, GlobalStore
from orchestrion.compiler.sequencer.ll_seq import LoadInput, StoreOutput
from orchestrion.compiler.stablehlo.ops.base import is_supported, tensor_of, type_list
from orchestrion.compiler.stablehlo.ops.func import Return

#: Ops that may have encoded operands or results.
CARRIERS: Final = (
    SetEncoding, UnsetEncoding, Yield, HoistableDispatch, Dispatch, GlobalLoad, GlobalStore, Return, LoadInput,
    StoreOutput,
)  # fmt: skip


def encoded_values(op: Operation) -> Iterator[str]:
    """Messages for an op that must not have encoded tensors, and for invalid encodings."""
    for value in (*op.operands, *op.results):
        type = value.type
        if not isinstance(type, TensorType) or not type.encoding:
            continue
        if not isinstance(op, CARRIERS):
            yield f"has an operand or result of type {type}: encoded tensors are only made, kept and dispatched"
        elif not type.is_static:
            yield f"{type} has no fixed shape"
        elif message := problem(type):
            yield message


def is_entry_type(type: Type) -> bool:
    """Whether an entry may take or return a tensor of this type after encodings are resolved to layouts."""
    return is_supported(type) or (has_layout(type) and is_supported(plain(type)))


def is_encoded_entry_type(type: Type) -> bool:
    """Whether an entry may take or return a tensor of this type before encodings are resolved."""
    if not isinstance(type, TensorType) or not is_supported(plain(type)):
        return False
    return problem(type) is None


def in_entry(block: Block) -> Iterator[str]:
    """An entry removes encodings only from its arguments, and sets them only on its results."""
    for op in block:
        if isinstance(op, UnsetEncoding) and not (
            isinstance(op.source, BlockArgument) or isinstance(op.source.defining_op, LoadInput)
        ):
            yield "takes off an encoding that is not an argument's"
        if isinstance(op, SetEncoding) and not all(
            isinstance(user, Return | StoreOutput) for user in op.output.users()
        ):
            yield "sets an encoding that is not a result's"


def hoistable(op: HoistableDispatch) -> Iterator[str]:
    """A body of one block that computes what it yields: as many values as the op has results, all of equal size."""
    region: Region = op.body
    last = region.blocks[0].last if len(region.blocks) == 1 else None
    if not isinstance(last, Yield) or region.blocks[0].arguments:
        yield "needs a body of one block without arguments that ends with flow.yield"
        return
    given, wanted = [value.type for value in last.operands], [value.type for value in op.outputs]
    if given != wanted or not wanted:
        yield f"yields ({type_list(given)}), must give ({type_list(wanted)}), at least one"
    if any(value.parent_block is not region.blocks[0] for value in last.operands):
        yield "yields what it does not compute"
    sizes = {tensor_of(value).num_elements for value in op.outputs if tensor_of(value).is_static}
    if len(sizes) > 1 or 0 in sizes:
        yield f"results differ in their number of elements, or have none: {', '.join(map(str, sorted(sizes)))}"
