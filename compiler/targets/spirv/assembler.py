"""Assembles the words of a SPIR-V module: ids, instructions by section, types and constants that are declared once.

Instructions have the names of `schema/spirv.py`, whose rows give opcode, layout and section. All integer types are
declared unsigned, and instructions determine the signedness, so that `i32` and `ui32` are one type. The declared types
and memory determine the capabilities.
"""

import struct
from collections.abc import Hashable, Sequence
from typing import Any

from orchestrion.schema import spirv
from orchestrion.schema.dtypes import BOOL, FLOAT, DType

#: (is float, width) of a number type -> (capability for arithmetic, capability for storage buffers)
_NEEDS: dict[tuple[bool, int], tuple[str, str]] = {
    (False, 8): ("Int8", "StorageBuffer8BitAccess"),
    (False, 16): ("Int16", "StorageBuffer16BitAccess"),
    (False, 64): ("Int64", ""),
    (True, 64): ("Float64", ""),
}

Operand = int | str


class Assembler:
    """Collects instructions; `words` returns the module."""

    def __init__(self) -> None:
        self.bound = 1
        self._sections: dict[str, list[list[int]]] = {section: [] for section in spirv.SECTIONS}
        self._declared: dict[Hashable, int] = {}
        self._scalars: dict[str, int] = {}
        self._capabilities: set[str] = {"Shader"}

    @property
    def features(self) -> frozenset[str]:
        """The device features that the capabilities need."""
        rows = (spirv.CAPABILITY_BY_NAME[name] for name in self._capabilities)
        return frozenset(row.feature for row in rows if row.feature)

    def new(self) -> int:
        """A fresh id."""
        self.bound += 1
        return self.bound - 1

    def add(self, name: str, *operands: Operand) -> list[int]:
        """Appends an instruction to its section. The caller may extend the returned words."""
        row = spirv.OP_BY_NAME[name]
        return self._append(row.section, row.code, operands)

    def _append(self, section: str, code: int, operands: Sequence[Operand]) -> list[int]:
        words: list[Any] = [code, *operands]
        if str in map(type, operands):
            words = [word for part in words for word in (_string(part) if isinstance(part, str) else (part,))]
        self._sections[section].append(words)
        return words

    def decorate(self, target: int, name: str, *literals: int) -> None:
        """Decorates an id."""
        self.add("OpDecorate", target, spirv.DECORATIONS[name][0], *literals)

    def decorate_member(self, struct_type: int, member: int, name: str, *literals: int) -> None:
        """Decorates a member of a struct."""
        self.add("OpMemberDecorate", struct_type, member, spirv.DECORATIONS[name][0], *literals)

    def words(self) -> bytes:
        """The module, little endian."""
        self._head()
        words = [spirv.MAGIC, spirv.VERSION, 0, self.bound, 0]
        for section in spirv.SECTIONS:
            for code, *operands in self._sections[section]:
                words.append(len(operands) + 1 << 16 | code)
                words += operands
        return struct.pack(f"<{len(words)}I", *words)

    def _head(self) -> None:
        """Capabilities in the order of their codes, their extensions, and the memory model."""
        rows = sorted((spirv.CAPABILITY_BY_NAME[name] for name in self._capabilities), key=lambda row: row.code)
        for row in rows:
            self.add("OpCapability", row.code)
        for extension in dict.fromkeys(row.extension for row in rows if row.extension):
            self.add("OpExtension", extension)
        self.add("OpMemoryModel", spirv.ADDRESSING_LOGICAL, spirv.MEMORY_GLSL450)

    # declared once

    def once(self, name: str, *operands: Operand, typed: bool = False) -> int:
        """The id of a type, or, if `typed`, of a constant that begins with its type, declared once per operands."""
        key = (name, *operands)
        found = self._declared.get(key)
        if found is None:
            found = self._declared[key] = self.new()
            if typed:
                self.add(name, operands[0], found, *operands[1:])
            else:
                self.add(name, found, *operands)
        return found

    def extended(self) -> int:
        """The id of the set of extended instructions."""
        return self.once("OpExtInstImport", spirv.EXT_INST_SET)

    def scalar(self, dtype: DType) -> int:
        """The type of a scalar value."""
        found = self._scalars.get(dtype.name)
        if found is None:
            found = self._scalars[dtype.name] = self._scalar(dtype)
        return found

    def _scalar(self, dtype: DType) -> int:
        if dtype.kind == BOOL:
            return self.once("OpTypeBool")
        need = _NEEDS.get((dtype.kind == FLOAT, dtype.bits))
        if need is not None:
            self._capabilities.add(need[0])
        if dtype.kind == FLOAT:
            return self.once("OpTypeFloat", dtype.bits)
        return self.once("OpTypeInt", dtype.bits, 0)

    def vector(self, dtype: DType, lanes: int) -> int:
        """The type of a vector value; a scalar type for one lane."""
        element = self.scalar(dtype)
        return element if lanes == 1 else self.once("OpTypeVector", element, lanes)

    def in_buffers(self, dtype: DType) -> None:
        """Declares that storage buffers hold this type."""
        need = _NEEDS.get((dtype.kind == FLOAT, dtype.bits))
        if need is not None and need[1]:
            self._capabilities.add(need[1])

    def pointer(self, storage: str, content: int) -> int:
        """The type of a pointer to a type in a storage class."""
        return self.once("OpTypePointer", spirv.STORAGE_CLASSES[storage], content)

    def constant(self, dtype: DType, pattern: int) -> int:
        """A scalar constant by its bits."""
        type_id = self.scalar(dtype)
        if dtype.kind == BOOL:
            return self.once("OpConstantTrue" if pattern else "OpConstantFalse", type_id, typed=True)
        literals = [pattern] if dtype.bits <= 32 else [pattern & 0xFFFFFFFF, pattern >> 32]
        return self.once("OpConstant", type_id, *literals, typed=True)

    def variable(self, storage: str, content: int) -> int:
        """A variable of the module, of a declared type."""
        variable = self.new()
        operands = self.pointer(storage, content), variable, spirv.STORAGE_CLASSES[storage]
        self._append("global", spirv.OP_BY_NAME["OpVariable"].code, operands)
        return variable


def _string(text: str) -> list[int]:
    data = text.encode() + b"\0"
    data += bytes(-len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))
