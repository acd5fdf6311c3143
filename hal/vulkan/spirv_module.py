"""A verified SPIR-V module as lists of instructions, for rewrites by the loader before the driver gets it.

A rewrite is a subclass that changes the bodies of functions and adds types, constants and variables; `code` then gives
the words. Nothing is checked again. Time is linear in the words.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrion.schema.spirv import DECORATIONS, EXT_INST_SET, OP_BY_NAME

HEADER_WORDS = 5
BOUND = 3

#: opcodes by name, and those that only the loader writes
CODES = {name: row.code for name, row in OP_BY_NAME.items()}
CONSTANT_NULL, ARRAY_LENGTH = 46, 68
_SCALARS = tuple(CODES[name] for name in ("OpTypeInt", "OpTypeFloat", "OpTypeBool"))

Instruction = list[int]


@dataclass(slots=True)
class Function:
    """One entry: its id, its instructions, and the additions to the start of its first block."""

    id: int
    body: list[Instruction]
    prologue: list[Instruction] = field(default_factory=list)  #: blocks before the first one
    first: list[Instruction] = field(default_factory=list)  #: new instructions at the start of the first block

    def reached(self) -> set[int]:
        """The variables that its access chains refer to."""
        return {row[3] for row in self.body if row[0] == CODES["OpAccessChain"]}


class EditableModule:
    """A verified module, parsed. Instructions are [opcode, operand words...]."""

    def __init__(self, code: memoryview | bytes) -> None:
        words = struct.unpack(f"<{len(code) // 4}I", code)
        self._header: list[int] = list(words[:HEADER_WORDS])
        self._globals: list[Instruction] = []
        self._functions: list[Function] = []
        self._declared: dict[tuple[int, ...], int] = {}  # type or constant without its id -> its id
        self._types: dict[int, Instruction] = {}
        self._added: list[Instruction] = []  # types, constants and variables, behind those that are there
        self._entries: dict[int, Instruction] = {}
        self._sizes: dict[int, int] = {}
        self._variables: dict[int, Instruction] = {}
        self._builtins: dict[int, int] = {}
        self._set = 0
        self._read(words)

    # reading

    def _read(self, words: Sequence[int]) -> None:
        at, inside = HEADER_WORDS, False
        while at < len(words):
            count = words[at] >> 16
            instruction = [words[at] & 0xFFFF, *words[at + 1 : at + count]]
            at += count
            if instruction[0] == CODES["OpFunction"]:
                inside = True
                self._functions.append(Function(instruction[2], []))
            if inside:
                self._functions[-1].body.append(instruction)
            else:
                self._globals.append(instruction)
                self._note(instruction)

    def _note(self, instruction: Instruction) -> None:
        code, *operands = instruction
        if code == CODES["OpEntryPoint"]:
            self._entries[operands[1]] = instruction
        elif code == CODES["OpExecutionMode"]:
            x, y, z = operands[2:]
            self._sizes[operands[0]] = x * y * z
        elif code == CODES["OpVariable"]:
            self._variables[operands[1]] = instruction
        elif code == CODES["OpDecorate"] and operands[1] == DECORATIONS["BuiltIn"][0]:
            self._builtins[operands[2]] = operands[0]
        elif code == CODES["OpExtInstImport"]:
            self._set = operands[0]
        elif code == CODES["OpConstant"]:
            self._declared[code, operands[0], *operands[2:]] = operands[1]
        elif code in _SCALARS or code == CODES["OpTypePointer"]:
            self._declared[code, *operands[1:]] = operands[0]
        if code in (CODES["OpTypePointer"], CODES["OpTypeArray"], CODES["OpTypeInt"]):
            self._types[operands[0]] = instruction

    # writing

    def code(self) -> bytes:
        """The words, little endian."""
        words = list(self._header)
        for instruction in (*self._globals, *self._added):
            _append(words, instruction)
        for function in self._functions:
            for position, instruction in enumerate(function.body):
                if position == 1:  # after OpFunction, before the first label
                    for added in function.prologue:
                        _append(words, added)
                _append(words, instruction)
                if position == 1:
                    for added in function.first:
                        _append(words, added)
        return struct.pack(f"<{len(words)}I", *words)

    def _new(self) -> int:
        self._header[BOUND] += 1
        return self._header[BOUND] - 1

    def _type(self, name: str, *operands: int) -> int:
        key = (CODES[name], *operands)
        if key not in self._declared:
            made = self._declared[key] = self._new()
            self._added.append([key[0], made, *operands])
        return self._declared[key]

    def _u32(self) -> int:
        return self._type("OpTypeInt", 32, 0)

    def _constant(self, value: int, type: int | None = None) -> int:
        """A constant of one word, u32 unless `type` is another."""
        key = (CODES["OpConstant"], self._u32() if type is None else type, value)
        if key not in self._declared:
            made = self._declared[key] = self._new()
            self._added.append([key[0], key[1], made, value])
        return self._declared[key]

    def _of_type(self, type: int, function: Function) -> set[int]:
        """The constants and values of a type that a function may use."""
        rows = (*self._globals, *function.body)
        return {row[2] for row in rows if len(row) > 2 and row[1] == type and row[0] not in _SCALARS}

    def _null(self, type: int) -> int:
        made = self._new()
        self._added.append([CONSTANT_NULL, type, made])
        return made

    def _extended(self) -> int:
        """The id of the set of extended instructions."""
        if not self._set:
            self._set = self._new()
            data = EXT_INST_SET.encode() + b"\0" * (4 - len(EXT_INST_SET) % 4)
            row = [CODES["OpExtInstImport"], self._set, *struct.unpack(f"<{len(data) // 4}I", data)]
            self._insert_before("OpMemoryModel", row)
        return self._set

    def _insert_before(self, name: str, row: Instruction) -> None:
        codes = [instruction[0] for instruction in self._globals]
        self._globals.insert(codes.index(CODES[name]), row)

    def _decorate(self, *operands: int) -> None:
        """Insert after the last decoration, or after the execution modes if there is none."""
        before = [CODES[name] for name in ("OpExecutionMode", "OpDecorate", "OpMemberDecorate")]
        last = max(position for position, row in enumerate(self._globals) if row[0] in before)
        self._globals.insert(last + 1, [CODES["OpDecorate"], *operands])


def _append(words: list[int], instruction: Instruction) -> None:
    words.append(len(instruction) << 16 | instruction[0])
    words.extend(instruction[1:])
