"""Expands `flow.merge` into StableHLO for the reference device: all elements at once.

Each element of the result finds, by bisection, how many of the elements before it come from the left run, as kernels do
(`compiler/kernel/library/merge.py`). That decides whether it is the next element of the left run or of the right one.
"""

from __future__ import annotations

from orchestrion.compiler.flow.merge import Merge
from orchestrion.compiler.ir.attributes import DenseArray
from orchestrion.compiler.ir.core import Block, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import iota, take_along
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim


def expand_merges(block: Block) -> None:
    """Replaces every merge in a block."""
    for op in [op for op in block if isinstance(op, Merge)]:
        rewriter = Rewriter({})
        rewriter.at(op)
        rewriter.replace(op, _Merged(op, rewriter).results())


class _Merged:
    """The merge of one op. All values have its shape; places count along the axis."""

    def __init__(self, op: Merge, rewriter: Rewriter) -> None:
        self.op = op
        self.rewriter = rewriter
        self.shape = tensor_of(op.inputs[0]).shape
        self.size = self.shape[op.axis]

    def results(self) -> list[Value]:
        """The results of the op."""
        place = iota(self.rewriter, self.shape, self.op.axis)
        length = self._run()
        mask = self._of("subtract", self._of("add", length, length), self._number(1))
        count = self._of("and", place, mask)
        first = self._of("subtract", place, count)
        middle = self._of("minimum", self._of("add", first, length), self._number(self.size))
        last = self._of("minimum", self._of("add", middle, length), self._number(self.size))
        left = self._of("add", first, self._path(first, middle, last, count))
        right = self._of("subtract", self._of("add", middle, place), left)
        mine, theirs = self._taken(left), self._taken(right)
        stays = self._of("not", self._before(theirs, mine))
        there = self._of("and", compare(self.rewriter, "LT", left, middle), stays)
        taken = self._of("or", compare(self.rewriter, "GE", right, last), there)
        return [self._of("select", taken, x, y) for x, y in zip(mine, theirs, strict=True)]

    def _path(self, first: Value, middle: Value, last: Value, count: Value) -> Value:
        one = self._number(1)
        low = self._of("maximum", self._of("subtract", count, self._of("subtract", last, middle)), self._number(0))
        high = self._of("minimum", count, self._of("subtract", middle, first))
        for _ in range(self.size.bit_length()):
            open_ = compare(self.rewriter, "LT", low, high)
            half = self._of("shift_right_logical", self._of("add", low, high), one)
            other = self._of("subtract", self._of("add", middle, count), self._of("add", half, one))
            behind = self._before(self._taken(other), self._taken(self._of("add", first, half)))
            lower = self._of("and", open_, self._of("not", behind))
            high = self._of("select", self._of("and", open_, behind), half, high)
            low = self._of("select", lower, self._of("add", half, one), low)
        return low

    def _run(self) -> Value:
        """The length of a run, at most 2^30."""
        scalar = TensorType((), I32)
        least, most, one = (constant(self.rewriter, number, scalar) for number in (0, 30, 1))
        step = self._of("minimum", self._of("maximum", self.op.step, least), most)
        length = self._of("shift_left", one, step)
        out = TensorType(self.shape, I32)
        return self.rewriter.build(BroadcastInDim, operand_=length, broadcast_dimensions=DenseArray(()), out=out).out

    def _before(self, x: list[Value], y: list[Value]) -> Value:
        given = [value for both in zip(x, y, strict=True) for value in both]
        return apply_to_tensors(self.rewriter, self.op.comparator.block, given, self.shape)[0]

    def _taken(self, places: Value) -> list[Value]:
        """The elements of the operands at places along the axis, which a gather clamps."""
        return [take_along(self.rewriter, value, places, self.op.axis) for value in self.op.inputs]

    def _number(self, value: int) -> Value:
        return constant(self.rewriter, value, TensorType(self.shape, I32))

    def _of(self, name: str, *operands: Value) -> Value:
        return elementwise(self.rewriter, name, *operands)
