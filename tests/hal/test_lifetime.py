"""Ownership under stress: finalizers, threads, devices closed early, processes that exit without closing anything."""

import gc
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from alarms import Alarm

from orchestrion.hal import executable
from orchestrion.hal.backend import Entry
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.cts.interrupts import run_interrupted
from orchestrion.hal.device import Device
from orchestrion.hal.errors import InvalidArgument, OutOfMemory
from orchestrion.hal.lifetime import Account
from orchestrion.hal.registry import open_device
from orchestrion.hal.semaphore import Fence, Semaphore
from orchestrion.schema import tensor_encoding
from orchestrion.schema.tensor_bytecode import EntryCode

PATIENCE = 20.0


def soon(happened: Callable[[], object]) -> bool:
    """Whether a condition becomes true by itself: another thread releases what finalizers left."""
    end = time.monotonic() + PATIENCE
    while not happened() and time.monotonic() < end:
        time.sleep(0.005)
    return bool(happened())


def filled(device: Device, value: int) -> tuple[CommandBuffer, Buffer]:
    buffer = device.allocator.allocate(64)
    commands = device.create_command_buffer()
    commands.fill(buffer, 0, 64, bytes([value]))
    commands.finish()
    return commands, buffer


def test_account_is_exact_across_threads() -> None:
    account = Account(None)

    def work() -> None:
        for size in range(1, 500):
            assert account.charge(size)
            account.refund(size)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.live == 0 and account.peak >= 499


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no alarms")
def test_interrupts_lose_no_bytes_of_an_account() -> None:
    account, charged = Account(None), list[Account]()
    for count in range(20_000):
        while charged:
            charged.pop().refund(16)
        with suppress(KeyboardInterrupt), Alarm(10e-6 + 0.5e-6 * (count % 40)):
            while True:
                account.charge(16, charged)
    assert account.live == 16 * len(charged)


def test_an_interrupted_release() -> None:
    """Wherever Ctrl-C comes: the bytes are free, and the object is released, or known to be the driver's."""
    place, came = 0, True
    while came:
        place += 1
        with open_device("null") as device:
            commands, buffer = filled(device, 1)
            state, before = device.device_state, len(device.device_state.owned)
            buffer.release()  # the recording still uses it
            came = run_interrupted(commands.release, place)
            del commands, buffer
            state.collect()
            assert device.allocator.live_bytes == 0, place
            assert len(state.owned) == before - 2 + len(state.unreleased), place
            assert state.unreleased.keys() <= state.owned and len(state.unreleased) <= came, place
    assert place > 10


def test_release_never_waits_for_the_queue() -> None:
    """A thread that drops a buffer while another one holds the queue does not wait; the holder releases the buffer."""
    with open_device("null") as device:
        buffer = device.allocator.allocate(16)
        with device.device_state.lock:
            buffer.release()
            assert device.allocator.live_bytes == 16 and len(device.device_state.garbage) == 1
        device.device_state.collect()
        assert device.allocator.live_bytes == 0


def test_dropped_in_a_finalizer_while_the_queue_is_held() -> None:
    """The collector may run inside `execute` on the same thread."""
    with open_device("null") as device:
        cycle: list[object] = [device.allocator.allocate(16)]
        cycle.append(cycle)
        with device.device_state.lock:
            del cycle
            gc.collect()
        assert device.live["buffer"] == 0
        (left,) = device.device_state.garbage
        commands, kept = filled(device, 1)
        device.queue.execute(commands)
        assert id(left.backend) not in device.device_state.owned
        kept.release()
        commands.release()


def test_room_is_made_before_refusing() -> None:
    """Memory that only finished work held does not count against a limit."""
    with open_device("null", memory_limit=128) as device:
        commands, buffer = filled(device, 1)
        device.queue.submit(commands)
        device.queue.wait_idle()
        buffer.release()
        commands.release()
        device.allocator.allocate(128).release()
        with pytest.raises(OutOfMemory, match="144 bytes exceeds the limit of 128"):
            device.allocator.allocate(129)


