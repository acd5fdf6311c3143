"""The three kinds of OpenCL memory, and what is enqueued for them.

| kind | is | as a kernel argument | `host` |
| --- | --- | --- | --- |
| `SharedBuffer` | fine-grain shared virtual memory | an address | the memory itself |
| `DeviceBuffer` | a `cl_mem` object | the object, or a sub-buffer | None |
| `ImportedBuffer` | a read-only `cl_mem` over host memory | the object, or a sub-buffer | the memory itself |

A device has shared or device buffers, never both; either may have imported ones, which are never written.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from orchestrion.hal.backend import BackendBuffer, Bytes

Argument = Any  # cl.SVMPointer | cl.MemoryObjectHolder
Step = Callable[[], Any]

#: bytes; the largest alignment that every device gives shared memory
SHARED_ALIGNMENT = 128


class OpenCLBuffer(BackendBuffer):
    """`whole` is the OpenCL object of all bytes."""

    __slots__ = ("host", "size", "whole")

    size: int
    host: Bytes | None
    whole: Argument

    def argument(self, offset: int, length: int) -> Argument:
        """What a kernel gets for a range."""
        if offset == 0 or length == 0:
            return self.whole
        return self.part(offset, length)

    def part(self, offset: int, length: int) -> Argument:
        return self.whole.get_sub_region(offset, length)

    def release(self) -> None:
        self.host = None
        self.whole.release()
        del self.whole


class SharedBuffer(OpenCLBuffer):
    __slots__ = ()

    def __init__(self, context: cl.Context, size: int) -> None:
        flags = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
        self.whole = cl.SVMAllocation(context, size, SHARED_ALIGNMENT, flags)
        self.size = size
        self.host = np.asarray(self.whole.buf)

    def part(self, offset: int, length: int) -> Argument:
        return cl.SVM(self.memory(offset, length))

    def memory(self, offset: int, length: int) -> Bytes:
        assert self.host is not None
        return self.host[offset : offset + length]


class DeviceBuffer(OpenCLBuffer):
    __slots__ = ()

    def __init__(self, context: cl.Context, size: int) -> None:
        self.whole = cl.Buffer(context, cl.mem_flags.READ_WRITE, size)
        self.size = size
        self.host = None


class ImportedBuffer(OpenCLBuffer):
    __slots__ = ()

    def __init__(self, context: cl.Context, memory: Bytes) -> None:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR
        self.whole = cl.Buffer(context, flags, hostbuf=memory)
        self.size = memory.size
        self.host = memory


def copy_step(
    queue: cl.CommandQueue,
    source: OpenCLBuffer,
    source_offset: int,
    target: OpenCLBuffer,
    target_offset: int,
    length: int,
) -> Step:
    """A call that enqueues the copy; it waits only where imported memory is copied to shared memory."""
    if isinstance(source, SharedBuffer) and isinstance(target, SharedBuffer):
        taken, given = source.part(source_offset, length), target.part(target_offset, length)
        return partial(cl.enqueue_copy, queue, given, taken, is_blocking=False)
    if isinstance(target, SharedBuffer):
        memory = target.memory(target_offset, length)
        return partial(cl.enqueue_copy, queue, memory, source.whole, src_offset=source_offset)
    places = {"src_offset": source_offset, "dst_offset": target_offset}
    return partial(cl.enqueue_copy, queue, target.whole, source.whole, byte_count=length, **places)


def fill_step(queue: cl.CommandQueue, target: OpenCLBuffer, offset: int, length: int, pattern: bytes) -> Step:
    """A call that enqueues the fill."""
    word = np.frombuffer(pattern, f"u{len(pattern)}")
    if isinstance(target, SharedBuffer):
        return partial(cl.enqueue_fill, queue, target.part(offset, length), word, length)
    return partial(cl.enqueue_fill, queue, target.whole, word, length, offset=offset)
