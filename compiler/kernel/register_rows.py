"""Rows whose elements the invocations of a workgroup hold among them: each computes its own once, for all reductions.

Where an invocation's share of a row is small enough, there are no loops: its elements stand one after the other in the
text, and what one turn over the row has loaded or computed is at hand in the next. Nothing of a row goes through
shared memory but the part of each invocation, and nothing is loaded twice.

Neighbours, in fours where the machine loads so, go to neighbouring invocations unless a reducer needs the order of the
elements; then each has a run. Beyond the row an invocation takes its last element again, and leaves it out.

Of rows whose length a call brings an invocation has as many elements as the longest ones need. PoCL keeps in memory
what is needed behind a barrier, and truth values as single bytes, so whether there is an element is asked anew there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Dim, bounds, ceildiv, dim_min
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.reducers import is_commutative

from .body import Body
from .dialect import VECTOR
from .elemental import Elemental
from .index import Index, invocation_index
from .loops import Fold, Scalars
from .row_kernel import Result, Row, store_parts
from .row_values import Span, held_values, reached
from .rules import element_of
from .schedule import Schedule


def emit_rows(elemental: Elemental, body: Body, schedule: Schedule, outputs: Sequence[Result]) -> None:
    """The code of who takes a row. Those behind the last row take it once more, since all meet at barriers."""
    b, rows, lanes = elemental.builder, body.rows, schedule.lanes
    number = b.workgroup_id() if schedule.by_workgroups else invocation_index(b, schedule.workgroup_size)
    inside = b.op("compare_lt", number, b.index(rows))
    row = elemental, body.ops, rows, b.op("minimum", number, b.index(rows - 1)), lanes
    if schedule.find("stage", "k") is None:
        Row(*row).emit(outputs, inside)
        return
    length = body.extents["k"]
    (least, most), (assumed, limit) = bounds(length), schedule.range_of("k")
    span = Span(length, max(least, assumed), most if limit is None else min(most, limit))
    RegisterRow(*row, span=span).emit(outputs, inside)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place of the share of an invocation: the position in the row, and whether there is one, None if for certain."""

    position: Value
    inside: Value | None


