"""Recordings of the reference device: what is recorded, and what the last table of buffers made of it.

A run needs views of the buffers. They are kept with the table they were made for, so that a run with the same
buffers makes none; a buffer that is released has them dropped, for they would keep its memory alive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from orchestrion.hal.backend import BackendBuffer, BackendCommandBuffer, BackendExecutable, Binding, Bytes, Entry
from orchestrion.hal.errors import OutOfMemory

from .executable import ReferenceExecutable
from .program import Registers, Step

Table = Sequence[BackendBuffer]
Bound = tuple[Sequence[Step], Registers]
Command = Callable[[Table], Bound]


class ReferenceCommandBuffer(BackendCommandBuffer):
    __slots__ = ("_bound", "_commands", "_limit", "_table")

    def __init__(self, limit: int) -> None:
        self._commands: list[Command] = []
        self._limit = limit
        self._table: list[Any] | None = None
        self._bound: tuple[Bound, ...] = ()

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        """An entry computes whole tensors, whatever the number of workgroups."""
        assert isinstance(executable, ReferenceExecutable)
        places = [(one.source, one.offset) for one in bindings]
        known, suspects = _overlaps(executable.entries[entry], bindings)
        self._check_memory(executable, entry, known)
        code = executable.entry(entry, known)

        def command(table: Table) -> Bound:
            memories = [(_buffer(table, source).host, offset) for source, offset in places]
            for one, other in suspects:
                if memories[one][0] is memories[other][0]:
                    self._check_memory(executable, entry, True)
                    careful = executable.entry(entry, True)
                    return careful.steps, careful.bind(memories)
            return code.steps, code.bind(memories)

        self._commands.append(command)

    def copy(self, source: Binding, target: Binding) -> None:
        def command(table: Table) -> Bound:
            return (_copy,), [_memory(table, target), _memory(table, source)]

        self._commands.append(command)

    def fill(self, target: Binding, pattern: bytes) -> None:
        word = np.frombuffer(pattern, f"<u{len(pattern)}")

        def command(table: Table) -> Bound:
            return (_copy,), [_memory(table, target).view(word.dtype), word]

        self._commands.append(command)

    def barrier(self) -> None:
        """Commands run one after the other anyway."""

    def finish(self) -> None:
        return

    def run(self, table: Table) -> None:
        """Run all commands with these buffers in the slots."""
        if table != self._table:
            self._bind(table)
        try:
            for steps, registers in self._bound:
                for step in steps:
                    step(registers)
        except BaseException as error:
            self.unbind()
            if isinstance(error, MemoryError):
                raise OutOfMemory(f"the system has no more memory: {error}") from error
            raise

    def unbind(self) -> None:
        """Let go of the views of the last run."""
        for buffer in self._table or ():
            buffer.users.discard(self)
        self._table, self._bound = None, ()

    def release(self) -> None:
        self.unbind()
        self._commands.clear()

    def _bind(self, table: Table) -> None:
        self.unbind()
        self._bound = tuple([command(table) for command in self._commands])
        self._table = list(table)
        for buffer in self._table:
            buffer.users.add(self)

    def _check_memory(self, executable: ReferenceExecutable, entry: int, careful: bool) -> None:
        scratch = executable.entry(entry, careful).scratch_bytes
        if scratch > self._limit:
            name = executable.entries[entry].name
            raise OutOfMemory(f"entry {name} needs {scratch} bytes for intermediates, the device has {self._limit}")


def _buffer(table: Table, source: BackendBuffer | int) -> Any:
    """The `ReferenceBuffer` of a binding."""
    return table[source] if type(source) is int else source


def _memory(table: Table, binding: Binding) -> Bytes:
    memory: Bytes = _buffer(table, binding.source).host
    return memory[binding.offset : binding.offset + binding.length]


def _overlaps(entry: Entry, bindings: Sequence[Binding]) -> tuple[bool, list[tuple[int, int]]]:
    """Whether a range that is written shares bytes with another, and the pairs that do if a table says so."""
    suspects = []
    for i, one in enumerate(bindings):
        if entry.bindings[i][0] == "read":
            continue
        for j, other in enumerate(bindings):
            apart = one.offset + one.length <= other.offset or other.offset + other.length <= one.offset
            if i == j or apart:
                continue
            if one.source == other.source:
                return True, []
            if type(one.source) is int or type(other.source) is int:
                suspects.append((i, j))
    return False, suspects


def _copy(registers: Registers) -> None:
    registers[0][...] = registers[1]
