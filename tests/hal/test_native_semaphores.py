"""Semaphores and events of the caller as semaphores of the HAL: submissions wait for them and signal them."""

import pytest

from orchestrion.hal.device import Device
from orchestrion.hal.errors import DeadlineExceeded, DriverUnavailable, EventFailed, InvalidArgument
from orchestrion.hal.registry import open_device
from orchestrion.hal.semaphore import Fence


def opened(name: str) -> Device:
    try:
        return open_device(name)
    except DriverUnavailable as error:
        pytest.skip(str(error))


def test_events_of_the_caller_are_semaphores() -> None:
    """They have the value 0 until they are complete. Submissions can wait for 1, and for no greater value."""
    cl = pytest.importorskip("pyopencl")

    with opened("opencl") as device:
        handles = device.native
        context = cl.Context([handles.device])
        event, failed, given = (cl.UserEvent(context) for _ in range(3))
        gate, lost, told = (device.import_semaphore(one) for one in (event, failed, given))
        assert gate.native is event and gate.value == 0
        done = device.create_semaphore()
        device.queue.submit(None, (), Fence([(gate, 1)]), Fence([(done, 1)]))
        device.queue.submit(None, (), None, Fence([(told, 1)]))
        with pytest.raises(DeadlineExceeded):
            gate.wait(1, 0.01)
        assert done.value == 0
        event.set_status(cl.command_execution_status.COMPLETE)
        done.wait(1, 10)
        given.wait()
        failed.set_status(-5)
        with pytest.raises(EventFailed, match="status -5"):
            lost.wait(1, 10)
        with pytest.raises(InvalidArgument, match="not end"):
            gate.wait(2, 10)
        device.queue.submit(None, (), Fence([(lost, 1)]), Fence([(done, 2)]))
        with pytest.raises(EventFailed):
            done.wait(2, 10)
        for semaphore in (gate, lost, told, done):
            semaphore.release()


def test_semaphores_of_the_caller_are_waited_for_on_the_device() -> None:
    vk = pytest.importorskip("vulkan")

    with opened("vulkan") as device:
        handles = device.native
        kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=2)
        handle = vk.vkCreateSemaphore(handles.device, vk.VkSemaphoreCreateInfo(pNext=kind), None)
        imported, done = device.import_semaphore(handle), device.create_semaphore()
        assert imported.value == 2 and imported.native == handle and done.native != handle
        device.queue.submit(None, (), Fence([(imported, 5)]), Fence([(imported, 6), (done, 1)]))
        vk.vkSignalSemaphore(handles.device, vk.VkSemaphoreSignalInfo(semaphore=handle, value=5))
        done.wait(1, 10)
        assert vk.vkGetSemaphoreCounterValue(handles.device, handle) == 6
        device.queue.wait_idle()
        imported.release()
        done.release()
        vk.vkDestroySemaphore(handles.device, handle, None)  # it was the caller's all the time
