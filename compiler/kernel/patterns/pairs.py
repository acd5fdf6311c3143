"""Schedules of dots of bf16 in native code, which multiply pairs (docs/decisions/bf16-pairs.md)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, typical
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.legality import MAX_WORKGROUP_SIZE
from orchestrion.compiler.kernel.panels.pairs import FORMS, PAIR, has_pairs, reads_rows
from orchestrion.compiler.kernel.schedule import Schedule, Step

from .task import Task

#: lanes of a vector, and fewest invocations of a workgroup
LANES: Final = 16
#: numbers of invocations along the rows and the columns of a block
GROUPS: Final = tuple(product((1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 16)))
#: fewest rows of a dot with panels of pairs; of fewer, products take less time than the panels
FEWEST_ROWS: Final = 4
#: rows of a tile, of two vectors of sums, whose products take as long as one takes to be added
LATENCY: Final = 7
#: words of a panel of columns for each row, at most, and for how many rows at least: the products of few rows take less
#: time than a panel that the L1 cache does not hold
ROW_WORDS, LEAST_ROWS = 512, 16
#: products in the time that takes to copy an element to a panel of words and to search it, of the right and the left
#: operand; the rows, and the columns of a block share a copy
COSTS_OF_COPIES: Final = (14, 12)
#: fewest blocks of a dot: threads share them
FEWEST_BLOCKS: Final = 8


def pair_panel_dot(task: Task) -> Schedule | None:
    """A workgroup computes a block of results of a dot of bf16, with panels of words that hold two elements each."""
    dot, machine, extents = task.dot, task.machine, task.body.extents
    if dot is None or not machine.pair_products or is_dynamic(extents["n"], extents["k"]) or not extents["k"]:
        return None
    rows, columns, length = typical(extents["m"]), int(extents["n"]), int(extents["k"])
    if not has_pairs(dot) or columns < LANES or rows < FEWEST_ROWS:
        return None
    most, width = machine.panel_tile[0], min(machine.panel_tile[1], columns // LANES * LANES)
    heights = range(FEWEST_ROWS, most + 1)
    height = min(heights, key=lambda count: ceildiv(rows, count) * max(count, LATENCY))
    words, batches = machine.panel_bytes // 4, typical(extents["b"])
    blocks = _Blocks((rows, columns), length, (height, width), words, reads_rows(dot), batches)
    fitting = [groups for groups in GROUPS if groups[1] * width <= columns and blocks.depth(groups)]
    if not fitting:
        return None
    groups = min(fitting, key=blocks.cost)
    schedule = Schedule.of(
        *task.block("mn", (height, width), groups),
        Step("vectorize", "n", count=LANES),
        Step("stage", "out", "pairs", blocks.depth(groups)),
    )
    return task.if_legal(schedule)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks of a dot of `sizes` rows and columns and `length` products each, of some tiles. `words`: those that a
    workgroup has; `in_order`: the panel of rows has those of a tile, else of the block.
    """

    sizes: tuple[int, int]
    length: int
    tile: tuple[int, int]
    words: int
    in_order: bool
    batches: int

    def depth(self, groups: tuple[int, int]) -> int:
        """The elements of a slice: all, or whole blocks of sums; 0 if those do not fit."""
        (height, width), size = self.tile, prod(groups)
        rows, columns = height * groups[0], width * groups[1]
        place, held = columns + FORMS * (height if self.in_order else rows), max(self.sizes[0], LEAST_ROWS) * ROW_WORDS
        if self.length <= PAIR * min((self.words - height * columns) // place, held // columns):
            found = self.length
        else:
            fitting = min((self.words - rows * columns) // place, held // columns)
            found = min(fitting * PAIR // BLOCK * BLOCK, self.length)
        copies = not self.in_order or found >= PAIR * size or size == LANES  # all invocations copy a row
        return found if LANES <= size <= MAX_WORKGROUP_SIZE and copies else 0

    def cost(self, groups: tuple[int, int]) -> float:
        """About the products that take as long as the dot."""
        sides = [(size, tile * group) for size, tile, group in zip(self.sizes, self.tile, groups, strict=True)]
        blocks, (down, across) = prod(ceildiv(*side) for side in sides), (self.tile[0], sides[1][1])
        results = ceildiv(self.sizes[0], down) * down * ceildiv(self.sizes[1], across) * across
        copies = sum(cost / min(side) for cost, side in zip(COSTS_OF_COPIES, sides, strict=True))
        return results * (1 + copies) * max(FEWEST_BLOCKS / (self.batches * blocks), 1)
