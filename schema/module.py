"""A decoded module: the vectors of `module.fbs` as Python rows, and what lies in the file's segments.

Only `decoder.py` makes one, and everything the schema and `rules.py` promise holds for it. It is never changed, and
may be used from any thread.
"""

from collections.abc import Sequence
from hashlib import sha256

from . import sourcemap
from .container import Container
from .errors import ModuleError
from .rows import (
    NONE,
    Argument,
    Attribute,
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
    Variant,
    WorkgroupSize,
)


class Module:
    """Rows are named tuples of `rows.py`; how to read them stands there. The slots are the schema's vectors by name."""

    __slots__ = (
        "_locations", "_verified", "arguments", "attributes", "bindings", "bytecode", "constants", "container", "dims",
        "entries", "executable_entries", "executables", "exports", "expressions", "functions", "globals", "header",
        "imports", "initializers", "programs", "results", "segments", "strings", "types", "value_types", "variants",
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
    entries: Sequence[int]  #: function ordinals within the program, one per export
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
    _verified: set[int]
    _locations: dict[int, sourcemap.SourceMap | str]  #: a string says what is wrong with it

    def __init__(self) -> None:
        self._verified = set()
        self._locations = {}

    def without_file(self) -> "Module":
        """The rows alone, which keep no file open: for another file with the same root."""
        other = Module()
        for name in _ROWS:
            setattr(other, name, getattr(self, name))
        if not isinstance(self.bytecode.obj, bytes):
            other.bytecode = memoryview(bytes(self.bytecode))
        return other

    def segment(self, ordinal: int, verify: bool = True) -> memoryview:
        """The bytes of a segment, zero-copy. Verifying reads them all, the first time; without it none is read."""
        data = self.container.segment(ordinal)
        if verify and ordinal not in self._verified:
            if sha256(data).digest() != self.segments[ordinal].digest:
                raise ModuleError(f"segment {ordinal} is damaged: its digest differs", self.container.spans[ordinal][0])
            self._verified.add(ordinal)
        return data

    def location(self, program: int, function: int, pc: int) -> str | None:
        """Where in the source an instruction comes from, if the file says so. `function` counts within the program."""
        found = self._source_map(program)
        return None if found is None else found.find(function, pc)

    def source_ops(self, program: int, executable: int, entry: int) -> tuple[str, ...]:
        """Which ops of the source an entry computes, the main one first, if the file says so."""
        found = self._source_map(program)
        return () if found is None else found.source_ops(executable, entry)

    def binding_types(self, program: int, executable: int, entry: int) -> tuple[str, ...]:
        """Which tensor each binding of an entry holds, by its MLIR type, if the file says so."""
        found = self._source_map(program)
        return () if found is None else found.binding_types(executable, entry)

    def _source_map(self, program: int) -> sourcemap.SourceMap | None:
        ordinal = self.programs[program].source_map
        if ordinal == NONE or not self.container.spans[ordinal][0]:
            return None
        found = self._locations.get(ordinal)
        if found is None:  # a damaged map is decoded once too: a chain of callers asks a thousand times
            try:
                found = sourcemap.decode(self.segment(ordinal))
            except ModuleError as error:
                found = str(error)
            self._locations[ordinal] = found
        if isinstance(found, str):
            raise ModuleError(found)
        return found


_ROWS = tuple(name for name in Module.__slots__ if name not in ("_locations", "_verified", "container"))
