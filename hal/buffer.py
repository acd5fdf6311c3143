"""Device memory and typed views of it.

- A `Buffer` is bytes with access rights. `release`, or dropping the last reference, ends its use. Its memory is freed
  when no recording and no work in flight refers to it.
- If the driver maps memory persistently, `read` and `write` are plain copies, and wait only for submitted work that
  still uses the buffer. Otherwise they are ordered on the queue, as are reads of mappings that the host's processor
  does not cache. In both cases the caller may reuse the array on return.
- A `BufferView` is an element type and a shape over a range of a buffer.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from orchestrion.schema.dtypes import DType

from .backend import BackendBuffer, Bytes, NativeRange, Watcher
from .dlpack import export
from .errors import InvalidArgument
from .lifetime import DeviceState, ResourceRef
from .memory_pressure import retry_after_freeing

if TYPE_CHECKING:
    from .device import Device

Array = npt.NDArray[Any]

#: access right: host and device may write; imported host memory lacks it
WRITABLE = 1


class _Mapping:
    """Memory that NumPy arrays may use after the handle is gone: the arrays hold this object, which holds
    the resource.
    """

    __slots__ = ("__array_interface__", "_ref")

    def __init__(self, host: Bytes, ref: ResourceRef) -> None:
        self.__array_interface__ = host.__array_interface__
        self._ref = ref


class Loan(Protocol):
    """Ownership of memory that a buffer borrows, and that returns to its owner when the buffer is released."""

    def keep(self) -> None:
        """Mark the memory as shared: somebody may use it after the handle is gone, so it does not return to
        its owner.
        """

    def end(self, submitted: int) -> None:
        """Called by finalizers when the handle is gone. `submitted`: the number of the last submission that used the
        memory.
        """


class Buffer:
    """Bytes of device memory. Made by `Device.allocator`.

    `state` is the open device while the buffer may be used, and None after release: one comparison on the hot path
    checks both. `backend` and `ref` exist only until then. `host` is the mapping of all `size` bytes, valid while the
    buffer is alive, or None; `map` returns an array that may be kept longer.
    """

    __slots__ = (
        "backend",
        "device",
        "device_state",
        "host",
        "host_cached",
        "loan",
        "recordable",
        "ref",
        "rights",
        "size",
        "submitted",
    )

    def __init__(self, device: Device, backend: BackendBuffer, ref: ResourceRef, size: int, rights: int) -> None:
        self.device = device
        self.device_state: DeviceState | None = device.device_state
        self.backend = backend
        self.ref = ref
        self.size = size
        self.rights = rights
        self.host: Bytes | None = None if backend.host is None else backend.host[:size]
        self.host_cached = backend.host_cached
        self.loan: Loan | None = None  #: if it is over memory that goes back to its owner
        #: whether recordings may name it; only slots take a handle that others lend, so that its use ends with it
        self.recordable = True
        self.submitted = 0  #: the last submission that uses it, on the device state's timeline
        device.live["buffer"] += 1

    def write(self, array: Array, offset: int = 0) -> None:
        """Copy an array's bytes, in C order, to byte `offset`. The array may change afterwards."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        state = self.check(offset, data.size, WRITABLE)
        self.device.statistics.host_to_device_bytes += data.size
        if self.host is not None:
            if self.submitted:
                state.wait_for(self)
            self.host[offset : offset + data.size] = data
        elif data.size:
            queue = self.device.queue
            retry_after_freeing(state, self.device, lambda: queue.write(self, offset, data))

    def write_file(self, data: Bytes, file: int) -> None:
        """Write all bytes: those that an open file begins with. `data` are the same bytes. The driver may map them.

        Nobody changes or truncates the file while the buffer lives.
        """
        state = self.check(0, self.size, WRITABLE)
        if self.submitted:
            state.wait_for(self)
        if self.backend.map_file(file, self.size):
            self.device.statistics.imports += 1
        else:
            self.write(data)

    def read(self, out: Array, offset: int = 0) -> None:
        """Fill a C-contiguous array with the bytes from `offset` on, after all work that was submitted before. Raises
        InvalidArgument for an array that is not contiguous, or a range outside of the buffer.
        """
        if not out.flags.c_contiguous:
            raise InvalidArgument(f"array to read into is not contiguous (strides {out.strides})")
        data = out.reshape(-1).view(np.uint8)
        state = self.check(offset, data.size, 0)
        self.device.statistics.device_to_host_bytes += data.size
        if self.host is not None and self.host_cached:
            if self.submitted:
                state.wait_for(self)
            data[:] = self.host[offset : offset + data.size]
        elif data.size:
            queue = self.device.queue
            retry_after_freeing(state, self.device, lambda: queue.read(self, offset, data))

    def wait(self, watcher: Watcher) -> None:
        """Wait for the submitted work that a `read` or `write` would wait for, or until `watcher.check` raises."""
        state = self.check(0, 0, 0)
        if self.submitted or self.host is None:
            state.watch(state.submitted if self.host is None else self.submitted, watcher)

    def map(self) -> Bytes | None:
        """Returns all bytes as an array, read-only if the buffer is; the array keeps the memory alive. None if it is
        not mapped.

        The contents are coherent once the work that uses the buffer was waited for.
        """
        self.check(0, self.size, 0)
        if self.host is None:
            return None
        if self.loan is not None:
            self.loan.keep()
        mapped = np.asarray(_Mapping(self.host, self.ref))
        if not self.rights & WRITABLE:
            mapped.flags.writeable = False
        return mapped

    @property
    def native(self) -> NativeRange | None:
        """Returns the bytes in the driver's own API, for work that the caller submits to it: a `pyopencl.Buffer` or a
        `VkBuffer`. None if the device has neither.

        The handle is valid until this buffer is released. Other buffers may lie next to the range. Whoever submits work
        to the driver orders it with the work submitted here.
        """
        state = self.check(0, 0, 0)
        if self.loan is not None:
            self.loan.keep()
        if self.host is None:  # then the driver may still have to zero it
            self.device.queue.read(self, 0, np.empty(1, np.uint8))
        with state.lock:
            state.recover()
            found = self.backend.native
        return None if found is None else found._replace(size=self.size)

    def check(self, offset: int, length: int, rights: int) -> DeviceState:
        """Returns the device state. Raises InvalidArgument unless the buffer is alive and the range lies within it and
        these rights are granted, and DeviceLost if the device is lost.
        """
        state = self.device_state
        if state is None:
            raise InvalidArgument(f"buffer of {self.size} bytes was released")
        if offset < 0 or length < 0 or offset + length > self.size:
            raise InvalidArgument(f"bytes {offset} to {offset + length} are outside a buffer of {self.size} bytes")
        if rights & ~self.rights:
            raise InvalidArgument(f"buffer of {self.size} bytes lacks write access")
        if state.lost is not None:
            self.device.check_not_lost()
        return state

    def lend(self, device: Device, writable: bool) -> Buffer:
        """Returns another handle over the same memory, counted for `device`, a share of the same open device. The
        handle is writable if `writable` is true and this one is writable. Recordings take it in slots only. Raises
        InvalidArgument for another device.
        """
        state = self.check(0, self.size, WRITABLE if writable else 0)
        if device.device_state is not state:
            raise InvalidArgument(f"buffer of device {self.device.info.id} lent to {device.info.id}")
        rights = self.rights if writable else self.rights & ~WRITABLE
        lent = Buffer(device, self.backend, self.ref, self.size, rights)
        lent.submitted = self.submitted
        lent.recordable = False
        return lent

    def give_back(self, owner: Buffer) -> None:
        """End the use of a borrowed handle. The owner then waits for the work that was submitted through it."""
        owner.submitted = max(owner.submitted, self.submitted)
        self.release()

    def release(self) -> None:
        """End the use of the buffer. A second call does nothing."""
        state = self.device_state
        if state is not None:
            self._end()
            state.collect()

    def _end(self) -> None:
        self.device.live["buffer"] -= 1
        self.device_state = self.host = None
        del self.backend, self.ref
        if self.loan is not None:
            self.loan.end(self.submitted)

    def __del__(self) -> None:
        if hasattr(self, "submitted") and self.device_state is not None:
            self._end()


