"""A contracted axis that joins axes of memory, such as the heads of attention and their width, which lie far apart.

Loops over the joined axis would divide at each place. Loops over units of it do not: a unit is a range of places that
are neighbours in one of the axes. A unit has at most a block of a sum and divides it, so sums keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from orchestrion.compiler.flow.structure import Axes, axes_in_memory, is_one_axis
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Shape, is_dynamic
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.elements.index import Index, delinearize, linearize
from orchestrion.compiler.kernel.elements.loops import BLOCK, Scalars
from orchestrion.compiler.kernel.elements.reductions import Factors
from orchestrion.compiler.kernel.elements.rules import mapped, shape_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.compiler.stablehlo.ops.structural import Reshape


def units_of(dot: DotGeneral) -> tuple[int, int] | None:
    """The number of units of the contracted axis of a dot, and the places of a unit. None if the dot has several
    contracted axes, or no operand that joins them from axes that lie apart.
    """
    sides = [(value, _contracted_axis(dot, number)) for number, value in enumerate(dot.operands)]
    sizes = [_inner_size(value, axis) for value, axis in sides if axis is not None]
    inner = {size for size in sizes if size}
    if len(sizes) != len(sides) or len(inner) != 1:
        return None
    size, axis = inner.pop(), sides[0][1]
    unit = BLOCK if size % BLOCK == 0 else size
    return None if axis is None or BLOCK % unit else (int(shape_of(dot.lhs)[axis]) // unit, unit)


def _contracted_axis(dot: DotGeneral, operand: int) -> int | None:
    """The only contracted axis of an operand that has more than one place; None if there is not one, or its size is
    dynamic.
    """
    value, axes = dot.sides[operand]
    wide = [axis for axis in axes if shape_of(value)[axis] != 1]
    return wide[0] if len(wide) == 1 and not is_dynamic(shape_of(value)[wide[0]]) else None


def _source(value: Value) -> tuple[Value, Axes] | None:
    """The operand of the reshape that makes a value, and for each axis of the value the axes of it that it joins; None
    if another op makes the value, or an axis joins no axes.
    """
    op = value.defining_op
    axes = axes_in_memory(value, op.operand_) if isinstance(op, Reshape) else None
    return None if axes is None or not isinstance(op, Reshape) else (op.operand_, axes)


def _inner_size(value: Value, axis: int) -> int:
    """The size of the innermost of the axes that an axis joins; 0 if it joins none that lie apart."""
    found = _source(value)
    if found is None:
        return 0
    source, axes = found
    joined = [part for part in axes[axis] if shape_of(source)[part] != 1]
    apart = any(not is_one_axis(source, first, second) for first, second in pairwise(joined))
    return int(shape_of(source)[joined[-1]]) if apart else 0


class UnitFactors(Factors):
    """The factors at a place of the contracted axis that is the number of a unit, and the place in it."""

    def __init__(self, b: KernelBuilder, op: DotGeneral, at: Index, units: tuple[int, int]) -> None:
        super().__init__(b, op, at)
        self.op, self.units = op, units

    def of(self, number: int, reduced: Sequence[Value]) -> Scalars:
        b, (operand, read), axis = self.builder, self.sides[number], _contracted_axis(self.op, number)
        found = _source(operand)
        assert read.coordinates is not None and axis is not None
        whole = linearize(b, reduced, self.units)
        coordinates = mapped(b, read.coordinates, self.at.coordinates, self.axes.apart(b, [whole]))
        if found is None or not _inner_size(operand, axis):
            value = yield operand, self.at.at(shape_of(operand), coordinates)
            return [b.op("convert", value, to=self.dtype)]
        source, axes = found
        shape, at = shape_of(source), [b.index(0)] * len(shape_of(source))
        for own, joined in enumerate(axes):
            group = [part for part in joined if shape[part] != 1]
            sizes = tuple(shape[part] for part in group)
            parts = delinearize(b, coordinates[own], sizes) if own != axis else self._unjoined(sizes, reduced)
            for part, coordinate in zip(group, parts, strict=True):
                at[part] = coordinate
        value = yield source, self.at.at(shape, at)
        return [b.op("convert", value, to=self.dtype)]

    def _unjoined(self, sizes: Shape, reduced: Sequence[Value]) -> list[Value]:
        """The coordinates along joined axes of a place in a unit."""
        b, (number, place), unit = self.builder, reduced, self.units[1]
        *outer, inner = delinearize(b, number, (*sizes[:-1], sizes[-1] // unit))
        return [*outer, b.place(inner, unit, place)]
