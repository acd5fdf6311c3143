"""Submitted calls inside the VM: where they are suspended, how they fail, and that their context goes on."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.hal.errors import InternalError
from orchestrion.hal.reference.command_buffer import ReferenceCommandBuffer
from orchestrion.hal.semaphore import Fence, Semaphore
from orchestrion.schema.assembler import assemble
from orchestrion.schema.writer import write
from orchestrion.vm.call import Call
from orchestrion.vm.errors import Cancelled, DeadlineExceeded, DeviceError, FuelExhausted, Trap
from orchestrion.vm.native import NativeModule, native

X = np.array([1, 2, 3, 4], np.float32)


class HostModule(NativeModule):
    """Fences that a test signals, and an error that is none of the VM's."""

    name = "host"

    def __init__(self) -> None:
        self.semaphores: list[Semaphore] = []

    @native("fence", "() -> hal.fence")
    def fence(self, call: Call) -> Fence:
        assert call.context.device is not None
        self.semaphores.append(call.context.device.create_semaphore())
        return Fence([(self.semaphores[-1], 1)])

    @native("break", "() -> ()")
    def break_(self, call: Call) -> None:
        raise ZeroDivisionError("a native function failed")


@pytest.fixture
def host() -> HostModule:
    return HostModule()


@pytest.fixture
def program(host: HostModule) -> Iterator[vm.Program]:
    source = (Path(__file__).parent / "modules" / "submitted.asm").read_text()
    loaded = vm.load(write(assemble(source)), natives=[host])
    yield loaded
    host.semaphores.clear()
    loaded.close()


def started(host: HostModule, count: int = 1) -> None:
    end = time.monotonic() + 10
    while len(host.semaphores) < count and time.monotonic() < end:
        time.sleep(0.001)
    assert len(host.semaphores) == count


def usable(program: Any) -> None:
    np.testing.assert_array_equal(program.many(X + 1), X + 1)
    np.testing.assert_array_equal(program.many.submit(X + 2).result(10), X + 2)


def test_suspended_again_and_again(program: vm.Program) -> None:
    np.testing.assert_array_equal(program.many.submit(X).result(10), X)
    row = program.statistics()["calls"][-1]
    assert (row["submissions"], row["waits"]) == (5, 5)
    np.testing.assert_array_equal(program.nested.submit(X).result(10), X)
    futures = [program.eager.submit(X + i) for i in range(20)]  # returns without waiting for its work
    for i, future in enumerate(futures):
        np.testing.assert_array_equal(future.result(10), X + i)
    usable(program)


def test_translated_functions_are_suspended_too(program: vm.Program) -> None:
    source = program.nested
    for _ in range(50):
        source(X)
    np.testing.assert_array_equal(program.nested.submit(X).result(10), X)
    assert program.statistics()["calls"][-1]["submissions"] == 2


def test_a_fence_of_a_native_function(program: vm.Program, host: HostModule) -> None:
    futures = [program.held.submit(X), *(program.many.submit(X + i) for i in range(3))]
    started(host)
    time.sleep(0.03)
    assert not any(future.done() for future in futures)
    other = program.create_context()
    np.testing.assert_array_equal(other.many.submit(X).result(10), X)  # nobody waits behind it but its own context
    host.semaphores[0].signal(1)
    np.testing.assert_array_equal(futures[0].result(10), X)
    for i, future in enumerate(futures[1:]):
        np.testing.assert_array_equal(future.result(10), X + i)
    other.close()


def test_cancel_while_suspended(program: vm.Program, host: HostModule) -> None:
    by_future = program.held.submit(X)
    started(host, 1)
    assert by_future.cancel()
    by_context = program.held.submit(X)
    started(host, 2)
    program.cancel()
    for future in (by_future, by_context):
        with pytest.raises(Cancelled):
            future.result(10)
    usable(program)


def test_cancel_while_running(program: vm.Program) -> None:
    future = program.spin.submit(X)
    time.sleep(0.02)
    assert future.cancel()
    usable(program)
    future = program.spin.submit(X)
    time.sleep(0.02)
    program.cancel()
    assert isinstance(future.exception(10), Cancelled)
    usable(program)


def test_limits(program: vm.Program, host: HostModule) -> None:
    context = program.create_context(fuel=1000)
    with pytest.raises(FuelExhausted, match="at spin pc"):
        context.spin.submit(X).result(10)
    usable(context)
    late = program.create_context(deadline=0.1)
    for future in (late.spin.submit(X), late.held.submit(X)):
        with pytest.raises(DeadlineExceeded):
            future.result(10)
    usable(late)
    for one in (context, late):
        one.close()


def test_a_trap_arrives_on_the_future(program: vm.Program) -> None:
    with pytest.raises(Trap, match="1 buffers for a command buffer with 2 slots\n  at refused pc"):
        program.refused.submit(X).result(10)
    with pytest.raises(Trap, match="argument 2 of hal.execute: expected hal.buffer, got null"):
        program.null.submit(X).result(10)
    usable(program)


def test_an_error_of_a_native_function_arrives_on_the_future(program: vm.Program) -> None:
    for _ in range(3):
        future = program.broken.submit(X)
        assert isinstance(future.exception(10), ZeroDivisionError)
    usable(program)


def test_a_failure_of_the_device_arrives_on_the_future(program: vm.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, table: Any) -> None:
        raise InternalError("the device is on fire")

    usable(program)
    with monkeypatch.context() as patch:
        patch.setattr(ReferenceCommandBuffer, "run", fail)
        future = program.nested.submit(X)
        with pytest.raises(DeviceError, match="on fire\n  at copied pc .*\n  called from nested"):
            future.result(10)
    usable(program)


def test_a_blocking_call_waits_for_those_submitted_before(program: vm.Program, host: HostModule) -> None:
    future = program.held.submit(X)
    started(host)
    threading.Timer(0.05, lambda: host.semaphores[0].signal(1)).start()
    np.testing.assert_array_equal(program.many(X), X)
    assert future.done()


def test_a_submitted_call_takes_its_turn_after_a_blocking_one(program: vm.Program, host: HostModule) -> None:
    thread = threading.Thread(target=program.held, args=(X,))
    thread.start()
    started(host)
    future = program.many.submit(X)
    time.sleep(0.02)
    assert not future.done()
    host.semaphores[0].signal(1)
    np.testing.assert_array_equal(future.result(10), X)
    thread.join()


def test_a_failed_call_is_over_on_the_device_before_the_next_begins(
    program: vm.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its failure is told at once, while what it submitted still runs; the context waits for that."""
    program.many(X)
    running, over = threading.Semaphore(0), threading.Event()
    run = ReferenceCommandBuffer.run

    def slow(self: Any, table: Any) -> None:
        running.release()
        assert over.wait(10)
        run(self, table)

    with monkeypatch.context() as patch:
        patch.setattr(ReferenceCommandBuffer, "run", slow)
        failed = program.broken.submit(X)  # submits, and fails
        following = program.many.submit(X + 1)
        assert isinstance(failed.exception(10), ZeroDivisionError)
        assert running.acquire(timeout=10)
        assert not running.acquire(timeout=0.05) and not following.done()
        over.set()
        np.testing.assert_array_equal(following.result(10), X + 1)
