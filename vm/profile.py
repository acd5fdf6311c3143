"""Records each launch of a program: `Program.profile()` of a program that was loaded with `profiling=True`.

    program = vm.load("model.fb", device="vulkan", profiling=True)
    program.main(x)
    for row in program.profile().rows():
        print(row.command.source_op, row.command.location, row.median_seconds)

All times are nanoseconds of the host's clock (`hal.timing.now`, which is `time.perf_counter_ns`). The device measures
the times of launches, and they are converted to the host's clock (docs/profiling.md). A `Profiler` collects them after
each call. It keeps the last `HISTORY` calls and the last `HISTORY` initializers.
"""

from __future__ import annotations

import time
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from orchestrion.hal import profiling
from orchestrion.hal.fork import new_lock
from orchestrion.hal.timing import now
from orchestrion.hal.workload import Grid
from orchestrion.schema.errors import ModuleError

from .profiled_hal import Tag
from .statistics import HISTORY, Log, Row

if TYPE_CHECKING:
    from orchestrion.hal.backend import Span
    from orchestrion.hal.device import Device
    from orchestrion.schema.module import Module

    from .call import CallContext
    from .context import Context
    from .linker import LinkedProgram

#: seconds between two attempts to read the times of a call's work, and the most seconds of all attempts
_POLL_SECONDS, _MAX_POLL_SECONDS = 0.0001, 1.0


class Command(NamedTuple):
    """A recorded dispatch, copy or fill. Equal objects are the same command, recorded in any context."""

    kind: str  #: "dispatch", "copy" or "fill"
    entry: str  #: the name of the entry; "" for a copy or fill
    source_op: str  #: the main op of the source that it computes; "" if the module does not say
    fused: tuple[str, ...]  #: the other ops of the source that it computes
    location: str  #: of the main op in the source; "" if the module does not say
    workload: Grid | None  #: the invocations of a dispatch
    bytes: int  #: bytes bound to a dispatch, copied or filled
    place: tuple[int, int] | None  #: function and pc of the instruction that recorded it; None if no instruction did

    @property
    def label(self) -> str:
        """A short name: the source op, or else the entry, or else the kind."""
        return self.source_op or self.entry or self.kind


class Launch(NamedTuple):
    """A run of a command, from `start` to `end`."""

    command: Command
    start: int
    end: int


class Submission(NamedTuple):
    """A submission to the device: its time, and its launches in order. If it failed, some launches are missing."""

    submitted: int
    launches: tuple[Launch, ...]


class ProfiledCall(NamedTuple):
    """A call, from `start` to `end` as its caller measured it.

    `kind`: "call"; "initializer", with the name "program" or "context"; or "other", for submissions of calls that
    failed and of functions without tensors, which are reported with the next call. `context`: the number of the
    context; 0 is the context of the program's initializers.
    """

    name: str
    kind: str
    context: int
    start: int
    end: int
    submissions: tuple[Submission, ...]

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(launch for submission in self.submissions for launch in submission.launches)


class ProfileRow(NamedTuple):
    """The launches of one command in all calls of one function or initializer."""

    function: str
    kind: str  #: as in `ProfiledCall`
    command: Command
    calls: int  #: the number of calls of the function
    launches: int
    median_seconds: float  #: of the launches, on the device
    total_seconds: float
    share: float  #: `total_seconds` as a part of the device time of the function, from 0 to 1


class Profile(NamedTuple):
    """The recorded calls of a program."""

    program: str
    device: str  #: its id, such as `opencl:1`
    device_name: str
    calls: tuple[ProfiledCall, ...]  #: in the order in which they ended
    module: str = ""  #: SHA-256 of the module's root, in hexadecimal digits
    ordinal: int = 0  #: the ordinal of the program in the module

    def rows(self, function: str | None = None) -> list[ProfileRow]:
        """A row for each command that ran, in the order of the first launch; those of initializers first.

        `function`: the name of a function, to get only the rows of its calls.
        """
        chosen = [call for call in self.calls if call.kind == "call" and function in (None, call.name)]
        if function is None:
            chosen = [call for call in self.calls if call.kind == "initializer"] + chosen
        groups: dict[tuple[str, str], list[ProfiledCall]] = {}
        for call in chosen:
            groups.setdefault((call.name, call.kind), []).append(call)
        return [row for (name, kind), calls in groups.items() for row in _rows(name, kind, calls)]

    def trace(self) -> dict[str, Any]:
        """The profile as JSON data in the trace event format, which ui.perfetto.dev opens. See `trace.py`."""
        from .trace import trace

        return trace(self)


