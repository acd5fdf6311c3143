"""Finds where a workgroup that takes several passes over a row of memory may ask for the memory that is needed next.

The first pass over a row waits for memory, and so do the stores of the last one: each is a burst of lines, and hardware
fetches nothing beyond a page of 4 KiB. A pass in between computes on lines that are in the first cache. It asks for the
same elements of the next row, and of the results of this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k

from .code import Code

#: bytes of a line of a cache
LINE = 64
#: most bytes of a row: the first cache has to hold this row, the next one, and results
MOST = 8 << 10


class Ahead(NamedTuple):
    """Memory of elements of that many bytes, `distance` elements behind those with the index of a load."""

    memory: Value
    itemsize: int
    distance: int


def row_prefetches(block: Block) -> Mapping[Operation, Sequence[Ahead]]:
    """The loads that ask for other memory, and what they ask for."""
    first, later = dict[tuple[Value, Value], k.For](), dict[Value, k.For]()
    asked, found = dict[Value, set[Value]](), dict[Operation, Sequence[Ahead]]()
    for loop in block.walk(k.For):
        for op in loop.body.block:
            base = _row_of(op.index) if isinstance(op, k.Load) and _takes_shares(loop) else None
            if not isinstance(op, k.Load) or base is None or first.setdefault((op.binding, base), loop) is loop:
                continue
            length, itemsize, memories = _length(base), k.dtype_of(op.output).itemsize, asked.setdefault(base, set())
            if length * itemsize > MOST or op.binding in memories or later.setdefault(base, loop) is not loop:
                continue
            results = () if memories else _results(block, base)
            found[op] = (Ahead(op.binding, itemsize, length), *results)
            memories.add(op.binding)
    return found


def _takes_shares(loop: k.For) -> bool:
    """Whether the invocations of a workgroup share the iterations of a loop."""
    op = loop.lower.defining_op
    while isinstance(op, k.Scalar) and op.primitive.name == "convert":
        op = op.operands[0].defining_op
    return isinstance(op, k.LocalId)


def _results(block: Block, base: Value) -> Iterable[Ahead]:
    """The results of a row."""
    stores = [op for op in block.walk(k.Store) if _row_of(op.index) is base]
    return {op.binding: Ahead(op.binding, k.dtype_of(op.value).itemsize, 0) for op in stores}.values()


def _row_of(index: Value) -> Value | None:
    """The first place of a row, if an index is the sum of one and of a place in the row."""
    op = index.defining_op
    if not isinstance(op, k.Scalar) or op.primitive.name != "add":
        return None
    return next((value for value in op.operands if _length(value) and _follows(value)), None)


def _length(base: Value) -> int:
    """The constant length of rows, of which a value may be the first place; else 0."""
    op = base.defining_op
    if not isinstance(op, k.Scalar) or op.primitive.name != "multiply":
        return 0
    return max(k.bits_of(value) or 0 for value in op.operands)


def _follows(value: Value) -> bool:
    """Whether a value follows from the number of the workgroup."""
    op = value.defining_op
    if isinstance(op, k.WorkgroupId):
        return True
    return isinstance(op, k.Scalar) and any(map(_follows, op.operands))


def prefetch_lines(code: Code, at: str, ahead: Ahead, lanes: int) -> None:
    """Asks for the lines of some elements. `at`: the address of the element of that memory with the index of a load."""
    first = ahead.distance * ahead.itemsize
    for place in range(first, first + lanes * ahead.itemsize, LINE):
        line = code.set(f"getelementptr i8, ptr {at}, i64 {place}")
        code.prefetch(line)
