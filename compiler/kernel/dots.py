"""Tiles of a dot: the reductions of several results run side by side in one loop of an invocation.

The builder remembers emitted values. An element of an operand is therefore loaded, and ops fused in front of it are
computed, once per iteration. Neighbouring columns are usually neighbours in memory: either the compiler of a CPU driver
vectorizes them, or the kernel computes them in explicit vectors.
"""

from collections.abc import Iterable, Sequence

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .builder import KernelBuilder
from .index import Index
from .loops import Reduction, Scalars, sequential
from .reductions import Factors, reduction_of_dot
from .rules import element_of


def reduced_tile(
    b: KernelBuilder, dot: DotGeneral, places: Sequence[Index], columns: int, lanes: int, per_iteration: int
) -> Scalars:
    """The results at the places of a tile, row by row of `columns` results. If `lanes` is more than 1, a vector holds
    that many neighbouring columns. An iteration of the innermost loop adds `per_iteration` products to each result.
    """
    if lanes == 1:
        return (yield from sequential(b, scalar_reduction(b, dot, places), per_iteration))
    vectors = yield from sequential(b, _vector_reduction(b, dot, places, columns, lanes), per_iteration)
    return [value for vector in vectors for value in b.lanes(vector)]


def scalar_reduction(b: KernelBuilder, dot: DotGeneral, places: Sequence[Index]) -> Reduction:
    """The reductions of these results, side by side."""
    reductions = [reduction_of_dot(b, dot, place) for place in places]

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        return _together(reduction.combine([a], [c]) for reduction, a, c in zip(reductions, x, y, strict=True))

    neutral = [value for reduction in reductions for value in reduction.neutral or ()]
    return Reduction(
        reductions[0].sizes,
        lambda: _together(reduction.start() for reduction in reductions),
        lambda reduced: _together(reduction.element(reduced) for reduction in reductions),
        combine,
        neutral,
    )


def _vector_reduction(b: KernelBuilder, dot: DotGeneral, places: Sequence[Index], count: int, lanes: int) -> Reduction:
    """The same with vectors: each value holds `lanes` results of a row. `count`: columns of the tile."""
    rows = [Factors(b, dot, place) for place in places[::count]]
    columns = [Factors(b, dot, place) for place in places[:count]]
    zeros = [b.vector([b.const(0, element_of(dot.out))] * lanes)] * (len(places) // lanes)

    def start() -> Scalars:
        yield from ()
        return zeros

    def element(reduced: Sequence[Value]) -> Scalars:
        xs = yield from _together(row.left(reduced) for row in rows)
        ys = yield from _together(column.right(reduced) for column in columns)
        vectors = [b.vector(ys[at : at + lanes]) for at in range(0, len(ys), lanes)]
        return [b.op("multiply", b.vector([x] * lanes), y) for x in xs for y in vectors]

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        yield from ()
        return [b.op("add", a, c) for a, c in zip(x, y, strict=True)]

    return Reduction(rows[0].axes.sizes, start, element, combine, zeros)


def _together(parts: Iterable[Scalars]) -> Scalars:
    values: list[Value] = []
    for part in parts:
        values += yield from part
    return values


def remember(b: KernelBuilder, dot: DotGeneral, places: Sequence[Index], values: Sequence[Value]) -> None:
    """Remembers the results at their places for ops that are fused behind the dot.

    Places beyond the edge of the result may be constants equal to the last place. The first value, which is the right
    one, stays.
    """
    for place, value in zip(places, values, strict=True):
        if b.memo.get((dot.out, place.key)) is None:
            b.memo.set((dot.out, place.key), value)
            b.memo.set((dot.out, place.linear), value)
