"""The child process that runs jaxlib's parsers on untrusted input. It imports jaxlib while its parent imports the
compiler.

jaxlib's Python bindings import NumPy, if present, for attributes made of arrays. Reading does not need it, and
importing it would take half of the child's start time.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from orchestrion.schema.child_process import Message

from .jaxlib_reader import Unreadable, convert_module, read


def _import_jaxlib() -> None:
    """Raises ImportError without jaxlib."""
    had_numpy = "numpy" in sys.modules
    if not had_numpy:
        sys.modules["numpy"] = None  # type: ignore[assignment]  # importing it raises ImportError
    try:
        import jaxlib.mlir._mlir_libs._jax_mlir_ext
        import jaxlib.mlir.ir  # noqa: F401
    finally:
        if not had_numpy:
            del sys.modules["numpy"]  # XLA's reader of artifacts needs NumPy


with suppress(ImportError):  # reported when a program is to be read
    _import_jaxlib()


def answer(request: Message) -> Message:
    """Answers one request, in the child.

    The answer's data starts with `text` bytes of text. The constants follow as `constants` describes them: a pair (is
    text, number of bytes), None for a constant inside the text, or the index of an equal earlier one. If the request
    names a file `into`, the data goes there instead.
    """
    kind, source = request.fields["kind"], request.fields.get("source")
    data: bytes | str = request.data
    if source is not None:
        with open(source, "rb") as file:
            data = file.read()
    try:
        module = read(kind, data.decode() if kind == "pretty" and isinstance(data, bytes) else data)
    except ImportError as error:
        return Message({"missing": str(error)})
    except Unreadable as error:
        return Message({"findings": error.findings})
    text, constants = convert_module(module.operation)
    parts: list[bytes | memoryview] = [text.encode("utf-8", "surrogateescape")]
    rows: list[tuple[bool, int] | int | None] = []
    places: dict[int, int] = {}
    for constant in constants:
        if constant is None:
            rows.append(None)
            continue
        if id(constant) in places:
            rows.append(places[id(constant)])
            continue
        places[id(constant)] = len(rows)
        part = constant.encode() if isinstance(constant, str) else constant
        rows.append((isinstance(constant, str), len(part)))
        parts.append(part)
    fields = {"text": len(parts[0]), "constants": rows}
    into = request.fields.get("into")
    if into is None:
        return Message(fields, b"".join(parts))
    with open(into, "wb") as file:
        file.writelines(parts)
    return Message(fields)
