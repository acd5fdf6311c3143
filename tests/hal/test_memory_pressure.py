"""What is freed when memory runs out, by whom, and how often the driver is asked, on a device of 1000 bytes."""

import threading
from typing import Any

import numpy as np
import pytest

from orchestrion.hal.backend import Entry, MemoryUse
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DeviceOutOfMemory, DriverUnavailable, MemoryLimitExceeded
from orchestrion.hal.host_buffer import ArrayBuffer
from orchestrion.hal.lifetime import Account
from orchestrion.hal.null.device import NullDevice
from orchestrion.hal.null.driver import NullDriver
from orchestrion.hal.registry import open_device
from orchestrion.hal.semaphore import Fence

ENTRY = Entry("f", (), 0, (1, 1, 1))


class Small(NullDevice):
    """A device of 1000 bytes that counts requests. `trim` frees `spare` bytes."""

    def __init__(self) -> None:
        super().__init__(NullDriver().devices()[0])
        self.room, self.spare = 1000, 0
        self.asked = self.trimmed = 0

    def allocate(self, size: int, use: MemoryUse) -> ArrayBuffer:
        self.asked += 1
        if size > self.room - self.spare:
            raise DeviceOutOfMemory(f"{size} bytes asked for, {self.room - self.spare} are free")
        self.room -= size
        device = self

        class Counted(ArrayBuffer):
            def release(self) -> None:
                super().release()
                device.room += size

        return Counted(np.zeros(size, np.uint8))

    def trim(self) -> bool:
        self.trimmed += 1
        self.spare, given = 0, self.spare
        return given > 0


class Keeper:
    """Keeps buffers of a share, and drops them when memory runs out."""

    def __init__(self, share: Device, size: int, busy: bool = False) -> None:
        self.kept = [share.allocator.allocate(size)] if size else []
        self.busy = busy  #: in the middle of a call of another thread
        self.asked: list[bool] = []
        share.on_memory_pressure(self.give)

    def give(self, own: bool) -> bool:
        self.asked.append(own)
        if self.busy and not own:
            return False
        given = bool(self.kept)
        self.kept.clear()
        return given


@pytest.fixture
def small() -> Small:
    return Small()


def test_a_driver_without_room_gets_it_from_all_shares(small: Small) -> None:
    device = Device.of(small)
    with device, device.share() as first, device.share() as second:
        one, two = Keeper(first, 320), Keeper(second, 320)
        asked = small.asked
        buffer = second.allocator.allocate(800)
        assert small.asked == asked + 2, "tried once more, and no oftener"
        assert one.asked == [False] and two.asked == [True]
        assert small.trimmed == 1 and small.room == 200
        buffer.release()
    device.device_state.collect()
    assert small.room == 1000


def test_nothing_to_give_back(small: Small) -> None:
    """If nothing can be freed, the driver is not asked again, and the error has the numbers."""
    with Device.of(small) as device, device.share() as share:
        held = share.allocator.allocate(400)
        asked = small.asked
        with pytest.raises(DeviceOutOfMemory, match=r"800 bytes .*, 600 are free \(400 bytes of null are in use\)"):
            share.allocator.allocate(800)
        assert small.asked == asked + 1
        assert share.allocator.live_bytes == 400, "what failed is not charged"
        held.release()


def test_too_little_is_given_back(small: Small) -> None:
    with Device.of(small) as device, device.share() as share:
        keeper = Keeper(share, 320)
        with pytest.raises(DeviceOutOfMemory, match=r"1200 bytes .*, 1000 are free \(0 bytes of null are in use\)"):
            share.allocator.allocate(1200)
        assert keeper.asked == [True] and not keeper.kept


def test_a_context_in_the_middle_of_a_call_keeps_what_it_uses(small: Small) -> None:
    with Device.of(small) as device, device.share() as first, device.share() as second:
        busy, idle = Keeper(first, 320, busy=True), Keeper(first, 320)
        buffer = second.allocator.allocate(640)
        assert busy.kept and not idle.kept
        with pytest.raises(DeviceOutOfMemory):
            second.allocator.allocate(320)
        assert busy.kept
        buffer.release()
        busy.kept.clear()


def test_a_limit_is_relieved_by_those_charged_to_it(small: Small) -> None:
    """A reached limit frees only memory charged to it, and does not ask the driver."""
    budget = Account(1 << 10)
    with Device.of(small, memory_limit=600) as device, device.share(budget=budget) as first, device.share() as second:
        mine, other = Keeper(first, 240), Keeper(second, 240)
        budget.limit = 300
        buffer = first.allocator.allocate(160)
        assert mine.asked == [True] and other.asked == [] and small.trimmed == 0
        larger = second.allocator.allocate(400)  # above the limit of the device, to which all are charged
        assert other.asked == [True] and mine.asked == [True, False]
        with pytest.raises(MemoryLimitExceeded, match=r"160 bytes exceeds the limit of 600 bytes \(560 in use\)"):
            second.allocator.allocate(160)
        buffer.release()
        larger.release()


