"""A device whose driver fails on purpose: the n-th of one kind of call, once. Everything else is the driver's own.

It also watches what the front promises a driver: every object is released once, and no buffer while work that was
submitted with it in a slot is under way.
"""

from collections.abc import Callable, Sequence
from typing import Any

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendDevice,
    BackendExecutable,
    BackendQueue,
    BackendSemaphore,
    BackendWork,
    Bytes,
    Entry,
    MemoryUse,
    Point,
    Watcher,
)
from orchestrion.hal.errors import DeviceLost, OutOfMemory

#: kind -> what of the driver fails, and how
KINDS: dict[str, str] = {
    "allocate": "there is no memory",
    "create_executable": "nothing is built",
    "create_command_buffer": "nothing is made",
    "create_semaphore": "nothing is made",
    "execute": "a blocking submission is refused",
    "executed": "a blocking submission runs, and fails in the end",
    "submit": "a submission is refused",
    "submitted": "a submission runs, and fails in the end",
    "wait": "a wait for a semaphore fails, whose value comes nevertheless",
    "read": "a copy to the host fails",
    "write": "a copy from the host fails",
}


class Faults:
    """The plan, and what was seen. `hit` is whether the failure has happened."""

    def __init__(self, kind: str, number: int) -> None:
        self.kind = kind
        self.left = number
        self.hit = False
        self.live: set[int] = set()
        self.wrong: list[str] = []
        self.in_flight: list[tuple[set[int], Point]] = []

    def meet(self, kind: str) -> None:
        """Fail if it is time to."""
        if kind != self.kind or self.hit:
            return
        self.left -= 1
        if self.left == 0:
            self.hit = True
            error = OutOfMemory if kind == "allocate" else DeviceLost
            raise error(f"{kind} fails on purpose")

    def own(self, thing: Any, **methods: Callable[..., Any]) -> Any:
        """Watch the release of an object, and replace methods of it."""
        kind, faults = type(thing), self
        self.live.add(id(thing))

        def release(this: Any) -> None:
            faults.released(this)
            kind.release(this)

        thing.__class__ = type(kind.__name__, (kind,), {"__slots__": (), "release": release, **methods})
        return thing

    def released(self, thing: Any) -> None:
        if id(thing) not in self.live:
            self.wrong.append(f"{type(thing).__name__} is released twice")
        self.live.discard(id(thing))
        for buffers, (semaphore, value) in self.in_flight:
            if id(thing) in buffers and semaphore.value() < value:
                self.wrong.append(f"{type(thing).__name__} is released while it is in use")

    def track(self, batch: Sequence[BackendWork], signals: Sequence[Point]) -> None:
        self.in_flight = [row for row in self.in_flight if row[1][0].value() < row[1][1]]
        self.in_flight.append(({id(buffer) for _, table in batch for buffer in table}, signals[-1]))


class FaultyQueue(BackendQueue):
    def __init__(self, inner: BackendQueue, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        self._faults.meet("submit")
        try:
            self._faults.meet("submitted")
        except DeviceLost as error:
            self._inner.submit(batch, waits, (), watcher)
            self._inner.wait_idle()
            for semaphore, value in signals:
                semaphore.fail(value, error)
            return
        self._faults.track(batch, signals)
        self._inner.submit(batch, waits, signals, watcher)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self._faults.meet("execute")
        self._inner.execute(commands, table, watcher)
        self._faults.meet("executed")

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        self._faults.meet("execute")
        self._inner.execute_batch(batch, watcher)
        self._faults.meet("executed")

    @property
    def overlaps(self) -> bool:  # type: ignore[override]
        return self._inner.overlaps

    def create_ticket(self) -> Any:
        return self._inner.create_ticket()

    def launch(self, ticket: Any, commands: BackendCommandBuffer, table: Sequence[BackendBuffer]) -> None:
        self._faults.meet("execute")
        self._inner.launch(ticket, commands, table)

    def launch_batch(self, ticket: Any, batch: Sequence[BackendWork]) -> None:
        self._faults.meet("execute")
        self._inner.launch_batch(ticket, batch)

    def wait(self, ticket: Any, watcher: Watcher | None = None) -> None:
        self._inner.wait(ticket, watcher)
        self._faults.meet("executed")

    def abandon(self, ticket: Any) -> None:
        self._inner.abandon(ticket)

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        self._faults.meet("write")
        self._inner.write(buffer, offset, data)

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        self._faults.meet("read")
        self._inner.read(buffer, offset, out)

    def wait_idle(self) -> None:
        self._inner.wait_idle()

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        self._inner.recover(signals, unsure)


class FaultyDevice(BackendDevice):
    """`inner` is a driver's open device, which this one closes."""

    def __init__(self, inner: BackendDevice, faults: Faults) -> None:
        self.info = inner.info
        self.queue = FaultyQueue(inner.queue, faults)
        self._inner = inner
        self._faults = faults

    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        self._faults.meet("allocate")
        made: BackendBuffer = self._faults.own(self._inner.allocate(size, use))
        return made

    def import_host(self, memory: Bytes) -> BackendBuffer | None:
        imported = self._inner.import_host(memory)
        return None if imported is None else self._faults.own(imported)

    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> BackendExecutable:
        self._faults.meet("create_executable")
        made: BackendExecutable = self._faults.own(self._inner.create_executable(format, payload, entries))
        return made

    @property
    def compiles(self) -> bool:  # type: ignore[override]
        return self._inner.compiles

    def trial_build(self, format: str, payload: memoryview, entries: tuple[Entry, ...], deadline: float) -> float:
        return self._inner.trial_build(format, payload, entries, deadline)

    def create_command_buffer(self, slots: int) -> BackendCommandBuffer:
        self._faults.meet("create_command_buffer")
        made: BackendCommandBuffer = self._faults.own(self._inner.create_command_buffer(slots))
        return made

    def create_semaphore(self, initial: int) -> BackendSemaphore:
        self._faults.meet("create_semaphore")
        made = self._inner.create_semaphore(initial)
        kind, faults = type(made), self._faults

        def wait(this: Any, value: int, timeout: float | None) -> bool:
            faults.meet("wait")
            return bool(kind.wait(this, value, timeout))

        owned: BackendSemaphore = faults.own(made, wait=wait)
        return owned

    def close(self) -> None:
        self._inner.close()
