"""Which axes of a fold are one loop: those that are one in the memory of everything that is read along them.

A coordinate along axes that were joined is divided into theirs, and goes back together where a position in memory is
made of them (`affine.py`). Where that is not seen here, the axes are loops of their own: that is never wrong.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from orchestrion.compiler.flow.structure import is_one_axis
from orchestrion.compiler.ir.core import Value

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
            if all(is_one_axis(value, axes[first], axes[second]) for value, axes in sides):
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
