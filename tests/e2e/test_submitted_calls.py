"""Asynchronous calls on every device: order, waits, asyncio, errors, limits, closing, threads."""

import asyncio
import functools
import gc
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.registry import open_device
from orchestrion.vm.errors import CallerError, Cancelled, DeadlineExceeded, WaitFailed
from orchestrion.vm.event_loop import IDLE_SECONDS

X = np.array([1, 2, 3, 4], np.float32)
SIZE = 384
TEXT = f"""
func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}}
func.func @both(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {{
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  %1 = stablehlo.subtract %x, %y : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}}
func.func @slow(%x: tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xf32> {{
  %0 = stablehlo.dot %x, %x : (tensor<{SIZE}x{SIZE}xf32>, tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xf32>
  %1 = stablehlo.dot %0, %x : (tensor<{SIZE}x{SIZE}xf32>, tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xf32>
  %2 = stablehlo.dot %1, %x : (tensor<{SIZE}x{SIZE}xf32>, tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xf32>
  return %2 : tensor<{SIZE}x{SIZE}xf32>
}}
"""
IDENTITY = np.eye(SIZE, dtype=np.float32)


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


@pytest.fixture(params=["reference", "opencl", "vulkan"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def program(name: str, load_on: Callable[[bytes, str], Any]) -> Iterator[vm.Program]:
    loaded = load_on(module(), name)
    yield loaded
    loaded.close()


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("orchestrion-")]


def test_many_in_flight(program: vm.Program) -> None:
    futures = [program.square.submit(X + i) for i in range(100)]
    for i, future in enumerate(futures):
        np.testing.assert_array_equal(future.result(30), (X + i) ** 2)
        assert future.done() and future.exception() is None
    row = program.statistics()["calls"][-1]
    assert (row["function"], row["submissions"], row["dispatches"], row["waits"]) == ("square", 1, 1, 1)
    assert (row["allocations"], row["host_to_device_bytes"], row["device_to_host_bytes"]) == (0, 16, 16)
    assert len(program.statistics()["calls"]) == 100


def test_arguments_are_copied(program: vm.Program) -> None:
    fence, x = vm.Fence(), X.copy()
    future = program.square.submit(x, wait=[fence])
    x[:] = 0
    fence.signal()
    np.testing.assert_array_equal(future.result(30), X**2)


def test_results_as_of_a_blocking_call(program: vm.Program) -> None:
    total, difference = program.both.submit(X, [1, 1, 1, 1]).result(30)
    np.testing.assert_array_equal(total, X + 1)
    np.testing.assert_array_equal(difference, X - 1)
    array, resident = np.zeros(4, np.float32), program.empty((4,), np.float32)
    given = program.both.submit(X, X, out=(array, resident)).result(30)
    assert given[0] is array and given[1] is resident
    np.testing.assert_array_equal(array, 2 * X)
    np.testing.assert_array_equal(resident, 0 * X)


def test_calls_of_a_context_are_in_order(program: vm.Program) -> None:
    value = program.put(X)
    other = program.empty((4,), np.float32)
    one = program.put(np.ones(4, np.float32))
    rest = program.empty((4,), np.float32)
    for _ in range(20):
        program.both.submit(value, one, out=(other, rest))
        value, other = other, value
    np.testing.assert_array_equal(program.both(value, one)[0], X + 21)  # the blocking call comes after them


def test_chain_over_contexts_and_programs(name: str, load_on: Callable[[bytes, str], Any]) -> None:
    load_on(module(), name).close()
    with open_device(name) as device:
        first, second = vm.load(module(), device), vm.load(module(), device)
        functions = [first.square, first.create_context().square, second.square]
        value, future, wait = first.put(np.full(4, 1.5, np.float32)), None, []
        for step in range(6):
            out = first.empty((4,), np.float32)
            future = functions[step % 3].submit(value, out=out, wait=wait)
            value, wait = out, [future]
        assert future is not None
        np.testing.assert_allclose(np.asarray(future.result(30)), np.full(4, 1.5) ** 64, rtol=1e-6)
        del functions, value, out, future, wait
        first.close()
        second.close()


#: of a device, without what tells several apart: for all submitted calls, and the driver's own
THREADS = {"orchestrion-calls", "orchestrion-waits", "orchestrion", "orchestrion-opencl"}


def test_a_wait_that_is_signalled_later_blocks_no_thread(program: vm.Program) -> None:
    contexts = [program.create_context() for _ in range(20)]
    before = set(threading.enumerate())
    fence = vm.Fence()
    futures = [context.square.submit(X + i, wait=[fence]) for i, context in enumerate(contexts)]
    np.testing.assert_array_equal(program.square.submit(X).result(30), X**2)  # others go on
    np.testing.assert_array_equal(contexts[0].square(X), X**2)  # a blocking call overtakes
    assert not any(future.done() for future in futures)
    fresh = set(threading.enumerate()) - before
    assert {one.name.rpartition("-")[0] for one in fresh} <= THREADS
    assert len(fresh) <= 4  # two for all calls, and two of the driver
    threading.Timer(0.02, fence.signal).start()
    for i, future in enumerate(futures):
        np.testing.assert_array_equal(future.result(30), (X + i) ** 2)
    for context in contexts:
        context.close()


def test_signal(program: vm.Program) -> None:
    done, failed = vm.Fence(), vm.Fence()
    program.square.submit(X, signal=done)
    done.wait(30)
    with pytest.raises(CallerError, match="reached already"):
        done.signal()
    stuck = program.square.submit(X, wait=[vm.Fence()], signal=failed)
    after = program.create_context().square.submit(X, wait=[done, failed])
    assert stuck.cancel() and not stuck.cancel()
    with pytest.raises(Cancelled):
        failed.wait(30)
    with pytest.raises(WaitFailed, match="what the call waited for failed: the call was cancelled") as caught:
        after.result(30)
    assert isinstance(caught.value.__cause__, Cancelled)
    with pytest.raises(CallerError, match="is signalled by the call alone"):
        after.signal()


def test_asyncio(program: vm.Program) -> None:
    async def main() -> None:
        results = await asyncio.gather(*[program.square.submit(X + i) for i in range(20)])
        for i, result in enumerate(results):
            np.testing.assert_array_equal(result, (X + i) ** 2)
        future = program.square.submit(X)
        np.testing.assert_array_equal(await future, await future)
        stuck = program.square.submit(X, wait=[vm.Fence()])
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_result(stuck), 0.02)
        assert isinstance(stuck.exception(), Cancelled)
        with pytest.raises(WaitFailed):
            await program.square.submit(X, wait=[stuck])

    async def _result(future: vm.Future) -> Any:
        return await future

    asyncio.run(main())


