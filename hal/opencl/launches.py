"""Compiles in advance the code that PoCL compiles at the first launch of a kernel (docs/building-code.md).

PoCL compiles a kernel for its workgroup size, and separately for grids below and above `LARGE_GRID` work-items per
dimension. It compiles when the launch starts, one kernel at a time per process, and stores the result on disk. So each
kernel is launched once over scratch memory, with the parameters and the binding lengths of a future launch, and the
fewest workgroups that use the same code. If it pays, child processes launch some of the kernels first
(`launch_process.py`); this process then finds their code on disk.

- A kernel stays within its bindings, whatever they contain. Bindings that are only read contain zeros here.
- An entry in the user's cache records that the code is on disk already; then no child is started.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyopencl as cl

from orchestrion.hal.backend import Entry
from orchestrion.hal.cache import Cache
from orchestrion.hal.errors import DeviceOutOfMemory
from orchestrion.hal.fork import new_lock
from orchestrion.hal.parallel_jobs import HelperFailed, Progress, run_jobs

from .api import Api, P, Sizes
from .failures import check, translate
from .launch_helpers import Helper, helpers

if TYPE_CHECKING:
    from .executable import OpenCLExecutable
    from .recording import Dispatch

#: work-items in a dimension from which on PoCL compiles different code
LARGE_GRID = 1 << 16
#: bytes of source of uncompiled kernels from which on child processes pay; about ten kernels
MIN_HELPED_SOURCE_BYTES = 96 << 10
#: alignment of scratch memory in bytes
ALIGNMENT = 64


class Launch(NamedTuple):
    """A launch of an entry that makes the driver compile its code. `lengths` are the bytes of its bindings."""

    executable: OpenCLExecutable
    entry: int
    groups: tuple[int, int, int]
    lengths: tuple[int, ...]
    parameters: bytes

    @property
    def row(self) -> Entry:
        """The entry."""
        return self.executable.entries[self.entry]

    @property
    def code(self) -> tuple[int, bool]:
        """Identifies, within an executable, the code that the driver compiles for this launch."""
        return self.entry, prod(self.groups) > 1


def compiles_at_launch(device: cl.Device) -> bool:
    """Whether the driver compiles a kernel at its first launch."""
    return "Portable Computing Language" in device.platform.name


def launch_like(dispatch: Dispatch) -> Launch:
    """Returns the smallest launch that uses the same code as a recorded dispatch."""
    executable, entry, groups = dispatch.executable, dispatch.entry, dispatch.groups
    sizes = executable.entries[entry].workgroup_size
    few = [
        -(-LARGE_GRID // size) if count * size >= LARGE_GRID else 1 for count, size in zip(groups, sizes, strict=True)
    ]
    lengths = tuple([binding.length for binding in dispatch.bindings])
    return Launch(executable, entry, (few[0], few[1], few[2]), lengths, dispatch.parameters)


class Launcher:
    """Launches kernels of one open device in advance."""

    def __init__(self, api: Api, context: cl.Context, device: cl.Device, index: int) -> None:
        self._api = api
        self._context = context
        self._device = device
        self._index = index
        self._cache = Cache("opencl-launches")
        self._building = new_lock()  #: held by the thread that builds a program

    @contextmanager
    def building(self, payload: memoryview, entries: tuple[Entry, ...]) -> Iterator[None]:
        """A context manager around the build of a program. PoCL builds one program at a time per process. While another
        thread builds, a child builds this program, if it is large and not on disk.
        """
        is_worth_it = payload.nbytes >= MIN_HELPED_SOURCE_BYTES and not self._is_known(payload)
        if is_worth_it:
            for helper in self._helpers():
                helper.start()
        taken = self._building.acquire(blocking=False)
        try:
            if not taken and is_worth_it:
                self._build_elsewhere(payload, entries)
            if not taken:
                taken = self._building.acquire()
            yield
        finally:
            if taken:
                self._building.release()

    def launch(self, wanted: Iterable[Launch], progress: Progress) -> None:
        """Launch what was not launched before. Thread-safe; raises the errors of a launch."""
        jobs: dict[tuple[OpenCLExecutable, tuple[int, bool]], Launch] = {}
        for one in wanted:
            if one.code not in one.executable.launched:
                jobs.setdefault((one.executable, one.code), one)
        if not jobs:
            return
        executables = dict.fromkeys([executable for executable, _ in jobs])
        unknown = [executable for executable in executables if not self._is_known(executable.payload)]
        costs = {executable: _costs(executable) for executable in executables}
        ordered = sorted(jobs.values(), key=lambda job: -costs[job.executable][job.entry])
        much = (
            sum(costs[job.executable][job.entry] for job in ordered if job.executable in unknown)
            >= MIN_HELPED_SOURCE_BYTES
        )
        with _LaunchScratch(self._api, self._context, self._device, ordered) as scratch:
            run_jobs(ordered, scratch.launch, self._helpers() if much else (), progress)
        for executable in unknown:
            self._cache.put(b"launched", *self._key(executable.payload))

    def launch_here(self, launch: Launch) -> None:
        """Launch in this process."""
        with _LaunchScratch(self._api, self._context, self._device, [launch]) as scratch:
            scratch.launch(launch)

    def _build_elsewhere(self, payload: memoryview, entries: tuple[Entry, ...]) -> None:
        for helper in self._helpers():
            try:
                helper.build(payload, entries)
            except HelperFailed:  # the launch will report it again
                continue
            return

    def _helpers(self) -> Sequence[Helper]:
        """The child processes; empty if PoCL's cache is disabled, or without a second processor."""
        if os.environ.get("POCL_KERNEL_CACHE") == "0":
            return ()
        return helpers(self._index)

    def _is_known(self, payload: memoryview) -> bool:
        return self._cache.get(*self._key(payload)) is not None

    def _key(self, payload: memoryview) -> tuple[str | bytes, ...]:
        device = self._device
        names = device.platform.version, device.name, device.driver_version
        return *names, hashlib.sha256(payload).digest()


