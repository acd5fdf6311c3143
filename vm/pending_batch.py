"""The recordings that a call has enqueued and that are not submitted yet.

`hal.enqueue` adds a recording. The next `hal.execute` of the call submits all of them, and its own recording, as one
batch. A full batch is submitted at once, so a loop may enqueue any number of recordings. A call that returns with
recordings left is a trap; a call that fails drops them. Host memory is charged to the context.

A driver may encode a recording again for each entry of the batch. `MAX_BYTES` bounds the memory for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import Trap
from .memory import Memory

if TYPE_CHECKING:
    from orchestrion.hal.buffer import Buffer
    from orchestrion.hal.queue import Work

    from .recording import Recording

#: recordings in one submission
MAX_RECORDINGS = 1024
#: bytes of the commands in one submission, where a recording counts as often as it was enqueued
MAX_BYTES = 64 << 20
#: bytes charged for a recording, and for each of its slots
_RECORDING_BYTES, _SLOT_BYTES = 256, 16


class PendingBatch:
    """The enqueued recordings of one call, in order, each with the buffers for its slots."""

    __slots__ = ("_bytes", "_charged", "_memory", "_works")

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._charged = 0
        self._bytes = 0
        self._works: list[tuple[Recording, tuple[Buffer, ...]]] = []

    def __len__(self) -> int:
        return len(self._works)

    @property
    def full(self) -> bool:
        """Whether the batch has to be submitted before another recording is added."""
        return len(self._works) >= MAX_RECORDINGS or self._bytes >= MAX_BYTES

    def add(self, recording: Recording, buffers: tuple[Buffer, ...]) -> None:
        """Append a recording. `MemoryExceeded` if the limit of the context forbids it."""
        size = _RECORDING_BYTES + _SLOT_BYTES * len(buffers)
        self._memory.charge(size)
        self._charged += size
        self._bytes += recording.charged
        self._works.append((recording, buffers))

    @property
    def control_flow(self) -> bool:
        """Whether a recording may have loops and branches."""
        return any([recording.control_flow for recording, _ in self._works])

    def works(self) -> list[Work]:
        """The batch for the queue. This object keeps the recordings alive."""
        return [(recording.commands, buffers) for recording, buffers in self._works]

    def never_executed(self) -> Trap:
        """The error of a call that returns with this batch."""
        count = len(self._works)
        return Trap(f"the call returns with {count} recording{'s' * (count != 1)} enqueued that it never executes")

    def __del__(self) -> None:
        self._memory.refund(self._charged)
