"""Encodes instructions as bytecode and decodes them, using the rows of `isa.py`.

- An instruction is its opcode (u16, little endian) and its operands in the order of the row. All sizes are even.
- Python values: a register, ordinal or branch target is an int (a moved ref has `MOVE_BIT`); an integer immediate is a
  signed int; a float immediate is its bits as an int; `targets` and `registers` are tuples; `text` is a str.
- `decode` checks the form (known opcodes, complete operands, UTF-8 text), not the meaning: that is `vm/verifier.py`.
- Each instruction has exactly one encoding, so decode and encode are inverse.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from .errors import ModuleError
from .isa import INSTRUCTIONS, KINDS, Instruction

Operand = int | str | tuple[int, ...]

#: operand kind of fixed width -> struct code
_FORMATS = {
    "i32": "H",
    "i64": "H",
    "f32": "H",
    "f64": "H",
    "ref": "H",
    "imm_i32": "i",
    "imm_i64": "q",
    "imm_f32": "I",
    "imm_f64": "Q",
    "function": "I",
    "import": "I",
    "global": "I",
    "constant": "I",
    "target": "I",
}
_WIDE_IMMEDIATES = {"imm_i32": 32, "imm_i64": 64}


class Decoded(NamedTuple):
    """One instruction at byte `pc` of its function."""

    pc: int
    row: Instruction
    operands: tuple[Operand, ...]


class _Form(NamedTuple):
    """The memory layout of one row: opcode and fixed operands, then the variable-length ones (`tail`)."""

    row: Instruction
    fixed: struct.Struct  #: opcode and fixed operands
    operands: struct.Struct  #: the fixed operands alone
    tail: tuple[str, ...]
    halves: int  #: number of 16-bit units of opcode and fixed operands
    plain: bool  #: whether every operand is a register


def _form(row: Instruction) -> _Form:
    fixed = [operand.kind for operand in row.operands if KINDS[operand.kind] is not None]
    tail = tuple(operand.kind for operand in row.operands if KINDS[operand.kind] is None)
    plain = not tail and all(_FORMATS[kind] == "H" for kind in fixed)
    layout = "".join(_FORMATS[kind] for kind in fixed)
    whole = struct.Struct("<H" + layout)
    return _Form(row, whole, struct.Struct("<" + layout), tail, whole.size // 2, plain)


_CALL = ("registers", "registers")
_FORMS: dict[int, _Form] = {row.opcode: _form(row) for row in INSTRUCTIONS}
#: opcode -> row, 16-bit units of opcode and fixed operands, their decoder (None if all are registers), kinds of the
#: tail
READERS: dict[int, tuple[Instruction, int, Callable[..., tuple[Any, ...]] | None, tuple[str, ...]]] = {
    opcode: (
        form.row,
        form.halves,
        None if form.plain else form.operands.unpack_from,
        _CALL if form.tail == _CALL else form.tail,
    )
    for opcode, form in _FORMS.items()
}
#: three times as fast as the constructor of the named tuple
_decoded = partial(tuple.__new__, Decoded)


def encode(row: Instruction, operands: Sequence[Operand]) -> bytes:
    """The bytes of one instruction. Raises ValueError if an operand does not fit its kind."""
    if len(operands) != len(row.operands):
        raise ValueError(f"{row.name}: {len(operands)} operands, {len(row.operands)} wanted")
    form = _FORMS[row.opcode]
    count = len(operands) - len(form.tail)
    fixed = [_wrapped(spec.kind, value) for spec, value in zip(row.operands[:count], operands, strict=False)]
    try:
        head = form.fixed.pack(row.opcode, *fixed)
        return head + b"".join(
            _encode_tail(kind, value) for kind, value in zip(form.tail, operands[count:], strict=True)
        )
    except (struct.error, UnicodeEncodeError, TypeError) as error:
        raise ValueError(f"{row.name} {tuple(operands)}: {error}") from error


def _wrapped(kind: str, value: Operand) -> Operand:
    """Integer immediates may be given as unsigned numbers."""
    bits = _WIDE_IMMEDIATES.get(kind)
    if bits is None or not isinstance(value, int):
        return value
    return value - (1 << bits) if 1 << (bits - 1) <= value < 1 << bits else value


def _encode_tail(kind: str, value: Operand) -> bytes:
    if kind == "text":
        data = str(value).encode()
        return struct.pack("<H", len(data)) + data + bytes(len(data) % 2)
    if not isinstance(value, tuple):
        raise TypeError(f"{value!r} where {kind} are wanted")
    if kind == "targets":
        return struct.pack(f"<{1 + len(value)}I", len(value), *value)
    return struct.pack(f"<{1 + len(value)}H", len(value), *value)


def encode_all(instructions: Iterable[tuple[Instruction, Sequence[Operand]]]) -> bytes:
    """The bytes of a function."""
    return b"".join(encode(row, operands) for row, operands in instructions)


def size(row: Instruction, operands: Sequence[Operand]) -> int:
    """The number of bytes that `encode` returns. The values of branch targets do not matter, only their number."""
    form = _FORMS[row.opcode]
    total = form.fixed.size
    for kind, value in zip(form.tail, operands[len(operands) - len(form.tail) :], strict=True):
        if kind == "text":
            length = len(str(value).encode())
            total += 2 + length + length % 2
        elif isinstance(value, tuple):
            total += 4 + 4 * len(value) if kind == "targets" else 2 + 2 * len(value)
    return total


def decode(code: bytes | memoryview, where: str = "bytecode") -> list[Decoded]:
    """The instructions of one function, in order. Raises ModuleError with the position; `where` names the function."""
    end = len(code)
    if end % 2:
        raise ModuleError(f"{where}: {end} bytes of bytecode, an even count wanted")
    count = end // 2
    halves = struct.unpack(f"<{count}H", code)
    found: list[tuple[int, Instruction, tuple[Operand, ...]]] = []
    readers = READERS
    at = 0
    while at < count:
        reader = readers.get(halves[at])
        if reader is None:
            raise ModuleError(f"{where} pc {2 * at:#x}: unknown opcode {halves[at]:#06x}")
        row, width, unpack, tail = reader
        after = at + width
        if after > count:
            raise _truncated(where, 2 * at, row)
        operands: tuple[Operand, ...] = halves[at + 1 : after] if unpack is None else unpack(code, 2 * at + 2)
        if tail is _CALL and after < count:
            # two register lists: the most common form
            middle = after + halves[after] + 1
            last = middle + halves[middle] + 1 if middle < count else count + 1
            operands += halves[after + 1 : middle], halves[middle + 1 : last]
            after = last
        else:
            for kind in tail:
                value, after = _counted(kind, code, halves, after, f"{where} pc {2 * at:#x}")
                operands += (value,)
        if after > count:
            raise _truncated(where, 2 * at, row)
        found.append((2 * at, row, operands))
        at = after
    return list(map(_decoded, found))


def _truncated(where: str, pc: int, row: Instruction) -> ModuleError:
    return ModuleError(f"{where} pc {pc:#x}: the code ends inside {row.name}")


def _counted(kind: str, code: bytes | memoryview, halves: tuple[int, ...], at: int, where: str) -> tuple[Operand, int]:
    """Returns a variable-length operand and the position after it, which exceeds the code if the code ends inside of
    it.
    """
    beyond = len(halves) + 1
    start = at + (2 if kind == "targets" else 1)
    if start > len(halves):
        return (), beyond
    if kind == "registers":
        return halves[start : start + halves[at]], start + halves[at]
    if kind == "targets":
        count = halves[at] | halves[at + 1] << 16
        if start + 2 * count > len(halves):
            return (), beyond
        return struct.unpack_from(f"<{count}I", code, 2 * start), start + 2 * count
    count = halves[at]
    after = start + (count + 1) // 2
    if after > len(halves):
        return (), beyond
    return _text(code, 2 * start, count, where), after


def _text(code: bytes | memoryview, start: int, count: int, where: str) -> str:
    if count % 2 and code[start + count]:
        raise ModuleError(f"{where}: the padding of the text is {code[start + count]:#04x}, 0 wanted")
    try:
        return bytes(code[start : start + count]).decode()
    except UnicodeDecodeError as error:
        raise ModuleError(f"{where}: the text is not UTF-8: {error.reason}") from error


def float_of_bits(bits: int, kind: str) -> float:
    """The value of f32 or f64 bits as a Python float. A NaN keeps sign and payload, and a signalling NaN stays
    signalling.
    """
    if kind == "f64":
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    if bits & 0x7F800000 == 0x7F800000 and bits & 0x007FFFFF:
        return float_of_bits((bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x007FFFFF) << 29, "f64")
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def bits_of_float(value: float, kind: str) -> int:
    """The bits of a Python float that is an f64, or exactly an f32; the inverse of `float_of_bits`."""
    if kind == "f64":
        return int.from_bytes(struct.pack("<d", value), "little")
    if value == value:
        return int.from_bytes(struct.pack("<f", value), "little")
    bits = bits_of_float(value, "f64")
    return (bits >> 63) << 31 | 0x7F800000 | (bits >> 29) & 0x007FFFFF
