"""Programs that need jaxlib are read in a child process. If jaxlib crashes, hangs or takes too much memory there, this
process raises CompileError and goes on.

Brackets in text and what aliases stand for are counted first, so that text nested too deeply, or that doubles, is
refused with its place. The child returns
generic text and the bytes of constants; this process never gives foreign input to jaxlib. One child serves all
compilations of a process, and ends when it had no request for a while.
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
from .source import Read

#: bytes of memory the child may have, and how many more for each byte of input
MEMORY: Final = 2 << 30
MEMORY_PER_BYTE: Final = 24
#: seconds the child may take, and how many more for each byte of input
SECONDS: Final = 30.0
SECONDS_PER_BYTE: Final = 2e-5
#: bytes of input from which on input and answer go through files instead of pipes, and the child may have more memory
FILE_TRANSFER_BYTES: Final = 64 << 20

_ANSWER: Final = f"{__package__}.jaxlib_child:answer"
_child: Final = Child(_ANSWER, memory=MEMORY)


def start_child(given: Read) -> bool:
    """Start the child if there is none, without waiting for it. True if it was started now."""
    if _child.pid is not None or len(given.data) >= FILE_TRANSFER_BYTES:
        return False
    try:
        _child.start()
    except ChildUnavailable:
        return False  # `read_foreign` raises the error
    return True


def read_in_child(given: Read) -> Converted:
    """Text or bytes, converted by jaxlib in the child. Raises CompileError."""
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


def _through_pipe(given: Read, data: bytes) -> Converted:
    answer = _child.request({"kind": given.kind}, data, deadline=_seconds(data))
    return _converted(given, answer.fields, memoryview(answer.data))


def _through_files(given: Read, data: bytes) -> Converted:
    """Large programs: a child of its own with memory in proportion, and no copy of the constants in this process."""
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


def _converted(given: Read, fields: dict[str, Any], data: memoryview) -> Converted:
    """The answer, checked like any input: foreign input may have taken over the child."""
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
