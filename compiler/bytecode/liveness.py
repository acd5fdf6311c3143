"""Live intervals: one interval of positions per value of a function.

Positions count block starts and operations in text order. An interval spans from the definition to the last use, and
covers all blocks on paths between them. In a loop it covers everything that the next iteration needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.liveness import live_values


@dataclass(slots=True)
class Interval:
    """First and last position at which a value is live."""

    first: int
    last: int


def intervals(region: Region) -> dict[Value, Interval]:
    """The interval of every value, in the order of definitions."""
    found: dict[Value, Interval] = {}
    edges: list[tuple[Block, int, int]] = []  # a block, the positions of its start and end
    used: list[tuple[Value, int]] = []
    position = 0
    for block in region.blocks:
        start = position
        found |= {argument: Interval(start, start) for argument in block.arguments}
        for op in block:
            position += 1
            used += [(value, position) for value in op.operands]
            found |= {result: Interval(position, position) for result in op.results}
        edges.append((block, start, position))
        position += 1
    starts, ends = live_values(region.blocks)
    for block, start, end in edges:
        used += [(value, start) for value in starts[block]]
        used += [(value, end) for value in ends[block]]
    for value, at in used:
        span = found[value]
        span.first, span.last = min(span.first, at), max(span.last, at)
    return found
