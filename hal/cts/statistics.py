"""What is counted, exactly."""

import numpy as np

from .case import Group
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
    assert allocator.live_bytes == 16
    second.release()
    assert allocator.live_bytes == 0
    assert allocator.peak_bytes == 112 + 16