def test_failed_allocation_charges_nothing() -> None:
    with open_device("null") as device:
        with pytest.raises(OutOfMemory, match="allocation of .* bytes failed"):
            device.allocator.allocate(2**62)
        assert device.allocator.live_bytes == 0


def test_memory_outlives_a_closed_device_while_it_is_mapped() -> None:
    """An array over mapped memory stays valid after its device is closed."""
    device = open_device("null")
    buffer = device.allocator.allocate(1 << 16)
    buffer.write(np.full(1 << 16, 7, np.uint8))
    mapped = buffer.map()
    state = device.device_state
    with pytest.warns(ResourceWarning, match="1 buffer not released"):
        assert device.close() == ("1 buffer",)
    buffer.release()
    assert mapped is not None and (mapped == 7).all() and state.owned
    del mapped
    assert soon(lambda: state.abandoned and not state.owned)


def test_shares_close_in_any_order() -> None:
    first = open_device("null")
    second, third = first.share(), first.share()
    first.close()
    with pytest.raises(InvalidArgument, match="is closed"):
        first.share()
    commands, buffer = filled(second, 3)
    second.queue.execute(commands)
    buffer.release()
    commands.release()
    second.close()
    third.close()
    assert not first.device_state.owned and first.device_state.abandoned


def test_close_waits_for_submitted_work() -> None:
    device = open_device("null")
    gate = device.create_semaphore()
    commands, buffer = filled(device, 3)
    device.queue.submit(commands, (), Fence([(gate, 1)]))
    mapped = buffer.map()
    for handle in (buffer, commands):
        handle.release()
    timer = threading.Timer(0.02, gate.signal, (1,))
    timer.start()
    with pytest.warns(ResourceWarning, match="1 semaphore"):
        device.close()
    timer.join()
    assert mapped is not None and (mapped == 3).all()


def test_random_use_by_threads() -> None:
    """Threads allocate, record, execute, submit, drop and release at random. Everything is released, and all results
    are right.
    """
    failures: list[BaseException] = []
    root = open_device("null")

    def work(seed: int) -> None:
        try:
            with root.share() as device:
                _random_use(device, random.Random(seed))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if failures:
        raise failures[0]
    assert root.close() == ()
    assert not root.device_state.owned and root.allocator.live_bytes == 0


def _random_use(device: Device, chance: random.Random) -> None:
    done = device.create_semaphore()
    held: list[tuple[CommandBuffer, Buffer, int]] = []
    for step in range(1, 150):
        value = chance.randrange(256)
        commands, buffer = filled(device, value)
        if chance.random() < 0.5:
            device.queue.execute(commands)
        else:
            device.queue.submit(commands, (), None, Fence([(done, step)]))
        held.append((commands, buffer, value))
        chance.shuffle(held)
        while len(held) > chance.randrange(1, 5):
            commands, buffer, value = held.pop()
            if chance.random() < 0.5:
                out = np.empty(64, np.uint8)
                buffer.read(out)
                assert (out == value).all()
            if chance.random() < 0.5:
                commands.release()
                buffer.release()
    device.queue.wait_idle()


