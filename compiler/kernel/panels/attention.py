"""Attention bodies, of which a workgroup computes a block of rows through both dots.

The scores of the rows are the sums of a dot, in an array in shared memory, one block of columns after the other
(`dot.py`). All invocations then take one row after the other through the ops between the dots (`rows/kernel.py`),
which replace its scores by weights. The second dot reads the weights from the array. No score is written to memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from orchestrion.compiler.flow.attention_bodies import Attention
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import ceildiv, numbers
from orchestrion.compiler.kernel.body import Extents, Rows, reduced
from orchestrion.compiler.kernel.elements.elemental import ElementalCode
from orchestrion.compiler.kernel.elements.index import Index
from orchestrion.compiler.kernel.elements.rules import element_of
from orchestrion.compiler.kernel.products.blocks import Finish
from orchestrion.compiler.kernel.products.operands import is_read
from orchestrion.compiler.kernel.rows.kernel import Row
from orchestrion.compiler.kernel.rows.values import shared_row_bytes
from orchestrion.compiler.kernel.schedule import Schedule, Step
from orchestrion.compiler.stablehlo.ops.base import dtype_of

from .dot import Panel, PanelDot, shared_elements


def scores_schedule(attention: Attention, schedule: Schedule) -> Schedule:
    """The schedule of the first dot. Its columns are those that the second dot reduces; its operands have one slice."""
    dot = attention.scores
    columns = [Step(s.name, "n", s.how, s.count) for s in schedule.steps if s.dim == "k" and s.name != "reduce"]
    lanes = min(schedule.count("vectorize", "n"), schedule.count("tile", "k"))
    return Schedule.of(
        *(step for step in schedule.steps if step.dim in ("grid", "m") or step.name == "reduce"),
        *columns,
        Step("vectorize", "n", count=lanes),
        Step("stage", "out", "rows", int(reduced(dot))),
        None if is_read(dot.lhs) else Step("stage", "lhs", "panel"),
        Step("stage", "rhs", "panel"),
    )


def product_schedule(schedule: Schedule) -> Schedule:
    """The schedule of the second dot."""
    kept = (step for step in schedule.steps if step.dim != "k" or step.name == "reduce")
    return Schedule.of(*kept, Step("stage", "rhs", "panel"))


def attention_bytes(attention: Attention, schedule: Schedule) -> int:
    """Bytes of the shared arrays of a workgroup."""
    first, second = scores_schedule(attention, schedule), product_schedule(schedule)
    beside = int(reduced(attention.product)) - first.block("n")
    count = beside * first.block("m")
    count += shared_elements(attention.scores, first) + shared_elements(attention.product, second)
    return count * dtype_of(attention.scores.out).itemsize + shared_row_bytes(_rows_of(attention), schedule.lanes)


def _rows_of(attention: Attention) -> Rows:
    """The rows of scores, which become weights."""
    extents = Extents.of(attention.scores)
    return Rows(attention.between, prod(extents.batch) * extents.rows, [attention.product.lhs])


@dataclass
class ScoreDot(PanelDot):
    """Scores of some columns. `array`: the scores of all columns of the rows."""

    in_strips = False
    array: Value

    def _sums(self) -> Value:
        return self.array

    def _at(self, row: Value, column: Value) -> Value:
        b = self.builder
        first = b.op("multiply", row, b.word(int(self.column_count)))
        return b.op("add", b.op("add", first, b.op("convert", self.start, to="ui32")), column)


@dataclass
class WeightedDot(PanelDot):
    """A block of results. `array`: the weights of its rows."""

    in_strips = False
    array: Value

    def _panel(self, left: bool) -> Panel | None:
        if not left:
            return super()._panel(left)
        places = prod(numbers(self.sizes))
        return Panel(self.builder, self.array, self.rows, places, deep=True, turned=False, whole=True)


@dataclass
class AttentionBlock(ElementalCode):
    """A block of rows of results under construction. `place`: the block along the dimensions of the grid. `writes`:
    whether this workgroup writes its block.
    """

    attention: Attention
    schedule: Schedule
    place: dict[str, Value]
    writes: Value

    def __post_init__(self) -> None:
        scores, schedule = self.attention.scores, self.schedule
        self.extents, self.length = Extents.of(scores), int(reduced(self.attention.product))
        self.rows = schedule.block("m")
        self.array = self.builder.shared(self.rows * self.length, element_of(scores.out))

    def emit(self, finish: Finish) -> None:
        """The code of the block."""
        first, second = scores_schedule(self.attention, self.schedule), product_schedule(self.schedule)
        with self._blocks(first, self.length) as place:
            ScoreDot(self.elemental, self.attention.scores, first, place, self.writes, self.array).sum()
        self._weigh()
        with self._blocks(second, int(Extents.of(self.attention.product).columns)) as place:
            WeightedDot(self.elemental, self.attention.product, second, place, self.writes, self.array).emit(finish)

    @contextmanager
    def _blocks(self, schedule: Schedule, columns: int) -> Iterator[dict[str, Value]]:
        """A loop over the blocks of columns: the place of each."""
        b, count = self.builder, ceildiv(columns, schedule.block("n"))
        if count == 1:
            yield {**self.place, "n": b.index(0)}
            return
        with b.indices(count) as number:
            yield {**self.place, "n": number}

    def _weigh(self) -> None:
        """Replaces the scores of each row by its weights."""
        b, (scores, product) = self.builder, (self.attention.scores, self.attention.product)
        count = int(self.extents.rows)
        first = b.op("multiply", self.place["m"], b.index(self.rows))
        rest = b.op("minimum", b.op("subtract", b.index(count), first), b.index(self.rows))
        loop = b.begin_loop(b.index(0), rest if count % self.rows else b.index(self.rows), b.index(1), ())
        number = b.op("add", b.op("multiply", self.place["b"], b.index(count)), b.op("add", first, loop.index))
        start, own = (b.op("multiply", row, b.index(self.length)) for row in (number, loop.index))

        def at(place: Index) -> Value:
            return b.op("convert", b.op("add", own, b.op("subtract", place.linear, start)), to="ui32")

        def store(places: Sequence[Index], values: Sequence[Value]) -> None:
            for place, value in zip(places, values, strict=True):
                b.store_shared(value, self.array, at(place))

        self.elemental.bound[scores.out] = lambda place: b.load_shared(self.array, at(place))
        row = Row(self.elemental, _rows_of(self.attention), number, self.schedule.lanes)
        row.emit([(product.lhs, store)], b.const(True, "i1"))
        b.barrier()  # the weights are there, and the parts of the row are read
        b.end_loop(loop, ())
