"""The CPU device of another architecture: its machine code runs under qemu-user, everything else in this process.

Within `emulated(threads)` the driver `cpu` has a device for aarch64. Recordings are made as for any device of the
driver. What native code reads or writes (code, recordings, the pool, buffers) lies in memory that this process and the
emulator (`emulator.c`) map at the same address. The worker that replays recordings is the driver's own image for
aarch64; helpers are threads of the emulator. Buffers end at guard pages. Memory is not reused before the end of the
block.
"""

import ctypes
import functools
import itertools
import mmap
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from orchestrion.hal.cpu import command_buffer, executable, layout, pool, processor, profiling, program
from orchestrion.hal.cpu.buffer import CpuBuffer
from orchestrion.hal.cpu.code_memory import READ_WRITE, libc
from orchestrion.hal.cpu.device import CpuDevice
from orchestrion.hal.cpu.program import Program
from orchestrion.hal.errors import DeviceOutOfMemory
from orchestrion.schema import native_image

ARCHITECTURE = "aarch64"
EMULATOR, COMPILER = "qemu-aarch64", "aarch64-linux-gnu-gcc"
#: operations of `emulator.c`, and its functions of the C library by number
LOOK_UP, PROTECT, CALL, START = range(4)
FUNCTIONS = ("syscall", "clock_gettime", "memmove", "sched_getcpu")
#: bytes of shared memory, of which only those that are used are allocated; they begin at multiples of it from `BASE` on
SIZE = 1 << 34
BASE = 0x2000_0000_0000
ALIGNMENT = 64

_numbers = itertools.count()


