"""Tiles of a dot: the reductions of several results run side by side in one loop of an invocation.

The builder remembers emitted values. An element of an operand is therefore loaded, and ops fused in front of it are
computed, once per iteration. Neighbouring columns are usually neighbours in memory: either the compiler of a CPU driver
vectorizes them, or the kernel computes them in explicit vectors.
"""

from collections.abc import Callable, Iterable, Sequence

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Shape
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.elements.axes import Axes
from orchestrion.compiler.kernel.elements.index import Index
from orchestrion.compiler.kernel.elements.loops import Reduction, Scalars, sequential
from orchestrion.compiler.kernel.elements.reductions import Factors, Pairs, reduction_of_dot, sums_of_products
from orchestrion.compiler.kernel.elements.rules import element_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral


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
    axes = Axes(dot.sides)
    reductions = [reduction_of_dot(b, dot, place, axes) for place in places]

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        return together(reduction.combine([a], [c]) for reduction, a, c in zip(reductions, x, y, strict=True))

    def accumulate(values: Sequence[Value], reduced: Sequence[Value]) -> Scalars:
        return together(reduction.into([value], reduced) for reduction, value in zip(reductions, values, strict=True))

    neutral = [value for reduction in reductions for value in reduction.neutral or ()]
    return Reduction(
        reductions[0].sizes,
        lambda: together(reduction.start() for reduction in reductions),
        lambda reduced: together(reduction.element(reduced) for reduction in reductions),
        combine,
        neutral,
        accumulate if reductions[0].accumulate is not None else None,
    )


def _vector_reduction(b: KernelBuilder, dot: DotGeneral, places: Sequence[Index], count: int, lanes: int) -> Reduction:
    """The same with vectors: each value holds `lanes` results of a row. `count`: columns of the tile."""
    axes = Axes(dot.sides)
    rows = [Factors(b, dot, place, axes) for place in places[::count]]
    columns = [Factors(b, dot, place, axes) for place in places[:count]]
    zeros = [b.vector([b.const(0, element_of(dot.out))] * lanes)] * (len(places) // lanes)

    def factors(reduced: Sequence[Value]) -> Scalars:
        xs = yield from together(row.of(0, reduced) for row in rows)
        ys = yield from together(column.of(1, reduced) for column in columns)
        return [*xs, *(b.vector(ys[at : at + lanes]) for at in range(0, len(ys), lanes))]

    return vector_sums(b, rows[0].axes.sizes, len(rows), zeros, factors)


def vector_sums(
    b: KernelBuilder, sizes: Shape, rows: int, zeros: Sequence[Value], factors: Callable[[Sequence[Value]], Scalars]
) -> Reduction:
    """Sums of products in vectors, row by row. `factors` gives a scalar or a vector for each of the rows, then the
    vectors of columns.
    """
    lanes = k.length_of(zeros[0])

    def wide(x: Value) -> Value:
        return b.vector([x] * lanes) if k.length_of(x) == 1 else x

    def pairs(reduced: Sequence[Value]) -> Pairs:
        found = yield from factors(reduced)
        return ((wide(x), y) for x in found[:rows] for y in found[rows:])

    return sums_of_products(b, sizes, zeros, pairs)


def together(parts: Iterable[Scalars]) -> Scalars:
    """The values of several generators, one after the other."""
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
