"""Writes a module file from plain Python rows.

- The same rows give the same bytes. Strings and segments are stored once however often they occur, and so is bytecode
  that several programs share.
- Everything a program refers to by number (initializers, entries, what its bytecode names) counts within that program.
- Constants and payloads are any contiguous buffer (bytes, memoryview, NumPy array, memmap). They are read where they
  lie, never copied in memory.
- `write` gives the bytes of a file; `write_file` puts them in place at once, or leaves nothing behind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from .dtypes import DType
from .rows import Access, InitializerKind

Data = bytes | bytearray | memoryview | npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Value:
    """An argument or result of an export. `alias`: the number of the argument that a result may share its storage with."""

    name: str
    dtype: DType
    dims: tuple[int, ...]
    alias: int | None = None


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    arguments: Sequence[Value] = ()
    results: Sequence[Value] = ()
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Import:
    """`signature` is text such as `(hal.view, i32, i64*) -> hal.buffer`."""

    name: str
    signature: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """`arguments` and `results` name value types; `registers` counts i32, i64, f32, f64 and ref registers.

    `locations` are (pc, text), pc ascending: each holds from its pc on until the next.
    """

    name: str
    bytecode: bytes
    arguments: Sequence[str] = ()
    results: Sequence[str] = ()
    registers: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    locations: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True, slots=True)
class Global:
    """`value` is the initial value of an `i32`, `i64`, `f32` or `f64`; a reference starts as null."""

    name: str
    type: str
    mutable: bool = False
    value: int | float = 0


@dataclass(frozen=True, slots=True)
class Initializer:
    function: int
    kind: InitializerKind


@dataclass(frozen=True, slots=True)
class Binding:
    """`length`: least bytes to be bound."""

    access: Access
    length: int


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    bindings: Sequence[Binding] = ()
    parameter_words: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    """One form of an executable; `workgroup_sizes` holds (x, y, z) per entry."""

    format: str
    payload: Data
    workgroup_sizes: Sequence[tuple[int, int, int]]
    features: frozenset[str] = frozenset()
    shared_memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Executable:
    """`variants` best first."""

    name: str
    entries: Sequence[Entry]
    variants: Sequence[Variant]


@dataclass(frozen=True, slots=True)
class Constant:
    """The bytes of `data` are `dims` elements of `dtype` in row-major order."""

    name: str
    data: Data
    dtype: DType
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """`entries` gives the function behind each export of the module, in their order."""

    name: str
    profile: str
    functions: Sequence[Function]
    entries: Sequence[int]
    globals: Sequence[Global] = ()
    initializers: Sequence[Initializer] = ()
    executables: Sequence[Executable] = ()
    constants: Sequence[Constant] = ()
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Module:
    programs: Sequence[Program]
    exports: Sequence[Export] = ()
    imports: Sequence[Import] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    producer: str = "orchestrion"
