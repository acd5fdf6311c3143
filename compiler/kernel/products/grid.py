"""The grid of a schedule: the tile of results that an invocation or a workgroup computes, and the edges of the
results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd, prod
from typing import Final

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, ceildiv, is_dynamic
from orchestrion.compiler.kernel.body import Body, Extents
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.elements.index import Index, delinearize, invocation_index
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .depthwise import Lines
from .winograd import Squares

#: a function that writes the results at a row and a column of a tile
Write = Callable[[int, int], None]

#: the parallel dimensions of a dot, in the order of its results in memory
DOT: Final = ("b", "m", "n")


def is_tiled_dot(schedule: Schedule) -> bool:
    """Whether the schedule tiles a dot along rows or columns, rather than along its elements as one dimension."""
    return any(step.dim in DOT for name in ("tile", "bind") for step in schedule.named(name))


def tiles(body: Body, schedule: Schedule) -> list[tuple[str, Size]]:
    """The dimensions of the grid and the number of tiles along each. The fastest dimension comes last."""
    extents = body.extents
    if body.kind == "rows":
        return [("m", extents["m"])]
    if body.attention is not None:
        return [("b", extents["b"]), ("m", ceildiv(extents["m"], schedule.count("tile", "m") * schedule.local("m")))]
    if schedule.find("tile", "t") is not None:
        assert body.across is not None
        return [("t", prod(body.across.grid(schedule)))]
    if schedule.by_lines:
        if body.padding is not None:
            return [("e", body.padding.count)]
        if body.dynamic_rows is not None:
            return [("e", body.dynamic_rows.count)]
        assert body.lines is not None
        return [("e", prod(body.lines.grid(schedule)))]
    if not is_tiled_dot(schedule):
        return [("e", ceildiv(body.largest_result, schedule.count("tile", "e") * schedule.local("e")))]
    assert isinstance(body.hero, DotGeneral)
    if schedule.sums == "winograd" and (squares := Squares.of(body.hero)) is not None:
        extents = {**extents, "m": squares.rows}
    if schedule.sums == "windows" and (lines := Lines.of(body.hero)) is not None:
        return [("b", prod(lines.grid(schedule)))]
    order = ("b", "n", "m") if schedule.find("reorder", "n") is not None else DOT
    return [(dim, ceildiv(extents[dim], schedule.count("tile", dim) * schedule.local(dim))) for dim in order]


def grid_size(body: Body, schedule: Schedule) -> Size:
    """Number of places of the grid."""
    return prod(count for _, count in tiles(body, schedule))


def grid_place(b: KernelBuilder, schedule: Schedule, count: Size) -> Value:
    """The place of the grid that this invocation takes.

    Workgroups behind the last place take it again, because all their invocations must reach the barriers. An invocation
    has a place only if `is_in_grid`.
    """
    if not schedule.by_workgroups:
        return invocation_index(b, schedule.workgroup_size)
    return b.index(0) if count == 1 else b.op("minimum", b.workgroup_id(), b.index(count - 1))


def is_in_grid(b: KernelBuilder, schedule: Schedule, count: Size) -> Value:
    """Whether the grid has a place for this invocation or its workgroup."""
    number = b.workgroup_id() if schedule.by_workgroups else invocation_index(b, schedule.workgroup_size)
    return b.op("compare_lt", number, b.index(count))


@dataclass(frozen=True, slots=True)
class Side:
    """The places of a tile along one dimension, in ascending order.

    `reads`: places where operands are read; with the guard `pad` the last may be padding. `results`: places where
    results are computed, all inside. `raw`: places without a guard. `first`: start of a tile that is moved back.
    """

    guard: str
    reads: Sequence[Value]
    results: Sequence[Value]
    raw: Sequence[Value]
    first: Value
    extent: Size

    def holds(self, b: KernelBuilder, at: int) -> Value:
        """Whether a place is written: it is inside, and no earlier tile has it."""
        if not self.guard:
            return b.const(True, "i1")
        if self.guard == "shift":
            return b.op("compare_ge", self.results[at], self.first)
        return b.op("compare_lt", self.raw[at], b.index(self.extent))

    def is_whole(self, b: KernelBuilder) -> Value:
        """Whether all places are written."""
        if self.guard == "shift":
            return b.op("compare_eq", self.results[0], self.first)
        return self.holds(b, len(self.results) - 1)


def side_of(b: KernelBuilder, schedule: Schedule, dim: str, extent: Size, number: Value) -> Side:
    """The side of tile `number` along a dimension."""
    size, apart = schedule.count("tile", dim), schedule.local(dim)
    step = schedule.find("guard", dim)
    guard = "" if step is None else step.how
    first = start = b.op("multiply", number, b.index(size * apart))
    if guard == "shift":  # in units, so that it is seen what the start is a multiple of
        unit = 1 if is_dynamic(extent) else gcd(size, extent)
        most = b.op("minimum", b.op("multiply", number, b.index(size // unit)), b.index((extent - size) // unit))
        start = b.op("multiply", most, b.index(unit))
    if apart > 1:
        start = b.op("add", start, b.index(local_place(b, schedule)[dim]))
    raw = [b.op("add", start, b.index(at * apart)) for at in range(size)]
    if guard not in ("clamp", "pad"):
        return Side(guard, raw, raw, raw, first, extent)
    last = b.index(extent - 1)
    results = [b.op("minimum", place, last) for place in raw]
    return Side(guard, raw if guard == "pad" else results, results, raw, first, extent)


def local_place(b: KernelBuilder, schedule: Schedule) -> dict[str, Value]:
    """The place of an invocation in its workgroup, as words, along each dimension that divides the workgroup."""
    across = b.word(schedule.local("n"))
    return {"m": b.op("unchecked_divide", b.local_id(), across), "n": b.op("unchecked_remainder", b.local_id(), across)}


def dot_places(
    b: KernelBuilder, extents: Extents, batch: Value, rows: Sequence[Value], columns: Sequence[Value]
) -> list[Index]:
    """The places of the results of a tile, row by row.

    Their positions in memory are computed where they are used, behind the loop. If they were computed in front of it,
    the compiler of PoCL would vectorize them instead of the products.
    """
    shape = (*extents.batch, *extents.left, *extents.right)
    of_batch = delinearize(b, batch, extents.batch)
    of_rows = [delinearize(b, place, extents.left) for place in rows]
    of_columns = [delinearize(b, place, extents.right) for place in columns]
    return [Index(b, shape, (*of_batch, *row, *column)) for row in of_rows for column in of_columns]


def write_tile(b: KernelBuilder, rows: Side, columns: Side, write: Write) -> None:
    """Writes the results of a tile that exist and that no earlier tile has written.

    With guards on both sides, a whole tile is written without conditions. With a guard on one side, a condition per
    line costs less than code for both cases; without guards there are no conditions.
    """
    everything = partial(_write_all, len(rows.results), len(columns.results), write)
    if rows.guard and columns.guard:
        whole = b.op("and", rows.is_whole(b), columns.is_whole(b))
        b.branch(whole, everything, partial(_write_existing, b, rows, columns, write))
    else:
        _write_existing(b, rows, columns, write)


def _write_all(rows: int, columns: int, write: Write) -> list[Value]:
    for row in range(rows):
        for column in range(columns):
            write(row, column)
    return []


def _write_existing(b: KernelBuilder, rows: Side, columns: Side, write: Write) -> list[Value]:
    swapped = bool(columns.guard)
    outer, inner = (columns, rows) if swapped else (rows, columns)

    def one(outer_at: int, inner_at: int) -> list[Value]:
        write(*((inner_at, outer_at) if swapped else (outer_at, inner_at)))
        return []

    def line(at: int) -> list[Value]:
        for other in range(len(inner.results)):
            b.branch(inner.holds(b, other), partial(one, at, other), list)
        return []

    for at in range(len(outer.results)):
        b.branch(outer.holds(b, at), partial(line, at), list)
    return []
