"""What was given to compile: its kind is told by its content, never by its name.

A source is a path, text, bytes, or an object of JAX (`jax.stages.Lowered`, `jax.export.Exported`) or jaxlib (an MLIR
module), known by what it can do, so that JAX need not be imported.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrion.compiler.errors import CompileError
from orchestrion.schema.files import read_whole

from .exported import MLIR_MAGIC, artifact_in

#: what `compile` takes; the objects are known by their methods
Source = str | bytes | os.PathLike[str] | object

#: kind -> what it is
KINDS: Final[dict[str, str]] = {
    "generic": "MLIR text in the generic form, read here",
    "pretty": "MLIR text in its dialects' own forms, read by jaxlib",
    "bytecode": "MLIR bytecode, read by jaxlib",
    "artifact": "a portable artifact of StableHLO, read by jaxlib",
    "object": "a module of jaxlib in memory",
}

_PRODUCER: Final = re.compile(rb"StableHLO_v[0-9.]+\0")

#: first bytes (at an offset) -> what such a file is
_OTHERS: Final = (
    (4, b"ORCH", "a compiled module already: vm-run runs it"),
    (0, b"\x03\x02\x23\x07", "SPIR-V"),
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"\x7fELF", "native code"),
    (0, b"\x89HDF", "an HDF5 file"),
)

#: aliases and comments may stand before the first operation
_BEFORE: Final = re.compile(r"(?:\s+|//[^\n\r]*|[#!][\w.$]+\s*=[^\n]*)*+")
_PRETTY: Final = re.compile(r"(?:module|func\.func|[a-z_]\w*\.\w+|\{-#)\b|\{-#")


@dataclass(frozen=True, slots=True)
class Read:
    """A source with its content at hand: `data` is text for `generic` and `pretty`, else bytes or the object."""

    kind: str
    data: Any
    name: str


def read(source: Source) -> Read:
    """The content of a source and its kind. Raises CompileError when it cannot be read or is nothing we know."""
    if isinstance(source, str) and ("\n" in source or "(" in source):
        return _of_text(source, "<text>")
    if isinstance(source, str | os.PathLike):
        return _of_file(Path(source))
    if isinstance(source, bytes | bytearray | memoryview):
        return _of_bytes(bytes(source), "<bytes>")
    return _of_object(source)


def _of_file(path: Path) -> Read:
    try:
        data = read_whole(path)
    except OSError as error:
        raise CompileError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise CompileError(f"{str(path)!r}: {error}") from None
    return _of_bytes(data, path.name)  # the folder would get into the module, and differ from machine to machine


def _of_bytes(data: bytes, name: str) -> Read:
    if data.startswith(MLIR_MAGIC):
        return Read("artifact" if _PRODUCER.search(data[:64]) else "bytecode", data, name)
    for offset, magic, what in _OTHERS:
        if data[offset : offset + len(magic)] == magic:
            raise CompileError(f"{name}: no StableHLO, this is {what}")
    if (artifact := artifact_in(data)) is not None:
        return _of_bytes(artifact, name)
    try:
        return _of_text(data.decode(), name)
    except UnicodeDecodeError as error:
        shown = data[:8].hex(" ")
        raise CompileError(f"{name}: neither MLIR text nor bytecode; begins with {shown} ({error.reason})") from None


def _of_text(text: str, name: str) -> Read:
    before = _BEFORE.match(text)
    start = before.end() if before is not None else 0
    if start == len(text):
        raise CompileError(f"{name}: holds no program")
    if text[start] in '"%':
        return Read("generic", text, name)
    if _PRETTY.match(text, start):
        return Read("pretty", text, name)
    line = text.count("\n", 0, start) + 1
    raise CompileError(f"{name}: not MLIR: line {line} begins with {text[start : start + 20].splitlines()[0]!r}")


def _of_object(source: object) -> Read:
    name = f"<{type(source).__name__}>"
    artifact = getattr(source, "mlir_module_serialized", None)
    if isinstance(artifact, bytes):  # jax.export.Exported
        return Read("artifact", artifact, name)
    lowered = getattr(source, "compiler_ir", None)
    if callable(lowered):  # jax.stages.Lowered
        return Read("object", lowered("stablehlo"), name)
    if callable(getattr(getattr(source, "operation", None), "get_asm", None)):  # jaxlib.mlir.ir.Module
        return Read("object", source, name)
    wanted = "a path, text, bytes, jax.stages.Lowered, jax.export.Exported or an MLIR module"
    raise CompileError(f"cannot compile an object of type {type(source).__name__}, it must be {wanted}")
