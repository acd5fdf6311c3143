"""The files beside a generated module: the code of executables and the constants. Equal segments are one file."""

from __future__ import annotations

import hashlib
from typing import Final

from orchestrion.compiler.errors import CompileError
from orchestrion.schema.module import Module
from orchestrion.schema.profiles import find_format

from .text import identifier

#: executable format -> suffix of its files; a format of another package is text or binary
_SUFFIXES: Final = {
    "opencl-c": "cl",
    "spirv": "spv",
    "tensor-bytecode": "tensors",
    "native-image": "image",
    "library-calls": "tensors",
}


class Payloads:
    """`files` by name. `name`: the first part of all names."""

    def __init__(self, module: Module, name: str) -> None:
        self._module, self._name = module, name
        self._names: dict[int, str] = {}
        self.files: dict[str, str | bytes] = {}

    def code(self, segment: int, executable: str, format: str) -> tuple[str, str]:
        """The file of a variant and its SHA-256 in hex."""
        row = find_format(format)
        suffix = _SUFFIXES.get(format) or ("txt" if row is not None and row.text else "bin")
        name = self._file(segment, f"{identifier(executable)}.{suffix}")
        return name, hashlib.sha256(self._content(name)).hexdigest()

    def constant(self, segment: int, constant: str) -> tuple[str, int]:
        """The file of a constant and its bytes."""
        name = self._file(segment, f"{identifier(constant)}.constant")
        return name, len(self._content(name))

    def _content(self, name: str) -> bytes:
        content = self.files[name]
        assert isinstance(content, bytes)
        return content

    def _file(self, segment: int, rest: str) -> str:
        if segment not in self._names:
            if self._module.missing(segment):
                raise CompileError(f"segment {segment}, of {rest}, was taken out of the module")
            stem, _, suffix = rest.rpartition(".")
            number, found = 1, f"{self._name}.{rest}"
            while found in self.files:
                number, found = number + 1, f"{self._name}.{stem}_{number}.{suffix}"
            self._names[segment] = found
            self.files[found] = bytes(self._module.segment(segment))
        return self._names[segment]
