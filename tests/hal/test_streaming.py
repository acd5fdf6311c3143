"""Streamed constants in whole devices: the layer changes nothing else, and results are right after any failure."""

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from faults import Faults, faulty_device

from orchestrion.hal.backend import BackendDevice, BackendDriver, DeviceInfo
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer, Range
from orchestrion.hal.cts import catalogue, kernels
from orchestrion.hal.cts.interrupts import interrupt_points, run_interrupted
from orchestrion.hal.device import Device
from orchestrion.hal.errors import (
    DriverUnavailable,
    HalError,
    InvalidArgument,
    MemoryLimitExceeded,
    OutOfMemory,
    Unsupported,
)
from orchestrion.hal.executable import Executable
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import BUILT_IN
from orchestrion.hal.residency import Pool, StreamingWarning
from orchestrion.hal.semaphore import Fence
from orchestrion.hal.streaming import StreamingDevice

DEVICES = ("reference", "opencl", "vulkan")
#: elements of a constant, and the number of constants
COUNT, CONSTANTS = 1024, 6
BYTES = 4 * COUNT
#: a limit in bytes: two windows, and one constant that stays
TIGHT = 3 * BYTES
pytestmark = pytest.mark.filterwarnings("ignore::orchestrion.hal.residency.StreamingWarning")


class Layered(BackendDriver):
    """A driver whose devices stream constants."""

    def __init__(self, inner: BackendDriver) -> None:
        self.name, self.conformance = inner.name, inner.conformance
        self._inner = inner

    def devices(self) -> list[DeviceInfo]:
        return self._inner.devices()

    def open(self, info: DeviceInfo) -> BackendDevice:
        return StreamingDevice(self._inner.open(info))

    def open_profiled(self, info: DeviceInfo) -> BackendDevice:
        return StreamingDevice(self._inner.open_profiled(info), timed=True)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("device", BUILT_IN)
@pytest.mark.parametrize("case", catalogue.CASES)
def test_the_layer_passes_the_conformance_suite(case: str, device: str) -> None:
    reason = catalogue.why_not(case, device)
    if reason is not None:
        pytest.skip(reason)
    driver, info = catalogue.find(device)
    catalogue.run_on(case, Layered(driver), info)


class Sums:
    """A recording that adds all constants to a slot, one dispatch each, in an arena; the last dispatch writes another
    slot.
    """

    def __init__(self, name: str, limit: int, wrap: Callable[[BackendDevice], BackendDevice] | None = None) -> None:
        try:
            driver, info = catalogue.find(name)
        except DriverUnavailable as error:
            pytest.skip(str(error))
        inner = driver.open(info)
        layer = StreamingDevice(inner if wrap is None else wrap(inner))
        self.device = Device.of(layer, policy=Policy(allow_native_code=True))
        self.device.device_state.streaming = layer
        format = next(one for one in info.formats if one in kernels.FORMATS)
        self.kernel = kernels.FORMATS[format](COUNT, 0)
        self.limit = limit + 3 * BYTES
        self.layer = layer
        self.share = self.device
        self.things: list[Any] = []
        self.rows = np.arange(CONSTANTS * COUNT, dtype=np.uint32).reshape(CONSTANTS, COUNT)
        self.want = self.rows.sum(0, dtype=np.uint32)

    def make(self) -> None:
        executable = self.executable(self.device)
        self.limit += executable.backend.scratch_bytes(kernels.ADD, self.kernel.parameters)
        executable.release()
        self.share = self.device.share(self.limit)
        self.pool = self.share.streaming = self.layer.create_pool(self.share)
        self.constants = [self.hold(self.pool.constant(self.share, row.view(np.uint8))) for row in self.rows]
        self.arena = self.hold(self.share.allocator.allocate(BYTES))
        self.zero = self.hold(self.share.allocator.allocate(BYTES))
        self.out = self.hold(self.share.allocator.allocate(BYTES))
        self.commands = self.hold(self.share.create_command_buffer(2))
        before: Buffer | int = 0
        for place, constant in enumerate(self.constants):
            after: Buffer | int = 1 if place == CONSTANTS - 1 else self.arena
            self.add(self.commands, (before, 0, BYTES), (constant, 0, BYTES), (after, 0, BYTES))
            before = after
        self.commands.finish()

    def hold(self, thing: Any) -> Any:
        self.things.append(thing)
        return thing

    def add(self, commands: CommandBuffer, *bindings: Range) -> None:
        executable = self.executable(self.share)
        commands.dispatch(executable, kernels.ADD, (COUNT, 1, 1), bindings, self.kernel.parameters)
        commands.barrier()
        executable.release()

    def executable(self, device: Device) -> Executable:
        kernel = self.kernel
        return device.create_executable(kernel.format, memoryview(kernel.payload), kernel.entries)

    def run(self) -> None:
        self.share.queue.execute(self.commands, (self.zero, self.out))

    def check(self) -> None:
        self.out.write(np.zeros(COUNT, np.uint32))
        self.run()
        np.testing.assert_array_equal(self.result(), self.want)

    def result(self) -> Any:
        out = np.empty(COUNT, np.uint32)
        self.out.read(out)
        return out

    def close(self) -> None:
        for thing in self.things:
            thing.release()
        self.things.clear()
        assert self.share.close() == ()
        self.device.close()
        gc.collect()
        assert self.share.allocator.live_bytes == 0