@pytest.mark.sampled
@pytest.mark.parametrize("pause", [0, 0.2], ids=["at once", "once the worker waits"])
@pytest.mark.parametrize("driver", ["null", "reference", "cpu", "opencl", "vulkan"])
def test_exit_with_everything_open(driver: str, pause: float) -> None:
    """A program that closes nothing exits normally, even with submitted work that never starts."""
    code = f"""
import sys, time
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.registry import open_device
from orchestrion.hal.semaphore import Fence
try:
    device = open_device("{driver}")
except DriverUnavailable as error:
    print(error)
    sys.exit(77)
gate = device.create_semaphore()
buffer = device.allocator.allocate(64)
commands = device.create_command_buffer()
commands.fill(buffer, 0, 64, b"x")
commands.finish()
device.queue.execute(commands)
device.queue.submit(commands, (), Fence([(gate, 1)]))
sys.kept = [device, buffer, commands, gate]
time.sleep({pause})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_errors_of_submitted_work() -> None:
    """With a fence, waiting for it raises the error; without one, the next wait for the queue raises it, once."""
    with open_device("null") as device:
        commands, buffer = filled(device, 1)
        done = device.create_semaphore()
        commands.backend._steps.append(_fail)  # type: ignore[attr-defined]
        device.queue.submit(commands, (), None, Fence([(done, 1)]))
        _expect_failure(done)
        with pytest.raises(Exception, match="broken on purpose"):
            buffer.read(np.empty(64, np.uint8))
        buffer.read(np.empty(64, np.uint8))
        device.queue.wait_idle()
        device.queue.submit(commands)
        with pytest.raises(Exception, match="broken on purpose"):
            device.queue.wait_idle()
        device.queue.wait_idle()
        for handle in (commands, buffer, done):
            handle.release()


def _fail(table: object) -> None:
    raise RuntimeError("broken on purpose")


def _expect_failure(semaphore: Semaphore) -> None:
    with pytest.raises(Exception, match="broken on purpose"):
        semaphore.wait(1, PATIENCE)


def test_refused_submission_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission that the driver refuses leaves no pending signals and no references."""
    with open_device("null") as device:
        commands, buffer = filled(device, 1)
        done = device.create_semaphore()
        backend = device.device_state.backend.queue
        with monkeypatch.context() as patch:
            patch.setattr(backend, "submit", lambda *_: _fail(None))
            with pytest.raises(RuntimeError, match="broken on purpose"):
                device.queue.submit(commands, (), None, Fence([(done, 5)]))
        buffer.read(np.empty(64, np.uint8))
        device.queue.wait_idle()
        device.queue.submit(commands, (), None, Fence([(done, 2)]))
        done.wait(2, PATIENCE)
        assert device.statistics.submissions == 1
        for handle in (commands, buffer, done):
            handle.release()


def test_dropped_device_lets_the_hardware_go() -> None:
    """Without `close`: the driver's objects are released when nothing refers to the device any more."""
    device = open_device("null")
    state = device.device_state
    commands, buffer = filled(device, 1)
    device.queue.execute(commands)
    share = device.share()
    del device
    gc.collect()
    del commands, buffer, share
    gc.collect()
    assert soon(lambda: state.abandoned and not state.owned)


def test_dropped_device_with_work_that_never_starts() -> None:
    """Objects that submitted work uses are not released, and dropping the device does not block."""
    device = open_device("null")
    state = device.device_state
    commands, buffer = filled(device, 1)
    gate = device.create_semaphore()
    device.queue.submit(commands, (), Fence([(gate, 1)]))
    backend_gate = gate.backend
    del device, commands, buffer, gate
    gc.collect()
    assert soon(lambda: state.closed) and not state.abandoned and len(state.owned) == 3
    backend_gate.signal(1)
    state.backend.queue.wait_idle()
    state.collect()
    assert state.abandoned and not state.owned


def test_shares_closed_at_once() -> None:
    for _ in range(50):
        root = open_device("null")
        shares = [root, *(root.share() for _ in range(3))]
        threads = [threading.Thread(target=share.close) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert root.device_state.abandoned and not root.device_state.shares


def test_executables_of_modules_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """An executable that was removed from the cache lives as long as somebody uses it."""
    monkeypatch.setattr(executable, "MAX_CACHED", 3)
    payload = tensor_encoding.encode([EntryCode(0)])
    with open_device("reference") as device:

        def create(name: str) -> executable.Executable:
            return device.create_executable("tensor-bytecode", memoryview(payload), (Entry(name, (), 0, (1, 1, 1)),))

        first = create("first")
        for number in range(10):
            create(f"e{number}")
        device.device_state.collect()
        assert len(device.device_state.owned) == 4
        assert create("e9").backend is create("e9").backend
        first.check(device.device_state)
        assert device.statistics.executables_created == 11
