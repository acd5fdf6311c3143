"""A module as the page shows it: plain data, which `page.py` writes as JSON.

A quantity is a number, `{"e": row}` for an expression of the program's table, or None if it is unknown. Nodes are
numbered within their function, buffers and executables within their program. Nothing of the module runs.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from zlib import compress

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.profiles import feature_names
from orchestrion.schema.rows import Access
from orchestrion.schema.versions import BYTECODE_MINOR, MAJOR, needs

from .dependencies import dependencies
from .sequence import Node, Sequence, entry_of, sequences
from .values import Expression, Quantity
from .walk import Walk

if TYPE_CHECKING:
    from orchestrion.schema.module import Module

#: the most characters of one executable's text that are shown
MAX_TEXT: Final = 4_000_000
PlainQuantity = int | dict[str, int] | None


@dataclass
class BindingView:
    """A binding. `buffers`: the possible buffers, by row; None if unknown. `type` is the tensor's MLIR type."""

    access: str
    buffers: list[int] | None
    offset: PlainQuantity
    length: PlainQuantity
    type: str


@dataclass
class NodeView:
    """A node. `executables` and `entry` are those of a dispatch; `place` is (function, pc) of the instruction that
    records it. The label of a "read" is "loop" or "branch" if a command of a recording reads, else "read".
    """

    kind: str
    label: str
    block: int
    ops: list[str]
    location: str
    bindings: list[BindingView]
    place: list[int]
    how: str
    executables: list[int]
    entry: PlainQuantity
    workload: list[PlainQuantity]
    parameters: list[PlainQuantity]


@dataclass
class RangeView:
    buffer: int
    offset: PlainQuantity
    length: PlainQuantity
    writer: int
    spans: list[tuple[int, int]]


@dataclass
class FunctionView:
    """A function. `kind` is "export", "initializer" or "function". `edges` are (writer, reader, 1 if in a later
    iteration, buffers).
    """

    name: str
    kind: str
    signature: str
    nodes: list[NodeView]
    left_out: int
    blocks: list[list[int]]  #: the successors of each block
    edges: list[list[Any]]
    ranges: list[RangeView]
    loops: list[tuple[int, int]]


@dataclass
class VariantView:
    """A variant. `text` is its readable code, compressed by zlib, in base64; `note` states why there is none."""

    format: str
    version: str
    features: list[str]
    bytes: int
    shared_memory: int
    workgroups: list[list[int]]
    text: str
    note: str


@dataclass
class EntryView:
    name: str
    ops: list[str]
    types: list[str]
    accesses: list[str]
    least: list[int]  #: the least bytes of each binding
    parameter_words: int


@dataclass
class ExecutableView:
    name: str
    entries: list[EntryView]
    variants: list[VariantView]


@dataclass
class BufferView:
    kind: str
    name: str
    size: PlainQuantity


@dataclass
class ProgramView:
    """A program. `note` states what cannot be shown. `texts` are the expressions as text, `values` their values for
    `sizes`.
    """

    name: str
    profile: str
    features: list[str]
    note: str
    sizes: dict[str, int]
    expressions: list[list[Any]]
    texts: list[str]
    values: list[int | None]
    buffers: list[BufferView]
    functions: list[FunctionView]
    executables: list[ExecutableView]
    constants: list[dict[str, Any]]


@dataclass
class ModuleView:
    """A module. `about` is the output of `vm-dump --json` without programs and segments."""

    title: str
    about: dict[str, Any]
    exports: list[str]
    programs: list[ProgramView]


def module_view(module: Module, title: str) -> ModuleView:
    """The view of the whole module. Raises ModuleError if the module is damaged."""
    from orchestrion.tools.dump import describe, signature

    found = describe(module)
    about = {key: found[key] for key in ("format", "producer", "bytes", "digest", "attributes", "imports")}
    about["segments"] = [len(found["segments"]), sum(row["bytes"] for row in found["segments"])]
    about["attachments"] = found["attachments"]
    signatures = [signature(export) for export in found["exports"]]
    programs = [
        _program(module, ordinal, signatures, found["programs"][ordinal]["constants"])
        for ordinal in range(len(module.programs))
    ]
    return ModuleView(title, about, signatures, programs)


def _program(module: Module, ordinal: int, signatures: list[str], constants: list[dict[str, Any]]) -> ProgramView:
    row, strings = module.programs[ordinal], module.strings
    view = ProgramView(
        strings[row.name], strings[row.profile], list(feature_names(row.features)), "", {}, [], [], [], [], [],
        [_executable(module, ordinal, number) for number in range(row.executables_end - row.executables_start)],
        constants,
    )  # fmt: skip
    if row.bytecode_minor > BYTECODE_MINOR:
        view.note = needs("bytecode", row.bytecode_minor, BYTECODE_MINOR)
        return view
    walk = Walk(module, ordinal)
    view.functions = [_function(walk, sequence, signatures) for sequence in sequences(walk)]
    expressions = walk.expressions
    view.sizes, view.texts, view.values = expressions.sizes, expressions.texts, expressions.values
    view.expressions = [
        [part if isinstance(part, str) else _plain(part) for part in expression] for expression in expressions.rows
    ]
    view.buffers = [BufferView(buffer.kind, buffer.name, _plain(buffer.size)) for buffer in walk.buffers]
    return view


