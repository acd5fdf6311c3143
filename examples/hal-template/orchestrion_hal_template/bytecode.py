"""The format `template-lanes`: its instructions, and the decoder that verifies them.

A payload is the magic `LANE` and 32-bit words, little endian: the version, the number of entries, and the entries. An
entry is the number of its parameter words, its workgroup size in three words, the number of its registers and the
element type of each, the number of its shared arrays and the element type and length of each, and code that ends with
`end`. The first registers have the type `ui32` and initially hold the linear index of the workgroup, that of the
invocation in it, and the parameter words; the others hold zero. An instruction is a word, `op | operands << 16`, and
its operands:

| op | operands | |
| --- | --- | --- |
| `constant` | result, low word, high word | the value's bits |
| `load` | result, index, memory | an element; a memory is the number of a binding or, after those, of a shared array |
| `store` | value, index, memory | |
| `move` | result, value | |
| `for` | index, lower, upper, step | runs the code up to its `end` while the index is below `upper` |
| others | result, operands | the op of that name in `schema.scalars` |
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from orchestrion.hal.backend import Entry
from orchestrion.schema.dtypes import BY_CODE, DType
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.scalars import BY_NAME as SCALAR

MAGIC, VERSION, MAX_DEPTH, MAX_REGISTERS = b"LANE", 1, 32, 1 << 16
#: op -> its operands: T, registers of one type; I, registers of one index type; m, a memory; n, any number
CONTROL = {"end": "", "for": "IIII", "constant": "Tnn", "load": "TIm", "store": "TIm", "move": "TT"}
NAMES = (*CONTROL, *SCALAR)


class Row(NamedTuple):
    """One instruction. A `for` has a `body`."""

    op: str
    operands: tuple[int, ...]
    body: list["Row"] | None = None


class Code(NamedTuple):
    """A verified entry: its instructions, the types of its registers, and the types and lengths of its
    shared arrays.
    """

    rows: list[Row]
    registers: list[DType]
    arrays: list[tuple[DType, int]]


def decode(data: memoryview, entries: Sequence[Entry], shared_limit: int) -> list[Code]:
    """Decodes and verifies the code of each entry.

    Raises:
        ModuleError: The code is invalid; the error names the reason and the byte.
    """
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
        self.check(len(known) == len(codes), "a register or shared array of a type that has no arithmetic")
        return known

    def code(self, entry: Entry) -> Code:
        self.entry = entry
        words, x, y, z, count = self.take(5)
        self.check((words, (x, y, z)) == (entry.parameter_words, entry.workgroup_size), "made for another entry")
        self.check(count <= MAX_REGISTERS, f"{count} registers, {MAX_REGISTERS} at most")
        self.registers = self.dtypes(self.take(count))
        self.check([row.name for row in self.registers[: 2 + words]] == ["ui32"] * (2 + words), "no index registers")
        (count,) = self.take(1)
        pairs = self.take(2 * count)
        self.arrays = list(zip(self.dtypes(pairs[::2]), pairs[1::2], strict=True))
        shared = sum(dtype.itemsize * length for dtype, length in self.arrays)
        self.check(shared <= self.shared_limit, f"{shared} bytes of shared memory, {self.shared_limit} at most")
        return Code(self.block(0), self.registers, self.arrays)

    def block(self, depth: int) -> list[Row]:
        self.check(depth <= MAX_DEPTH, f"more than {MAX_DEPTH} loops inside each other")
        rows: list[Row] = []
        while True:
            (word,) = self.take(1)
            op, operands = word & 0xFFFF, self.take(word >> 16)
            self.check(op < len(NAMES), f"no op {op}")
            name = NAMES[op]
            self.check(self.fits(name, operands), f"{name} does not take {operands}")
            if name == "end":
                return rows
            rows.append(Row(name, operands, self.block(depth + 1) if name == "for" else None))

    def fits(self, op: str, operands: tuple[int, ...]) -> bool:
        """Whether the op has these operands: their number, and the types of their registers."""
        kinds = CONTROL.get(op, "T" * len(operands))
        places = [operand for operand, kind in zip(operands, kinds, strict=False) if kind in "TI"]
        if len(kinds) != len(operands) or any(place >= len(self.registers) for place in places):
            return False
        types = [self.registers[place] for place in places]
        if op in SCALAR:
            return bool(types) and SCALAR[op].accepts(types[1:], types[0])
        values, indices = (
            [self.registers[x] for x, kind in zip(operands, kinds, strict=True) if kind == want] for want in "TI"
        )
        of_one_type = len(set(values)) <= 1 and len(set(indices)) <= 1
        index_fits = all(dtype.name in ("ui32", "ui64") for dtype in indices)
        return of_one_type and index_fits and ("m" not in kinds or self.may_access(op, operands[2], types[0]))

    def may_access(self, op: str, memory: int, dtype: DType) -> bool:
        """Whether the memory exists, holds elements of the type, and may be written if the op is a store."""
        bindings = self.entry.bindings
        if memory < len(bindings):
            return op == "load" or bindings[memory][0] != "read"
        return memory < len(bindings) + len(self.arrays) and self.arrays[memory - len(bindings)][0] is dtype
