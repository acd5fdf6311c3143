"""Rows: ops that reduce the rows of tensors and compute on with what came out, a row by itself.

A body has `rows` rows when each of its reductions takes the last axes of its operand and gives one result a row, and
whatever depends on one stays in its row: element i of a value of `rows * k` elements belongs to row i // k. Such a body
may hold several reductions (softmax: a maximum, a sum; a norm: a mean, a variance), and results of different sizes: a
workgroup that takes a row computes one after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import is_less
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim

from .access import HEROES, elements, keeps_order


def rows_of(ops: Sequence[Operation], results: Iterable[Value], within: Collection[Value] = ()) -> int | None:
    """How many rows ops, in their order, have: None where they reduce no rows. `within`: more values of which a row
    may read its own elements only.
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


def taken_rows(ops: Sequence[Operation], results: Sequence[Value]) -> int | None:
    """The rows of a body that is computed row by row: with several reductions, or results that are not of their size.
    None for any other.
    """
    heroes = [op for op in ops if isinstance(op, Reduce)]
    sizes = {elements(value) for value in (*results, *(op.results[0] for op in heroes))}
    return rows_of(ops, results) if len(heroes) > 1 or (heroes and len(sizes) > 1) else None


def _reduces_rows(op: Reduce, rows: int) -> bool:
    rank = tensor_of(op.inputs[0]).rank
    last = sorted(op.dimensions.ints) == list(range(rank - len(op.dimensions), rank))
    return last and elements(op.results[0]) == rows and elements(op.inputs[0]) != 0


def _stays(op: Operation, dependent: Collection[Value], rows: int) -> bool:
    """Whether an op reads of each row only what belongs to it."""
    given = [value for value in op.operands if value in dependent]
    if isinstance(op, Reduce):
        return not any(value in dependent for value in op.init_values)
    if isinstance(op, Elementwise):
        return all(elements(value) == elements(op.results[0]) for value in given)
    if isinstance(op, BroadcastInDim) and not keeps_order(op):
        return _repeats_in_rows(op, rows)
    return keeps_order(op)


def _repeats_in_rows(op: BroadcastInDim, rows: int) -> bool:
    """Whether the axes that count the rows, which come first, are the same ones before and after."""
    shape, source = tensor_of(op.out).shape, tensor_of(op.operand_).shape
    dims = op.broadcast_dimensions.ints
    kept = [(dim, size) for dim, size in zip(dims, source, strict=True) if size != 1]
    before = [(dim, size) for dim, size in enumerate(shape) if size != 1]
    first = prefix(source, rows)
    if first is None or prefix(shape, rows) is None:
        return False
    count = sum(size != 1 for size in source[:first])
    end = before[count - 1][0] if count else -1
    return kept[:count] == before[:count] and all(dim > end for dim, _ in kept[count:])


def prefix(shape: Sequence[int], rows: int) -> int | None:
    """How many axes, from the first, have so many elements; None where no number of them has."""
    size = 1
    for axis, length in enumerate(shape):
        if size == rows:
            return axis
        size *= length
    return len(shape) if size == rows else None
