"""Functions of Vulkan and OpenCL that fail during a call cause a named error, and the process continues.

Each function fails once with each kind of code, before or after it does its work. The next call gives the right result,
and closing the device completes. A device that is permanently lost reports that in each call and can be closed, and
another one can be opened.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DeviceLost, DeviceOutOfMemory, DriverUnavailable, HalError
from orchestrion.hal.registry import open_device

SIZE = 1 << 18
#: result of a function -> the error that names it
VULKAN_CODES: dict[int, type[HalError]] = {-1: DeviceOutOfMemory, -2: DeviceOutOfMemory, -4: DeviceLost}
OPENCL_CODES: dict[int, type[HalError]] = {-5: DeviceLost, -6: DeviceOutOfMemory, -36: DeviceLost}


def opened(name: str) -> Device:
    try:
        return open_device(name)
    except DriverUnavailable as error:
        pytest.skip(str(error))


class Work:
    """A buffer, and recordings that fill it with 1 and 2."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.buffer: Buffer = device.allocator.allocate(SIZE)
        self.fills: list[CommandBuffer] = []
        for value in (1, 2):
            commands = device.create_command_buffer(1)
            commands.fill(0, 0, SIZE, bytes([value]))
            commands.finish()
            self.fills.append(commands)

    def run(self, value: int) -> None:
        self.device.queue.execute(self.fills[value - 1], [self.buffer])

    def is_right(self) -> None:
        self.run(2)
        out = np.empty(SIZE, np.uint8)
        self.buffer.read(out)
        assert (out == 2).all()

    def goes_on(self, error: type[HalError]) -> None:
        """Checks that after a failure the device works, unless it is lost. Then every use says so, and
        closing works.
        """
        if error is not DeviceLost:
            self.is_right()
            return
        for use in (self.is_right, lambda: self.device.allocator.allocate(16), self.device.share, self.read):
            with pytest.raises(DeviceLost, match=f"device {self.device.info.id} was lost before: "):
                use()

    def read(self) -> None:
        self.buffer.read(np.empty(16, np.uint8))

    def release(self) -> None:
        for handle in (self.buffer, *self.fills):
            handle.release()


@pytest.fixture
def vulkan() -> Iterator[Work]:
    device = opened("vulkan")
    work = Work(device)
    work.run(1)
    yield work
    work.release()
    assert device.close() == ()
    assert device.device_state.abandoned, "the driver's device was not closed"


def failing(real: Callable[..., int], code: int, after: bool, count: int = 1) -> Callable[..., int]:
    """A function that fails `count` times; with `after`, it calls `real` before it fails."""
    left = [count]

    def function(*arguments: Any) -> int:
        if not left[0]:
            return real(*arguments)
        left[0] -= 1
        if after:
            assert real(*arguments) == 0
        return code

    return function


@pytest.mark.parametrize("code", VULKAN_CODES)
@pytest.mark.parametrize(
    ("function", "after"), [("_submit", False), ("_wait", False), ("_wait", True), ("_reset", False)]
)
def test_a_function_of_vulkan_fails_once(
    vulkan: Work, function: str, after: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue: Any = vulkan.device.device_state.backend.queue
    monkeypatch.setattr(queue, function, failing(getattr(queue, function), code, after))
    with pytest.raises(VULKAN_CODES[code]):
        vulkan.run(1)
    vulkan.goes_on(VULKAN_CODES[code])


def test_no_memory_to_recover(vulkan: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver has memory neither for the call nor for a fence: the next call waits for the device."""
    queue: Any = vulkan.device.device_state.backend.queue
    monkeypatch.setattr(queue, "_wait", failing(queue._wait, -1, False))
    submit = queue._submit
    monkeypatch.setattr(
        queue, "_submit", lambda *arguments: -1 if arguments[3] == queue._api.null else submit(*arguments)
    )
    with pytest.raises(DeviceOutOfMemory, match="waiting for work"):
        vulkan.run(1)
    vulkan.is_right()


def test_no_fence_to_recover(vulkan: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call needs another fence. If none can be made it fails with the same error, and the call
    after it runs.
    """
    queue: Any = vulkan.device.device_state.backend.queue

    def refuse() -> None:
        raise DeviceOutOfMemory("a fence: no memory")

    with monkeypatch.context() as patch:
        patch.setattr(queue, "_wait", failing(queue._wait, -1, False))
        patch.setattr(queue, "create_ticket", refuse)
        for _ in range(2):
            with pytest.raises(DeviceOutOfMemory):
                vulkan.run(1)
    vulkan.is_right()


def test_vulkan_device_is_lost_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    device = opened("vulkan")
    work = Work(device)
    work.run(1)
    backend: Any = device.device_state.backend
    with monkeypatch.context() as patch:
        for function in ("_submit", "_wait", "_reset"):
            patch.setattr(backend.queue, function, lambda *_: -4)
        for function in ("vkDeviceWaitIdle", "vkGetSemaphoreCounterValue", "vkWaitSemaphores", "vkSignalSemaphore"):
            patch.setattr(backend.vk, function, lambda *_: -4)
        for _ in range(2):
            with pytest.raises(DeviceLost):
                work.run(1)
            with pytest.raises(DeviceLost):
                work.buffer.read(np.empty(16, np.uint8))
        work.release()
        assert device.close() == ()
        assert device.device_state.abandoned
    other = opened("vulkan")
    again = Work(other)
    again.is_right()
    again.release()
    other.close()


@pytest.mark.parametrize("code", OPENCL_CODES)
@pytest.mark.parametrize("after", [False, True])
def test_a_wait_of_opencl_fails_once(code: int, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    device = opened("opencl")
    work = Work(device)
    queue: Any = device.device_state.backend.queue
    work.run(1)
    monkeypatch.setattr(queue, "_wait_for", failing(queue._wait_for, code, after))
    with pytest.raises(OPENCL_CODES[code]):
        work.run(1)
    work.goes_on(OPENCL_CODES[code])
    work.release()
    assert device.close() == ()
    assert device.device_state.abandoned
