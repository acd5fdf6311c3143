"""Diagnostics for the ops of a body that no kernel can compute, all at once."""

from collections.abc import Iterable, Iterator

from orchestrion.compiler.errors import Diagnostic
from orchestrion.compiler.flow.dialect import SetEncoding, UnsetEncoding
from orchestrion.compiler.flow.layout import has_layout
from orchestrion.compiler.flow.merge import Merge
from orchestrion.compiler.flow.scatter import Scatter
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.scalars.lowering import refusal
from orchestrion.compiler.sequencer.ll_seq import LoadInput, StoreOutput
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_supported
from orchestrion.compiler.stablehlo.ops.contraction import Return as RegionReturn
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft, RowSolve
from orchestrion.compiler.stablehlo.ops.structural import Constant, Reshape

from .elemental import ELEMENT_RULES
from .rules import INLINE_CONSTANT_BYTES


def diagnose(ops: Iterable[Operation]) -> Iterator[Diagnostic]:
    """One diagnostic per op, in regions too, that no kernel can compute."""
    for outer in ops:
        for op in outer.walk():
            if not isinstance(op, RegionReturn):
                yield from (Diagnostic(message, op.loc, op.name) for message in _refusals(op))


def _may_be_encoded(op: Operation, value: Value) -> bool:
    """Whether a value may have a layout: it is the encoded side of an op that encodes or decodes."""
    encoded = isinstance(op, SetEncoding) and value is op.output
    return (encoded or (isinstance(op, UnsetEncoding) and value is op.source)) and has_layout(value.type)


def _scatter(op: Scatter) -> Iterator[str]:
    """Why a scatter cannot be lowered: it must update a loaded value in its memory, and only stores may read its
    results.
    """
    for value, result in zip(op.inputs, op.results, strict=True):
        load, stores = value.defining_op, list(result.users())
        store = stores[0] if len(stores) == 1 else None
        in_place = isinstance(load, LoadInput) and isinstance(store, StoreOutput) and load.binding is store.binding
        if not in_place:
            yield "kernels compute this op in place only: on a value of the binding that the result is stored to"


def _stored(op: Operation) -> Iterator[str]:
    """Why such an op cannot be lowered: only stores may read its results."""
    stores = [user for result in op.results for user in _readers(result)]
    if len(stores) != len(op.results) or not all(isinstance(user, StoreOutput) for user in stores):
        yield "a kernel computes this op only if each of its results is stored once"


def _readers(value: Value) -> Iterator[Operation]:
    """The readers of a value, through reshapes."""
    for user in value.users():
        yield from _readers(user.results[0]) if isinstance(user, Reshape) else (user,)


def _refusals(op: Operation) -> Iterator[str]:
    if isinstance(op, Merge | LineFft | RowSolve):
        yield from _stored(op)
    elif isinstance(op, Scatter):
        yield from _scatter(op)
    elif op.name not in ELEMENT_RULES:
        yield "no kernel computes this op"
        return
    plain = [value for value in (*op.operands, *op.results) if not _may_be_encoded(op, value)]
    unknown = [str(value.type) for value in plain if not is_supported(value.type)]
    if unknown:
        yield f"no kernel holds values of type {', '.join(dict.fromkeys(unknown))}"
        return
    if isinstance(op, Constant) and len(op.value.data) > INLINE_CONSTANT_BYTES:
        yield f"a constant of {len(op.value.data)} bytes inside a kernel, which holds {INLINE_CONSTANT_BYTES} at most"
    if isinstance(op, Elementwise):
        message = refusal(op.scalar.name, [dtype_of(operand) for operand in op.operands], dtype_of(op.results[0]))
        if message:
            yield message
