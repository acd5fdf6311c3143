"""The device work of a function, in the order of its code: a node for each command of each recording that it runs, and
for each predicate that the host or a recording reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from orchestrion.schema.rows import Access

from .blocks import Blocks
from .facts import Binding, Called, Command, Event, Function, Read, Run
from .values import Expressions, Quantity
from .walk import Walk

#: the most nodes and recorded blocks of one program that are shown
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
    """A node. `kind` is "dispatch", "copy" or "fill"; "read" of a predicate, by a recorded loop or branch if it has a
    command, else by the host; "call" of a function; "run" of an unknown recording; "arguments" and "results" of an
    export. `touched` is in the order of a command's bindings.
    """

    kind: str
    block: int
    pc: int  #: pc of the function's instruction that runs it
    touched: tuple[Touched, ...]
    command: Command | None = None
    how: str = ""  #: the function of `hal` that runs it, or the name of the called function


class Sequence(NamedTuple):
    function: Function
    blocks: list[tuple[int, ...]]  #: the successors of each block
    nodes: list[Node]
    left_out: int  #: the number of nodes beyond `MAX_NODES`


def sequences(walk: Walk) -> list[Sequence]:
    """A sequence for each function that runs something, in the order of the code."""
    silent = _silent(walk)
    found, room = [], MAX_NODES
    for function in walk.functions:
        made = _Builder(walk, room)
        starts, ends = [], []
        for block in function.blocks:
            starts.append(made.blocks.begin())
            for event in block.events:
                if not isinstance(event, Called) or event.name not in silent:
                    made.add(event)
            ends.append(made.blocks.current)
        for end, block in zip(ends, function.blocks, strict=True):
            for target in block.next:
                made.blocks.link(end, starts[target])
        room = made.blocks.room
        if made.nodes:
            blocks = [tuple(row) for row in made.blocks.successors]
            found.append(Sequence(function, blocks, _with_ends(walk, function, blocks, made.nodes), made.left_out))
    return found


class _Builder:
    """Nodes and blocks of one function. `room`: how many of them are shown."""

    def __init__(self, walk: Walk, room: int) -> None:
        self.walk = walk
        self.blocks = Blocks(room)
        self.nodes: list[Node] = []
        self.left_out = 0

    def add(self, event: Event) -> None:
        match event:
            case Run():
                for recording in event.recordings:
                    for command in self.walk.recordings.get(recording, ()):
                        self._command(event, command)
                    self.blocks.finish()
                if not event.recordings:
                    self._node("run", event.pc, (), None, event.how)
            case Read():
                self._node("read", event.pc, (Touched(event.buffers, event.offset, event.length, True, False),))
            case Called():
                kinds = [self.walk.buffers[row].kind for row in event.buffers]
                rows = zip(event.buffers, kinds, strict=True)
                touched = tuple(Touched((row,), 0, None, True, kind == "result") for row, kind in rows)
                self._node("call", event.pc, touched, None, event.name)

    def _command(self, run: Run, command: Command) -> None:
        match command.kind:
            case "loop":
                self.blocks.begin_loop()
                self._node("read", run.pc, _touched(self.walk, command, run), command, run.how)
                self.blocks.enter()
            case "branch":
                self._node("read", run.pc, _touched(self.walk, command, run), command, run.how)
                self.blocks.begin_branch()
                self.blocks.enter()
            case "next_arm":
                self.blocks.next_arm()
            case "end":
                self.blocks.end()
            case kind:
                self._node(kind, run.pc, _touched(self.walk, command, run), command, run.how)

    def _node(
        self, kind: str, pc: int, touched: tuple[Touched, ...], command: Command | None = None, how: str = ""
    ) -> None:
        if self.blocks.take():
            self.nodes.append(Node(kind, self.blocks.current, pc, touched, command, how))
        else:
            self.left_out += 1


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


def _with_ends(walk: Walk, function: Function, blocks: list[tuple[int, ...]], nodes: list[Node]) -> list[Node]:
    """Adds nodes for arguments and results, for the function of an export."""
    if function.ordinal not in walk.exports:
        return nodes
    used = {row for node in nodes for touched in node.touched for row in touched.buffers or ()}
    arguments = tuple(Touched((row,), 0, None, False, True) for row in sorted(used) if _is(walk, row, "argument"))
    results = tuple(Touched((row,), 0, None, True, False) for row in sorted(used) if _is(walk, row, "result"))
    last = max((at for at, following in enumerate(blocks) if not following), default=len(blocks) - 1)
    first = [Node("arguments", 0, 0, arguments)] if arguments else []
    return first + nodes + ([Node("results", last, 0, results)] if results else [])


def _is(walk: Walk, row: int, kind: str) -> bool:
    return walk.buffers[row].kind == kind


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
    if command.kind != "dispatch":
        return [(True, False)] * len(command.bindings)
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
