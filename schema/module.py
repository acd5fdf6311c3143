"""A decoded module: the vectors of `module.fbs` as Python rows, and access to the file's segments.

Only `decoder.py` creates one. It satisfies everything that the schema and `rules.py` state. It is immutable, and
thread-safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import sourcemap
from .container import Container
from .errors import ModuleError
from .rows import (
    NONE,
    Argument,
    Attribute,
    AttributeKind,
    Binding,
    Constant,
    Entry,
    Executable,
    Exported,
    Function,
    Global,
    Header,
    Imported,
    Initializer,
    Program,
    Result,
    Segment,
    SegmentKind,
    Variant,
    WorkgroupSize,
)
from .segments import DATA_KINDS, verify_segment

if TYPE_CHECKING:
    from .trust.guard import Guard

#: the highest value of `model.version`
MAX_VERSION = 2**63 - 1


class Module:
    """A decoded module. Rows are named tuples of `rows.py`, which documents them. The slots are the schema's vectors by
    name.
    """

    __slots__ = (
        "_locations", "_verified", "arguments", "attribute_values", "attributes", "bindings", "bytecode", "chunks",
        "constants", "container", "dims", "entries", "executable_entries", "executables", "export_attributes",
        "exports", "expressions", "feature_names", "functions", "globals", "guard", "header", "imports", "initializers",
        "program_attributes", "programs", "results", "segments", "strings", "types", "value_types", "variants",
        "workgroup_sizes",
    )  # fmt: skip

    container: Container
    header: Header
    strings: Sequence[str]
    imports: Sequence[Imported]
    exports: Sequence[Exported]
    arguments: Sequence[Argument]
    results: Sequence[Result]
    dims: Sequence[int]
    programs: Sequence[Program]
    entries: Sequence[int]  #: function ordinal within the program, one per export
    functions: Sequence[Function]
    types: Sequence[int]  #: string ordinals: `strings[types[t]]` names value type t
    value_types: Sequence[int]  #: ordinals in `types`
    bytecode: memoryview
    globals: Sequence[Global]
    initializers: Sequence[Initializer]
    executables: Sequence[Executable]
    variants: Sequence[Variant]
    workgroup_sizes: Sequence[WorkgroupSize]
    executable_entries: Sequence[Entry]
    bindings: Sequence[Binding]
    constants: Sequence[Constant]
    segments: Sequence[Segment]
    attributes: Sequence[Attribute]
    expressions: Sequence[int]  #: string ordinals
    export_attributes: Sequence[Attribute]
    program_attributes: Sequence[Attribute]
    attribute_values: memoryview
    chunks: memoryview  #: 32 bytes per digest
    feature_names: Sequence[int]  #: string ordinals
    guard: Guard | None  #: set under a trust policy; it verifies segments before they are used
    _verified: set[int]
    _locations: dict[int, sourcemap.SourceMap | str]  #: by program; a string is the error of a damaged map

    def __init__(self) -> None:
        self.guard = None
        self._verified = set()
        self._locations = {}

    def without_file(self) -> Module:
        """The rows without the file, for another file with the same root."""
        other = Module()
        for name in _ROWS:
            setattr(other, name, getattr(self, name))
        return other

    def segment(self, ordinal: int, verify: bool = True) -> memoryview:
        """The verified bytes of a segment: a copy, except of a constant, which is read once. Without `verify` nothing
        is read or copied.

        Another process may write to a mapped file, so code is copied before it is verified.
        """
        if verify and self.guard is not None:
            return self.guard.segment(ordinal)
        data, row = self.container.segment(ordinal), self.segments[ordinal]
        if not verify or ordinal in self._verified:
            return data
        if row.kind not in DATA_KINDS:
            data = memoryview(bytes(data))
        verify_segment(row, data, f"segment {ordinal}", self.container.spans[ordinal][0])
        if row.kind in DATA_KINDS:
            self._verified.add(ordinal)
        return data

    def missing(self, ordinal: int) -> bool:
        """Whether a segment was removed from the file. Parameters are never in the file."""
        return not self.container.spans[ordinal][0] and self.segments[ordinal].kind != SegmentKind.Parameter

    def custom(self, name: str) -> memoryview | None:
        """The verified custom segment of a name, or None. Raises ModuleError if it is damaged."""
        for ordinal, row in enumerate(self.segments):
            if row.kind == SegmentKind.Custom and self.strings[row.name] == name:
                return self.segment(ordinal)
        return None

    def debug(self, name: str) -> memoryview | None:
        """The verified debug segment of a name, or None. Raises ModuleError if it is damaged, or not in the file."""
        for ordinal, row in enumerate(self.segments):
            if row.kind == SegmentKind.Debug and row.name != NONE and self.strings[row.name] == name:
                return self.segment(ordinal)
        return None

    def attribute(self, key: str) -> str | bytes | None:
        """An attribute of the module, such as `model.name`, or None."""
        return self._attribute(self.attributes, key)

    def export_attribute(self, export: int, key: str) -> str | bytes | None:
        """An attribute of an export, which is given by its ordinal, or None."""
        row = self.exports[export]
        return self._attribute(self.export_attributes[row.attributes_start : row.attributes_end], key)

    def program_attribute(self, program: int, key: str) -> str | bytes | None:
        """An attribute of a program, which is given by its ordinal, or None."""
        row = self.programs[program]
        return self._attribute(self.program_attributes[row.attributes_start : row.attributes_end], key)

    def attribute_value(self, row: Attribute) -> str | bytes:
        """The value of an attribute: a str for a text, otherwise bytes."""
        data = bytes(self.attribute_values[row.value_start : row.value_end])
        return data.decode() if row.kind == AttributeKind.Text else data

    def _attribute(self, rows: Sequence[Attribute], key: str) -> str | bytes | None:
        return next((self.attribute_value(row) for row in rows if self.strings[row.key] == key), None)

    @property
    def model_name(self) -> str | None:
        """The attribute `model.name`, or None. Raises ModuleError if it is not a text."""
        found = self.attribute("model.name")
        if isinstance(found, bytes):
            raise ModuleError("the attribute model.name is bytes, a text wanted")
        return found

    @property
    def model_version(self) -> int | None:
        """The attribute `model.version`, or None. Raises ModuleError if it is not a decimal integer from
        0 to 2^63-1.
        """
        found = self.attribute("model.version")
        if found is None:
            return None
        text = found if isinstance(found, str) else ""
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MAX_VERSION):
            raise ModuleError(f"the attribute model.version is {found!r:.100}, an integer from 0 to 2^63-1 wanted")
        return int(text)

    def location(self, program: int, function: int, pc: int) -> str | None:
        """The source location of an instruction, or None if the file has none. `function` counts within the program."""
        found = self._source_map(program)
        return None if found is None else found.find(function, pc)

    def source_ops(self, program: int, executable: int, entry: int) -> tuple[str, ...]:
        """The source ops that an entry computes, the main one first; empty if the file does not state them."""
        found = self._source_map(program)
        return () if found is None else found.source_ops(executable, entry)

    def binding_types(self, program: int, executable: int, entry: int) -> tuple[str, ...]:
        """The MLIR type of the tensor in each binding of an entry; empty if the file does not state them."""
        found = self._source_map(program)
        return () if found is None else found.binding_types(executable, entry)

    def _source_map(self, program: int) -> sourcemap.SourceMap | None:
        ordinal = self.programs[program].source_map
        if ordinal == NONE or not self.container.spans[ordinal][0]:
            return None
        found = self._locations.get(ordinal)
        if found is None:  # the result is cached, also for a damaged map: a call chain may query it a thousand times
            try:
                found = sourcemap.decode(self.segment(ordinal))
            except ModuleError as error:
                found = str(error)
            self._locations[ordinal] = found
        if isinstance(found, str):
            raise ModuleError(found)
        return found


_ROWS = tuple(name for name in Module.__slots__ if name not in ("_locations", "_verified", "container", "guard"))
