"""Calls that wait for and signal events of the caller's own: `cl_event`, Vulkan timeline semaphores; results apart."""

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.errors import EventFailed, InvalidArgument, Unsupported
from orchestrion.vm.errors import CallerError, Cancelled, WaitFailed

X = np.array([1, 2, 3, 4], np.float32)
TEXT = """
func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @both(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  %1 = stablehlo.subtract %x, %y : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
"""
PATIENCE = 30.0


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


@pytest.fixture(params=["reference", "opencl", "vulkan"])
def program(request: pytest.FixtureRequest, load_on: Callable[[bytes, str], Any]) -> Iterator[vm.Program]:
    loaded = load_on(module(), request.param)
    yield loaded
    loaded.close()


@pytest.fixture
def vulkan(load_on: Callable[[bytes, str], Any]) -> Iterator[vm.Program]:
    loaded = load_on(module(), "vulkan")
    yield loaded
    loaded.close()


@pytest.fixture
def cl() -> Any:
    return pytest.importorskip("pyopencl")


@pytest.fixture
def context(cl: Any) -> Any:
    """Of the caller's own, and no driver's."""
    try:
        return cl.Context([cl.get_platforms()[0].get_devices()[0]])
    except cl.Error as error:
        pytest.skip(str(error))


@pytest.fixture
def timeline(vulkan: vm.Program) -> Iterator[Any]:
    """A timeline semaphore that the caller made with the package `vulkan`, on the program's device."""
    import vulkan as vk

    device = vulkan.device.native.device
    kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0)
    semaphore = vk.vkCreateSemaphore(device, vk.VkSemaphoreCreateInfo(pNext=kind), None)
    yield semaphore
    vk.vkDestroySemaphore(device, semaphore, None)


def native_threads() -> int:
    return len(threading.enumerate())


def test_a_call_waits_for_a_cl_event(program: vm.Program, cl: Any, context: Any) -> None:
    event = cl.UserEvent(context)
    future = program.square.submit(X, wait=[event])
    time.sleep(0.02)
    assert not future.done()
    np.testing.assert_array_equal(program.square(X), X**2)
    event.set_status(cl.command_execution_status.COMPLETE)
    np.testing.assert_array_equal(future.result(PATIENCE), X**2)
    np.testing.assert_array_equal(program.square.submit(X, wait=[event]).result(PATIENCE), X**2)  # it is over already


def test_a_call_waits_for_the_event_of_a_command(program: vm.Program, cl: Any, context: Any) -> None:
    queue, gate, data = cl.CommandQueue(context), cl.UserEvent(context), np.zeros(4, np.float32)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, X.nbytes)
    event = cl.enqueue_copy(queue, buffer, X, wait_for=[gate], is_blocking=False)
    queue.flush()
    future = program.square.submit(X, wait=[vm.Fence.from_cl_event(event)])
    gate.set_status(0)
    np.testing.assert_array_equal(future.result(PATIENCE), X**2)
    cl.enqueue_copy(queue, data, buffer)
    np.testing.assert_array_equal(data, X)


def test_an_event_that_is_dropped_before_it_comes(cl: Any, context: Any) -> None:
    """PyOpenCL would wait for it, and nobody else run meanwhile."""
    gate, buffer = cl.UserEvent(context), cl.Buffer(context, cl.mem_flags.READ_WRITE, X.nbytes)
    queue = cl.CommandQueue(context)
    fence = vm.Fence.from_cl_event(cl.enqueue_copy(queue, buffer, X, wait_for=[gate], is_blocking=False))
    assert not fence.done()
    del fence
    gate.set_status(0)
    queue.finish()


def test_a_failed_cl_event_fails_the_call(program: vm.Program, cl: Any, context: Any) -> None:
    event = cl.UserEvent(context)
    future = program.square.submit(X, wait=[event])
    event.set_status(-5)
    with pytest.raises(WaitFailed, match=r"the event ended with status -5 \(OUT_OF_RESOURCES\)") as caught:
        future.result(PATIENCE)
    assert isinstance(caught.value.__cause__, EventFailed)
    np.testing.assert_array_equal(program.square.submit(X).result(PATIENCE), X**2)


