"""Reductions that the invocations of a workgroup share. Each reduces a contiguous part; a tree combines the parts.

The tree combines neighbours, which keeps the order of the elements. The parts lie in shared memory.
"""

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import ceildiv, dim_max, is_dynamic, is_less

from .builder import KernelBuilder
from .elemental import Elemental
from .index import Index
from .loops import Loops, Reduction, Scalars, elements_per_iteration, symbolic
from .reduction_limits import longest
from .reductions import REDUCTIONS
from .rules import element_of, shape_of


def shared_parts(elemental: Elemental, hero: Operation, position: Value, size: int) -> tuple[Reduction, list[Value]]:
    """Reduces the element of the hero at `position` in a workgroup of `size` invocations, without the initial values.

    Returns the reduction and a shared array per result. The first element of each array holds the outcome.
    """
    b = elemental.builder
    reduction = REDUCTIONS[hero.name](b, hero, Index(b, shape_of(hero.results[0]), None, position))
    shared, local = [b.shared(size, element_of(result)) for result in hero.results], b.local_id()
    parts = _reduce_parts(elemental, reduction, shared, local, size)
    _reduce_tree(elemental, reduction, shared, local, size, parts)
    return reduction, shared


def finish(
    elemental: Elemental, hero: Operation, position: Value, reduction: Reduction, shared: Sequence[Value]
) -> None:
    """Applies the initial values and remembers the results of the hero at their position, in one invocation."""
    b = elemental.builder
    at = Index(b, shape_of(hero.results[0]), None, position)
    values = elemental.run(_finish(b, reduction, load_parts(b, shared, b.local_id())))
    for result, value in zip(hero.results, values, strict=True):
        b.memo.set((result, at.key), value)


def _reduce_parts(elemental: Elemental, reduction: Reduction, shared: Sequence[Value], local: Value, size: int) -> int:
    """Each invocation reduces its part into its place of the shared arrays. Returns the number of parts."""
    b = elemental.builder
    length = dim_max(ceildiv(reduction.count, size), 1)
    parts = ceildiv(reduction.count, length)
    lower = b.op("multiply", b.op("convert", local, to=b.index_type), b.index(length))
    upper = b.op("minimum", b.op("add", lower, b.index(length)), b.index(reduction.count))
    branch = b.begin_if(b.op("compare_lt", local, b.word(parts)))
    most = longest(length, b.machine)
    static = not is_dynamic(length)
    loops = Loops(b, reduction, elements_per_iteration(length, b.machine)) if static else symbolic(b, reduction, most)
    store_parts(b, elemental.run(loops.block(lower, upper, most)), shared, local)
    b.end_if(branch)
    return parts


def _reduce_tree(
    elemental: Elemental, reduction: Reduction, shared: Sequence[Value], local: Value, size: int, parts: int
) -> None:
    """Combines neighbours at growing distance until place 0 holds the outcome. The mask proves to the verifier that a
    place is inside the array.
    """
    b = elemental.builder
    distance = 1
    while distance < (size if is_dynamic(parts) else parts):
        b.barrier()
        other = b.op("add", local, b.const(distance, "ui32"))
        aligned = b.op("compare_eq", b.op("and", local, b.const(2 * distance - 1, "ui32")), b.const(0, "ui32"))
        branch = b.begin_if(b.op("and", aligned, b.op("compare_lt", other, b.word(parts))))
        masked = b.op("and", other, b.const(size - 1, "ui32"))
        mine, theirs = load_parts(b, shared, local), load_parts(b, shared, masked)
        store_parts(b, elemental.run(reduction.combine(mine, theirs)), shared, local)
        b.end_if(branch)
        distance *= 2


def _finish(b: KernelBuilder, reduction: Reduction, reduced: Sequence[Value]) -> Scalars:
    """The initial values, combined with the outcome if the reduction has elements."""
    start = yield from reduction.start()
    values = yield from reduction.combine(start, reduced)
    if is_less(0, reduction.count):
        return values
    some = b.op("compare_ne", b.index(reduction.count), b.index(0))
    return [b.select(some, value, first) for value, first in zip(values, start, strict=True)]


def load_parts(b: KernelBuilder, shared: Sequence[Value], place: Value) -> list[Value]:
    """The element of each shared array at a place."""
    return [b.load_shared(array, place) for array in shared]


def store_parts(b: KernelBuilder, values: Sequence[Value], shared: Sequence[Value], place: Value) -> None:
    """Stores a value to each shared array at a place."""
    for value, array in zip(values, shared, strict=True):
        b.store_shared(value, array, place)
