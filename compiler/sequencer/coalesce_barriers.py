"""coalesce-barriers: keeps a barrier only if the next command conflicts with a command since the last kept barrier.

Two commands conflict if they touch the same bytes and one of them writes. Different slots are different buffers, except
for the pairs that a recording lists in `may_alias`. Ranges with symbolic ends are disjoint only if they are so for all
values of the symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.dims import Size, bounds, is_dynamic
from orchestrion.compiler.ir.symbols import SymbolTables

from . import hl_seq, ll_seq

#: Range of memory that a command accesses: memory, first byte, end in bytes, whether it is written. The first byte is
#: WHOLE for all of a buffer.
Range = tuple[Value, Size, Size, bool]
WHOLE: Final = -1


def run(program: hl_seq.Program) -> None:
    tables = SymbolTables()
    for op in program.walk(ll_seq.Record):
        slots = op.body.block.arguments
        _coalesce(op.body.block, {slots[b]: slots[a] for a, b in op.alias_pairs}, tables)


def _coalesce(block: Block, same: dict[Value, Value], tables: SymbolTables) -> None:
    """Loops and branches order memory themselves: none needs a barrier before, inside at its ends, or after it."""
    pending: dict[Value, tuple[list[Range], list[Range]]] = {}  # buffer -> ranges read, ranges written
    for op in block.ops:
        if isinstance(op, ll_seq.Barrier):
            op.erase()
            continue
        if isinstance(op, ll_seq.Loop | ll_seq.Branch):
            for region in op.regions:
                _coalesce(region.block, same, tables)
            pending = {}
            continue
        touched = [(same.get(r[0], r[0]), *r[1:]) for r in _accessed(op, tables)]
        rivals = ((a, b) for a in touched if a[0] in pending for b in _rivals(a, pending[a[0]]))
        if any(not _apart(a, b) and not _apart(b, a) for a, b in rivals):
            block.insert_before(ll_seq.Barrier.build(loc=op.loc), op)
            pending = {}
        for item in touched:
            pending.setdefault(item[0], ([], []))[bool(item[3])].append(item)


def _accessed(op: Operation, tables: SymbolTables) -> Iterator[Range]:
    """The ranges that a command reads and writes. A binding that several share counts as a whole: the device is told
    that the dispatch may access all of it.
    """
    match op:
        case ll_seq.Copy():
            yield op.source, op.source_offset, op.source_offset + op.length, False
            yield op.target, op.target_offset, op.target_offset + op.length, True
        case ll_seq.Fill():
            yield op.target, op.offset, op.offset + op.length, True
        case ll_seq.Dispatch():
            entry = tables.lookup(op, op.entry)
            assert isinstance(entry, ll_seq.Entry)
            places = zip(op.bindings, op.offsets.sizes, entry.bindings, entry.places(), strict=True)
            for memory, start, binding, (_, word) in places:
                first = start if word is None else WHOLE
                yield memory, first, start + ll_seq.length_of(binding), "write" in ll_seq.access_of(binding)


def _rivals(item: Range, others: tuple[list[Range], list[Range]]) -> Iterator[Range]:
    """Ranges of the same buffer that may conflict with `item`: at least one of the two is written."""
    reads, writes = others
    yield from writes
    if item[3]:
        yield from reads


def _apart(a: Range, b: Range) -> bool:
    """Whether `a` ends before `b` begins. Symbolic offsets belong to arena slots, each offset to one of its own."""
    if WHOLE in (a[1], b[1]):
        return False
    if is_dynamic(a[1]) or is_dynamic(b[1]):
        return a[1] != b[1]
    return bounds(b[1] - a[2])[0] >= 0
