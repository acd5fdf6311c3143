"""A driver as version 1.0 of the driver interface asks for it: the abstract methods, and nothing more.

It is never changed, so that it fails where a later version of the interface breaks drivers of version 1.0: an abstract
method that was added, an argument, a method without a default that the front calls.
"""

import numpy as np

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendDevice,
    BackendDriver,
    BackendExecutable,
    BackendQueue,
    Conformance,
    DeviceInfo,
    Limits,
)
from orchestrion.hal.errors import DeviceOutOfMemory
from orchestrion.hal.timeline import SoftSemaphore, Worker


class Buffer(BackendBuffer):
    def __init__(self, host):
        self.host, self.size = host, host.size

    def release(self):
        self.host = None


class Executable(BackendExecutable):
    def __init__(self, entries):
        self.entries = entries

    def release(self):
        pass


class CommandBuffer(BackendCommandBuffer):
    def __init__(self):
        self.steps = []

    def dispatch(self, executable, entry, groups, bindings, parameters):
        pass

    def copy(self, source, target):
        self.steps.append(lambda table: np.copyto(memory(target, table), memory(source, table)))

    def fill(self, target, pattern):
        words = np.frombuffer(pattern, np.uint8)
        self.steps.append(lambda table: np.copyto(memory(target, table).reshape(-1, len(pattern)), words))

    def barrier(self):
        pass

    def finish(self):
        pass

    def release(self):
        pass


def memory(binding, table):
    buffer = table[binding.source] if isinstance(binding.source, int) else binding.source
    return buffer.host[binding.offset : binding.offset + binding.length]


class Queue(BackendQueue):
    def __init__(self):
        self.worker = Worker("api-1-0")

    def submit(self, batch, waits, signals, watcher=None):
        self.worker.submit(waits, lambda: self.run(batch), signals)

    def execute_batch(self, batch, watcher=None):
        self.worker.drain()
        self.run(batch)

    def run(self, batch):
        for commands, table in batch:
            for step in commands.steps:
                step(table)

    def wait_idle(self):
        self.worker.drain()


class Device(BackendDevice):
    def __init__(self, info):
        self.info, self.queue = info, Queue()

    def allocate(self, size, use):
        try:
            return Buffer(np.zeros(size, np.uint8))
        except (MemoryError, ValueError) as error:
            raise DeviceOutOfMemory(f"no memory for {size} bytes") from error

    def import_host(self, memory):
        return None

    def create_executable(self, format, payload, entries):
        return Executable(entries)

    def create_command_buffer(self, slots):
        return CommandBuffer()

    def create_semaphore(self, initial):
        return SoftSemaphore(initial)

    def close(self):
        self.queue.worker.close()


class Driver(BackendDriver):
    name = "api-1-0"
    conformance = Conformance(computes=False)

    def devices(self):
        limits = Limits(
            max_workgroup_count=(65535, 65535, 65535),
            max_workgroup_size=1024,
            max_binding_length=1 << 40,
            max_bindings=64,
            max_parameter_bytes=128,
            shared_memory_bytes=32768,
            min_binding_alignment=16,
            host_import_alignment=1,
        )
        return [
            DeviceInfo(
                driver="api-1-0",
                index=0,
                name="version 1.0",
                vendor="a test",
                version="1",
                formats=("spirv",),
                features=frozenset(),
                limits=limits,
                memory_bytes=1 << 40,
            )
        ]

    def open(self, info):
        return Device(info)
