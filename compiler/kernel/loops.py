"""Folds as loops of one invocation.

A fold keeps the order of its elements and applies the initial value once, at the front, so that a reducer need not be
commutative and its initial value need not be neutral. Long folds are folds of blocks: the rounding error of a sum of n
floats then grows with log n, not with n.

`Nest` has a loop per axis, so that no place is found by division and what stands still is made in front of a loop.
`Loops` counts positions, in any range, and takes several a turn where turns are scarce.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from math import prod

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Dim

from .builder import KernelBuilder
from .index import Index, Shape, delinearize
from .machine import Machine
from .reduction_limits import longest, max_counted_turns, max_elements, max_loop_turns

#: a generator of several scalars
Scalars = Generator[tuple[Value, Index], Value, list[Value]]

#: elements folded in one loop; longer folds are folds of blocks of powers of it
BLOCK = 64
#: folds up to this length need no loop
UNROLLED = 4
#: elements of a block of a fold of a dynamic length, at most
LARGEST_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Fold:
    """`combine(... combine(combine(start, element(0)), element(1)) ..., element(count - 1))`, several values at once.

    Elements are in the row-major order of `sizes`, and are asked for by their coordinates. `neutral` are values that
    change nothing when combined, or None where none are known.
    """

    sizes: Shape
    start: Callable[[], Scalars]
    element: Callable[[Sequence[Value]], Scalars]
    combine: Callable[[Sequence[Value], Sequence[Value]], Scalars]
    neutral: Sequence[Value] | None

    @property
    def count(self) -> int:
        return prod(self.sizes)

    def at(self, b: KernelBuilder, position: Value) -> Scalars:
        """The element at a position."""
        return self.element(delinearize(b, position, self.sizes))


def sequential(b: KernelBuilder, fold: Fold, per_turn: int = 1) -> Scalars:
    """The whole fold in this invocation; a turn of the innermost loop takes `per_turn` elements if that divides it."""
    values = yield from fold.start()
    if isinstance(fold.count, Dim):
        most = longest(fold.count, b.machine)
        return (yield from symbolic(b, fold, most).over(b.index(0), b.index(fold.count), most, values))
    if fold.count <= UNROLLED:
        for position in range(fold.count):
            element = yield from fold.at(b, b.index(position))
            values = yield from fold.combine(values, element)
        return values
    cut = per_turn_of(fold.sizes, per_turn, b.machine)
    if fold.neutral is not None and cut is not None:
        return (yield from Nest(b, _cut(b, fold, cut)).axis(0, (), values))
    loops = Loops(b, fold, elements_per_turn(fold.count, b.machine))
    return (yield from loops.over(b.index(0), b.index(fold.count), fold.count, values))


def elements_per_turn(count: int, machine: Machine) -> int:
    """How many elements a turn of the innermost loop folds, so that `count` elements stay below `max_loop_turns`."""
    unroll, most = 1, max_loop_turns(machine)
    while unroll < BLOCK and count / unroll + count / (BLOCK - 1) > most:
        unroll *= 2
    return unroll


def symbolic(b: KernelBuilder, fold: Fold, most: int) -> "Loops":
    """Loops for as many elements as a call brings, at most so many: few levels and few elements a turn. Short folds
    pay for all of them: llvmpipe goes through the body of a loop once more when it is left.
    """
    unroll = 1
    while turns(most, unroll) > max_counted_turns(b.machine):
        unroll *= 2
    return Loops(b, fold, unroll, _even_block(most))


def turns(most: int, unroll: int = 1) -> int:
    """Turns of all loops that `symbolic` makes."""
    return most // unroll + (unroll + 2) * (most // _even_block(most) + 2)


def _even_block(most: int) -> int:
    """As many elements in a block as there are blocks, about, or `LARGEST_BLOCK`: a power of two."""
    return min(1 << (most.bit_length() + 1) // 2, LARGEST_BLOCK)


def per_turn_of(sizes: Shape, wanted: int, machine: Machine) -> int | None:
    """Elements of a turn of the innermost loop, so that loops along all axes stay below `max_loop_turns`: `wanted` or
    more; None if no number is enough. Whether there is one does not depend on `wanted`, nor does the order of a fold.
    """
    per_turn = wanted if _is_cut(sizes, wanted) else 1
    while per_turn <= BLOCK:
        if _turns_of_nest(_cut_sizes(sizes, per_turn)) <= max_loop_turns(machine):
            return per_turn
        per_turn *= 2
    return None


def _is_cut(sizes: Shape, per_turn: int) -> bool:
    return per_turn > 1 and sizes[-1] % per_turn == 0 and sizes[-1] != per_turn


def _cut_sizes(sizes: Shape, per_turn: int) -> Shape:
    return (*sizes[:-1], sizes[-1] // per_turn, per_turn) if _is_cut(sizes, per_turn) else sizes


def _cut(b: KernelBuilder, fold: Fold, per_turn: int) -> Fold:
    """With the innermost axis as two, of which the inner one is short enough to need no loop."""
    if not _is_cut(fold.sizes, per_turn):
        return fold

    def element(coordinates: Sequence[Value]) -> Scalars:
        *before, number, place = coordinates
        return fold.element([*before, b.op("add", b.op("multiply", number, b.index(per_turn)), place)])

    return replace(fold, sizes=_cut_sizes(fold.sizes, per_turn), element=element)


def _turns_of_nest(sizes: Shape) -> int:
    """Turns of a loop per axis, all together, leaving one counted as a turn; a bound."""
    total = 0
    for level in reversed(range(len(sizes))):
        if prod(sizes[level:]) > UNROLLED:
            size = sizes[level]
            total = size * (total + 1) + 2 * (size // _per_block(sizes, level) + 2)
    return total


def _per_block(sizes: Shape, level: int) -> int:
    """Turns along an axis that make a block: of elements, or of blocks of the axes inside."""
    inside = prod(sizes[level + 1 :])
    return BLOCK if inside >= BLOCK else max(BLOCK // inside, 1)


@dataclass(frozen=True, slots=True)
class Nest:
    """A fold with a loop per axis and a neutral value; innermost axes of few elements in all have none."""

    builder: KernelBuilder
    fold: Fold

    def turns(self) -> int:
        """Turns of all loops together, leaving one counted as a turn; a bound."""
        return _turns_of_nest(self.fold.sizes)

    def _inside(self, level: int) -> int:
        """Elements of one place in front of an axis."""
        return prod(self.fold.sizes[level:])

    def _per_block(self, level: int) -> int:
        return _per_block(self.fold.sizes, level)

    def axis(self, level: int, outer: Sequence[Value], start: Sequence[Value]) -> Scalars:
        """Folds all that one place on the axes in front has onto `start`."""
        b, size = self.builder, self.fold.sizes[level]
        if self._inside(level) <= UNROLLED:
            values = start
            for at in range(size):
                values = yield from self._turn(level, (*outer, b.index(at)), values)
            return list(values)
        return (yield from self._range(level, outer, (b.index(0), b.index(size), size), start))

    def _range(
        self, level: int, outer: Sequence[Value], bounds: tuple[Value, Value, int], start: Sequence[Value]
    ) -> Scalars:
        """Folds a range of an axis, which has so many places at most."""
        b, (lower, upper, most), length = self.builder, bounds, self._per_block(level)
        if most <= length:
            return (yield from self._one_block(level, outer, (lower, upper), start))
        while length * BLOCK < most:
            length *= BLOCK
        loop = b.begin_loop(lower, upper, b.index(length), start)
        end = b.op("add", loop.index, b.index(length))
        if self.fold.sizes[level] % length:
            end = b.op("minimum", end, upper)
        block = yield from self._range(level, outer, (loop.index, end, length), self._neutral())
        return b.end_loop(loop, (yield from self.fold.combine(loop.carried, block)))

    def _one_block(
        self, level: int, outer: Sequence[Value], bounds: tuple[Value, Value], start: Sequence[Value]
    ) -> Scalars:
        """Folds a range of an axis that is a block, of elements or of blocks of the axes inside."""
        b, (lower, upper) = self.builder, bounds
        loop = b.begin_loop(lower, upper, b.index(1), start)
        return b.end_loop(loop, (yield from self._turn(level, (*outer, loop.index), loop.carried)))

    def _turn(self, level: int, place: Sequence[Value], values: Sequence[Value]) -> Scalars:
        if level == len(self.fold.sizes) - 1:
            return (yield from self.fold.combine(values, (yield from self.fold.element(place))))
        if self._inside(level + 1) < BLOCK:
            return (yield from self.axis(level + 1, place, values))
        block = yield from self.axis(level + 1, place, self._neutral())
        return (yield from self.fold.combine(values, block))

    def _neutral(self) -> Sequence[Value]:
        assert self.fold.neutral is not None
        return self.fold.neutral


@dataclass(frozen=True, slots=True)
class Loops:
    """Folds ranges of elements in blocks; a turn of the innermost loop takes `unroll` of them, a power of two up to
    `block`.
    """

    builder: KernelBuilder
    fold: Fold
    unroll: int
    length: int = BLOCK

    def over(self, lower: Value, upper: Value, most: int, start: Sequence[Value]) -> Scalars:
        """Folds the elements from `lower` to before `upper`, at most `most`, onto `start`."""
        limit = max_elements(self.builder.machine)
        if most > limit:
            message = f"one invocation would fold {most} elements, {limit} are the most"
            raise CompileError([Diagnostic(message, self.builder.loc)])
        if most <= self.length:
            return (yield from self._straight(lower, upper, start))
        b, length = self.builder, self.length if self.fold.neutral is not None else self.length + 1
        while length * self.length < most:
            length *= self.length
        loop = b.begin_loop(lower, upper, b.index(length), start)
        end = b.op("minimum", b.op("add", loop.index, b.index(length)), upper)
        block = yield from self.block(loop.index, end, length)
        return b.end_loop(loop, (yield from self.fold.combine(loop.carried, block)))

    def block(self, lower: Value, upper: Value, most: int) -> Scalars:
        """Folds a range of at least one element without an initial value."""
        if self.fold.neutral is not None:
            return (yield from self.over(lower, upper, most, self.fold.neutral))
        b = self.builder
        first = yield from self.fold.at(b, lower)
        return (yield from self.over(b.op("add", lower, b.index(1)), upper, most - 1, first))

    def _straight(self, lower: Value, upper: Value, start: Sequence[Value]) -> Scalars:
        """One loop over whole groups of `unroll` elements, one over what is left."""
        b, values = self.builder, start
        if self.unroll > 1:
            rest = b.op("and", b.op("subtract", upper, lower), b.index(self.unroll - 1))
            whole = b.op("subtract", upper, rest)
            values = yield from self._loop(lower, whole, self.unroll, values)
            lower = whole
        return (yield from self._loop(lower, upper, 1, values))

    def _loop(self, lower: Value, upper: Value, step: int, start: Sequence[Value]) -> Scalars:
        b = self.builder
        loop = b.begin_loop(lower, upper, b.index(step), start)
        values = loop.carried
        for offset in range(step):
            element = yield from self.fold.at(b, b.op("add", loop.index, b.index(offset)))
            values = yield from self.fold.combine(values, element)
        return b.end_loop(loop, values)