def test_many_events_and_no_thread_for_each(program: vm.Program, cl: Any, context: Any) -> None:
    def system_threads() -> int:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("Threads:"))

    contexts = [program.create_context() for _ in range(20)]
    program.square.submit(X).result(PATIENCE)
    before = system_threads()
    events = [cl.UserEvent(context) for _ in contexts]
    futures = [one.square.submit(X + i, wait=[events[i]]) for i, one in enumerate(contexts)]
    time.sleep(0.02)
    assert system_threads() - before <= 4  # one that looks; those of the program may have ended and started again
    assert not any(future.done() for future in futures)
    for i in reversed(range(20)):
        events[i].set_status(0)
        np.testing.assert_array_equal(futures[i].result(PATIENCE), (X + i) ** 2)
    for one in contexts:
        one.close()


def test_a_call_completes_a_user_event(program: vm.Program, cl: Any, context: Any) -> None:
    event = cl.UserEvent(context)
    program.square.submit(X, signal=event)
    event.wait()
    fence = vm.Fence.from_cl_event(event)
    assert fence.done() and fence.exception() is None
    with pytest.raises(CallerError, match="reached already"):
        fence.signal()
    failed = cl.UserEvent(context)
    program.square.submit(X, wait=[vm.Fence()], signal=failed).cancel()
    with pytest.raises(cl.Error):
        failed.wait()
    assert failed.command_execution_status == -14


def test_commands_wait_for_a_call(program: vm.Program, cl: Any, context: Any) -> None:
    """As PyOpenCL's users do it: `wait_for=[event]`."""
    queue, gate, out = cl.CommandQueue(context), vm.Fence(), np.zeros(4, np.float32)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=X)
    future = program.square.submit(X, wait=[gate])
    copied = cl.enqueue_copy(queue, out, buffer, wait_for=[future.to_cl_event(context)], is_blocking=False)
    queue.flush()
    after = program.square.submit(X + 1, wait=[copied])
    time.sleep(0.02)
    assert not after.done() and not out.any()
    gate.signal()
    np.testing.assert_array_equal(after.result(PATIENCE), (X + 1) ** 2)
    np.testing.assert_array_equal(out, X)
    with pytest.raises(InvalidArgument, match="no event can be made"):
        future.to_cl_event("context")


def test_only_a_user_event_can_be_signalled(program: vm.Program, cl: Any, context: Any) -> None:
    event = cl.enqueue_marker(cl.CommandQueue(context))
    with pytest.raises(CallerError, match="signal: .*Event.* cannot be signalled, .* no UserEvent"):
        program.square.submit(X, signal=event)
    fence = vm.Fence.from_cl_event(event)
    with pytest.raises(InvalidArgument, match="no UserEvent"):
        fence.signal()
    with pytest.raises(InvalidArgument, match=r"expected a pyopencl\.Event, got int"):
        vm.Fence.from_cl_event(3)
    fence.wait(PATIENCE)


def test_fences_over_events_in_asyncio(cl: Any, context: Any) -> None:
    async def main() -> None:
        event, failed = cl.UserEvent(context), cl.UserEvent(context)
        asyncio.get_running_loop().call_later(0.01, event.set_status, 0)
        await vm.Fence.from_cl_event(event)
        failed.set_status(-5)
        with pytest.raises(EventFailed):
            await vm.Fence.from_cl_event(failed)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_reached(vm.Fence.from_cl_event(cl.UserEvent(context))), 0.01)

    async def _reached(fence: vm.Fence) -> None:
        await fence

    asyncio.run(main())


def test_a_call_waits_for_and_signals_a_vulkan_semaphore(vulkan: vm.Program, timeline: Any) -> None:
    import vulkan as vk

    device, native = vulkan.device, vulkan.device.native.device
    start, end = (vm.Fence.from_vk_semaphore(timeline, value, device) for value in (3, 7))
    future = vulkan.square.submit(X, wait=[start], signal=end)
    vk.vkSignalSemaphore(native, vk.VkSemaphoreSignalInfo(semaphore=timeline, value=2))
    time.sleep(0.02)
    assert not future.done() and not end.done()
    vk.vkSignalSemaphore(native, vk.VkSemaphoreSignalInfo(semaphore=timeline, value=4))
    np.testing.assert_array_equal(future.result(PATIENCE), X**2)
    end.wait(PATIENCE)
    assert vk.vkGetSemaphoreCounterValue(native, timeline) == 7
    with pytest.raises(CallerError, match="reached already"):
        end.signal()


