"""Where two devices part: a function runs on both, dispatch by dispatch, and the first that differs is told.

Both programs of a module come from one flow of dispatches, so an entry of the same name computes the same tensors on
every device, from the same op of the source; what only one has (encodings into a layout of its own) is passed over.
The devices run side by side, each on values of its own. A dispatch of the one meets the same dispatch, in the same turn
of a loop, of the other; what both wrote is compared after layouts were undone. At the first difference both calls end,
and what the dispatch read and wrote is saved for `vm-run --replay`.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.compiler.ir.types import TensorType
from orchestrion.hal.debug_device import Step, observe, open_debug_device
from orchestrion.hal.policy import Policy
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.module import Module

from .arrays import mismatch, type_text
from .cli import InputError, load_limits, parameters, policy
from .deviations import Deviation
from .deviations import report as deviations_report
from .entries import called, entries_by_name, specialized
from .layouts import decode, tensor_type
from .load_progress import loading
from .replay import save
from .tolerances import Tolerances, chosen

Array = npt.NDArray[Any]
#: what an entry of the module computes, by name
Place = str

#: bytes of one device's values that may wait for the other's
MAX_WAITING = 1 << 28


class Stopped(Exception):
    """Ends a call when a difference was found, or the other device failed."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What a dispatch read and wrote, by binding; None where it did not, or nobody knows the type."""

    step: Step
    types: tuple[TensorType | None, ...]
    inputs: tuple[Array | None, ...]
    outputs: tuple[Array | None, ...]
    ops: tuple[str, ...]
    location: str
    workload: tuple[int, int, int]
    entry: str  #: what ran: what it computes, or what stands in for that where sizes are small
    of_many: bool  #: ran though others stand in for it

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.inputs, *self.outputs) if array is not None)


@dataclass(frozen=True)
class Difference:
    """The first dispatch whose outputs differ, as both devices ran it, and how its bindings compare, a line each."""

    place: Place
    turn: int
    want: Seen
    got: Seen
    lines: tuple[str, ...]


class Side:
    """A program on one device. `run` gives its results, or None when it was stopped."""

    def __init__(self, module: Any, device: str, options: Any) -> None:
        from orchestrion import vm

        self.name = device
        self.device = open_debug_device(device, Policy(options.allow_native_code))
        try:
            with loading(module, device) as progress:
                self.program = vm.load(
                    module,
                    device=self.device,
                    load_limits=load_limits(options),
                    profiling=True,
                    build_deadline=options.build_deadline,
                    progress=progress,
                    **parameters(options),
                    **policy(options),
                )
        finally:
            self.device.close()  # the program has a share of its own
        self.module: Module = self.program.module
        self.ordinal = self.program.ordinal
        self.entries = entries_by_name(self.module, self.ordinal)
        self.names = {place: called(name, self.entries) for name, place in self.entries.items()}
        self.failure: BaseException | None = None
        self.results: tuple[Any, ...] | None = None

    def run(self, function: str, arguments: Sequence[Array], told: Callable[[Place, Seen], None]) -> None:
        from .run import as_tuple

        def observer(step: Step) -> None:
            tag: Any = step.tag
            if getattr(tag, "executable", None) is not None and (tag.executable, tag.entry) in self.names:
                told(self.names[tag.executable, tag.entry], self._seen(step, tag))

        observe(self.program.device, observer)
        try:
            self.results = as_tuple(self.program[function].flat(*arguments))
        except BaseException as error:
            self.failure = error

    def _seen(self, step: Step, tag: Any) -> Seen:
        try:
            texts = self.module.binding_types(self.ordinal, tag.executable, tag.entry)
            ops = self.module.source_ops(self.ordinal, tag.executable, tag.entry)
            location = self.module.location(self.ordinal, tag.function, tag.pc) or ""
        except ModuleError as error:
            texts, ops, location = (), (), f"unknown, {error}"
        types = tuple(map(tensor_type, texts)) if len(texts) == len(step.before) else (None,) * len(step.before)
        inputs = tuple(_decoded(data, type) for data, type in zip(step.before, types, strict=True))
        outputs = tuple(_decoded(data, type) for data, type in zip(step.after, types, strict=True))
        entry = next(name for name, place in self.entries.items() if place == (tag.executable, tag.entry))
        of_many = bool(specialized(entry, self.entries))
        return Seen(step, types, inputs, outputs, ops, location, tag.workload, entry, of_many)


