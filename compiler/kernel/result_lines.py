"""Lines of results of a depthwise convolution, for schedules with `stage(out, windows, ...)` (`depthwise.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from orchestrion.compiler.flow.dialect import Windows
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, numbers
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.compiler.stablehlo.ops.structural import Pad

from .body import Extents
from .loops import BLOCK
from .rules import shape_of
from .schedule import Schedule

#: most products of a result: one block of a sum
MOST_PRODUCTS: Final = BLOCK


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of results. `shape`: that of the results. `row`, `column`, `channel`: axes of it, of which the last is the
    fastest. `sizes`, `strides`, `dilations`: those of the windows, along rows and columns.
    """

    shape: tuple[int, ...]
    row: int
    column: int
    channel: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    @classmethod
    def of(cls, dot: DotGeneral) -> Lines | None:
        """The lines of a dot; None if it does not sum windows along two axes of one channel each, of known sizes."""
        windows, dims = dot.lhs.defining_op, dot.dimensions
        extents, shape = Extents.of(dot), shape_of(dot.lhs)
        if not isinstance(windows, Windows) or is_dynamic(*shape, *shape_of(dot.rhs)):
            return None
        axes, sizes, batch = windows.axes.ints, windows.sizes.ints, extents.batch
        length = prod(shape[axis] for axis in dims.lhs_contract)
        if len(axes) != 2 or prod(extents.left + extents.right) != 1 or tuple(dims.lhs_batch) != (*range(len(batch)),):
            return None
        own = {len(shape) - 2, len(shape) - 1} <= set(dims.lhs_contract) and length == prod(sizes)
        wide = [axis for axis, size in enumerate(batch) if size != 1]
        if not own or length > MOST_PRODUCTS or not wide or not axes[0] < axes[1] < wide[-1]:
            return None
        return cls(numbers(batch), *axes, wide[-1], sizes, windows.strides.ints, windows.dilations.ints)

    @property
    def spans(self) -> tuple[int, ...]:
        """Elements from the first of a window to its last, along rows and columns."""
        return tuple((size - 1) * gap + 1 for size, gap in zip(self.sizes, self.dilations, strict=True))

    @property
    def width(self) -> int:
        """Columns of the image that the windows of a line have."""
        return (self.shape[self.column] - 1) * self.strides[1] + self.spans[1]

    def grid(self, schedule: Schedule) -> tuple[int, ...]:
        """Blocks of a workgroup along each axis of the results: some rows, all columns, some channels."""
        sizes = {self.row: schedule.count("stage", "out"), self.column: self.shape[self.column]}
        sizes[self.channel] = schedule.local("b")
        return tuple(ceildiv(size, sizes.get(axis, 1)) for axis, size in enumerate(self.shape))

    def elements(self, schedule: Schedule) -> int:
        """Elements of the shared array of a workgroup: the rows of the image that one line of results needs."""
        return self.spans[0] * self.width * schedule.local("b")


def lines_of(dot: DotGeneral, schedule: Schedule) -> Lines | None:
    """The lines that a schedule computes; None if it computes other tiles."""
    stage = schedule.find("stage", "out")
    return Lines.of(dot) if stage is not None and stage.how == "windows" else None


def image_of(dot: DotGeneral) -> Value:
    """The image whose windows are the left operand of a dot, without padding."""
    image = dot.lhs
    while isinstance(op := image.defining_op, Windows | Pad):
        image = op.operand_
    return image