def need_emulator() -> None:
    """Skips the test where the emulator or the compiler for it is missing."""
    for tool, package in ((EMULATOR, "qemu-user"), (COMPILER, "gcc-aarch64-linux-gnu and libc6-dev-arm64-cross")):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (`make drivers` installs Debian's {package})")


@functools.cache
def _build() -> Path:
    """The emulator's program, compiled once per process."""
    folder = tempfile.TemporaryDirectory(prefix="orchestrion-emulator-")
    _build_folders.append(folder)
    target = Path(folder.name) / "emulator"
    source = Path(__file__).with_name("emulator.c")
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-pthread"]
    subprocess.run([COMPILER, *flags, source, "-o", target], check=True)
    return target


_build_folders: list[tempfile.TemporaryDirectory[str]] = []


class Emulator:
    """A process of the emulator, and the memory that it shares with this one."""

    def __init__(self) -> None:
        self.base = BASE + SIZE * next(_numbers)
        self._used = 0
        file = os.memfd_create("orchestrion-emulated")
        try:
            os.truncate(file, SIZE)
            flags = mmap.MAP_SHARED | 0x100000  # MAP_FIXED_NOREPLACE
            address = libc.mmap(self.base, SIZE, READ_WRITE, flags, file, 0)
            assert address == self.base, f"mapped at {address}, not at {self.base}"
            self._process = subprocess.Popen(
                [EMULATOR, _build(), str(file), str(self.base), str(SIZE)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[file],
            )
        finally:
            os.close(file)
        self._lock = pool.new_lock()
        self._closed = False

    def order(self, operation: int, *words: int) -> int:
        """The emulator's answer to an order; 0 if it is closed, as for helpers of the pool that start late. Raises
        AssertionError if it ended by itself: machine code crashed.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            if self._closed:
                return 0
            try:
                self._process.stdin.write(np.array([operation, *words, 0, 0, 0][:4], np.uint64).tobytes())
                self._process.stdin.flush()
                answer = self._process.stdout.read(8)
            except BrokenPipeError:
                answer = b""
        assert len(answer) == 8, f"the emulator ended with status {self._process.wait()}"
        return int.from_bytes(answer, "little", signed=True)

    def allocate(self, size: int, alignment: int = ALIGNMENT) -> np.ndarray:
        """Zeroed shared memory. Raises DeviceOutOfMemory."""
        start = -(-self._used // alignment) * alignment
        if size > SIZE - start:
            raise DeviceOutOfMemory(f"allocation of {size} bytes, the emulator has {SIZE - start} left")
        self._used = start + size
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(self.base + start))

    def store(self, data: Any, alignment: int = ALIGNMENT) -> np.ndarray:
        """Shared memory that holds a copy of `data`."""
        view = np.frombuffer(data, np.uint8)
        memory = self.allocate(view.size, alignment)
        memory[:] = view
        return memory

    def store_code(self, code: Any) -> int:
        """The address of a copy of machine code that can be called."""
        address: int = self.store(code, native_image.PAGE).ctypes.data
        self.allocate(0, native_image.PAGE)
        self.order(PROTECT, address, len(code), True)
        return address

    def allocate_guarded(self, size: int) -> np.ndarray:
        """Zeroed shared memory in front of a page that native code may not touch."""
        inner = -(-size // native_image.PAGE) * native_image.PAGE
        memory = self.allocate(inner + native_image.PAGE, native_image.PAGE)
        self.order(PROTECT, memory.ctypes.data + inner, native_image.PAGE, False)
        return memory[inner - size : inner]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            self._closed = True
            self._process.kill()
            self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        libc.munmap(self.base, SIZE)


class EmulatedWorker:
    """`pool.Worker` in the emulator. `helper` returns when its thread has started."""

    def __init__(self, emulator: Emulator) -> None:
        payload = (files("orchestrion.hal.cpu") / f"worker.{ARCHITECTURE}.img").read_bytes()
        image = native_image.decode(payload)
        start = emulator.store_code(image.code)
        places = [start + entry.offset for entry in image.entries]
        self.replay = functools.partial(emulator.order, CALL, places[layout.REPLAY])
        self.helper = functools.partial(emulator.order, START, places[layout.HELPER])
        self.stop = functools.partial(emulator.order, CALL, places[layout.STOP])
        self.copy = places[layout.COPY]
        self.fill = places[layout.FILL]


class _Memory:
    """Makes the structures of the driver in the emulator's memory."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator

    def numpy(self) -> SimpleNamespace:
        """NumPy, with new arrays in shared memory."""

        def zeros(shape: int, dtype: Any) -> np.ndarray:
            return self.emulator.allocate(shape * np.dtype(dtype).itemsize).view(dtype)

        return SimpleNamespace(**{**vars(np), "empty": zeros, "zeros": zeros})

    def code(self, code: Any, sealed: bool = True) -> SimpleNamespace:
        return SimpleNamespace(address=self.emulator.store_code(code), release=lambda: None)

    def buffer(self, cls: type[CpuBuffer], size: int, limit: int) -> CpuBuffer:
        if size > limit:
            raise DeviceOutOfMemory(f"allocation of {size} bytes, the device has {limit}")
        return cls(self.emulator.allocate_guarded(size))

    def map(self, size: int, protection: int, flags: int, file: int = -1) -> int:
        address: int = self.emulator.allocate(size, native_image.PAGE).ctypes.data
        return address

    def program(self, *arguments: Any) -> Program:
        """A program whose state, patches and table are in shared memory."""
        made = Program(*arguments)
        patches = self.emulator.store(made._patches.tobytes())
        table = self.emulator.allocate(ctypes.sizeof(made._addresses))
        made._addresses = type(made._addresses).from_address(table.ctypes.data)
        made._state.patches, made._state.table = patches.ctypes.data, table.ctypes.data
        made._state_address = self.emulator.store(bytes(made._state)).ctypes.data
        made._state = layout.State.from_address(made._state_address)
        return made


@contextmanager
def emulated() -> Iterator[None]:
    """The driver `cpu` finds an aarch64 processor within this block. Its devices must be closed before the end."""
    emulator = Emulator()
    memory = _Memory(emulator)
    worker = EmulatedWorker(emulator)
    library = SimpleNamespace(
        **{name: ctypes.c_void_p(emulator.order(LOOK_UP, number)) for number, name in enumerate(FUNCTIONS)}
    )
    with ExitStack() as stack:
        stack.callback(emulator.close)
        stack.enter_context(patch.dict(processor.ARCHITECTURES, {os.uname().machine: ARCHITECTURE}))
        stack.enter_context(patch.object(pool, "_pools", []))
        stack.enter_context(patch.object(pool, "map_memory", memory.map))
        stack.enter_context(patch.object(pool, "libc", library))
        for module in (pool, program, command_buffer):
            stack.enter_context(patch.object(module, "worker", lambda: worker))
        for module in (program, profiling):
            stack.enter_context(patch.object(module, "np", memory.numpy()))
        stack.enter_context(patch.object(program, "Program", memory.program))
        stack.enter_context(patch.object(program.stack, "lowest_address", lambda: 0))  # code runs on the emulator's
        stack.enter_context(patch.object(executable, "CodeMemory", memory.code))
        for allocate in ("allocate", "allocate_pages"):
            stack.enter_context(patch.object(CpuBuffer, allocate, classmethod(memory.buffer)))
        stack.enter_context(patch.object(CpuDevice, "import_host", lambda device, data: None))
        yield
