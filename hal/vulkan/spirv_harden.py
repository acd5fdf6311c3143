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

from collections.abc import Iterable, Sequence

from orchestrion.schema.spirv import (
    BUILTINS,
    DECORATIONS,
    EXT_BY_NAME,
    SCOPE_WORKGROUP,
    STORAGE_CLASSES,
    WORKGROUP_MEMORY,
)

from .spirv_module import ARRAY_LENGTH, CODES, EditableModule, Function, Instruction

_UMIN = EXT_BY_NAME["UMin"].code
_INPUT, _WORKGROUP, _STORAGE = (STORAGE_CLASSES[name] for name in ("Input", "Workgroup", "StorageBuffer"))
_LANE = "LocalInvocationIndex"


def harden(payload: memoryview | bytes, *, null_initializers: bool, clamp_buffers: bool, shared: bool) -> bytes:
    """Returns the words to build from a verified payload, little endian.

    `shared`: whether it has workgroup memory. `null_initializers`: the device supports null initializers of workgroup
    memory. `clamp_buffers`: the device lacks robust buffer access 2.
    """
    if not shared and not clamp_buffers:
        return bytes(payload)
    module = _Module(payload)
    if shared and null_initializers:
        module.initialize_shared()
    elif shared:
        module.clear_shared()
    if clamp_buffers:
        module.clamp_buffers()
    return module.code()


class _Module(EditableModule):
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

    def _clear(self, function: Function, arrays: Sequence[Instruction]) -> None:
        u32, lane, label = self._u32(), self._new(), self._new()
        out = function.prologue
        out.append([CODES["OpLabel"], label])
        out.append([CODES["OpLoad"], u32, lane, self._lane(function.id)])
        start = function.body[1][1]
        for position, variable in enumerate(arrays):
            after = start if position == len(arrays) - 1 else self._new()
            self._clear_array(out, variable, lane, label, after, self._constant(self._sizes[function.id]))
            if after != start:
                out.append([CODES["OpLabel"], after])
            label = after
        scope = self._constant(SCOPE_WORKGROUP)
        function.first.append([CODES["OpControlBarrier"], scope, scope, self._constant(WORKGROUP_MEMORY)])

    def _clear_array(
        self, out: list[Instruction], variable: Instruction, lane: int, before: int, after: int, step: int
    ) -> None:
        """for (i = lane; i < length; i += invocations) array[i] = 0, from block `before` to block `after`."""
        _, _, element, length = self._types[self._array(variable)]
        u32, bool_type = self._u32(), self._type("OpTypeBool")
        pointer, zero = self._type("OpTypePointer", _WORKGROUP, element), self._null(element)
        header, body, onward, index, inside, place, following = (self._new() for _ in range(7))
        out += [
            [CODES["OpBranch"], header],
            [CODES["OpLabel"], header],
            [CODES["OpPhi"], u32, index, lane, before, following, onward],
            [CODES["OpULessThan"], bool_type, inside, index, length],
            [CODES["OpLoopMerge"], after, onward, 0],
            [CODES["OpBranchConditional"], inside, body, after],
            [CODES["OpLabel"], body],
            [CODES["OpAccessChain"], pointer, place, variable[2], index],
            [CODES["OpStore"], place, zero],
            [CODES["OpBranch"], onward],
            [CODES["OpLabel"], onward],
            [CODES["OpIAdd"], u32, following, index, step],
            [CODES["OpBranch"], header],
        ]

    def _lane(self, function: int) -> int:
        """The input that numbers the invocations of a workgroup; the entry then lists it."""
        code = BUILTINS[_LANE]
        if code not in self._builtins:
            variable = self._builtins[code] = self._new()
            pointer = self._type("OpTypePointer", _INPUT, self._u32())
            self._added.append([CODES["OpVariable"], pointer, variable, _INPUT])
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
                if row[0] == CODES["OpAccessChain"] and row[3] in buffers:
                    row = self._clamped(function, body, row, widths.get(row[5], 32), last)
                body.append(row)
            function.body = body

    def _widths(self, function: Function) -> dict[int, int]:
        """The 64-bit values among those that may be indices."""
        wide = self._declared.get((CODES["OpTypeInt"], 64, 0))
        if wide is None:
            return {}
        return dict.fromkeys(self._of_type(wide, function), 64)

    def _clamped(
        self,
        function: Function,
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
        body.append([CODES["OpExtInst"], kind, clamped, self._extended(), _UMIN, index, last[variable, width]])
        return [code, type, result, variable, member, clamped]

    def _last_index(self, function: Function, variable: int, width: int, last: dict[tuple[int, int], int]) -> int:
        """The index of a binding's last element, or 0 if it has none, computed at the start of the function."""
        if width == 64:
            if (variable, 32) not in last:
                last[variable, 32] = self._last_index(function, variable, 32, last)
            made = self._new()
            function.first.append([CODES["OpUConvert"], self._type("OpTypeInt", 64, 0), made, last[variable, 32]])
            return made
        u32, length, some, made = self._u32(), self._new(), self._new(), self._new()
        function.first += [
            [ARRAY_LENGTH, u32, length, variable, 0],
            [CODES["OpExtInst"], u32, some, self._extended(), _UMIN, length, self._constant(1)],
            [CODES["OpISub"], u32, made, length, some],
        ]
        return made


def _interface_start(entry: Instruction) -> int:
    """The position of the first variable of an OpEntryPoint: after the name, which ends with a word that contains a
    zero byte.
    """
    at = 3
    while entry[at] >> 24:
        at += 1
    return at + 1
