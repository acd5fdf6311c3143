"""The four kinds of OpenCL memory.

| kind | is | as a kernel argument | `host` |
| --- | --- | --- | --- |
| `SharedBuffer` | fine-grain shared virtual memory | an address | the memory itself |
| `DeviceBuffer` | a `cl_mem` object | the object, or a sub-buffer | None |
| `ImportedBuffer` | a read-only `cl_mem` over host memory | the object, or a sub-buffer | the memory itself |
| `BorrowedBuffer` | a range of the caller's own `cl_mem` | a sub-buffer | None |

The host zeroes shared buffers when they are created. A fill on the device's in-order queue zeroes device buffers, so
later commands read zeros.

A device has either shared or device buffers. It may also have imported buffers, which are never written, and borrowed
ones. Copies and fills take only `cl_mem` objects; a shared buffer creates one over its memory when it first needs it.

`memory_id` identifies the same bytes while they are allocated, so recordings are looked up by it. Recordings that hold
a buffer's `cl_mem` are released with the buffer, because they would keep its memory alive.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np
import pyopencl as cl

from orchestrion.hal.backend import BackendBuffer, Bytes, NativeRange
from orchestrion.hal.errors import InvalidArgument

if TYPE_CHECKING:
    from .executable import Kernel
    from .recording import Recorded

#: bytes; the largest alignment of shared memory that every device supports
SHARED_ALIGNMENT = 128

#: the fill pattern of fresh memory; the front allocates multiples of its size
_ZERO = np.zeros(1, np.uint64)
#: memory ids of `cl_mem` objects; addresses of shared memory are positive
_memory_ids = count(-1, -1)


class OpenCLBuffer(BackendBuffer):
    """OpenCL memory. `whole` is the OpenCL object of all bytes; `holders` are the recordings that hold a `cl_mem` of
    this buffer.

    `kernels` have the buffer, or a sub-buffer of it, as an argument, which keeps its memory alive. They drop it when
    the buffer is released. `parts`: the sub-buffer of each range that was an argument so far. The last one is released
    first: NVIDIA's driver (580) follows a null pointer when another order releases sub-buffers that overlap.
    """

    __slots__ = ("holders", "host", "kernels", "memory_id", "parts", "size", "whole")

    size: int
    host: Bytes | None
    whole: Any  # cl.SVMAllocation | cl.Buffer
    memory_id: int
    holders: list[Recorded]
    kernels: WeakSet[Kernel]
    parts: dict[tuple[int, int], cl.Buffer]

    def prepare(self) -> None:
        """Creates the empty collections of a new buffer."""
        self.holders = []
        self.kernels = WeakSet()
        self.parts = {}

    def memory_object(self) -> cl.Buffer:
        """Returns a `cl_mem` of all bytes."""
        whole: cl.Buffer = self.whole
        return whole

    @property
    def has_memory_object(self) -> bool:
        return True

    @property
    def native(self) -> NativeRange:
        return NativeRange(self.memory_object(), 0, self.size)

    def set_argument(self, kernel: Kernel, position: int, offset: int, length: int) -> None:
        """Make a range of this buffer an argument of the kernel."""
        kernel.set_memory(position, self._part(self.whole, offset, length) if offset and length else self.whole)
        self.kernels.add(kernel)

    def _part(self, memory: cl.Buffer, offset: int, length: int) -> cl.Buffer:
        """The sub-buffer of a range of `memory`."""
        found = self.parts.get((offset, length))
        if found is None:
            found = self.parts[offset, length] = memory.get_sub_region(offset, length)
        return found

    def release(self) -> None:
        while self.holders:
            self.holders.pop().release()
        for kernel in [*self.kernels]:
            kernel.forget(self)
        while self.parts:
            self.parts.popitem()[1].release()
        self.host = None
        self.whole.release()
        del self.whole


class SharedBuffer(OpenCLBuffer):
    __slots__ = ("_context", "_object")

    def __init__(self, context: cl.Context, size: int) -> None:
        flags = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
        self.whole = cl.SVMAllocation(context, size, SHARED_ALIGNMENT, flags)
        self.size = size
        self.host = np.asarray(self.whole.buf)
        self.host.fill(0)
        self.memory_id = self.whole.svm_ptr
        self.prepare()
        self._context = context
        self._object: cl.Buffer | None = None

    def memory_object(self) -> cl.Buffer:
        if self._object is None:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
            self._object = cl.Buffer(self._context, flags, hostbuf=self.host)
        return self._object

    @property
    def has_memory_object(self) -> bool:
        return self._object is not None

    def set_argument(self, kernel: Kernel, position: int, offset: int, length: int) -> None:
        kernel.set_address(position, self.memory_id + offset)

    def release(self) -> None:
        if self._object is not None:
            self._object.release()
            self._object = None
        super().release()


class DeviceBuffer(OpenCLBuffer):
    __slots__ = ()

    def __init__(self, context: cl.Context, queue: cl.CommandQueue, size: int, in_host_memory: bool = False) -> None:
        """`in_host_memory`: for a device without memory of its own; the driver copies to and from it directly."""
        flags = cl.mem_flags.READ_WRITE | (cl.mem_flags.ALLOC_HOST_PTR if in_host_memory else 0)
        self.whole = cl.Buffer(context, flags, size)
        cl.enqueue_fill_buffer(queue, self.whole, _ZERO, 0, size)
        self.size = size
        self.host = None
        self.memory_id = next(_memory_ids)
        self.prepare()


class ImportedBuffer(OpenCLBuffer):
    __slots__ = ()

    def __init__(self, context: cl.Context, memory: Bytes) -> None:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR
        self.whole = cl.Buffer(context, flags, hostbuf=memory)
        self.size = memory.size
        self.host = memory
        self.memory_id = next(_memory_ids)
        self.prepare()


class BorrowedBuffer(OpenCLBuffer):
    """A range of the caller's `cl_mem`, held by its own reference until release.

    `whole` is a sub-buffer unless the range is the entire buffer, so a kernel gets nothing outside of the range. OpenCL
    has no sub-buffers of sub-buffers, so all are made from the root buffer.
    """

    __slots__ = ("_base", "_root")

    def __init__(self, root: cl.Buffer, base: int, size: int) -> None:
        self._root = root
        self._base = base
        self.whole = root if not base and size == root.size else root.get_sub_region(base, size)
        self.size = size
        self.host = None
        self.memory_id = next(_memory_ids)
        self.prepare()

    @classmethod
    def over(cls, context: cl.Context, handle: Any, offset: int, size: int, writable: bool) -> BorrowedBuffer:
        """Returns a buffer over bytes of a `pyopencl.Buffer`, or of a `cl_mem` as an integer. Raises InvalidArgument as
        `BackendDevice.import_buffer`.
        """
        if not isinstance(handle, int | cl.Buffer) or not handle:
            raise InvalidArgument(f"expected a pyopencl.Buffer, or its cl_mem as an integer, got {handle!r}")
        try:
            given: Any = cl.Buffer.from_int_ptr(handle if isinstance(handle, int) else handle.int_ptr, retain=True)
            why_not = _why_not(context, given, offset, size, writable)
            if why_not:
                raise InvalidArgument(f"{why_not}: {size} bytes from offset {offset} cannot be imported")
            root, base = _root(given)
            return cls(root, base + offset, size)
        except cl.Error as error:
            raise InvalidArgument(f"{handle!r} cannot be imported: {error}") from error

    @property
    def native(self) -> NativeRange:
        return NativeRange(self._root, self._base, self.size)

    def set_argument(self, kernel: Kernel, position: int, offset: int, length: int) -> None:
        inside = offset and length
        part = self._part(self._root, self._base + offset, length) if inside else self.whole
        kernel.set_memory(position, part)
        self.kernels.add(kernel)

    def release(self) -> None:
        root, whole = self._root, self.whole
        super().release()
        if root is not whole:
            root.release()
        del self._root


def _why_not(context: cl.Context, memory: cl.Buffer, offset: int, size: int, writable: bool) -> str:
    """Why a range of a memory object cannot be imported; empty if it can."""
    flags = cl.mem_flags
    if memory.type != cl.mem_object_type.BUFFER:
        return "the memory object is an image"
    if memory.context != context:
        return "the buffer is of another context than the device's, which is its native.context"
    if offset + size > memory.size:
        return f"the buffer has {memory.size} bytes"
    if memory.flags & flags.WRITE_ONLY:
        return "the buffer is write-only"
    if writable and memory.flags & flags.READ_ONLY:
        return "the buffer is read-only, and writable=False was not given"
    return ""


def _root(memory: Any) -> tuple[cl.Buffer, int]:
    """Returns the parent of a sub-buffer, held by its own reference, and the sub-buffer's first byte in it; for other
    buffers the buffer itself and 0. Raises InvalidArgument if the driver does not name the parent.
    """
    try:
        parent = memory.associated_memobject
    except (
        cl.Error
    ) as error:  # for a buffer over shared memory Intel's runtime names an object that it takes from nobody
        if memory.offset:
            raise InvalidArgument(
                "the buffer is a sub-buffer, and the driver does not name its parent: import the parent"
            ) from error
        return memory, 0
    if parent is None:
        return memory, 0
    root: Any = cl.Buffer.from_int_ptr(parent.int_ptr, retain=True)
    return root, memory.offset
