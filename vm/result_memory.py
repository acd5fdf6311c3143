"""Host memory for large results, which callers get without a copy, and which later calls reuse.

On a device that works on the host's memory a call computes such a result in memory that its caller gets as an array.
When the last array over the memory is dropped, the memory returns to the function that it came from, and a later call
of this function in this context computes a result there. The kernel of the system then neither maps nor clears pages.

New memory is zero. Reused memory holds an earlier result of the same function, as the slot of a result does. It belongs
to the caller: no limit of the device counts it.
"""

from __future__ import annotations

import ctypes
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
    """Memory for one call: a view for the program, and the memory as an object that is no array, because an array over
    arrays keeps only the last of them alive.
    """

    __slots__ = ("memory", "view")

    def __init__(self, view: BufferView, memory: Array) -> None:
        self.view = view
        self.memory = memoryview((ctypes.c_ubyte * memory.nbytes).from_buffer(memory.data))


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
        block = _Block(self._shape, self._dtype.numpy, piece.memory)
        block.piece, block.owner = piece, self
        return piece.view, block.view(np.ndarray)

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


class _Block(np.ndarray[Any, Any]):
    """The base of all arrays over a piece of memory: NumPy's and those of libraries that share them keep it alive. An
    array is made faster from it than from an object with an `__array_interface__`.
    """

    __slots__ = ("owner", "piece")
    piece: _Piece
    owner: ResultMemory

    def __del__(self) -> None:
        if hasattr(self, "piece"):  # a slice of a block has none, and keeps the block alive
            self.owner.give_back(self.piece)