def test_a_call_waits_for_work_of_the_callers_own(vulkan: vm.Program, timeline: Any) -> None:
    """A submission of the caller's to the device's queue signals the semaphore, and another waits for the call."""
    import vulkan as vk

    handles, device = vulkan.device.native, vulkan.device
    done = vulkan.square.submit(X, wait=[vm.Fence.from_vk_semaphore(timeline, 1, device)])
    finished = done.to_semaphore(device)

    def submit(wait: Any, signal: Any, value: int) -> None:
        values = vk.VkTimelineSemaphoreSubmitInfo(
            waitSemaphoreValueCount=len(wait),
            pWaitSemaphoreValues=[1] * len(wait),
            signalSemaphoreValueCount=1,
            pSignalSemaphoreValues=[value],
        )
        stages = [vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT] * len(wait)
        info = vk.VkSubmitInfo(pNext=values, pWaitSemaphores=wait, pWaitDstStageMask=stages, pSignalSemaphores=[signal])
        with device.lock:
            vk.vkQueueSubmit(handles.queue, 1, [info], None)

    submit([], timeline, 1)
    np.testing.assert_array_equal(done.result(PATIENCE), X**2)
    submit([finished.native], timeline, 2)
    vm.Fence.from_vk_semaphore(timeline, 2, device).wait(PATIENCE)
    finished.release()


def test_handles_that_are_none(program: vm.Program, vulkan: vm.Program, cl: Any, context: Any) -> None:
    for handle in (0, "semaphore", cl.UserEvent(context), vulkan.device.native.device):
        with pytest.raises(InvalidArgument, match="expected a VkSemaphore"):
            vm.Fence.from_vk_semaphore(handle, 1, vulkan.device)
    if program.device.info.driver == "reference":
        assert program.device.native is None and program.device.create_semaphore().native is None
        with pytest.raises(Unsupported, match="device reference has no semaphores"):
            vm.Fence.from_vk_semaphore(1, 1, program.device)


def test_a_fence_keeps_its_device_open(load_on: Callable[[bytes, str], Any]) -> None:
    loaded = load_on(module(), "vulkan")
    state, semaphore = loaded.device.device_state, loaded.device.create_semaphore()
    fence = vm.Fence.from_vk_semaphore(semaphore.native, 1, loaded.device)
    loaded.square.submit(X, wait=[fence]).cancel()
    with pytest.raises(TimeoutError):
        fence.wait(0.01)
    semaphore.signal(1)
    fence.wait(PATIENCE)
    semaphore.release()
    loaded.close()
    assert state.abandoned and not state.owned


def test_a_future_for_each_result(program: vm.Program) -> None:
    future = program.both.submit(X, X + 1)
    total, difference = future.results
    np.testing.assert_array_equal(difference.result(PATIENCE), -np.ones(4, np.float32))
    np.testing.assert_array_equal(total.result(PATIENCE), 2 * X + 1)
    assert future.result(PATIENCE)[0] is total.result() and future.results == (total, difference)
    (one,) = program.square.submit(X).results
    np.testing.assert_array_equal(one.result(PATIENCE), X**2)
    stuck = program.both.submit(X, X, wait=[vm.Fence()])
    first, second = stuck.results
    after = program.square.submit(X, wait=[first])
    assert second.cancel() and not second.cancel()
    for part in (first, second, stuck):
        assert isinstance(part.exception(PATIENCE), Cancelled)
    assert isinstance(after.exception(PATIENCE), WaitFailed)

    async def main() -> tuple[Any, ...]:
        one, two = program.both.submit(X, X).results
        return await asyncio.gather(one, two)

    np.testing.assert_array_equal(asyncio.run(main())[0], 2 * X)


def test_a_fence_for_each_result(program: vm.Program, cl: Any, context: Any) -> None:
    fence, event = vm.Fence(), cl.UserEvent(context)
    outs = np.zeros(4, np.float32), program.empty((4,), np.float32)
    program.both.submit(X, X, out=outs, signal=[fence, event])
    event.wait()
    fence.wait(PATIENCE)
    np.testing.assert_array_equal(outs[0], 2 * X)
    np.testing.assert_array_equal(np.asarray(outs[1]), 0 * X)
    program.both.submit(X, X, signal=[None, None]).result(PATIENCE)
    with pytest.raises(CallerError, match="'both' gives 2 results, signal has 1 fences"):
        program.both.submit(X, X, signal=[vm.Fence()])
    with pytest.raises(CallerError, match="signal 1: expected a fence or a user event, got int"):
        program.both.submit(X, X, signal=[None, 3])