@pytest.fixture(params=DEVICES)
def sums(request: pytest.FixtureRequest) -> Any:
    return lambda limit=TIGHT, wrap=None: Sums(request.param, limit, wrap)


def test_counts(sums: Any) -> None:
    """One constant stays. The five others are copied alternately into two windows in each run, with one submission
    each.
    """
    work = sums()
    work.make()
    work.check()
    before = work.share.statistics.snapshot()
    work.run()
    spent = work.share.statistics.since(before)
    assert spent["submissions"] == CONSTANTS - 1
    assert (spent["dispatches"], spent["waits"], spent["allocations"]) == (CONSTANTS, 1, 0)
    assert spent["host_to_device_bytes"] == (CONSTANTS - 1) * BYTES
    assert work.share.allocator.peak_bytes == TIGHT + 3 * BYTES
    work.close()


def test_constants_that_fit_are_copied_once(sums: Any) -> None:
    work = sums(limit=CONSTANTS * BYTES)
    work.make()
    work.check()
    before = work.share.statistics.snapshot()
    work.run()
    spent = work.share.statistics.since(before)
    assert (spent["submissions"], spent["host_to_device_bytes"]) == (1, 0)
    work.close()


def test_a_batch_fills_a_window_only_for_other_constants(sums: Any) -> None:
    """A recording of one segment that runs repeatedly needs one copy and one submission."""
    work = sums(limit=BYTES)
    work.make()
    work.commands.release()
    commands = work.hold(work.share.create_command_buffer(1))
    work.add(commands, (0, 0, BYTES), (work.constants[3], 0, BYTES), (work.arena, 0, BYTES))
    commands.copy(work.arena, 0, 0, 0, BYTES)
    commands.finish()
    other = work.hold(work.share.create_command_buffer(1))
    work.add(other, (0, 0, BYTES), (work.constants[4], 0, BYTES), (work.arena, 0, BYTES))
    other.finish()
    batch = [(commands, (work.out,))] * 5
    work.share.queue.execute_batch([(other, (work.zero,)), *batch])
    work.out.write(np.zeros(COUNT, np.uint32))
    before = work.share.statistics.snapshot()
    work.share.queue.execute_batch(batch)
    spent = work.share.statistics.since(before)
    assert (spent["submissions"], spent["host_to_device_bytes"], spent["dispatches"]) == (1, 0, 5)
    np.testing.assert_array_equal(work.result(), 5 * work.rows[3])
    work.close()


def test_submissions_are_in_order(sums: Any) -> None:
    """A plain submission follows a streamed one that waits for the host, and reads its result."""
    work = sums()
    work.make()
    copied = work.hold(work.device.allocator.allocate(BYTES))
    copy = work.hold(work.device.create_command_buffer(2))
    copy.copy(0, 0, 1, 0, BYTES)
    copy.finish()
    start, end = (work.hold(work.device.create_semaphore()) for _ in range(2))
    work.share.queue.submit(work.commands, (work.zero, work.out), Fence([(start, 1)]))
    work.device.queue.submit(copy, (work.out, copied), None, Fence([(end, 1)]))
    assert end.value == 0
    start.signal(1)
    end.wait(1, 60)
    out = np.empty(COUNT, np.uint32)
    copied.read(out)
    np.testing.assert_array_equal(out, work.want)
    work.close()


def test_what_work_writes_is_kept(sums: Any) -> None:
    """A computed constant: written in one window, read in another, read and written by the host."""
    work = sums()
    work.make()
    made = work.hold(work.pool.allocate(work.share, BYTES, ()))
    compute = work.hold(work.share.create_command_buffer())
    work.add(compute, (work.constants[0], 0, BYTES), (work.constants[1], 0, BYTES), (made, 0, BYTES))
    compute.finish()
    use = work.hold(work.share.create_command_buffer(1))
    work.add(use, (0, 0, BYTES), (made, 0, BYTES), (work.arena, 0, BYTES))
    use.copy(work.arena, 0, 0, 0, BYTES)
    use.finish()
    for thing in (*work.constants[2:], work.commands):
        thing.release()
    for _ in range(2):
        work.share.queue.execute(compute)
        out = np.empty(COUNT, np.uint32)
        made.read(out)
        np.testing.assert_array_equal(out, work.rows[0] + work.rows[1])
        work.share.queue.execute(use, (work.out,))
        made.write(work.rows[5])
        work.share.queue.execute(use, (work.out,))
    np.testing.assert_array_equal(work.result(), 2 * (work.rows[0] + work.rows[1] + work.rows[5]))
    work.close()


