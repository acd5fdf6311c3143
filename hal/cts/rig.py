"""What a case works with: an open device, its kernels, and short ways to make buffers and compare what is in them."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from orchestrion.hal.backend import BackendDriver
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer, Range
from orchestrion.hal.device import Device
from orchestrion.hal.executable import Executable
from orchestrion.hal.profiling import ProfilingDevice

from . import kernels

Words = npt.NDArray[np.uint32]


class Rig:
    """One device under test. `computes` is False for a driver that executes no dispatch."""

    def __init__(self, device: Device, computes: bool, driver: BackendDriver | None = None) -> None:
        self.device = device
        self.computes = computes
        self.driver = driver

    def profiled(self, case: Callable[["Rig"], None]) -> None:
        """Run a case on the same device, opened once more, with profiling; nothing of it may be left at the end."""
        assert self.driver is not None, "needed to open the device once more"
        backend = ProfilingDevice(self.driver.open_profiled(self.device.info))
        with Device.of(backend, policy=self.device.policy) as device:
            case(Rig(device, self.computes, self.driver))
            leaks = device.close()
        assert leaks == (), f"not released: {leaks}"

    def words(self, *values: int) -> Words:
        return np.array(values, np.uint32)

    def random(self, count: int, seed: int = 0) -> Words:
        return np.random.default_rng(seed).integers(0, 2**32, count, np.uint32)

    def buffer(self, data: npt.NDArray[np.generic]) -> Buffer:
        """A buffer that holds `data`."""
        buffer = self.device.allocator.allocate(data.nbytes)
        buffer.write(data)
        return buffer

    def zeros(self, size: int) -> Buffer:
        return self.buffer(np.zeros(size, np.uint8))

    def contents(self, buffer: Buffer) -> npt.NDArray[np.uint8]:
        out = np.empty(buffer.size, np.uint8)
        buffer.read(out)
        return out

    def holds(self, buffer: Buffer, want: npt.NDArray[np.generic]) -> None:
        """The buffer holds exactly these bytes, put there by the host, by copies or by fills."""
        np.testing.assert_array_equal(self.contents(buffer)[: want.nbytes], want.reshape(-1).view(np.uint8))

    def computed(self, buffer: Buffer, want: Words) -> None:
        """As `holds`, for what a dispatch wrote."""
        if self.computes:
            np.testing.assert_array_equal(self.contents(buffer)[: want.nbytes].view(np.uint32), want)

    def kernel(self, n: int, value: int = 0) -> kernels.Kernel:
        """The suite's kernels in the first of the device's formats that has them."""
        for format in self.device.info.formats:
            make = kernels.find_kernels(format)
            if make is not None:
                return make(n, value)
        raise LookupError(f"no kernels of the suite in {', '.join(self.device.info.formats)}")

    def executable(self, n: int = 16, value: int = 0) -> Executable:
        kernel = self.kernel(n, value)
        return self.device.create_executable(kernel.format, memoryview(kernel.payload), kernel.entries)

    def recording(self, slots: int = 0) -> CommandBuffer:
        return self.device.create_command_buffer(slots)

    def dispatch(self, commands: CommandBuffer, entry: int, bindings: Sequence[Range], n: int, value: int = 0) -> None:
        """Record an entry of the kernels over `n` elements."""
        self.dispatch_grid(commands, entry, bindings, (n, 1, 1), n, value)

    def dispatch_grid(
        self,
        commands: CommandBuffer,
        entry: int,
        bindings: Sequence[Range],
        workload: tuple[int, int, int],
        n: int,
        value: int = 0,
    ) -> None:
        """As `dispatch`, with a workload of its own."""
        executable = self.executable(n, value)
        commands.dispatch(executable, entry, workload, bindings, self.kernel(n, value).parameters)
        executable.release()

    def run(self, commands: CommandBuffer, *buffers: Buffer) -> None:
        self.device.queue.execute(commands, buffers)


def whole(buffer: Buffer) -> Range:
    """All of a buffer as a binding."""
    return buffer, 0, buffer.size
