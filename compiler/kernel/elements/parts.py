"""What the invocations of a workgroup share: arrays, of which each takes some elements, and reductions, of which each
reduces a part, while shared memory holds the parts.

Parts are combined in the order of the elements. Many parts are first combined in groups of neighbours. Every invocation
can combine the few that remain.

If the invocations of a workgroup are lanes of vectors (`Machine.lanes`) and the order is free, the first half of the
parts is combined with the second half, vector by vector, until few remain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, ceildiv, dim_max, dim_min, is_dynamic
from orchestrion.compiler.kernel.code.builder import KernelBuilder

from .elemental import Elemental
from .loops import BLOCK, Loops, Reduction, Scalars

#: parts that every invocation combines by itself; more are combined in groups of `RADIX` first
FEW_PARTS, RADIX = 16, 8
#: the same for lanes of vectors, if the order is free
FEW_LANES = 4


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a reduction: the first `count` elements of each of `arrays`, one per result. `most`: bound of a
    dynamic count; `free`: whether the order of the parts is; `beside`: reductions of a workgroup, the parts of which
    take turns in the arrays, as their invocations do.
    """

    elemental: Elemental
    reduction: Reduction
    arrays: Sequence[Value]
    count: Size
    most: int
    free: bool = False
    beside: int = 1

    def total(self) -> Scalars:
        """The initial values combined with all parts, of which there are few."""
        b, number = self.elemental.builder, None if is_dynamic(self.count) else self.count
        values = yield from self.reduction.start()
        if number is None or not self.free or number > FEW_PARTS:
            return self._and_parts(values, b.word(0), b.word(self.count), number)
        parts = [self.load(b.word(at)) for at in range(number)]
        return self.elemental.run(self.reduction.combine(values, combined(self.elemental, self.reduction, parts)))

    def few(self) -> Parts:
        """The same with at most `FEW_PARTS` parts. All invocations of the workgroup must come here."""
        b = self.elemental.builder
        count = self.count
        if self.free and b.machine.lanes and not is_dynamic(count) and count % (2 * FEW_LANES) == 0:
            return self._halved(count // 2).few()
        if self.reduction.by_lanes and b.machine.lanes and count == FEW_LANES:
            return self._turned(FEW_LANES)
        return self if self.most <= FEW_PARTS else self._combined().few()

    def _halved(self, fewer: int) -> Parts:
        """Combines the first half of the parts with the second half."""
        b = self.elemental.builder
        made = [b.shared(1 << (fewer - 1).bit_length(), b.dtype(array)) for array in self.arrays]
        local = b.local_id()
        with b.when(b.op("compare_lt", local, b.word(fewer))):
            halves = self.load(local), self.load(b.op("add", local, b.word(fewer)))
            values = self.elemental.run(self.reduction.combine(*halves))
            store_part(self.elemental, values, made, b.inside(made[0], local))
        b.barrier()
        return Parts(self.elemental, self.reduction, made, fewer, fewer, self.free)

    def _turned(self, count: int) -> Parts:
        """Combines the parts as a vector with the same vector, turned by half of its lanes, and so on, in one
        invocation. Scalars would leave their vectors one by one.
        """
        b = self.elemental.builder
        made = [b.shared(1, b.dtype(array)) for array in self.arrays]
        with b.when(b.op("compare_lt", b.local_id(), b.word(1))):
            values = [b.load_shared_lanes(array, b.word(0), count) for array in self.arrays]
            while count := count // 2:
                lanes = [b.lanes(vector) for vector in values]
                turned = [b.vector([*some[count:], *some[:count]]) for some in lanes]
                values = self.elemental.run(self.reduction.combine(values, turned))
            store_part(self.elemental, [b.lanes(vector)[0] for vector in values], made, b.word(0))
        b.barrier()
        return Parts(self.elemental, self.reduction, made, 1, 1, self.free)

    def _combined(self) -> Parts:
        """Combines each `RADIX` neighbouring parts into one."""
        b, fewer = self.elemental.builder, ceildiv(self.count, RADIX)
        made = [b.shared(FEW_PARTS * self.beside, b.dtype(array)) for array in self.arrays]
        part = part_of(b, self.beside)
        with b.when(b.op("compare_lt", part, b.word(fewer))):
            first = b.op("multiply", part, b.word(RADIX))
            end, second = b.op("add", first, b.word(RADIX)), b.op("add", first, b.word(1))
            values, ragged = self.load(first), self.count % RADIX != 0
            end = b.op("minimum", end, b.word(self.count)) if ragged else end
            values = self._and_parts(values, second, end, None if ragged else RADIX - 1)
            store_part(self.elemental, values, made, b.inside(made[0], b.local_id()))
        b.barrier()
        return Parts(self.elemental, self.reduction, made, fewer, ceildiv(self.most, RADIX), beside=self.beside)

    def _and_parts(self, values: list[Value], lower: Value, upper: Value, number: int | None) -> list[Value]:
        """The values combined with the parts of a range, without a loop if `number`, how many they are, is known."""
        b, combine = self.elemental.builder, self.reduction.combine
        if number is None:
            loop = b.begin_loop(lower, upper, b.word(1), values)
            return b.end_loop(loop, self.elemental.run(combine(loop.carried, self.load(loop.index))))
        for at in range(number):
            part = self.load(b.op("add", lower, b.word(at)))
            values = self.elemental.run(combine(values, part))
        return values

    def load(self, place: Value) -> list[Value]:
        """The part at a place."""
        b = self.elemental.builder
        if self.beside > 1:
            row = b.op("multiply", place, b.word(self.beside))
            place = b.op("add", row, place_beside(b, self.beside))
        return [b.load_shared(array, b.inside(array, place)) for array in self.arrays]


def combined(elemental: Elemental, reduction: Reduction, parts: Sequence[list[Value]]) -> list[Value]:
    """All parts, combined as a tree of neighbours, which waits less than a chain."""
    while len(parts) > 1:
        pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
        parts = [elemental.run(reduction.combine(*pair)) if len(pair) > 1 else pair[0] for pair in pairs]
    return parts[0]


def store_part(elemental: Elemental, values: Sequence[Value], arrays: Sequence[Value], place: Value) -> None:
    """Stores the part of an invocation to shared arrays, one per result, at a place."""
    for value, array in zip(values, arrays, strict=True):
        elemental.builder.store_shared(value, array, place)


def part_of(b: KernelBuilder, beside: int) -> Value:
    """The number of the part of this invocation, in a workgroup of so many reductions."""
    return b.local_id() if beside == 1 else b.op("unchecked_divide", b.local_id(), b.word(beside))


def place_beside(b: KernelBuilder, beside: int) -> Value:
    """The number of the reduction of this invocation, of those of its workgroup."""
    return b.op("unchecked_remainder", b.local_id(), b.word(beside))


def parts_of(
    elemental: Elemental, reduction: Reduction, lanes: int, in_order: bool, most: int, beside: int = 1
) -> Parts:
    """The parts of a reduction, without the initial values, of which `lanes` invocations of a workgroup of `beside`
    reductions take one each. The part of an invocation has at most `most` elements.

    `in_order`: a part is a run of neighbouring elements. Otherwise neighbouring invocations take neighbouring elements,
    which is the fastest way to read memory if the reducer is commutative.
    """
    b, count = elemental.builder, reduction.count
    most_at_once = count if reduction.is_exact else lanes * BLOCK
    fits = reduction.neutral is not None if is_dynamic(count) else lanes <= count <= most_at_once
    if b.machine.lanes and beside == 1 and not in_order and fits:
        return _lane_parts(elemental, reduction, lanes, *lane_ranges(count, lanes))
    arrays = [b.shared(lanes * beside, dtype) for dtype in reduction.dtypes]
    number = part_of(b, beside)
    local, stride = b.index(number), lanes
    lower, upper, parts = local, b.index(count), lanes if reduction.neutral is not None else dim_min(count, lanes)
    if in_order:
        each, stride = dim_max(ceildiv(count, lanes), 1), 1
        lower, parts = b.op("multiply", local, b.index(each)), ceildiv(count, each)
        upper = b.op("minimum", b.op("add", lower, b.index(each)), upper)
    with b.when(b.op("compare_lt", number, b.word(parts))):
        part = elemental.run(Loops.of(b, reduction, most, stride).block(lower, upper, most))
        store_part(elemental, part, arrays, b.local_id())
    b.barrier()
    return Parts(elemental, reduction, arrays, parts, lanes if is_dynamic(parts) else parts, beside=beside).few()


def _lane_parts(elemental: Elemental, reduction: Reduction, lanes: int, whole: Size, rest: Size) -> Parts:
    """The parts of a reduction of free order: of `whole` elements that all invocations share evenly, and of the `rest`.
    If their number is dynamic, an invocation combines blocks of `BLOCK` of its elements.
    """
    b = elemental.builder
    arrays = [b.shared(lanes, dtype) for dtype in reduction.dtypes]
    first, start = b.index(b.local_id()), reduction.neutral
    lower = first
    if start is None:
        start, lower = elemental.run(reduction.at(b, first)), b.op("add", first, b.index(lanes))
    block = b.begin_loop(b.index(0), b.index(whole), b.index(lanes * BLOCK), start) if is_dynamic(whole) else None
    upper = b.index(whole)
    if block is not None:
        lower = b.op("add", block.index, first)
        upper = b.op("minimum", b.op("add", block.index, b.index(lanes * BLOCK)), upper)
    loop = b.begin_loop(lower, upper, b.index(lanes), start)
    element = elemental.run(reduction.at(b, loop.index))
    values = b.end_loop(loop, elemental.run(reduction.combine(loop.carried, element)))
    if block is not None:
        values = b.end_loop(block, elemental.run(reduction.combine(block.carried, values)))
    store_part(elemental, values, arrays, b.local_id())
    parts = Parts(elemental, reduction, arrays, lanes, lanes, True)
    if rest != 0:
        with b.when(b.op("compare_lt", b.local_id(), b.word(rest))):
            element = elemental.run(reduction.at(b, b.op("add", first, b.index(whole))))
            values = elemental.run(reduction.combine(parts.load(b.local_id()), element))
            store_part(elemental, values, arrays, b.local_id())
    b.barrier()
    return parts.few()


def lane_ranges(count: Size, lanes: int) -> tuple[Size, Size]:
    """The elements that all invocations share evenly, and those that remain."""
    return count // lanes * lanes, count % lanes


@contextmanager
def each(b: KernelBuilder, lanes: int, outer: Value, inner: int) -> Iterator[tuple[Value, Value]]:
    """Loops over the elements of an array of `outer` by `inner` elements, of which this invocation of `lanes` takes
    some: the numbers of their row and column, as words. Elements are taken twice if invocations do not divide rows.
    """
    size = b.word(inner)
    if lanes >= inner and lanes % inner:
        with b.words(outer) as row:
            yield row, b.op("minimum", b.local_id(), b.word(inner - 1))
    elif lanes >= inner:
        with b.words(outer, b.op("unchecked_divide", b.local_id(), size), lanes // inner) as row:
            yield row, b.op("unchecked_remainder", b.local_id(), size)
    else:
        with b.words(outer) as row, b.words(size, step=lanes) as first:
            first = b.op("minimum", first, b.word(inner - lanes)) if inner % lanes else first
            yield row, b.op("add", first, b.local_id())
