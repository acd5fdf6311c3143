"""Mutators of tensor bytecode: instructions and their fields, bytes, and sizes changed consistently everywhere."""

import random
import struct
from dataclasses import replace
from typing import Any

from mutate_bytecode import read as read_code
from mutate_bytecode import write as write_code
from mutate_numbers import Impossible, damaged, edited, signed, size
from mutate_rows import Modules, in_program

from orchestrion.hal.libraries.registry import libraries
from orchestrion.schema import tensor_encoding, writer
from orchestrion.schema.dtypes import COMPUTED
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.library_call import Attributes
from orchestrion.schema.tensor_bytecode import FORMAT, ROWS, Body, Code, EntryCode, Instruction, TensorOp
from orchestrion.schema.tensor_shapes import ShapeError, TensorType

#: names and attributes of library calls
FUNCTIONS = tuple(f"{status.name}.{name}" for status in libraries() for name in status.functions)
VALUES = (True, 0, -1, 1 << 40, 0.5, float("nan"), "", "U", (), (1, 2), (0.5,), (False,))
#: constants are made no larger than this when their size changes
MAX_BYTES = 1 << 16
_LIKE: dict[tuple[str, ...], list[TensorOp]] = {}
for _row in ROWS:
    _LIKE.setdefault(tuple(kind for _, kind in _row.fields), []).append(_row)


def _payloads(program: writer.Program) -> list[tuple[int, int]]:
    """(executable, variant) of each payload."""
    return [
        (at, place)
        for at, row in enumerate(program.executables)
        for place, variant in enumerate(row.variants)
        if variant.format == FORMAT
    ]


def _decode(variant: writer.Variant) -> tuple[EntryCode, ...]:
    try:
        entries = tensor_encoding.decode(bytes(variant.payload)).entries
    except ModuleError:
        raise Impossible from None
    if not entries:
        raise Impossible
    return entries


def _encode(entries: list[EntryCode]) -> bytes:
    try:
        return tensor_encoding.encode(entries)
    except (struct.error, IndexError, StopIteration):  # what does not fit its field, such as a rank of 65
        raise Impossible from None


def _with_payload(program: writer.Program, place: tuple[int, int], payload: bytes) -> writer.Program:
    at, number = place
    executables = list(program.executables)
    variants = list(executables[at].variants)
    variants[number] = replace(variants[number], payload=payload)
    executables[at] = replace(executables[at], variants=tuple(variants))
    return replace(program, executables=tuple(executables))


def _in_payload(choose: random.Random, module: writer.Module, change: Any) -> writer.Module:
    def in_one(program: writer.Program) -> writer.Program:
        places = _payloads(program)
        if not places:
            raise Impossible
        place = choose.choice(places)
        return _with_payload(program, place, change(program.executables[place[0]].variants[place[1]]))

    return in_program(choose, module, in_one)


