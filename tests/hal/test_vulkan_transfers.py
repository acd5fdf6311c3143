"""Transfers of the Vulkan driver on a device whose memory the host cannot access, as on a graphics card.

Staging, prefetched results, the queue for uploads, full heaps. The tests count calls of the Vulkan functions.
"""

import dataclasses
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from heap_tables import MIB, C, K, L, V, with_heaps
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrion.hal.backend import Binding, MemoryUse
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.cts import catalogue
from orchestrion.hal.device import Device
from orchestrion.hal.errors import OutOfMemory
from orchestrion.hal.vulkan import budget, instance, ring, transfer
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.driver import VulkanDriver
from orchestrion.hal.vulkan.heaps import Heap, Machine, MemoryType
from orchestrion.hal.vulkan.physical import COMPUTE, GRAPHICS, TRANSFER, PhysicalDevice, choose_upload_queue
from orchestrion.hal.vulkan.upload_queue import UploadQueue

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _vulkan(needs_vulkan: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))


def card(machine: Machine = Machine.SMALL_BAR, **sizes: int) -> VulkanDevice:
    (batch, *_) = VulkanDriver()._scan()
    return VulkanDevice(instance.open_instance().api, with_heaps(batch, machine, **sizes))


@pytest.fixture
def backend() -> VulkanDevice:
    return card()


@pytest.fixture
def device(backend: VulkanDevice) -> Iterator[Device]:
    with Device.of(backend) as opened:
        yield opened


