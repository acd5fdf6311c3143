"""Three ways to replay a recording on OpenCL: enqueue lists, command buffers, command buffers with mutable dispatch.

The recordings have different numbers of small dispatches whose buffers are slots. The calls use the same binding table
each time, or cycle through 2 tables, through 16 (as many recordings as are cached) or through 17 (so that none is found
in the cache). A way that the device does not support is left out. The environment variable OCL_ICD_VENDORS=FOLDER
chooses the platform.

Expected before measuring: an enqueue list costs 0.6 us of Python per dispatch more than a command buffer; an update
costs less than recording; so mutable dispatch is fastest with 17 tables and nowhere slowest.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from harness import Timing, arguments, measure, save, table

COUNTS = (1, 2, 5, 20, 100)
TABLES = (1, 2, 16, 17)
LISTS, RECORDED, MUTABLE = "enqueue lists", "command buffers", "with mutable dispatch"

SOURCE = b"""
__kernel __attribute__((reqd_work_group_size(4, 1, 1)))
void add(__global const uint *x, __global uint *y, uint n) { y[get_global_id(0)] = x[get_global_id(0)] + n; }
"""


class ReplayCase:
    """A device that runs recordings in one way, with a recording of `dispatches` launches over two slots."""

    def __init__(self, name: str, dispatches: int) -> None:
        from orchestrion.hal.backend import Binding, Entry, MemoryUse
        from orchestrion.hal.opencl.device import OpenCLDevice
        from orchestrion.hal.opencl.driver import OpenCLDriver, find

        self.device = OpenCLDevice(OpenCLDriver().devices()[0], find()[0][0], recorded=name != LISTS)
        self.has_it = name != MUTABLE or self.device._api.mutable_dispatch
        self.device._api.mutable_dispatch = name == MUTABLE and self.has_it
        entry = Entry("add", (("read", 16), ("write", 16)), 1, (4, 1, 1))
        executable = self.device.create_executable("opencl-c", memoryview(SOURCE), (entry,))
        self.buffers = [self.device.allocate(4096, MemoryUse.STAGING) for _ in range(max(TABLES) + 1)]
        self.commands = self.device.create_command_buffer(2)
        for number in range(dispatches):
            bindings = Binding(0, 0, 16), Binding(1, 16 * (number % 128), 16)
            self.commands.dispatch(executable, 0, (1, 1, 1), bindings, number.to_bytes(4, "little"))
        self.commands.finish()

    def call(self, tables: int) -> Callable[[], Any]:
        """A call with the next of so many tables."""
        numbers, source, *targets = count(), *self.buffers
        rows = [[source, target] for target in targets[:tables]]
        return lambda: self.device.queue.execute(self.commands, rows[next(numbers) % tables])


def main() -> None:
    options = arguments("replays of a recording on OpenCL")
    from orchestrion.hal.opencl.driver import OpenCLDriver

    info = OpenCLDriver().devices()[0]
    print(f"{info.name}, {info.version}; {', '.join(info.notes)}")
    found: dict[str, Timing] = {}
    for tables in TABLES:
        for dispatches in COUNTS:
            ways = {name: ReplayCase(name, dispatches) for name in (LISTS, RECORDED, MUTABLE)}
            calls = {name: way.call(tables) for name, way in ways.items() if way.has_it}
            timings = measure(calls, calls=34, rounds=options.rounds, warm_up=2 * tables)
            table(f"{dispatches} dispatches, {tables} tables in turn", timings, LISTS)
            found |= {f"{dispatches} dispatches, {tables} tables: {name}": row for name, row in timings.items()}
            for way in ways.values():
                way.commands.release()
    save(options.json, found)


if __name__ == "__main__":
    main()
