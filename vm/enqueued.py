"""What a call has enqueued and not executed: recordings with their slots, for one submission.

`hal.enqueue` adds, the next `hal.execute` of the call takes all and submits them in front of its own recording. A batch
that is full goes to the device by itself, so that a loop may enqueue as often as it likes. A call that returns with
something enqueued is at fault; one that fails lets go of it. Host memory is charged to the context. What a driver makes
of recordings, it may make again for every table of slots in the batch: that is what `MOST_BYTES` bounds.
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
MOST = 1024
#: bytes of the commands in one submission, a recording counted as often as it stands in it
MOST_BYTES = 64 << 20
#: bytes charged for a recording, and for each of its slots
_WORK_BYTES, _SLOT_BYTES = 256, 16


class Enqueued:
    """The recordings of one call, in order."""

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
        return len(self._works) >= MOST or self._bytes >= MOST_BYTES

    def add(self, recording: Recording, buffers: tuple[Buffer, ...]) -> None:
        size = _WORK_BYTES + _SLOT_BYTES * len(buffers)
        self._memory.charge(size)
        self._charged += size
        self._bytes += recording.charged
        self._works.append((recording, buffers))

    def batch(self) -> list[Work]:
        """For the queue. This keeps what it refers to alive."""
        return [(recording.commands, buffers) for recording, buffers in self._works]

    def forgotten(self) -> Trap:
        """Why a call may not return."""
        count = len(self._works)
        return Trap(f"the call returns with {count} recording{'s' * (count != 1)} enqueued that it never executes")

    def __del__(self) -> None:
        self._memory.refund(self._charged)
