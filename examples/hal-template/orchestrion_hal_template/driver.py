"""The driver `template`: memory is the host's, recordings are lists of steps, and one thread runs submitted work."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from orchestrion.hal import backend as hal
from orchestrion.hal.errors import DeviceOutOfMemory
from orchestrion.hal.timeline import SoftSemaphore, Worker

from .bytecode import Code, decode
from .lanes import Lanes

#: lanes that run at once, and registers of theirs that are held at once
MAX_LANES, MAX_HELD = 1 << 16, 1 << 24
Table = Sequence[hal.BackendBuffer]
Check = Callable[[], None]


class TemplateBuffer(hal.BackendBuffer):
    def __init__(self, host: hal.Bytes) -> None:
        self.host: hal.Bytes | None = host
        self.size = host.size

    def release(self) -> None:
        self.host = None


class TemplateExecutable(hal.BackendExecutable):
    def __init__(self, codes: list[Code], entries: tuple[hal.Entry, ...]) -> None:
        self.codes, self.entries = codes, entries

    def scratch_bytes(self, entry: int, parameters: bytes) -> int:
        return 8 * len(self.codes[entry].registers) * self.groups_at_once(entry) * self.size(entry)

    def size(self, entry: int) -> int:
        return prod(self.entries[entry].workgroup_size)

    def groups_at_once(self, entry: int) -> int:
        lanes = min(MAX_LANES, MAX_HELD // max(len(self.codes[entry].registers), 1))
        return max(1, lanes // self.size(entry))

    def run(self, entry: int, groups: int, memories: Sequence[hal.Bytes], parameters: bytes, check: Check) -> None:
        code, size, stride = self.codes[entry], self.size(entry), self.groups_at_once(entry)
        words = np.frombuffer(parameters, "<u4")
        with np.errstate(all="ignore"):
            for start in range(0, groups, stride):
                check()
                some = range(start, min(start + stride, groups))
                Lanes(code, memories, words, some, size, check).run(code.rows)

    def release(self) -> None:
        self.codes = []


class TemplateCommandBuffer(hal.BackendCommandBuffer):
    def __init__(self) -> None:
        self.steps: list[Callable[[Table, Check], None]] = []

    def dispatch(
        self,
        executable: hal.BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[hal.Binding],
        parameters: bytes,
    ) -> None:
        assert isinstance(executable, TemplateExecutable)

        def step(table: Table, check: Check) -> None:
            memories = [binding.memory(table) for binding in bindings]
            executable.run(entry, prod(groups), memories, parameters, check)

        self.steps.append(step)

    def copy(self, source: hal.Binding, target: hal.Binding) -> None:
        def step(table: Table, check: Check) -> None:
            target.memory(table)[:] = source.memory(table)

        self.steps.append(step)

    def fill(self, target: hal.Binding, pattern: bytes) -> None:
        def step(table: Table, check: Check) -> None:
            target.memory(table).reshape(-1, len(pattern))[:] = np.frombuffer(pattern, np.uint8)

        self.steps.append(step)

    def barrier(self) -> None:
        """Does nothing, because steps run one after the other."""

    def finish(self) -> None:
        return

    def release(self) -> None:
        self.steps.clear()


class TemplateQueue(hal.BackendQueue):
    def __init__(self) -> None:
        self.worker = Worker("orchestrion-template")

    def submit(
        self,
        batch: Sequence[hal.BackendWork],
        waits: Sequence[hal.Point],
        signals: Sequence[hal.Point],
        watcher: hal.Watcher | None = None,
    ) -> None:
        self.worker.submit(waits, partial(run, batch, watcher), signals)

    def execute_batch(self, batch: Sequence[hal.BackendWork], watcher: hal.Watcher | None = None) -> None:
        self.worker.drain()
        run(batch, watcher)

    def wait_idle(self) -> None:
        self.worker.drain()


def run(batch: Sequence[hal.BackendWork], watcher: hal.Watcher | None) -> None:
    check = (lambda: None) if watcher is None else watcher.check
    try:
        for commands, table in batch:
            assert isinstance(commands, TemplateCommandBuffer)
            for step in commands.steps:
                step(table, check)
    except MemoryError as error:
        raise DeviceOutOfMemory(f"the system has no more memory: {error}") from error


class TemplateDevice(hal.BackendDevice):
    compiles = False

    def __init__(self, info: hal.DeviceInfo) -> None:
        self.info = info
        self.queue = self.lanes = TemplateQueue()

    def allocate(self, size: int, use: hal.MemoryUse) -> TemplateBuffer:
        try:
            return TemplateBuffer(np.zeros(size, np.uint8))
        except (MemoryError, ValueError) as error:
            raise DeviceOutOfMemory(f"allocation of {size} bytes failed: {error}") from error

    def import_host(self, memory: hal.Bytes) -> TemplateBuffer:
        return TemplateBuffer(memory)

    def create_executable(self, format: str, payload: memoryview, entries: tuple[hal.Entry, ...]) -> TemplateExecutable:
        return TemplateExecutable(decode(payload, entries, self.info.limits.shared_memory_bytes), entries)

    def create_command_buffer(self, slots: int) -> TemplateCommandBuffer:
        return TemplateCommandBuffer()

    def create_semaphore(self, initial: int) -> SoftSemaphore:
        return SoftSemaphore(initial)

    def close(self) -> None:
        self.lanes.worker.close()


INFO = hal.DeviceInfo(
    driver="template",
    index=0,
    name="lanes in NumPy",
    vendor="Orchestrion",
    version=np.__version__,
    formats=("template-lanes",),
    verified_formats=frozenset({"template-lanes"}),
    features=frozenset({"int8", "int16", "int64", "float64", "robust", "template.lockstep"}),
    limits=hal.Limits(
        max_workgroup_count=(hal.NO_LIMIT, hal.NO_LIMIT, hal.NO_LIMIT),
        max_workgroup_size=1024,
        max_binding_length=hal.NO_LIMIT,
        max_bindings=64,
        max_parameter_bytes=128,
        shared_memory_bytes=32768,
        min_binding_alignment=16,
        host_import_alignment=1,
    ),
    memory_bytes=hal.NO_LIMIT,
)


class TemplateDriver(hal.BackendDriver):
    name = "template"
    api_version = (1, 0)
    forks = True

    def devices(self) -> list[hal.DeviceInfo]:
        return [INFO]

    def open(self, info: hal.DeviceInfo) -> TemplateDevice:
        return TemplateDevice(info)