class Calls:
    """Counts calls of the Vulkan functions from its creation on."""

    def __init__(self, backend: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count: Counter[str] = Counter()
        for name in ("vkAllocateMemory", "vkCreateBuffer", "vkCreateCommandPool", "vkAllocateCommandBuffers"):
            monkeypatch.setattr(backend.vk, name, self._counting(name, getattr(backend.vk, name)))
        queue: Any = backend.queue
        monkeypatch.setattr(queue, "_submit", self._counting("vkQueueSubmit", queue._submit))
        real = backend.api.create
        monkeypatch.setattr(backend.api, "create", lambda function, *rest: real(_plain(function), *rest))

    def _counting(self, name: str, real: Any) -> Any:
        def counting(*arguments: Any) -> Any:
            self.count[name] += 1
            return real(*arguments)

        counting.real = real  # type: ignore[attr-defined]
        counting.count = lambda: self.count.update([name])  # type: ignore[attr-defined]
        return counting


def _plain(function: Any) -> Any:
    """The function without its wrapper; `Api.create` needs the type of the C function."""
    if hasattr(function, "real"):
        function.count()
        return function.real
    return function


def noise(size: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def contents(buffer: Buffer) -> Array:
    out = np.empty(buffer.size, np.uint8)
    buffer.read(out)
    return out


def doubling(device: Device, size: int) -> Any:
    """A recording that copies slot 0 to both halves of slot 1."""
    commands = device.create_command_buffer(2)
    commands.copy(0, 0, 1, 0, size)
    commands.copy(0, 0, 1, size, size)
    commands.finish()
    return commands


# staging


def test_transfers_make_nothing_after_the_first(
    device: Device, backend: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = device.allocator.allocate(3000)
    buffer.write(noise(3000))
    contents(buffer)
    calls = Calls(backend, monkeypatch)
    made = backend.queue.transfers.commands.made  # type: ignore[attr-defined]
    for seed in range(50):
        buffer.write(noise(3000, seed))
        np.testing.assert_array_equal(contents(buffer), noise(3000, seed))
    assert backend.queue.transfers.commands.made == made  # type: ignore[attr-defined]
    assert calls.count == {"vkQueueSubmit": 50}, "an upload goes with the read that follows it"


def test_a_warm_call_is_one_submission(device: Device, backend: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Input and result are in the card's memory, and both copies are in the submission of the call."""
    size = 4096
    given, result = (
        device.allocator.allocate(n, use) for n, use in ((size, MemoryUse.INPUT), (2 * size, MemoryUse.OUTPUT))
    )
    assert given.host is None and result.host is None
    commands = doubling(device, size)

    def call(seed: int) -> None:
        given.write(noise(size, seed))
        device.queue.execute(commands, (given, result))
        np.testing.assert_array_equal(contents(result), np.tile(noise(size, seed), 2))

    for seed in range(2):  # the second is the first that reads ahead
        call(seed)
    calls = Calls(backend, monkeypatch)
    for seed in range(1, 11):
        call(seed)
    assert calls.count == {"vkQueueSubmit": 10}


def test_inputs_of_a_large_bar_are_written_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = card(Machine.LARGE_BAR)
    with Device.of(backend) as device:
        given, result = device.allocator.allocate(64, MemoryUse.INPUT), device.allocator.allocate(128, MemoryUse.OUTPUT)
        assert given.host is not None and not given.host_cached and result.host is None
        commands = doubling(device, 64)
        for seed in range(3):
            given.write(noise(64, seed))
            assert not backend.queue.transfers._uploads  # type: ignore[attr-defined]
            device.queue.execute(commands, (given, result))
            np.testing.assert_array_equal(contents(result), np.tile(noise(64, seed), 2))
            np.testing.assert_array_equal(contents(given), noise(64, seed))
        for thing in (commands, given, result):
            thing.release()


def test_an_uncached_mapping_is_written_and_not_read() -> None:
    """As on Mali: unified memory of two types, the first of which is not cached."""
    (batch, *_) = VulkanDriver()._scan()
    own = Heap(0, 1 << 30, True)
    types = (
        MemoryType(batch.memory_types[0].index, L | V | C, own),
        MemoryType(batch.memory_types[0].index, L | V | C | K, own),
    )
    backend = VulkanDevice(instance.open_instance().api, dataclasses.replace(batch, memory_types=types, device_type=1))
    with Device.of(backend) as device:
        buffer, result = device.allocator.allocate(9000), device.allocator.allocate(18000, MemoryUse.OUTPUT)
        assert buffer.host is not None and not buffer.host_cached and result.host is not None and result.host_cached
        assert not backend.allocator.staged
        commands = doubling(device, 9000)
        for seed in range(3):
            buffer.write(noise(9000, seed))
            device.queue.execute(commands, (buffer, result))
            before = backend.timeline.submitted
            np.testing.assert_array_equal(contents(result), np.tile(noise(9000, seed), 2))
            assert backend.timeline.submitted == before
            np.testing.assert_array_equal(contents(buffer), noise(9000, seed))
            assert backend.timeline.submitted == before + 1
        for thing in (commands, buffer, result):
            thing.release()


def test_nobody_reads_ahead_for_nobody(device: Device, backend: VulkanDevice) -> None:
    """A result that was read is prefetched once more, and then only if it is read again."""
    given, result = device.allocator.allocate(64), device.allocator.allocate(128, MemoryUse.OUTPUT)
    commands = doubling(device, 64)
    contents(result)
    for _ in range(2):
        assert result.backend.readback is not None  # type: ignore[attr-defined]
        device.queue.execute(commands, (given, result))
    assert result.backend.readback is None  # type: ignore[attr-defined]
    for thing in (commands, given, result):
        thing.release()


def test_what_was_read_ahead_is_not_older_than_a_write(device: Device) -> None:
    given, result = device.allocator.allocate(64), device.allocator.allocate(128, MemoryUse.OUTPUT)
    commands = doubling(device, 64)
    for seed in range(3):
        given.write(noise(64, seed))
        device.queue.execute(commands, (given, result))
        np.testing.assert_array_equal(contents(result), np.tile(noise(64, seed), 2))
        result.write(noise(10, 99), 5)
        want = np.tile(noise(64, seed), 2)
        want[5:15] = noise(10, 99)
        np.testing.assert_array_equal(contents(result), want)
    part = np.empty(20, np.uint8)
    result.read(part, 7)
    np.testing.assert_array_equal(part, want[7:27])
    for thing in (commands, given, result):
        thing.release()


def test_a_buffer_that_a_recording_names_is_read_ahead(device: Device) -> None:
    """Buffers named in the recording are prefetched, not only those in slots."""
    result, given = device.allocator.allocate(64, MemoryUse.OUTPUT), device.allocator.allocate(64)
    commands = device.create_command_buffer()
    commands.copy(given, 0, result, 0, 64)
    commands.finish()
    for seed in range(4):
        given.write(noise(64, seed))
        device.queue.execute(commands)
        np.testing.assert_array_equal(contents(result), noise(64, seed))
    for thing in (commands, given, result):
        thing.release()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 60), st.booleans()), max_size=12))
def test_writes_come_in_order(writes: list[tuple[int, int, bool]]) -> None:
    """Also writes that overlap, with or without a submission between them."""
    with Device.of(card()) as device:
        buffer, want = device.allocator.allocate(160), np.zeros(160, np.uint8)
        for seed, (offset, length, submit) in enumerate(writes):
            buffer.write(noise(length, seed), offset)
            want[offset : offset + length] = noise(length, seed)
            if submit:
                device.queue.submit(None)
        np.testing.assert_array_equal(contents(buffer), want)
        buffer.release()