def _decoded(data: npt.NDArray[np.uint8] | None, type: TensorType | None) -> Array | None:
    if data is None or type is None:
        return None
    try:
        return decode(data, type)
    except ValueError:
        return None


@dataclass
class _Queue:
    """What one side has shown and the other not yet."""

    waiting: dict[tuple[Place, int], Seen] = field(default_factory=dict)
    turns: Counter[Place] = field(default_factory=Counter)
    nbytes: int = 0
    blocked: bool = False
    ended: bool = False


class Meeting:
    """Where the steps of two sides meet. Each side has a thread."""

    def __init__(self, shared: set[Place], relative: float, absolute: float) -> None:
        self._shared = shared
        self._tolerances = relative, absolute
        self._queues = _Queue(), _Queue()
        self._changed = threading.Condition()
        self.compared = 0
        self.unknown = 0  #: met, but the module does not say what their bindings hold
        self.difference: Difference | None = None
        self.deviations: dict[Place, Deviation] = {}
        self.stopped = False

    def tell(self, side: int, place: Place, seen: Seen) -> None:
        """A step of side 0, which is right, or 1. Raises Stopped when there is nothing more to find."""
        if place not in self._shared:
            return
        own, other = self._queues[side], self._queues[1 - side]
        with self._changed:
            key = place, own.turns[place]
            own.turns[place] += 1
            if key in other.waiting:
                met = other.waiting.pop(key)
                other.nbytes -= met.nbytes
                self._compare(key, *((met, seen) if side else (seen, met)))
            else:
                own.waiting[key] = seen
                own.nbytes += seen.nbytes
            self._changed.notify_all()
            own.blocked = True
            while own.nbytes > MAX_WAITING and not (other.blocked or other.ended or self.stopped):
                self._changed.wait()
            own.blocked = False
            if self.stopped:
                raise Stopped

    def end(self, side: int, failed: bool) -> None:
        with self._changed:
            self._queues[side].ended = True
            self.stopped |= failed
            self._changed.notify_all()

    def alone(self) -> tuple[Place, int] | None:
        """The first dispatch that only one side ran, and which side that was: they took different ways."""
        for side, queue in enumerate(self._queues):
            for place, _ in queue.waiting:
                return place, side
        return None

    def _compare(self, key: tuple[Place, int], want: Seen, got: Seen) -> None:
        known = any(array is not None for array in want.outputs) and any(array is not None for array in got.outputs)
        self.compared += known
        self.unknown += not known
        lines, differs = [], False
        deviation = self.deviations.setdefault(key[0], Deviation())
        deviation.runs += known
        for title, wanted, given in (("input", want.inputs, got.inputs), ("output", want.outputs, got.outputs)):
            for index, (a, b) in enumerate(zip(wanted, given, strict=False)):
                if a is None or b is None:
                    continue
                found = mismatch(b, a, *self._tolerances)
                differs |= found is not None and title == "output"
                lines.append(f"{title} {index}, {type_text(b)}, {found or 'agrees'}")
                if title == "output":
                    deviation.add(a, b)
        if differs:
            deviation.differs, deviation.lines = True, tuple(lines)
            self.difference = Difference(*key, want, got, tuple(lines))
            self.stopped = True


@dataclass(frozen=True)
class Report:
    """`text` says it in words; `difference` is the dispatch that parts the devices, if one does; `data` says what was
    compared (`deviations.py`).
    """

    agrees: bool
    text: str
    difference: Difference | None = None
    data: dict[str, Any] = field(default_factory=dict)


