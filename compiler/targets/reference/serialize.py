"""Serializes lowered entries to the payload. `tensor_bytecode` ops are instructions; only values get numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import BlockArgument, Operation, Value
from orchestrion.compiler.ir.dims import Symbol
from orchestrion.compiler.sequencer.ll_seq import Entry, Executable
from orchestrion.compiler.stablehlo.ops.function_dims import dim_definitions
from orchestrion.schema.tensor_bytecode import Body, Code, EntryCode, body_parameters
from orchestrion.schema.tensor_encoding import encode
from orchestrion.schema.tensor_shapes import ShapeError
from orchestrion.schema.tensor_template import encode_template

from .dialect import BytecodeOp, Yield, schema_type
from .symbolic_numbers import marked


def serialize_executable(executable: Executable) -> bytes:
    """The payload, with the entries in the order of the text.

    Raises CompileError for verified IR that is no program: two stores to a binding, or an op that a body cannot hold.
    """
    entries = executable.body.block.of(Entry)
    symbols = [[symbol for symbol, _ in dim_definitions(entry.dims)] for entry in entries]
    codes = [_entry(*pair) for pair in zip(entries, symbols, strict=True)]
    return encode_template(codes, list(map(len, symbols))) if any(symbols) else encode(codes)


def _entry(entry: Entry, symbols: Sequence[Symbol]) -> EntryCode:
    code = EntryCode(len(entry.bindings))
    _append(code, entry.body.block, {}, symbols)
    return code


def _append(code: Code, ops: Iterable[Operation], ordinals: dict[Value, int], symbols: Sequence[Symbol]) -> None:
    for op in ops:
        if not isinstance(op, BytecodeOp):
            continue
        operands = tuple(ordinals[value] for value in op.values)
        try:
            attributes = [_attribute(op, name, kind) for name, kind in op.row.attributes]
            made = code.append(op.row, operands, tuple(marked(value, symbols) for value in attributes))
        except ShapeError as error:
            raise CompileError([Diagnostic(str(error), op.loc, op.name)]) from error
        ordinals.update(zip(op.results, made, strict=True))


def _attribute(op: BytecodeOp, name: str, kind: str) -> object:
    if kind == "binding":
        (binding,) = (value for value in op.operands if value not in op.values)
        assert isinstance(binding, BlockArgument)
        return binding.index
    return _body(op) if kind == "body" else op.attribute(name, kind)


def _body(op: BytecodeOp) -> Body:
    block = op.regions[0].block
    body = Body(body_parameters([schema_type(value) for value in op.values]))
    ordinals: dict[Value, int] = {argument: argument.index for argument in block.arguments}
    _append(body, block, ordinals, ())
    end = block.last
    assert isinstance(end, Yield)
    body.finish(tuple(ordinals[value] for value in end.values))
    return body
