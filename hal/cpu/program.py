"""A finished recording in the memory that the native `replay` reads, and its run."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from orchestrion.hal.backend import BackendBuffer, Bytes, Watcher
from orchestrion.hal.errors import DeviceLost, Unsupported

from . import layout, stack
from .buffer import CpuBuffer
from .pool import Pool, worker

if TYPE_CHECKING:
    from .library_calls import LibraryCall

Table = Sequence[BackendBuffer]
#: rows of a structure of `layout`
Commands = npt.NDArray[np.void]


class Part(Enum):
    """The parts of a recording's block of memory."""

    COMMANDS = 0
    ARGUMENTS = 1


class Command(NamedTuple):
    """A command. `arguments` is an offset in the arguments of the recording. See `layout.COMMAND`."""

    operation: int
    target: int = 0
    memory: int = 0
    arguments: int = 0
    groups: int = 0  #: workgroups, or arms


class Patch(NamedTuple):
    """A use of a slot: the address of its buffer, plus `offset`, belongs to byte `place` of a part."""

    part: Part
    place: int
    slot: int
    offset: int


class Template:
    """A finished recording, as offsets, from which programs are made.

    `commands`: rows of `layout.COMMAND`. `arguments`: the bytes of all arguments.
    """

    __slots__ = ("_calls", "_patches", "_pool", "_slots", "_stack", "_threads", "arguments", "commands")

    def __init__(
        self,
        commands: Sequence[Command],
        arguments: bytes | bytearray,
        patches: Sequence[Patch],
        slots: int,
        pool: Pool,
        threads: int,
        calls: Sequence[LibraryCall],
        stack: int,
    ) -> None:
        """`calls`: the library calls, to whose code commands refer. `stack`: bytes of the stack that entries use."""
        self.commands = np.array(commands, layout.COMMAND)
        self.arguments = bytes(arguments)
        starts = {Part.COMMANDS: 0, Part.ARGUMENTS: self.commands.nbytes}
        places = [(starts[patch.part] + patch.place, patch.slot, patch.offset) for patch in patches]
        self._patches = np.array(places, layout.PATCH)
        self._slots = slots
        self._pool = pool
        self._threads = threads
        self._calls = tuple(calls)
        self._stack = stack

    def program(self, commands: Commands, arguments: bytes | bytearray) -> Program:
        """A program with these commands and arguments, which differ from the recorded ones in numbers only. The
        commands are changed.
        """
        block = np.empty(commands.nbytes + len(arguments), np.uint8)
        start: int = block.ctypes.data
        commands["arguments"] += start + commands.nbytes
        block[: commands.nbytes] = commands.view(np.uint8)
        block[commands.nbytes :] = np.frombuffer(arguments, np.uint8)
        patches = self._patches.copy()
        patches["place"] += start
        return Program(block, patches, self._slots, self._pool, self._threads, self._calls, self._stack)


class Program:
    """Commands and arguments in one block of memory. Only one thread at a time runs it."""

    __slots__ = (
        "_addresses",
        "_block",
        "_calls",
        "_entered",
        "_patches",
        "_pool",
        "_state",
        "_state_address",
        "_table",
    )

    def __init__(
        self,
        block: Bytes,
        patches: Commands,
        slots: int,
        pool: Pool,
        threads: int,
        calls: tuple[LibraryCall, ...],
        used: int,
    ) -> None:
        """`block` starts with the commands. `patches`: rows of `layout.PATCH`, with addresses. `used`: bytes of the
        stack that entries use.
        """
        self._block, self._patches, self._pool = block, patches, pool  # `_state` has their addresses
        self._addresses = (ctypes.c_uint64 * slots)()
        self._table: list[BackendBuffer] | None = None
        self._state = layout.State(
            pool=pool.address,
            commands=block.ctypes.data,
            patches=patches.ctypes.data,
            patch_count=len(patches),
            table=ctypes.addressof(self._addresses),
            threads=threads,
            stack_needed=stack.needed(used),
        )
        self._state_address = ctypes.addressof(self._state)
        self._entered = False
        self._calls = calls

    def run(self, table: Table, watcher: Watcher | None) -> None:
        """Run all commands with these buffers in the slots. An exception of the watcher ends the run between two
        chunks of workgroups.

        Raises DeviceLost if the process ends meanwhile, Unsupported if the stack of this thread is too small.
        """
        if table != self._table:
            self._bind(table)
        if self._entered:  # an exception ended the last run, and the state is in the middle of it
            self._state.bound = self._state.workgroup = self._state.end = 0
        self._entered = True
        if self._calls:
            from .library_calls import running

            with running(self._state, watcher) as watcher:
                self._replay(watcher)
        else:
            self._replay(watcher)
        self._entered = False

    def _replay(self, watcher: Watcher | None) -> None:
        replay, needed = worker().replay, self._state.stack_needed
        if needed:
            self._state.stack = stack.lowest_address()
        while status := replay(self._state_address):
            if status == layout.HALTED:
                raise DeviceLost("the process ends")
            if status == layout.SMALL_STACK:
                raise Unsupported(
                    f"the native code needs {needed} bytes of the stack, and this thread, whose stack has "
                    f"{stack.size()} bytes, has less left; threading.stack_size sets the size for new threads"
                )
            if watcher is not None:
                watcher.check()

    def _bind(self, table: Table) -> None:
        self._table = None  # stays None if this fails halfway
        for slot, buffer in enumerate(table):
            assert isinstance(buffer, CpuBuffer)
            self._addresses[slot] = buffer.address
        self._table = [*table]
