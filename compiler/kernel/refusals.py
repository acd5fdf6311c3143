"""What no kernel computes: a diagnostic for each op of a body that has no lowering, all at once."""

from collections.abc import Iterable, Iterator

from orchestrion.compiler.errors import Diagnostic
from orchestrion.compiler.flow.dialect import SetEncoding, UnsetEncoding
from orchestrion.compiler.flow.fft import LineFft
from orchestrion.compiler.flow.layout import has_layout
from orchestrion.compiler.flow.merge import Merge
from orchestrion.compiler.flow.row_solve import RowSolve
from orchestrion.compiler.flow.scatter import Scatter
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.sequencer.ll_seq import LoadInput, StoreOutput
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_supported
from orchestrion.compiler.stablehlo.ops.contraction import Return as RegionReturn
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.structural import Constant, Reshape

from .elemental import ELEMENT_RULES
from .lowering import refusal
from .rules import INLINE_CONSTANT_BYTES


def diagnose(ops: Iterable[Operation]) -> Iterator[Diagnostic]:
    """One diagnostic for each op, in regions too, that no kernel can hold."""
    for outer in ops:
        for op in outer.walk():
            if not isinstance(op, RegionReturn):
                yield from (Diagnostic(message, op.loc, op.name) for message in _refusals(op))


def _may_be_encoded(op: Operation, value: Value) -> bool:
    """Whether the value is one that has a layout, as the op's own check has seen."""
    encoded = isinstance(op, SetEncoding) and value is op.output
    return (encoded or (isinstance(op, UnsetEncoding) and value is op.source)) and has_layout(value.type)


def _scatter(op: Scatter) -> Iterator[str]:
    """It has no elements of its own: it changes what is loaded where that lies, and nothing else reads its results."""
    for value, result in zip(op.inputs, op.results, strict=True):
        load, stores = value.defining_op, list(result.users())
        store = stores[0] if len(stores) == 1 else None
        in_place = isinstance(load, LoadInput) and isinstance(store, StoreOutput) and load.binding is store.binding
        if not in_place:
            yield "no kernel computes this op but in place: of what is loaded from a binding and then stored to it"


def _stored(op: Operation) -> Iterator[str]:
    """It has no elements of its own: its results are stored, and read by nothing else."""
    stores = [user for result in op.results for user in _readers(result)]
    if len(stores) != len(op.results) or not all(isinstance(user, StoreOutput) for user in stores):
        yield "no kernel computes this op but to store each of its results once"


def _readers(value: Value) -> Iterator[Operation]:
    """Who reads a value, in whatever shape."""
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
