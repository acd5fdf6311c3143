"""Squares of 2 x 2 results of a convolution, for schedules with `stage(out, winograd, ...)` (`winograd.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from orchestrion.compiler.flow.dialect import Windows
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, numbers
from orchestrion.compiler.stablehlo.ops.contraction import HIGHEST, DotGeneral

from .rules import shape_of
from .schedule import Schedule

#: factors of a square, and invocations of a workgroup
FACTORS: Final = 16
#: elements of f32 in a line of a cache
LINE: Final = 16
#: results of a square
RESULTS: Final = 4


@dataclass(frozen=True, slots=True)
class Squares:
    """Squares of 2 x 2 results of a convolution. `counts`: squares along the free axes of its left operand, of which
    the last two are those of the windows. `window`, `channel`: positions among the contracted axes; `channels`: number
    of elements along the last.
    """

    counts: tuple[int, ...]
    window: tuple[int, int]
    channel: int
    channels: int

    @property
    def rows(self) -> int:
        """Results of all squares, with those behind the edges: the rows that the grid divides."""
        return RESULTS * prod(self.counts)

    @classmethod
    def of(cls, dot: DotGeneral) -> Squares | None:
        """The squares of a dot; None if it does not sum windows of 3 x 3, side by side, over one axis of channels, or
        has the precision HIGHEST.
        """
        windows, dims = dot.lhs.defining_op, dot.dimensions
        if dot.precision_config == HIGHEST or not isinstance(windows, Windows):
            return None
        if dims.lhs_batch or is_dynamic(*shape_of(dot.lhs), *shape_of(dot.rhs)):
            return None
        shape = numbers(shape_of(dot.lhs))
        axes, free, contract = windows.axes.ints, dims.free(len(shape), True), list(dims.lhs_contract)
        own = (len(shape) - 2, len(shape) - 1)
        others = [at for at, axis in enumerate(contract) if axis not in own]
        plain = windows.sizes.sizes == (3, 3) and windows.strides.sizes == windows.dilations.sizes == (1, 1)
        if not plain or tuple(free[-2:]) != tuple(axes) or len(contract) != 3 or len(others) != 1:
            return None
        *outer, height, width = (shape[axis] for axis in free)
        counts = (*outer, ceildiv(height, 2), ceildiv(width, 2))
        window = contract.index(own[0]), contract.index(own[1])
        return cls(counts, window, others[0], shape[contract[others[0]]])


def squares_of(dot: DotGeneral, schedule: Schedule) -> Squares | None:
    """The squares that a schedule computes; None if it computes other tiles."""
    stage = schedule.find("stage", "out")
    return Squares.of(dot) if stage is not None and stage.how == "winograd" else None


def pitches(schedule: Schedule) -> tuple[int, int, int]:
    """Elements between two factors in the shared arrays of sums, of the left, and of the right operand. Each has a line
    of a cache more than there are elements: lines a power of two apart would share few places of it.
    """
    depth, columns = schedule.count("stage", "out"), schedule.count("tile", "n")
    squares = schedule.block("m") // RESULTS
    return squares * columns + FACTORS, squares * depth + FACTORS, depth * columns + FACTORS


def transformed_elements(schedule: Schedule) -> int:
    """Elements of the shared arrays of a workgroup: sums, factors of both operands, and a test of each invocation."""
    return FACTORS * (sum(pitches(schedule)) + 1)
