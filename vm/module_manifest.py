"""Converts a module to its manifest, and a manifest to the rows from which `selection.py` selects a program.

`manifest_of` fills the manifest of a module (`schema/shipping/manifest.py`). `rows_of` gives a module with the
programs, executables and variants of a manifest, without bytecode, entries or data. So a module and its manifest lead
to the same selection.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from orchestrion.schema.container import Container
from orchestrion.schema.dtypes import BY_CODE
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.module import Module
from orchestrion.schema.rows import NONE, Binding, Constant, Entry, Header, SegmentKind
from orchestrion.schema.rows import Executable as ExecutableRow
from orchestrion.schema.rows import Program as ProgramRow
from orchestrion.schema.rows import Segment as SegmentRow
from orchestrion.schema.rows import Variant as VariantRow
from orchestrion.schema.shipping.manifest import (
    MAJOR,
    MAX_HEX,
    MAX_ROWS,
    MAX_SEGMENTS,
    MAX_TEXT,
    MINOR,
    Executable,
    File,
    Format,
    Import,
    Limit,
    Manifest,
    Maxima,
    Model,
    Parameter,
    Part,
    Program,
    Variant,
)
from orchestrion.schema.tensor_bytecode import FORMAT, LIBRARY_CALL
from orchestrion.schema.tensor_encoding import decode
from orchestrion.schema.tensor_template import decode_template, is_template
from orchestrion.schema.trust.signature_set import Part as SignedPart
from orchestrion.schema.trust.signature_set import decode as decode_set
from orchestrion.schema.trust.signers import MAX_SETS, Subject
from orchestrion.schema.versions import BYTECODE_MINOR, FORMAT_MINORS

from .admission import needs_of, parts_of, signature_sets
from .errors import shorten
from .verifier import verify

#: parameters that a manifest lists; it also has their number
MAX_PARAMETERS = 64
_LIMITS_PREFIX = "limits."
#: the prefix of imports that are always present
_HAL = "hal."


def manifest_of(
    module: Module, sets: Sequence[bytes | memoryview] = (), problems: dict[int, str] | None = None
) -> Manifest:
    """The manifest of a module in a file. `sets`: signature sets of the module that are not in the file.

    Reads the whole file, for its digest. `ModuleError` if an attribute, the code of a program, or a signature set is
    malformed.

    With `problems`, none of these raises, since a load may not need the malformed part. The message is put into
    `problems`, by the ordinal of the program, or at -1 for attributes. The digest of the file is then zero, and
    constants are not read.
    """
    file, header = module.container, module.header
    sets = [*sets, *signature_sets(file)][:MAX_SETS]
    parameters = list(_parameters(module))
    return Manifest(
        f"{MAJOR}.{MINOR}",
        File(len(file.data), file.digest.hex(), sha256(file.data).hexdigest() if problems is None else "0" * 64),
        Format(header.major, header.minor, header.features, _short(module.strings[header.producer])),
        _model(module, problems),
        tuple([_program(module, ordinal, problems) for ordinal in range(len(module.programs))]),
        len(parameters),
        sum([row.bytes for row in parameters]),
        tuple(parameters[:MAX_PARAMETERS]),
        tuple(_limits(module)),
        tuple(sorted(needs_of(module))),
        tuple([Part(row.name, row.digest.hex()) for row in parts_of(file)]),
        tuple(_signers(sets)) if problems is None else (),
        tuple([data.hex() for data in sets]),
    )


def _model(module: Module, problems: dict[int, str] | None) -> Model:
    try:
        name, version = module.model_name, module.model_version
    except ModuleError as error:
        if problems is None:
            raise
        problems[-1] = str(error)
        return Model()
    return Model(None if name is None else _short(name), version)


def _signers(sets: Sequence[bytes | memoryview]) -> list[str]:
    """The ids of the keys in signature sets. `ModuleError` for a set that is malformed or too long for a manifest."""
    if any(2 * len(data) > MAX_HEX for data in sets):
        raise ModuleError(f"a signature set has more than the {MAX_HEX // 2} bytes that a manifest takes")
    return sorted({row.key_id.hex() for data in sets for row in decode_set(data).signatures})


def signed_subject(manifest: Manifest) -> Subject:
    """What the signatures of the module that a manifest describes must state."""
    digest, model = bytes.fromhex(manifest.file.digest), manifest.model
    parts = tuple([SignedPart(row.name, bytes.fromhex(row.sha256)) for row in manifest.parts])
    return Subject("module", digest, frozenset(manifest.scopes), model.name, model.version, parts)


def _short(text: str) -> str:
    """A text, shortened to the length that a manifest may have."""
    return shorten(text, MAX_TEXT)


def _program(module: Module, ordinal: int, problems: dict[int, str] | None) -> Program:
    row = module.programs[ordinal]
    segments = dict.fromkeys([at.segment for at in module.constants[row.constants_start : row.constants_end]])
    try:
        imports, libraries = tuple(_imports(module, ordinal)), tuple(sorted(_libraries(module, row)))
    except ModuleError as error:
        if problems is None:
            raise
        problems[ordinal] = str(error)
        imports, libraries = (), ()
    return Program(
        _short(module.strings[row.name]),
        _short(module.strings[row.profile]),
        row.features,
        row.bytecode_minor,
        row.devices,
        sum([module.segments[segment].size for segment in segments]),
        next((segment for segment in segments if module.missing(segment)), None),
        _executables(module, row),
        imports,
        libraries,
        _most(module, row),
    )


def _executables(module: Module, row: ProgramRow) -> tuple[Executable, ...]:
    """One row for all executables with the same variants, in the order of the first of each. Absent segments are those
    of the first.
    """
    groups: dict[tuple[Variant, ...], Executable] = {}
    for executable in module.executables[row.executables_start : row.executables_end]:
        variants = tuple([_variant(module, at) for at in _variants(module, executable)])
        alike = tuple([replace(at, absent=None if at.absent is None else 0) for at in variants])
        first = groups.get(alike) or Executable(_short(module.strings[executable.name]), 0, variants)
        groups[alike] = replace(first, count=first.count + 1)
    return tuple(groups.values())


def _variants(module: Module, row: ExecutableRow) -> Sequence[VariantRow]:
    return module.variants[row.variants_start : row.variants_end]


def _variant(module: Module, row: VariantRow) -> Variant:
    sizes = module.workgroup_sizes[row.workgroup_sizes_start : row.workgroup_sizes_end]
    return Variant(
        _short(module.strings[row.format]),
        row.features,
        row.format_minor,
        row.shared_memory_bytes,
        max([x * y * z for x, y, z in sizes], default=1),
        row.payload if module.missing(row.payload) else None,
    )


def _imports(module: Module, ordinal: int) -> Iterator[Import]:
    """The functions of native modules other than `hal` that the program calls."""
    if module.programs[ordinal].bytecode_minor > BYTECODE_MINOR:
        return
    for row in verify(module, ordinal).imports:
        if row is not None and not row.name.startswith(_HAL):
            yield Import(_short(row.name), _short(str(row.signature)), row.optional)


def _libraries(module: Module, row: ProgramRow) -> set[str]:
    """The library functions that the program's tensor bytecode calls, in payloads that this version can read."""
    place = [kind for _, kind in LIBRARY_CALL.attributes].index("function")
    found: set[str] = set()
    for executable in module.executables[row.executables_start : row.executables_end]:
        for variant in _variants(module, executable):
            known = module.strings[variant.format] == FORMAT and variant.format_minor <= FORMAT_MINORS[FORMAT]
            if known and not module.missing(variant.payload):
                payload = module.segment(variant.payload)
                code = decode_template(payload).payload if is_template(payload) else payload
                calls = [one for entry in decode(code).entries for one in entry.instructions if one.row is LIBRARY_CALL]
                found |= {one.attributes[place] for one in calls}
    return found