def test_transfers_larger_than_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "RING_BYTES", 4096)
    monkeypatch.setattr(transfer, "CHUNK_BYTES", 1000)
    with Device.of(card()) as device:
        buffer, data = device.allocator.allocate(45000), noise(45000)
        assert buffer.host is None
        buffer.write(data)
        np.testing.assert_array_equal(contents(buffer), data)
        buffer.release()


def test_the_host_fills_one_chunk_while_another_is_copied(
    device: Device, backend: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload of 64 MiB waits for the device only when the ring is full, and then for the oldest chunk."""
    buffer = device.allocator.allocate(64 * MIB)
    waits: list[int] = []
    real = ring.Ring.wait
    monkeypatch.setattr(ring.Ring, "wait", lambda self: (waits.append(self.head - self._tail), real(self))[1])
    calls = Calls(backend, monkeypatch)
    data = np.zeros(64 * MIB, np.uint8)
    data[:: 4 * MIB] = np.arange(16) + 1
    buffer.write(data)
    assert calls.count["vkQueueSubmit"] == 64 * MIB // transfer.CHUNK_BYTES
    assert len(waits) <= 12 and all(used > transfer.RING_BYTES - transfer.CHUNK_BYTES for used in waits)
    np.testing.assert_array_equal(contents(buffer), data)
    buffer.release()


def test_a_large_constant_is_never_copied_in_host_memory(device: Device, tmp_path: Path) -> None:
    """256 MiB from a file: apart from the driver's ring, the host allocates less than a chunk."""
    size = 256 * MIB
    path = tmp_path / "constant"
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size - 4)
        file.write(b"last")
    data = np.memmap(path, np.uint8, "r")
    buffer = device.allocator.allocate(size, MemoryUse.CONSTANT)
    tracemalloc.start()
    buffer.write(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB
    out = np.empty(8, np.uint8)
    buffer.read(out, size - 8)
    assert out.tobytes() == b"\0\0\0\0last"
    buffer.release()


def test_an_upload_whose_submission_fails_is_due_again(backend: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    with Device.of(backend) as device:
        buffer = device.allocator.allocate(100)
        buffer.write(noise(100))
        queue: Any = backend.queue
        real = queue._submit
        monkeypatch.setattr(queue, "_submit", lambda *_: backend.api.vk.VK_ERROR_OUT_OF_HOST_MEMORY)
        with pytest.raises(OutOfMemory):
            contents(buffer)
        monkeypatch.setattr(queue, "_submit", real)
        assert queue.transfers.due and not queue.transfers._rows
        np.testing.assert_array_equal(contents(buffer), noise(100))
        buffer.release()


# the ring


class Done:
    """A timeline whose submissions finish when the test says so."""

    def __init__(self) -> None:
        self.reached = 0

    def poll(self) -> int:
        return self.reached

    def wait_for(self, number: int) -> None:
        self.reached = max(self.reached, number)


@settings(max_examples=200)
@given(st.lists(st.integers(1, 300), max_size=60), st.integers(0, 5))
def test_the_ring_never_gives_what_is_in_use(sizes: list[int], lag: int) -> None:
    memory: Any = type("Memory", (), {"size": 1024})()
    one, done = ring.Ring(memory), Done()
    live: dict[int, tuple[int, int]] = {}
    for number, size in enumerate(sizes, 1):
        while (at := one.take(size)) is None:
            assert one.busy
            one.wait()
        live = {key: value for key, value in live.items() if key > done.reached}
        assert 0 <= at and at + size <= 1024
        assert all(at + size <= start or end <= at for start, end in live.values())
        live[number] = (at, at + size)
        one.seal(done, number, one.head)
        done.reached = max(done.reached, number - 1 - lag)


# the queue for uploads


@pytest.mark.parametrize(
    ("families", "compute", "want"),
    [
        (
            [(GRAPHICS | COMPUTE | TRANSFER | 8, 16), (TRANSFER | 8, 2), (COMPUTE | TRANSFER | 8, 8)],
            0,
            (1, 0),
        ),  # NVIDIA
        ([(GRAPHICS | COMPUTE | TRANSFER, 1), (COMPUTE | TRANSFER, 4), (TRANSFER, 1)], 0, (2, 0)),  # AMD
        ([(GRAPHICS | COMPUTE | TRANSFER, 1)], 0, None),  # Intel, lavapipe, SwiftShader
        ([(GRAPHICS | COMPUTE | TRANSFER, 2)], 0, (0, 1)),  # Mali
        ([(GRAPHICS, 1), (COMPUTE, 3), (TRANSFER, 0)], 1, (1, 1)),
    ],
)
def test_which_queue_uploads(families: list[tuple[int, int]], compute: int, want: tuple[int, int] | None) -> None:
    assert choose_upload_queue(families, compute) == want


class TwoQueueDevice(VulkanDevice):
    """A card that uploads through a second queue.

    The drivers in the tests have one queue, which serves as both: order and waits are those of two queues, but nothing
    overlaps.
    """

    def __init__(self, api: Any, physical: PhysicalDevice) -> None:
        super().__init__(api, physical)
        assert physical.upload_queue is None or physical.upload_queue[1]
        if physical.upload_queue is None:
            self._queue.transfers.uploader = UploadQueue(self, physical.queue_family, 0)


class TwoQueueDriver(VulkanDriver):
    def open(self, info: Any) -> VulkanDevice:
        batch = self._scan()[info.index]
        return TwoQueueDevice(instance.open_instance().api, with_heaps(batch, Machine.SMALL_BAR))


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "case",
    [case for case in catalogue.CASES if case.partition(".")[0] in ("buffers", "transfers", "interrupts", "batches")],
)
def test_conformance_with_a_queue_for_uploads(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "CHUNK_BYTES", 1 << 18)
    monkeypatch.setattr(transfer, "RING_BYTES", 1 << 20)
    driver = TwoQueueDriver()
    catalogue.run_on(case, driver, driver.devices()[0])


def test_work_waits_for_uploads_and_uploads_for_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "CHUNK_BYTES", 1024)
    driver = TwoQueueDriver()
    with Device.of(driver.open(driver.devices()[0])) as device:
        given, result = device.allocator.allocate(5000), device.allocator.allocate(10000, MemoryUse.OUTPUT)
        commands = doubling(device, 5000)
        uploader = device.device_state.backend.queue.transfers.uploader  # type: ignore[attr-defined]
        for seed in range(4):
            given.write(noise(5000, seed))
            assert uploader.due and len(uploader.waits()) == 1
            device.queue.submit(commands, (given, result))
            assert not uploader.due
            given.write(noise(5000, 77))  # behind the work that reads it
            np.testing.assert_array_equal(contents(result), np.tile(noise(5000, seed), 2))
            np.testing.assert_array_equal(contents(given), noise(5000, 77))
        for thing in (commands, given, result):
            thing.release()


