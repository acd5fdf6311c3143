"""Loads of vectors: a vector of neighbouring elements is loaded at once."""

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Block, Value

from .affine import sum_of
from .builder import KernelBuilder
from .dialect import Load, LoadLanes, Vector


def load_lanes(block: Block, b: KernelBuilder) -> None:
    """Replaces each vector of loaded neighbours by one load. The former loads are left without users."""
    for top in block:
        for op in top.walk():
            if isinstance(op, Vector) and (first := neighbours(op.values, b)) is not None:
                made = LoadLanes([first.binding, first.index], [op.output.type])
                made.loc = op.loc
                assert op.parent is not None
                op.parent.insert_before(made, op)
                op.output.replace_by(made.output)
                op.erase()


def neighbours(values: Sequence[Value], b: KernelBuilder) -> Load | None:
    """The first of loads of consecutive elements in one block; None if they are not consecutive."""
    first = values[0].defining_op
    if not isinstance(first, Load) or str(first.output.type) == "i1":
        return None
    start = sum_of(b, first.index)
    for number, value in enumerate(values):
        if not _is_neighbour(value, number, first, b):
            return None
        place = sum_of(b, value.defining_op.index)  # type: ignore[union-attr]
        if dict(place.terms) != dict(start.terms) or place.constant != start.constant + number:
            return None
    return first


def _is_neighbour(value: Value, number: int, first: Load, b: KernelBuilder) -> bool:
    load = value.defining_op
    return isinstance(load, Load) and load.binding is first.binding and load.parent is first.parent
