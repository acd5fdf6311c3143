"""The placement report of a compilation: where each program computes each op of the source, and what was refused.

    report = compiler.Report()
    compiler.compile("model.mlir", report=report)      # filled, also when it raises CompileError
    print(report.text())

Rows only: `provenance.py` follows the ops through the passes and fills them in. Every op of the source has a row, and
in it a `Place` in every program of the module, or an `end`: why no program computes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from orchestrion.schema.printable import printable

#: version of the JSON form; new keys may be added without a new one
VERSION: Final = 1

#: kind of place -> what it means
KINDS: Final[dict[str, str]] = {
    "dispatch": "computed on the device by an entry of an executable",
    "library call": "computed by a library on the host, called by an entry of an executable",
    "copy": "a copy of memory on the device",
    "fill": "memory filled with one value",
    "constant": "bytes of the module",
    "parameter": "bytes outside the module, from a file that is named when it is loaded",
    "variable": "read from or written to memory that outlives calls",
    "host": "a branch or a number of the host's code",
    "check": "a condition on the sizes of a call, which the host checks",
    "boundary": "an argument or a result: memory of the caller, nothing is computed",
}


def entry_name(executable: str, entry: str) -> str:
    """`executable/entry`, or one name where both have it."""
    return executable if executable == entry else f"{executable}/{entry}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program has an op. `executable` and `entry` are names in the module; `function` is the exported function
    that runs it, or `initializer` for what runs once at load. `is_main`: the op is what the dispatch is named after.
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
        """All but the program, in words."""
        name = entry_name(self.executable, self.entry)
        parts = [self.kind, name, self.detail and f"({self.detail})", f"in {self.function}" if self.function else ""]
        return " ".join(filter(None, parts))


@dataclass(slots=True)
class SourceOp:
    """An op of the source. `parent`: the op in whose region it stands. `end`: why no program computes it; empty where
    one does. `stands_for`: the ops that give its value instead, by number.
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
    """A kernel. `schedule`: how its invocations share the work, as steps of `compiler/kernel/schedule.py`; empty if the
    target has no schedules. `calls`: for which calls it is; empty for all, or all others.
    """

    executable: str
    entry: str
    schedule: str
    workgroup_size: tuple[int, ...]
    calls: str = ""


@dataclass(slots=True)
class ProgramRow:
    """A program of the module: what a device must have for it, and its kernels."""

    name: str
    target: str
    machine: str
    format: str
    features: tuple[str, ...] = ()
    entries: list[EntryRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An op that targets refuse: nothing was compiled, or nothing for these targets."""

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
    """What a compilation fills in. `programs` is empty when it failed: no module was made. `left_out`: why the module
    has no program for some of the default targets.
    """

    programs: list[ProgramRow] = field(default_factory=list)
    ops: list[SourceOp] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    not_taken: list[NotTaken] = field(default_factory=list)
    left_out: list[Refusal] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"version": VERSION, **asdict(self)}

    def text(self) -> str:
        """For people; ends with a line break."""
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
    """What is said of an op -> the programs of which it is."""
    found: dict[str, tuple[str, ...]] = {}
    for place in op.places:
        found[place.what] = (*found.get(place.what, ()), place.program)
    return found


def _all(programs: tuple[str, ...], report: Report) -> str:
    """Names of programs; all of them in short."""
    if len(report.programs) > 1 and set(programs) in (set(), {row.name for row in report.programs}):
        return "all"
    return ", ".join(dict.fromkeys(programs)) or "all"