def test_a_second_queue_of_the_device() -> None:
    """Both queues are opened if a queue family has two."""
    rows = [batch for batch in VulkanDriver()._scan() if batch.upload_queue is not None]
    if not rows:
        pytest.skip("every Vulkan device here has one queue")
    with Device.of(VulkanDevice(instance.open_instance().api, with_heaps(rows[0], Machine.SMALL_BAR))) as device:
        buffer, data = device.allocator.allocate(32 * MIB), noise(32 * MIB)
        buffer.write(data)
        np.testing.assert_array_equal(contents(buffer), data)
        buffer.release()


# full heaps


def test_constants_in_host_memory_cause_a_warning() -> None:
    with Device.of(card(local=64 * MIB)) as device:
        kept = [device.allocator.allocate(30 * MIB, MemoryUse.CONSTANT) for _ in range(2)]
        backend: Any = kept[0].backend
        assert backend.block.choice.type.heap.local
        with pytest.warns(RuntimeWarning, match=r"no room for 104857600 bytes \(constant\): they lie in host memory"):
            large = device.allocator.allocate(100 * MIB, MemoryUse.CONSTANT)
        assert large.host is None
        large.write(noise(1000), 5)
        np.testing.assert_array_equal(contents(large)[5:1005], noise(1000))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning):
                device.allocator.allocate(100 * MIB, MemoryUse.ARENA)
        for buffer in (*kept, large):
            buffer.release()


class FakeBudgets:
    """Replies of `VK_EXT_memory_budget`, which the drivers in the tests do not have."""

    def __init__(self, *rows: tuple[int, int]) -> None:
        self.rows = [*rows]
        self.asked = 0

    def __call__(self, api: Any, physical: Any) -> list[tuple[int, int]]:
        self.asked += 1
        return self.rows


