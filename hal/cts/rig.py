"""The environment of a case: an open device, its kernels, and helpers that make and compare buffers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from orchestrion.hal.backend import BackendDriver, MemoryUse
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer, Range, Source
from orchestrion.hal.device import Device
from orchestrion.hal.executable import Executable
from orchestrion.hal.profiling import ProfilingDevice
from orchestrion.hal.semaphore import Fence

from . import kernels

Words = npt.NDArray[np.uint32]
Value = TypeVar("Value")

#: seconds after which a wait that must end counts as a hang
PATIENCE = 20.0


class Rig:
    """One device under test. `computes` is False for a driver that does not execute dispatches.

    `patience`: seconds after which a wait that must end counts as a hang.
    """

    def __init__(
        self, device: Device, computes: bool, driver: BackendDriver | None = None, patience: float = PATIENCE
    ) -> None:
        self.device = device
        self.computes = computes
        self.driver = driver
        self.patience = patience

    def on(self, device: Device) -> Rig:
        """A rig for another open device of the driver, such as a share."""
        return Rig(device, self.computes, self.driver, self.patience)

    def reopened(self) -> Rig:
        """A rig for the same device, opened once more. The case closes `rig.device`."""
        assert self.driver is not None, "needed to open the device once more"
        device = Device.of(self.driver.open(self.device.info), policy=self.device.policy)
        device.close_seconds = self.device.close_seconds
        return self.on(device)

    def profiled(self, case: Callable[[Rig], None]) -> None:
        """Run a case on the same device, opened once more with profiling. Checks that nothing of it is
        left at the end.
        """
        assert self.driver is not None, "needed to open the device once more"
        backend = ProfilingDevice(self.driver.open_profiled(self.device.info))
        with Device.of(backend, policy=self.device.policy) as device:
            case(self.on(device))
            leaks = device.close()
        assert leaks == (), f"not released: {leaks}"

    @property
    def binding_step(self) -> int:
        """The least number of bytes that is a multiple of the device's binding alignment and of a word."""
        return -(-self.device.info.limits.min_binding_alignment // 4) * 4

    def words(self, *values: int) -> Words:
        return np.array(values, np.uint32)

    def random(self, count: int, seed: int = 0) -> Words:
        return np.random.default_rng(seed).integers(0, 2**32, count, np.uint32)

    def bytes(self, count: int, seed: int = 0) -> npt.NDArray[np.uint8]:
        """Random bytes."""
        return np.random.default_rng(seed).integers(0, 256, count, np.uint8)

    def buffer(self, data: npt.NDArray[np.generic]) -> Buffer:
        """A buffer that holds `data`."""
        buffer = self.device.allocator.allocate(data.nbytes)
        buffer.write(data)
        return buffer

    def fresh(self, size: int) -> Buffer:
        """A new buffer that the host did not write: a write may have to wait for work in flight."""
        return self.device.allocator.allocate(size)

    def zeros(self, size: int) -> Buffer:
        """A new buffer that the host filled with zeros."""
        return self.buffer(np.zeros(size, np.uint8))

    def staging(self, data: npt.NDArray[np.generic]) -> Buffer:
        """A buffer that holds `data`, and that is mapped where the device maps any memory."""
        buffer = self.device.allocator.allocate(data.nbytes, MemoryUse.STAGING)
        buffer.write(data)
        return buffer

    def contents(self, buffer: Buffer) -> npt.NDArray[np.uint8]:
        out = np.empty(buffer.size, np.uint8)
        buffer.read(out)
        return out

    def soon(self, get: Callable[[], Value], want: Value) -> None:
        """Wait until the value is `want`, at most `patience` seconds: another thread may release memory."""
        end = time.monotonic() + self.patience
        while (found := get()) != want:
            assert time.monotonic() < end, f"{found}, expected {want}"
            time.sleep(0.001)

    def holds(self, buffer: Buffer, want: npt.NDArray[np.generic]) -> None:
        """Check that the buffer begins with exactly these bytes, written by the host, by copies or by fills."""
        np.testing.assert_array_equal(self.contents(buffer)[: want.nbytes], want.reshape(-1).view(np.uint8))

    def computed(self, buffer: Buffer, want: Words) -> None:
        """As `holds`, for the result of a dispatch; the case needs the tag `dispatch`."""
        assert self.computes, "the case checks what a dispatch computes, and does not need the tag 'dispatch'"
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

    def filling(self, target: Source, size: int, byte: int) -> CommandBuffer:
        """A finished recording that fills the first `size` bytes of a buffer, or of slot 0, with a byte."""
        commands = self.recording(int(isinstance(target, int)))
        commands.fill(target, 0, size, bytes([byte]))
        commands.finish()
        return commands

    def copying(self, size: int) -> CommandBuffer:
        """A finished recording that copies the first `size` bytes of slot 0 to slot 1."""
        commands = self.recording(2)
        commands.copy(0, 0, 1, 0, size)
        commands.finish()
        return commands

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
        """As `dispatch`, with a separate workload."""
        executable = self.executable(n, value)
        commands.dispatch(executable, entry, workload, bindings, self.kernel(n, value).parameters)
        executable.release()

    def run(self, commands: CommandBuffer, *buffers: Buffer) -> None:
        self.device.queue.execute(commands, buffers)


class Bound:
    """The buffers of a case, and how its recordings refer to them: subclasses set `sources`, one per buffer."""

    sources: tuple[Source, ...]

    def __init__(self, rig: Rig, *buffers: Buffer) -> None:
        self.rig = rig
        self.buffers = buffers

    @property
    def table(self) -> tuple[Buffer, ...]:
        """The buffers that a submission puts into the slots."""
        return ()

    def recording(self) -> CommandBuffer:
        return self.rig.recording(len(self.table))

    def run(self, commands: CommandBuffer) -> None:
        """Finish the recording and run it."""
        commands.finish()
        self.rig.run(commands, *self.table)

    def submit(self, commands: CommandBuffer, wait: Fence | None = None, signal: Fence | None = None) -> None:
        """Finish the recording and submit it."""
        commands.finish()
        self.rig.device.queue.submit(commands, self.table, wait, signal)


class Direct(Bound):
    """Recordings refer to the buffers themselves."""

    def __init__(self, rig: Rig, *buffers: Buffer) -> None:
        super().__init__(rig, *buffers)
        self.sources = buffers


class Slots(Bound):
    """Recordings refer to slots. Buffer `i` of `n` is in slot `n - 1 - i`, so that the order of slots matters."""

    def __init__(self, rig: Rig, *buffers: Buffer) -> None:
        super().__init__(rig, *buffers)
        self.sources = tuple(reversed(range(len(buffers))))

    @property
    def table(self) -> tuple[Buffer, ...]:
        return tuple(reversed(self.buffers))


#: suffix of a case's name -> class that binds buffers in its recordings
BINDINGS: dict[str, type[Bound]] = {"direct": Direct, "slots": Slots}


def whole(buffer: Buffer) -> Range:
    """All of a buffer as a binding."""
    return buffer, 0, buffer.size
