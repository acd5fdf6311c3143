"""The kernel of `flow.solve_rows`: a workgroup takes as many rows as it has invocations, and each substitutes one row.

The triangular matrix lies in shared memory. If it must be factored, every workgroup does so, an invocation per row of
the factor, column by column with a barrier behind each. Pivots are stored above the diagonal, so that no invocation
overwrites elements that others still read. The elements of an invocation also lie in shared memory, since registers
cannot be indexed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, ceildiv
from orchestrion.compiler.kernel.elements.elemental import Elemental, ElementalCode
from orchestrion.compiler.kernel.elements.index import Index, delinearize
from orchestrion.compiler.kernel.elements.rules import element_of, shape_of
from orchestrion.compiler.stablehlo.ops.flow_ops import BLOCK, RowSolve


def groups(op: RowSolve) -> Size:
    """Number of workgroups of a dispatch."""
    return prod(_grid(op))


def _grid(op: RowSolve) -> tuple[Size, Size]:
    """Number of matrices, and of workgroups per matrix."""
    batch, rows, _ = shape_of(op.rows)
    return batch, ceildiv(rows, BLOCK)


def invocations(op: RowSolve) -> Size:
    """Number of invocations of a dispatch."""
    return groups(op) * BLOCK


def emit(elemental: Elemental, op: RowSolve, bindings: Mapping[Value, Value]) -> None:
    """Appends the code of a workgroup. `bindings`: where the result is written."""
    b, (binding,) = elemental.builder, bindings.values()
    dtype = element_of(op.rows)
    square, own = (b.shared(BLOCK * BLOCK, dtype) for _ in range(2))
    _Rows(elemental, op, binding, square, own).emit()


@dataclass(slots=True)
class _Rows(ElementalCode):
    op: RowSolve
    binding: Value
    triangle: Value
    own: Value
    batch: Value = field(init=False)
    share: Value = field(init=False)

    @property
    def columns(self) -> int:
        return int(shape_of(self.op.rows)[2])

    def emit(self) -> None:
        """Appends the code. Workgroups behind the last one repeat it without writing, because all invocations must
        reach the barriers.
        """
        b, count, rows = self.builder, groups(self.op), shape_of(self.op.rows)[1]
        number = b.op("minimum", b.workgroup_id(), b.index(count - 1))
        self.batch, self.share = delinearize(b, number, _grid(self.op))
        self._load()
        b.barrier()
        if self.op.factor.value:
            with b.words(self.columns) as column:
                self._column(column)
                b.barrier()
        first = b.op("multiply", self.share, b.index(BLOCK))
        row = b.op("add", first, b.index(b.local_id()))
        inside = b.op("compare_lt", row, b.index(rows))
        with b.when(b.op("and", inside, b.op("compare_lt", b.workgroup_id(), b.index(count)))):
            self._substitute(row)

    def _load(self) -> None:
        """Each invocation loads a row of the matrix."""
        b, row = self.builder, self.builder.local_id()
        with b.when(b.op("compare_lt", row, b.word(self.columns))):
            with b.words(b.op("add", row, b.word(1))) as column:
                b.store_shared(self._given(self.op.matrix, row, column), self.triangle, self._place(row, column))
            own = b.load_shared(self.triangle, self._place(row, row))
            b.store_shared(own, self.triangle, self._pivot(row))

    def _column(self, column: Value) -> None:
        """Computes the elements of a column of the factor below the diagonal. Each invocation computes the pivot
        itself.
        """
        b, row = self.builder, self.builder.local_id()
        below = b.op("compare_ge", row, column)
        with b.when(b.op("and", below, b.op("compare_lt", row, b.word(self.columns)))):
            start = [b.load_shared(self.triangle, self._place(x, column)) for x in (row, column)]
            loop = b.begin_loop(b.word(0), column, b.word(1), start)
            mine, other = (b.load_shared(self.triangle, self._place(x, loop.index)) for x in (row, column))
            pairs = zip(loop.carried, (mine, other), strict=True)
            rest, square = b.end_loop(loop, [b.op("subtract", x, b.op("multiply", y, other)) for x, y in pairs])
            pivot = b.op("sqrt", square)
            at = b.begin_if(b.op("compare_eq", row, column))
            b.store_shared(pivot, self.triangle, self._pivot(row))
            b.begin_else(at)
            b.store_shared(b.op("divide", rest, pivot), self.triangle, self._place(row, column))
            b.end_if(at)

    def _substitute(self, row: Value) -> None:
        b = self.builder
        local = b.local_id()
        with b.words(self.columns) as column:
            at = self._at(row, column)
            start = self.elemental.element(self.op.rows, at)
            inner = b.begin_loop(b.word(0), column, b.word(1), [start])
            known = b.load_shared(self.own, self._place(inner.index, local))
            factor = b.load_shared(self.triangle, self._place(column, inner.index))
            (rest,) = b.end_loop(inner, [b.op("subtract", inner.carried[0], b.op("multiply", known, factor))])
            made = b.op("divide", rest, b.load_shared(self.triangle, self._pivot(column)))
            b.store_shared(made, self.own, self._place(column, local))
            b.store(made, self.binding, at.linear)

    def _given(self, value: Value, row: Value, column: Value) -> Value:
        b = self.builder
        places = [b.index(x) for x in (row, column)]
        return self.elemental.element(value, Index(b, shape_of(value), [self.batch, *places]))

    def _at(self, row: Value, column: Value) -> Index:
        b = self.builder
        return Index(b, shape_of(self.op.rows), [self.batch, row, b.index(column)])

    def _place(self, row: Value, column: Value) -> Value:
        """The position in a square array."""
        b = self.builder
        return b.inside(self.own, b.place(row, BLOCK, column))

    def _pivot(self, row: Value) -> Value:
        """The position of a pivot: in the last column, which is above the diagonal in all rows but the last."""
        return self._place(row, self.builder.word(BLOCK - 1))
