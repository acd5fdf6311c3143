"""Loops and branches of a recording on a device that records none: the host follows them, and reads each predicate.

The commands before, inside and after a loop or branch are recordings of their own. Those up to the next predicate or
selector are one submission. Devices for profiling and comparison, devices that stream constants, and drivers without
`control_flow` run recordings with loops this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .backend import BackendCommandBuffer, Watcher
from .buffer import Buffer
from .command_buffer import INDEX_BYTES, PREDICATE_BYTES, CommandBuffer, Nesting, Range, Source
from .errors import InvalidArgument

if TYPE_CHECKING:
    from .device import Device
    from .executable import Executable
    from .queue import Queue, Work
    from .workload import Grid

#: recordings in one submission
MAX_BATCH = 1024


class Block(NamedTuple):
    """A loop, which has one arm, or a branch. `length`: bytes of its predicate or selector."""

    source: Source
    offset: int
    length: int
    is_loop: bool
    arms: list[list[CommandBuffer | Block]]


class HostControlFlow(CommandBuffer):
    """A recording whose loops and branches the host follows. `run` submits it; queues refuse it.

    Raises what a `CommandBuffer` raises. `parts` are its recordings that have commands, in the order of the text.
    """

    __slots__ = ("_current", "_device", "_open", "_slot_count", "_structure", "_top", "parts")

    def __init__(self, device: Device, slots: int) -> None:  # not that of the base: it only holds recordings
        self._device = device
        self._slot_count = slots
        self._structure = Nesting()
        self._top: list[CommandBuffer | Block] = []
        self._open: list[Block] = []
        self.parts: list[CommandBuffer] = []
        self.needs = None
        self._state = "released"  # for the base: nothing of its own to release
        self._begin_part()

    @property
    def state(self) -> str:
        return "a recording whose loops the host runs"

    @property
    def backend(self) -> BackendCommandBuffer:  # type: ignore[override]
        """The recording that takes the next command."""
        return self._current.backend

    def dispatch(
        self, executable: Executable, entry: int, workload: Grid, bindings: Sequence[Range], parameters: bytes = b""
    ) -> None:
        self._current.dispatch(executable, entry, workload, bindings, parameters)

    def copy(self, source: Source, source_offset: int, target: Source, target_offset: int, length: int) -> None:
        self._current.copy(source, source_offset, target, target_offset, length)

    def fill(self, target: Source, offset: int, length: int, pattern: bytes) -> None:
        self._current.fill(target, offset, length, pattern)

    def fill_bytes(self, offset: int, length: int, pattern: bytes) -> int:
        return self._current.fill_bytes(offset, length, pattern)

    def barrier(self) -> None:
        self._current.barrier()

    def begin_loop(self, source: Source, offset: int) -> None:
        self._structure.check_depth()
        self._begin(Block(source, offset, PREDICATE_BYTES, True, [[]]), 0)

    def begin_branch(self, source: Source, offset: int, arms: int = 2, indexed: bool = False) -> None:
        length = self._structure.check_branch(offset, arms, indexed)
        self._begin(Block(source, offset, length, False, [[]]), arms)

    def _begin(self, block: Block, arms: int) -> None:
        if isinstance(block.source, int):
            if not 0 <= block.source < self._slot_count:
                raise InvalidArgument(f"slot {block.source} of a command buffer with {self._slot_count} slots")
            if block.offset < 0:
                raise InvalidArgument(f"slot {block.source}: offset {block.offset}, length {block.length}")
        else:
            block.source.check(block.offset, block.length, 0)
        self._end_part()
        self._items.append(block)
        self._open.append(block)
        self._structure.begin(arms)
        self._begin_part()

    def next_arm(self) -> None:
        self._structure.check_next_arm()
        self._end_part()
        self._open[-1].arms.append([])
        self._structure.next_arm()
        self._begin_part()

    def end(self) -> None:
        self._structure.check_end()
        self._end_part()
        self._open.pop()
        self._structure.end()
        self._begin_part()

    def finish(self) -> None:
        self._structure.check_finish()
        self._end_part()

    def release(self) -> None:
        for part in self.parts:
            part.release()

    def _begin_part(self) -> None:
        self._current = self._device.create_command_buffer(self._slot_count)

    def _end_part(self) -> None:
        """Finish the current recording. It is dropped if it has no commands."""
        part = self._current
        part.finish()
        if part.dispatches or part.bytes_copied:
            self._items.append(part)
            self.parts.append(part)
        else:
            part.release()

    @property
    def _items(self) -> list[CommandBuffer | Block]:
        """Where recordings and blocks go: the last arm of the innermost loop or branch."""
        return self._open[-1].arms[-1] if self._open else self._top


def run(queue: Queue, batch: Sequence[Work], watcher: Watcher) -> None:
    """As `Queue.execute_batch`, for recordings of which some are `HostControlFlow`. Returns when all are done.

    Calls the watcher before each predicate is read.
    """
    runner = _Runner(queue, watcher)
    for commands, buffers in batch:
        if isinstance(commands, HostControlFlow):
            runner.run(commands._top, buffers)
        else:
            runner.add(commands, buffers)
    runner.submit()


class _Runner:
    """Submits recordings in order. `_pending` has the recordings since the last predicate."""

    def __init__(self, queue: Queue, watcher: Watcher) -> None:
        self._queue = queue
        self._watcher = watcher
        self._pending: list[Work] = []

    def run(self, items: Sequence[CommandBuffer | Block], buffers: Sequence[Buffer]) -> None:
        for item in items:
            if isinstance(item, CommandBuffer):
                self.add(item, buffers)
            elif item.is_loop:
                while self._selector(item, buffers):
                    self.run(item.arms[0], buffers)
            else:
                self.run(item.arms[self._arm(item, buffers)], buffers)

    def add(self, commands: CommandBuffer, buffers: Sequence[Buffer]) -> None:
        self._pending.append((commands, buffers))
        if len(self._pending) >= MAX_BATCH:
            self.submit()

    def submit(self) -> None:
        """Submit and wait for the pending recordings, if any."""
        batch, self._pending = self._pending, []
        if batch:
            self._queue.execute_batch(batch, self._watcher)

    def _arm(self, block: Block, buffers: Sequence[Buffer]) -> int:
        value = self._selector(block, buffers)
        if block.length == PREDICATE_BYTES:
            return 0 if value else 1
        return value if 0 <= value < len(block.arms) else -1

    def _selector(self, block: Block, buffers: Sequence[Buffer]) -> int:
        """Reads a predicate or an index, after all that was submitted before."""
        self.submit()
        self._watcher.check()
        buffer = buffers[block.source] if isinstance(block.source, int) else block.source
        word = np.empty(block.length, np.uint8)
        buffer.wait(self._watcher)
        buffer.read(word, block.offset)
        return int.from_bytes(word.tobytes(), "little", signed=block.length == INDEX_BYTES)
