"""Adds to verified SPIR-V the protections that the device lacks, before the driver gets it.

- **Workgroup memory is cleared**, so that no workgroup reads what another workgroup, or another program, left there. If
  the device supports it (`shaderZeroInitializeWorkgroupMemory`), each workgroup variable that an entry uses gets a null
  initializer. Otherwise each entry begins with loops that store zeros, and a barrier. Unused variables stay unchanged,
  because drivers take time and memory for each null.
- **Indices into storage buffers are clamped** to the length of their binding, on devices without robust buffer access
  2. An access past the end then reads or writes the last element. The last index of a binding is computed once per
  entry. It is 0 for a binding shorter than one element; the caller refuses such bindings with `element_bytes` of the
  summary.

Both are added after the check, so that the checker does not know them, and devices with the features pay nothing.
Modules that need neither are returned unchanged. Time is linear in the words.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from orchestrion.schema.spirv import (
    BUILTINS,
    DECORATIONS,
    EXT_BY_NAME,
    EXT_INST_SET,
    OP_BY_NAME,
    SCOPE_WORKGROUP,
    STORAGE_CLASSES,
    WORKGROUP_MEMORY,
)

HEADER_WORDS = 5
BOUND = 3

#: instructions that only the loader writes
CONSTANT_NULL, ARRAY_LENGTH = 46, 68
_CODES = {name: row.code for name, row in OP_BY_NAME.items()}
_UMIN = EXT_BY_NAME["UMin"].code
_INPUT, _WORKGROUP, _STORAGE = (STORAGE_CLASSES[name] for name in ("Input", "Workgroup", "StorageBuffer"))
_LANE = "LocalInvocationIndex"

Instruction = list[int]


def harden(payload: memoryview | bytes, *, null_initializers: bool, clamp_buffers: bool, shared: bool) -> bytes:
    """Returns the words to build from a verified payload, little endian.

    `shared`: whether it has workgroup memory. `null_initializers`: the device supports null initializers of workgroup
    memory. `clamp_buffers`: the device lacks robust buffer access 2.
    """
    if not shared and not clamp_buffers:
        return bytes(payload)
    module = _Module(struct.unpack(f"<{len(payload) // 4}I", payload))
    if shared and null_initializers:
        module.initialize_shared()
    elif shared:
        module.clear_shared()
    if clamp_buffers:
        module.clamp_buffers()
    words = module.words()
    return struct.pack(f"<{len(words)}I", *words)


@dataclass(slots=True)
class _Function:
    """One entry: its id, its instructions, and the additions to the start of its first block."""

    id: int
    body: list[Instruction]
    prologue: list[Instruction] = field(default_factory=list)  #: blocks before the first one
    first: list[Instruction] = field(default_factory=list)  #: new instructions at the start of the first block

    def reached(self) -> set[int]:
        """The variables that its access chains refer to."""
        return {row[3] for row in self.body if row[0] == _CODES["OpAccessChain"]}


class _Module:
    """A verified module, parsed. Instructions are [opcode, operand words...]."""

    def __init__(self, words: Sequence[int]) -> None:
        self._header = list(words[:HEADER_WORDS])
        self._globals: list[Instruction] = []
        self._functions: list[_Function] = []
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
            if instruction[0] == _CODES["OpFunction"]:
                inside = True
                self._functions.append(_Function(instruction[2], []))
            if inside:
                self._functions[-1].body.append(instruction)
            else:
                self._globals.append(instruction)
                self._note(instruction)

    def _note(self, instruction: Instruction) -> None:
        code, *operands = instruction
        if code == _CODES["OpEntryPoint"]:
            self._entries[operands[1]] = instruction
        elif code == _CODES["OpExecutionMode"]:
            x, y, z = operands[2:]
            self._sizes[operands[0]] = x * y * z
        elif code == _CODES["OpVariable"]:
            self._variables[operands[1]] = instruction
        elif code == _CODES["OpDecorate"] and operands[1] == DECORATIONS["BuiltIn"][0]:
            self._builtins[operands[2]] = operands[0]
        elif code == _CODES["OpExtInstImport"]:
            self._set = operands[0]
        elif code == _CODES["OpConstant"]:
            self._declared[code, operands[0], *operands[2:]] = operands[1]
        elif code in (_CODES["OpTypeInt"], _CODES["OpTypeBool"], _CODES["OpTypePointer"]):
            self._declared[code, *operands[1:]] = operands[0]
        if code in (_CODES["OpTypePointer"], _CODES["OpTypeArray"], _CODES["OpTypeInt"]):
            self._types[operands[0]] = instruction

    # writing

    def words(self) -> list[int]:
        words = self._header
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
        return words

    def _new(self) -> int:
        self._header[BOUND] += 1
        return self._header[BOUND] - 1

    def _type(self, name: str, *operands: int) -> int:
        key = (_CODES[name], *operands)
        if key not in self._declared:
            made = self._declared[key] = self._new()
            self._added.append([key[0], made, *operands])
        return self._declared[key]

    def _u32(self) -> int:
        return self._type("OpTypeInt", 32, 0)

    def _constant(self, value: int) -> int:
        key = (_CODES["OpConstant"], self._u32(), value)
        if key not in self._declared:
            made = self._declared[key] = self._new()
            self._added.append([key[0], key[1], made, value])
        return self._declared[key]

    def _null(self, type: int) -> int:
        made = self._new()
        self._added.append([CONSTANT_NULL, type, made])
        return made

    def _extended(self) -> int:
        """The id of the set of extended instructions."""
        if not self._set:
            self._set = self._new()
            data = EXT_INST_SET.encode() + b"\0" * (4 - len(EXT_INST_SET) % 4)
            row = [_CODES["OpExtInstImport"], self._set, *struct.unpack(f"<{len(data) // 4}I", data)]
            self._insert_before("OpMemoryModel", row)
        return self._set

    def _insert_before(self, name: str, row: Instruction) -> None:
        codes = [instruction[0] for instruction in self._globals]
        self._globals.insert(codes.index(_CODES[name]), row)

    def _decorate(self, *operands: int) -> None:
        """Insert after the last decoration, or after the execution modes if there is none."""
        before = [_CODES[name] for name in ("OpExecutionMode", "OpDecorate", "OpMemberDecorate")]
        last = max(position for position, row in enumerate(self._globals) if row[0] in before)
        self._globals.insert(last + 1, [_CODES["OpDecorate"], *operands])

    # workgroup memory

    def _shared(self) -> Iterable[Instruction]:
        return [row for row in self._variables.values() if row[3] == _WORKGROUP]

    def _array(self, variable: Instruction) -> int:
        """The array type that a workgroup variable holds."""
        return self._types[variable[1]][3]

    def initialize_shared(self) -> None:
        """Add null initializers. A null must precede its variable, so both move to the end of the declarations."""
        used = {id for function in self._functions for id in function.reached()}
        nulls: dict[int, int] = {}
        for variable in self._shared():
            if variable[2] not in used:
                continue
            array = self._array(variable)
            if array not in nulls:
                nulls[array] = self._null(array)
            variable.append(nulls[array])
            self._globals.remove(variable)
            self._added.append(variable)

    def clear_shared(self) -> None:
        """Add loops that store zeros, and a barrier, at the start of each entry that uses workgroup memory."""
        for function in self._functions:
            used = function.reached()
            arrays = [row for row in self._shared() if row[2] in used]
            if arrays:
                self._clear(function, arrays)

    def _clear(self, function: _Function, arrays: Sequence[Instruction]) -> None:
        u32, lane, label = self._u32(), self._new(), self._new()
        out = function.prologue
        out.append([_CODES["OpLabel"], label])
        out.append([_CODES["OpLoad"], u32, lane, self._lane(function.id)])
        start = function.body[1][1]
        for position, variable in enumerate(arrays):
            after = start if position == len(arrays) - 1 else self._new()
            self._clear_array(out, variable, lane, label, after, self._constant(self._sizes[function.id]))
            if after != start:
                out.append([_CODES["OpLabel"], after])
            label = after
        scope = self._constant(SCOPE_WORKGROUP)
        function.first.append([_CODES["OpControlBarrier"], scope, scope, self._constant(WORKGROUP_MEMORY)])

    def _clear_array(
        self, out: list[Instruction], variable: Instruction, lane: int, before: int, after: int, step: int
    ) -> None:
        """for (i = lane; i < length; i += invocations) array[i] = 0, from block `before` to block `after`."""
        _, _, element, length = self._types[self._array(variable)]
        u32, bool_type = self._u32(), self._type("OpTypeBool")
        pointer, zero = self._type("OpTypePointer", _WORKGROUP, element), self._null(element)
        header, body, onward, index, inside, place, following = (self._new() for _ in range(7))
        out += [
            [_CODES["OpBranch"], header],
            [_CODES["OpLabel"], header],
            [_CODES["OpPhi"], u32, index, lane, before, following, onward],
            [_CODES["OpULessThan"], bool_type, inside, index, length],
            [_CODES["OpLoopMerge"], after, onward, 0],
            [_CODES["OpBranchConditional"], inside, body, after],
            [_CODES["OpLabel"], body],
            [_CODES["OpAccessChain"], pointer, place, variable[2], index],
            [_CODES["OpStore"], place, zero],
            [_CODES["OpBranch"], onward],
            [_CODES["OpLabel"], onward],
            [_CODES["OpIAdd"], u32, following, index, step],
            [_CODES["OpBranch"], header],
        ]

    def _lane(self, function: int) -> int:
        """The input that numbers the invocations of a workgroup; the entry then lists it."""
        code = BUILTINS[_LANE]
        if code not in self._builtins:
            variable = self._builtins[code] = self._new()
            pointer = self._type("OpTypePointer", _INPUT, self._u32())
            self._added.append([_CODES["OpVariable"], pointer, variable, _INPUT])
            self._decorate(variable, DECORATIONS["BuiltIn"][0], code)
        variable, entry = self._builtins[code], self._entries[function]
        if variable not in entry[_interface_start(entry) :]:
            entry.append(variable)
        return variable

    # storage buffers

    def clamp_buffers(self) -> None:
        buffers = {id for id, row in self._variables.items() if row[3] == _STORAGE}
        for function in self._functions:
            widths = self._widths(function)
            body: list[Instruction] = []
            last: dict[tuple[int, int], int] = {}
            for row in function.body:
                if row[0] == _CODES["OpAccessChain"] and row[3] in buffers:
                    row = self._clamped(function, body, row, widths.get(row[5], 32), last)
                body.append(row)
            function.body = body

    def _widths(self, function: _Function) -> dict[int, int]:
        """The 64-bit values among those that may be indices."""
        wide = self._declared.get((_CODES["OpTypeInt"], 64, 0))
        if wide is None:
            return {}
        typed = [row for row in (*self._globals, *function.body) if len(row) > 2 and row[1] == wide]
        return {row[2]: 64 for row in typed if row[0] != _CODES["OpTypeInt"]}

    def _clamped(
        self,
        function: _Function,
        body: list[Instruction],
        row: Instruction,
        width: int,
        last: dict[tuple[int, int], int],
    ) -> Instruction:
        """The access with a clamped index; the clamp is inserted before it."""
        code, type, result, variable, member, index = row
        if (variable, width) not in last:
            last[variable, width] = self._last_index(function, variable, width, last)
        clamped = self._new()
        kind = self._type("OpTypeInt", width, 0)
        body.append([_CODES["OpExtInst"], kind, clamped, self._extended(), _UMIN, index, last[variable, width]])
        return [code, type, result, variable, member, clamped]

    def _last_index(self, function: _Function, variable: int, width: int, last: dict[tuple[int, int], int]) -> int:
        """The index of a binding's last element, or 0 if it has none, computed at the start of the function."""
        if width == 64:
            if (variable, 32) not in last:
                last[variable, 32] = self._last_index(function, variable, 32, last)
            made = self._new()
            function.first.append([_CODES["OpUConvert"], self._type("OpTypeInt", 64, 0), made, last[variable, 32]])
            return made
        u32, length, some, made = self._u32(), self._new(), self._new(), self._new()
        function.first += [
            [ARRAY_LENGTH, u32, length, variable, 0],
            [_CODES["OpExtInst"], u32, some, self._extended(), _UMIN, length, self._constant(1)],
            [_CODES["OpISub"], u32, made, length, some],
        ]
        return made


def _append(words: list[int], instruction: Instruction) -> None:
    words.append(len(instruction) << 16 | instruction[0])
    words.extend(instruction[1:])


def _interface_start(entry: Instruction) -> int:
    """The position of the first variable of an OpEntryPoint: after the name, which ends with a word that contains a
    zero byte.
    """
    at = 3
    while entry[at] >> 24:
        at += 1
    return at + 1
