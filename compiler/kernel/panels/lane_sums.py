"""Dots of few rows with an operand whose rows are neighbours along the reduction: a matrix times a few columns.

Vectors have neighbours along the contracted axis, of both operands, so each operand is read once in the order of
memory. The lanes of a vector add every 16th product of a result. They are added at the end: squares of vectors are
transposed, so that a vector has the sums of 16 results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrion.compiler.flow.structure import fastest_axis
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel.code.vectors import neighbours_of
from orchestrion.compiler.kernel.elements.loops import Nest, Scalars
from orchestrion.compiler.kernel.elements.rules import element_of
from orchestrion.compiler.kernel.products.blocks import Finish
from orchestrion.compiler.kernel.products.dots import vector_sums
from orchestrion.compiler.kernel.products.operands import is_element
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .dot import PanelDot


def reads_along(dot: DotGeneral) -> bool:
    """Whether both operands are elements of memory in the type of the result, neighbours along the contracted axis."""
    return all(
        is_element(operand, encoded=False)
        and fastest_axis(operand) in contract
        and element_of(operand) == element_of(dot.out)
        for operand, contract in dot.sides
    )


class LaneSumDot(PanelDot):
    """A block of results under construction. Its rows are the few ones of the dot, all of them; an invocation computes
    a tile of its columns.
    """

    in_strips = False
    in_slices = False

    def __post_init__(self) -> None:
        super().__post_init__()
        size = self.rows * self.columns * self.lanes
        self.sums = self.builder.shared(size, element_of(self.dot.out))

    def emit(self, finish: Finish) -> None:
        b, (length,), (rows, width) = self.builder, self.sizes, self.tile
        first, count = b.op("multiply", self.tile_column, b.word(width)), length // self.lanes
        columns = [b.op("add", first, b.word(at)) for at in range(width)]
        zeros = [b.vector([self.zero] * self.lanes)] * (rows * width)
        reduction = vector_sums(b, (count,), rows, zeros, self._factors_of(columns, self._neighbours_at))
        sums = self.elemental.run(Nest(b, reduction).axis(0, (), zeros))
        if length % self.lanes:
            rest = vector_sums(b, (count,), rows, zeros, self._factors_of(columns, self._rest))
            sums = self.elemental.run(rest.into(sums, (b.index(count),)))
        for number, value in enumerate(sums):
            row, column = divmod(number, width)
            at = self._at(b.word(row), columns[column])
            b.store_shared_lanes(value, self.sums, b.op("multiply", at, b.word(self.lanes)))
        b.barrier()  # the sums of all lanes are there
        self._add_lanes()
        b.barrier()  # the results are there
        self._finish(finish)

    def _factors_of(
        self, columns: Sequence[Value], vector: Callable[[bool, Value, Value], Value]
    ) -> Callable[[Sequence[Value]], Scalars]:
        """Vectors of the rows, then of the columns, at a place along the contracted axis, which counts vectors."""
        b = self.builder
        numbers = [*((True, b.word(row)) for row in range(self.rows)), *((False, one) for one in columns)]

        def factors(place: Sequence[Value]) -> Scalars:
            yield from ()
            first = b.op("multiply", place[0], b.index(self.lanes))
            return [vector(left, number, first) for left, number in numbers]

        return factors

    def _neighbours_at(self, left: bool, number: Value, first: Value) -> Value:
        """The elements of a row or column from one on."""
        return neighbours_of(self._factor(left, number, [first]), self.lanes, self.builder)

    def _rest(self, left: bool, number: Value, first: Value) -> Value:
        """The same where fewer than a vector are left, with zeros behind the last one."""
        b, count = self.builder, self.sizes[0] % self.lanes
        places = [b.op("add", first, b.index(at)) for at in range(count)]
        found = [self._factor(left, number, [place]) for place in places]
        return b.vector([*found, *[self.zero] * (self.lanes - count)])

    def _add_lanes(self) -> None:
        """Adds the lanes of the sums, a vector of results per invocation at a time."""
        b, lanes = self.builder, self.lanes
        with self._each(b.word(self.rows), self.columns // lanes) as (row, square):
            at = self._at(row, b.op("multiply", square, b.word(lanes)))
            first = b.op("multiply", at, b.word(lanes))
            places = [b.op("add", first, b.word(lane * lanes)) for lane in range(lanes)]
            parts = b.transpose([b.load_shared_lanes(self.sums, place, lanes) for place in places])
            while len(parts) > 1:
                half = len(parts) // 2
                parts = [b.op("add", x, y) for x, y in zip(parts[:half], parts[half:], strict=True)]
            b.store_shared_lanes(parts[0], self.block, at)
