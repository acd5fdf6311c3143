"""Device memory of results that nobody refers to any more, for later results of the same function.

A result on the device is a handle to a buffer that the pool owns (`Buffer.lend`). When the last reference to the handle
is dropped, the buffer returns to the pool. It does not return if it was shared outside of the VM, where it may be used
longer than the handle exists. Work that still uses the buffer is ordered by the device's queue, as for any buffer.
"""

from __future__ import annotations

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.device import Device

#: free buffers in a pool: a loop that keeps the result of the last step needs two
MAX_FREE = 4


class BufferPool:
    """The buffers of one result. The caller of `take` holds the context's lock. Finalizers in any thread call
    `give_back`, which changes the pool by one step in C (`list.append`).
    """

    def __init__(self) -> None:
        self._free: list[Buffer] = []
        self._closed = False

    def take(self, device: Device, size: int) -> Buffer:
        """A buffer of `size` bytes with any content. Errors as `Allocator.allocate`."""
        for place, buffer in enumerate(self._free):
            if buffer.size == size:
                del self._free[place]
                return self._lend(buffer)
        return self._lend(device.allocator.allocate(size, MemoryUse.ARENA))

    def _lend(self, owner: Buffer) -> Buffer:
        handle = owner.lend(owner.device, writable=True)
        handle.loan = PoolLoan(owner, self)
        return handle

    def give_back(self, buffer: Buffer) -> None:
        """Return a buffer to the pool. It is released if the pool is full or closed. For finalizers."""
        if not self._closed and len(self._free) < MAX_FREE:
            self._free.append(buffer)

    def release(self, busy: bool = False) -> bool:
        """Release the free buffers. True if there were any. For `Context.on_memory_pressure`."""
        found = bool(self._free)
        self._free.clear()
        return found

    def close(self) -> None:
        """Release the free buffers, and all buffers that are given back later."""
        self._closed = True
        self._free.clear()


class PoolLoan:
    """The loan of one buffer of a `BufferPool` (`hal.buffer.Loan`)."""

    __slots__ = ("_is_kept", "_owner", "_pool")

    def __init__(self, owner: Buffer, pool: BufferPool) -> None:
        self._owner = owner
        self._pool = pool
        self._is_kept = False

    def keep(self) -> None:
        """Do not return the buffer: somebody outside of the VM uses it."""
        self._is_kept = True

    def end(self, submitted: int) -> None:
        """The handle was dropped. `submitted`: the number of the last work that uses it."""
        if not self._is_kept:
            self._owner.submitted = max(self._owner.submitted, submitted)
            self._pool.give_back(self._owner)