class BufferView:
    """An element type and a shape over a range of a buffer. It holds a reference to the buffer, and owns nothing."""

    __slots__ = ("_elements", "buffer", "dtype", "nbytes", "offset", "shape")

    def __init__(self, buffer: Buffer, dtype: DType, shape: tuple[int, ...], offset: int = 0) -> None:
        if shape and min(shape) < 0:
            raise InvalidArgument(f"view shape {shape} has a negative dimension")
        self.nbytes = prod(shape) * dtype.itemsize
        buffer.check(offset, self.nbytes, 0)
        if offset % dtype.itemsize:
            raise InvalidArgument(f"view offset {offset} is not a multiple of {dtype} size {dtype.itemsize}")
        self.buffer = buffer
        self.dtype = dtype
        self.shape = shape
        self.offset = offset
        self._elements: Array | None = None
        if buffer.host is not None:
            host = buffer.host[offset : offset + self.nbytes]
            self._elements = host.view(dtype.numpy).reshape(shape)

    def write(self, array: Array) -> None:
        """Copy an array of this view's dtype and shape, in any memory layout."""
        if array.dtype != self.dtype.numpy or array.shape != self.shape:
            raise InvalidArgument(f"array {array.dtype}{array.shape} does not fit a view {self.dtype}{self.shape}")
        buffer, state = self.buffer, self.buffer.device_state
        if self._elements is None or state is None or state.lost or buffer.submitted or not buffer.rights & WRITABLE:
            return buffer.write(array, self.offset)
        buffer.device.statistics.host_to_device_bytes += self.nbytes
        self._elements[...] = array

    def read(self) -> Array:
        """Returns a new array with the elements, after all work that was submitted before."""
        buffer, state = self.buffer, self.buffer.device_state
        if self._elements is None or state is None or state.lost or buffer.submitted or not buffer.host_cached:
            out = np.empty(self.shape, self.dtype.numpy)
            buffer.read(out, self.offset)
            return out
        buffer.device.statistics.device_to_host_bytes += self.nbytes
        return self._elements.copy()

    def read_into(self, out: Array) -> None:
        """As `read`, into an array of this view's shape, in any memory layout."""
        buffer, state = self.buffer, self.buffer.device_state
        if self._elements is None or state is None or state.lost or buffer.submitted or not buffer.host_cached:
            out[...] = self.read()
            return
        buffer.device.statistics.device_to_host_bytes += self.nbytes
        out[...] = self._elements

    def map(self) -> Array | None:
        """Returns the elements as an array that shares the device's memory and keeps it alive; None if it is not
        mapped. See `Buffer.map`.
        """
        data = self.buffer.map()
        if data is None:
            return None
        return data[self.offset : self.offset + self.nbytes].view(self.dtype.numpy).reshape(self.shape)

    def shared(self) -> Array | None:
        """As `map`, after all submitted work that uses the buffer."""
        buffer = self.buffer
        if buffer.host is None:
            return None
        state = buffer.check(0, 0, 0)
        if buffer.submitted:
            state.wait_for(buffer)
        return self.map()

    @property
    def native(self) -> NativeRange | None:
        """Returns the elements in the driver's own API; see `Buffer.native`."""
        found = self.buffer.native
        return None if found is None else found._replace(offset=found.offset + self.offset, size=self.nbytes)

    def __dlpack__(self, *, copy: bool | None = None, **wanted: Any) -> Any:
        """Export to other libraries (`from_dlpack`): the device's memory if it is mapped, otherwise a copy in host
        memory, unless `copy` is False. The capsule keeps the memory alive. Raises BufferError as `dlpack.export`.
        """
        return export(self, copy, wanted)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU, because mapped memory and copies both lie in host memory."""
        return (1, 0)
