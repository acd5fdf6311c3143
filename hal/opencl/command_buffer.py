"""Recordings: one OpenCL command buffer per table of slot buffers if the device supports them, otherwise a list of
calls.

Command buffers are looked up by the memory ids of the buffers in the table. Without mutable dispatch, up to RECORDINGS
of them are kept, and the least recently used one is replaced. With mutable dispatch, the least recently used of
MUTABLE_RECORDINGS is bound to the next table, unless it is in flight; then another is made. See
docs/decisions/record-and-replay.md. A recording of one command is always a list, because a command buffer would not be
faster.
"""

from collections.abc import Sequence
from typing import cast

from orchestrion.hal.backend import BackendCommandBuffer, BackendExecutable, Binding
from orchestrion.schema.lru_cache import LruCache

from .api import Api
from .buffer import OpenCLBuffer
from .executable import OpenCLExecutable
from .recording import Command, Copy, Dispatch, EnqueueList, Fill, Recorded, Step, Table, record

RECORDINGS = 16
#: two, because loops swap the buffers of their states in each iteration
MUTABLE_RECORDINGS = 2


class OpenCLCommandBuffer(BackendCommandBuffer):
    """A recording. `queue` is the handle of the queue that all runs go to. The front serialises calls, like those of
    the queue.
    """

    __slots__ = ("_api", "_commands", "_list", "_queue", "_recorded", "_recordings", "_steps", "_table")

    def __init__(self, api: Api, queue: int, recorded: bool) -> None:
        self._api = api
        self._queue = queue
        self._recorded = recorded
        self._commands: list[Command] = []
        self._list: EnqueueList | None = None
        self._recordings: LruCache[tuple[int, ...], Recorded] = LruCache()
        self._table: Table | None = None
        self._steps: Sequence[Step] = ()

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        assert isinstance(executable, OpenCLExecutable)
        self._commands.append(Dispatch(self._api, executable, entry, groups, bindings, parameters))

    def copy(self, source: Binding, target: Binding) -> None:
        self._commands.append(Copy(self._api, source, target))

    def fill(self, target: Binding, pattern: bytes) -> None:
        self._commands.append(Fill(self._api, target, pattern))

    def barrier(self) -> None:
        """Nothing to do: the queue runs its commands in order."""

    def finish(self) -> None:
        self._recorded = self._recorded and len(self._commands) > 1

    @property
    def dispatches(self) -> list[Dispatch]:
        """The recorded dispatches."""
        return [command for command in self._commands if isinstance(command, Dispatch)]

    def steps(self, table: Table) -> Sequence[Step]:
        """The calls that enqueue everything for this table. Those of the previous table are cached."""
        if table != self._table:
            self._table = None  # stays None if this fails halfway
            self._steps = self._record(table).steps if self._recorded else self._enqueue(table).steps
            self._table = table
        return self._steps

    def trim(self) -> bool:
        """Release all recordings except that of the latest table. Returns whether there were any. OpenCL keeps those in
        flight.
        """
        idle = [one for one in self._recordings.items() if self._table is None or one[1].steps is not self._steps]
        for key, recording in idle:
            del self._recordings[key]
            recording.release()
        return bool(idle)

    def release(self) -> None:
        for recording in self._recordings.values():
            recording.release()
        self._recordings.clear()
        for command in self._commands:
            command.release()
        self._commands.clear()
        self._list = self._table = None
        self._steps = ()

    def _enqueue(self, table: Table) -> EnqueueList:
        if self._list is None:
            self._list = EnqueueList(self._queue, self._commands, table)
        else:
            self._list.bind(table)
        return self._list

    def _record(self, table: Table) -> Recorded:
        key = tuple([buffer.memory_id for buffer in cast("Sequence[OpenCLBuffer]", table)])
        recording = self._recordings.use(key)
        if recording is not None and recording.released:
            del self._recordings[key]
            recording = None
        if recording is None:
            recording = self._take_over(table) or record(self._api, self._queue, self._commands, table)
            self._recordings[key] = recording
        return recording

    def _take_over(self, table: Table) -> Recorded | None:
        """Returns the least recently used recording, bound to this table, or None if a new one must be made."""
        count = len(self._recordings)
        if count < (MUTABLE_RECORDINGS if self._api.mutable_dispatch else RECORDINGS):
            return None
        key, recording = self._recordings.oldest
        if recording.rebind(table):
            del self._recordings[key]
            return recording
        if count >= RECORDINGS:
            del self._recordings[key]
            recording.release()
        return None
