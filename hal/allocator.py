"""Allocates buffers within memory limits.

Sizes requested from the driver are rounded up to `GRANULE` bytes, so no allocation is empty and every buffer holds
whole words. The accounts of the device and of the share are charged with the rounded size. The error for an exceeded
limit names the requested size and the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .backend import BackendBuffer, MemoryUse
from .buffer import WRITABLE, Buffer
from .errors import DeviceOutOfMemory, InvalidArgument, MemoryLimitExceeded
from .lifetime import Account, ResourceRef
from .lost import DetectLoss
from .memory_pressure import free_charged_memory, free_device_memory, retry_after_freeing

if TYPE_CHECKING:
    from .device import Device

GRANULE = 16


def padded_size(size: int) -> int:
    """Bytes of device memory that a buffer is charged for."""
    return max(GRANULE, -(-size // GRANULE) * GRANULE)


class Allocator:
    """`Device.allocator`: allocates device memory within the device's limit."""

    __slots__ = ("_accounts", "device")

    def __init__(self, device: Device, accounts: tuple[Account, ...]) -> None:
        self.device = device
        self._accounts = accounts

    @property
    def limit(self) -> int | None:
        """Bytes that this device may hold; None if only the hardware limits it."""
        return self._accounts[0].limit

    @property
    def accounts(self) -> tuple[Account, ...]:
        """All accounts that are charged for this device's memory, its own first."""
        return self._accounts

    @property
    def live_bytes(self) -> int:
        """Bytes in use. Buffers that nothing refers to any more are not counted."""
        self.device.device_state.collect()
        return self._accounts[0].live

    @property
    def peak_bytes(self) -> int:
        return self._accounts[0].peak

    @property
    def room(self) -> int | None:
        """Bytes left within the tightest limit, including those of the devices that this one is a share of; None
        without a limit.
        """
        left = [account.limit - account.live for account in self._accounts if account.limit is not None]
        return max(0, min(left)) if left else None

    def allocate(self, size: int, use: MemoryUse = MemoryUse.ARENA) -> Buffer:
        """Returns a buffer of `size` bytes, all zero.

        `use` says what the buffer is for; the driver chooses the memory by it (`MemoryUse`). The buffer's `host` is
        None if the driver does not map it; `read` and `write` work all the same. Raises MemoryLimitExceeded above a
        limit, and DeviceOutOfMemory if the device has no room.
        """
        device = self.device
        state = device.device_state
        if device.closed:
            device.check_open()
        if size < 0:
            raise InvalidArgument(f"allocation of {size} bytes, expected 0 or more")
        if not isinstance(use, MemoryUse):
            raise InvalidArgument(f"use {use!r} of an allocation is no MemoryUse")
        padded = padded_size(size)
        if state.garbage or state.deferred_garbage:
            state.collect()
        charged: list[Account] = []
        ref = ResourceRef(state, None, charged, padded)  # it gives back what it is charged with, whatever ends this
        try:
            self._charge(padded, charged)
            with DetectLoss(state):
                backend = self._allocate(padded, use)
        except BaseException:
            while charged:  # at once: the exception keeps this frame, and so the ref
                charged.pop().refund(padded)
            raise
        ref.hold(backend)
        device.statistics.allocations += 1
        return Buffer(device, backend, ref, size, WRITABLE)

    def import_host(self, memory: npt.NDArray[np.generic], writable: bool = False) -> Buffer | None:
        """Returns a buffer over contiguous host memory, or None if the device cannot import it. The buffer keeps the
        memory alive, and is read-only unless `writable` is true. Only devices that use host memory by its address
        (`Limits.uses_host_addresses`) write to it; others return None.
        """
        device = self.device
        device.check_open()
        if not memory.flags.c_contiguous:
            raise InvalidArgument(f"host memory to import is not contiguous (strides {memory.strides})")
        data = memory.reshape(-1).view(np.uint8)
        alignment = device.info.limits.host_import_alignment
        if data.size == 0 or data.ctypes.data % alignment or writable and not device.info.limits.uses_host_addresses:
            return None
        state = device.device_state
        with DetectLoss(state):
            backend = retry_after_freeing(state, device, lambda: state.backend.import_host(data))
        if backend is None:
            return None
        device.statistics.imports += 1
        return Buffer(device, backend, ResourceRef(state, backend), data.size, WRITABLE * writable)

    def import_buffer(self, handle: Any, size: int, offset: int = 0, writable: bool = True) -> Buffer:
        """Returns a buffer over `size` bytes, from byte `offset` on, of a buffer of the driver's own API. It is charged
        to no limit.

        OpenCL takes a `pyopencl.Buffer` of the device's context, or its `cl_mem` as an integer. It holds a reference
        until the result is released and no work uses it. Vulkan takes a `VkBuffer` of the device, as an integer or a
        cffi handle, created for storage and for transfers in both directions; its owner keeps it and its memory alive
        for the same time.

        Raises InvalidArgument if the handle is none of these, the range lies outside of the buffer (the size of a
        `VkBuffer` is unknown), or `offset` is not a multiple of the device's `min_binding_alignment`. Raises
        Unsupported on other devices.
        """
        device = self.device
        device.check_open()
        alignment = device.info.limits.min_binding_alignment
        if size <= 0 or offset < 0:
            raise InvalidArgument(
                f"import of {size} bytes from offset {offset} of a buffer: expected 1 byte or more, from 0 on"
            )
        if offset % alignment:
            raise InvalidArgument(f"import from offset {offset} of a buffer, which is not a multiple of {alignment}")
        state = device.device_state
        with DetectLoss(state):
            backend = retry_after_freeing(
                state, device, lambda: state.backend.import_buffer(handle, offset, size, writable)
            )
        device.statistics.imports += 1
        return Buffer(device, backend, ResourceRef(state, backend), size, WRITABLE * writable)

    def check_room(self, size: int, who: str) -> None:
        """Raises MemoryLimitExceeded if `size` more bytes would exceed a limit now. For memory that a driver takes
        while it runs; `who` begins the message.
        """
        self.device.device_state.collect()
        for account in self._accounts:
            if account.limit is not None and account.live + size > account.limit:
                free_charged_memory(self.device.device_state, self.device, account)
            if account.limit is not None and account.live + size > account.limit:
                raise MemoryLimitExceeded(
                    f"{who} {size} bytes of scratch memory, which exceeds the limit of {account.limit} bytes "
                    f"({account.live} in use){account.origin}"
                )
        if self.device.streaming is not None:
            self.device.streaming.reserve_scratch(size)

    def _allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        """Allocate from the driver. If the driver has no room, release what can be recreated and try once more."""
        state = self.device.device_state
        try:
            return state.backend.allocate(size, use)
        except DeviceOutOfMemory as error:
            if not free_device_memory(state, self.device):
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
            relieved = free_charged_memory(self.device.device_state, self.device, account)
            if relieved and account.charge(size, charged):
                continue
            raise MemoryLimitExceeded(
                f"allocation of {size} bytes exceeds the limit of {account.limit} bytes ({account.live} in use)"
                f"{account.origin}"
            )
