"""A driver that fails on purpose: the n-th call that the front makes of it, once. Everything else is the driver's own.

- The methods are those of the interface (`hal/backend.py`): one that is added there is covered from then on, unless it
  stands in `NO_CALL`.
- Counted are calls of the front alone, not those that a driver makes of itself, nor those of its own threads.
- It also watches what the front promises a driver: every object is released once, and no buffer while work that was
  submitted with it in a slot is under way.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from inspect import isfunction
from typing import Any, NamedTuple

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendDevice,
    BackendDriver,
    BackendExecutable,
    BackendInstance,
    BackendQueue,
    BackendSemaphore,
    DeviceInfo,
    Point,
)
from orchestrion.hal.errors import DeviceLost, DeviceOutOfMemory, HalError, InternalError

#: what a driver's objects are
OBJECTS: tuple[type, ...] = (BackendBuffer, BackendExecutable, BackendCommandBuffer, BackendSemaphore)
INTERFACES: tuple[type, ...] = (BackendDevice, BackendQueue, *OBJECTS)

#: method of the interface -> why it cannot fail
NO_CALL: dict[str, str] = {
    "BackendCommandBuffer.fill_bytes": "a number that is computed on the host",
    "BackendExecutable.code_bytes": "a number that is computed on the host",
    "BackendExecutable.held_bytes": "a number that is computed on the host",
    "BackendExecutable.scratch_bytes": "a number that is computed on the host",
    "BackendSemaphore.fail": "it tells of a failure, of which nobody else would hear",
}
#: methods whose failure is the end of an object: they do their work first, or the object would be lost to the test
ENDS = frozenset({"BackendDevice.close", *(f"{interface.__name__}.release" for interface in OBJECTS)})
#: methods that, once the driver took the work, fail by their signals: raised errors mean that it did not
SUBMITS = frozenset({"BackendQueue.submit"})
#: packages of drivers, and what serves several of them: their calls are their own
_DRIVERS = tuple(f"orchestrion.hal.{name}" for name in ("null", "reference", "opencl", "vulkan", "timeline"))


class Kind(NamedTuple):
    """A way to fail. `behind`: the call does its work first. `times`: how many calls fail, one after the other."""

    error: type[HalError]
    behind: bool = False
    times: int = 1


KINDS: dict[str, Kind] = {
    "no memory": Kind(DeviceOutOfMemory),
    "no memory twice": Kind(DeviceOutOfMemory, times=2),
    "refused": Kind(InternalError),
    "refused twice": Kind(InternalError, times=2),
    "lost": Kind(DeviceLost),
    "lost behind it": Kind(DeviceLost, behind=True),
}


def methods(interface: type) -> list[str]:
    """The public methods of an interface; properties and constants are none."""
    return [name for name, member in vars(interface).items() if isfunction(member) and not name.startswith("_")]


def calls() -> set[str]:
    """Every call of a driver that may fail, as `BackendQueue.submit`."""
    everything = {f"{interface.__name__}.{name}" for interface in INTERFACES for name in methods(interface)}
    assert everything >= set(NO_CALL), f"no methods any more: {set(NO_CALL) - everything}"
    return everything - set(NO_CALL)


class Faults:
    """The plan, and what was seen. `hit` names the call that failed."""

    def __init__(self) -> None:
        self._left = self._times = 0
        self._kind = KINDS["refused"]
        self._only = ""
        self.hit = ""
        self.seen: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.live: set[int] = set()
        self.closed: list[BackendDevice] = []
        self.opened = 0
        self.wrong: list[str] = []
        self._in_flight: list[tuple[set[int], Point]] = []

    def arm(self, number: int, kind: str, only: str = "") -> None:
        """Fail the `number`-th call from now on, 1 for the next; `only` counts calls of this name alone."""
        self._kind = KINDS[kind]
        self._times = self._kind.times
        self._only = only
        self.hit = ""
        self._left = number

    def disarm(self) -> str:
        """The name of the call that failed since `arm`, empty if none did."""
        self._left = 0
        return self.hit

    def _due(self, call: str, behind: bool) -> bool:
        if not self._left or self._only not in ("", call) or (self._kind.behind or call in ENDS) != behind:
            return False
        self._left -= 1
        if self._left == 0:
            self.hit = self.hit or call
            self.failed[call] += 1
            self._times -= 1
            self._left = int(self._times > 0)
            return True
        return False

    def error(self, call: str) -> HalError:
        return self._kind.error(f"{call} fails on purpose")

    def run(self, call: str, work: Callable[[], Any], submission: tuple[Any, ...] = ()) -> Any:
        """Do a call of the driver's, unless it is to fail."""
        self.seen[call] += 1
        if self._due(call, behind=False):
            raise self.error(call)
        behind = self._due(call, behind=True)
        if behind and submission:
            return self._fail_signals(call, *submission)
        result = work()
        if behind:
            if isinstance(result, OBJECTS):
                result.release()  # type: ignore[attr-defined]  a driver that fails to make an object keeps nothing of it
            raise self.error(call)
        return result

    def _fail_signals(self, call: str, inner: BackendQueue, batch: Any, waits: Any, signals: Any, watcher: Any) -> None:
        """Work that a driver takes, and that fails in the end."""
        error = self.error(call)
        inner.submit(batch, waits, (), watcher)
        inner.wait_idle()
        for semaphore, value in signals:
            semaphore.fail(value, error)

    def own(self, thing: Any) -> Any:
        """Watch an object of the driver from now on. Anything else, and what is never released, stays as it is."""
        interface = next((one for one in OBJECTS if isinstance(thing, one)), None)
        if interface is None or id(thing) in self.live or isinstance(thing, BackendInstance):
            return thing
        kind, faults = type(thing), self
        self.live.add(id(thing))
        members = {name: _member(interface, name, kind, faults) for name in methods(interface)}
        thing.__class__ = type(kind.__name__, (kind,), {"__slots__": (), **members})
        return thing

    def released(self, thing: Any) -> None:
        if id(thing) not in self.live:
            self.wrong.append(f"{type(thing).__name__} is released twice")
        self.live.discard(id(thing))
        for buffers, (semaphore, value) in self._in_flight:
            if id(thing) in buffers and id(semaphore) in self.live and semaphore.value() < value:
                self.wrong.append(f"{type(thing).__name__} is released while it is in use")

    def track(self, batch: Iterable[Any], signals: Sequence[Point]) -> None:
        """Work was submitted; a semaphore that was released since is reached."""
        self._in_flight = [row for row in self._in_flight if id(row[1][0]) in self.live]
        self._in_flight = [row for row in self._in_flight if row[1][0].value() < row[1][1]]
        self._in_flight.append(({id(buffer) for _, table in batch for buffer in table}, signals[-1]))


