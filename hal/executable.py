"""Code on a device: executables, and the cache that builds each one once, several at the same time.

The front checks the format, the policy on native code, and the entries' needs against the device's limits. The driver
verifies and builds. Executables are immutable, and used by all shares of a device.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.schema.lru_cache import LruCache
from orchestrion.schema.rows import ACCESSES

from .backend import BackendExecutable, Entry, Limits
from .errors import InvalidArgument, Unsupported
from .fork import new_lock
from .lifetime import DeviceState, ResourceRef

if TYPE_CHECKING:
    from .device import Device

#: executables kept in the cache although no program may use them
MAX_CACHED = 1024


class Build(NamedTuple):
    """How an executable was obtained. `shared`: it was in this process's cache already. `helper`: the seconds that a
    helper process took to build it first; 0 if an earlier build is on record, None if no helper was required. `cached`:
    see `BackendExecutable`.
    """

    shared: bool
    helper: float | None
    cached: bool | None


class Executable:
    """Code with its entries. Made by `ExecutableCache.get`, `Device.create_executable` or `deferred`.

    `backend` and `ref` are the driver's object and its owner; `build` says how they were obtained. A deferred
    executable makes them on first access, which raises the errors of `Device.create_executable`.
    """

    __slots__ = ("_make", "backend", "build", "device", "device_state", "entries", "ref")

    backend: BackendExecutable
    build: Build
    ref: ResourceRef

    def __init__(self, device: Device, entries: tuple[Entry, ...]) -> None:
        self.device = device
        self.device_state: DeviceState | None = device.device_state
        self.entries = entries
        self._make: Callable[[], Executable] | None = None
        device.live["executable"] += 1

    @classmethod
    def of(
        cls, device: Device, backend: BackendExecutable, ref: ResourceRef, entries: tuple[Entry, ...], build: Build
    ) -> Executable:
        """Returns an executable over the driver's object."""
        made = cls(device, entries)
        made.backend, made.ref, made.build = backend, ref, build
        return made

    @classmethod
    def deferred(cls, device: Device, entries: tuple[Entry, ...], make: Callable[[], Executable]) -> Executable:
        """Returns an executable that `make` builds when it is first used."""
        made = cls(device, entries)
        made._make = make
        return made

    @property
    def is_built(self) -> bool:
        """Whether the driver has built the code."""
        return self._make is None

    def build_now(self) -> None:
        """Build deferred code, unless it is built. Several threads may call this."""
        make = self._make
        if make is None:
            return
        self.check_released()
        built = make()
        self.backend, self.ref, self.build = built.backend, built.ref, built.build
        self._make = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Builds the code: the attribute exists only on built code."""
            if name in ("backend", "build", "ref") and not self.is_built:
                self.build_now()
                return getattr(self, name)
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def check_released(self) -> None:
        """Raises InvalidArgument if it was released."""
        if self.device_state is None:
            raise InvalidArgument("executable was released")

    def check(self, state: DeviceState) -> None:
        self.check_released()
        if self.device_state is not state:
            raise InvalidArgument(f"executable of device {self.device.info.id} in a recording of another device")

    def release(self) -> None:
        """End the use of the executable. A second call does nothing."""
        state = self.device_state
        if state is not None:
            self._end()
            state.collect()

    def _end(self) -> None:
        self.device.live["executable"] -= 1
        self.device_state = None
        if self.is_built:
            del self.backend, self.ref

    def __del__(self) -> None:
        if hasattr(self, "_make") and self.device_state is not None:
            self._end()


#: format, entries and SHA-256 of the payload
Key = tuple[str, tuple[Entry, ...], bytes]
Built = tuple[BackendExecutable, ResourceRef]


class ExecutableCache:
    """The built executables of one open device, by content. All shares use it; it is emptied when the last share
    closes.

    Several threads build different code at the same time. A thread that requests code which another thread is building
    waits for it, and builds it itself if that fails. The most recently requested executables are kept even if unused,
    the others only while in use, because a process may load modules without end.
    """

    __slots__ = ("__weakref__", "_building", "_built", "_lock")

    def __init__(self) -> None:
        self._built: LruCache[Key, Built] = LruCache()
        #: the lock of each build; it lives while a thread builds or waits
        self._building: weakref.WeakValueDictionary[Key, Lock] = weakref.WeakValueDictionary()
        self._lock = new_lock()  #: guards both, and is never held while code is built

    def get(
        self, device: Device, format: str, payload: memoryview, entries: tuple[Entry, ...], digest: bytes | None
    ) -> Executable:
        """Returns the executable, built unless it is in the cache. Calls `Device.trial_build` before the build."""
        if not isinstance(payload.obj, bytes):  # it may lie in a mapped file, which others may write to
            payload = memoryview(bytes(payload))
        key = format, entries, hashlib.sha256(payload).digest()
        helper = None
        with self._lock:
            found = earlier = self._built.use(key)
        if found is None:
            check_entries(entries, device.info.limits)
            helper = device.trial_build(format, payload, entries, digest)
            with self._build_lock(key):
                started = perf_counter()
                with self._lock:
                    earlier = self._built.use(key)
                found = earlier or self._build(device, key, format, payload, entries)
                seconds = perf_counter() - started
            if helper is None and device.device_state.backend.compiles and device.builds is not None:
                device.builds.count(payload.nbytes, seconds)
        return Executable.of(device, *found, entries, Build(earlier is not None, helper, found[0].cached))

    def _build_lock(self, key: Key) -> Lock:
        """The lock that a thread holds while it builds `key`."""
        with self._lock:
            return self._building.setdefault(key, new_lock())

    def _build(self, device: Device, key: Key, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> Built:
        backend = device.device_state.backend.create_executable(format, payload, entries)
        built = backend, ResourceRef(device.device_state, backend)
        with self._lock:
            device.statistics.executables_created += 1
            self._built[key] = built
            if len(self._built) > MAX_CACHED:
                self._built.evict()
        return built

    def release_unused(self, own: bool = False) -> bool:
        """Drop the executables that no handle, recording or work in flight uses. Returns whether there were any. See
        `memory_pressure.py`.
        """
        with self._lock:
            before = len(self._built)
            for key in [*self._built]:
                backend, ref = self._built.pop(key)
                used = weakref.ref(ref)
                del ref  # the last reference, unless somebody uses it
                again = used()
                if again is not None:
                    self._built[key] = backend, again
            return len(self._built) < before

    def clear(self) -> None:
        with self._lock:
            self._built.clear()


def check_entries(entries: tuple[Entry, ...], limits: Limits) -> None:
    """Raises InvalidArgument for an inconsistent entry, Unsupported for one above the device's limits."""
    for row in entries:
        x, y, z = row.workgroup_size
        if min(row.workgroup_size) < 1 or row.parameter_words < 0:
            raise InvalidArgument(
                f"entry {row.name}: workgroup size {row.workgroup_size} (expected 1 or more in each dimension), "
                f"{row.parameter_words} parameter words (expected 0 or more)"
            )
        for access, least in row.bindings:
            if access not in ACCESSES or least < 0:
                raise InvalidArgument(
                    f"entry {row.name}: binding with access {access!r} (expected one of {', '.join(ACCESSES)}) and "
                    f"length {least} (expected 0 or more)"
                )
        _within(row, "invocations in a workgroup", x * y * z, limits.max_workgroup_size)
        _within(row, "bindings", len(row.bindings), limits.max_bindings)
        _within(row, "bytes of parameters", 4 * row.parameter_words, limits.max_parameter_bytes)
        _within(row, "bytes in one binding", max((n for _, n in row.bindings), default=0), limits.max_binding_length)


def _within(row: Entry, what: str, value: int, limit: int) -> None:
    if value > limit:
        raise Unsupported(f"entry {row.name}: {value} {what}, the device's limit is {limit}")
