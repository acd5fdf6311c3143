"""Makes buffers, within limits.

Sizes asked of the driver are rounded up to `GRANULE` (so no allocation is empty, and whole words can be
filled); the account of the device, and that of a share, is charged with that. A limit is refused with both numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .backend import BufferUsage, MemoryType
from .buffer import DISPATCH, MAPPING, TRANSFER, WRITABLE, Buffer
from .errors import InvalidArgument, OutOfMemory
from .lifetime import Account, ResourceRef

if TYPE_CHECKING:
    from .device import Device

GRANULE = 16

HOST_VISIBLE = int(MemoryType.HOST_VISIBLE)
ANY_MEMORY = MemoryType.DEVICE_LOCAL | MemoryType.HOST_VISIBLE
ANY_USAGE = BufferUsage.TRANSFER | BufferUsage.DISPATCH | BufferUsage.MAPPING


class Allocator:
    """`Device.allocator`: device memory within the device's limit."""

    __slots__ = ("_accounts", "device")

    def __init__(self, device: Device, accounts: tuple[Account, ...]) -> None:
        self.device = device
        self._accounts = accounts

    @property
    def limit(self) -> int | None:
        """Bytes this device may hold; None when only the hardware limits."""
        return self._accounts[0].limit

    @property
    def live_bytes(self) -> int:
        return self._accounts[0].live

    @property
    def peak_bytes(self) -> int:
        return self._accounts[0].peak

    def allocate(
        self,
        size: int,
        memory: MemoryType = ANY_MEMORY,
        usage: BufferUsage = ANY_USAGE,
    ) -> Buffer:
        """A buffer of `size` bytes, all zero. `OutOfMemory` above a limit or when the device has no room.

        MAPPING usage needs HOST_VISIBLE memory; a driver without persistent mapping gives a buffer whose
        `host` is None, which `read` and `write` serve all the same.
        """
        device = self.device
        if device.closed:
            device.check_open()
        rights, places = int(usage), int(memory)
        if size < 0 or not rights or not places:
            raise InvalidArgument(f"allocation of {size} bytes, memory {places}, usage {rights}")
        if rights & MAPPING and not places & HOST_VISIBLE:
            raise InvalidArgument("buffer usage MAPPING needs memory type HOST_VISIBLE")
        padded = max(GRANULE, -(-size // GRANULE) * GRANULE)
        self._charge(padded)
        try:
            backend = device.device_state.backend.allocate(padded, memory, usage)
        except BaseException:
            self._refund(padded)
            raise
        device.statistics.allocations += 1
        ref = ResourceRef(device.device_state, backend, self._accounts, padded)
        return Buffer(device, backend, ref, size, rights | WRITABLE)

    def import_host(self, memory: npt.NDArray[np.generic]) -> Buffer | None:
        """A read-only buffer over contiguous host memory, which it keeps alive; None where the device cannot."""
        device = self.device
        device.check_open()
        if not memory.flags.c_contiguous:
            raise InvalidArgument(f"host memory to import is not contiguous (strides {memory.strides})")
        data = memory.reshape(-1).view(np.uint8)
        alignment = device.info.limits.host_import_alignment
        if data.size == 0 or data.ctypes.data % alignment:
            return None
        backend = device.device_state.backend.import_host(data)
        if backend is None:
            return None
        device.statistics.imports += 1
        return Buffer(device, backend, ResourceRef(device.device_state, backend), data.size, TRANSFER | DISPATCH)

    def import_buffer(self, handle: Any, size: int, offset: int = 0, writable: bool = True) -> Buffer:
        """`size` bytes from `offset` on of a buffer of the driver's own API. No limit is charged with them.

        OpenCL takes a `pyopencl.Buffer` of the device's context, or its `cl_mem` as an integer, and holds a reference
        until the result is released and no work uses it. Vulkan takes a `VkBuffer` of the device, as an integer or of
        cffi, made for storage and transfers in both directions; its owner keeps it and its memory for as long.
        `InvalidArgument`: it is none of these, or the range lies outside, or `offset` is not a multiple of the device's
        `min_binding_alignment`; the size of a `VkBuffer` cannot be asked for. `Unsupported`: other devices.
        """
        device = self.device
        device.check_open()
        alignment = device.info.limits.min_binding_alignment
        if size <= 0 or offset < 0:
            raise InvalidArgument(f"import of {size} bytes from offset {offset} of a buffer")
        if offset % alignment:
            raise InvalidArgument(f"import from offset {offset} of a buffer, which is not a multiple of {alignment}")
        backend = device.device_state.backend.import_buffer(handle, offset, size, writable)
        device.statistics.imports += 1
        rights = TRANSFER | DISPATCH | WRITABLE * writable
        return Buffer(device, backend, ResourceRef(device.device_state, backend), size, rights)

    def check_room(self, size: int, who: str) -> None:
        """For memory that a driver takes while it works: `OutOfMemory` when it would exceed a limit now."""
        for account in self._accounts:
            if account.limit is not None and account.live + size > account.limit:
                raise OutOfMemory(
                    f"{who} {size} bytes of scratch memory, which exceeds the limit of {account.limit} bytes "
                    f"({account.live} in use){account.origin}"
                )

    def _charge(self, size: int) -> None:
        for position, account in enumerate(self._accounts):
            if account.charge(size):
                continue
            self.device.device_state.make_room()
            if account.charge(size):
                continue
            for charged in self._accounts[:position]:
                charged.refund(size)
            raise OutOfMemory(
                f"allocation of {size} bytes exceeds the limit of {account.limit} bytes ({account.live} in use)"
                f"{account.origin}"
            )

    def _refund(self, size: int) -> None:
        for account in self._accounts:
            account.refund(size)
