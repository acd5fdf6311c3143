"""Copies captured constants into isolated regions.

Reducers and comparators are isolated in our IR; in StableHLO they may use constants from outside. Any other captured
value stays, and the legality check refuses it with its location.
"""

from __future__ import annotations

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Region, Trait, Value


def copy_constants(module: Module) -> None:
    """Copies into isolated regions the constants that they use from outside."""
    for op in module.walk():
        if op.has(Trait.ISOLATED) and not op.has(Trait.SYMBOL) and not isinstance(op, Module):
            for region in op.regions:
                _copy_into(region)


def _copy_into(region: Region) -> None:
    inside = {block for op in region.walk() for inner in op.regions for block in inner.blocks} | set(region.blocks)
    copies: dict[Value, Operation] = {}
    for op in list(region.walk()):
        for index, value in enumerate(op.operands):
            maker = value.defining_op
            if maker is None or not maker.has(Trait.CONSTANT) or maker.parent in inside:
                continue
            if value not in copies:
                copies[value] = maker.clone()
                region.blocks[0].insert_before(copies[value], region.blocks[0].first)
            op.set_operand(index, copies[value].results[0])
