"""Chooses the schedules of bodies of rows on a machine, by the length of their rows (docs/decisions/rows.md)."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.dims import TYPICAL, Size, bounds, is_dynamic, typical
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.legality import MAX_WORKGROUP_SIZE
from orchestrion.compiler.kernel.machine import MAX_SHARED_BYTES, Machine
from orchestrion.compiler.kernel.reduction_limits import max_counted_iterations
from orchestrion.compiler.kernel.rows.values import (
    MAX_SERIAL_ROW,
    REGISTER_ROW_LANES,
    LengthRange,
    parts_bytes,
    register_lanes,
    register_ranges,
    row_iterations,
    shared_row_bytes,
    shared_values,
)
from orchestrion.compiler.kernel.schedule import Schedule, Step

#: workgroup size of kernels without barriers whose invocations compute an element or a row
ELEMENTS_PER_WORKGROUP = 64
#: number of rows from which on one invocation may take a row of up to `Machine.barrier` elements
MANY_ROWS = 1024
#: elements of an invocation that keeps them in registers, if invocations are lanes of vectors; more are in loops
MAX_UNROLLED = 4
#: greatest dynamic length of rows that one vector takes, and of those whose expensive values are kept
VECTOR_ROW, MAX_KEPT_ROW = 512, 2048
#: greatest row length -> invocations that share a row; most have an element in every reduction
ROW_LANES = {63: 16, 255: 32, 1023: 64, 1 << 62: 128}


def schedules_of_rows(body: Body, machine: Machine) -> tuple[Schedule, tuple[Schedule, ...]]:
    """Rows, in registers if some number of invocations can keep a row. If the row length is dynamic, ranges of lengths
    have a kernel each.
    """
    length = body.extents["k"]
    spans = register_ranges(body.rows, machine)
    if machine.lanes and is_dynamic(length):
        return _rows_in_lanes(body, spans, machine)
    special = [_register_rows(body, span, machine) for span in spans]
    if spans and spans[-1].most == bounds(length)[1]:
        return Schedule.of(*[s for s in special[-1].steps if s.name != "specialize"]), tuple(special[:-1])
    lanes = _row_lanes(body, machine)
    in_registers = not is_dynamic(length) and register_lanes(body.ops, length, machine) == lanes
    if machine.lanes and not is_dynamic(length) and lanes > 1:
        in_registers = length % lanes == 0 and length <= MAX_UNROLLED * lanes
    return _row_schedule(lanes, in_registers), tuple(special)


def _rows_in_lanes(body: Body, spans: Sequence[LengthRange], machine: Machine) -> tuple[Schedule, tuple[Schedule, ...]]:
    """Rows of dynamic length that lanes of vectors share: one vector takes rows of a few hundred elements, as many as
    run side by side take longer ones. An invocation takes the shortest rows. Arrays keep expensive values.
    """
    (least, most), lanes = bounds(body.extents["k"]), machine.lanes * machine.simd
    while parts_bytes(body.ops, lanes) > MAX_SHARED_BYTES:
        lanes //= 2
    special = [_register_rows(body, span, machine) for span in spans[:1] if span.most <= MAX_SERIAL_ROW]
    for count, longest in ((min(lanes, machine.simd), VECTOR_ROW), (lanes, MAX_KEPT_ROW)):
        kept = shared_values(body.rows, longest)
        if least <= longest <= most and (count < lanes or kept):
            special.append(Schedule.of(*_row_schedule(count, False).steps, Step("specialize", "k", count=longest)))
    return _row_schedule(lanes, False), tuple(special)


def _register_rows(body: Body, span: LengthRange, machine: Machine) -> Schedule:
    """Rows in registers, of a range of lengths."""
    least = [Step("assume", "k", count=span.least)] if span.least > bounds(span.length)[0] else []
    steps = _row_schedule(register_lanes(body.ops, span.most, machine), True).steps
    return Schedule.of(*steps, *least, Step("specialize", "k", count=span.most))


def _row_schedule(lanes: int, in_registers: bool) -> Schedule:
    stage = Step("stage", "k", "register") if in_registers else None
    if lanes == 1:
        return Schedule.of(Step("bind", "grid", "invocation", ELEMENTS_PER_WORKGROUP), stage)
    return Schedule.of(Step("bind", "grid", "workgroup"), Step("reduce", "k", "tree", lanes), stage)


def _row_lanes(body: Body, machine: Machine) -> int:
    """Invocations that share a row: a power of two, 1 for short rows. A single invocation cannot store expensive
    values.
    """
    rows, lengths = body.rows, body.rows.reduced
    if is_dynamic(*lengths):
        return _dynamic_lanes(body, lengths, machine)
    length, shortest = max(lengths), min(lengths)
    many = not is_dynamic(rows.count) and rows.count >= MANY_ROWS
    if length <= MAX_SERIAL_ROW or (length <= machine.barrier and many and not shared_values(rows)):
        return 1
    in_registers = 0 if machine.lanes else register_lanes(rows.ops, rows.length, machine)
    if in_registers:
        return in_registers
    lanes = next(count for most, count in ROW_LANES.items() if length <= most)
    if machine.lanes and not is_dynamic(length):
        lanes = vector_row_lanes(length, machine)
    fewest = REGISTER_ROW_LANES[0]
    while lanes > max(shortest, fewest) or lanes > 1 and shared_row_bytes(rows, lanes) > MAX_SHARED_BYTES:
        lanes //= 2
    return lanes


def vector_row_lanes(length: int, machine: Machine) -> int:
    """Invocations that share a row as lanes of vectors: as many vectors as run side by side, fewer for short rows and
    where more than one vector would remain, more if each would have more elements than a block, up to a workgroup.
    """
    lanes = machine.lanes * machine.simd
    while lanes > machine.simd and (length < lanes or length % lanes >= machine.simd):
        lanes //= 2
    while lanes * BLOCK < length and lanes < MAX_WORKGROUP_SIZE:
        lanes *= 2
    return lanes


def _dynamic_lanes(body: Body, reduced: Sequence[Size], machine: Machine) -> int:
    """Invocations that share a row of dynamic length: enough for a typical row, and for the iteration limit of the
    machine.

    Raises CompileError if no number is enough.
    """
    length = max(map(typical, reduced)) * machine.quirks.typical_row // TYPICAL
    wanted = next(lanes for most, lanes in ROW_LANES.items() if length <= most)
    fitting = [
        lanes
        for lanes in ROW_LANES.values()
        if row_iterations(body.rows, lanes, machine) <= max_counted_iterations(machine)
        and parts_bytes(body.ops, lanes) <= MAX_SHARED_BYTES
    ]
    if fitting:
        return next((lanes for lanes in fitting if lanes >= wanted), fitting[-1])
    message = f"rows of up to {bounds(body.extents['k'])[1]} elements are too long for a workgroup"
    raise CompileError([Diagnostic(message)])
