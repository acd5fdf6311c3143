"""The rows of a decoded module: one named tuple per struct of `module.fbs`, one enum per enum, with the same names.

- A range `things` of the schema is two fields here, for slicing: `module.things[row.things_start:row.things_end]`.
- A string is its ordinal in `module.strings`; an optional ordinal may be `NONE`.
- Bytecode, initializers and entries count what a `Program` row owns (functions, globals, constants ...) from the start
  of the program's own range: slice the tables once per program.

The fields repeat the schema for type checkers; `layout.py` refuses to load if they differ.
"""

from enum import IntEnum, IntFlag
from typing import NamedTuple

#: the value of an absent optional ordinal
NONE = 0xFFFFFFFF
#: infix in the name of a specialised entry: the name of the general entry, this, and the largest size that the
#: specialised one is dispatched for; a suffix `_columns` names the dimension
UP_TO = "_up_to_"


class ImportFlags(IntFlag):
    Optional = 1


class GlobalFlags(IntFlag):
    Mutable = 1


class InitializerKind(IntEnum):
    Program = 0
    Context = 1


class Access(IntEnum):
    Read = 0
    Write = 1
    ReadWrite = 2


#: the names of accesses in text, IR and the HAL
ACCESSES: dict[str, Access] = {"read": Access.Read, "write": Access.Write, "readwrite": Access.ReadWrite}


class SegmentKind(IntEnum):
    Constant = 0
    Executable = 1
    Debug = 2
    Custom = 3
    Parameter = 4


class AttributeKind(IntEnum):
    Text = 0
    Bytes = 1


class Header(NamedTuple):
    features: int
    major: int
    minor: int
    producer: int


class Imported(NamedTuple):
    name: int
    signature: int
    flags: int


class Exported(NamedTuple):
    name: int
    doc: int
    arguments_start: int
    arguments_end: int
    results_start: int
    results_end: int
    attributes_start: int
    attributes_end: int


class Argument(NamedTuple):
    name: int
    dtype: int
    dims_start: int
    dims_end: int


class Result(NamedTuple):
    """A result; `alias` counts from the export's first argument."""

    name: int
    dtype: int
    dims_start: int
    dims_end: int
    alias: int


class Program(NamedTuple):
    features: int
    name: int
    profile: int
    functions_start: int
    functions_end: int
    globals_start: int
    globals_end: int
    initializers_start: int
    initializers_end: int
    executables_start: int
    executables_end: int
    constants_start: int
    constants_end: int
    entries_start: int
    entries_end: int
    attributes_start: int
    attributes_end: int
    source_map: int
    devices: int
    bytecode_minor: int


class Function(NamedTuple):
    """A function. `arguments` and `results` are ranges of `value_types`; `i32` to `ref` are register counts."""

    name: int
    arguments_start: int
    arguments_end: int
    results_start: int
    results_end: int
    bytecode_start: int
    bytecode_end: int
    i32: int
    i64: int
    f32: int
    f64: int
    ref: int


class Global(NamedTuple):
    """A global; `value` holds raw bits, which `decoder.initial_value` converts."""

    value: int
    name: int
    type: int
    flags: int


class Initializer(NamedTuple):
    """An initializer; `function` counts from the program's first function."""

    function: int
    kind: int


class Executable(NamedTuple):
    """An executable; `entries` is a range of `executable_entries`."""

    name: int
    variants_start: int
    variants_end: int
    entries_start: int
    entries_end: int


class Variant(NamedTuple):
    """A variant; `payload` is a segment."""

    features: int
    format: int
    payload: int
    workgroup_sizes_start: int
    workgroup_sizes_end: int
    shared_memory_bytes: int
    format_minor: int


class WorkgroupSize(NamedTuple):
    x: int
    y: int
    z: int


class Entry(NamedTuple):
    name: int
    bindings_start: int
    bindings_end: int
    parameter_words: int


class Binding(NamedTuple):
    length: int
    access: int


class Constant(NamedTuple):
    name: int
    segment: int
    dtype: int
    dims_start: int
    dims_end: int


class Segment(NamedTuple):
    """A segment. `kind` may be unknown to this version. `chunks` are rows of 32 bytes in `module.chunks`."""

    size: int
    digest: bytes
    chunks_start: int
    chunks_end: int
    kind: int
    name: int


class Attribute(NamedTuple):
    """An attribute. `value` is a range of `module.attribute_values`; `kind` may be unknown to this version."""

    key: int
    value_start: int
    value_end: int
    kind: int
