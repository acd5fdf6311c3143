"""Rows in registers: the invocations of a workgroup keep the elements of a row, and compute each once for all
reductions.

There are no loops: the share of an invocation is small enough to write out its elements one after the other. What one
pass over the row loads or computes is in registers for the next pass. Only partial results go through shared memory,
and no element is loaded twice.

Neighbouring invocations take neighbouring elements, in groups of four on machines with wide loads. If a reducer needs
the order of the elements, each invocation takes a contiguous run instead. Beyond the end of the row an invocation takes
the last element again and ignores it.

If the row length is dynamic, an invocation has as many elements as the longest row needs. PoCL stores values that are
needed behind a barrier in memory, and truth values as bytes. The test whether an element exists is therefore repeated
behind each barrier.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, bounds, ceildiv, dim_min, is_dynamic
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.dialect import VECTOR
from orchestrion.compiler.kernel.elements.elemental import Elemental
from orchestrion.compiler.kernel.elements.index import Index, invocation_index
from orchestrion.compiler.kernel.elements.loops import Reduction, Scalars
from orchestrion.compiler.kernel.elements.parts import Parts, combined, store_part
from orchestrion.compiler.kernel.elements.reductions import requested
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.reducers import is_commutative

from .kernel import Result, Row
from .values import LengthRange, pass_values, register_values


def emit_rows(elemental: Elemental, body: Body, schedule: Schedule, outputs: Sequence[Result]) -> None:
    """The code of a kernel of kind `rows`. Workgroups behind the last row compute the last row again, because all
    invocations of a workgroup must reach its barriers.
    """
    b, rows, lanes = elemental.builder, body.rows, schedule.lanes
    number = b.workgroup_id() if schedule.by_workgroups else invocation_index(b, schedule.workgroup_size)
    inside = b.op("compare_lt", number, b.index(rows.count))
    row = elemental, rows, b.op("minimum", number, b.index(rows.count - 1)), lanes
    length, (assumed, limit) = body.extents["k"], schedule.range_of("k")
    if schedule.find("stage", "k") is None:
        Row(*row, limit).emit(outputs, inside)
        return
    least, most = bounds(length)
    span = LengthRange(length, max(least, assumed), most if limit is None else min(most, limit))
    RegisterRow(*row, span=span).emit(outputs, inside)


@dataclass(frozen=True, slots=True)
class Slot:
    """An element of the share of an invocation. `inside`: whether the row has that position."""

    position: Value
    inside: Value


@dataclass(slots=True, kw_only=True)
class RegisterRow(Row):
    """A row whose elements the invocations keep in registers. `span`: the range of its length."""

    span: LengthRange

    #: values that several passes need -> the element of each slot computed so far
    registers: dict[Value, list[Value]] = field(default_factory=dict)
    #: barriers emitted so far
    barriers: int = 0

    def _plan(self) -> None:
        self.registers = {value: [] for value in register_values(self.rows)}

    def _slots(self, length: Size) -> list[list[Slot]]:
        """The share of this invocation, in runs of neighbours that are loaded and stored together."""
        b, lanes, width = self.builder, self.lanes, self._width(length)
        runs, each, certain = length // width, self._each(length), self.span.bounds(length)[0] // width
        local = b.index(0) if lanes == 1 else b.index(self.local)
        ordered = self._in_order()
        share = []
        for number in range(each):
            last = (lanes - 1) * each + number if ordered else lanes * (number + 1) - 1
            own = b.op("multiply", local, b.index(each)) if ordered else local
            first = number if ordered else number * lanes
            run, inside = b.op("add", own, b.index(first)), b.const(True, "i1")
            if last >= certain:
                moved = b.op("add", own, b.index(first + self.barriers))  # or LLVM would see what it has already
                inside = b.op("compare_lt", moved, b.index(runs + self.barriers))
                run = b.op("minimum", run, b.index(runs - 1))
            start = b.op("multiply", run, b.index(width))
            share.append([Slot(b.op("add", start, b.index(at)), inside) for at in range(width)])
        return share

    def _width(self, length: Size) -> int:
        """Elements of a run."""
        return VECTOR if self.builder.machine.wide_loads and length % VECTOR == 0 else 1

    def _each(self, length: Size) -> int:
        """Runs of an invocation."""
        return ceildiv(self.span.bounds(length)[1], self._width(length) * self.lanes)

    def _in_order(self) -> bool:
        return not all(is_commutative(op.body.block) for op in self.rows.ops if isinstance(op, Reduce))

    # reductions

    def _reduced(self, op: Reduce, reduction: Reduction) -> list[Value]:
        b = self.builder
        if self.lanes == 1:
            return self._share_of(op, reduction, self.elemental.run(reduction.start()))
        values = self._share_of(op, reduction, [])
        shared = [b.shared(self.lanes, dtype) for dtype in reduction.dtypes]
        store_part(self.elemental, values, shared, self.local)
        b.barrier()
        self.barriers += 1
        number = self._sharing(reduction)
        most = self.lanes if is_dynamic(number) else number
        free = b.machine.lanes > 0 and not self._in_order()
        parts = Parts(self.elemental, reduction, shared, number, most, free)
        return self.elemental.run(parts.few().total())

    def _sharing(self, reduction: Reduction) -> Size:
        """How many invocations have elements, or the neutral value."""
        if _neutral(reduction):
            return self.lanes
        runs, each = reduction.count // self._width(reduction.count), self._each(reduction.count)
        return ceildiv(runs, each) if self._in_order() else dim_min(runs, self.lanes)

    def _share_of(self, op: Reduce, reduction: Reduction, values: list[Value]) -> list[Value]:
        """Combines `values`, if there are any, with the elements of this invocation. An invocation without elements and
        values returns the neutral value if one is known, else any value.
        """
        b = self.builder
        slots = [slot for run in self._slots(reduction.count) for slot in run]
        registers = self._registers_of(list(op.inputs))
        found = []
        for number, slot in enumerate(slots):
            element = self.elemental.run(self._at_slot(registers, number, slot, reduction.at(b, slot.position)))
            if self._is_free(slots):
                found.append(element)
                continue
            reduced = self.elemental.run(reduction.combine(values, element)) if values else element
            before = values or _neutral(reduction)
            if before:
                reduced = [b.select(slot.inside, new, old) for new, old in zip(reduced, before, strict=True)]
            values = reduced
        return combined(self.elemental, reduction, found) if found else values

    def _is_free(self, slots: Sequence[Slot]) -> bool:
        """Whether the elements of an invocation are combined as a tree, and all exist."""
        if not self.builder.machine.lanes or self._in_order() or self.lanes == 1:
            return False
        return all(self.builder.known(slot.inside) for slot in slots)

    def _registers_of(self, wanted: list[Value]) -> list[Value]:
        """The values in registers, now or later, that a pass over `wanted` needs."""
        needed = pass_values(wanted, self.rows)
        return [value for value in self.registers if value in needed]

    def _at_slot(self, registers: Sequence[Value], number: int, slot: Slot, wanted: Scalars) -> Scalars:
        """Runs `wanted` with the register values of a slot bound. Computes those that are missing first."""
        for value in registers:
            place = self._at(value, slot.position)
            if len(self.registers[value]) == number:
                self.registers[value].append((yield value, place))
            self._remember(value, place, self.registers[value][number])
        return (yield from wanted)

    # results

    def _write_rest(self, outputs: Sequence[Result], length: Size, writes: Value) -> None:
        """Nothing: `_write` takes all elements."""

    def _write(self, outputs: Sequence[Result], length: Size) -> None:
        values_of, numbers = [value for value, _ in outputs], count()
        registers = self._registers_of(list(values_of))
        for run in self._slots(length):
            places = [[self._at(value, slot.position) for value in values_of] for slot in run]
            values = [
                self.elemental.run(
                    self._at_slot(registers, next(numbers), slot, requested(zip(values_of, at, strict=True)))
                )
                for slot, at in zip(run, places, strict=True)
            ]
            self.builder.branch(run[0].inside, partial(_store, outputs, places, values), list)


def _store(
    outputs: Sequence[Result], places: Sequence[Sequence[Index]], values: Sequence[Sequence[Value]]
) -> list[Value]:
    """Writes a run of all results."""
    for (_, store), at, column in zip(outputs, zip(*places, strict=True), zip(*values, strict=True), strict=True):
        store(at, column)
    return []


def _neutral(reduction: Reduction) -> list[Value]:
    """The value of an invocation without elements: the neutral value if the row length is dynamic, else nothing."""
    return list(reduction.neutral or ()) if is_dynamic(reduction.count) else []