def test_wrong_arguments_raise_at_once(program: vm.Program) -> None:
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: program.square.submit(), "takes 1 argument, got 0"),
        (lambda: program.square.submit(X.astype(np.float64)), r"expected f32\[4\], got f64\[4\]"),
        (lambda: program.square.submit(X, out=np.zeros(3, np.float32)), r"out 0 .* got f32\[3\]"),
        (
            lambda: program.square.submit(X, wait=[X]),
            "wait 0: expected a fence, .* or a cl_event, got ndarray",
        ),
        (
            lambda: program.square.submit(X, signal=program.square.submit(X)),
            "Future cannot be signalled, a call reaches it",
        ),
    ]
    for call, message in cases:
        with pytest.raises(CallerError, match=message):
            call()
    resident = program.put(X)
    with pytest.raises(CallerError, match="shares its memory"):
        program.square.submit(resident, out=resident)
    np.testing.assert_array_equal(program.square(X), X**2)


def test_deadline(program: vm.Program) -> None:
    context = program.create_context(deadline=0.05)
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"0\.05 s"):
        context.square.submit(X, wait=[vm.Fence()]).result(30)
    assert time.monotonic() - started < 5
    with pytest.raises(TimeoutError):
        program.square.submit(X, wait=[vm.Fence()]).result(0.01)
    program.cancel()
    with pytest.raises(TimeoutError, match=r"not reached after 0\.125 s"):
        vm.Fence().wait(np.float32(0.125))
    with pytest.raises(CallerError, match="timeout is '1', a number expected"):
        vm.Fence().wait("1")  # type: ignore[arg-type]
    eager = program.create_context(deadline=0.0)
    with pytest.raises(DeadlineExceeded):
        eager.square.submit(X).result(30)
    np.testing.assert_array_equal(context.square(X), X**2)
    for one in (context, eager):
        one.close()


