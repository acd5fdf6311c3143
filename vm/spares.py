"""Device memory of results that nobody refers to any more, kept for the next results of the same function.

A result on the device lies in a handle over memory that the function owns (`Buffer.lend`). When the last reference to
the handle goes, the memory is spare again. It does not come back if it was shared with somebody outside of the VM, who
may keep it longer than the handle. Work that still uses it is ordered by the device's queue, as that of any buffer.
"""

from __future__ import annotations

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.device import Device

#: spare buffers of one result that are kept: a loop that keeps the result of the last step needs two
MOST = 4


class Spares:
    """The spare memory of one result. `take` is for who holds the context's lock; finalizers of any thread give back,
    which is one step of C (`list.append`).
    """

    def __init__(self) -> None:
        self._free: list[Buffer] = []
        self._closed = False

    def take(self, device: Device, size: int) -> Buffer:
        """A buffer of `size` bytes with any content. Errors as `Allocator.allocate`."""
        for place, buffer in enumerate(self._free):
            if buffer.size == size:
                del self._free[place]
                return self._lent(buffer)
        return self._lent(device.allocator.allocate(size, MemoryUse.ARENA))

    def _lent(self, owner: Buffer) -> Buffer:
        handle = owner.lend(owner.device, writable=True)
        handle.loan = SpareLoan(owner, self)
        return handle

    def give_back(self, buffer: Buffer) -> None:
        """Keep memory for the next result, unless there is enough. For finalizers."""
        if not self._closed and len(self._free) < MOST:
            self._free.append(buffer)

    def drop(self, busy: bool = False) -> bool:
        """Let go of what is spare; whether there was any. For `Context.on_memory_pressure`."""
        found = bool(self._free)
        self._free.clear()
        return found

    def close(self) -> None:
        """Keep nothing from now on."""
        self._closed = True
        self._free.clear()


class SpareLoan:
    """The loan of one buffer of a `Spares` (`hal.buffer.Loan`)."""

    __slots__ = ("_is_kept", "_owner", "_spares")

    def __init__(self, owner: Buffer, spares: Spares) -> None:
        self._owner = owner
        self._spares = spares
        self._is_kept = False

    def keep(self) -> None:
        self._is_kept = True

    def end(self, submitted: int) -> None:
        if not self._is_kept:
            self._owner.submitted = max(self._owner.submitted, submitted)
            self._spares.give_back(self._owner)