def test_memory_that_is_given_back_and_taken(sums: Any) -> None:
    work = sums(limit=CONSTANTS * BYTES)
    work.make()
    work.check()
    taken = work.share.allocator.allocate(3 * BYTES)
    work.check()
    assert work.share.allocator.live_bytes <= work.share.allocator.limit
    with pytest.raises(OutOfMemory, match=r"entry add binds 4096 bytes of constants, 0 bytes are free"):
        rest = work.share.allocator.allocate(3 * BYTES)
        work.check()
    rest.release()
    work.share.queue.wait_idle()
    work.check()
    taken.release()
    work.check()
    before = work.share.statistics.submissions
    work.run()
    assert work.share.statistics.submissions == before + 1
    work.close()


def test_refusals(sums: Any) -> None:
    work = sums()
    work.make()
    with pytest.raises(Unsupported, match="slot 0: a constant of 4096 bytes that is streamed"):
        work.share.queue.execute(work.commands, (work.constants[0], work.out))
    with pytest.raises(InvalidArgument, match="lacks write access"):
        work.constants[0].write(work.rows[1])
    assert work.constants[0].map() is None
    other: Pool = work.layer.create_pool(work.share)
    foreign = work.hold(other.constant(work.share, work.rows[0].view(np.uint8)))
    commands = work.hold(work.share.create_command_buffer())
    with pytest.raises(InvalidArgument, match="constants of two programs"):
        work.add(commands, (foreign, 0, BYTES), (work.constants[1], 0, BYTES), (work.arena, 0, BYTES))
    work.check()
    work.close()


def exercise(work: Sums) -> None:
    """Load, run, free memory, run twice."""
    work.make()
    work.run()
    with contextlib.suppress(MemoryLimitExceeded):
        work.share.allocator.allocate(work.limit)
    for _ in range(2):
        work.run()


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore:.*fails on purpose:RuntimeWarning")
@pytest.mark.parametrize("kind", ["no memory", "refused"])
def test_the_call_after_a_failure_is_right(kind: str, sums: Any) -> None:
    """One driver call fails, in turn for calls spread over the whole run; nothing leaks."""
    faults = Faults()
    work = sums(wrap=lambda inner: faulty_device(inner, faults))
    before = faults.seen.total()
    exercise(work)
    count = faults.seen.total() - before
    work.close()
    assert count > 50
    for number in range(1, count, max(1, count // 15)):
        faults = Faults()
        work = sums(wrap=lambda inner, faults=faults: faulty_device(inner, faults))
        faults.arm(number, kind)
        with contextlib.suppress(HalError):
            exercise(work)
        faults.disarm()
        if hasattr(work, "commands") and work.commands.state == "finished":
            work.check()
        work.close()
        assert not faults.wrong


@pytest.mark.parametrize("name", DEVICES, ids=[f"interrupts.{name}" for name in DEVICES])
def test_the_call_after_an_interrupted_one(name: str) -> None:
    """Also for the first call of a plan, whose allocations evict constants, which are then placed again."""
    work = Sums(name, TIGHT)
    work.make()
    work.check()
    for place in interrupt_points(work.run):
        run_interrupted(work.run, place)
        work.check()

    def anew() -> None:
        with contextlib.suppress(OutOfMemory):
            work.share.allocator.allocate(work.limit)
        work.run()

    for place in interrupt_points(anew):
        run_interrupted(anew, place)
        work.check()
    for thing in work.things:
        thing.release()
    work.things.clear()
    work.share.close()
    work.device.close()


def test_the_warning_is_told_once(sums: Any) -> None:
    work = sums()
    work.make()
    with pytest.warns(StreamingWarning, match="20480 bytes of them are copied to the device in each call") as caught:
        work.pool.prepare(work.share, 0)
        work.run()
    assert len(caught) == 1
    work.close()


def test_a_streaming_device_records_no_loops() -> None:
    """Windows are filled between two commands, so a streaming device has no loops in recordings, as the reference
    device has.
    """
    work = Sums("reference", TIGHT)
    driver, info = catalogue.find("reference")
    assert info.control_flow and not work.device.info.control_flow
    commands = work.device.create_command_buffer(1)
    with pytest.raises(Unsupported):
        commands.begin_loop(0, 0)
    commands.release()
    work.close()
