"""Counters: each counts exactly."""

from collections.abc import Callable

import numpy as np

from orchestrion.hal.errors import InvalidArgument, OutOfMemory
from orchestrion.hal.semaphore import Fence

from .case import Group
from .expect import raises
from .kernels import INCREMENT, IOTA
from .rig import Rig, whole

case = Group("statistics", __doc__)


@case
def counted(rig: Rig) -> None:
    """One call after the other, and each counter."""
    before = rig.device.statistics.snapshot()
    buffer, other = rig.device.allocator.allocate(64), rig.device.allocator.allocate(60)
    buffer.write(np.zeros(16, np.uint32))
    commands = rig.recording(1)
    rig.dispatch(commands, IOTA, [(0, 0, 64)], 16, 1)
    rig.dispatch(commands, INCREMENT, [whole(buffer)], 16, 1)
    commands.fill(other, 0, 60, b"\0\0\0\0")
    commands.finish()
    for _ in range(3):
        rig.run(commands, buffer)
    other.read(np.empty(10, np.uint8))
    counted = rig.device.statistics.since(before)
    counted["waits"] = min(counted["waits"], 3)  # a driver without mapping waits once more to read
    assert counted == {
        "submissions": 3,
        "dispatches": 6,
        "waits": 3,
        "allocations": 2,
        "host_to_device_bytes": 64,
        "device_to_host_bytes": 10,
        "bytes_copied": 180,
        "imports": 0,
        "executables_created": 1,
        "command_buffers_recorded": 1,
    }


@case
def shares_count_apart(rig: Rig) -> None:
    """What a share does is counted there; executables are built once for all."""
    rig.executable().release()
    with rig.device.share() as device:
        share = rig.on(device)
        share.executable().release()
        share.zeros(16).release()
        assert device.statistics.executables_created == 0
        assert device.statistics.allocations == 1
    assert rig.device.statistics.executables_created == 1
    assert rig.device.statistics.allocations == 0


@case
def memory_in_use(rig: Rig) -> None:
    """Live and peak bytes follow allocations and releases, rounded up to 16."""
    allocator = rig.device.allocator
    first = allocator.allocate(100)
    second = allocator.allocate(16)
    assert allocator.live_bytes == allocator.peak_bytes == 112 + 16
    first.release()
    rig.soon(lambda: allocator.live_bytes, 16)
    second.release()
    rig.soon(lambda: allocator.live_bytes, 0)
    assert allocator.peak_bytes == 112 + 16


def _counted(rig: Rig, act: Callable[[], object]) -> dict[str, int]:
    """What an action adds to the counters, without those that stay unchanged."""
    before = rig.device.statistics.snapshot()
    act()
    return {name: count for name, count in rig.device.statistics.since(before).items() if count}


@case
def submissions_and_waits(rig: Rig) -> None:
    """A blocking call is a submission and a wait; a submission is none, and waiting for its fence is one."""
    buffer, done = rig.zeros(64), rig.device.create_semaphore()
    commands = rig.filling(0, 64, 1)
    queue = rig.device.queue
    assert _counted(rig, lambda: rig.run(commands, buffer)) == {"submissions": 1, "waits": 1, "bytes_copied": 64}
    submitted = _counted(rig, lambda: queue.submit(commands, (buffer,), None, Fence([(done, 1)])))
    assert submitted == {"submissions": 1, "bytes_copied": 64}
    assert _counted(rig, lambda: done.wait(1, rig.patience)) == {"waits": 1}
    assert _counted(rig, queue.wait_idle) == {"waits": 1}
    assert _counted(rig, lambda: queue.submit(None, (), None, Fence([(done, 2)]))) == {"submissions": 1}


@case
def refused_work_is_not_counted(rig: Rig) -> None:
    """What the front or the limit refuses adds nothing to the counters."""
    with rig.device.share(memory_limit=64) as device:
        share = rig.on(device)
        buffer = share.zeros(64)
        commands = share.recording(1)

        def refused() -> None:
            with raises(OutOfMemory):
                device.allocator.allocate(1)
            acts: tuple[Callable[[], object], ...] = (
                lambda: share.run(commands, buffer),
                lambda: device.queue.submit(commands, (buffer,)),
                lambda: commands.fill(0, 0, 3, b"abcd"),
                lambda: buffer.write(np.zeros(65, np.uint8)),
                lambda: buffer.read(np.zeros(65, np.uint8)),
            )
            for act in acts:
                with raises(InvalidArgument):
                    act()

        assert _counted(share, refused) == {}
        buffer.release()
        commands.release()


@case
def bytes_of_transfers(rig: Rig) -> None:
    """Bytes of the host are counted by the range; those of a recording at each submission."""
    buffer, other = rig.zeros(100), rig.zeros(100)
    commands = rig.recording(2)
    commands.copy(0, 0, 1, 50, 33)
    commands.barrier()
    commands.fill(0, 0, 12, b"abcd")
    commands.copy(0, 0, 0, 0, 100)
    commands.copy(0, 100, 1, 100, 0)
    assert _counted(rig, commands.finish) == {"command_buffers_recorded": 1}
    for _ in range(2):
        assert _counted(rig, lambda: rig.run(commands, buffer, other))["bytes_copied"] == 45
    assert _counted(rig, lambda: buffer.write(np.zeros(7, np.uint8), 3)) == {"host_to_device_bytes": 7}
    assert _counted(rig, lambda: buffer.read(np.zeros(9, np.uint8)))["device_to_host_bytes"] == 9


@case
def dispatches_of_each_submission(rig: Rig) -> None:
    """Dispatches are counted at each submission of their recording; those of no invocations are not."""
    buffer = rig.zeros(64)
    commands = rig.recording(1)
    for n in (16, 3, 1):
        rig.dispatch(commands, INCREMENT, [(0, 0, 64)], n, 1)
    rig.dispatch_grid(commands, INCREMENT, [(0, 0, 64)], (16, 0, 1), 16)
    commands.finish()
    assert _counted(rig, lambda: rig.run(commands, buffer)) == {"submissions": 1, "waits": 1, "dispatches": 3}
    batch = [(commands, (buffer,))] * 4
    assert _counted(rig, lambda: rig.device.queue.execute_batch(batch))["dispatches"] == 12


@case
def releases_count_nothing(rig: Rig) -> None:
    """Making and releasing handles counts allocations, and nothing else; counters never fall."""

    def make() -> None:
        rig.device.create_semaphore().release()
        rig.recording(3).release()
        rig.device.allocator.allocate(10).release()
        rig.device.share().close()

    assert _counted(rig, make) == {"allocations": 1}