def compare(sides: tuple[Side, Side], function: str, arguments: Sequence[Array], tolerances: Tolerances) -> Report:
    """Run a function on both sides, the first of which is right. Raises what a call failed with."""
    want, got = sides
    shared = _places(want) & _places(got)
    meeting = Meeting(shared, *tolerances)

    def run(number: int) -> None:
        side = sides[number]
        side.run(function, arguments, lambda place, seen: meeting.tell(number, place, seen))
        meeting.end(number, side.failure is not None)

    threads = [threading.Thread(target=run, args=(number,), name=f"compare {sides[number].name}") for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for side in sides:
        if meeting.difference is None and side.failure is not None and not isinstance(side.failure, Stopped):
            raise side.failure
    if meeting.difference is not None:
        found = Report(False, _told(meeting.difference, want.name, got.name), meeting.difference)
    else:
        found = _whole(meeting, sides, shared, tolerances)
    names, programs = (want.name, got.name), (want.ordinal, got.ordinal)
    data = deviations_report(want.module, names, programs, function, (found.agrees, found.text), meeting.deviations)
    return replace(found, data=data | tolerances.data())


def _places(side: Side) -> set[Place]:
    return set(side.names.values())


def _told(difference: Difference, want: str, got: str) -> str:
    seen = difference.got
    what = seen.ops[0] if seen.ops else "a dispatch"
    fused = f" with {', '.join(seen.ops[1:])}" if seen.ops[1:] else ""
    where = f", {seen.location}" if seen.location else ""
    head = f"{got} parts from {want} at {what}{fused}{where}: {difference.place}, run {difference.turn + 1}"
    return "\n  ".join([head, *difference.lines])


def _whole(meeting: Meeting, sides: tuple[Side, Side], shared: set[Place], tolerances: Tolerances) -> Report:
    """No dispatch differs: what there is to say of the whole."""
    want, got = sides
    alone = meeting.alone()
    if alone is not None:
        place, side = alone
        other = sides[1 - side].name
        return Report(False, f"{sides[side].name} ran {place} once more than {other}: they took different branches")
    if meeting.unknown and not meeting.compared:
        raise InputError("the module does not say which tensors its dispatches read and write: compile it again")
    assert want.results is not None and got.results is not None
    for index, (a, b) in enumerate(zip(want.results, got.results, strict=True)):
        found = mismatch(np.asarray(b), np.asarray(a), *tolerances)
        if found is not None:
            return Report(False, f"result[{index}] {found}, though every dispatch agrees: no dispatch wrote it")
    own = sorted(_places(got) ^ shared)
    extra = f"; of {got.name} alone are {', '.join(own)}" if own else ""
    if meeting.unknown:
        extra += f"; {meeting.unknown} dispatches of tensors without a fixed shape were not compared"
    both = f"{_count(meeting.compared, 'dispatch', 'es')} and {_count(len(want.results), 'result', 's')}"
    return Report(True, f"{both} of {got.name} agree with {want.name}{extra}")


def _count(number: int, what: str, ending: str) -> str:
    """`1 result`, `2 results`."""
    return f"{number} {what}{'' if number == 1 else ending}"


def run(module: str, devices: tuple[str, str], function: str | None, inputs: Sequence[str], options: Any) -> Report:
    """`vm-run --compare`: the devices are (right, to be judged). What parts them is saved in `options.divergence`.

    `inputs`: the values of `--input`.
    """
    from .call_arrays import arguments_of
    from .run import choose

    sides: list[Side] = []
    try:
        for device in devices:
            sides.append(Side(module, device, options))
        tolerances = chosen(options)
        name = choose(sides[0].program, function)
        arguments = arguments_of(sides[0].program, name, inputs)
        report = compare((sides[0], sides[1]), name, arguments, tolerances)
        if report.difference is not None:
            save(Path(options.divergence), report.difference, devices, tolerances)
        return report
    finally:
        for side in sides:
            side.program.close()
