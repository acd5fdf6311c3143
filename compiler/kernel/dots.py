"""The results of a tile of a dot: their folds run side by side in one loop of an invocation.

The emitter remembers what it emitted, so an operand's element is loaded, and what is fused in front of it computed,
once per turn. Neighbouring columns are neighbours in memory more often than not: a compiler for a CPU makes vectors of
them, or they are computed in vectors that the kernel writes out.
"""

from collections.abc import Iterable, Sequence

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .builder import KernelBuilder
from .index import Index
from .loops import Fold, Scalars, sequential
from .reductions import Factors, dot_fold
from .rules import element_of


def folded_tile(
    b: KernelBuilder, dot: DotGeneral, places: Sequence[Index], columns: int, lanes: int, per_turn: int
) -> Scalars:
    """The results at the places of a tile, row by row of so many columns. Neighbouring columns are in the lanes of
    vectors if there are several lanes. A turn of the innermost loop takes `per_turn` products of each result.
    """
    if lanes == 1:
        return (yield from sequential(b, scalar_fold(b, dot, places), per_turn))
    vectors = yield from sequential(b, _vector_fold(b, dot, places, columns, lanes), per_turn)
    return [value for vector in vectors for value in b.lanes(vector)]


def scalar_fold(b: KernelBuilder, dot: DotGeneral, places: Sequence[Index]) -> Fold:
    """The folds of these results, side by side."""
    folds = [dot_fold(b, dot, place) for place in places]

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        return _together(fold.combine([a], [c]) for fold, a, c in zip(folds, x, y, strict=True))

    neutral = [value for fold in folds for value in fold.neutral or ()]
    return Fold(
        folds[0].sizes,
        lambda: _together(fold.start() for fold in folds),
        lambda folded: _together(fold.element(folded) for fold in folds),
        combine,
        neutral,
    )


def _vector_fold(b: KernelBuilder, dot: DotGeneral, places: Sequence[Index], count: int, lanes: int) -> Fold:
    """A value is `lanes` results of a row."""
    rows = [Factors(b, dot, place) for place in places[::count]]
    columns = [Factors(b, dot, place) for place in places[:count]]
    zeros = [b.vector([b.const(0, element_of(dot.out))] * lanes)] * (len(places) // lanes)

    def start() -> Scalars:
        yield from ()
        return zeros

    def element(folded: Sequence[Value]) -> Scalars:
        xs = yield from _together(row.left(folded) for row in rows)
        ys = yield from _together(column.right(folded) for column in columns)
        vectors = [b.vector(ys[at : at + lanes]) for at in range(0, len(ys), lanes)]
        return [b.multiply_vectors(b.vector([x] * lanes), y) for x in xs for y in vectors]

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        yield from ()
        return [b.add_vectors(a, c) for a, c in zip(x, y, strict=True)]

    return Fold(rows[0].axes.sizes, start, element, combine, zeros)


def _together(parts: Iterable[Scalars]) -> Scalars:
    values: list[Value] = []
    for part in parts:
        values += yield from part
    return values


def remember(b: KernelBuilder, dot: DotGeneral, places: Sequence[Index], values: Sequence[Value]) -> None:
    """Keeps the results at their places for what is fused behind the dot.

    If places are constants, those beyond the edge are the last place, whose own value comes first and stays.
    """
    for place, value in zip(places, values, strict=True):
        if b.memo.get((dot.out, place.key)) is None:
            b.memo.set((dot.out, place.key), value)
            b.memo.set((dot.out, place.linear), value)
