"""Writes a module file from plain Python rows.

- Equal rows give equal bytes. Strings and segments are stored once, however often they occur, and so is bytecode that
  several programs share.
- Everything that a program refers to by number (initializers, entries, operands of its bytecode) counts within the
  program.
- Constants and payloads are any contiguous buffer (bytes, memoryview, NumPy array, memmap). They are never copied in
  memory.
- `write` returns the bytes of a file; `write_file` writes it atomically.
- The root is decoded before anything is written: rows that the decoder would reject raise its ModuleError here.
"""

import os
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod
from typing import Any

import flatbuffers
import numpy.typing as npt

from . import container, decoder, sourcemap, structure
from .container import Attachment, Section
from .dtypes import DType
from .files import write_whole
from .layout import Vector, layout
from .needs import bytecode_minor, format_minor, header_minor
from .profiles import feature_bits
from .rows import NONE, Access, AttributeKind, GlobalFlags, ImportFlags, InitializerKind, SegmentKind
from .rules import NUMBERS
from .segments import DIGEST, chunk_digests
from .versions import MAJOR

_DIGEST_OFFSET = 8  # of the digest in a row of `segments`
#: constants from this many bytes on have a digest per piece
CHUNKED_FROM = 4 << 20

Data = bytes | bytearray | memoryview | npt.NDArray[Any]
#: key -> text or bytes
Attributes = Mapping[str, str | bytes]


@dataclass(frozen=True, slots=True)
class Value:
    """An argument or result of an export. A dimension of -1 is dynamic; `expressions` has the text of each dynamic
    dimension.

    `alias`: the number of the argument whose storage a result may reuse.
    """

    name: str
    dtype: DType
    dims: tuple[int, ...]
    alias: int | None = None
    expressions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    arguments: Sequence[Value] = ()
    results: Sequence[Value] = ()
    doc: str = ""
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Import:
    """An imported function. `signature` is text such as `(hal.view, i32, i64*) -> hal.buffer`."""

    name: str
    signature: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function. `arguments` and `results` name value types; `registers` counts i32, i64, f32, f64 and ref registers.

    `locations` are (pc, text) with ascending pc: each applies from its pc on, until the next.
    """

    name: str
    bytecode: bytes
    arguments: Sequence[str] = ()
    results: Sequence[str] = ()
    registers: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    locations: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True, slots=True)
class Global:
    """A global. `value` is the initial value of an `i32`, `i64`, `f32` or `f64`; a reference is initially null."""

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
    """A binding. `length`: the least number of bytes to bind."""

    access: Access
    length: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry point. Debug information: `source_ops` lists the source ops that it computes, the main one first;
    `binding_types` the MLIR type of the tensor in each binding.
    """

    name: str
    bindings: Sequence[Binding] = ()
    parameter_words: int = 0
    source_ops: Sequence[str] = ()
    binding_types: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of an executable; `workgroup_sizes` has (x, y, z) per entry.

    `format_minor`: the minor version that the payload needs, if it is above that of its instructions (`needs.py`).
    """

    format: str
    payload: Data
    workgroup_sizes: Sequence[tuple[int, int, int]]
    features: frozenset[str] = frozenset()
    shared_memory_bytes: int = 0
    format_minor: int = 0


@dataclass(frozen=True, slots=True)
class Executable:
    """An executable; `variants` are ordered, best first."""

    name: str
    entries: Sequence[Entry]
    variants: Sequence[Variant]


@dataclass(frozen=True, slots=True)
class Constant:
    """The bytes of `data` are `dims` elements of `dtype` in row-major order. `chunked`: its pieces have their own
    digests, as those of long constants always do.
    """

    name: str
    data: Data
    dtype: DType
    dims: tuple[int, ...]
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """A constant whose bytes lie outside of the module. `data`: its default bytes; the root stores their digest.
    Without data, `digest` is stored; zeros accept any bytes. Parameters of one name are the same parameter in all
    programs.
    """

    name: str
    dtype: DType
    dims: tuple[int, ...]
    data: Data | None = None
    digest: bytes = bytes(DIGEST)


@dataclass(frozen=True, slots=True)
class Program:
    """A program. `entries` has the function of each export of the module, in order.

    `bytecode_minor`: the minor version that its functions need, if it is above that of their instructions (`needs.py`).
    """

    name: str
    profile: str
    functions: Sequence[Function]
    entries: Sequence[int]
    globals: Sequence[Global] = ()
    initializers: Sequence[Initializer] = ()
    executables: Sequence[Executable] = ()
    constants: Sequence[Constant | Parameter] = ()
    features: frozenset[str] = frozenset()
    attributes: Attributes = field(default_factory=dict)
    bytecode_minor: int = 0


@dataclass(frozen=True, slots=True)
class Module:
    """A module. `custom`: segments of other tools by name. `debug`: debug segments by name, beside source maps.
    `attachments` and `sections` follow the segments.
    """

    programs: Sequence[Program]
    exports: Sequence[Export] = ()
    imports: Sequence[Import] = ()
    attributes: Attributes = field(default_factory=dict)
    producer: str = "orchestrion"
    custom: Mapping[str, Data] = field(default_factory=dict)
    debug: Mapping[str, Data] = field(default_factory=dict)
    attachments: Sequence[Attachment] = ()
    sections: Sequence[Section] = ()


def write(module: Module) -> bytes:
    """The bytes of the module's file."""
    return b"".join(_pieces(module))


