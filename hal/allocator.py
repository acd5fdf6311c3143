"""Makes buffers, within limits.

Sizes asked of the driver are rounded up to `GRANULE` (so no allocation is empty, and whole words can be
filled); the account of the device, and that of a share, is charged with that. A limit is refused with both numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .backend import BackendBuffer, MemoryUse
from .buffer import WRITABLE, Buffer
from .errors import DeviceOutOfMemory, InvalidArgument, MemoryLimitExceeded
from .lifetime import Account, ResourceRef
from .lost import NoticingLoss
from .relief import relieve_device, relieve_limit, with_relief

if TYPE_CHECKING:
    from .device import Device

GRANULE = 16


def padded_size(size: int) -> int:
    """Bytes of device memory that a buffer is charged for."""
    return max(GRANULE, -(-size // GRANULE) * GRANULE)


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
    def accounts(self) -> tuple[Account, ...]:
        """All that are charged for this device's memory, its own first."""
        return self._accounts

    @property
    def live_bytes(self) -> int:
        """Bytes in use, without those that nobody refers to any more."""
        self.device.device_state.collect()
        return self._accounts[0].live

    @property
    def peak_bytes(self) -> int:
        return self._accounts[0].peak

    @property
    def room(self) -> int | None:
        """Bytes that the limits leave, those of what the device is a share of included; None without a limit."""
        left = [account.limit - account.live for account in self._accounts if account.limit is not None]
        return max(0, min(left)) if left else None

    def allocate(self, size: int, use: MemoryUse = MemoryUse.ARENA) -> Buffer:
        """A buffer of `size` bytes, all zero. `MemoryLimitExceeded` above a limit, `DeviceOutOfMemory` when the device
        has no room.

        `use` says what the buffer is for; the driver chooses the memory by it (`MemoryUse`). Where the driver maps
        none, the buffer's `host` is None, which `read` and `write` serve all the same.
        """
        device = self.device
        state = device.device_state
        if device.closed:
            device.check_open()
        if size < 0:
            raise InvalidArgument(f"allocation of {size} bytes")
        if not isinstance(use, MemoryUse):
            raise InvalidArgument(f"use {use!r} of an allocation is no MemoryUse")
        padded = padded_size(size)
        if state.garbage or state.limbo:
            state.collect()
        charged: list[Account] = []
        ref = ResourceRef(state, None, charged, padded)  # it gives back what it is charged with, whatever ends this
        try:
            self._charge(padded, charged)
            with NoticingLoss(state):
                backend = self._allocate(padded, use)
        except BaseException:
            while charged:  # at once: the exception keeps this frame, and so the ref
                charged.pop().refund(padded)
            raise
        ref.hold(backend)
        device.statistics.allocations += 1
        return Buffer(device, backend, ref, size, WRITABLE)

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
        state = device.device_state
        with NoticingLoss(state):
            backend = with_relief(state, device, lambda: state.backend.import_host(data))
        if backend is None:
            return None
        device.statistics.imports += 1
        return Buffer(device, backend, ResourceRef(state, backend), data.size, 0)

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
        state = device.device_state
        with NoticingLoss(state):
            backend = with_relief(state, device, lambda: state.backend.import_buffer(handle, offset, size, writable))
        device.statistics.imports += 1
        return Buffer(device, backend, ResourceRef(state, backend), size, WRITABLE * writable)

    def check_room(self, size: int, who: str) -> None:
        """For memory that a driver takes while it works: `MemoryLimitExceeded` when it would exceed a limit now."""
        self.device.device_state.collect()
        for account in self._accounts:
            if account.limit is not None and account.live + size > account.limit:
                relieve_limit(self.device.device_state, self.device, account)
            if account.limit is not None and account.live + size > account.limit:
                raise MemoryLimitExceeded(
                    f"{who} {size} bytes of scratch memory, which exceeds the limit of {account.limit} bytes "
                    f"({account.live} in use){account.origin}"
                )
        if self.device.streaming is not None:
            self.device.streaming.leave_scratch(size)

    def _allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        """From the driver; if that has no room, once more after everything was given back that can be."""
        state = self.device.device_state
        try:
            return state.backend.allocate(size, use)
        except DeviceOutOfMemory as error:
            if not relieve_device(state, self.device):
                raise self._no_room(size, error) from error
        try:
            return state.backend.allocate(size, use)
        except DeviceOutOfMemory as error:
            raise self._no_room(size, error) from error

    def _no_room(self, size: int, error: DeviceOutOfMemory) -> DeviceOutOfMemory:
        used = self._accounts[-1].live - size  # which is charged already
        return DeviceOutOfMemory(f"{error} ({used} bytes of {self.device.info.id} are in use)")

    def _charge(self, size: int, charged: list[Account]) -> None:
        """Charge all accounts, and enter each in `charged`."""
        for account in self._accounts:
            if account.charge(size, charged):
                continue
            self.device.device_state.make_room()
            if account.charge(size, charged):
                continue
            relieved = relieve_limit(self.device.device_state, self.device, account)
            if relieved and account.charge(size, charged):
                continue
            raise MemoryLimitExceeded(
                f"allocation of {size} bytes exceeds the limit of {account.limit} bytes ({account.live} in use)"
                f"{account.origin}"
            )
