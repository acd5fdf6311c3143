"""Reductions as loops of one invocation.

A reduction keeps the order of its elements and applies the initial value once, first, so the reducer need not be
commutative and the initial value need not be neutral. Long reductions combine the results of blocks, so that the
rounding error of a sum of n floats grows with log n instead of n.

`Nest` has one loop per axis. It needs no division to find an element, and values that do not depend on a loop are
computed in front of it. `Loops` counts positions in any range. It takes several elements per iteration if the number of
iterations is limited.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from math import prod

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Shape, Size, is_dynamic, numbers
from orchestrion.compiler.ir.dims import bounds as bounds_of
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.machine import Machine
from orchestrion.compiler.kernel.reduction_limits import (
    longest,
    max_counted_iterations,
    max_elements,
    max_loop_iterations,
)

from .index import Index, delinearize

#: a generator that returns several scalars
Scalars = Generator[tuple[Value, Index], Value, list[Value]]

#: elements that one loop combines; longer reductions combine blocks whose sizes are powers of this
BLOCK = 64
#: reductions up to this length need no loop
UNROLLED = 4
#: greatest block of a reduction of dynamic length, in elements
LARGEST_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Reduction:
    """`combine(... combine(combine(start, element(0)), element(1)) ..., element(count - 1))`, of several values at
    once.

    Elements have the row-major order of `sizes`; `element` takes coordinates. `neutral`: values that change nothing
    when combined, None if none are known. `accumulate`: combines values with the element at coordinates, if other ops
    than those of `combine` and `element` do that. `dtypes`: types of the values, for memory of theirs. `width`:
    elements of a block that one element counts as. `is_exact`: nothing is rounded, so long reductions need no blocks.
    `by_lanes`: `combine` takes vectors of values, too, lane by lane, and elements may be combined in any order.
    """

    sizes: Shape
    start: Callable[[], Scalars]
    element: Callable[[Sequence[Value]], Scalars]
    combine: Callable[[Sequence[Value], Sequence[Value]], Scalars]
    neutral: Sequence[Value] | None
    accumulate: Callable[[Sequence[Value], Sequence[Value]], Scalars] | None = None
    dtypes: Sequence[str] = ()
    is_exact: bool = False
    by_lanes: bool = False
    width: int = 1

    @property
    def count(self) -> Size:
        """Number of elements."""
        return prod(self.sizes)

    def into(self, values: Sequence[Value], coordinates: Sequence[Value]) -> Scalars:
        """Values, combined with the element at coordinates."""
        if self.accumulate is not None:
            return (yield from self.accumulate(values, coordinates))
        return (yield from self.combine(values, (yield from self.element(coordinates))))

    def at(self, b: KernelBuilder, position: Value) -> Scalars:
        """The element at a row-major position."""
        return self.element(delinearize(b, position, self.sizes))


def sequential(b: KernelBuilder, reduction: Reduction, per_iteration: int = 1) -> Scalars:
    """The whole reduction in this invocation. An iteration of the innermost loop takes `per_iteration` elements if that
    number divides its extent.
    """
    values = yield from reduction.start()
    count, most = reduction.count, longest(reduction.count, b.machine)
    if not is_dynamic(count):
        if count <= UNROLLED:
            for position in range(count):
                values = yield from reduction.into(values, delinearize(b, b.index(position), reduction.sizes))
            return values
        cut = bounded_per_iteration(numbers(reduction.sizes), per_iteration, b.machine)
        if reduction.neutral is not None and cut is not None:
            return (yield from Nest(b, _cut(b, reduction, cut)).axis(0, (), values))
    return (yield from Loops.of(b, reduction, most).over(b.index(0), b.index(count), most, values))


def elements_per_iteration(count: int, machine: Machine) -> int:
    """Elements that an iteration of the innermost loop combines, so that `count` elements need at most
    `max_loop_iterations` iterations.
    """
    unroll, most = 1, max_loop_iterations(machine)
    while unroll < BLOCK and count / unroll + count / (BLOCK - 1) > most:
        unroll *= 2
    return unroll


def loop_iterations(most: int, unroll: int = 1) -> int:
    """Iterations of all loops over a dynamic number of up to `most` elements, with `unroll` elements per iteration."""
    return most // unroll + (unroll + 2) * (most // _even_block(most) + 2)


def _even_block(most: int) -> int:
    """Elements of a block: a power of two, about the square root of `most`, at most `LARGEST_BLOCK`."""
    return min(1 << (most.bit_length() + 1) // 2, LARGEST_BLOCK)


def bounded_per_iteration(sizes: tuple[int, ...], wanted: int, machine: Machine) -> int | None:
    """Elements per iteration of the innermost loop, `wanted` or more, so that loops along all axes need at most
    `max_loop_iterations` iterations. None if no number is enough.

    Neither the order of a reduction nor whether a number exists depends on `wanted`.
    """
    per_iteration = wanted if _is_cut(sizes, wanted) else 1
    while per_iteration <= BLOCK:
        if nest_iterations(_cut_sizes(sizes, per_iteration)) <= max_loop_iterations(machine):
            return per_iteration
        per_iteration *= 2
    return None


def _is_cut(sizes: tuple[int, ...], per_iteration: int) -> bool:
    return per_iteration > 1 and sizes[-1] % per_iteration == 0 and sizes[-1] != per_iteration


def _cut_sizes(sizes: tuple[int, ...], per_iteration: int) -> tuple[int, ...]:
    return (*sizes[:-1], sizes[-1] // per_iteration, per_iteration) if _is_cut(sizes, per_iteration) else sizes


def _cut(b: KernelBuilder, reduction: Reduction, per_iteration: int) -> Reduction:
    """The reduction with its innermost axis split in two. The inner axis is short enough to need no loop."""
    sizes = numbers(reduction.sizes)
    if not _is_cut(sizes, per_iteration):
        return reduction

    def joined(coordinates: Sequence[Value]) -> list[Value]:
        *before, number, place = coordinates
        return [*before, b.place(number, per_iteration, place)]

    return replace(
        reduction,
        sizes=_cut_sizes(sizes, per_iteration),
        element=lambda coordinates: reduction.element(joined(coordinates)),
        accumulate=reduction.accumulate and (lambda values, at: reduction.into(values, joined(at))),
    )


def nest_iterations(sizes: tuple[int, ...]) -> int:
    """Upper bound of the iterations of a loop per axis, all together. Each exit counts as an iteration."""
    total = 0
    for level in reversed(range(len(sizes))):
        if prod(sizes[level:]) > UNROLLED:
            size = sizes[level]
            total = size * (total + 1) + 2 * (size // _per_block(sizes, level) + 2)
    return total


def _per_block(sizes: Shape, level: int, width: int = 1) -> int:
    """Iterations along an axis that make a block, of elements or of blocks of the inner axes, of static sizes."""
    inside = prod(numbers(sizes[level + 1 :])) * width
    return BLOCK if inside >= BLOCK else max(BLOCK // inside, 1)


@dataclass(frozen=True, slots=True)
class Nest:
    """A reduction with a neutral value and a loop per axis. Innermost axes with few elements in all have no loop."""

    builder: KernelBuilder
    reduction: Reduction

    def _inside(self, level: int) -> int:
        """Elements along this axis and all inner axes."""
        return prod(numbers(self.reduction.sizes[level:])) * self.reduction.width

    def _per_block(self, level: int) -> int:
        return _per_block(self.reduction.sizes, level, self.reduction.width)

    def axis(self, level: int, outer: Sequence[Value], start: Sequence[Value]) -> Scalars:
        """Combines `start` with all elements at the place `outer` of the outer axes."""
        b, size = self.builder, int(self.reduction.sizes[level])
        if self._inside(level) <= UNROLLED:
            values = start
            for at in range(size):
                values = yield from self._iteration(level, (*outer, b.index(at)), values)
            return list(values)
        return (yield from self._range(level, outer, (b.index(0), b.index(size), size), start))

    def part(
        self, outer: Sequence[Value], bounds: tuple[Value, Value, int], start: Callable[[], Sequence[Value]] | None
    ) -> Scalars:
        """Combines a range of an axis, at a place of the outer axes. `bounds`: lower, upper, and the greatest length;
        `start`: the values of earlier ranges, which are combined with whole blocks of this one.
        """
        level = len(outer)
        few = bounds_of(self.reduction.sizes[level])[1] <= BLOCK
        blocks = few and self._inside(level + 1) >= BLOCK  # a block per place
        if start is not None and (blocks or bounds[2] > self._per_block(level)):
            return (yield from self._range(level, outer, bounds, start()))
        found = yield from self._range(level, outer, bounds, self._neutral())
        return found if start is None else (yield from self.reduction.combine(start(), found))

    def _range(
        self, level: int, outer: Sequence[Value], bounds: tuple[Value, Value, int], start: Sequence[Value]
    ) -> Scalars:
        """Combines a range of an axis. `bounds`: lower, upper, and the greatest length of the range."""
        b, (lower, upper, most), length = self.builder, bounds, self._per_block(level)
        if most <= length:
            return (yield from self._one_block(level, outer, (lower, upper), start))
        while length * BLOCK < most:
            length *= BLOCK
        loop = b.begin_loop(lower, upper, b.index(length), start)
        end = b.op("add", loop.index, b.index(length))
        if self.reduction.sizes[level] % length != 0:
            end = b.op("minimum", end, upper)
        block = yield from self._range(level, outer, (loop.index, end, length), self._neutral())
        return b.end_loop(loop, (yield from self.reduction.combine(loop.carried, block)))

    def _one_block(
        self, level: int, outer: Sequence[Value], bounds: tuple[Value, Value], start: Sequence[Value]
    ) -> Scalars:
        """Combines a range of an axis that is one block, of elements or of blocks of the inner axes."""
        b, (lower, upper) = self.builder, bounds
        loop = b.begin_loop(lower, upper, b.index(1), start)
        return b.end_loop(loop, (yield from self._iteration(level, (*outer, loop.index), loop.carried)))

    def _iteration(self, level: int, place: Sequence[Value], values: Sequence[Value]) -> Scalars:
        if level == len(self.reduction.sizes) - 1:
            return (yield from self.reduction.into(values, place))
        if self._inside(level + 1) < BLOCK:
            return (yield from self.axis(level + 1, place, values))
        block = yield from self.axis(level + 1, place, self._neutral())
        return (yield from self.reduction.combine(values, block))

    def _neutral(self) -> Sequence[Value]:
        assert self.reduction.neutral is not None
        return self.reduction.neutral


@dataclass(frozen=True, slots=True)
class Loops:
    """Combines ranges of positions in blocks: of each range the elements that lie `stride` apart, from the first one.

    A block has `length` elements. An iteration of the innermost loop takes `unroll` of them, a power of two up to
    `length`. The stride is a power of two.
    """

    builder: KernelBuilder
    reduction: Reduction
    unroll: int
    length: int = BLOCK
    stride: int = 1

    @classmethod
    def of(cls, b: KernelBuilder, reduction: Reduction, most: int, stride: int = 1) -> "Loops":
        """Loops over at most `most` elements of a reduction. With a dynamic number they have few levels and take few
        elements per iteration: short reductions pay for every level, since llvmpipe executes the body of a loop once
        more on exit.
        """
        if not is_dynamic(reduction.count):
            unroll = max(elements_per_iteration(most, b.machine), b.machine.shared_run)
            while unroll > most:
                unroll //= 2
            return cls(b, reduction, max(unroll, 1), BLOCK, stride)
        unroll = 1
        while loop_iterations(most, unroll) > max_counted_iterations(b.machine):
            unroll *= 2
        return cls(b, reduction, unroll, _even_block(most), stride)

    def over(self, lower: Value, upper: Value, most: int, start: Sequence[Value]) -> Scalars:
        """Combines `start` with the elements of the range from `lower` to before `upper`, at most `most`.

        Raises CompileError if `most` is more than one invocation of the machine can combine.
        """
        limit = max_elements(self.builder.machine)
        if most > limit:
            message = f"one invocation would reduce {most} elements, {limit} are the most"
            raise CompileError([Diagnostic(message, self.builder.loc)])
        if most <= self.length:
            return (yield from self._straight(lower, upper, start))
        b, length = self.builder, self.length if self.reduction.neutral is not None else self.length + 1
        while length * self.length < most:
            length *= self.length
        loop = b.begin_loop(lower, upper, b.index(length * self.stride), start)
        end = b.op("minimum", b.op("add", loop.index, b.index(length * self.stride)), upper)
        block = yield from self.block(loop.index, end, length)
        return b.end_loop(loop, (yield from self.reduction.combine(loop.carried, block)))

    def block(self, lower: Value, upper: Value, most: int) -> Scalars:
        """Combines a range of at least one element without an initial value."""
        if self.reduction.neutral is not None:
            return (yield from self.over(lower, upper, most, self.reduction.neutral))
        b = self.builder
        first = yield from self.reduction.at(b, lower)
        return (yield from self.over(b.op("add", lower, b.index(self.stride)), upper, most - 1, first))

    def _straight(self, lower: Value, upper: Value, start: Sequence[Value]) -> Scalars:
        """One loop over groups of `unroll` elements and one over the remaining elements."""
        b, values = self.builder, start
        if self.unroll > 1:
            rest = b.op("and", b.op("subtract", upper, lower), b.index(self.unroll * self.stride - 1))
            whole = b.op("subtract", upper, rest)
            values = yield from self._loop(lower, whole, self.unroll, values)
            lower = whole
        return (yield from self._loop(lower, upper, 1, values))

    def _loop(self, lower: Value, upper: Value, step: int, start: Sequence[Value]) -> Scalars:
        b = self.builder
        loop = b.begin_loop(lower, upper, b.index(step * self.stride), start)
        values = loop.carried
        for offset in range(step):
            position = b.op("add", loop.index, b.index(offset * self.stride))
            values = yield from self.reduction.into(values, delinearize(b, position, self.reduction.sizes))
        return b.end_loop(loop, values)
