"""`flow.merge` in StableHLO for the reference device: all elements at once.

Each element of the result finds, by bisection, how many of the elements before it come from the left run, as kernels do
(`compiler/kernel/library/merge.py`). That decides whether it is the next element of the left run or of the right one.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.flow.merge import Merge
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors


def merged(op: Merge, *operands: Tensor) -> list[Tensor]:
    """The results of the op. All tensors have their shape; places count along the axis."""
    *inputs, step = operands
    rewriter, shape, size = step.rewriter, inputs[0].shape, inputs[0].shape[op.axis]

    def taken(places: Tensor) -> list[Tensor]:
        """The elements of the operands at places along the axis, which a gather clamps."""
        return [x.take_along(places, op.axis) for x in inputs]

    def is_before(x: Sequence[Tensor], y: Sequence[Tensor]) -> Tensor:
        given = [one.value for both in zip(x, y, strict=True) for one in both]
        return Tensor(rewriter, apply_to_tensors(rewriter, op.comparator.block, given, shape)[0])

    place = inputs[0].iota(op.axis)
    least, most, one = (step.of(number) for number in (0, 30, 1))  # a run has at most 2^30 elements
    length = (one << step.op("maximum", least).op("minimum", most)).broadcast(shape)
    count = place & (length + length - 1)
    first = place - count
    middle = (first + length).op("minimum", size)
    last = (middle + length).op("minimum", size)
    one = place.of(1)
    low = (count - (last - middle)).op("maximum", 0)
    high = count.op("minimum", middle - first)
    for _ in range(int(size).bit_length()):
        is_open = low < high
        half = (low + high).op("shift_right_logical", one)
        other = middle + count - (half + one)
        behind = is_before(taken(other), taken(first + half))
        lower = is_open & ~behind
        high = (is_open & behind).select(half, high)
        low = lower.select(half + one, low)
    left = first + low
    right = middle + place - left
    mine, theirs = taken(left), taken(right)
    stays = ~is_before(theirs, mine)
    there = (left < middle) & stays
    is_left = (right >= last) | there
    return [is_left.select(x, y) for x, y in zip(mine, theirs, strict=True)]