def test_cancel_of_work_under_way(program: vm.Program) -> None:
    for count in (4, 16, 64, 256):  # on a busy machine this thread may wait until the first ones are done
        futures = [program.slow.submit(IDENTITY) for _ in range(count)]
        time.sleep(0.01)
        assert all(future.cancel() or future.done() for future in reversed(futures) if not future.done())
        for future in futures:
            assert isinstance(future.exception(30), Cancelled | None)
        if isinstance(futures[-1].exception(), Cancelled):
            break
    assert isinstance(futures[-1].exception(), Cancelled)
    np.testing.assert_array_equal(program.square.submit(X).result(30), X**2)
    np.testing.assert_array_equal(program.slow(IDENTITY), IDENTITY)


def test_close_with_calls_in_flight(program: vm.Program) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        context = program.create_context()
        started = context.slow.submit(IDENTITY)
        queued = [context.square.submit(X) for _ in range(5)]
        stuck = context.square.submit(X, wait=[vm.Fence()])
        context.close()
    for future in [started, *queued, stuck]:
        assert isinstance(future.exception(30), Cancelled | None)
    assert isinstance(stuck.exception(), Cancelled)
    for call in (context.square.submit, context.square):
        with pytest.raises(CallerError, match="closed"):
            call(X)
    np.testing.assert_array_equal(program.square.submit(X).result(30), X**2)


def test_nothing_is_left(name: str, load_on: Callable[[bytes, str], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        loaded = load_on(module(), name)
        state, context = weakref.ref(loaded.device.device_state), weakref.ref(loaded.context)
        loaded.both.submit(X, X).result(30)
        live = loaded.device.allocator.live_bytes
        for _ in range(30):
            loaded.both.submit(X, X)
        loaded.both.submit(X, X).result(30)
        assert loaded.device.allocator.live_bytes == live
        loaded.close()
        del loaded
    time.sleep(0.05)
    gc.collect()
    assert context() is None and state() is None


def test_a_dropped_program_finishes_its_calls(name: str, load_on: Callable[[bytes, str], Any]) -> None:
    loaded = load_on(module(), name)
    futures = [loaded.square.submit(X + i) for i in range(10)]
    del loaded
    for i, future in enumerate(futures):
        np.testing.assert_array_equal(future.result(30), (X + i) ** 2)


def test_threads_end(program: vm.Program) -> None:
    program.square.submit(X).result(30)
    assert any("calls" in one for one in threads())
    end = time.monotonic() + IDLE_SECONDS + 5
    while [one for one in threads() if "calls" in one or "waits" in one] and time.monotonic() < end:
        time.sleep(0.02)
    assert not [one for one in threads() if "calls" in one or "waits" in one]
    np.testing.assert_array_equal(program.square.submit(X).result(30), X**2)


@pytest.mark.parametrize("blocking", [False, True], ids=["submitted", "beside blocking calls"])
def test_threads_share_a_context(program: vm.Program, blocking: bool) -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        values = [X + seed * 1000 + i for i in range(200)]
        try:
            futures = [program.square.submit(value) for value in values]
            if blocking:
                wrong.extend(value for value in values[:50] if not np.array_equal(program.square(value), value**2))
            for value, future in zip(values, futures, strict=True):
                if not np.array_equal(future.result(60), value**2):
                    wrong.append(value)
        except Exception as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert not wrong and not any(worker.is_alive() for worker in workers)