def _most(module: Module, row: ProgramRow) -> Maxima:
    entries = [
        entry
        for executable in module.executables[row.executables_start : row.executables_end]
        for entry in module.executable_entries[executable.entries_start : executable.entries_end]
    ]
    found = {
        "bindings": [entry.bindings_end - entry.bindings_start for entry in entries],
        "binding_bytes": [
            max([at.length for at in module.bindings[entry.bindings_start : entry.bindings_end]], default=0)
            for entry in entries
        ],
        "parameter_bytes": [4 * entry.parameter_words for entry in entries],
    }
    made: dict[str, int | str] = {}
    for name, values in found.items():
        most = max(values, default=0)
        if most:
            made |= {name: most, f"{name}_of": _short(module.strings[entries[values.index(most)].name])}
    return Maxima(**made)  # type: ignore[arg-type]


def _parameters(module: Module) -> Iterator[Parameter]:
    """The constants whose bytes are in another file, each segment once."""
    seen: set[int] = set()
    for row in module.constants:
        segment = module.segments[row.segment]
        if segment.kind != SegmentKind.Parameter or row.segment in seen:
            continue
        seen.add(row.segment)
        digest = segment.digest.hex() if any(segment.digest) else ""
        yield Parameter(_short(module.strings[row.name]), _type(module, row), segment.size, digest)


