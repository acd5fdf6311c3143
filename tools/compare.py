"""Compares two devices: runs a function on both, dispatch by dispatch, and reports the first that differs.

Both programs of a module come from one flow of dispatches, so an entry of the same name computes the same tensors on
every device, from the same source op. Entries that only one program has (encodings into its own layout) are skipped.
The devices run concurrently, each on its own values. A dispatch of one device is matched with the same dispatch, in the
same iteration of a loop, of the other; their outputs are compared after layouts were undone. At the first difference
both calls end, and the inputs and outputs of the dispatch are saved for `vm-run --replay`.
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
from .layouts import decode
from .load_progress import loading
from .operands import Operand, operands_of
from .replay import save
from .tolerances import Tolerances, chosen

Array = npt.NDArray[Any]
#: the name of an entry, which identifies its computation on all devices
EntryName = str

#: the most bytes of one device's values that wait for those of the other
MAX_WAITING = 1 << 28


class Stopped(Exception):
    """Ends a call after a difference was found, or the other device failed."""


@dataclass(frozen=True, eq=False)
class DispatchRun:
    """The inputs and outputs of a dispatch, by binding; None if it does not access the binding, or the
    type is unknown.
    """

    step: Step
    types: tuple[TensorType | None, ...]
    inputs: tuple[Array | None, ...]
    outputs: tuple[Array | None, ...]
    ops: tuple[str, ...]
    location: str
    workload: tuple[int, int, int]
    entry: str  #: the entry that ran: the general one, or one that is specialised for small sizes
    of_many: bool  #: the general entry ran although specialised ones exist

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.inputs, *self.outputs) if array is not None)


@dataclass(frozen=True)
class Difference:
    """The first dispatch whose outputs differ, as both devices ran it, and the comparison of its
    bindings, a line each.
    """

    entry: EntryName
    iteration: int
    want: DispatchRun
    got: DispatchRun
    lines: tuple[str, ...]


class DeviceRun:
    """A program on one device. `run` sets its results, or None if it was stopped."""

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
            self.device.close()  # the program has its own share
        self.module: Module = self.program.module
        self.ordinal = self.program.ordinal
        self.entries = entries_by_name(self.module, self.ordinal)
        self.names = {ordinals: called(name, self.entries) for name, ordinals in self.entries.items()}
        self.failure: BaseException | None = None
        self.results: tuple[Any, ...] | None = None

    def run(
        self, function: str, arguments: Sequence[Array], report_dispatch: Callable[[EntryName, DispatchRun], None]
    ) -> None:
        from .run import as_tuple

        def observer(step: Step) -> None:
            tag: Any = step.tag
            if getattr(tag, "executable", None) is not None and (tag.executable, tag.entry) in self.names:
                report_dispatch(self.names[tag.executable, tag.entry], self._dispatch_run(step, tag))

        observe(self.program.device, observer)
        try:
            self.results = as_tuple(self.program[function].flat(*arguments))
        except BaseException as error:
            self.failure = error

    def _dispatch_run(self, step: Step, tag: Any) -> DispatchRun:
        try:
            texts = self.module.binding_types(self.ordinal, tag.executable, tag.entry)
            ops = self.module.source_ops(self.ordinal, tag.executable, tag.entry)
            location = self.module.location(self.ordinal, tag.function, tag.pc) or ""
        except ModuleError as error:
            texts, ops, location = (), (), f"unknown, {error}"
        operands = operands_of(texts, [access for access, _ in step.entry.bindings])
        types = tuple(one.type for one in operands)
        inputs = tuple(_decoded(step.before, one, step) if one.access != "write" else None for one in operands)
        outputs = tuple(_decoded(step.after, one, step) if one.access != "read" else None for one in operands)
        entry = next(name for name, ordinals in self.entries.items() if ordinals == (tag.executable, tag.entry))
        of_many = bool(specialized(entry, self.entries))
        return DispatchRun(step, types, inputs, outputs, ops, location, tag.workload, entry, of_many)


def _decoded(bindings: Sequence[npt.NDArray[np.uint8] | None], operand: Operand, step: Step) -> Array | None:
    """The elements of an operand, given the bytes of each binding; None without bytes or type."""
    data = bindings[operand.binding]
    if data is None or operand.type is None:
        return None
    try:
        return decode(data[operand.start(step.parameters) :].copy(), operand.type)
    except ValueError:
        return None


@dataclass
class _Queue:
    """The dispatches of one side that were not matched yet."""

    waiting: dict[tuple[EntryName, int], DispatchRun] = field(default_factory=dict)
    iterations: Counter[EntryName] = field(default_factory=Counter)
    nbytes: int = 0
    blocked: bool = False
    ended: bool = False


class DispatchMatcher:
    """Matches the dispatches of two sides. Each side has a thread."""

    def __init__(self, shared: set[EntryName], relative: float, absolute: float) -> None:
        self._shared = shared
        self._tolerances = relative, absolute
        self._queues = _Queue(), _Queue()
        self._changed = threading.Condition()
        self.compared = 0
        self.unknown = 0  #: matched dispatches whose binding types the module does not state
        self.difference: Difference | None = None
        self.deviations: dict[EntryName, Deviation] = {}
        self.stopped = False

    def tell(self, side: int, entry: EntryName, run_values: DispatchRun) -> None:
        """Add a dispatch of side 0, which is right, or side 1. Raises Stopped when the comparison is over."""
        if entry not in self._shared:
            return
        own, other = self._queues[side], self._queues[1 - side]
        with self._changed:
            key = entry, own.iterations[entry]
            own.iterations[entry] += 1
            if key in other.waiting:
                met = other.waiting.pop(key)
                other.nbytes -= met.nbytes
                self._compare(key, *((met, run_values) if side else (run_values, met)))
            else:
                own.waiting[key] = run_values
                own.nbytes += run_values.nbytes
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

    def alone(self) -> tuple[EntryName, int] | None:
        """The first dispatch that only one side ran, and the number of that side: the calls took different branches."""
        for side, queue in enumerate(self._queues):
            for entry, _ in queue.waiting:
                return entry, side
        return None

    def _compare(self, key: tuple[EntryName, int], want: DispatchRun, got: DispatchRun) -> None:
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
    """The result of a comparison. `text` describes it; `difference` is the first dispatch that differs, if any; `data`
    lists what was compared (`deviations.py`).
    """

    agrees: bool
    text: str
    difference: Difference | None = None
    data: dict[str, Any] = field(default_factory=dict)


def compare(
    sides: tuple[DeviceRun, DeviceRun], function: str, arguments: Sequence[Array], tolerances: Tolerances
) -> Report:
    """Runs a function on both sides, the first of which is right. Raises the error of a failed call."""
    want, got = sides
    shared = _entry_names(want) & _entry_names(got)
    matcher = DispatchMatcher(shared, *tolerances)

    def run(number: int) -> None:
        side = sides[number]
        side.run(function, arguments, lambda entry, values: matcher.tell(number, entry, values))
        matcher.end(number, side.failure is not None)

    threads = [threading.Thread(target=run, args=(number,), name=f"compare {sides[number].name}") for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for side in sides:
        if matcher.difference is None and side.failure is not None and not isinstance(side.failure, Stopped):
            raise side.failure
    if matcher.difference is not None:
        found = Report(False, _difference_text(matcher.difference, want.name, got.name), matcher.difference)
    else:
        found = _whole(matcher, sides, shared, tolerances)
    names, programs = (want.name, got.name), (want.ordinal, got.ordinal)
    data = deviations_report(want.module, names, programs, function, (found.agrees, found.text), matcher.deviations)
    return replace(found, data=data | tolerances.data())


def _entry_names(side: DeviceRun) -> set[EntryName]:
    return set(side.names.values())


def _difference_text(difference: Difference, want: str, got: str) -> str:
    run_values = difference.got
    what = run_values.ops[0] if run_values.ops else "a dispatch"
    fused = f" with {', '.join(run_values.ops[1:])}" if run_values.ops[1:] else ""
    where = f", {run_values.location}" if run_values.location else ""
    head = f"{got} differs from {want} at {what}{fused}{where}: {difference.entry}, run {difference.iteration + 1}"
    return "\n  ".join([head, *difference.lines])


def _whole(
    matcher: DispatchMatcher, sides: tuple[DeviceRun, DeviceRun], shared: set[EntryName], tolerances: Tolerances
) -> Report:
    """The report if no dispatch differs."""
    want, got = sides
    alone = matcher.alone()
    if alone is not None:
        entry, side = alone
        other = sides[1 - side].name
        return Report(False, f"{sides[side].name} ran {entry} once more than {other}: they took different branches")
    if matcher.unknown and not matcher.compared:
        raise InputError("the module does not say which tensors its dispatches read and write: compile it again")
    assert want.results is not None and got.results is not None
    for index, (a, b) in enumerate(zip(want.results, got.results, strict=True)):
        found = mismatch(np.asarray(b), np.asarray(a), *tolerances)
        if found is not None:
            return Report(False, f"result[{index}] {found}, though every dispatch agrees: no dispatch wrote it")
    own = sorted(_entry_names(got) ^ shared)
    extra = f"; of {got.name} alone are {', '.join(own)}" if own else ""
    if matcher.unknown:
        extra += f"; {matcher.unknown} dispatches of tensors without a fixed shape were not compared"
    both = f"{_count(matcher.compared, 'dispatch', 'es')} and {_count(len(want.results), 'result', 's')}"
    return Report(True, f"{both} of {got.name} agree with {want.name}{extra}")


def _count(number: int, what: str, ending: str) -> str:
    """`1 result`, `2 results`."""
    return f"{number} {what}{'' if number == 1 else ending}"


def run(module: str, devices: tuple[str, str], function: str | None, inputs: Sequence[str], options: Any) -> Report:
    """Implements `vm-run --compare`. The devices are (right, judged). A difference is saved in `options.divergence`.

    `inputs`: the values of `--input`.
    """
    from .call_arrays import arguments_of
    from .run import choose

    sides: list[DeviceRun] = []
    try:
        for device in devices:
            sides.append(DeviceRun(module, device, options))
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
