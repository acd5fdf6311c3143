"""Reads programs that need jaxlib in a child process (`jaxlib_child.py`).

If jaxlib crashes, hangs or exceeds its memory limit there, this process raises CompileError and continues. The nesting
of brackets and the expansion of aliases are checked first, so that excessive text is refused with its location. The
child returns generic text and the bytes of constants; this process never passes untrusted input to jaxlib. One child
serves all compilations of a process, and ends after some idle time.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.aliases import check_aliases
from orchestrion.compiler.ir.locations import FileLoc
from orchestrion.compiler.ir.nesting import check_nesting
from orchestrion.schema.child_process import Child, ChildDied, ChildFailed, ChildLate, ChildUnavailable
from orchestrion.schema.hints import install

from .jaxlib_reader import Constant, Converted
from .source import SourceContent

#: Memory limit of the child in bytes, and the additional bytes per byte of input.
MEMORY: Final = 2 << 30
MEMORY_PER_BYTE: Final = 24
#: Time limit of the child in seconds, and the additional seconds per byte of input.
SECONDS: Final = 30.0
SECONDS_PER_BYTE: Final = 2e-5
#: From this many bytes of input on, input and answer travel in files instead of pipes, and the memory limit grows.
FILE_TRANSFER_BYTES: Final = 64 << 20

_ANSWER: Final = f"{__package__}.jaxlib_child:answer"
_child: Final = Child(_ANSWER, memory=MEMORY)


def start_child(given: SourceContent) -> bool:
    """Starts the child if there is none, without waiting for it. Returns whether it was started now."""
    if _child.pid is not None or len(given.data) >= FILE_TRANSFER_BYTES:
        return False
    try:
        _child.start()
    except ChildUnavailable:
        return False  # `read_in_child` raises the error
    return True


def read_in_child(given: SourceContent) -> Converted:
    """Converts text or bytes with jaxlib in the child. Raises CompileError."""
    if isinstance(given.data, str):
        check_nesting(given.data, given.name)
        check_aliases(given.data, given.name)
    try:
        data = given.data.encode() if isinstance(given.data, str) else given.data
    except UnicodeEncodeError as error:
        raise CompileError(f"{given.name}: not text: {error.reason} at character {error.start}") from None
    try:
        return _through_files(given, data) if len(data) >= FILE_TRANSFER_BYTES else _through_pipe(given, data)
    except ChildDied as error:
        raise CompileError(f"{given.name}: jaxlib crashed reading it: the process that read it {error.how}") from None
    except ChildLate as error:
        raise CompileError(f"{given.name}: jaxlib takes too long to read it: {error}") from None
    except ChildUnavailable as error:
        raise CompileError(f"{given.name}: needs a process in which jaxlib reads it: {error}") from None
    except ChildFailed as error:
        raise CompileError(f"{given.name}: jaxlib cannot read it: {error}") from None


def _through_pipe(given: SourceContent, data: bytes) -> Converted:
    answer = _child.request({"kind": given.kind}, data, deadline=_seconds(data))
    return _converted(given, answer.fields, memoryview(answer.data))


def _through_files(given: SourceContent, data: bytes) -> Converted:
    """Converts a large program: in a new child with a larger memory limit, without a copy of the constants here."""
    child = Child(_ANSWER, memory=MEMORY + MEMORY_PER_BYTE * len(data))
    with tempfile.TemporaryDirectory(prefix="orchestrion-") as folder:
        source, into = Path(folder, "source"), Path(folder, "into")
        try:
            source.write_bytes(data)
            fields = {"kind": given.kind, "source": str(source), "into": str(into)}
            answer = child.request(fields, deadline=_seconds(data))
            return _converted(given, answer.fields, _mapped(into) if into.exists() else memoryview(b""))
        except OSError as error:
            raise CompileError(f"{given.name}: cannot be read by way of {folder}: {error.strerror}") from None
        finally:
            child.end()


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")


def _seconds(data: bytes) -> float:
    return SECONDS + SECONDS_PER_BYTE * len(data)


def _converted(given: SourceContent, fields: dict[str, Any], data: memoryview) -> Converted:
    """Converts and checks the answer like any untrusted input: the input may have taken over the child."""
    try:
        if "missing" in fields:
            raise CompileError(
                f"{given.name}: needs jaxlib to be read ({fields['missing']}): {install('stablehlo')}; "
                "the generic form of MLIR is read without it"
            )
        if "findings" in fields:
            raise CompileError(_diagnostics(given.name, fields["findings"]))
        text = str(data[: int(fields["text"])], "utf-8", "surrogateescape")
        return Converted(text, list(_constants(data[int(fields["text"]) :], fields["constants"])))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        shown = json.dumps(fields)[:80]
        raise CompileError(f"{given.name}: the process that read it gave no answer: {shown}: {error}") from None


def _diagnostics(name: str, findings: Sequence[tuple[str, int, int]]) -> list[Diagnostic]:
    return [
        Diagnostic(str(message), FileLoc(name, int(line), int(column))) if line else Diagnostic(f"{name}: {message}")
        for message, line, column in findings
    ]


def _constants(data: memoryview, rows: Sequence[tuple[bool, int] | int | None]) -> Iterator[Constant]:
    at = 0
    made: list[Constant] = []
    for row in rows:
        if row is None:
            constant: Constant = None
        elif isinstance(row, int):
            if not 0 <= row < len(made):
                raise ValueError(f"constant {len(made)} is the same as {row}")
            constant = made[row]
        else:
            is_text, size = row
            part = data[at : at + int(size)]
            at += int(size)
            constant = str(part, "utf-8") if is_text else part
        made.append(constant)
        yield constant
