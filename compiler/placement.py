"""The placement report of a compilation: where each program computes each op of the source, and what was refused.

    report = compiler.Report()
    compiler.compile("model.mlir", report=report)      # filled, also when it raises CompileError
    print(report.text())

This file only defines the report; `provenance.py` follows the ops through the passes and fills it. Every op of the
source has a row with a `Place` in every program of the module, or an `end`: the reason why no program computes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from orchestrion.schema.printable import printable

#: Version of the JSON form; new keys may be added without a new version.
VERSION: Final = 1

#: Kind of place -> its meaning.
KINDS: Final[dict[str, str]] = {
    "dispatch": "computed on the device by an entry of an executable",
    "library call": "computed by a library on the host, called by an entry of an executable",
    "copy": "a copy of memory on the device",
    "fill": "memory filled with one value",
    "constant": "bytes of the module",
    "parameter": "bytes outside the module, from a file that is named when it is loaded",
    "variable": "read from or written to memory that outlives calls",
    "recording": "a loop or branch in a recording, which the device runs",
    "host": "a branch or a number of the host's code",
    "check": "a condition on the sizes of a call, which the host checks",
    "boundary": "an argument or a result: memory of the caller, nothing is computed",
}


def entry_name(executable: str, entry: str) -> str:
    """`executable/entry`, or one name if both are equal."""
    return executable if executable == entry else f"{executable}/{entry}"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an op in a program. `executable` and `entry` are names in the module; `function` is the exported
    function that runs it, or `initializer` if it runs once at load. `is_main`: the dispatch is named after the op.
    """

    program: str
    kind: str
    function: str
    executable: str = ""
    entry: str = ""
    is_main: bool = False
    detail: str = ""

    @property
    def what(self) -> str:
        """Description of the place, without the program."""
        name = entry_name(self.executable, self.entry)
        parts = [self.kind, name, self.detail and f"({self.detail})", f"in {self.function}" if self.function else ""]
        return " ".join(filter(None, parts))


@dataclass(slots=True)
class SourceOp:
    """An op of the source. `parent`: number of the op whose region contains it. `end`: why no program computes it,
    empty if one does. `stands_for`: numbers of the ops that compute its value instead.
    """

    number: int
    op: str
    location: str
    function: str
    parent: int | None = None
    places: list[Place] = field(default_factory=list)
    end: str = ""
    stands_for: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A kernel. `schedule`: how its invocations share the work, as steps of `compiler/kernel/schedule.py`, empty if the
    target has no schedules. `calls`: the calls that it is for, empty for all, or all others.
    """

    executable: str
    entry: str
    schedule: str
    workgroup_size: tuple[int, ...]
    calls: str = ""


@dataclass(slots=True)
class ProgramRow:
    """A program of the module: what it requires of a device, and its kernels."""

    name: str
    target: str
    machine: str
    format: str
    features: tuple[str, ...] = ()
    entries: list[EntryRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An op that targets refuse; empty `targets` if the whole compilation failed."""

    targets: tuple[str, ...]
    op: str
    location: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotTaken:
    """A faster form that exists and was not used. `programs`: where; empty for all."""

    programs: tuple[str, ...]
    what: str
    location: str
    reason: str


@dataclass(slots=True)
class Report:
    """The result of a compilation. `programs` is empty if it failed. `left_out`: why the module has no program for some
    of the default targets.
    """

    programs: list[ProgramRow] = field(default_factory=list)
    ops: list[SourceOp] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    not_taken: list[NotTaken] = field(default_factory=list)
    left_out: list[Refusal] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """The report as JSON data."""
        return {"version": VERSION, **asdict(self)}

    def text(self) -> str:
        """The report as text for people; ends with a line break."""
        return "\n".join(map(printable, _lines(self))) + "\n"


def _lines(report: Report) -> Iterator[str]:
    if report.refusals:
        yield "refused; no module is made:"
        for refusal in report.refusals:
            yield f"  {_at(refusal.location, refusal.op)}"
            yield f"    {', '.join(refusal.targets) or 'the program'}: {refusal.reason}"
        return
    yield "programs of the module, in the order in which a device is offered them:"
    for program in report.programs:
        wants = f", features {', '.join(program.features)}" if program.features else ""
        yield f"  {program.name}: target {program.target} for machine {program.machine}: wants {program.format}{wants}"
    yield "ops of the source:"
    for op in report.ops:
        yield f"  {op.number}: {_at(op.location, op.op)}"
        for what, programs in _by_place(op).items():
            yield f"    {_all(programs, report)}: {what}"
        if op.end:
            instead = f": {', '.join(map(str, op.stands_for))}" if op.stands_for else ""
            yield f"    {op.end}{instead}"
    kernels = [(program, entry) for program in report.programs for entry in program.entries if entry.schedule]
    if kernels:
        yield "schedules of kernels:"
    for program, entry in kernels:
        size = "x".join(map(str, entry.workgroup_size))
        calls = f", for calls with {entry.calls}" if entry.calls else ""
        name = entry_name(entry.executable, entry.entry)
        yield f"  {program.name} {name}: {entry.schedule}, workgroups of {size}{calls}"
    if report.left_out:
        yield "left out, as no program for these targets can be made:"
    for refusal in report.left_out:
        yield f"  {_at(refusal.location, refusal.op)}"
        yield f"    {', '.join(refusal.targets)}: {refusal.reason}"
    if report.not_taken:
        yield "not taken:"
    for row in report.not_taken:
        yield f"  {_all(row.programs, report)}: {': '.join(filter(None, (row.location, row.what, row.reason)))}"


def _at(location: str, op: str) -> str:
    return f"{location}: {op}" if location else op


def _by_place(op: SourceOp) -> dict[str, tuple[str, ...]]:
    """Description of a place -> the programs with such a place."""
    found: dict[str, tuple[str, ...]] = {}
    for place in op.places:
        found[place.what] = (*found.get(place.what, ()), place.program)
    return found


def _all(programs: tuple[str, ...], report: Report) -> str:
    """Names of programs; "all" if these are all."""
    if len(report.programs) > 1 and set(programs) in (set(), {row.name for row in report.programs}):
        return "all"
    return ", ".join(dict.fromkeys(programs)) or "all"
