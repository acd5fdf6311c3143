"""Common subexpression elimination: of equal pure ops, only the first that dominates the others stays.

Equal ops have the same name, operands, properties, attributes, result types and regions. The remaining op carries the
fused locations of all, so that no source location is lost.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from .attributes import DictAttr
from .builtin import Module
from .core import Block, Operation, Region, Trait, Value
from .dominance import Dominance
from .effects import is_pure
from .locations import fused
from .types import Attribute

Known = dict[Hashable, list[Operation]]
Kinds = tuple[type[Operation], ...]


def merge_equal(top: Operation, kinds: Kinds = (Operation,), apart: Kinds = ()) -> None:
    """Merges equal pure ops of the classes `kinds` inside `top`, except for the classes `apart`."""
    for region in top.regions:
        _region(region, {}, kinds, apart)


def _region(region: Region, known: Known, kinds: Kinds, apart: Kinds) -> None:
    """`known`: ops around the region; unchanged after the call."""
    dominance = Dominance() if len(region.blocks) > 1 else None
    added: list[list[Operation]] = []
    for block in region.blocks:
        for op in block:
            for inner in op.regions:
                _region(inner, {} if op.has(Trait.ISOLATED) else known, kinds, apart)
            if op.results and isinstance(op, kinds) and not isinstance(op, apart) and is_pure(op):
                _merge(op, known, dominance, added)
    for ops in reversed(added):
        ops.pop()


def _merge(op: Operation, known: Known, dominance: Dominance | None, added: list[list[Operation]]) -> None:
    """Replaces `op` by an equal op that dominates it, or adds it to a list in `known`, and the list to `added`."""
    key = _key(op)
    for other in known.get(key, ()):
        if dominance is None or _dominates(other, op, dominance):
            other.loc = fused(other.loc, op.loc)
            op.replace_by(other.results)
            return
    alike = known.setdefault(key, [])
    alike.append(op)
    added.append(alike)


def _dominates(upper: Operation, lower: Operation, dominance: Dominance) -> bool:
    home = upper.parent
    assert home is not None, "a known op is in a block"
    blocks = (op.parent for op in lower.enclosing() if op.parent is not None and op.parent.region is home.region)
    block = next(blocks, None)
    return block is not None and (block is home or dominance.dominates(home, block))


def _key(op: Operation) -> Hashable:
    operands: list[Hashable] = list(op.operands)
    if op.has(Trait.COMMUTATIVE) and id(operands[0]) > id(operands[1]):
        operands.reverse()
    return structure(op), tuple(operands)


def structure(op: Operation, without: str = "") -> Hashable:
    """Equal for ops that are equal with all that is inside, apart from their operands, locations and one property.
    Values from outside that regions use must be the same ones.
    """
    properties = {name: value for name, value in op.properties.items() if name != without}
    return _shape(op, properties, {})


def _shape(op: Operation, properties: Mapping[str, Attribute], names: dict[Value | Block, int]) -> tuple[Hashable, ...]:
    """The op without its operands; `names`: numbers of the values and blocks of the regions around it."""
    types = tuple(result.type for result in op.results)
    regions = tuple(_region_key(region, names) for region in op.regions)
    return op.name, DictAttr.of(properties), DictAttr.of(op.attributes), types, regions


def _region_key(region: Region, names: dict[Value | Block, int]) -> Hashable:
    """The region's content, with its own values and blocks replaced by numbers."""
    for block in region.blocks:
        names[block] = len(names)
        for argument in block.arguments:
            names[argument] = len(names)
        for op in block:
            for result in op.results:
                names[result] = len(names)
    parts: list[Hashable] = []
    for block in region.blocks:
        parts.append(tuple(argument.type for argument in block.arguments))
        for op in block:
            operands = tuple(names.get(value, value) for value in op.operands)
            targets = tuple(names.get(target, -1) for target in op.successors)
            parts.append((_shape(op, op.properties, names), operands, targets))
    return tuple(parts)


def run(module: Module) -> None:
    """The pass `cse`."""
    merge_equal(module)
