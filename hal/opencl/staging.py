"""Copies between the host and device buffers through pinned memory.

Drivers copy at full speed from memory that they have pinned (`CL_MEM_ALLOC_HOST_PTR`, permanently mapped). They copy
pageable memory into pinned memory first, while the caller waits. `CHUNKS` chunks take turns: the host fills one while
the device copies the previous ones. The memory is allocated at the first transfer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

from orchestrion.hal.backend import Bytes

CHUNK_BYTES = 4 << 20
CHUNKS = 4


class Staging:
    """The staging memory of one in-order queue. Calls take turns. Raises `cl.Error`, which the caller translates."""

    __slots__ = ("_chunks", "_memory", "_next", "_queue", "_under_way")

    def __init__(self, queue: cl.CommandQueue) -> None:
        self._queue = queue
        self._memory: cl.Buffer | None = None
        self._chunks: list[Bytes] = []
        #: the last copy of each chunk; after an exception it may be unknown, and the queue is finished before reuse
        self._under_way: list[Any] = [None] * CHUNKS
        self._next = 0

    def write(self, target: cl.Buffer, offset: int, data: Bytes) -> None:
        """Enqueue copies of `data`. The caller may change `data` on return."""
        for start in range(0, data.size, CHUNK_BYTES):
            part = data[start : start + CHUNK_BYTES]
            index = self._take()
            chunk = self._chunks[index][: part.size]
            chunk[:] = part
            self._under_way[index] = _UNKNOWN
            self._under_way[index] = cl.enqueue_copy(
                self._queue, target, chunk, dst_offset=offset + start, is_blocking=False
            )

    def read(self, source: cl.Buffer, offset: int, out: Bytes) -> None:
        """Fill `out`, after all earlier work of the queue."""
        waiting: list[tuple[int, Bytes]] = []
        for start in range(0, out.size, CHUNK_BYTES):
            part = out[start : start + CHUNK_BYTES]
            index = self._take()
            self._under_way[index] = _UNKNOWN
            self._under_way[index] = cl.enqueue_copy(
                self._queue, self._chunks[index][: part.size], source, src_offset=offset + start, is_blocking=False
            )
            waiting.append((index, part))
            if len(waiting) > 1:
                self._give(*waiting.pop(0))
        for index, part in waiting:
            self._give(index, part)

    def release(self) -> None:
        """Free the memory. No copy is in flight."""
        self._chunks.clear()
        if self._memory is not None:
            self._memory.release()
            self._memory = None

    def _give(self, index: int, part: Bytes) -> None:
        self._under_way[index].wait()
        part[:] = self._chunks[index][: part.size]

    def _take(self) -> int:
        """Returns the index of a chunk that no copy uses."""
        if not self._chunks:
            self._make()
        index = self._next
        self._next = (index + 1) % CHUNKS
        copy = self._under_way[index]
        if copy is _UNKNOWN:
            self._queue.finish()
        elif copy is not None:
            copy.wait()
        self._under_way[index] = None
        return index

    def _make(self) -> None:
        flags: Any = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        access: Any = cl.map_flags.READ | cl.map_flags.WRITE
        memory = self._memory = cl.Buffer(self._queue.context, flags, CHUNKS * CHUNK_BYTES)
        pair: Any = cl.enqueue_map_buffer(self._queue, memory, access, 0, (CHUNKS * CHUNK_BYTES,), np.uint8)
        self._chunks = [pair[0][index * CHUNK_BYTES :][:CHUNK_BYTES] for index in range(CHUNKS)]


_UNKNOWN = object()