def raw(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    def change(variant: writer.Variant) -> bytes:
        payload = bytes(variant.payload)
        if choose.random() < 0.2:
            return payload[: choose.randrange(len(payload) + 1)]
        return damaged(choose, payload)

    return _in_payload(choose, module, change)


def instructions(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    """Instructions changed, removed, doubled, moved, swapped; whatever they mean then."""

    def change(variant: writer.Variant) -> bytes:
        entries = list(_decode(variant))
        entry = choose.choice(entries)
        for _ in range(choose.choice((1, 1, 2))):
            code = _some_code(choose, entry)
            if not code.instructions or choose.random() < 0.2:
                code.instructions[:] = edited(choose, tuple(code.instructions))
            else:
                at = choose.randrange(len(code.instructions))
                code.instructions[at] = _changed(choose, code.instructions[at], len(code.values))
        if choose.random() < 0.05:
            entries = list(edited(choose, tuple(entries)))
        return _encode(entries)

    return _in_payload(choose, module, change)


def _some_code(choose: random.Random, entry: EntryCode) -> Code:
    """The entry, or a body in it."""
    bodies = [a for one in entry.instructions for a in one.attributes if isinstance(a, Body)]
    return choose.choice(bodies) if bodies and choose.random() < 0.4 else entry


def _changed(choose: random.Random, one: Instruction, values: int) -> Instruction:
    row, operands, attributes = one.row, list(one.operands), list(one.attributes)
    kinds = tuple(kind for _, kind in row.fields)
    pick = choose.randrange(4)
    if pick == 0:
        row = choose.choice(_LIKE[kinds])
    elif pick == 1 and operands:
        at = choose.randrange(len(operands))
        if "values" in kinds and choose.random() < 0.4:
            operands = list(edited(choose, tuple(operands)))
        else:
            operands[at] = choose.randrange(values + 1)
    elif attributes:
        at = choose.randrange(len(attributes))
        attributes[at] = _attribute(choose, row.attributes[at][1], attributes[at])
    return Instruction(row, tuple(operands), tuple(attributes), one.first, one.types)


def _attribute(choose: random.Random, kind: str, old: Any) -> Any:
    match kind:
        case "binding" | "axis":
            return choose.choice((old + 1, max(0, old - 1), 0, 0xFFFF))
        case "dtype":
            return choose.choice(COMPUTED)
        case "type" if choose.random() < 0.3:
            return TensorType(choose.choice(COMPUTED), old.shape)
        case "type":
            return TensorType(old.dtype, _ints(choose, old.shape))
        case "ints":
            return _ints(choose, old)
        case "types":
            return tuple([_attribute(choose, "type", one) for one in edited(choose, old)])
        case "function":
            return choose.choice(
                (*FUNCTIONS, old[:-1], old.partition(".")[0], damaged(choose, old.encode()).decode("latin1"))
            )
        case "named":
            return _named(choose, old)
        case "data":
            return choose.choice((old[:-1], old + b"\0", damaged(choose, old) if old else b"\2"))
        case _:
            body = Body(old.parameters)
            body.instructions = list(old.instructions)
            body.results = edited(choose, old.results)
            return body


def _named(choose: random.Random, old: Attributes) -> Attributes:
    """One attribute more, or other values."""
    keys = sorted({*dict(old), choose.choice(("alpha", "beta", "trans_a", "lower", "x"))})
    return tuple((key, dict(old).get(key, True) if choose.random() < 0.5 else choose.choice(VALUES)) for key in keys)


def _ints(choose: random.Random, old: tuple[int, ...]) -> tuple[int, ...]:
    if not old or choose.random() < 0.3:
        return (*old, size(choose)) if not old or choose.random() < 0.5 else edited(choose, old)
    place = choose.randrange(len(old))
    number = size(choose, old[place]) if choose.random() < 0.7 else signed(choose, 64, old[place])
    return (*old[:place], number, *old[place + 1 :])


def resize(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    """One dimension becomes another wherever it stands, and so do the lengths that follow from it."""

    def change(program: writer.Program) -> writer.Program:
        places = _payloads(program)
        decoded = [_decode(program.executables[at].variants[number]) for at, number in places]
        sizes = sorted({n for entries in decoded for entry in entries for n in _sizes(entry)})
        if not sizes:
            raise Impossible
        old = choose.choice(sizes)
        new = sizes_new[0] = size(choose, old)
        sizes_old[0] = old
        lengths = {old: new}
        for (at, number), entries in zip(places, decoded, strict=True):
            fresh = [_resized(entry, old, new) for entry in entries]
            for before, after in zip(entries, fresh, strict=True):
                lengths |= {a[1]: b[1] for a, b in zip(before.accesses, after.accesses, strict=True) if a[1] != b[1]}
            program = _with_payload(program, (at, number), _encode(fresh))
        return _relength(program, lengths, old, new)

    sizes_old, sizes_new = [0], [0]
    changed = in_program(choose, module, change)
    return _redim(changed, sizes_old[0], sizes_new[0])


def _sizes(code: Code) -> set[int]:
    found = {n for value in code.values for n in value.shape}
    for one in code.instructions:
        for attribute in one.attributes:
            if isinstance(attribute, TensorType):
                found.update(attribute.shape)
            if isinstance(attribute, tuple):
                found.update(n for one in attribute if isinstance(one, TensorType) for n in one.shape)
    return found


def _resized(entry: EntryCode, old: int, new: int) -> EntryCode:
    """With each instruction where the rules allow it, so that sizes are right as far as they can be."""
    fresh = EntryCode(len(entry.accesses))
    try:
        for one in entry.instructions:
            fresh.append(
                one.row, one.operands, tuple(_substituted(one, at, old, new) for at in range(len(one.attributes)))
            )
    except ShapeError:
        fresh.instructions += entry.instructions[len(fresh.instructions) :]
    return fresh


def _substituted(one: Instruction, at: int, old: int, new: int) -> Any:
    value, kind = one.attributes[at], one.row.attributes[at]
    if kind[1] == "type":
        return TensorType(value.dtype, tuple(new if n == old else n for n in value.shape))
    if kind[1] == "types":
        return tuple(TensorType(t.dtype, tuple(new if n == old else n for n in t.shape)) for t in value)
    if kind[1] == "data":
        fresh = _substituted(one, at - 1, old, new)
        return value if fresh.bytes > MAX_BYTES else (value * (fresh.bytes // max(1, len(value)) + 1))[: fresh.bytes]
    if kind[1] == "ints" and kind[0] in ("shape", "limits", "whole"):
        return tuple(new if n == old else n for n in value)
    return value


def _relength(program: writer.Program, lengths: dict[int, int], old: int, new: int) -> writer.Program:
    """Lengths of bindings, of constants, and in the code."""

    def entry(row: writer.Entry) -> writer.Entry:
        return replace(
            row,
            bindings=tuple(
                replace(one, length=min(2**63 - 1, lengths.get(one.length, one.length))) for one in row.bindings
            ),
        )

    def function(row: writer.Function) -> writer.Function:
        lines = [
            (op, (lengths.get(operands[0], operands[0]), *operands[1:])) if op.name == "i64.const" else (op, operands)
            for op, operands in read_code(row)
        ]
        return replace(row, bytecode=write_code(lines))

    def constant(row: writer.Constant) -> writer.Constant:
        dims = tuple(new if n == old else n for n in row.dims)
        data, total = bytes(row.data), TensorType(row.dtype, dims).bytes
        if dims == tuple(row.dims) or total > MAX_BYTES:
            return row
        return replace(row, dims=dims, data=(data * (total // max(1, len(data)) + 1))[:total])

    return replace(
        program,
        executables=tuple(
            replace(row, entries=tuple(entry(one) for one in row.entries)) for row in program.executables
        ),
        functions=tuple(function(row) for row in program.functions),
        constants=tuple(constant(row) for row in program.constants),
    )


def _redim(module: writer.Module, old: int, new: int) -> writer.Module:
    def value(row: writer.Value) -> writer.Value:
        return replace(row, dims=tuple(new if n == old else n for n in row.dims))

    return replace(
        module,
        exports=tuple(
            replace(row, arguments=tuple(map(value, row.arguments)), results=tuple(map(value, row.results)))
            for row in module.exports
        ),
    )
