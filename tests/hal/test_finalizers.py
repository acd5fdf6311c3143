"""Finalizers take no lock and call no driver, and the driver objects that they leave are released later.

A finalizer can run between any two steps of any thread, including one that holds a lock of ours. So each finalizer runs
here in a thread that holds every lock.
"""

import gc
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
from watchdog import watched

from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable, HalError, OutOfMemory
from orchestrion.hal.lifetime import MAX_FAILED_REAPS, DeviceState
from orchestrion.hal.registry import open_device
from orchestrion.schema.fork import remembered_locks

PATIENCE = 20.0
DRIVERS = ["null", "reference", "cpu", "opencl", "vulkan"]


def soon(happened: Callable[[], object]) -> bool:
    end = time.monotonic() + PATIENCE
    while not happened() and time.monotonic() < end:
        time.sleep(0.002)
    return bool(happened())


def opened(name: str, **options: Any) -> Device:
    try:
        return open_device(name, **options)
    except DriverUnavailable as error:
        pytest.skip(f"{name}: {error}")


@contextmanager
def every_lock_held() -> Iterator[int]:
    """Holds all locks that no other thread holds at this moment."""
    with ExitStack() as stack:
        count = 0
        for lock in remembered_locks():
            if lock.acquire(False):
                stack.callback(lock.release)
                count += 1
        yield count


def in_a_cycle(thing: object) -> None:
    """Puts the object into a reference cycle, so that only the garbage collector frees it."""
    cycle: list[object] = [thing]
    cycle.append(cycle)


def filled(device: Device) -> tuple[Any, Any]:
    buffer, commands = device.allocator.allocate(256), device.create_command_buffer()
    commands.fill(buffer, 0, 256, b"\x05")
    commands.finish()
    return commands, buffer


@pytest.mark.parametrize("name", DRIVERS)
def test_with_every_lock_held(name: str) -> None:
    """The collector frees buffers, arrays over them, recordings, semaphores, shares and finished work."""
    device = opened(name)
    state = device.device_state
    own, share = device.create_semaphore(), device.share()
    commands, buffer = filled(share)
    share.queue.submit(commands)
    share.queue.wait_idle()
    mapped = buffer.map()
    gc.disable()
    try:
        in_a_cycle((commands, buffer, mapped, share, share.create_semaphore()))
        del commands, buffer, mapped, share
        before = set(state.owned)
        with watched(PATIENCE), every_lock_held() as count:
            assert count > 5
            gc.collect()
            assert state.owned == before, "a finalizer released something"
    finally:
        gc.enable()
    assert soon(lambda: len(state.owned) <= 2 and state.open_shares == 1), state.owned  # `own`, and the timeline
    own.release()
    assert device.close() == () and state.abandoned


@pytest.mark.parametrize("name", DRIVERS)
def test_an_array_over_a_buffer_in_a_semaphore(name: str) -> None:
    """The collector frees an array of `Buffer.map` while a semaphore is signalled. This was a deadlock."""
    device = opened(name)
    commands, buffer = filled(device)
    gate = device.create_semaphore()
    device.queue.submit(commands)
    device.queue.wait_idle()
    in_a_cycle(buffer.map())
    buffer.release()
    commands.release()
    with watched(PATIENCE), every_lock_held():
        gc.collect()
    gate.signal(1)
    gate.release()
    device.queue.wait_idle()
    assert soon(lambda: not device.allocator.live_bytes)
    assert device.close() == ()


def test_garbage_makes_room() -> None:
    """Before an allocation is refused, it releases what finalizers left."""
    with opened("null", memory_limit=256) as device:
        for _ in range(20):
            in_a_cycle(device.allocator.allocate(256))
            gc.collect()
        kept = device.allocator.allocate(256)
        with pytest.raises(OutOfMemory, match="256 in use"):
            device.allocator.allocate(16)
        kept.release()


def test_a_device_that_nobody_calls_any_more() -> None:
    """The reaper thread releases what finalizers left, and closes a device without references."""
    device = opened("null")
    state = device.device_state
    in_a_cycle(device.allocator.allocate(16))
    gc.collect()
    assert soon(lambda: not state.owned)
    in_a_cycle(device)
    del device
    gc.collect()
    assert soon(lambda: state.abandoned)


def test_a_driver_that_fails_while_the_reaper_looks(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The reaper thread tries again and prints nothing. An error that persists is raised in the next call."""
    device = opened("null")
    state = device.device_state
    real, looks = DeviceState.collect, []

    def failing(this: DeviceState) -> None:
        looks.append(this)
        if len(looks) < 3:
            raise HalError("broken on purpose")
        real(this)

    buffer = device.allocator.allocate(16)
    monkeypatch.setattr(DeviceState, "collect", failing)
    in_a_cycle(buffer)
    del buffer
    gc.collect()
    assert soon(lambda: not state.owned) and len(looks) == 3
    looks.clear()
    monkeypatch.setattr(DeviceState, "collect", lambda this: looks.append(this) or _broken())
    in_a_cycle(device.allocator.allocate(16))
    gc.collect()
    assert soon(lambda: len(looks) == MAX_FAILED_REAPS)
    monkeypatch.setattr(DeviceState, "collect", real)
    device.allocator.allocate(16).release()
    assert not state.owned and device.close() == ()
    assert capfd.readouterr().err == ""


def _broken() -> None:
    raise HalError("broken on purpose")


@pytest.mark.parametrize("name", DRIVERS)
def test_a_release_that_raises(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is counted and causes one warning. The object counts as released, and the device closes."""
    device = opened(name)
    state = device.device_state
    buffer, other = device.allocator.allocate(64), device.allocator.allocate(64)
    backend = type(buffer.backend)
    real = backend.release

    def failing(this: Any) -> None:
        real(this)
        monkeypatch.setattr(backend, "release", real)
        raise HalError("broken on purpose")

    monkeypatch.setattr(backend, "release", failing)
    said = rf"device {name}: {backend.__name__} was not released: HalError: broken on purpose"
    with pytest.warns(RuntimeWarning, match=said):
        buffer.release()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.release()
        assert state.release_failures == 1 and device.allocator.live_bytes == 0
        assert device.close() == ()
    assert state.abandoned and not state.owned


def test_a_close_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    device = opened("null")

    def failing(this: Any) -> None:
        raise HalError("broken on purpose")

    monkeypatch.setattr(type(device.device_state.backend), "close", failing)
    with pytest.warns(RuntimeWarning, match="device null: it was not closed: HalError: broken on purpose"):
        device.close()
    assert device.device_state.abandoned


def test_an_interrupted_collection_loses_nothing() -> None:
    """Each object is in `garbage` or in `deferred_garbage` at any time, and the number released is exact."""
    with opened("null") as device:
        state: DeviceState = device.device_state
        for _ in range(50):
            device.allocator.allocate(16)
        np.testing.assert_array_equal(device.allocator.live_bytes, 0)
        assert not state.garbage and not state.deferred_garbage and not state.owned