def test_the_driver_gives_back_spare_blocks(small: Small) -> None:
    with Device.of(small) as device:
        small.spare = 900
        buffer = device.allocator.allocate(800)
        assert small.trimmed == 1
        buffer.release()


def test_work_under_way_is_waited_for(small: Small) -> None:
    """Memory that only a submission holds is free when the submission has finished."""
    with Device.of(small) as device:
        gate, buffer = device.create_semaphore(), device.allocator.allocate(800)
        commands = device.create_command_buffer()
        commands.fill(buffer, 0, 800, b"x")
        commands.finish()
        device.queue.submit(commands)
        buffer.release()
        commands.release()
        again = device.allocator.allocate(800)
        again.release()
        device.queue.submit(None, wait=Fence([(gate, 1)]))
        with pytest.raises(DeviceOutOfMemory):  # what waits for a signal is not waited for
            device.allocator.allocate(2000)
        gate.signal(1)
        gate.release()


def test_executables_that_nobody_uses_go(small: Small) -> None:
    with Device.of(small) as device:
        used = device.create_executable("spirv", memoryview(b"used"), (ENTRY,))
        device.create_executable("spirv", memoryview(b"not"), (ENTRY,)).release()
        recorded = device.create_executable("spirv", memoryview(b"recorded"), (ENTRY,))
        commands = device.create_command_buffer()
        commands.dispatch(recorded, 0, (1, 1, 1), [])
        commands.finish()
        recorded.release()
        before = device.statistics.executables_created
        with pytest.raises(DeviceOutOfMemory):
            device.allocator.allocate(2000)
        for payload, built in ((b"used", 0), (b"recorded", 0), (b"not", 1)):
            device.create_executable("spirv", memoryview(payload), (ENTRY,)).release()
            assert device.statistics.executables_created == before + built, payload
        device.queue.execute(commands)
        commands.release()
        used.release()


def test_other_calls_of_the_driver_are_tried_once_more(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, use in (
        ("create_command_buffer", lambda device: device.create_command_buffer().release()),
        ("create_semaphore", lambda device: device.create_semaphore().release()),
        ("create_executable", lambda device: device.create_executable("spirv", memoryview(b"x"), (ENTRY,)).release()),
        ("import_host", lambda device: device.allocator.import_host(np.zeros(64, np.uint8)).release()),
    ):
        small = Small()
        real, left = getattr(small, name), [1]

        def fail(*arguments: Any, real: Any = real, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise DeviceOutOfMemory("no room on purpose")
            return real(*arguments)

        monkeypatch.setattr(small, name, fail)
        with Device.of(small) as device:
            small.spare = 1
            use(device)
            assert left[0] <= -1 and small.trimmed == 1


def test_many_threads_run_out_of_memory(small: Small) -> None:
    """They free each other's memory without waiting for each other, and everything is released in the end."""
    device = Device.of(small)
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            with device.share() as share:
                for _ in range(50):
                    keeper = Keeper(share, 16)
                    try:
                        share.allocator.allocate(640).release()
                    except DeviceOutOfMemory:
                        pass
                    keeper.kept.clear()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)
    device.close()
    assert small.room == 1000


@pytest.mark.parametrize("name", ["opencl", "vulkan"])
def test_drivers_trim_recordings_and_blocks(name: str) -> None:
    """Trimmed objects are made again when needed. The latest recording and everything in use stay."""
    try:
        device = open_device(name)
    except DriverUnavailable as error:
        pytest.skip(str(error))
    with device:
        buffers = [device.allocator.allocate(4096) for _ in range(4)]
        commands = device.create_command_buffer(1)
        commands.fill(0, 0, 2048, bytes([1]))
        commands.fill(0, 2048, 2048, bytes([2]))
        commands.finish()
        for buffer in buffers:
            device.queue.execute(commands, [buffer])
        with device.lock:
            assert device.device_state.driver.trim()
            assert not device.device_state.driver.trim()
        for buffer in buffers:
            buffer.write(np.zeros(4096, np.uint8))
            device.queue.execute(commands, [buffer])
            out = np.empty(4096, np.uint8)
            buffer.read(out)
            assert (out[:2048] == 1).all() and (out[2048:] == 2).all()
            buffer.release()
        commands.release()


def test_recordings_under_way_are_not_trimmed() -> None:
    """Launched work keeps its recording until it was waited for."""
    try:
        device = open_device("vulkan")
    except DriverUnavailable as error:
        pytest.skip(str(error))
    with device:
        driver, buffers = device.device_state.driver, [device.allocator.allocate(256) for _ in range(2)]
        commands = device.create_command_buffer(1)
        commands.fill(0, 0, 256, bytes([3]))
        commands.finish()
        with device.lock:
            tickets = [driver.queue.create_ticket() for _ in buffers]
            for ticket, buffer in zip(tickets, buffers, strict=True):
                driver.queue.launch(ticket, commands.backend, [buffer.backend])
            assert not driver.trim()
            for ticket in tickets:
                driver.queue.wait(ticket)
            assert driver.trim()
        for handle in (*buffers, commands):
            handle.release()