@dataclass(slots=True, kw_only=True)
class RegisterRow(Row):
    """A row whose elements invocations keep in registers; `span`: how long it may be."""

    span: Span

    #: values that several turns need -> the elements of each slot, as far as they are there
    held: dict[Value, list[Value]] = field(default_factory=dict)
    #: how many have been met
    barriers: int = 0

    def _plan(self, results: Sequence[Value]) -> None:
        self.held = {value: [] for value in held_values(self.ops, self.rows, results)}

    def _slots(self, length: int) -> list[list[Slot]]:
        """The share of this invocation, in runs of neighbours that are loaded and stored together."""
        b, lanes, width = self.builder, self.lanes, self._width(length)
        runs, each, certain = length // width, self._each(length), self.span.bounds(length)[0] // width
        local = b.index(0) if lanes == 1 else b.op("convert", self.local, to=b.index_type)
        ordered = self._in_order()
        share = []
        for turn in range(each):
            last = (lanes - 1) * each + turn if ordered else lanes * (turn + 1) - 1
            own = b.op("multiply", local, b.index(each)) if ordered else local
            first = turn if ordered else turn * lanes
            run, inside = b.op("add", own, b.index(first)), None
            if last >= certain:
                moved = b.op("add", own, b.index(first + self.barriers))  # or LLVM would see what it has already
                inside = b.op("compare_lt", moved, b.index(runs + self.barriers))
                run = b.op("minimum", run, b.index(runs - 1))
            start = b.op("multiply", run, b.index(width))
            share.append([Slot(b.op("add", start, b.index(at)), inside) for at in range(width)])
        return share

    def _width(self, length: int) -> int:
        """Elements of a run."""
        return VECTOR if self.builder.machine.wide_loads and length % VECTOR == 0 else 1

    def _each(self, length: int) -> int:
        """Runs of an invocation."""
        return ceildiv(self.span.bounds(length)[1], self._width(length) * self.lanes)

    def _in_order(self) -> bool:
        return not all(is_commutative(op.body.block) for op in self.ops if isinstance(op, Reduce))

    # reductions

    def _folded(self, op: Reduce, fold: Fold) -> list[Value]:
        b = self.builder
        if self.lanes == 1:
            return self._share_of(op, fold, self.elemental.run(fold.start()))
        values = self._share_of(op, fold, [])
        shared = [b.shared(self.lanes, element_of(result)) for result in op.results]
        store_parts(b, values, shared, self.local)
        b.barrier()
        self.barriers += 1
        return self.elemental.run(self._all(fold, shared, self._sharing(fold)))

    def _sharing(self, fold: Fold) -> int:
        """How many invocations have elements, or what changes nothing."""
        if _neutral(fold):
            return self.lanes
        runs, each = fold.count // self._width(fold.count), self._each(fold.count)
        return ceildiv(runs, each) if self._in_order() else dim_min(runs, self.lanes)

    def _share_of(self, op: Reduce, fold: Fold, values: list[Value]) -> list[Value]:
        """This invocation's elements, folded onto values if there are some; where it has no elements and no values,
        what changes nothing if there is such, or anything.
        """
        b = self.builder
        slots = [slot for run in self._slots(fold.count) for slot in run]
        held = self._held_of(list(op.inputs))
        for number, slot in enumerate(slots):
            element = self.elemental.run(self._at_slot(held, number, slot, fold.at(b, slot.position)))
            folded = self.elemental.run(fold.combine(values, element)) if values else element
            before = values or _neutral(fold)
            if slot.inside is not None and before:
                folded = [b.select(slot.inside, new, old) for new, old in zip(folded, before, strict=True)]
            values = folded
        return values

    def _held_of(self, wanted: list[Value]) -> list[Value]:
        """What is held, or to be, of what a turn over the row needs."""
        needed = reached(wanted, self.rows)
        return [value for value in self.held if value in needed]

    def _at_slot(self, held: Sequence[Value], number: int, slot: Slot, wanted: Scalars) -> Scalars:
        """What is wanted of a slot, with what is held of it at hand; what is not there yet is from now on."""
        for value in held:
            place = self._at(value, slot.position)
            if len(self.held[value]) == number:
                self.held[value].append((yield value, place))
            self._remember(value, place, self.held[value][number])
        return (yield from wanted)

    # results

    def _write(self, outputs: Sequence[Result], length: int) -> None:
        held = self._held_of([value for value, _ in outputs])
        number = 0
        for run in self._slots(length):
            places = [[self._at(value, slot.position) for value, _ in outputs] for slot in run]
            values = []
            for slot, at in zip(run, places, strict=True):
                values.append(self.elemental.run(self._at_slot(held, number, slot, _elements(outputs, at))))
                number += 1
            self._store(outputs, run[0].inside, places, values)

    def _store(
        self,
        outputs: Sequence[Result],
        inside: Value | None,
        places: Sequence[Sequence[Index]],
        values: Sequence[Sequence[Value]],
    ) -> None:
        """Writes a run of all results, where there is one."""
        b = self.builder

        def write() -> list[Value]:
            for ordinal, (_, store) in enumerate(outputs):
                store([at[ordinal] for at in places], [value[ordinal] for value in values])
            return []

        if inside is None:
            write()
        else:
            b.branch(inside, write, list)


def _neutral(fold: Fold) -> list[Value]:
    """What an invocation without elements gives, where a call brings how many there are and it changes nothing."""
    return list(fold.neutral or ()) if isinstance(fold.count, Dim) else []


def _elements(outputs: Sequence[Result], places: Sequence[Index]) -> Scalars:
    found = []
    for (value, _), at in zip(outputs, places, strict=True):
        found.append((yield value, at))
    return found
