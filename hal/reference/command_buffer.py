"""Recordings of the reference device: the recorded commands, and their views of the last tables of buffers.

A run needs views of the buffers. The views of the last two tables are kept, so a run with the same buffers makes none,
nor does a loop whose states swap buffers. Releasing a buffer drops its views, because they would keep its memory alive.
A recording that would need very many views makes those of one command at a time instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from orchestrion.hal.backend import BackendBuffer, BackendCommandBuffer, BackendExecutable, Binding, Bytes
from orchestrion.hal.errors import DeviceOutOfMemory

from .control_flow import ControlFlow
from .executable import ReferenceExecutable, Words, words_of
from .interrupt import OPERATIONS_PER_POLL
from .kernels import Poll
from .program import CompiledEntry, Registers, Step

Table = Sequence[BackendBuffer]
Bound = tuple[Sequence[Step], Registers]
Command = Callable[[Table], Bound]

#: the most registers of a recording that are kept between runs, for each table
MAX_KEPT_REGISTERS = 1 << 16


class ReferenceCommandBuffer(BackendCommandBuffer):
    __slots__ = ("_before", "_bound", "_commands", "_flow", "_limit", "_poll", "_registers", "_since_poll", "_table")

    def __init__(self, limit: int, poll: Poll) -> None:
        """`limit`: bytes of memory of the device. `poll` is called between commands that take long."""
        self._commands: list[Command] = []
        self._flow: ControlFlow | None = None  #: None if commands run one after the other
        self._limit = limit
        self._poll = poll
        self._since_poll = 0
        self._registers = 0
        self._table: list[Any] | None = None
        self._bound: tuple[Bound, ...] = ()
        #: the previous table, and its bound commands
        self._before: tuple[list[Any] | None, tuple[Bound, ...]] = None, ()

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        """An entry computes whole tensors, so the number of workgroups is ignored."""
        assert isinstance(executable, ReferenceExecutable)
        places = [(source, offset) for source, offset, _ in bindings]
        sources = [source for source, _ in places]
        written = [access != "read" for access, _ in executable.entries[entry].bindings]
        slots = True in written and int in map(type, sources)
        known = _overlap(bindings, sources, written)
        words = words_of(parameters)
        if words:
            executable.check(entry, words, executable.entries[entry], bindings)
        code = self._fitting(executable, entry, known, words)
        before = self._polls(code.operations)

        def command(table: Table) -> Bound:
            memories = [(_buffer(table, source).host, offset) for source, offset in places]
            owners = [id(memory) for memory, _ in memories]
            if slots and _overlap(bindings, owners, written):
                overlapping = self._fitting(executable, entry, True, words)
                return (*before, *overlapping.steps), overlapping.bind(memories)
            return steps, code.bind(memories)

        steps = (*before, *code.steps)
        self._registers += code.size
        self._commands.append(command)

    def copy(self, source: Binding, target: Binding) -> None:
        steps = (*self._polls(source.length), _copy)

        def command(table: Table) -> Bound:
            return steps, [_memory(table, target), _memory(table, source)]

        self._registers += 2
        self._commands.append(command)

    def fill(self, target: Binding, pattern: bytes) -> None:
        word = np.frombuffer(pattern, f"<u{len(pattern)}")
        steps = (*self._polls(target.length), _copy)

        def command(table: Table) -> Bound:
            return steps, [_memory(table, target).view(word.dtype), word]

        self._registers += 2
        self._commands.append(command)

    def barrier(self) -> None:
        """Nothing to do: commands run one after the other."""

    def begin_loop(self, predicate: Binding) -> None:
        self._control_flow().begin_loop(len(self._commands))
        self._read(predicate)

    def begin_branch(self, selector: Binding, arms: int) -> None:
        self._control_flow().begin_branch(len(self._commands), arms)
        self._read(selector)

    def next_arm(self) -> None:
        self._control_flow().next_arm(len(self._commands))
        self._commands.append(lambda table: ((), []))

    def end(self) -> None:
        """A loop calls the watcher in each iteration."""
        self._control_flow().end(len(self._commands))
        poll = self._poll
        steps = (lambda registers: poll(),)
        self._commands.append(lambda table: (steps, []))

    def _control_flow(self) -> ControlFlow:
        if self._flow is None:
            self._flow = ControlFlow()
        return self._flow

    def _read(self, what: Binding) -> None:
        """Record a command whose single register is the memory of a predicate or selector."""
        self._registers += 1
        self._commands.append(lambda table: ((), [_memory(table, what)]))

    def finish(self) -> None:
        return

    def run(self, table: Table) -> None:
        """Run all commands with these buffers in the slots."""
        kept = self._registers <= MAX_KEPT_REGISTERS
        if kept and table != self._table:
            self._bind(table)
        try:
            for steps, registers in self._bound if kept else self._one_by_one(table):
                for step in steps:
                    step(registers)
        except BaseException as error:
            self.unbind()
            if isinstance(error, MemoryError):
                raise DeviceOutOfMemory(f"the system has no more memory: {error}") from error
            raise

    def unbind(self) -> None:
        """Drop the views of the last runs."""
        before, _ = self._before
        for buffer in (*(self._table or ()), *(before or ())):
            buffer.users.discard(self)
        self._table, self._bound, self._before = None, (), (None, ())

    def release(self) -> None:
        self.unbind()
        self._commands.clear()

    def _bind(self, table: Table) -> None:
        """Make or find the views of a table; the least recently used ones are dropped."""
        (found, bound), self._before = self._before, (self._table, self._bound)
        self._table, self._bound = found, bound
        if found == table:
            return
        self._table, self._bound = None, ()
        kept, _ = self._before
        for buffer in found or ():
            if kept is None or buffer not in kept:
                buffer.users.discard(self)
        bound = tuple([command(table) for command in self._commands])
        self._bound = bound if self._flow is None else self._flow.as_one(len(bound), bound.__getitem__)
        self._table = list(table)
        for buffer in self._table:
            buffer.users.add(self)

    def _one_by_one(self, table: Table) -> Iterator[Bound]:
        def bound(number: int) -> Bound:
            self._poll()
            return self._commands[number](table)

        if self._flow is None:
            yield from map(bound, range(len(self._commands)))
        else:
            yield from self._flow.as_one(len(self._commands), bound)

    def _polls(self, operations: int) -> tuple[Step, ...]:
        """The poll step before a command of `operations` elementary operations, if one is due."""
        self._since_poll += operations
        if self._since_poll <= OPERATIONS_PER_POLL:
            return ()
        self._since_poll = min(operations, OPERATIONS_PER_POLL)
        poll = self._poll
        return (lambda registers: poll(),)

    def _fitting(self, executable: ReferenceExecutable, entry: int, overlapping: bool, words: Words) -> CompiledEntry:
        """The entry's code. Raises DeviceOutOfMemory if the device lacks the memory that it needs."""
        code = executable.entry(entry, overlapping, words)
        if code.scratch_bytes > self._limit:
            name = executable.entries[entry].name
            raise DeviceOutOfMemory(
                f"entry {name} needs {code.scratch_bytes} bytes for intermediates, the device has {self._limit}"
            )
        return code


def _buffer(table: Table, source: BackendBuffer | int) -> Any:
    """The `ReferenceBuffer` of a binding."""
    return table[source] if type(source) is int else source


def _memory(table: Table, binding: Binding) -> Bytes:
    memory: Bytes = _buffer(table, binding.source).host
    return memory[binding.offset : binding.offset + binding.length]


def _overlap(bindings: Sequence[Binding], owners: Sequence[object], written: Sequence[bool]) -> bool:
    """Whether a written range overlaps another range. `owners` identify the memory that each range lies in."""
    if len(set(owners)) == len(owners):
        return False
    number = {owner: place for place, owner in enumerate(owners)}
    ranges = sorted(
        (number[owner], one.offset, one.offset + one.length, writes)
        for one, owner, writes in zip(bindings, owners, written, strict=True)
        if one.length
    )
    last, end, written_end = -1, 0, 0
    for owner, start, stop, writes in ranges:
        if owner != last:
            last, end, written_end = owner, 0, 0
        if start < written_end or (writes and start < end):
            return True
        end = max(end, stop)
        written_end = max(written_end, stop) if writes else written_end
    return False


def _copy(registers: Registers) -> None:
    registers[0][...] = registers[1]
