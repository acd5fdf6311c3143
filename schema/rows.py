"""The rows of a decoded module: one named tuple per struct of `module.fbs`, one per enum, with the same names.

- A range `things` of the schema is two fields here, to slice with: `module.things[row.things_start:row.things_end]`.
- A string is its ordinal in `module.strings`; an optional ordinal may be `NONE`.
- What a `Program` row owns (functions, globals, constants ...) is counted from the start of the program's own range by
  bytecode, initializers and entries: slice the tables once per program.

The fields repeat the schema for the type checkers' sake; `layout.py` refuses to load when they differ.
"""

from enum import IntEnum, IntFlag
from typing import NamedTuple

#: An optional ordinal that names nothing.
NONE = 0xFFFFFFFF
#: What stands between the name of an entry and a number in the name of another one, which is dispatched in its place
#: where a size is at most that; `_columns` behind the number says which.
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


#: as text, IR and the HAL call them
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
    """`alias` counts from the export's first argument."""

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
    """`arguments` and `results` are ranges of `value_types`; `i32` to `ref` are register counts."""

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
    """`value` holds raw bits: `decoder.initial_value` gives the number."""

    value: int
    name: int
    type: int
    flags: int


class Initializer(NamedTuple):
    """`function` counts from the program's first function."""

    function: int
    kind: int


class Executable(NamedTuple):
    """`entries` is a range of `executable_entries`."""

    name: int
    variants_start: int
    variants_end: int
    entries_start: int
    entries_end: int


class Variant(NamedTuple):
    """`payload` is a segment."""

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
    """`kind` may be one that this version does not know. `chunks` are rows of 32 bytes of `module.chunks`."""

    size: int
    digest: bytes
    chunks_start: int
    chunks_end: int
    kind: int
    name: int


class Attribute(NamedTuple):
    """`value` is a range of `module.attribute_values`; `kind` may be one that this version does not know."""

    key: int
    value_start: int
    value_end: int
    kind: int
