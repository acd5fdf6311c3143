"""Executables that call library functions. Their code is tensor bytecode, which the interpreter of the reference device
runs.

To the native replay a call is a dispatch like others. Its code is a function of ctypes, which takes the interpreter
lock. It has one workgroup, and the replay gives a single workgroup to the thread that runs the recording. So a failed
call finds its run in a variable of the thread. It stores its exception there, and ends the time slice of the run.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations

import numpy as np

from orchestrion.hal.backend import Binding, Bytes, Entry, Watcher
from orchestrion.hal.errors import DeviceOutOfMemory
from orchestrion.hal.reference.executable import Code, ReferenceExecutable, words_of

from . import layout

#: the type of an entry of native code: arguments, first workgroup, end of the workgroups
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)


class LibraryExecutable(ReferenceExecutable):
    """Entries that call library functions."""

    __slots__ = ()

    def __init__(self, payload: memoryview, entries: tuple[Entry, ...]) -> None:
        """Raises ModuleError if the payload is malformed, LibraryUnavailable if a function does not exist."""
        super().__init__(Code(payload, _never), entries)


class LibraryCall:
    """A recorded dispatch of an entry. `address`: its code, which is valid as long as this object lives."""

    __slots__ = ("_bindings", "_entry", "_executable", "_function", "_layout", "address")

    def __init__(self, executable: LibraryExecutable, entry: int, bindings: Sequence[Binding]) -> None:
        self._executable, self._entry, self._bindings = executable, entry, bindings
        words = executable.entries[entry].parameter_words
        self._layout = struct.Struct(f"<{len(bindings)}Q{4 * words}s")
        self._function = _ENTRY(self._run)
        self.address: int = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _run(self, arguments: int, first: int, end: int) -> None:
        try:
            self._call(arguments)
        except MemoryError as error:
            _runs.failed(DeviceOutOfMemory(f"the system has no more memory: {error}"))
        except BaseException as error:  # ctypes would print and forget it
            _runs.failed(error)

    def _call(self, arguments: int) -> None:
        *addresses, parameters = self._layout.unpack(ctypes.string_at(arguments, self._layout.size))
        words, entry = words_of(parameters), self._executable.entries[self._entry]
        if words:
            self._executable.check(self._entry, words, entry, self._bindings)
        memories = [_memory(at, row.length) for at, row in zip(addresses, self._bindings, strict=True)]
        code = self._executable.entry(self._entry, _overlap(memories, entry), words)
        registers = code.bind([(memory, 0) for memory in memories])
        for step in code.steps:
            step(registers)


class _Runs(threading.local):
    """The run of a recording in this thread, and the first exception of its calls."""

    state: layout.State | None = None
    error: BaseException | None = None

    def failed(self, error: BaseException) -> None:
        """The replay returns before its next command."""
        self.error = self.error or error
        if self.state is not None:
            self.state.slice_start, self.state.credit = 0, 1


_runs = _Runs()


class _CallWatcher:
    """Raises what a call raised, then what another watcher raises."""

    def __init__(self, watcher: Watcher | None) -> None:
        self._watcher = watcher

    def check(self) -> None:
        if _runs.error is not None:
            raise _runs.error
        if self._watcher is not None:
            self._watcher.check()


@contextmanager
def running(state: layout.State, watcher: Watcher | None) -> Iterator[Watcher]:
    """A run of a recording with library calls in this thread. Its watcher, which is to be called between time slices,
    raises what a call raised. A function may itself run a recording.
    """
    outer = _runs.state, _runs.error
    _runs.state, _runs.error = state, None
    try:
        yield _CallWatcher(watcher)
    finally:
        _runs.state, _runs.error = outer


def _memory(address: int, length: int) -> Bytes:
    """The bytes at an address."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * length).from_address(address))


def _overlap(memories: Sequence[Bytes], entry: Entry) -> bool:
    """Whether a written binding overlaps another one."""
    rows = zip(memories, [access != "read" for access, _ in entry.bindings], strict=True)
    return any((w or v) and np.may_share_memory(x, y) for (x, w), (y, v) in combinations(rows, 2))


def _never() -> None:
    """Library calls are not interrupted."""
