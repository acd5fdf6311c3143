"""Host memory for large results, which callers get without a copy, and which later calls reuse.

On a device that works on the host's memory a call computes such a result in memory that its caller gets as an array.
When the last array over the memory is dropped, the memory returns to the function that it came from, and a later call
of this function in this context computes a result there. The kernel of the system then neither maps nor clears pages.

New memory is zero. Reused memory holds an earlier result of the same function, as the slot of a result does. It belongs
to the caller: no limit of the device counts it.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from orchestrion.hal.buffer import BufferView
from orchestrion.hal.device import Device
from orchestrion.hal.host_buffer import aligned_zeros
from orchestrion.schema.dtypes import DType

from .array import Array

#: a result of at least so many bytes is computed in memory that its caller gets; a smaller one is copied
RESULT_BYTES = 1 << 18
#: free blocks of a result: a loop that keeps the result of the last step needs two
MAX_FREE = 2


class _Piece:
    """Memory for one call: a view for the program, the memory, and its `__array_interface__`, which takes NumPy longer
    to make than an array from it.
    """

    __slots__ = ("interface", "memory", "view")

    def __init__(self, view: BufferView, memory: Array) -> None:
        self.view = view
        self.memory = memory
        self.interface: dict[str, Any] = memory.__array_interface__


class ResultMemory:
    """The memory of one result of a function. The caller of `take` and `close` holds the context's lock."""

    def __init__(self, dtype: DType, shape: tuple[int, ...]) -> None:
        self._dtype = dtype
        self._shape = shape
        self._free: list[_Piece] = []
        self._lent: set[_Piece] = set()
        self._closed = False

    def take(self, device: Device) -> tuple[BufferView, Array] | None:
        """Memory for one call: a view for the program, and the array for the caller. None if the device cannot use
        host memory. Raises MemoryError if the system has no more.
        """
        try:
            piece = self._free.pop()
        except IndexError:
            memory = aligned_zeros(self._dtype.itemsize * prod(self._shape))
            buffer = device.allocator.import_host(memory, writable=True)
            if buffer is None:
                return None
            piece = _Piece(BufferView(buffer, self._dtype, self._shape), memory)
        self._lent.add(piece)
        return piece.view, np.asarray(_Block(piece, self)).view(self._dtype.numpy).reshape(self._shape)

    def give_back(self, piece: _Piece) -> None:
        """Return memory that nobody uses. For finalizers: each step is one of C (`set.discard`, `list.append`)."""
        self._lent.discard(piece)
        if not self._closed and len(self._free) < MAX_FREE:
            self._free.append(piece)

    def release(self, busy: bool = False) -> bool:
        """Release the free memory. True if there was any. For `Context.on_memory_pressure`."""
        found = bool(self._free)
        self._free.clear()
        return found

    def close(self) -> None:
        """Release the free memory. Memory that callers have is theirs alone from now on."""
        self._closed = True
        self._free.clear()
        for piece in tuple(self._lent):
            piece.view.buffer.release()
        self._lent.clear()


class _Block:
    """The base of all arrays over a piece of memory: NumPy's and those of libraries that share them keep it alive."""

    __slots__ = ("__array_interface__", "_memory", "_owner", "_piece")

    def __init__(self, piece: _Piece, owner: ResultMemory) -> None:
        self._memory = piece.memory  # the buffer of the view has it until it is released
        self.__array_interface__ = piece.interface
        self._piece = piece
        self._owner = owner

    def __del__(self) -> None:
        self._owner.give_back(self._piece)