def _plain(quantity: Quantity | None) -> PlainQuantity:
    return {"e": quantity.row} if isinstance(quantity, Expression) else quantity


def _function(walk: Walk, sequence: Sequence, signatures: list[str]) -> FunctionView:
    function, module, program = sequence.function, walk.module, walk.program
    found = dependencies(sequence.blocks, sequence.nodes, walk.expressions)
    initializers = module.initializers[program.initializers_start : program.initializers_end]
    export = walk.exports.get(function.ordinal)
    kind = "function" if export is None else "export"
    if any(row.function == function.ordinal for row in initializers):
        kind = "initializer"
    return FunctionView(
        function.name,
        kind,
        "" if export is None else signatures[export],
        [_node(walk, function.ordinal, node) for node in sequence.nodes],
        sequence.left_out,
        [list(following) for following in sequence.blocks],
        [[edge.writer, edge.reader, int(edge.carried), list(edge.buffers)] for edge in found.edges()],
        [
            RangeView(row.buffer, _plain(row.offset), _plain(row.length), row.writer, row.spans)
            for row in found.ranges
            if walk.buffers[row.buffer].kind == "allocation"
        ],
        found.loops,
    )


def _node(walk: Walk, function: int, node: Node) -> NodeView:
    command, module = node.command, walk.module
    place = (function, node.pc) if command is None else (command.function, command.pc)
    entry = None if command is None else entry_of(walk, command, walk.expressions.value(command.entry))
    ops: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    label = node.how if node.kind == "call" else node.kind
    if node.kind == "read" and command is not None:
        label = command.kind
    if command is not None and entry is not None:
        executable = command.executables[0]
        first = module.executables[walk.program.executables_start + executable].entries_start
        ops = module.source_ops(walk.ordinal, executable, entry - first)
        types = module.binding_types(walk.ordinal, executable, entry - first)
        label = module.strings[module.executable_entries[entry].name]
    ends = node.kind in ("arguments", "results")
    if ends:
        types = _export_types(walk, function, node)
    return NodeView(
        node.kind,
        label,
        node.block,
        list(ops),
        "" if ends else module.location(walk.ordinal, *place) or "",
        [
            BindingView(
                _ACCESS[touched.reads, touched.writes],
                None if touched.buffers is None else list(touched.buffers),
                _plain(touched.offset),
                _plain(touched.length),
                types[at] if len(types) == len(node.touched) else "",
            )
            for at, touched in enumerate(node.touched)
        ],
        list(place),
        node.how,
        [] if command is None else list(command.executables),
        None if command is None else _plain(command.entry),
        [] if command is None else [_plain(size) for size in command.workload],
        [] if command is None else [_plain(word) for word in command.parameters],
    )


def _export_types(walk: Walk, function: int, node: Node) -> tuple[str, ...]:
    """The types of arguments or results, as in signatures."""
    from orchestrion.tools.dump import tensor

    module, export = walk.module, walk.module.exports[walk.exports[function]]
    rows: list[Any] = list(module.arguments[export.arguments_start : export.arguments_end])
    if node.kind == "results":
        rows = list(module.results[export.results_start : export.results_end])
    texts = [tensor(module, row.dtype, row.dims_start, row.dims_end) for row in rows]
    return tuple(texts[walk.places[row]] for touched in node.touched for row in touched.buffers or ())


_ACCESS: Final = {(True, False): "read", (False, True): "write", (True, True): "readwrite"}


def _executable(module: Module, program: int, ordinal: int) -> ExecutableView:
    strings = module.strings
    row = module.executables[module.programs[program].executables_start + ordinal]
    entries = []
    for number, entry in enumerate(module.executable_entries[row.entries_start : row.entries_end]):
        bindings = module.bindings[entry.bindings_start : entry.bindings_end]
        entries.append(
            EntryView(
                strings[entry.name],
                list(module.source_ops(program, ordinal, number)),
                list(module.binding_types(program, ordinal, number)),
                [Access(binding.access).name.lower() for binding in bindings],
                [binding.length for binding in bindings],
                entry.parameter_words,
            )
        )
    return ExecutableView(strings[row.name], entries, [_variant(module, at) for at in range(*row[1:3])])


def _variant(module: Module, ordinal: int) -> VariantView:
    row = module.variants[ordinal]
    sizes = module.workgroup_sizes[row.workgroup_sizes_start : row.workgroup_sizes_end]
    name, text, note = module.strings[row.format], "", ""
    if module.missing(row.payload):
        note = "its code was taken out of the file"
    else:
        text, note = _text(module, name, row.payload)
    return VariantView(
        name,
        f"{MAJOR}.{row.format_minor}",
        list(feature_names(row.features)),
        module.segments[row.payload].size,
        row.shared_memory_bytes,
        [list(size) for size in sizes],
        text,
        note,
    )


def _text(module: Module, format: str, payload: int) -> tuple[str, str]:
    """The readable code, compressed, and a note. Code that its format rejects has only a note."""
    from orchestrion.tools.dump import readable

    data = module.segment(payload)
    try:
        text = readable(format, data)
    except ModuleError as error:
        return "", f"it cannot be read: {error}"
    shown = text[:MAX_TEXT]
    note = "" if shown == text else f"the first {MAX_TEXT:,} of {len(text):,} characters"
    return b64encode(compress(shown.encode("utf-8", "backslashreplace"), 6)).decode("ascii"), note