def _rows(name: str, kind: str, calls: list[ProfiledCall]) -> list[ProfileRow]:
    times: dict[Command, list[int]] = {}
    for call in calls:
        for launch in call.launches:
            times.setdefault(launch.command, []).append(launch.end - launch.start)
    total = sum(map(sum, times.values())) or 1
    return [
        ProfileRow(
            function=name,
            kind=kind,
            command=command,
            calls=len(calls),
            launches=len(taken),
            median_seconds=sorted(taken)[len(taken) // 2] / 1e9,
            total_seconds=sum(taken) / 1e9,
            share=sum(taken) / total,
        )
        for command, taken in times.items()
    ]


class _Owner:
    """The owner of a context's submissions."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class Profiler:
    """Collects the launches of one program. Any thread may call it, for each context one thread at a time."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._module: Module | None = None
        self._ordinal = 0
        self._owners: WeakKeyDictionary[CallContext, _Owner] = WeakKeyDictionary()
        self._numbers = count()
        self._commands: dict[profiling.Command, Command] = {}
        self._calls: deque[ProfiledCall] = deque(maxlen=HISTORY)
        self._initializers: deque[ProfiledCall] = deque(maxlen=HISTORY)
        self._lock = new_lock()

    def bind(self, linked: LinkedProgram) -> None:
        """Set the program, before it runs. Keeps no reference to its code, which refers to the profiler."""
        self._module, self._ordinal = linked.module, linked.ordinal

    def owner(self, context: CallContext) -> _Owner:
        """The owner of the submissions of a context."""
        with self._lock:
            found = self._owners.get(context)
            if found is None:
                found = self._owners[context] = _Owner(next(self._numbers))
            return found

    def initialized(self, context: Context, kind: str, started: int) -> None:
        """Record the initializers of a context, which have ended. `kind`: "program" or "context"."""
        owner, end = self.owner(context), now()
        submissions = self._take(owner)
        self._initializers.append(ProfiledCall(kind, "initializer", owner.number, started, end, submissions))

    def called(self, owner: _Owner, name: str, started: int, ended: int) -> None:
        """Record a call, which has ended. Earlier submissions belong to unreported calls."""
        submissions = self._take(owner)
        own = tuple(row for row in submissions if row.submitted >= started)
        others = tuple(row for row in submissions if row.submitted < started)
        if others:
            start = others[0].submitted
            end = max([start, *(launch.end for row in others for launch in row.launches)])
            self._calls.append(ProfiledCall("other", "other", owner.number, start, end, others))
        self._calls.append(ProfiledCall(name, "call", owner.number, started, ended, own))

    def profile(self, program: str) -> Profile:
        """All recorded calls. `program`: the name of the program."""
        info = self._device.info
        digest = "" if self._module is None else self._module.container.digest.hex()
        return Profile(program, info.id, info.name, (*self._initializers, *self._calls), digest, self._ordinal)

    def _take(self, owner: _Owner) -> tuple[Submission, ...]:
        """The submissions of an owner. Waits for their times, since a device may signal the end of work before it has
        them.
        """
        found = profiling.take(self._device, owner)
        end = time.monotonic() + _MAX_POLL_SECONDS
        while profiling.is_waited_for(self._device, owner) and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
            found += profiling.take(self._device, owner)
        return tuple(
            Submission(row.submitted, tuple(map(self._launch, row.commands[: len(row.spans)], row.spans)))
            for row in found
        )

    def _launch(self, command: profiling.Command, span: Span) -> Launch:
        known = self._commands.get(command)
        if known is None:
            known = self._commands[command] = self._describe(command)
        return Launch(known, *span)

    def _describe(self, command: profiling.Command) -> Command:
        tag, module = command.tag, self._module
        entry = command.name if command.kind == "dispatch" else ""
        moved = sum(command.bytes) if command.kind == "dispatch" else command.bytes[-1]
        if module is None or not isinstance(tag, Tag):
            return Command(command.kind, entry, "", (), "", None, moved, None)
        ops: tuple[str, ...] = ()
        try:
            location = module.location(self._ordinal, tag.function, tag.pc) or ""
            if tag.executable is not None:
                ops = module.source_ops(self._ordinal, tag.executable, tag.entry)
        except ModuleError as error:
            location = f"unknown, {error}"
        place = (tag.function, tag.pc)
        return Command(command.kind, entry, ops[0] if ops else "", ops[1:], location, tag.workload, moved, place)


class ProfiledLog:
    """The log of a context that also records each call in the profiler."""

    __slots__ = ("_log", "_owner", "_profiler")

    def __init__(self, log: Log, profiler: Profiler, context: Context) -> None:
        self._log = log
        self._profiler = profiler
        self._owner = profiler.owner(context)

    def add(self, row: Row) -> None:
        self._log.add(row)
        name, started, ended = row[:3]
        self._profiler.called(self._owner, name, round(started * 1e9), round(ended * 1e9))
