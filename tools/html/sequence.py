"""The device work of a function, in the order of its code: a node for each command of each recording that it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from orchestrion.schema.rows import Access

from .facts import Binding, Called, Command, Event, Function, Read, Run
from .values import Expressions, Quantity
from .walk import Walk

#: the most nodes of one program that are shown
MAX_NODES: Final = 20_000


class Touched(NamedTuple):
    """A range of bytes that a node reads, writes or both. None: unknown."""

    buffers: tuple[int, ...] | None  #: the possible buffers
    offset: Quantity | None
    length: Quantity | None
    reads: bool
    writes: bool


@dataclass
class Node:
    """A node. `kind` is "dispatch", "copy" or "fill"; "read" by the host; "call" of a function; "run" of an unknown
    recording; "arguments" and "results" of an export. `touched` is in the order of a command's bindings.
    """

    kind: str
    block: int
    pc: int  #: pc of the function's instruction that runs it
    touched: tuple[Touched, ...]
    command: Command | None = None
    how: str = ""  #: the function of `hal` that runs it, or the name of the called function


class Sequence(NamedTuple):
    function: Function
    nodes: list[Node]
    left_out: int  #: the number of nodes beyond `MAX_NODES`


def sequences(walk: Walk) -> list[Sequence]:
    """A sequence for each function that runs something, in the order of the code."""
    silent = _silent(walk)
    found, room = [], MAX_NODES
    for function in walk.functions:
        nodes: list[Node] = []
        left_out = 0
        for at, event in ((at, event) for at, block in enumerate(function.blocks) for event in block.events):
            if isinstance(event, Called) and event.name in silent:
                continue
            for node in _nodes(walk, at, event):
                if len(nodes) < room:
                    nodes.append(node)
                else:
                    left_out += 1
        room -= len(nodes)
        if nodes:
            found.append(Sequence(function, _with_ends(walk, function, nodes), left_out))
    return found


def _silent(walk: Walk) -> set[str]:
    """Functions of the program that run nothing, and call none that does, such as setups."""
    busy = {
        function.name
        for function in walk.functions
        if any(not isinstance(event, Called) for block in function.blocks for event in block.events)
    }
    own = {function.name for function in walk.functions}
    calls = {
        function.name: {e.name for block in function.blocks for e in block.events if isinstance(e, Called)}
        for function in walk.functions
    }
    callers: dict[str, set[str]] = {}
    for name, called in calls.items():
        for one in called:
            callers.setdefault(one, set()).add(name)
        if called - own:
            busy.add(name)
    todo = list(busy)
    while todo:
        fresh = callers.get(todo.pop(), set()) - busy
        busy |= fresh
        todo += fresh
    return own - busy


def _with_ends(walk: Walk, function: Function, nodes: list[Node]) -> list[Node]:
    """Adds nodes for arguments and results, for the function of an export."""
    if function.ordinal not in walk.exports:
        return nodes
    used = {row for node in nodes for touched in node.touched for row in touched.buffers or ()}
    arguments = tuple(Touched((row,), 0, None, False, True) for row in sorted(used) if _is(walk, row, "argument"))
    results = tuple(Touched((row,), 0, None, True, False) for row in sorted(used) if _is(walk, row, "result"))
    last = max(at for at, block in enumerate(function.blocks) if not block.next)
    first = [Node("arguments", 0, 0, arguments)] if arguments else []
    return first + nodes + ([Node("results", last, 0, results)] if results else [])


def _is(walk: Walk, row: int, kind: str) -> bool:
    return walk.buffers[row].kind == kind


def _nodes(walk: Walk, block: int, event: Event) -> Iterator[Node]:
    match event:
        case Run():
            for recording in event.recordings:
                for command in walk.recordings.get(recording, ()):
                    yield Node(command.kind, block, event.pc, _touched(walk, command, event), command, event.how)
            if not event.recordings:
                yield Node("run", block, event.pc, (), None, event.how)
        case Read():
            yield Node("read", block, event.pc, (Touched(event.buffers, event.offset, event.length, True, False),))
        case Called():
            rows = tuple(Touched((row,), 0, None, True, walk.buffers[row].kind == "result") for row in event.buffers)
            yield Node("call", block, event.pc, rows, None, event.name)


def _touched(walk: Walk, command: Command, run: Run) -> tuple[Touched, ...]:
    accesses = _accesses(walk, command)
    return tuple(
        Touched(_buffers(binding, run), binding.offset, binding.length, *access)
        for binding, access in zip(command.bindings, accesses, strict=False)
    )


def _buffers(binding: Binding, run: Run) -> tuple[int, ...] | None:
    if binding.slot is None:
        return binding.buffers
    return run.slots[binding.slot] if 0 <= binding.slot < len(run.slots) else None


def _accesses(walk: Walk, command: Command) -> list[tuple[bool, bool]]:
    """(reads, writes) of each binding. If the entry of a dispatch is unknown, every binding may be read and written."""
    if command.kind == "copy":
        return [(True, False), (False, True)]
    if command.kind == "fill":
        return [(False, True)]
    rows = entry_bindings(walk, command, walk.expressions)
    if len(rows) != len(command.bindings):
        return [(True, True)] * len(command.bindings)
    return [(access != Access.Write, access != Access.Read) for access in rows]


def entry_bindings(walk: Walk, command: Command, expressions: Expressions) -> list[int]:
    """The accesses of the bindings of a dispatch's entry for the first sizes; empty if the entry is unknown."""
    place = entry_of(walk, command, expressions.value(command.entry))
    if place is None:
        return []
    row = walk.module.executable_entries[place]
    return [binding.access for binding in walk.module.bindings[row.bindings_start : row.bindings_end]]


def entry_of(walk: Walk, command: Command, entry: int | None) -> int | None:
    """The row of `executable_entries`; None if it is unknown, or the code names an entry that does not exist."""
    program = walk.program
    if len(command.executables) != 1 or entry is None:
        return None
    (ordinal,) = command.executables
    if not 0 <= ordinal < program.executables_end - program.executables_start:
        return None
    row = walk.module.executables[program.executables_start + ordinal]
    return row.entries_start + entry if 0 <= entry < row.entries_end - row.entries_start else None