def test_heaps_beyond_their_budget_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets = FakeBudgets((300 * MIB, 0), (300 * MIB, 0), (0, 0))
    monkeypatch.setattr(budget, "read_budgets", budgets)
    (batch, *_) = VulkanDriver()._scan()
    known = dataclasses.replace(batch, extensions=batch.extensions)
    backend = VulkanDevice(instance.open_instance().api, with_heaps(known, Machine.SMALL_BAR))
    backend.allocator._budget = budget.Budget(backend.api, batch.handle, True)
    with Device.of(backend) as device:
        first = device.allocator.allocate(100 * MIB, MemoryUse.CONSTANT)
        assert budgets.asked == 1 and first.backend.block.choice.type.heap.index == 0  # type: ignore[attr-defined]
        small = device.allocator.allocate(16, MemoryUse.CONSTANT)
        asked = budgets.asked
        more = device.allocator.allocate(16, MemoryUse.CONSTANT)
        assert budgets.asked == asked, "read when a block is made, not for each buffer"
        budgets.rows[0] = (300 * MIB, 290 * MIB)
        with pytest.warns(RuntimeWarning, match="no room"):
            second = device.allocator.allocate(100 * MIB, MemoryUse.CONSTANT)
        assert second.backend.block.choice.type.heap.index == 1  # type: ignore[attr-defined]
        budgets.rows[1] = (300 * MIB, 290 * MIB)
        third = device.allocator.allocate(100 * MIB, MemoryUse.CONSTANT)  # nothing is left: the driver decides
        assert third.backend.block.choice.type.heap.index == 0  # type: ignore[attr-defined]
        for buffer in (first, small, more, second, third):
            buffer.release()


def test_an_error_says_budget_and_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "read_budgets", FakeBudgets((5000, 4000), (5000, 4000), (0, 0)))
    backend = card()
    backend.allocator._budget = budget.Budget(backend.api, None, True)
    real = backend.vk.vkAllocateMemory
    monkeypatch.setattr(backend.api, "create", lambda function, *rest: _refused(backend, function, real, *rest))
    with pytest.raises(OutOfMemory, match=r"heap 0: 4000 bytes in use of a budget of 5000"):
        backend.allocate(1 << 20, MemoryUse.CONSTANT)
    monkeypatch.undo()
    backend.close()


def _refused(backend: VulkanDevice, function: Any, allocate: Any, *rest: Any) -> Any:
    if function is allocate:
        raise backend.api.error(backend.api.vk.VK_ERROR_OUT_OF_DEVICE_MEMORY, rest[-1])
    return type(backend.api).create(backend.api, function, *rest)


def test_a_budget_that_makes_no_sense_is_the_heaps_size() -> None:
    api = instance.open_instance().api
    heap = Heap(0, 1000, True)
    unknown = budget.Budget(api, None, False)
    unknown.refresh()
    assert unknown.has_room(heap, 1000) and not unknown.has_room(heap, 1001) and unknown.describe(heap) == ""

    class Lib:
        @staticmethod
        def vkGetPhysicalDeviceMemoryProperties2(physical: Any, memory: Any) -> None:
            memory.memoryProperties.memoryHeapCount = 3
            budgets = api.ffi.cast("VkPhysicalDeviceMemoryBudgetPropertiesEXT *", memory.pNext)
            for index, (number, used) in enumerate(((2**64 - 5, 7), (0, 8), (600, 9))):
                memory.memoryProperties.memoryHeaps[index].size = 1000
                budgets.heapBudget[index], budgets.heapUsage[index] = number, used

    fake: Any = type("Fake", (), {"new": api.new, "lib": Lib})()
    assert budget.read_budgets(fake, None) == [(1000, 7), (1000, 8), (600, 9)]


def test_bindings_of_a_card_are_zero(backend: VulkanDevice) -> None:
    """The memory is cleared in the submission that reads it."""
    fresh, target = backend.allocate(4096, MemoryUse.ARENA), backend.allocate(4096, MemoryUse.STAGING)
    assert target.host is not None
    target.host[:] = 7
    commands = backend.create_command_buffer(0)
    commands.copy(Binding(fresh, 0, 4096), Binding(target, 0, 4096))
    commands.finish()
    before = backend.timeline.submitted
    backend.queue.execute(commands, ())
    assert backend.timeline.submitted == before + 1 and not target.host.any()
    for thing in (commands, fresh, target):
        thing.release()
    backend.close()
