"""Values of a row: which ops give one number per row, which values several passes over a row need, and what fits.

A *pass* over a row reads its elements once: each reduction is a pass, and writing the results is the last one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from orchestrion.compiler.flow.fusion_reads import elements
from orchestrion.compiler.flow.row_bodies import rows_of
from orchestrion.compiler.flow.structure import keeps_order
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim, Size, bounds, ceildiv, is_dynamic
from orchestrion.compiler.kernel.body import Rows
from orchestrion.compiler.kernel.elements.loops import loop_iterations
from orchestrion.compiler.kernel.elements.parts import FEW_PARTS
from orchestrion.compiler.kernel.machine import MAX_SHARED_BYTES, Machine, shared_bytes
from orchestrion.compiler.kernel.reduction_limits import longest
from orchestrion.compiler.sequencer.ll_seq import LoadInput
from orchestrion.compiler.stablehlo.ops.base import dtype_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.costs import cost_of, is_expensive
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise

#: bytes of shared memory for values that several passes need; partial results take the rest that every device has
MAX_SHARED_ROW_BYTES = 8 << 10
#: numbers of invocations that may keep a row in registers, if one invocation cannot
REGISTER_ROW_LANES = (8, 16, 32, 64, 128)
#: one invocation computes rows up to this length
MAX_SERIAL_ROW = 16
#: upper bounds of the ranges of dynamic row lengths that have a kernel each with rows in registers
REGISTER_ROW_LENGTHS = (16, 64, 128, 256, 512, 1024)
#: greatest number of elements of a row in the registers of an invocation
MAX_REGISTER_ELEMENTS = 64


def row_scalars(rows: Rows) -> set[Operation]:
    """Ops that compute one number per row from that row alone. Every invocation computes them, outside the passes."""
    return {
        op
        for op in rows.ops
        if (isinstance(op, Elementwise) or keeps_order(op))
        and elements(op.results[0]) == rows.count
        and rows_of(rows.ops, (), op.results) is not None
    }


def shared_values(rows: Rows, most: int | None = None) -> list[Value]:
    """Expensive values that several passes need, as many as fit in shared memory. `most`: greatest length of rows of
    dynamic length, if the kernel has one.
    """
    passes = [pass_values(values, rows) for values in rows.passes]
    room = MAX_SHARED_ROW_BYTES
    found: list[Value] = []
    wanted = {value for one in passes for value in one if sum(value in other for other in passes) > 1}
    for op in reversed(rows.ops):
        value = op.results[0]
        if isinstance(rows.length_of(value), Dim) and most is None:  # no array is long enough for every call
            continue
        if value not in wanted or not is_costly(op) or any(r in wanted for user in value.users() for r in user.results):
            continue
        size = _array_bytes(value, rows, most)
        if size <= room and rows_of(rows.ops, (), [value]) is not None:
            room -= size
            found.append(value)
    return found


def parts_bytes(ops: Sequence[Operation], lanes: int) -> int:
    """Bytes of shared memory for the parts of all reductions and dots among the ops, if `lanes` invocations share
    each.
    """
    if lanes == 1:
        return 0
    results = [result for op in ops if isinstance(op, Reduce | DotGeneral) for result in op.results]
    places = lanes + (FEW_PARTS if lanes > FEW_PARTS else 0)
    return places * sum(shared_bytes(dtype_of(result)) for result in results)


def shared_row_bytes(rows: Rows, lanes: int, most: int | None = None) -> int:
    """Bytes of shared memory for a row in loops: partial results, and values that several passes need."""
    kept = shared_values(rows, most) if lanes > 1 else []
    return parts_bytes(rows.ops, lanes) + sum(_array_bytes(value, rows, most) for value in kept)


def pass_values(values: list[Value], rows: Rows) -> set[Value]:
    """Values whose elements a pass over `values` loads or computes at its own position, except one number per row."""
    seen: set[Value] = set()
    while values:
        value = values.pop()
        sources = _sources(value, rows)
        if value not in seen and sources is not None:
            seen.add(value)
            values += sources
    return seen


def _sources(value: Value, rows: Rows) -> list[Value] | None:
    """The operands that are read at the position of the element; None if `value` is not computed element by element."""
    op = value.defining_op
    if not is_longer(value, rows):
        return None
    if op is None or isinstance(op, LoadInput):
        return []
    if isinstance(op, Elementwise) or keeps_order(op):
        return [operand for operand in op.operands if elements(operand) == elements(value)]
    return None


def array_length(value: Value, rows: Rows, most: int | None = None) -> int:
    """Length of the shared array for a row of a value, of up to `most` elements: a power of two."""
    length = bounds(rows.length_of(value))[1]
    return 1 << ((length if most is None else min(length, most)) - 1).bit_length()


def _array_bytes(value: Value, rows: Rows, most: int | None) -> int:
    return array_length(value, rows, most) * shared_bytes(dtype_of(value))


def is_longer(value: Value, rows: Rows) -> bool:
    """Whether a value may have more than one number per row."""
    return elements(value) != rows.count and bounds(elements(value) - rows.count)[1] > 0


def is_costly(op: Operation) -> bool:
    """Whether an op, or an elementwise op that it depends on, is expensive."""
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


# rows in registers


def row_iterations(rows: Rows, lanes: int, machine: Machine) -> int:
    """Upper bound of the iterations of all loops of an invocation that shares a row: one per reduction and one per
    length of results.

    Loops along axes of few elements take up to three iterations per element.
    """
    reduced = rows.reduced
    lengths = (*reduced, *dict.fromkeys(map(rows.length_of, rows.results)))
    most = [longest(length, machine) if length in reduced else bounds(length)[1] for length in lengths]
    nested = lanes == 1 and not is_dynamic(*reduced)
    return sum(loop_iterations(ceildiv(each, lanes)) for each in most) * (3 if nested else 1)


class LengthRange(NamedTuple):
    """Range of the row length `length`: from `least` to `most` elements."""

    length: Size
    least: int
    most: int

    def bounds(self, length: Size) -> tuple[int, int]:
        """The least and the greatest value of any length of the body."""
        least, most = bounds(length)
        return max(least, self.least) if length == self.length else least, min(most, self.most)


def register_lanes(ops: Sequence[Operation], length: Size, machine: Machine) -> int:
    """The fewest invocations that can keep a row of up to `length` elements in registers; 0 if no number can."""
    most = min(MAX_REGISTER_ELEMENTS, machine.register_code // max(sum(map(_text, ops)), 1))
    choices = [1] if length <= MAX_SERIAL_ROW else [lanes for lanes in REGISTER_ROW_LANES if lanes >= machine.subgroup]
    fitting = (lanes for lanes in choices if parts_bytes(ops, lanes) <= MAX_SHARED_BYTES)
    return next((lanes for lanes in fitting if length <= lanes * most), 0)


def register_ranges(rows: Rows, machine: Machine) -> list[LengthRange]:
    """Ranges of a dynamic row length that have a kernel each with rows in registers, in ascending order. Empty if the
    length is static or rows may be empty.
    """
    length, found = rows.length, list[LengthRange]()
    least, most = bounds(length)
    if not is_dynamic(length) or any(bounds(one)[0] < 1 for one in rows.lengths):
        return []
    for long in REGISTER_ROW_LENGTHS:
        if least <= min(long, most) and register_lanes(rows.ops, min(long, most), machine):
            found.append(LengthRange(length, least, min(long, most)))
            least = found[-1].most + 1
    return found


def _text(op: Operation) -> int:
    """The approximate number of primitives for one element."""
    if isinstance(op, Reduce):
        return sum(map(_text, op.body.block))
    return cost_of(op).code


def register_values(rows: Rows) -> list[Value]:
    """Values that one pass loads or computes and a later pass needs, without those that are only steps on the way."""
    known: set[Value] = set()
    found: dict[Value, None] = {}
    for one in rows.passes:
        now: set[Value] = set()
        while one:
            value = one.pop()
            sources = _sources(value, rows)
            if value in known:
                found[value] = None
            elif value not in now and sources is not None:
                now.add(value)
                one += sources
        known |= now
    return list(found)