def write_file(path: str | os.PathLike[str], module: Module) -> bytes:
    """Writes the module's file atomically (`files.write_whole`). Returns its digest. Raises OSError."""
    pieces = _pieces(module)
    write_whole(path, pieces, "cannot write the module")
    return sha256(pieces[0]).digest()


def reseal(data: bytes) -> bytes:
    """Returns a damaged file with recomputed digests and checksums, including those of segments.

    For tests and fuzzers, so that damage reaches the verifiers after the digests. Raises ModuleError if the damage
    hides where a digest belongs.
    """
    data = container.reseal(data)
    file = container.open_bytes(data)
    _, tables = structure.structure(file.root)
    vector = layout().vector("segments")
    sealed = bytearray(data)
    for ordinal, (offset, _) in enumerate(file.spans[: tables.counts[vector.slot]]):
        if offset:
            place = tables.offsets[vector.slot] + ordinal * vector.format.size + _DIGEST_OFFSET
            sealed[place : place + 32] = sha256(file.segment(ordinal)).digest()
    return container.reseal(bytes(sealed))


def _pieces(module: Module) -> list[bytes | memoryview]:
    """The parts of the file in order, including padding; segments are views of the caller's data."""
    tables = _Tables(module)
    root = tables.root()
    decoder.decode_root(memoryview(root))
    return container.build(root, tables.segments, module.attachments, module.sections)


def _view(data: Data) -> memoryview:
    """A view of the bytes of a buffer."""
    view = memoryview(data)  # type: ignore[arg-type]  # NumPy arrays are buffers, which Python 3.11 cannot say
    if not view.c_contiguous:
        raise ValueError("a constant or payload is not contiguous")
    return view.cast("B") if view.nbytes else memoryview(b"")


