"""Encodes and decodes tensor bytecode. `decode` accepts a payload or raises ModuleError, whatever the bytes are.

Readers and writers exist per kind of field, so a new row needs nothing here. `Code.append`, which both directions use,
checks everything except the layout (operand ordinals, shapes, types, bindings). Time and memory are linear in the
payload's size, whatever sizes it states.
"""

import struct
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

from . import dtypes
from .dtypes import DType
from .errors import ModuleError
from .library_call import Attributes, attributes_bytes, read_attributes, read_string, string_bytes
from .tensor_bytecode import (
    BY_CODE,
    FIELD_KINDS,
    MAGIC,
    MAJOR,
    MINOR,
    Body,
    Code,
    EntryCode,
    Instruction,
    Program,
    TensorOp,
    body_parameters,
)
from .tensor_shapes import MAX_RANK, Ints, ShapeError, TensorType, tensor_type

_HEADER = Struct("<4sHHI")
_ENTRY = Struct("<HI")
_U16, _U32, _U64, _PAIR = Struct("<H"), Struct("<I"), Struct("<Q"), Struct("<HH")
#: struct formats of i64 lists by their length
_I64S = tuple(Struct(f"<{count}q") for count in range(MAX_RANK + 1))


def encode(entries: Sequence[EntryCode]) -> bytes:
    """The payload from which `decode` returns these entries."""
    return b"".join([_header(entries), *(piece for entry in entries for piece in _pieces(entry))])


def encode_marked(entries: Sequence[EntryCode]) -> tuple[bytes, list[list[tuple[int, int]]]]:
    """The payload, and for each entry the symbolic numbers in it: (offset, number)."""
    pieces, marks = [_header(entries)], []
    at = len(pieces[0])
    for entry in entries:
        marks.append(found := list[tuple[int, int]]())
        for piece in _pieces(entry):
            if isinstance(piece, _Marked):
                places = enumerate(piece.numbers)
                found += [(at + 8 * place, number) for place, number in places if type(number) is not int]
            at += len(piece)
            pieces.append(piece)
    return b"".join(pieces), marks


def _header(entries: Sequence[EntryCode]) -> bytes:
    return _HEADER.pack(MAGIC, MAJOR, max(map(_minor, entries), default=0), len(entries))


def _pieces(entry: EntryCode) -> list[bytes]:
    out = [_ENTRY.pack(entry.bindings, len(entry.instructions))]
    for instruction in entry.instructions:
        _write_instruction(out, instruction)
    return out


def _minor(code: Code) -> int:
    """The least minor version that has every row of the code and its bodies."""
    bodies = [a for one in code.instructions for a in one.attributes if isinstance(a, Body)]
    return max([one.row.since for one in code.instructions] + [_minor(body) for body in bodies], default=0)


def decode(payload: bytes | bytearray | memoryview) -> Program:
    """Decodes and verifies a payload. Constants' data are copied; nothing refers to the payload afterwards."""
    reader = _Reader(bytes(payload))
    try:
        program = reader.program()
    except ShapeError as error:
        raise ModuleError(f"tensor bytecode: {reader.where}{error}", reader.at) from None
    except struct.error:
        raise ModuleError(f"tensor bytecode: {reader.where}truncated ({len(reader.data)} bytes)", reader.at) from None
    return program