def _from_front() -> bool:
    """Whether the method that asks was called by the front."""
    caller = sys._getframe(2).f_globals.get("__name__", "")
    return caller.startswith("orchestrion.") and not caller.startswith(_DRIVERS)


def _member(interface: type, name: str, kind: type, faults: Faults) -> Callable[..., Any]:
    """A method of one of the driver's objects."""
    call, real = f"{interface.__name__}.{name}", getattr(kind, name)
    if call in NO_CALL:
        return real  # type: ignore[no-any-return]

    def member(this: Any, *arguments: Any) -> Any:
        if not _from_front():
            return real(this, *arguments)
        if name == "release":
            faults.released(this)
        return faults.run(call, lambda: real(this, *arguments))

    return member


def _forward(interface: type, name: str, faults: Faults) -> Callable[..., Any]:
    """A method of a device or a queue, which passes its call on."""
    call = f"{interface.__name__}.{name}"

    def forward(this: Any, *arguments: Any) -> Any:
        real = getattr(this.inner, name)
        if call in NO_CALL or not _from_front():
            return real(*arguments)
        if call == "BackendDevice.close":
            faults.closed.append(this)
        submission: tuple[Any, ...] = ()
        if call in SUBMITS:
            batch, waits, signals, *watcher = arguments
            submission = (this.inner, batch, waits, signals, watcher[0] if watcher else None)

        def work() -> Any:
            if submission:
                faults.track(submission[1], submission[3])
            return real(*arguments)

        return faults.own(faults.run(call, work, submission))

    return forward


def faulty_device(inner: BackendDevice, faults: Faults) -> BackendDevice:
    """A driver's open device, whose calls fail as `faults` plans. It closes `inner`."""
    queue: Any = _wrapper(BackendQueue, inner.queue, faults)
    device: Any = _wrapper(BackendDevice, inner, faults)
    device.info, device.queue = inner.info, queue
    faults.opened += 1
    return device  # type: ignore[no-any-return]


def _wrapper(interface: type, inner: Any, faults: Faults) -> Any:
    """A device or a queue; its attributes are those of `inner`."""
    members: dict[str, Any] = {name: _forward(interface, name, faults) for name in methods(interface)}
    for name, member in vars(interface).items():
        if isinstance(member, property):
            members[name] = property(lambda this, name=name: getattr(this.inner, name))  # type: ignore[misc]
        elif not name.startswith("_") and name not in members:
            members[name] = getattr(inner, name)
    wrapper = type(f"Faulty{interface.__name__}", (interface,), members)()
    wrapper.inner = inner
    return wrapper


class FaultyDriver(BackendDriver):
    """A driver whose devices fail as `faults` plans. `opening` opens a device, where not as the driver does."""

    def __init__(
        self, inner: BackendDriver, faults: Faults, opening: Callable[[DeviceInfo], BackendDevice] | None = None
    ) -> None:
        self.name = inner.name
        self.forks = inner.forks
        self._inner = inner
        self._faults = faults
        self._opening = inner.open if opening is None else opening

    def devices(self) -> list[DeviceInfo]:
        return self._inner.devices()

    def open(self, info: DeviceInfo) -> BackendDevice:
        return faulty_device(self._opening(info), self._faults)

    def open_profiled(self, info: DeviceInfo) -> BackendDevice:
        return faulty_device(self._inner.open_profiled(info), self._faults)