class _Tables:
    """Collects the rows of every vector, in the order of ownership that the format requires."""

    def __init__(self, module: Module) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {vector.name: [] for vector in layout().vectors}
        self.strings: dict[str, int] = {}
        self.types: dict[str, int] = {}
        self.expressions: dict[str, int] = {}
        self.bytecode = bytearray()
        self.shared: dict[tuple[bytes, int], tuple[int, int]] = {}
        self.segments: list[memoryview | None] = []
        self.parameters: dict[str, int] = {}
        self.stored: dict[tuple[SegmentKind, bytes, str], int] = {}
        #: (id of data, whether in pieces) -> the data, its digest and those of its pieces; programs share data
        self.digests: dict[tuple[int, bool], tuple[Data, bytes, list[bytes]]] = {}
        #: format and segment of a payload -> the minor version that it needs
        self.minors: dict[tuple[str, int], int] = {}
        self.values = bytearray()
        self.header = (0, MAJOR, header_minor(module), self.string(module.producer))
        self._module(module)

    def string(self, text: str) -> int:
        if "\0" in text:
            raise ValueError(f"a string of a module holds a NUL: {text!r}")
        return self.strings.setdefault(text, len(self.strings))

    def type(self, name: str) -> int:
        if name not in self.types:
            self.types[name] = len(self.types)
            self.rows["types"].append((self.string(name),))
        return self.types[name]

    def own(self, vector: str, rows: Iterator[tuple[Any, ...]]) -> tuple[int, int]:
        """Appends rows, and returns their range."""
        table = self.rows[vector]
        start = len(table)
        table.extend(rows)
        return start, len(table)

    def segment(self, kind: SegmentKind, data: Data, name: str = "", chunked: bool = False) -> int:
        view = _view(data)
        chunked = chunked or (kind == SegmentKind.Constant and len(view) >= CHUNKED_FROM)
        known = id(data), chunked
        if known not in self.digests:
            self.digests[known] = data, *(chunk_digests(view) if chunked else (sha256(view).digest(), []))
        _, digest, pieces = self.digests[known]
        if (kind, digest, name) not in self.stored:
            self.stored[kind, digest, name] = len(self.segments)
            self.segments.append(view)
            chunks = self.own("chunks", ((piece,) for piece in pieces))
            named = self.string(name) if name or kind == SegmentKind.Custom else NONE
            self.rows["segments"].append((len(view), digest, *chunks, kind, named))
        return self.stored[kind, digest, name]

    def attributes(self, table: str, attributes: Attributes) -> tuple[int, int]:
        return self.own(table, (self._attribute(key, value) for key, value in attributes.items()))

    def _attribute(self, key: str, value: str | bytes) -> tuple[Any, ...]:
        data, kind = (value.encode(), AttributeKind.Text) if isinstance(value, str) else (value, AttributeKind.Bytes)
        start = len(self.values)
        self.values += data
        return self.string(key), start, len(self.values), kind

    def dims(self, dims: Sequence[int], expressions: Sequence[str] = ()) -> tuple[int, int]:
        if sum(dim < 0 for dim in dims) != len(expressions):
            raise ValueError(f"dimensions {tuple(dims)} with expressions {tuple(expressions)}, one per negative wanted")
        texts = iter(expressions)
        return self.own("dims", ((dim if dim >= 0 else -1 - self.expression(next(texts)),) for dim in dims))

    def expression(self, text: str) -> int:
        if text not in self.expressions:
            self.expressions[text] = len(self.expressions)
            self.rows["expressions"].append((self.string(text),))
        return self.expressions[text]

    def _module(self, module: Module) -> None:
        for row in module.imports:
            flags = ImportFlags.Optional if row.optional else 0
            self.rows["imports"].append((self.string(row.name), self.string(row.signature), flags))
        arguments = [self.own("arguments", map(self._argument, export.arguments)) for export in module.exports]
        results = [self.own("results", map(self._result, export.results)) for export in module.exports]
        self.attributes("attributes", module.attributes)
        for export, taken, given in zip(module.exports, arguments, results, strict=True):
            attributes = self.attributes("export_attributes", export.attributes)
            self.rows["exports"].append(
                (self.string(export.name), self.string(export.doc), *taken, *given, *attributes)
            )
        executables = [self.own("executables", map(self._executable, p.executables)) for p in module.programs]
        maps = [self._source_map(program) for program in module.programs]
        for program, owned, source_map in zip(module.programs, executables, maps, strict=True):
            self._program(program, owned, source_map)
        for name, data in module.custom.items():
            self.segment(SegmentKind.Custom, data, name)
        for name, data in module.debug.items():
            self.segment(SegmentKind.Debug, data, name)

    def _argument(self, value: Value) -> tuple[Any, ...]:
        if value.alias is not None:
            raise ValueError(f"argument {value.name!r} has an alias; results have")
        return self.string(value.name), value.dtype.code, *self.dims(value.dims, value.expressions)

    def _result(self, value: Value) -> tuple[Any, ...]:
        alias = NONE if value.alias is None else value.alias
        return self.string(value.name), value.dtype.code, *self.dims(value.dims, value.expressions), alias

    def _program(self, program: Program, executables: tuple[int, int], source_map: int) -> None:
        copies: Counter[bytes] = Counter()
        row = (
            feature_bits(program.features),
            self.string(program.name),
            self.string(program.profile),
            *self.own("functions", (self._function(function, copies) for function in program.functions)),
            *self.own("globals", map(self._global, program.globals)),
            *self.own("initializers", ((row.function, row.kind) for row in program.initializers)),
            *executables,
            *self.own("constants", map(self._constant, program.constants)),
            *self.own("entries", ((function,) for function in program.entries)),
            *self.attributes("program_attributes", program.attributes),
            source_map,
            1,
            max(program.bytecode_minor, bytecode_minor(function.bytecode for function in program.functions)),
        )
        self.rows["programs"].append(row)

    def _function(self, function: Function, copies: Counter[bytes]) -> tuple[Any, ...]:
        """Programs share equal bytecode. Within a program each function has its own bytes, as the format requires."""
        copy = function.bytecode, copies[function.bytecode]
        copies[function.bytecode] += 1
        if copy not in self.shared:
            start = len(self.bytecode)
            self.bytecode += function.bytecode
            self.shared[copy] = start, len(self.bytecode)
        return (
            self.string(function.name),
            *self.own("value_types", ((self.type(name),) for name in function.arguments)),
            *self.own("value_types", ((self.type(name),) for name in function.results)),
            *self.shared[copy],
            *function.registers,
        )

    def _source_map(self, program: Program) -> int:
        rows = [(f, pc, text) for f, row in enumerate(program.functions) for pc, text in row.locations]
        entries = [
            (at, number, entry)
            for at, row in enumerate(program.executables)
            for number, entry in enumerate(row.entries)
        ]
        rows += [(at + sourcemap.OPS, number, " ".join(e.source_ops)) for at, number, e in entries if e.source_ops]
        rows += [
            (at + sourcemap.BINDINGS, number, "; ".join(e.binding_types))
            for at, number, e in entries
            if e.binding_types
        ]
        return self.segment(SegmentKind.Debug, sourcemap.encode(rows)) if rows else NONE

    def _global(self, row: Global) -> tuple[Any, ...]:
        flags = GlobalFlags.Mutable if row.mutable else 0
        return _bits(row), self.string(row.name), self.type(row.type), flags

    def _executable(self, executable: Executable) -> tuple[Any, ...]:
        variants = self.own("variants", map(self._variant, executable.variants))
        entries = self.own("executable_entries", map(self._entry, executable.entries))
        return self.string(executable.name), *variants, *entries

    def _variant(self, variant: Variant) -> tuple[Any, ...]:
        name, segment = self.string(variant.format), self.segment(SegmentKind.Executable, variant.payload)
        needed = variant.format, segment
        if needed not in self.minors:
            self.minors[needed] = format_minor(variant.format, variant.payload)
        return (
            feature_bits(variant.features),
            name,
            segment,
            *self.own("workgroup_sizes", iter(variant.workgroup_sizes)),
            variant.shared_memory_bytes,
            max(variant.format_minor, self.minors[needed]),
        )

    def _entry(self, entry: Entry) -> tuple[Any, ...]:
        bindings = self.own("bindings", ((binding.length, binding.access) for binding in entry.bindings))
        return self.string(entry.name), *bindings, entry.parameter_words

    def _constant(self, constant: Constant | Parameter) -> tuple[Any, ...]:
        if isinstance(constant, Parameter):
            segment = self._parameter(constant)
        else:
            segment = self.segment(SegmentKind.Constant, constant.data, chunked=constant.chunked)
        return self.string(constant.name), segment, constant.dtype.code, *self.dims(constant.dims)

    def _parameter(self, row: Parameter) -> int:
        """The segment of a parameter, which is never in the file; programs that use the same name share it."""
        size = prod(row.dims) * row.dtype.itemsize
        data = None if row.data is None else _view(row.data)
        if data is not None and len(data) != size:
            raise ValueError(f"parameter {row.name!r} has {len(data)} bytes, its type and dimensions say {size}")
        digest = row.digest if data is None else sha256(data).digest()
        number = self.parameters.setdefault(row.name, len(self.segments))
        if number < len(self.segments):
            known = self.rows["segments"][number][:2]
            if known != (size, digest):
                raise ValueError(f"two parameters are called {row.name!r}")
            return number
        none = self.own("chunks", iter(()))
        self.segments.append(None)
        self.rows["segments"].append((size, digest, *none, SegmentKind.Parameter, NONE))
        return number

    def root(self) -> bytes:
        """Returns size prefix and root."""
        blobs = {
            "strings": "\0".join(self.strings).encode(),
            "bytecode": bytes(self.bytecode),
            "attribute_values": bytes(self.values),
        }
        plan = layout()
        for vector in plan.vectors:
            if vector.name not in blobs:
                blobs[vector.name] = b"".join(_pack(vector, row) for row in self.rows[vector.name])
        builder = flatbuffers.Builder(sum(map(len, blobs.values())) + 1024)
        stored = [v for v in plan.vectors if blobs[v.name] or v.name == "strings"]
        placed = {vector.slot: _vector(builder, vector, blobs[vector.name]) for vector in stored}
        builder.StartObject(1 + len(plan.vectors))
        builder.Prep(plan.header.alignment, plan.header.format.size)
        _place(builder, plan.header.format.pack(*self.header))
        builder.PrependStructSlot(plan.header.slot, builder.Offset(), 0)
        for slot, offset in placed.items():
            builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
        builder.FinishSizePrefixed(builder.EndObject(), file_identifier=plan.identifier)
        return bytes(builder.Output())


def _pack(vector: Vector, row: tuple[Any, ...]) -> bytes:
    try:
        return vector.format.pack(*row)
    except struct.error as error:
        raise ValueError(f"{vector.name}: {row} does not fit the format: {error}") from None


def _vector(builder: Any, vector: Vector, data: bytes) -> int:
    builder.StartVector(vector.format.size, len(data) // vector.format.size, vector.alignment)
    _place(builder, data)
    return int(builder.EndVector())


def _place(builder: Any, data: bytes) -> None:
    """Puts bytes before what is built; the builder has reserved the space."""
    head = builder.Head() - len(data)
    builder.head = head
    builder.Bytes[head : head + len(data)] = data


def _bits(row: Global) -> int:
    """The initial value as the bits that a row stores."""
    if row.type not in NUMBERS:
        if row.value:
            raise ValueError(f"global {row.name!r}: {row.type} starts as null, not as {row.value}")
        return 0
    try:
        return int.from_bytes(struct.pack(decoder.NUMBER_FORMATS[row.type], row.value), "little")
    except (struct.error, OverflowError):
        raise ValueError(f"global {row.name!r}: {row.value} is no {row.type}") from None
