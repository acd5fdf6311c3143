"""The kernel of `flow.merge`: an invocation computes `SHARE` neighbouring elements of the result.

It finds, by bisection, how many of the elements before its share come from the left run (the merge path). Then it takes
one element after the other, and loads only the successor of the element that it took. If runs are shorter than a share,
the invocation merges several pairs.

Green, McColl and Bader, "GPU Merge Path: A GPU Merging Algorithm" (2012).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from orchestrion.compiler.flow.merge import Merge
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.kernel.elements.elemental import Elemental, ElementalCode
from orchestrion.compiler.kernel.elements.index import Index, delinearize, invocation_index
from orchestrion.compiler.kernel.elements.reductions import instance
from orchestrion.compiler.kernel.elements.rules import scalar_index, shape_of

#: invocations of a workgroup
WORKGROUP_SIZE = 64
#: elements that an invocation computes
SHARE = 16
#: greatest step: runs have at most 2^30 elements, and no axis on a device is longer
MAX_MERGE_STEP = 30


def invocations(op: Merge) -> Size:
    """Number of invocations of a dispatch."""
    shape = shape_of(op.inputs[0])
    return prod(shape) // shape[op.axis] * -(-shape[op.axis] // SHARE)


def emit(elemental: Elemental, op: Merge, bindings: Mapping[Value, Value]) -> None:
    """Appends the code of an invocation. `bindings`: where each result is written."""
    b, shape = elemental.builder, shape_of(op.inputs[0])
    position = invocation_index(b, WORKGROUP_SIZE)
    with b.when(b.op("compare_lt", position, b.index(invocations(op)))):
        others = shape[: op.axis] + shape[op.axis + 1 :]
        line, share = delinearize(b, position, (prod(others), -(-shape[op.axis] // SHARE)))
        merger = _Merger(elemental, op, [bindings[result] for result in op.results], delinearize(b, line, others))
        merger.run(b.op("multiply", share, b.index(SHARE)))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two runs of a line. The right one begins where the left one ends."""

    first: Value
    middle: Value
    last: Value


@dataclass(slots=True)
class _Merger(ElementalCode):
    """Computes elements of one line."""

    op: Merge
    bindings: Sequence[Value]
    line: Sequence[Value]

    @property
    def size(self) -> Size:
        return shape_of(self.op.inputs[0])[self.op.axis]

    def run(self, start: Value) -> None:
        """Computes a share that begins at `start`."""
        b = self.builder
        step = self._step()
        length = b.op("unchecked_shift_left", b.index(1), step)
        pair = self._pair_at(start, length)
        left = self._path(pair, b.op("subtract", start, pair.first), step)
        right = b.op("subtract", b.op("add", pair.middle, start), b.op("add", pair.first, left))
        left = b.op("add", pair.first, left)
        end = b.op("minimum", b.op("add", start, b.index(SHARE)), b.index(self.size))
        kept = [left, right, pair.middle, pair.last]
        count = len(self.op.inputs)
        loop = b.begin_loop(start, end, b.index(1), [*kept, *self._loaded(left), *self._loaded(right)])
        left, right, middle, last, *values = self._next_pair(loop.index, loop.carried, length)
        mine, theirs = values[:count], values[count:]
        taken = self._is_left(left, right, _Pair(start, middle, last), mine, theirs)
        place = self._at(loop.index)
        for x, y, binding in zip(mine, theirs, self.bindings, strict=True):
            b.store(b.select(taken, x, y), binding, place.linear)
        left = b.select(taken, b.op("add", left, b.index(1)), left)
        right = b.select(taken, right, b.op("add", right, b.index(1)))
        fresh = self._loaded(b.select(taken, left, right))
        mine = [b.select(taken, new, old) for new, old in zip(fresh, mine, strict=True)]
        theirs = [b.select(taken, old, new) for new, old in zip(fresh, theirs, strict=True)]
        b.end_loop(loop, [left, right, middle, last, *mine, *theirs])

    def _step(self) -> Value:
        """The step, in the index type, clamped to the range of a shift."""
        b = self.builder
        step = self.elemental.element(self.op.step, scalar_index(b))
        step = b.op("minimum", b.op("maximum", step, b.const(0, "i32")), b.const(MAX_MERGE_STEP, "i32"))
        return b.index(step)

    def _pair_at(self, place: Value, length: Value) -> _Pair:
        """The pair of runs that a place of the result belongs to."""
        b, size = self.builder, self.builder.index(self.size)
        mask = b.op("subtract", b.op("add", length, length), b.index(1))
        first = b.op("subtract", place, b.op("and", place, mask))
        middle = b.op("minimum", b.op("add", first, length), size)
        return _Pair(first, middle, b.op("minimum", b.op("add", middle, length), size))

    def _path(self, pair: _Pair, count: Value, step: Value) -> Value:
        """How many of the first `count` elements of the merged pair come from the left run."""
        b = self.builder
        left, right = b.op("subtract", pair.middle, pair.first), b.op("subtract", pair.last, pair.middle)
        low = b.op("subtract", count, b.op("minimum", count, right))
        high = b.op("minimum", count, left)
        iterations = b.op("add", step, b.index(1))
        loop = b.begin_loop(b.index(0), iterations, b.index(1), [low, high])
        low, high = loop.carried
        branch = b.begin_if(b.op("compare_lt", low, high))
        half = b.op("unchecked_shift_right_logical", b.op("add", low, high), b.index(1))
        mine = self._loaded(b.op("add", pair.first, half))
        other = b.op("subtract", b.op("add", pair.middle, count), b.op("add", half, b.index(1)))
        behind = self._before(self._loaded(other), mine)
        after = b.op("add", half, b.index(1))
        b.begin_else(branch, [b.select(behind, low, after), b.select(behind, half, high)])
        low, high = b.end_if(branch, [low, high])
        return b.end_loop(loop, [low, high])[0]

    def _next_pair(self, place: Value, carried: Sequence[Value], length: Value) -> list[Value]:
        """The carried values, or those at the beginning of the next pair if this one is exhausted."""
        b, last = self.builder, carried[3]
        branch = b.begin_if(b.op("compare_eq", place, last))
        pair = self._pair_at(place, length)
        fresh = [pair.first, pair.middle, pair.middle, pair.last]
        b.begin_else(branch, [*fresh, *self._loaded(pair.first), *self._loaded(pair.middle)])
        return b.end_if(branch, list(carried))

    def _is_left(self, left: Value, right: Value, pair: _Pair, mine: Sequence[Value], theirs: Sequence[Value]) -> Value:
        """Whether the next element comes from the left run: the right run is exhausted, or its element does not come
        before.
        """
        b = self.builder
        stays = b.op("not", self._before(theirs, mine))
        there = b.op("and", b.op("compare_lt", left, pair.middle), stays)
        return b.op("or", b.op("compare_ge", right, pair.last), there)

    def _before(self, x: Sequence[Value], y: Sequence[Value]) -> Value:
        """Whether x comes before y."""
        given = [value for both in zip(x, y, strict=True) for value in both]
        return self.elemental.run(instance(self.builder, self.op.comparator, given))[0]

    def _loaded(self, place: Value) -> list[Value]:
        """The elements of the operands at a place of the line, clamped to its end."""
        b = self.builder
        at = self._at(b.op("minimum", place, b.index(self.size - 1)))
        return [self.elemental.element(value, at) for value in self.op.inputs]

    def _at(self, place: Value) -> Index:
        axis, shape = self.op.axis, shape_of(self.op.inputs[0])
        return Index(self.builder, shape, [*self.line[:axis], place, *self.line[axis:]])
