"""What a program ran, launch by launch: `Program.profile()` of a program that was loaded with `profiling=True`.

    program = vm.load("model.fb", device="vulkan", profiling=True)
    program.main(x)
    for row in program.profile().rows():
        print(row.command.source_op, row.command.location, row.median_seconds)

All times are nanoseconds of the host's clock (`hal.timing.now`, which is `time.perf_counter_ns`); those of launches are
the device's own, mapped (docs/profiling.md). A `Profiler` gathers them call by call; the last `HISTORY` calls are kept,
and the last `HISTORY` initializers.
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

#: seconds until the times of work are looked for again, and after which what a call left under way is let be
_MOMENT, _PATIENCE = 0.0001, 1.0


class Command(NamedTuple):
    """A recorded dispatch, copy or fill. Equal ones are the same command, in whatever context it was recorded."""

    kind: str  #: "dispatch", "copy" or "fill"
    entry: str  #: name of the entry; "" of a copy or fill
    source_op: str  #: main op of the source that it computes; "" where the module does not say
    fused: tuple[str, ...]  #: the other ops of the source in it
    location: str  #: in the source; "" where the module does not say
    workload: Grid | None  #: invocations of a dispatch
    bytes: int  #: bound to a dispatch, copied or filled
    place: tuple[int, int] | None  #: function and pc of the instruction that recorded it, if one of the program did

    @property
    def label(self) -> str:
        """The shortest that says what it is."""
        return self.source_op or self.entry or self.kind


class Launch(NamedTuple):
    """A command that ran."""

    command: Command
    start: int
    end: int


class Submission(NamedTuple):
    """What went to the device at once: when, and the launches in order. Fewer than were recorded if it failed."""

    submitted: int
    launches: tuple[Launch, ...]


class ProfiledCall(NamedTuple):
    """A call from start to end, as its caller saw it.

    `kind` is "call"; "initializer", whose name is then "program" or "context"; or "other", for what was submitted by
    calls that failed, or of functions without tensors: that is told when the next call is over. Contexts are numbered;
    0 is the program's own.
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
    """One command of one function or initializer, over all its calls."""

    function: str
    kind: str  #: as that of `ProfiledCall`
    command: Command
    calls: int  #: of the function
    launches: int
    median_seconds: float  #: on the device
    total_seconds: float
    share: float  #: of all device time of the function


class Profile(NamedTuple):
    """What ran up to now."""

    program: str
    device: str  #: `opencl:1`
    device_name: str
    calls: tuple[ProfiledCall, ...]  #: in the order of their ends
    module: str = ""  #: SHA-256 of the module's root, in hexadecimal digits
    ordinal: int = 0  #: of the program in the module

    def rows(self, function: str | None = None) -> list[ProfileRow]:
        """A row for every command that ran, in the order of first launch; initializers first.

        `function`: only the calls of this one, no initializers.
        """
        chosen = [call for call in self.calls if call.kind == "call" and function in (None, call.name)]
        if function is None:
            chosen = [call for call in self.calls if call.kind == "initializer"] + chosen
        groups: dict[tuple[str, str], list[ProfiledCall]] = {}
        for call in chosen:
            groups.setdefault((call.name, call.kind), []).append(call)
        return [row for (name, kind), calls in groups.items() for row in _rows(name, kind, calls)]

    def trace(self) -> dict[str, Any]:
        """All of it in the trace event format: `json.dump` it, open it at ui.perfetto.dev. See `trace.py`."""
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
    """Whom a context's submissions belong to."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class Profiler:
    """Gathers what one program runs. Any thread may call; each context by one thread at a time."""

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
        """What it runs, before anything of it does. Of its code, which refers to the profiler, nothing is kept."""
        self._module, self._ordinal = linked.module, linked.ordinal

    def owner(self, context: CallContext) -> _Owner:
        with self._lock:
            found = self._owners.get(context)
            if found is None:
                found = self._owners[context] = _Owner(next(self._numbers))
            return found

    def initialized(self, context: Context, kind: str, started: int) -> None:
        """The initializers of a context are over."""
        owner, end = self.owner(context), now()
        submissions = self._take(owner)
        self._initializers.append(ProfiledCall(kind, "initializer", owner.number, started, end, submissions))

    def called(self, owner: _Owner, name: str, started: int, ended: int) -> None:
        """A call is over. Work that was submitted before it is of calls of which nobody told."""
        submissions = self._take(owner)
        own = tuple(row for row in submissions if row.submitted >= started)
        others = tuple(row for row in submissions if row.submitted < started)
        if others:
            start = others[0].submitted
            end = max([start, *(launch.end for row in others for launch in row.launches)])
            self._calls.append(ProfiledCall("other", "other", owner.number, start, end, others))
        self._calls.append(ProfiledCall(name, "call", owner.number, started, ended, own))

    def profile(self, program: str) -> Profile:
        info = self._device.info
        digest = "" if self._module is None else self._module.container.digest.hex()
        return Profile(program, info.id, info.name, (*self._initializers, *self._calls), digest, self._ordinal)

    def _take(self, owner: _Owner) -> tuple[Submission, ...]:
        """A device may tell of the end of work a moment before its times can be had."""
        found = profiling.take(self._device, owner)
        end = time.monotonic() + _PATIENCE
        while profiling.is_waited_for(self._device, owner) and time.monotonic() < end:
            time.sleep(_MOMENT)
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
    """The log of one context, which tells the profiler of each call."""

    __slots__ = ("_log", "_owner", "_profiler")

    def __init__(self, log: Log, profiler: Profiler, context: Context) -> None:
        self._log = log
        self._profiler = profiler
        self._owner = profiler.owner(context)

    def add(self, row: Row) -> None:
        self._log.add(row)
        name, started, ended = row[:3]
        self._profiler.called(self._owner, name, round(started * 1e9), round(ended * 1e9))
