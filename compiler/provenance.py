"""Follows the ops of the source through the passes, for a placement report (`placement.py`). Only runs if one is
wanted.

Each op gets a number, which its location carries (`ir/locations.py`, `Tracked`). Everything derived from the op carries
the number as well. After every pass the remaining numbers are collected. A number that has disappeared ends there: the
pass is the reason, and the values that replaced its values (`Value.replace_by`) are what it became. When programs are
formed and executables are final, the remaining ops are placed in dispatches, copies, fills and host code. Tracked
locations print like others, so the compiled module is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from orchestrion.compiler.ir.attributes import StringAttr
from orchestrion.compiler.ir.core import Operation, Trait
from orchestrion.compiler.ir.locations import Location, Origin, Tracked, numbers_of, origin_of, place_of, source_text
from orchestrion.compiler.ir.parameters import name_of
from orchestrion.compiler.kernel.lower import schedules_of
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.stablehlo.ops.control_flow import While
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.compiler.stablehlo.ops.func import Call, Func, Return
from orchestrion.compiler.stablehlo.ops.structural import Constant

from .bytecode import vm
from .errors import CompileError, Diagnostic
from .flow import dialect as flow
from .ir import util
from .parts import parts_of
from .placement import EntryRow, NotTaken, Place, ProgramRow, Refusal, Report, SourceOp
from .sequencer import hl_seq, ll_seq

if TYPE_CHECKING:
    from orchestrion.compiler.ir.builtin import Module

    from .pipeline import Pass

P = TypeVar("P", bound=Operation)

#: The compiler's own dialects, whose ops are not ops of a source.
_OWN: Final = frozenset({"builtin", "flow", "util", "hl_seq", "ll_seq", "vm", "kernel", "tensor_bytecode"})
#: Pass -> why an op that it removed is gone, if that is the same for all of them.
_REMOVED_BY: Final[dict[str, str]] = {
    "erase-private": "removed: it is in a function that nobody calls",
    "drop-annotations": "removed: an annotation, which changes no value",
}
#: Ops that hold a constant, in any phase.
_CONSTANTS: Final = (Constant, util.Global, util.GlobalLoad, flow.Splat)
#: Op before memory is planned -> kind of place, and whether it only counts if nothing else holds the op.
_KINDS: Final[tuple[tuple[tuple[type[Operation], ...], str, bool], ...]] = (
    ((flow.Splat,), "fill", False),
    ((util.BranchOp, *util.HOST_OPS), "host", False),
    ((util.Assert,), "check", False),
    ((util.GlobalLoad, util.GlobalStore), "variable", True),
    ((hl_seq.Import, hl_seq.Export, flow.Empty, hl_seq.Clone, Return), "boundary", True),
)


class Recorder:
    """Fills a report during one compilation."""

    def __init__(self, report: Report, targets: tuple[str, ...]) -> None:
        self.report = report
        for rows in (report.programs, report.ops, report.refusals, report.not_taken, report.left_out):
            rows.clear()  # clear rows of an earlier compilation
        self.targets = targets
        self._ops: list[Operation] = []
        self._alive: dict[int, bool] = {}  #: number -> whether only constants are left of it
        self._became: list[tuple[Origin, Origin | None]] = []  #: (replaced, replacement) in the running pass
        self._folded: dict[int, str] = {}  #: number -> the pass after which only constants were left
        #: (number, a place of it), and (number, a program with a place of it)
        self._placed: set[tuple[int, Place | str]] = set()
        self._refusals: dict[str, list[Diagnostic]] = {}  #: target -> why it refuses the program
        self._not_taken: dict[tuple[str, str, str], list[str]] = {}

    # before the passes

    def start(self, module: Module) -> None:
        """Numbers the ops of the source."""
        for function in [op for part in parts_of(module) or [module] for op in part.block]:
            if not isinstance(function, Func | flow.Executable | hl_seq.Program):
                continue
            numbers: dict[Operation, int] = {}
            for op in function.walk():
                if op is not function and op.name.partition(".")[0] not in _OWN and not isinstance(op, Func):
                    numbers[op] = self._number(op, function, numbers)

    def _number(self, op: Operation, function: Operation, numbers: dict[Operation, int]) -> int:
        number = len(self.report.ops)
        parent = numbers.get(op.parent_op) if op.parent_op is not None else None
        name = f"{op.name}({op.function})" if isinstance(op, CustomCall) else op.name
        row = SourceOp(number, name, source_text(op.loc), function.symbol or "", parent)
        self.report.ops.append(row)
        self._ops.append(op)
        self._alive[number] = isinstance(op, Constant)
        op.loc = Tracked(op.loc, Origin(frozenset({number}), self._replaced))
        return number

    def _replaced(self, origin: Origin, by: Origin | None) -> None:
        self._became.append((origin, by))

    # after each pass

    def after_pass(self, row: Pass, module: Module) -> None:
        """Updates the report after a pass."""
        self._count(row.name, module)
        self._became.clear()
        places = {
            "link-executables": self._place,
            "convert-to-ll-seq": self._place_copies,
            "record-control-flow": self._place_recorded,
            "loops-to-kernels": self._place_loops,
        }
        if row.name == "hoist-into-initializers":
            _join_regions(module)
        elif row.name in places:
            for program in hl_seq.programs_of(module):
                places[row.name](program)
        elif row.name == "lower-executables":
            self._lowered(module)
        elif row.name == "convert-to-vm":
            self._finish(module)

    def _count(self, name: str, module: Module) -> None:
        """Finds the numbers that a pass removed, or reduced to constants."""
        if name in ("lower-executables", "convert-to-vm", "assign-registers"):
            return  # all ops are placed by now
        constants: list[Origin] = []
        computed: list[Origin] = []
        for op in module.walk():
            origin = origin_of(op.loc)
            if origin is not None:
                (constants if isinstance(op, _CONSTANTS) else computed).append(origin)
            computed += _arguments(op)
        living = numbers_of(computed)
        left = living | numbers_of(constants)
        gone = self._alive.keys() - left
        became = self._successors(gone)
        for number in sorted(gone):
            self._end(number, name, became.get(number, []))
        for number, constant in self._alive.items():
            if number in left and number not in living and not constant:
                self._folded.setdefault(number, name)
        self._alive = {n: constant or n not in living for n, constant in self._alive.items() if n in left}

    def _successors(self, gone: Set[int]) -> dict[int, list[Origin | None]]:
        """number -> the origins of the values that replaced its values in the last pass"""
        found: dict[int, list[Origin | None]] = {}
        for origin, by in self._became:
            for number in origin.numbers & gone:
                found.setdefault(number, []).append(by)
        return found

    def _end(self, number: int, name: str, became: list[Origin | None]) -> None:
        row, op = self.report.ops[number], self._ops[number]
        if row.places:
            return
        others = numbers_of(to for to in became if to is not None and number not in to.numbers)
        row.stands_for = tuple(sorted(others))
        row.end = self._reason(number, op, name, bool(became), None in became)

    def _reason(self, number: int, op: Operation, name: str, is_replaced: bool, is_argument: bool) -> str:
        if number in self._folded:
            return f"folded into a constant by {self._folded[number]}, which nothing needs after {name}"
        if name in _REMOVED_BY:
            return _REMOVED_BY[name]
        if op.has(Trait.TERMINATOR):
            return f"removed by {name}: it ends a region or a function, whose values go where they are needed"
        if isinstance(op, Call) and is_replaced:
            return f"inlined by {name}: the ops of the function stand in its place"
        if isinstance(op, While) and name == "unroll-short-loops":
            return f"unrolled by {name}: copies of its body stand in its place"
        if self.report.ops[number].stands_for:
            return f"removed by {name}: its values are those of other ops"
        if name == "refine-shapes":
            return f"removed by {name}: it computes sizes, which types say"
        if is_argument:
            return f"removed by {name}: its values are arguments"
        return f"removed by {name}: nothing needs its values"

    # places

    def _place(self, program: hl_seq.Program) -> None:
        name = program.sym_name.value
        row = ProgramRow(name, program.profile, program.machine_name, known_profile(program.profile).format)
        self.report.programs.append(row)
        entries = {ref: op for exe in program.walk(ll_seq.Executable) for ref, op in exe.entries()}
        weak: list[tuple[Operation, Place]] = []
        for top in program.body.block:
            if isinstance(top, util.Global) and top.value is not None:
                kind = "constant" if top.mutable is None else "variable"
                self._add(top.loc, Place(name, kind, "", detail=top.sym_name.value))
            elif isinstance(top, util.Global) and top.parameter is not None:
                self._add(top.loc, Place(name, "parameter", "", detail=name_of(top.parameter)))
            if not isinstance(top, Func | util.Initializer):
                continue
            function = (top.symbol or "") if isinstance(top, Func) else "initializer"
            for op in top.walk():
                if isinstance(op, flow.Dispatch):
                    self._dispatch(op, entries[op.entry], Place(name, "dispatch", function, op.entry.root))
                    continue
                for kinds, kind, is_weak in _KINDS:
                    if isinstance(op, kinds):
                        place = Place(name, kind, function)
                        weak += [(op, place)] if is_weak else []
                        if not is_weak:
                            self._add(op.loc, place)
        for op, place in weak:
            self._add(op.loc, place, alone=True)

    def _dispatch(self, op: flow.Dispatch, entry: ll_seq.Entry, place: Place) -> None:
        """Places the ops of a dispatch: those of its region, or of its entry if the source has dispatches already."""
        origin = origin_of(op.loc)
        main: frozenset[int] = frozenset()
        if origin is None:
            inside = [found for inner in entry.walk() if (found := origin_of(inner.loc)) is not None]
            if not inside:
                return
            origin = Origin.joined(inside)
        else:
            main = origin.parts[0].numbers if origin.parts else origin.numbers
        calls = {number for inner in entry.walk(CustomCall) for number in _numbers(inner)}
        for number in sorted(origin.numbers):
            source = self._ops[number]
            is_call = number in calls and isinstance(source, CustomCall)
            self._put(
                number,
                Place(
                    place.program,
                    "library call" if is_call else "dispatch",
                    place.function,
                    place.executable,
                    entry.sym_name.value,
                    number in main,
                    source.function if is_call and isinstance(source, CustomCall) else "",
                ),
            )

    def _place_copies(self, program: hl_seq.Program) -> None:
        """Places the copies that remain when memory is planned."""
        for op in program.walk(ll_seq.Copy):
            self._add(op.loc, Place(program.sym_name.value, "copy", _function_of(op)))

    def _place_recorded(self, program: hl_seq.Program) -> None:
        """Moves the ops of recorded loops and branches from the host to the recordings."""
        for run_loop in program.walk(ll_seq.RunLoop):
            name, function = program.sym_name.value, run_loop.sym_name.value
            host, recorded = Place(name, "host", function), Place(name, "recording", function)
            blocks = [op for op in run_loop.walk() if isinstance(op, ll_seq.Loop | ll_seq.Branch)]
            for number in sorted({number for op in blocks for number in _numbers(op)}):
                places = self.report.ops[number].places
                self.report.ops[number].places = [place for place in places if place != host]
                self._placed.discard((number, host))
                self._put(number, recorded)

    def _place_loops(self, program: hl_seq.Program) -> None:
        """Moves the ops of loops that became kernels or run in batches to their entries; notes new names of others."""
        entries = {ref: op for exe in program.walk(ll_seq.Executable) for ref, op in exe.entries()}
        left = {(ref.root, *ref.nested) for ref in entries}
        name = program.sym_name.value
        known = {(one.executable, one.entry) for row in self.report.ops for one in row.places if one.program == name}
        dispatches = list(program.walk(ll_seq.Dispatch))
        made = [entries[op.entry] for op in dispatches]
        if not any(one.predicate is not None or isinstance(one.body.block.first, ll_seq.Loop) for one in made):
            return
        for op in [op for op in dispatches if (op.entry.root, op.entry.nested[0]) not in known]:
            function = _function_of(op)
            place = Place(name, "dispatch", function, op.entry.root, op.entry.nested[0])
            recorded = Place(name, "recording", function)
            for number in sorted({number for inner in entries[op.entry].walk() for number in _numbers(inner)}):
                row = self.report.ops[number]
                gone = [
                    one
                    for one in row.places
                    if one == recorded
                    or one.program == place.program
                    and one.kind == "dispatch"
                    and (one.executable, one.entry) not in left
                ]
                row.places = [one for one in row.places if one not in gone]
                self._put(number, place)

    def _add(self, loc: Location, place: Place, alone: bool = False) -> None:
        origin = origin_of(loc)
        for number in sorted(origin.numbers) if origin is not None else ():
            if not alone or (number, place.program) not in self._placed:
                self._put(number, place)

    def _put(self, number: int, place: Place) -> None:
        if number in self._folded:
            place = replace(place, detail=f"folded into a constant by {self._folded[number]}")
        if (number, place) not in self._placed:
            self._placed |= {(number, place), (number, place.program)}
            self.report.ops[number].places.append(place)

    # information from passes

    def refused(self, target: str, diagnostics: Iterable[Diagnostic]) -> None:
        """Records the diagnostics of a target. The pass raises CompileError after it has asked all targets."""
        self._refusals.setdefault(target, []).extend(diagnostics)

    def failed(self, error: CompileError) -> None:
        """Clears programs and places: the compilation failed."""
        if not self._refusals:  # no pass said that only some targets refuse it
            targets = self.targets if not self.report.programs else ("",)
            self._refusals = {name: [*error.diagnostics] for name in targets}
        self.report.programs.clear()
        for row in self.report.ops:
            row.places.clear()
            row.end, row.stands_for = "", ()
        self.report.refusals = refusal_rows(self._refusals)

    def not_taken(self, program: str, what: str, loc: Location, reason: str) -> None:
        """Records a faster form that exists and is not used in a program; `program` is "" for all programs."""
        key = (what, source_text(loc), reason)
        self._not_taken.setdefault(key, []).extend([program] if program else [])

    def _lowered(self, module: Module) -> None:
        for program, row in self._rows(module, hl_seq.Program):
            for op in program.walk(ll_seq.Executable):
                row.entries += list(_kernels(op))

    def _finish(self, module: Module) -> None:
        for program, row in self._rows(module, vm.Program):
            row.features = tuple(item.value for item in program.features if isinstance(item, StringAttr))
        self.report.not_taken = [NotTaken(tuple(dict.fromkeys(p)), *row) for row, p in self._not_taken.items()]

    def _rows(self, module: Module, kind: type[P]) -> Iterator[tuple[P, ProgramRow]]:
        rows = {row.name: row for row in self.report.programs}
        for op in module.block:
            if isinstance(op, kind):
                yield op, rows[op.symbol or ""]


def _kernels(executable: ll_seq.Executable) -> Iterator[EntryRow]:
    """The entries of an executable, each with its schedule and the sizes of the dispatches that take it."""
    entries = [entry for _, entry in executable.entries()]
    sizes = {row.entry: f"{row.size} <= {row.most}" for entry in entries for row in ll_seq.specializations_of(entry)}
    for entry in entries:
        name, size = entry.sym_name.value, entry.workgroup_size
        schedule = ", ".join(str(one) for found in schedules_of(entry) for one in found.steps)
        workgroup = () if size is None else size.ints
        yield EntryRow(executable.sym_name.value, name, schedule, workgroup, sizes.get(name, ""))


def refusal_rows(refusals: Mapping[str, Sequence[Diagnostic]]) -> list[Refusal]:
    """The rows of a report for the refusals of each target; the name "" stands for no target in particular."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for target, diagnostics in refusals.items():
        for one in diagnostics:
            found.setdefault((one.op, source_text(one.loc), one.message), {})[target] = None
    return [Refusal(tuple(filter(None, targets)), *key) for key, targets in found.items()]


def _join_regions(module: Module) -> None:
    """Gives the location of each dispatch region the origins of all ops in it, the main op first."""
    for region in list(module.walk(flow.DispatchRegion)):
        main = origin_of(region.loc)
        inside = [found for op in region.body.walk() if (found := origin_of(op.loc)) is not None]
        if main is not None and inside:
            region.loc = Tracked(place_of(region.loc), Origin.joined([main, *inside]))


def _arguments(op: Operation) -> Iterator[Origin]:
    """The origins of block arguments that were made from ops of the source."""
    for argument in op.block_arguments():
        origin = origin_of(argument.loc)
        if origin is not None:
            yield origin


def _function_of(op: Operation) -> str:
    """The name of the exported function that runs a command, or `initializer`."""
    loops = (outer.sym_name.value for outer in op.enclosing() if isinstance(outer, ll_seq.RunLoop))
    return next(loops, "initializer")


def _numbers(op: Operation) -> frozenset[int]:
    origin = origin_of(op.loc)
    return frozenset() if origin is None else origin.numbers
