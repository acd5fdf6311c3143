"""Reads the input of `compile`, and determines its kind from its content, never from its name.

A source is a path, text, bytes, a function that JAX traces, an object of JAX (`jax.stages.Lowered`,
`jax.export.Exported`), or an MLIR module of jaxlib. Objects are recognized by their methods, so that JAX need not be
imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrion.compiler.errors import ArgumentTypeError, CompileError
from orchestrion.schema.files import read_whole

from .exported import MLIR_MAGIC, artifact_in, interface_in, platforms_in
from .unsupported_files import guess, recognize, recognize_folder

if TYPE_CHECKING:
    from .interface import Interface

#: Input of `compile`; objects are recognized by their methods.
Source = str | bytes | os.PathLike[str] | object

#: Kind of source -> its description.
KINDS: Final[dict[str, str]] = {
    "generic": "MLIR text in the generic form, read here",
    "pretty": "MLIR text in its dialects' own forms, read by jaxlib",
    "bytecode": "MLIR bytecode, read by jaxlib",
    "artifact": "a portable artifact of StableHLO, read by jaxlib",
    "object": "a module of jaxlib in memory",
}

_PRODUCER: Final = re.compile(rb"StableHLO_v[0-9.]+\0")

#: The short form of an op whose dialect jaxlib does not register; TensorFlow writes it.
_COPY: Final = re.compile(
    r"\bmhlo\.copy (%[\w$.#-]+)(?: \{[^{}\n]*\})? : (tensor<[^\n]*?>)(?=[ \t]*(?:loc\(|//|\r?$))", re.MULTILINE
)
#: Aliases and comments may precede the first operation.
_BEFORE: Final = re.compile(r"(?:\s+|//[^\n\r]*|[#!][\w.$]+\s*=[^\n]*)*+")
_PRETTY: Final = re.compile(r"(?:module|func\.func|[a-z_]\w*\.\w+|\{-#)\b|\{-#")


@dataclass(frozen=True, slots=True)
class SourceContent:
    """A source with its content: `data` is text for `generic` and `pretty`, else bytes or the object.

    `interface`: names and trees of a function that was traced here. `platforms`: those that the program is for, in the
    order of its code for them; empty if unknown.
    """

    kind: str
    data: Any
    name: str
    interface: Interface | None = None
    platforms: tuple[str, ...] = ()


def read_source(source: Source, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> SourceContent:
    """Reads a source and determines its kind. Raises CompileError if it cannot be read or is not recognized.

    `args` and `kwargs`: example arguments for tracing a function. Raises ArgumentTypeError if another source gets any.
    """
    if hasattr(source, "runtime_executable"):  # jax.stages.Compiled, which is callable
        raise ArgumentTypeError("a Compiled of JAX holds code for this machine: give the Lowered that it was made from")
    if callable(source) and not _is_program(source) and not _is_traced(source):
        return _of_function(source, args, kwargs or {})
    if args or kwargs:
        raise ArgumentTypeError(
            f"example arguments are given with a source of type {type(source).__name__}: they are for functions, and "
            "options of compile are given by keyword"
        )
    if _is_traced(source):
        return _of_function(source, (), {})
    if isinstance(source, str) and ("\n" in source or "(" in source):
        return _of_text(source, "<text>")
    if isinstance(source, str | os.PathLike):
        return _of_file(Path(source))
    if isinstance(source, bytes | bytearray | memoryview):
        return _of_bytes(bytes(source), "<bytes>")
    return _of_object(source)


def _is_program(source: object) -> bool:
    """Whether a callable object already holds a program."""
    return hasattr(source, "mlir_module_serialized") or callable(getattr(source, "compiler_ir", None))


def _is_traced(source: object) -> bool:
    """Whether it is a jax.stages.Traced."""
    return hasattr(source, "jaxpr") and hasattr(source, "lower")


def _of_function(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> SourceContent:
    from .callables import trace_and_lower

    made, interface = trace_and_lower(function, args, kwargs)
    return replace(_of_object(made), name="<function>", interface=interface)


def _of_file(path: Path) -> SourceContent:
    if (what := recognize_folder(path)) is not None:
        raise CompileError(f"{path}: no StableHLO, this is {what}")
    try:
        data = read_whole(path)
    except OSError as error:
        raise CompileError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise CompileError(f"{str(path)!r}: {error}") from None
    return _of_bytes(data, path.name)  # the folder would get into the module, and differ from machine to machine


def _of_bytes(data: bytes, name: str) -> SourceContent:
    if data.startswith(MLIR_MAGIC):
        return SourceContent("artifact" if _PRODUCER.search(data[:64]) else "bytecode", data, name)
    if (what := recognize(data)) is not None:
        raise CompileError(f"{name}: no StableHLO, this is {what}")
    if (artifact := artifact_in(data)) is not None:
        return replace(_of_bytes(artifact, name), interface=interface_in(data), platforms=platforms_in(data))
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if (what := guess(data)) is not None:
            raise CompileError(f"{name}: no StableHLO, this is {what}") from None
        shown = data[:8].hex(" ")
        raise CompileError(f"{name}: neither MLIR text nor bytecode; begins with {shown} ({error.reason})") from None
    return _of_text(text, name)


def _of_text(text: str, name: str) -> SourceContent:
    before = _BEFORE.match(text)
    start = before.end() if before is not None else 0
    if start == len(text):
        raise CompileError(f"{name}: contains no program")
    if text[start] in '"%':
        return SourceContent("generic", text, name)
    if _PRETTY.match(text, start):
        return SourceContent("pretty", _COPY.sub(r'"mhlo.copy"(\1) : (\2) -> \2', text), name)
    if (what := recognize(text[:64].encode(errors="replace")) or guess(text.encode(errors="replace"))) is not None:
        raise CompileError(f"{name}: no StableHLO, this is {what}")
    line = text.count("\n", 0, start) + 1
    raise CompileError(f"{name}: not MLIR: line {line} begins with {text[start : start + 20].splitlines()[0]!r}")


def _interface_of(stage: object) -> Interface | None:
    from .callables import interface_of

    return interface_of(stage)


def _of_object(source: object) -> SourceContent:
    name = f"<{type(source).__name__}>"
    artifact = getattr(source, "mlir_module_serialized", None)
    if isinstance(artifact, bytes):  # jax.export.Exported
        return SourceContent("artifact", artifact, name, _interface_of(source), tuple(getattr(source, "platforms", ())))
    lowered = getattr(source, "compiler_ir", None)
    if callable(lowered):  # jax.stages.Lowered
        return SourceContent("object", lowered("stablehlo"), name, _interface_of(source))
    if callable(getattr(getattr(source, "operation", None), "get_asm", None)):  # jaxlib.mlir.ir.Module
        return SourceContent("object", source, name)
    wanted = "a function, a path, text, bytes, a Traced, Lowered or Exported of JAX, or an MLIR module"
    raise ArgumentTypeError(f"cannot compile an object of type {type(source).__name__}, it must be {wanted}")
