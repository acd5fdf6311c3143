"""Which axes of a fold are one loop: those that are one in the memory of everything that is read along them.

A coordinate along axes that were joined is divided into theirs, and goes back together where a position in memory is
made of them (`affine.py`). Where that is not seen here, the axes are loops of their own: that is never wrong.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod

from orchestrion.compiler.flow.dialect import UnsetEncoding, Windows
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.sequencer.ll_seq import LoadInput
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Transpose

from .builder import KernelBuilder
from .index import Shape, delinearize
from .rules import shape_of

#: an operand and its axes along which is folded
Side = tuple[Value, Sequence[int]]


class Axes:
    """The axes of a fold in groups; `sizes` has the elements of each."""

    def __init__(self, sides: Sequence[Side]) -> None:
        value, axes = sides[0]
        self.extents = [shape_of(value)[axis] for axis in axes]
        wide = [number for number, size in enumerate(self.extents) if size != 1] or list(range(len(axes)))[-1:]
        self.groups: list[list[int]] = [[number] for number in wide[:1]]
        for first, second in pairwise(wide):
            if all(_are_one(value, axes[first], axes[second]) for value, axes in sides):
                self.groups[-1].append(second)
            else:
                self.groups.append([second])
        self.sizes: Shape = tuple(prod(self.extents[number] for number in group) for group in self.groups)

    def apart(self, b: KernelBuilder, coordinates: Sequence[Value]) -> list[Value]:
        """The coordinate of each axis."""
        found = [b.index(0)] * len(self.extents)
        for group, coordinate in zip(self.groups, coordinates, strict=True):
            parts = delinearize(b, coordinate, tuple(self.extents[number] for number in group))
            for number, part in zip(group, parts, strict=True):
                found[number] = part
        return found


def _are_one(value: Value, first: int, second: int) -> bool:
    """Whether a step along `first` is as far in memory as all steps along `second`."""
    match value.defining_op:
        case None | LoadInput() | UnsetEncoding():
            return second == first + 1 or _only_ones(shape_of(value)[first + 1 : second])
        case Elementwise() as op:
            return all(_are_one(operand, first, second) for operand in op.operands if shape_of(operand))
        case Transpose() as op:
            order = op.permutation.ints
            return _are_one(op.operand_, order[first], order[second])
        case BroadcastInDim() as op:
            kept = {dim: axis for axis, dim in enumerate(op.broadcast_dimensions.ints)}
            if first not in kept and second not in kept:
                return True
            return _are_kept(op, kept, (first, second)) and _are_one(op.operand_, kept[first], kept[second])
        case Windows() as op:
            return _are_one_in_windows(op, first, second)
        case _:
            return False


def _are_kept(op: BroadcastInDim, kept: Mapping[int, int], axes: Sequence[int]) -> bool:
    return all(axis in kept and shape_of(op.operand_)[kept[axis]] == shape_of(op.out)[axis] for axis in axes)


def _are_one_in_windows(op: Windows, first: int, second: int) -> bool:
    """Elements of a window that lie side by side count on into the axis behind theirs."""
    rank, windowed = len(shape_of(op.operand_)), op.axes.ints
    if second >= rank or second in windowed:
        return False
    if first < rank:
        return first not in windowed and _are_one(op.operand_, first, second)
    return op.dilations.ints[first - rank] == 1 and _are_one(op.operand_, windowed[first - rank], second)


def _only_ones(sizes: Sequence[int]) -> bool:
    return 0 < len(sizes) == sum(size == 1 for size in sizes)
