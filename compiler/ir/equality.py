"""Structural equality: the same ops on the same values, at any location."""

from __future__ import annotations

from itertools import zip_longest

from .core import Block, Operation, Value


def equal(first: Operation, second: Operation) -> bool:
    """Whether two ops are equal with all that is inside: classes, properties, attributes, types, blocks and operands.

    Values from outside must be the same ones. Ops with forward references are taken for different.
    """
    values: dict[Value, Value] = {}
    blocks: dict[Block, Block] = {}
    for one, other in zip_longest(first.walk(), second.walk()):
        if one is None or other is None:
            return False
        if one is not first and (one.parent is None or blocks.get(one.parent) is not other.parent):
            return False
        if type(one) is not type(other) or one.name != other.name or len(one.operands) != len(other.operands):
            return False
        if one.properties != other.properties or one.attributes != other.attributes:
            return False
        if any(values.get(x, x) is not y for x, y in zip(one.operands, other.operands, strict=True)):
            return False
        if [result.type for result in one.results] != [result.type for result in other.results]:
            return False
        values.update(zip(one.results, other.results, strict=True))
        if one.regions or other.regions:
            if not _same_blocks(one, other):
                return False
            blocks.update(zip(one.inner_blocks(), other.inner_blocks(), strict=True))
            values.update(zip(one.block_arguments(), other.block_arguments(), strict=True))
        if [blocks.get(block) for block in one.successors] != list(other.successors):
            return False
    return True


def _same_blocks(one: Operation, other: Operation) -> bool:
    """Whether the regions of two ops have as many blocks, with arguments of the same types."""
    shapes = [
        [[[argument.type for argument in block.arguments] for block in region.blocks] for region in op.regions]
        for op in (one, other)
    ]
    return shapes[0] == shapes[1]
