"""The least minor versions that the contents of a module need. The writer computes them from the tables' rows.

A payload or bytecode that cannot be decoded has no least version: 0 is written, and the loader reports the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .encoding import decode
from .errors import ModuleError
from .spirv_needs import least_minor
from .versions import BYTECODE_MINOR, FORMAT_MINORS

if TYPE_CHECKING:
    from .writer import Module


class Addition(NamedTuple):
    """A part of a minor version of the format that a reader must not skip."""

    since: int
    doc: str
    used: Callable[[Module], bool]


#: Additions that a reader may skip have no row here.
ADDITIONS: tuple[Addition, ...] = ()


def header_minor(module: Module) -> int:
    """The least minor version of the format that contains everything that the module uses."""
    return max((row.since for row in ADDITIONS if row.used(module)), default=0)


def bytecode_minor(functions: Iterable[bytes]) -> int:
    """The least minor version of the VM's instructions that contains every instruction of these functions."""
    if not BYTECODE_MINOR:
        return 0
    try:
        return max((one.row.since for code in functions for one in decode(code, "")), default=0)
    except ModuleError:
        return 0


def format_minor(format: str, payload: Any) -> int:
    """The least minor version of a format that contains everything in a payload, a contiguous buffer."""
    view = memoryview(payload)
    if not FORMAT_MINORS.get(format) or not view.c_contiguous or not view.nbytes:
        return 0
    data = view.cast("B")
    return least_minor(data) if format == "spirv" else _stated(data)


def _stated(payload: memoryview) -> int:
    """The minor version of tensor bytecode or a template, which its header states: u16 at byte 6."""
    return int.from_bytes(payload[6:8], "little") if bytes(payload[:4]) in (b"OTBC", b"OTBT") else 0
