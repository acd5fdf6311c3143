"""specialize-encodings: replaces every symbolic encoding by the layout that the program's target chooses.

The layout depends only on the type, so types are replaced everywhere at once. If the target chooses row-major order,
the encoding, its dispatch and the global that would have held it are removed. Encodings that are equal now are merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrion.compiler.flow.dialect import HoistableDispatch, SetEncoding
from orchestrion.compiler.flow.hoist_into_initializers import drop_unused_globals, merge_globals
from orchestrion.compiler.flow.layout import Encoding, encoding_of
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.cse import merge_equal
from orchestrion.compiler.ir.types import Attribute, FunctionType, TensorType, Type
from orchestrion.compiler.options import Options
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.base import tensor_of

from .layouts import Resolve, erase_identity_encodings, layout_or_reason, resolver

if TYPE_CHECKING:
    from orchestrion.compiler.provenance import Recorder

#: Role of a dot's operand -> its name in messages.
SIDES: Final = {"lhs": "left", "rhs": "right", "weights": "right"}


def run(program: hl_seq.Program, options: Options) -> None:
    resolve = resolver(program, options.encodings)
    if options.recorder is not None:
        _note_plain(program, options.encodings, options.recorder)
    for op in program.walk():
        _specialize(op, resolve)
    erase_identity_encodings(program)
    merge_equal(program, (HoistableDispatch,))
    merge_globals(program)
    drop_unused_globals(program)


def _note_plain(program: hl_seq.Program, encodings: str, recorder: Recorder) -> None:
    """Records for the report which operands of dots stay in row-major order, and why."""
    for op in program.walk():
        encoding = encoding_of(tensor_of(op.output)) if isinstance(op, SetEncoding) else None
        if isinstance(op, SetEncoding) and isinstance(encoding, Encoding):
            reason = layout_or_reason(program, encodings, encoding, tensor_of(op.output).shape)
            if isinstance(reason, str) and reason:
                what = f"another layout for the {SIDES[encoding.role]} operand of a dot"
                recorder.not_taken(program.sym_name.value, what, op.loc, reason)


def _specialize(op: Operation, resolve: Resolve) -> None:
    """Resolves the types of an op's results, block arguments and properties."""
    for value in (*op.results, *op.block_arguments()):
        value.type = _type(value.type, resolve)
    for name, attribute in op.properties.items():
        op.properties[name] = _attribute(attribute, resolve)


def _type(type: Type, resolve: Resolve) -> Type:
    return resolve(type) if isinstance(type, TensorType) and type.encoding else type


def _attribute(attribute: Attribute, resolve: Resolve) -> Attribute:
    if isinstance(attribute, FunctionType):
        inputs, results = (
            tuple(_type(type, resolve) for type in side) for side in (attribute.inputs, attribute.results)
        )
        return FunctionType(inputs, results)
    return _type(attribute, resolve) if isinstance(attribute, Type) else attribute
