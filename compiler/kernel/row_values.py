"""What is computed of a row, by whom and when: what is one number a row, what several turns over a row need."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from orchestrion.compiler.flow.fusion_reads import elements
from orchestrion.compiler.flow.row_bodies import rows_of
from orchestrion.compiler.flow.structure import keeps_order
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim, bounds, ceildiv, dim_max
from orchestrion.compiler.sequencer.ll_seq import LoadInput
from orchestrion.compiler.stablehlo.ops.base import dtype_of
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.costs import cost_of, is_expensive
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise

from .loops import turns
from .machine import Machine
from .reduction_limits import longest

#: bytes of shared memory for what several turns over a row need: with the parts of folds within what all devices have
KEPT_BYTES = 8 << 10
#: invocations that may hold a row among them, where it is not short enough for one
HOLDERS = (8, 16, 32, 64, 128)
#: rows up to this length are one invocation's
SHORT = 16
#: lengths up to which rows have a kernel each that holds them, where a call brings the length
LENGTHS = (16, 64, 128, 256, 512, 1024)
#: elements of a row that an invocation may hold, and about how many primitives may be written for all of them
MOST_HELD, MOST_TEXT = 64, 1200


def of_a_row(ops: Sequence[Operation], rows: int) -> set[Operation]:
    """Ops that compute one number a row, for that row only: every invocation has it, in front of the turns."""
    return {
        op
        for op in ops
        if (isinstance(op, Elementwise) or keeps_order(op))
        and elements(op.results[0]) == rows
        and rows_of(ops, (), op.results) is not None
    }


def kept_values(ops: Sequence[Operation], rows: int, results: Sequence[Value]) -> list[Value]:
    """Expensive values that several turns need, as many as there is room for."""
    turns = [reached(list(op.inputs), rows) for op in ops if isinstance(op, Reduce)]
    turns.append(reached([value for value in results if is_longer(value, rows)], rows))
    room = KEPT_BYTES
    found: list[Value] = []
    wanted = {value for turn in turns for value in turn if sum(value in other for other in turns) > 1}
    for op in reversed(ops):
        value = op.results[0]
        if isinstance(elements(value) // rows, Dim):  # no array is long enough for every call
            continue
        if value not in wanted or not is_costly(op) or any(r in wanted for user in value.users() for r in user.results):
            continue
        size = array_length(value, rows) * dtype_of(value).itemsize
        if size <= room and rows_of(ops, (), [value]) is not None:
            room -= size
            found.append(value)
    return found


def reached(values: list[Value], rows: int) -> set[Value]:
    """What a turn over a row loads or computes of elements at the very place, down to what has one number a row."""
    seen: set[Value] = set()
    while values:
        value = values.pop()
        sources = _sources(value, rows)
        if value not in seen and sources is not None:
            seen.add(value)
            values += sources
    return seen


def _sources(value: Value, rows: int) -> list[Value] | None:
    """The operands that are read at the place of the element itself; None where it is not one of a turn."""
    op = value.defining_op
    if not is_longer(value, rows):
        return None
    if op is None or isinstance(op, LoadInput):
        return []
    if isinstance(op, Elementwise) or keeps_order(op):
        return [operand for operand in op.operands if elements(operand) == elements(value)]
    return None


def array_length(value: Value, rows: int) -> int:
    """Of the shared array for a row of a value: a power of two."""
    return 1 << (elements(value) // rows - 1).bit_length()


def is_longer(value: Value, rows: int) -> bool:
    """Whether a value may have more than one number a row."""
    return elements(value) != rows and bounds(elements(value) - rows)[1] > 0


def is_costly(op: Operation) -> bool:
    """Whether an op or one that it is made of, element by element, is expensive."""
    stack, seen = [op], {op}
    while stack:
        one = stack.pop()
        if is_expensive(one):
            return True
        for operand in one.operands:
            maker = operand.defining_op
            if isinstance(maker, Elementwise) and maker not in seen:
                seen.add(maker)
                stack.append(maker)
    return False


# rows that are held


def lengths_of(ops: Sequence[Operation], rows: int, results: Sequence[Value]) -> list[int]:
    """How many elements of a row are folded or written, each time."""
    reduced = [op.inputs[0] for op in ops if isinstance(op, Reduce)]
    return [elements(value) // rows for value in (*reduced, *results)]


def length_of(ops: Sequence[Operation], rows: int, results: Sequence[Value]) -> int:
    """The most of `lengths_of`."""
    return reduce(dim_max, lengths_of(ops, rows, results))


def turns_of_row(ops: Sequence[Operation], rows: int, results: Sequence[Value], lanes: int, machine: Machine) -> int:
    """Turns of all loops of an invocation that shares a row with others: of each reduction, and of the results of each
    length. A bound: loops along axes of few elements take up to three turns an element.
    """
    folded = [elements(op.inputs[0]) // rows for op in ops if isinstance(op, Reduce)]
    lengths = (*folded, *dict.fromkeys(elements(value) // rows for value in results))
    most = [longest(length, machine) if length in folded else bounds(length)[1] for length in lengths]
    nested = lanes == 1 and not any(isinstance(length, Dim) for length in folded)
    return sum(turns(ceildiv(each, lanes)) for each in most) * (3 if nested else 1)


class Span(NamedTuple):
    """How long rows may be: the longest of a row, `length`, has from `least` to `most` elements."""

    length: int
    least: int
    most: int

    def bounds(self, length: int) -> tuple[int, int]:
        """The least and the most that any length of theirs may be."""
        least, most = bounds(length)
        return max(least, self.least) if length == self.length else least, min(most, self.most)


def held_lanes(ops: Sequence[Operation], length: int, machine: Machine) -> int:
    """How many invocations hold a row of up to so many elements among them, the fewest that can; 0 where no number of
    them can.
    """
    most = min(MOST_HELD, MOST_TEXT // max(sum(map(_text, ops)), 1))
    few = [1] if length <= SHORT else [lanes for lanes in HOLDERS if lanes >= machine.subgroup]
    return next((lanes for lanes in few if length <= lanes * most), 0)


def held_spans(ops: Sequence[Operation], rows: int, results: Sequence[Value], machine: Machine) -> list[Span]:
    """Of rows whose length a call brings, those that have a kernel each which holds them, from the shortest on. None
    where rows may be empty.
    """
    length, found = length_of(ops, rows, results), list[Span]()
    least, most = bounds(length)
    if not isinstance(length, Dim) or any(bounds(one)[0] < 1 for one in lengths_of(ops, rows, results)):
        return []
    for long in LENGTHS:
        if least <= min(long, most) and held_lanes(ops, min(long, most), machine):
            found.append(Span(length, least, min(long, most)))
            least = found[-1].most + 1
    return found


def _text(op: Operation) -> int:
    """About how many primitives an element takes."""
    if isinstance(op, Reduce):
        return sum(map(_text, op.body.block))
    return cost_of(op).code


def held_values(ops: Sequence[Operation], rows: int, results: Sequence[Value]) -> list[Value]:
    """What one turn over a row loads or computes and a later one needs; not what it only needs to get there."""
    turns = [list(op.inputs) for op in ops if isinstance(op, Reduce)]
    turns.append(list(results))
    known: set[Value] = set()
    held: dict[Value, None] = {}
    for turn in turns:
        now: set[Value] = set()
        while turn:
            value = turn.pop()
            sources = _sources(value, rows)
            if value in known:
                held[value] = None
            elif value not in now and sources is not None:
                now.add(value)
                turn += sources
        known |= now
    return list(held)