class _Reader:
    """A position in the payload, and a description of it for errors."""

    __slots__ = ("at", "code", "data", "minor", "operands", "where")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.minor = MINOR
        self.where = ""
        self.code: Code = Code()
        self.operands: list[int] = []

    def program(self) -> Program:
        magic, major, minor, count = _HEADER.unpack_from(self.data)
        if magic != MAGIC:
            raise ShapeError(f"starts with {magic!r}, expected {MAGIC!r}")
        if major != MAJOR or minor > MINOR:
            raise ShapeError(f"version {major}.{minor}, this reader takes {MAJOR}.0 to {MAJOR}.{MINOR}")
        self.at, self.minor = _HEADER.size, minor
        entries = tuple([self.entry(ordinal) for ordinal in self.counted(count, _ENTRY.size)])
        if self.at != len(self.data):
            raise ShapeError(f"{len(self.data) - self.at} bytes after the last entry")
        return Program(entries)

    def counted(self, count: int, least: int) -> range:
        """A range of `count` items of at least `least` bytes each. Raises struct.error if the payload is too short for
        them.
        """
        if count * least > len(self.data) - self.at:
            raise struct.error
        return range(count)

    def entry(self, ordinal: int) -> EntryCode:
        self.where = f"entry[{ordinal}] "
        bindings, count = _ENTRY.unpack_from(self.data, self.at)
        self.at += _ENTRY.size
        entry = EntryCode(bindings)
        self.instructions(entry, count)
        return entry

    def instructions(self, code: Code, count: int) -> None:
        outer, prefix, self.code = self.code, self.where, code
        for ordinal in self.counted(count, _U16.size):
            start = self.at
            (opcode,) = _U16.unpack_from(self.data, start)
            row = BY_CODE.get(opcode)
            if row is None or row.since > self.minor:
                self.where = f"{prefix}instruction[{ordinal}]: "
                raise ShapeError(f"unknown opcode {opcode:#x}{f' in version {MAJOR}.{self.minor}' if row else ''}")
            self.at = start + 2
            try:
                self.instruction(code, row)
            except (ShapeError, struct.error):
                self.where = f"{prefix}instruction[{ordinal}] {row.name}: " if self.where == prefix else self.where
                raise
        self.code = outer

    def instruction(self, code: Code, row: TensorOp) -> None:
        operands: tuple[int, ...] = ()
        attributes: list[Any] = []
        for _, kind in row.fields:
            if kind == "value":
                operands += self.value()
            elif kind == "values":
                operands += self.values()
            elif kind == "body":
                attributes.append(self.body(operands))
            else:
                attributes.append(_READERS[kind](self))
        code.append(row, operands, tuple(attributes))

    def value(self) -> tuple[int, ...]:
        at = self.at
        self.at = at + 4
        return _U32.unpack_from(self.data, at)

    def values(self) -> tuple[int, ...]:
        (count,) = self.value()
        self.counted(count, _U32.size)
        at = self.at
        self.at = at + 4 * count
        return Struct(f"<{count}I").unpack_from(self.data, at)

    def body(self, operands: tuple[int, ...]) -> Body:
        if isinstance(self.code, Body):
            raise ShapeError("a body inside a body")
        values = self.code.values
        for operand in operands:
            if operand >= len(values):
                raise ShapeError(f"value {operand} out of range ({len(values)} defined)")
        body = Body(body_parameters([values[operand] for operand in operands]))
        (count,) = self.value()
        outer, self.where = self.where, f"{self.where}body "
        self.instructions(body, count)
        self.where = outer
        body.finish(self.values())
        return body

    def u16(self) -> int:
        at = self.at
        self.at = at + 2
        number: int = _U16.unpack_from(self.data, at)[0]
        return number

    def numbers(self, count: int) -> Ints:
        if count > MAX_RANK:
            raise ShapeError(f"{count} numbers, above the greatest rank {MAX_RANK}")
        at = self.at
        self.at = at + 8 * count
        return _I64S[count].unpack_from(self.data, at)

    def ints(self) -> Ints:
        return self.numbers(self.u16())

    def dtype(self) -> DType:
        code = self.u16()
        dtype = dtypes.BY_CODE.get(code)
        if dtype is None or not dtype.computed:
            raise ShapeError(f"unknown element type {code:#x}")
        return dtype

    def type(self) -> TensorType:
        dtype = self.dtype()
        return tensor_type(dtype, self.numbers(self.u16()))

    def bytes(self) -> bytes:
        (count,) = _U64.unpack_from(self.data, self.at)
        self.at += 8
        self.counted(count, 1)
        start = self.at
        self.at = start + count
        return self.data[start : self.at]

    def types(self) -> tuple[TensorType, ...]:
        return tuple([self.type() for _ in self.counted(self.u16(), _PAIR.size)])

    def function(self) -> str:
        text, self.at = read_string(self.data, self.at)
        return text

    def named(self) -> Attributes:
        attributes, self.at = read_attributes(self.data, self.at)
        return attributes


def _write_instruction(out: list[bytes], instruction: Instruction) -> None:
    out.append(_U16.pack(instruction.row.code))
    operands, attributes = iter(instruction.operands), iter(instruction.attributes)
    for _, kind in instruction.row.fields:
        if kind == "value":
            out.append(_U32.pack(next(operands)))
        elif kind == "values":
            _write_values(out, tuple(operands))
        else:
            _WRITERS[kind](out, next(attributes))


def _write_values(out: list[bytes], values: tuple[int, ...]) -> None:
    out.append(Struct(f"<{1 + len(values)}I").pack(len(values), *values))


def _write_body(out: list[bytes], body: Body) -> None:
    out.append(_U32.pack(len(body.instructions)))
    for instruction in body.instructions:
        _write_instruction(out, instruction)
    _write_values(out, body.results)


class _Marked(bytes):
    """Encoded numbers that remember their Python values."""

    numbers: Ints


def _packed(numbers: Ints) -> bytes:
    packed = _I64S[len(numbers)].pack(*numbers)
    if all(type(number) is int for number in numbers):
        return packed
    marked = _Marked(packed)
    marked.numbers = numbers
    return marked


def _write_ints(out: list[bytes], numbers: Ints) -> None:
    out += (_U16.pack(len(numbers)), _packed(numbers))


def _write_type(out: list[bytes], type: TensorType) -> None:
    out += (_PAIR.pack(type.dtype.code, type.rank), _packed(type.shape))


def _write_u16(out: list[bytes], number: int) -> None:
    out.append(_U16.pack(number))


def _write_dtype(out: list[bytes], dtype: DType) -> None:
    out.append(_U16.pack(dtype.code))


def _write_data(out: list[bytes], data: bytes) -> None:
    out += (_U64.pack(len(data)), data)


def _write_types(out: list[bytes], types: Sequence[TensorType]) -> None:
    out.append(_U16.pack(len(types)))
    for type in types:
        _write_type(out, type)


def _write_function(out: list[bytes], name: str) -> None:
    out.append(string_bytes(name))


def _write_named(out: list[bytes], attributes: Attributes) -> None:
    out.append(attributes_bytes(attributes))


_READERS: dict[str, Callable[[_Reader], Any]] = {
    "binding": _Reader.u16,
    "axis": _Reader.u16,
    "ints": _Reader.ints,
    "dtype": _Reader.dtype,
    "type": _Reader.type,
    "data": _Reader.bytes,
    "types": _Reader.types,
    "function": _Reader.function,
    "named": _Reader.named,
}
_WRITERS: dict[str, Callable[[list[bytes], Any], None]] = {
    "binding": _write_u16,
    "axis": _write_u16,
    "ints": _write_ints,
    "dtype": _write_dtype,
    "type": _write_type,
    "data": _write_data,
    "body": _write_body,
    "types": _write_types,
    "function": _write_function,
    "named": _write_named,
}
assert {*_WRITERS, "value", "values"} == {*_READERS, "value", "values", "body"} == set(FIELD_KINDS)