def _costs(executable: OpenCLExecutable) -> list[int]:
    """Bytes of source of each entry: an estimate of its compile time."""
    source = bytes(executable.payload)
    places = [source.find(f"void {entry.name}(".encode()) for entry in executable.entries]
    ends = [*sorted(places)[1:], len(source)]
    following = dict(zip(sorted(places), ends, strict=True))
    return [following[place] - place for place in places]


class _LaunchScratch:
    """Memory and a queue for launches whose results are not read."""

    def __init__(self, api: Api, context: cl.Context, device: cl.Device, jobs: Sequence[Launch]) -> None:
        self._calls = api.calls
        read = written = 1
        for job in jobs:
            for length, (access, _) in zip(job.lengths, job.row.bindings, strict=True):
                read, written = (max(read, length), written) if access == "read" else (read, max(written, length))
        try:
            self._queue = cl.CommandQueue(context, device)
            self._zeros, self._written = _zeros(context, read), _zeros(context, written)
        except MemoryError:
            raise DeviceOutOfMemory(f"the machine has no room for {read + written} bytes of launches") from None
        except cl.Error as error:
            raise translate("memory for first launches", error) from error

    def __enter__(self) -> _LaunchScratch:
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.finish()

    def launch(self, job: Launch) -> None:
        """Launch, and return when it is over."""
        row = job.row
        kernel = job.executable.kernel(row)
        try:
            for position, (access, _) in enumerate(row.bindings):
                kernel.set_memory(position, self._zeros if access == "read" else self._written)
            kernel.set_words(len(row.bindings), job.parameters)
            total = Sizes(*[count * size for count, size in zip(job.groups, row.workgroup_size, strict=True)])
            where = P(self._queue.int_ptr), P(kernel.handle), 3, None, total, Sizes(*row.workgroup_size)
            check(self._calls.clEnqueueNDRangeKernel(*where, 0, None, None), f"the first launch of {row.name}")
            check(self._calls.clFinish(P(self._queue.int_ptr)), f"the first launch of {row.name}", waiting=True)
        finally:
            kernel.release()
        job.executable.launched.add(job.code)


def _zeros(context: cl.Context, size: int) -> cl.Buffer:
    """Zeros that take no memory until they are written."""
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    return cl.Buffer(context, flags, hostbuf=memory[start : start + size])
