"""Loads whose lanes read different rows: as many elements of each row as there are lanes are loaded at once.

A loop that reduces rows, a row per lane, has such loads. An element per lane and iteration would be a gather, which
costs as much as a load per lane. Instead the loop runs as many iterations at once as read a square of elements, whose
rows are loaded as vectors and transposed in registers. Each lane still gets its elements in their order, so results do
not change. Loads without a loop, of neighbours in the rows of all lanes, are squares of the same kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.code.affine import difference, sum_of
from orchestrion.schema.dtypes import BOOL, DType

from .code import Code
from .forms import Forms
from .neighbours import MOST_APART
from .scalars import memory_type

#: most ops of a body that is repeated, and squares in registers at once
MOST_OPS, MOST_SQUARES = 40, 2
#: bytes of an element
ITEM = 4

#: ops without effects: loads between them may change places
_PURE = k.Constant | k.Scalar | k.Call | k.Load | k.LoadShared | k.MultiplyAdd


@dataclass(frozen=True)
class Place:
    """Where an iteration finds a loaded value: in column `first + step * iteration` of a square."""

    square: int
    first: int
    step: int


@dataclass(frozen=True)
class Squares:
    """How a loop reads squares. `turns`: iterations of a square; `whole`: iterations of all squares, of `count`."""

    turns: int
    count: int
    places: dict[k.Load, Place]

    @property
    def whole(self) -> int:
        return self.count // self.turns * self.turns


def squares_of(op: k.For, forms: Forms) -> Squares | None:
    """The squares of a loop that all lanes run together; None if it has none, or does more than to load and compute."""
    body, lanes = op.body.block, forms.width
    ops = list(body)
    if lanes < 4 or k.bits_of(op.step) != 1 or len(ops) > MOST_OPS:
        return None
    if not all(isinstance(inner, k.Constant | k.Scalar | k.Call | k.Load | k.LoadShared | k.Yield) for inner in ops):
        return None
    count = difference(sum_of(op.upper), sum_of(op.lower))
    groups = _groups([inner for inner in ops if isinstance(inner, k.Load)], body.arguments[0], forms)
    if count is None or not 1 <= len(groups) <= MOST_SQUARES:
        return None
    places: dict[k.Load, Place] = {}
    turns = set()
    for number, (factor, loads) in enumerate(groups):
        first = min(offset for offset, _ in loads)
        if {offset - first for offset, _ in loads} != set(range(factor)) or lanes % factor:
            return None
        turns.add(lanes // factor)
        places |= {load: Place(number, offset - first, factor) for offset, load in loads}
    if len(turns) > 1 or count < max(turns):
        return None
    return Squares(turns.pop(), count, places)


def straight_squares(ops: Iterable[Operation], forms: Forms) -> dict[k.Load, list[k.Load]]:
    """The squares of ops that all lanes run: first load of a square -> its loads, in the order of the row. Other loads
    of a square have no entry of their own: they have an empty list.
    """
    found: dict[k.Load, list[k.Load]] = {}
    pending: list[k.Load] = []
    order: dict[k.Load, int] = {}
    for op in (*ops, None):
        if isinstance(op, _PURE):
            if isinstance(op, k.Load) and forms[op.operands[1]].stride not in (None, 0, 1):
                order[op] = len(order)
                pending.append(op)
            continue
        if len(pending) >= forms.width >= 4:
            for square in _rows_of(pending, forms):
                found |= dict.fromkeys(square, [])
                found[min(square, key=order.__getitem__)] = square
        pending = []
    return found


def _rows_of(loads: list[k.Load], forms: Forms) -> Iterable[list[k.Load]]:
    """Loads of as many neighbours as there are lanes."""
    for _, group in _groups(loads, None, forms):
        by_place = sorted(dict(group).items())
        for at in range(0, len(by_place) - forms.width + 1, forms.width):
            part = by_place[at : at + forms.width]
            if part[-1][0] - part[0][0] == forms.width - 1:
                yield [load for _, load in part]


def _groups(loads: list[k.Load], index: Value | None, forms: Forms) -> list[tuple[int, list[tuple[int, k.Load]]]]:
    """Loads with a row per lane, together if they read the same rows: the factor of the loop's index, or 1 without a
    loop, and loads with their constants.
    """
    found: dict[object, list[tuple[int, k.Load]]] = defaultdict(list)
    for load in loads:
        memory, at = load.operands
        dtype, stride = k.dtype_of(load.output), forms[at].stride
        if stride in (None, 0, 1) or dtype.kind == BOOL or dtype.itemsize != ITEM:
            continue
        terms, constant = sum_of(at)
        factor = 1 if index is None else terms.pop(index, 0)
        if not 1 <= factor <= forms.width:
            continue
        found[factor, memory, stride, dtype.name, frozenset(terms.items())].append((constant, load))
    return [(key[0], group) for key, group in found.items()]  # type: ignore[index]


def interleaved_stores(ops: Sequence[Operation], forms: Forms) -> dict[k.Store, list[k.Store]]:
    """The stores of neighbours by each lane, as many as the lanes' places are apart: last store -> its stores in the
    order of memory. Others of them have an empty list. Only computations stand between them.
    """
    found: dict[k.Store, list[k.Store]] = {}
    pending: list[k.Store] = []
    expected: object = None
    for op in ops:
        if not isinstance(op, k.Store):
            pending = pending if isinstance(op, k.Constant | k.Scalar) else []
            continue
        value, memory, index = op.operands
        apart, (terms, constant), dtype = forms[index].stride, sum_of(index), k.dtype_of(value)
        key = memory, apart, dtype.name, frozenset(terms.items())
        pending = [*(pending if expected == (key, constant) else []), op]
        expected = key, constant + 1
        if apart is not None and 1 < apart <= MOST_APART and len(pending) == apart and dtype.kind != BOOL:
            found |= {**dict.fromkeys(pending, []), op: pending}
            pending = []
    return found


def store_interleaved(code: Code, first: str, columns: Sequence[str], dtype: DType, lanes: int) -> None:
    """Stores vectors whose lanes alternate in memory. `first`: the address of lane 0 of the first vector."""
    type, wide, count = memory_type(dtype), memory_type(dtype, lanes), len(columns)
    for number in range(count):
        places = [divmod(number * lanes + lane, count) for lane in range(lanes)]
        interleaved = columns[0]
        for column in range(1, count):
            kept = [row if column == 1 and not own else lane for lane, (row, own) in enumerate(places)]
            order = [lanes + row if own == column else at for (row, own), at in zip(places, kept, strict=True)]
            interleaved = code.shuffle(wide, interleaved, order, columns[column])
        at = code.set(f"getelementptr inbounds {type}, ptr {first}, i64 {number * lanes}")
        code.do(f"store {wide} {interleaved}, ptr {at}, align {dtype.itemsize}")


def load_square(code: Code, first: str, stride: int, dtype: DType, lanes: int) -> list[str]:
    """The columns of a square whose rows are `stride` elements apart. `first`: the address of its first element."""
    type, wide = memory_type(dtype), memory_type(dtype, lanes)
    rows = []
    for lane in range(lanes):
        at = code.set(f"getelementptr inbounds {type}, ptr {first}, i64 {lane * stride}")
        rows.append(code.set(f"load {wide}, ptr {at}, align {dtype.itemsize}"))
    return exchanged(code, rows, wide)


def exchanged(code: Code, rows: Sequence[str], type: str) -> list[str]:
    """The columns of a square matrix."""
    names = list(rows)
    for first, second, *masks in exchanges(len(rows)):
        x, y = names[first], names[second]
        names[first], names[second] = (code.shuffle(type, x, mask, y) for mask in masks)
    return names


def exchanges(lanes: int) -> Iterator[tuple[int, int, list[int], list[int]]]:
    """The steps that transpose a square: the numbers of two vectors, and which lanes of both, those of the second
    behind those of the first, each becomes. They exchange the halves of blocks of lanes in which each has the other's.
    """
    distance = 1
    while distance < lanes:
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        yield from ((at, at + distance, low, high) for at in range(lanes) if not at & distance)
        distance *= 2
