"""A finished recording in the memory that the native `replay` reads, and its run."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from orchestrion.hal.backend import BackendBuffer, Watcher
from orchestrion.hal.errors import DeviceLost

from . import layout
from .buffer import CpuBuffer
from .pool import Pool, worker

Table = Sequence[BackendBuffer]


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


class Program:
    """Commands and arguments in one block of memory. Only one thread at a time runs it."""

    __slots__ = (
        "_addresses",
        "_block",
        "_entered",
        "_patches",
        "_pool",
        "_run",
        "_state",
        "_state_address",
        "_table",
        "run_address",
    )

    def __init__(
        self,
        commands: Sequence[Command],
        arguments: bytes | bytearray,
        patches: Sequence[Patch],
        slots: int,
        pool: Pool,
        threads: int,
    ) -> None:
        rows = np.array(commands, layout.COMMAND)
        self._block = np.empty(rows.nbytes + len(arguments), np.uint8)
        start = self._block.ctypes.data
        rows["arguments"] += start + rows.nbytes
        self._block[: rows.nbytes] = rows.view(np.uint8)
        self._block[rows.nbytes :] = np.frombuffer(arguments, np.uint8)
        bases = {Part.COMMANDS: start, Part.ARGUMENTS: start + rows.nbytes}
        places = [(bases[patch.part] + patch.place, patch.slot, patch.offset) for patch in patches]
        self._patches = np.array(places, layout.PATCH)
        self._addresses = (ctypes.c_uint64 * slots)()
        self._table: list[BackendBuffer] | None = None
        self._run = layout.Run(start, self._patches.ctypes.data, len(places), ctypes.addressof(self._addresses))
        self._pool = pool  #: keeps its memory's owner alive
        self._state = layout.State(pool=pool.address, runs=ctypes.addressof(self._run), run_count=1, threads=threads)
        self._state_address = ctypes.addressof(self._state)
        self._entered = False

    def run(self, table: Table, watcher: Watcher | None) -> None:
        """Run all commands with these buffers in the slots. An exception of the watcher ends the run between two
        chunks of workgroups.

        Raises DeviceLost if the process ends meanwhile.
        """
        if table != self._table:
            self._bind(table)
        if self._entered:  # an exception ended the last run, and the state is in the middle of it
            self._state.run = self._state.bound = self._state.workgroup = 0
        self._entered = True
        replay = worker().replay
        while status := replay(self._state_address):
            if status == layout.HALTED:
                raise DeviceLost("the process ends")
            if watcher is not None:
                watcher.check()
        self._entered = False

    def _bind(self, table: Table) -> None:
        self._table = None  # stays None if this fails halfway
        for slot, buffer in enumerate(table):
            assert isinstance(buffer, CpuBuffer)
            self._addresses[slot] = buffer.address
        self._table = [*table]
