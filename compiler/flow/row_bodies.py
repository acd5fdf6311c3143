"""Row bodies: ops that reduce the rows of tensors and compute further values of each row from that row alone.

A body has `rows` rows if each of its reductions covers the last axes of its operand and gives one result per row, and
if each op that depends on a reduction stays in its row: element i of a value of `rows * k` elements belongs to row i //
k. A body may have several reductions (softmax: a maximum and a sum; a norm: a mean and a variance) and results of
different sizes. A workgroup computes them one after the other for its row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Size, is_less
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim

from .fusion_reads import HEROES, elements
from .structure import keeps_order, stays_in_row


def rows_of(ops: Sequence[Operation], results: Iterable[Value], within: Collection[Value] = ()) -> Size | None:
    """Number of rows that ops reduce, in their order; None if they are no row body. `within`: further values of which a
    row may read only its own elements.
    """
    heroes = [op for op in ops if isinstance(op, Reduce)]
    if not heroes or any(isinstance(op, HEROES) and not isinstance(op, Reduce) for op in ops):
        return None
    rows = elements(heroes[0].results[0])
    if not is_less(0, rows) or not all(_reduces_rows(op, rows) for op in heroes):
        return None
    dependent = set(within)
    if any(elements(value) % rows != 0 for value in dependent):
        return None
    for op in ops:
        if isinstance(op, Reduce) or any(value in dependent for value in op.operands):
            if not _stays(op, dependent, rows):
                return None
            dependent.update(op.results)
    return None if any(elements(value) % rows != 0 or elements(value) == 0 for value in results) else rows


def taken_rows(ops: Sequence[Operation], results: Sequence[Value]) -> Size | None:
    """Number of rows of a body that is scheduled by rows: it has several reductions, or results of another size than
    theirs. None for any other body.
    """
    heroes = [op for op in ops if isinstance(op, Reduce)]
    sizes = {elements(value) for value in (*results, *(op.results[0] for op in heroes))}
    return rows_of(ops, results) if len(heroes) > 1 or (heroes and len(sizes) > 1) else None


def _reduces_rows(op: Reduce, rows: Size) -> bool:
    return elements(op.results[0]) == rows and elements(op.inputs[0]) != 0 and stays_in_row(op, 0, rows)


def _stays(op: Operation, dependent: Collection[Value], rows: Size) -> bool:
    """Whether an op reads, of the dependent values, only elements of its own row."""
    given = [index for index, value in enumerate(op.operands) if value in dependent]
    if isinstance(op, Reduce):
        return all(index < len(op.inputs) for index in given)
    if not (isinstance(op, Elementwise | BroadcastInDim) or keeps_order(op)):
        return False
    return all(stays_in_row(op, index, rows) for index in given)