def _type(module: Module, row: Constant) -> str:
    return "x".join([*map(str, module.dims[row.dims_start : row.dims_end]), BY_CODE[row.dtype].name])


def _limits(module: Module) -> Iterator[Limit]:
    for row in module.attributes:
        key, value = module.strings[row.key], module.attribute_value(row)
        if key.startswith(_LIMITS_PREFIX) and isinstance(value, str):
            yield Limit(_short(key.removeprefix(_LIMITS_PREFIX)), _short(value))


def rows_of(manifest: Manifest) -> Module:
    """A module with the rows of a manifest that selection reads, without code and data."""
    made = _Rows()
    for program in manifest.programs:
        made.add(program)
    return made.module(manifest)


class _Rows:
    """Collects the rows of a module. All present segments have the last ordinal."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {"": 0}
        self.programs: list[ProgramRow] = []
        self.executables: list[ExecutableRow] = []
        self.variants: list[VariantRow] = []
        self.constants: list[Constant] = []
        self.entries: list[Entry] = []
        self.bindings: list[Binding] = []
        self.absent: dict[int, SegmentKind] = {}

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def segment(self, absent: int | None, kind: SegmentKind) -> int:
        if absent is None:
            return MAX_SEGMENTS
        self.absent[absent] = kind
        return absent

    def add(self, program: Program) -> None:
        executables, constants = len(self.executables), len(self.constants)
        if program.absent is not None:
            self.constants.append(Constant(0, self.segment(program.absent, SegmentKind.Constant), 0, 0, 0))
        for row in program.executables:
            start, entries = len(self.variants), len(self.entries)
            self.variants += [self._variant(variant) for variant in row.variants]
            if row is program.executables[0]:
                self._add_entries(program.most)
            name = self.string(row.name)
            self.executables.append(ExecutableRow(name, start, len(self.variants), entries, len(self.entries)))
        ranges = {"executables": (executables, len(self.executables)), "constants": (constants, len(self.constants))}
        spans = {f"{name}_{end}": span[at] for name, span in ranges.items() for at, end in enumerate(("start", "end"))}
        fields = dict.fromkeys(ProgramRow._fields, 0) | spans
        fields |= {
            "features": program.features,
            "name": self.string(program.name),
            "profile": self.string(program.profile),
            "bytecode_minor": program.bytecode_minor,
            "source_map": NONE,
            "devices": program.devices,
        }
        self.programs.append(ProgramRow(**fields))

    def _add_entries(self, most: Maxima) -> None:
        """Two entries: the one with the most bindings, and the one with the longest."""
        for name, lengths in (
            (most.bindings_of, [0] * min(most.bindings, MAX_ROWS)),
            (most.binding_bytes_of, [most.binding_bytes]),
        ):
            start = len(self.bindings)
            self.bindings += [Binding(length, 0) for length in lengths]
            self.entries.append(Entry(self.string(name), start, len(self.bindings), 0))

    def _variant(self, row: Variant) -> VariantRow:
        segment = self.segment(row.absent, SegmentKind.Executable)
        shared, minor = row.shared_memory_bytes, row.format_minor
        return VariantRow(row.features, self.string(row.format), segment, 0, 0, shared, minor)

    def module(self, manifest: Manifest) -> Module:
        there = max(self.absent, default=-1) + 1
        digest = bytes.fromhex(manifest.file.digest)
        spans = [(0, 0) if at in self.absent else (64, 1) for at in range(there + 1)]
        file = Container(memoryview(b""), memoryview(b""), digest, tuple(spans))
        file.complete = not self.absent
        module = Module()
        for name in Module.__slots__:
            if not name.startswith("_"):
                setattr(module, name, ())
        module.container = file
        format = manifest.format
        module.header = Header(format.features, format.major, format.minor, 0)
        module.strings = list(self.strings)
        module.programs, module.executables = self.programs, self.executables
        module.variants = [row._replace(payload=min(row.payload, there)) for row in self.variants]
        module.constants = self.constants
        module.executable_entries, module.bindings = self.entries, self.bindings
        kinds = [self.absent.get(at, SegmentKind.Executable) for at in range(there + 1)]
        module.segments = [SegmentRow(1, digest, 0, 0, kind, NONE) for kind in kinds]
        return module
