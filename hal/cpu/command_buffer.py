"""Recordings: lists of commands for the native `replay`, with the arguments of their dispatches.

A recording becomes one block of memory when it is finished: its commands, then their arguments. Direct bindings are
addresses in it. Where a command uses a slot, a patch says where the address of the slot's buffer belongs; `replay` puts
it there at the beginning of each run, so a run with another table costs no more than storing its addresses.

Copies and fills are dispatches of entries of the worker. Commands run one after the other, so barriers are nothing.
"""

import struct
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendExecutable,
    BackendInstance,
    Binding,
    IndirectArgument,
    Watcher,
)

from . import layout
from .buffer import CpuBuffer
from .control_flow import ControlFlow
from .executable import CpuExecutable
from .pool import Pool, worker
from .program import Command, Part, Patch, Program, Template

if TYPE_CHECKING:
    from .library_calls import LibraryCall

Table = Sequence[BackendBuffer]


class _Transfer(NamedTuple):
    """A recorded copy or fill: its command, and the byte of its length in the arguments."""

    command: int
    length: int


class _Indirect(NamedTuple):
    """A recorded indirect dispatch: its executable, its command, and the first byte of its parameters."""

    executable: BackendExecutable
    command: int
    parameters: int


class CpuCommandBuffer(BackendCommandBuffer):
    __slots__ = (
        "_arguments",
        "_calls",
        "_commands",
        "_flow",
        "_indirect",
        "_patches",
        "_pool",
        "_slots",
        "_stack",
        "_template",
        "_threads",
        "_transfers",
        "program",
    )

    #: made by `finish`
    program: Program
    _template: Template

    def __init__(self, pool: Pool, threads: int, slots: int) -> None:
        self._pool = pool
        self._threads = threads
        self._slots = slots
        self._commands: list[Command] = []
        self._arguments = bytearray()
        self._patches: list[Patch] = []
        self._flow = ControlFlow(self._commands)
        self._indirect: list[_Indirect] = []
        self._transfers: list[_Transfer] = []
        self._calls: list[LibraryCall] = []
        self._stack = 0  #: the most bytes of the stack that an entry uses

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        code = self._code(executable, entry, bindings)
        self._call(code, _workgroups(executable, groups), bindings, parameters)

    def dispatch_indirect(self, executable: BackendExecutable, entry: int, bindings: Sequence[Binding]) -> None:
        parameters = bytes(4 * executable.entries[entry].parameter_words)
        start = self._call(self._code(executable, entry, bindings), 0, bindings, parameters)
        self._indirect.append(_Indirect(executable, self._last, start + 8 * len(bindings)))

    def copy(self, source: Binding, target: Binding) -> None:
        self._transfer(worker().copy, (target, source), struct.pack("<2Q", source.length, self._pool.words.memmove))

    def fill(self, target: Binding, pattern: bytes) -> None:
        """The length stands at the same place as that of a copy, behind the pattern."""
        self._transfer(worker().fill, (target,), pattern * (8 // len(pattern)) + struct.pack("<Q", target.length))

    def barrier(self) -> None:
        """Nothing to do: a command starts when the one before has ended."""

    def begin_loop(self, predicate: Binding) -> None:
        self._flow.begin_loop()
        self._read(layout.JUMP_IF_ZERO, predicate)

    def begin_branch(self, selector: Binding, arms: int) -> None:
        self._flow.begin_branch(selector.length > 1, arms)
        self._read(layout.SELECT if selector.length > 1 else layout.JUMP_IF_ZERO, selector, arms)
        self._flow.begin_arms()

    def next_arm(self) -> None:
        self._flow.next_arm()

    def end(self) -> None:
        self._flow.end()

    def finish(self) -> None:
        self._commands.append(Command(layout.END))
        self._template = Template(
            self._commands,
            self._arguments,
            self._patches,
            self._slots,
            self._pool,
            self._threads,
            self._calls,
            self._stack,
        )
        self.program = self._template.program(self._template.commands.copy(), self._arguments)

    @property
    def _last(self) -> int:
        """The number of the last command."""
        return len(self._commands) - 1

    def instance(self, arguments: Sequence[IndirectArgument | None], lengths: Sequence[int]) -> "CpuInstance":
        template = self._template
        commands, data = template.commands.copy(), bytearray(template.arguments)
        numbers: list[int] = []
        groups: list[int] = []
        for row, argument in zip(self._indirect, arguments, strict=True):
            if argument is not None:
                counts, parameters = argument
                numbers.append(row.command)
                groups.append(_workgroups(row.executable, counts))
                data[row.parameters : row.parameters + len(parameters)] = parameters
        for transfer, length in zip(self._transfers, lengths, strict=True):
            numbers.append(transfer.command)
            groups.append(_blocks(length))
            struct.pack_into("<Q", data, transfer.length, length)
        commands["groups"][numbers] = groups
        return CpuInstance(template.program(commands, data))

    def run(self, table: Table, watcher: Watcher | None) -> None:
        """Run all commands with these buffers in the slots, in this thread and those of the pool."""
        self.program.run(table, watcher)

    def release(self) -> None:
        self._commands.clear()
        self._patches.clear()
        if hasattr(self, "program"):
            del self.program, self._template

    def _code(self, executable: BackendExecutable, entry: int, bindings: Sequence[Binding]) -> int:
        """The address of the code of an entry."""
        if isinstance(executable, CpuExecutable):
            self._stack = max(self._stack, executable.stacks[entry])
            return executable.addresses[entry]
        from .library_calls import LibraryCall, LibraryExecutable

        assert isinstance(executable, LibraryExecutable)
        call = LibraryCall(executable, entry, bindings)
        self._calls.append(call)
        return call.address

    def _call(self, code: int, groups: int, bindings: Sequence[Binding], rest: bytes) -> int:
        """Record a call of an entry. Returns where its arguments start."""
        start = len(self._arguments)
        for position, binding in enumerate(bindings):
            self._arguments += struct.pack("<Q", self._address(binding, Part.ARGUMENTS, start + 8 * position))
        self._arguments += rest + bytes(-len(rest) % 8)
        self._commands.append(Command(layout.DISPATCH, memory=code, arguments=start, groups=groups))
        return start

    def _transfer(self, code: int, bindings: Sequence[Binding], rest: bytes) -> None:
        start = self._call(code, _blocks(bindings[0].length), bindings, rest)
        self._transfers.append(_Transfer(self._last, start + 16))

    def _read(self, operation: int, what: Binding, arms: int = 0) -> None:
        """Record a command that reads a predicate or selector."""
        place = len(self._commands) * layout.COMMAND.itemsize + layout.MEMORY_PLACE
        address = self._address(what, Part.COMMANDS, place)
        self._commands.append(Command(operation, memory=address, groups=arms))

    def _address(self, binding: Binding, part: Part, place: int) -> int:
        """The address of a binding; 0, and a patch, for one in a slot."""
        source: Any = binding.source
        if isinstance(source, int):
            self._patches.append(Patch(part, place, source, binding.offset))
            return 0
        assert isinstance(source, CpuBuffer)
        return source.address + binding.offset


class CpuInstance(BackendInstance):
    """A recording with arguments for its indirect dispatches. It has its own commands."""

    __slots__ = ("program",)

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, table: Table, watcher: Watcher | None) -> None:
        """See `CpuCommandBuffer.run`."""
        self.program.run(table, watcher)


def _workgroups(executable: BackendExecutable, groups: tuple[int, int, int]) -> int:
    """The workgroups of a dispatch. A library call computes all of its results in one."""
    count = prod(groups)
    return count if isinstance(executable, CpuExecutable) else min(count, 1)


def _blocks(length: int) -> int:
    """The workgroups of a copy or fill of `length` bytes."""
    return -(-length // layout.BLOCK)
