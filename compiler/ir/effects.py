"""Purity of ops, from their traits, and the elimination of dead ops.

An op with regions is as pure as its regions: a reduction with a pure reducer is pure.
"""

from __future__ import annotations

from .builtin import Module
from .core import Operation, Trait


def is_pure(op: Operation) -> bool:
    """Whether the op and the ops in its regions, except terminators, have no effect beyond their results."""
    return op.has(Trait.PURE) and _inside(op, Trait.PURE)


def is_removable(op: Operation) -> bool:
    """Whether the op may be erased if its results are unused."""
    return (op.has(Trait.PURE) or op.has(Trait.REMOVABLE)) and (not op.regions or _inside(op, Trait.REMOVABLE))


def is_dead(op: Operation) -> bool:
    """Whether the op is unused and removable."""
    return not any(result.uses for result in op.results) and is_removable(op)


def _inside(op: Operation, trait: Trait) -> bool:
    return all(
        inner.has(Trait.PURE) or inner.has(trait) or inner.has(Trait.TERMINATOR)
        for region in op.regions
        for inner in region.walk()
    )


def erase_dead(top: Operation) -> None:
    """Erases every dead op inside `top`, users before the ops that they use."""
    for region in top.regions:
        for block in reversed(region.blocks):
            for op in reversed(block):
                if is_dead(op):
                    op.erase()
                elif op.regions:
                    erase_dead(op)


def run(module: Module) -> None:
    """The pass `dce`."""
    erase_dead(module)
