"""Reductions that the invocations of a workgroup share: each folds a contiguous part, a tree folds the parts.

Neighbours are folded with neighbours, so that the order of the elements is kept. The parts lie in shared memory.
"""

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim, ceildiv, dim_max, is_less

from .builder import KernelBuilder
from .elemental import Elemental
from .index import Index
from .loops import Fold, Loops, Scalars, elements_per_turn, symbolic
from .reduction_limits import longest
from .reductions import FOLDS
from .rules import element_of, shape_of


def shared_parts(elemental: Elemental, hero: Operation, position: Value, size: int) -> tuple[Fold, list[Value]]:
    """Folds the parts of the result at a position, in a workgroup of so many invocations. Gives the fold and the shared
    arrays whose first element then holds what the parts give, without the initial values.
    """
    b = elemental.builder
    fold = FOLDS[hero.name](b, hero, Index(b, shape_of(hero.results[0]), None, position))
    shared, local = [b.shared(size, element_of(result)) for result in hero.results], b.local_id()
    parts = _fold_parts(elemental, fold, shared, local, size)
    _fold_tree(elemental, fold, shared, local, size, parts)
    return fold, shared


def finish(elemental: Elemental, hero: Operation, position: Value, fold: Fold, shared: Sequence[Value]) -> None:
    """Applies the initial values and keeps the results of the hero at their position. One invocation does so."""
    b = elemental.builder
    at = Index(b, shape_of(hero.results[0]), None, position)
    values = elemental.run(_finish(b, fold, _loaded(b, shared, b.local_id())))
    for result, value in zip(hero.results, values, strict=True):
        b.memo.set((result, at.key), value)


def _fold_parts(elemental: Elemental, fold: Fold, shared: Sequence[Value], local: Value, size: int) -> int:
    """Each invocation folds its part into its place of the shared arrays; gives the number of parts."""
    b = elemental.builder
    length = dim_max(ceildiv(fold.count, size), 1)
    parts = ceildiv(fold.count, length)
    lower = b.op("multiply", b.op("convert", local, to=b.index_type), b.index(length))
    upper = b.op("minimum", b.op("add", lower, b.index(length)), b.index(fold.count))
    branch = b.begin_if(b.op("compare_lt", local, b.word(parts)))
    most = longest(length, b.machine)
    static = not isinstance(length, Dim)
    loops = Loops(b, fold, elements_per_turn(length, b.machine)) if static else symbolic(b, fold, most)
    _store(b, elemental.run(loops.block(lower, upper, most)), shared, local)
    b.end_if(branch)
    return parts


def _fold_tree(elemental: Elemental, fold: Fold, shared: Sequence[Value], local: Value, size: int, parts: int) -> None:
    """Folds neighbours at growing distance until place 0 holds all. The mask proves that a place is in the array."""
    b = elemental.builder
    distance = 1
    while distance < (size if isinstance(parts, Dim) else parts):
        b.barrier()
        other = b.op("add", local, b.const(distance, "ui32"))
        aligned = b.op("compare_eq", b.op("and", local, b.const(2 * distance - 1, "ui32")), b.const(0, "ui32"))
        branch = b.begin_if(b.op("and", aligned, b.op("compare_lt", other, b.word(parts))))
        masked = b.op("and", other, b.const(size - 1, "ui32"))
        mine, theirs = _loaded(b, shared, local), _loaded(b, shared, masked)
        _store(b, elemental.run(fold.combine(mine, theirs)), shared, local)
        b.end_if(branch)
        distance *= 2


def _finish(b: KernelBuilder, fold: Fold, folded: Sequence[Value]) -> Scalars:
    """The initial values in front; they are all there is where a call brings nothing to fold."""
    start = yield from fold.start()
    values = yield from fold.combine(start, folded)
    if is_less(0, fold.count):
        return values
    some = b.op("compare_ne", b.index(fold.count), b.index(0))
    return [b.select(some, value, first) for value, first in zip(values, start, strict=True)]


def _loaded(b: KernelBuilder, shared: Sequence[Value], place: Value) -> list[Value]:
    return [b.load_shared(array, place) for array in shared]


def _store(b: KernelBuilder, values: Sequence[Value], shared: Sequence[Value], place: Value) -> None:
    for value, array in zip(values, shared, strict=True):
        b.store_shared(value, array, place)
