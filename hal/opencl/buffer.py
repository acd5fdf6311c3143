"""The four kinds of OpenCL memory.

| kind | is | as a kernel argument | `host` |
| --- | --- | --- | --- |
| `SharedBuffer` | fine-grain shared virtual memory | an address | the memory itself |
| `DeviceBuffer` | a `cl_mem` object | the object, or a sub-buffer | None |
| `ImportedBuffer` | a read-only `cl_mem` over host memory | the object, or a sub-buffer | the memory itself |
| `BorrowedBuffer` | a range of the caller's own `cl_mem` | a sub-buffer | None |

Shared buffers are zeroed by the host when they are made, device buffers by a fill on the device's queue, which runs in
order: later commands find zeros.

A device has shared or device buffers, never both; either may have imported ones, which are never written, and borrowed
ones. Copies and
fills take `cl_mem` objects only; a shared buffer gets one over its memory when it first needs it.

`memory_id` names the same bytes for as long as they are allocated, so recordings may be found by it. Recordings that hold
a buffer's `cl_mem` are let go with the buffer, or its memory would stay.
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

#: bytes; the largest alignment that every device gives shared memory
SHARED_ALIGNMENT = 128

#: the pattern that fresh memory is filled with; the front gives multiples of its size
_ZERO = np.zeros(1, np.uint64)
#: places of `cl_mem` objects; addresses are positive
_memory_ids = count(-1, -1)


class OpenCLBuffer(BackendBuffer):
    """`whole` is the OpenCL object of all bytes, `holders` the recordings that hold a `cl_mem` of this buffer.

    `kernels` have it, or a sub-buffer of it, as an argument, which would keep its memory, and give that up when this is
    released.
    """

    __slots__ = ("holders", "host", "kernels", "memory_id", "size", "whole")

    size: int
    host: Bytes | None
    whole: Any  # cl.SVMAllocation | cl.Buffer
    memory_id: int
    holders: list[Recorded]
    kernels: WeakSet[Kernel]

    def memory_object(self) -> cl.Buffer:
        """A `cl_mem` of all bytes."""
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
        part = self.whole.get_sub_region(offset, length) if offset and length else self.whole
        kernel.set_memory(position, part)
        self.kernels.add(kernel)

    def release(self) -> None:
        while self.holders:
            self.holders.pop().release()
        for kernel in [*self.kernels]:
            kernel.forget(self)
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
        self.holders = []
        self.kernels = WeakSet()
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
        """`in_host_memory`: for a device that has no other; the driver copies to and from it without a detour."""
        flags = cl.mem_flags.READ_WRITE | (cl.mem_flags.ALLOC_HOST_PTR if in_host_memory else 0)
        self.whole = cl.Buffer(context, flags, size)
        cl.enqueue_fill_buffer(queue, self.whole, _ZERO, 0, size)
        self.size = size
        self.host = None
        self.memory_id = next(_memory_ids)
        self.holders = []
        self.kernels = WeakSet()


class ImportedBuffer(OpenCLBuffer):
    __slots__ = ()

    def __init__(self, context: cl.Context, memory: Bytes) -> None:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR
        self.whole = cl.Buffer(context, flags, hostbuf=memory)
        self.size = memory.size
        self.host = memory
        self.memory_id = next(_memory_ids)
        self.holders = []
        self.kernels = WeakSet()


class BorrowedBuffer(OpenCLBuffer):
    """A range of a `cl_mem` of the caller's, held by a reference of its own until release.

    `whole` is a sub-buffer unless the range is all of it: a kernel gets nothing outside of the range. OpenCL knows no
    sub-buffers of sub-buffers, so all are made of the `_root`.
    """

    __slots__ = ("_base", "_root")

    def __init__(self, root: cl.Buffer, base: int, size: int) -> None:
        self._root = root
        self._base = base
        self.whole = root if not base and size == root.size else root.get_sub_region(base, size)
        self.size = size
        self.host = None
        self.memory_id = next(_memory_ids)
        self.holders = []
        self.kernels = WeakSet()

    @classmethod
    def over(cls, context: cl.Context, handle: Any, offset: int, size: int, writable: bool) -> BorrowedBuffer:
        """Over bytes of a `pyopencl.Buffer`, or of a `cl_mem` as an integer. `InvalidArgument`: see `import_buffer`."""
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
        part = self._root.get_sub_region(self._base + offset, length) if offset and length else self.whole
        kernel.set_memory(position, part)
        self.kernels.add(kernel)

    def release(self) -> None:
        root, whole = self._root, self.whole
        super().release()
        if root is not whole:
            root.release()
        del self._root


def _why_not(context: cl.Context, memory: cl.Buffer, offset: int, size: int, writable: bool) -> str:
    """Why a range of a memory object cannot be imported; empty where it can."""
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
    """The buffer that a sub-buffer is of, held by a reference of its own, and where in it that begins; a buffer that is
    of no other, and 0. `InvalidArgument`: the driver tells nobody.
    """
    try:
        parent = memory.associated_memobject
    except (
        cl.Error
    ) as error:  # for a buffer over shared memory Intel's runtime names an object that it takes from nobody
        if memory.offset:
            raise InvalidArgument(
                "the buffer is a sub-buffer of one that the driver does not name: give that"
            ) from error
        return memory, 0
    if parent is None:
        return memory, 0
    root: Any = cl.Buffer.from_int_ptr(parent.int_ptr, retain=True)
    return root, memory.offset
