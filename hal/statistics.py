"""Counts what a device does. The front counts, at the boundary to the driver.

Counters only grow. `live_bytes` and `peak_bytes` are device memory as requested from the driver (sizes are rounded up,
see `hal.allocator`). Each share of a device (`Device.share`) has its own counters. Counts are exact while one thread at
a time uses one `Device`; parallel threads should use a share each.
"""

from collections.abc import Mapping

#: counter -> the meaning of one unit, in the order of printing
COUNTERS: dict[str, str] = {
    "submissions": "submissions to the driver, each of one command buffer or a batch of them",
    "dispatches": "dispatches inside those command buffers",
    "waits": "times the caller waited for the device",
    "allocations": "calls of the driver's allocator",
    "host_to_device_bytes": "bytes written into buffers by the host",
    "device_to_host_bytes": "bytes read out of buffers by the host",
    "bytes_copied": "bytes copied or filled inside submitted command buffers",
    "imports": "host memory ranges made into buffers without a copy",
    "executables_created": "executables built by the driver",
    "command_buffers_recorded": "command buffers whose recording was finished",
}


class Statistics:
    """The counters of one `Device`, as attributes. `snapshot` and `since` return them as a dict."""

    __slots__ = tuple(COUNTERS)

    submissions: int
    dispatches: int
    waits: int
    allocations: int
    host_to_device_bytes: int
    device_to_host_bytes: int
    bytes_copied: int
    imports: int
    executables_created: int
    command_buffers_recorded: int

    def __init__(self) -> None:
        self.submissions = self.dispatches = self.waits = self.allocations = self.bytes_copied = self.imports = 0
        self.host_to_device_bytes = self.device_to_host_bytes = 0
        self.executables_created = self.command_buffers_recorded = 0

    def snapshot(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in COUNTERS}

    def since(self, before: Mapping[str, int]) -> dict[str, int]:
        """The counts since `before`, an earlier `statistics.snapshot()`."""
        return {name: getattr(self, name) - before[name] for name in COUNTERS}
