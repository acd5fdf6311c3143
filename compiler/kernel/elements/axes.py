"""Which reduced axes become one loop: those that are contiguous in memory in every operand that is read along them.

A coordinate along joined axes is divided into one per axis. `affine.py` joins them again when a position in memory is
computed. Axes that are not recognised as contiguous get loops of their own, which is always correct.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from orchestrion.compiler.flow.structure import is_one_axis
from orchestrion.compiler.ir.core import Block, Value
from orchestrion.compiler.ir.dims import Shape
from orchestrion.compiler.kernel.code.builder import KernelBuilder

from .index import delinearize
from .rules import shape_of

#: an operand and its axes along which is reduced
Side = tuple[Value, Sequence[int]]


def first_joined(values: Sequence[Value], axes: Sequence[int]) -> int:
    """The first of the last axes, of some, that are one axis in every value."""
    for outer, inner in pairwise(reversed(axes)):
        if not all(is_one_axis(value, inner, outer) for value in values):
            return outer
    return axes[0]


class Axes:
    """Reduced axes in groups. `sizes`: the elements of each group."""

    def __init__(self, sides: Sequence[Side]) -> None:
        value, axes = sides[0]
        self.extents = [shape_of(value)[axis] for axis in axes]
        wide = [number for number, size in enumerate(self.extents) if size != 1] or list(range(len(axes)))[-1:]
        self.groups: list[list[int]] = [[number] for number in wide[:1]]
        for first, second in pairwise(wide):
            if all(is_one_axis(value, axes[first], axes[second]) for value, axes in sides):
                self.groups[-1].append(second)
            else:
                self.groups.append([second])
        self.sizes: Shape = tuple(prod(self.extents[number] for number in group) for group in self.groups)
        #: the region and the coordinates of the last division, which all elements of a tile share, and its result
        self._divided: tuple[Block | None, Sequence[Value], Sequence[Value]] = (None, (), ())

    def apart(self, b: KernelBuilder, coordinates: Sequence[Value]) -> Sequence[Value]:
        """The coordinate of each axis from the coordinates of the groups."""
        region, known, parts = self._divided
        if region is b.block and known == coordinates:
            return parts
        found = [b.index(0)] * len(self.extents)
        for group, coordinate in zip(self.groups, coordinates, strict=True):
            parts = delinearize(b, coordinate, tuple(self.extents[number] for number in group))
            for number, part in zip(group, parts, strict=True):
                found[number] = part
        self._divided = b.block, coordinates, found
        return found
