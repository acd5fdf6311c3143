"""The threads that run workgroups: one pool per process, which all devices of the driver share.

- Helpers are daemon threads of Python that live in native code (`worker.ll`), without the interpreter lock. They start
  with the first device that may use them. A pool of n threads has n - 1 helpers, because the caller works too.
- Helpers are bound to one core each, from the second on: a thread that is woken otherwise tends to start on the core of
  the thread that woke it, and waits for it there.
- A helper has a stack on which every entry can run, or takes no work.
- The memory of a pool and the worker's code are never freed: a thread that does not stop at exit may still use them.
- At exit, helpers return before the interpreter ends its threads. Calls of threads that are not daemons go on, alone.
  Then no call continues: it fails, and the exit waits until it has left native code, since the memory of buffers goes
  away next.
- A forked process has no helpers. It makes a pool of its own.
"""

import atexit
import ctypes
import os
import threading
import time
from functools import cache, partial
from importlib.resources import files

import orchestrion.hal.timeline  # noqa: F401  its function at exit waits for work that `_halt` ends, so it registers first
from orchestrion.hal.fork import after_fork, new_lock
from orchestrion.hal.waiting import start_thread
from orchestrion.schema import native_image

from . import layout, stack
from .code_memory import ANONYMOUS, READ_WRITE, CodeMemory, libc, map_memory
from .processor import architecture

#: nanoseconds that a waiting thread looks for work before it sleeps: longer than most callers need from one call to the
#: next
SPIN = 200_000
#: most seconds that the exit of the process waits for native code to return
EXIT_SECONDS = 10.0


class Worker:
    """The code of `worker.ll` in memory: functions to call, and the addresses of its entries for copies and fills."""

    def __init__(self) -> None:
        name = f"worker.{architecture()}.img"
        image = native_image.decode((files("orchestrion.hal.cpu") / name).read_bytes())
        self._memory = CodeMemory(image.code)
        places = [self._memory.address + entry.offset for entry in image.entries]
        self.replay = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(places[layout.REPLAY])
        self.helper = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)(places[layout.HELPER])
        self.stop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(places[layout.STOP])
        self.copy = places[layout.COPY]
        self.fill = places[layout.FILL]


@cache
def worker() -> Worker:
    return Worker()


class Pool:
    """Helpers, and the memory by which they are given work. `address` is the first byte of that memory."""

    def __init__(self) -> None:
        size = ctypes.sizeof(layout.PoolWords)
        self.address = map_memory(size, READ_WRITE, ANONYMOUS)
        self.words = layout.PoolWords.from_address(self.address)
        for name in ("syscall", "clock_gettime", "memmove", "sched_getcpu"):
            setattr(self.words, name, ctypes.cast(getattr(libc, name), ctypes.c_void_p).value)
        self._lock = new_lock()
        self._started = 0

    def grow(self, threads: int) -> None:
        """Have enough helpers for this number of threads."""
        cores = sorted(os.sched_getaffinity(0))
        with self._lock:
            if self.words.stop:
                return
            for index in range(self._started + 1, threads):
                core = cores[index % len(cores)]
                start_thread(partial(self._live, index, core), f"orchestrion-cpu-{index}")
                self._started = index
            _set_cores(
                self.words.home, set(cores) - {cores[index % len(cores)] for index in range(1, self._started + 1)}
            )
            self.words.spin = SPIN if self._started < len(cores) else 0

    def stop(self) -> None:
        """Have the helpers return. From now on every caller works alone."""
        worker().stop(self.address)
        _wait_until_zero(self.words, "helpers")

    def halt(self) -> None:
        """End the calls that run, between two chunks, and refuse others."""
        self.words.halt = 1
        _wait_until_zero(self.words, "callers")

    def _live(self, index: int, core: int) -> None:
        if 0 < stack.size() < stack.ENOUGH:
            return
        try:
            os.sched_setaffinity(0, {core})
        except OSError:
            pass  # the process may have lost the core; the helper runs anywhere
        worker().helper(self.address, index)


def _set_cores(words: ctypes.Array[ctypes.c_uint64], cores: set[int]) -> None:
    """Store a set of cores as bits. A core that has no bit is left out."""
    bits = sum(1 << core for core in cores if core < 64 * len(words))
    for word in range(len(words)):
        words[word] = bits >> 64 * word & (1 << 64) - 1


def _wait_until_zero(words: layout.PoolWords, field: str) -> None:
    end = time.monotonic() + EXIT_SECONDS
    while getattr(words, field) and time.monotonic() < end:
        time.sleep(0.0002)


_pools: list[Pool] = []
_pools_lock = new_lock()


def shared_pool(threads: int) -> Pool:
    """The pool of this process, with helpers for this number of threads."""
    with _pools_lock:
        if not _pools:
            _pools.append(Pool())
        pool = _pools[0]
    pool.grow(threads)
    return pool


def _stop() -> None:
    for pool in _pools:
        pool.stop()


def _halt() -> None:
    for pool in _pools:
        pool.halt()


@after_fork
def _forget(parent: int) -> None:
    _pools.clear()


threading._register_atexit(_stop)  # type: ignore[attr-defined]  # atexit comes too late: threads are joined before it
atexit.register(_halt)
