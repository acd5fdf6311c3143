"""The format `template-lanes`: its instructions, and the decoder that verifies them.

A payload is the magic `LANE` and 32-bit words, little endian: the version, the number of entries, and the entries. An
entry is the number of its registers and the element type of each, the number of its shared arrays and the element type
and length of each, and code that ends with `end`. An instruction is a word, `op | operands << 16`, and its operands, of
which the first register is the result, but for `store` and `if`. Registers hold zero at first.

| op | operands | |
| --- | --- | --- |
| `constant` | result, low word, high word | the bits |
| `parameter` | result, number | a word of the dispatch |
| `workgroup_id`, `local_id` | result | linear index |
| `load` | result, index, memory | an element; a memory is a binding or, behind those, a shared array |
| `store` | value, index, memory | |
| `move` | result, value | |
| `for` | index, lower, upper, step | the code up to `end`, while the index is below |
| `if` | condition | the code up to `else` or that up to `end` |
| others | result, operands | the row of `schema.scalars` of that name |
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from orchestrion.hal.backend import Entry
from orchestrion.schema.dtypes import BY_CODE, DType
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.scalars import BY_NAME as SCALAR

MAGIC, VERSION = b"LANE", 1
MOST_DEPTH, MOST_REGISTERS = 32, 1 << 16
#: op -> its operands: T, a register, all of one type; I, those of an index; B, of an i1; W, of a ui32; m, a memory;
#: p, the number of a parameter word; n, any number
CONTROL = {
    "else": "", "end": "", "for": "IIII", "if": "B", "constant": "Tnn", "parameter": "Wp", "workgroup_id": "I",
    "local_id": "I", "load": "TIm", "store": "TIm", "move": "TT",
}  # fmt: skip
NAMES = (*CONTROL, *SCALAR)
INDEX = ("ui32", "ui64")


class Row(NamedTuple):
    """One instruction, with the body of a loop or both arms of a branch."""

    op: str
    operands: tuple[int, ...]
    blocks: tuple[list["Row"], ...] = ()


class Code(NamedTuple):
    """A verified entry: its instructions, the types of its registers, types and lengths of its shared arrays."""

    rows: list[Row]
    registers: list[DType]
    arrays: list[tuple[DType, int]]


def decode(data: memoryview, entries: Sequence[Entry], shared_limit: int) -> list[Code]:
    """Verified code for each entry. `ModuleError` says what is wrong, and at which byte."""
    if data.nbytes % 4 or bytes(data[:4]) != MAGIC:
        raise ModuleError("template-lanes: no magic, or not whole words", 0)
    reader = _Reader(np.frombuffer(data, "<u4").tolist(), shared_limit)
    version, count = reader.take(2)
    reader.check(version == VERSION and count == len(entries), f"version {version} with {count} entries")
    codes = [reader.code(entry) for entry in entries]
    reader.check(reader.at == len(reader.words), "words behind the last entry")
    return codes


class _Reader:
    def __init__(self, words: list[int], shared_limit: int) -> None:
        self.words, self.at, self.shared_limit = words, 1, shared_limit

    def check(self, holds: bool, message: str) -> None:
        if not holds:
            raise ModuleError(f"template-lanes: {message}", 4 * self.at)

    def take(self, count: int) -> tuple[int, ...]:
        self.check(self.at + count <= len(self.words), "truncated")
        self.at += count
        return tuple(self.words[self.at - count : self.at])

    def dtypes(self, codes: Sequence[int]) -> list[DType]:
        known = [BY_CODE[code] for code in codes if code in BY_CODE and BY_CODE[code].computed]
        self.check(len(known) == len(codes), "an element type that devices do not compute on")
        return known

    def code(self, entry: Entry) -> Code:
        self.entry = entry
        (count,) = self.take(1)
        self.check(count <= MOST_REGISTERS, f"{count} registers, {MOST_REGISTERS} at most")
        self.registers = self.dtypes(self.take(count))
        (count,) = self.take(1)
        pairs = self.take(2 * count)
        self.arrays = list(zip(self.dtypes(pairs[::2]), pairs[1::2], strict=True))
        shared = sum(dtype.itemsize * length for dtype, length in self.arrays)
        self.check(shared <= self.shared_limit, f"{shared} bytes of shared memory, {self.shared_limit} at most")
        return Code(self.block(0, "end"), self.registers, self.arrays)

    def block(self, depth: int, last: str) -> list[Row]:
        self.check(depth <= MOST_DEPTH, f"more than {MOST_DEPTH} loops and branches inside each other")
        rows: list[Row] = []
        while True:
            (word,) = self.take(1)
            op, operands = word & 0xFFFF, self.take(word >> 16)
            self.check(op < len(NAMES), f"no op {op}")
            name = NAMES[op]
            self.check(self.fits(name, operands), f"{name} does not take {operands}")
            if name in ("else", "end"):
                self.check(name == last, f"{name} where {last} belongs")
                return rows
            ends = {"for": ["end"], "if": ["else", "end"]}.get(name, [])
            rows.append(Row(name, operands, tuple(self.block(depth + 1, end) for end in ends)))

    def fits(self, op: str, operands: tuple[int, ...]) -> bool:
        """Whether the operands are there and of the types that the op takes."""
        kinds = CONTROL.get(op, "T" * len(operands))
        if len(kinds) != len(operands):
            return False
        places = [operand for operand, kind in zip(operands, kinds, strict=True) if kind in "TIBW"]
        if any(place >= len(self.registers) for place in places):
            return False
        types = [self.registers[place] for place in places]
        if op in SCALAR:
            return bool(types) and SCALAR[op].accepts(types[1:], types[0])
        return all(self.fits_kind(kind, operand, op, types[0]) for kind, operand in zip(kinds, operands, strict=True)) and (
            len({dtype for dtype, kind in zip(types, kinds, strict=False) if kind == kinds[0]}) <= 1
        )

    def fits_kind(self, kind: str, operand: int, op: str, subject: DType) -> bool:
        match kind:
            case "I" | "B" | "W":
                return self.registers[operand].name in {"I": INDEX, "B": ("i1",), "W": ("ui32",)}[kind]
            case "p":
                return operand < self.entry.parameter_words
            case "m" if operand >= len(self.entry.bindings):
                array = operand - len(self.entry.bindings)
                return array < len(self.arrays) and self.arrays[array][0] is subject
            case "m":
                return op == "load" or self.entry.bindings[operand][0] != "read"
            case _:
                return True
