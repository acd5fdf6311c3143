"""Data dependencies: edges between the nodes of a function, and the lifetime of each written range.

The last writer of every byte is tracked at every position of the code, for the first sizes of `Expressions`. Where
branches merge, a byte has the writers of all of them. A read of the previous iteration of a loop is a back edge.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from .sequence import Node, Touched
from .values import Expressions, Quantity

#: the end of a range of unknown length
_ENDLESS: Final = 1 << 62
#: the most writers of one byte, or of one range that is read, that are distinguished
MAX_WRITERS: Final = 64
#: the most blocks of a function whose branches are followed; a larger function is analysed as if it had no branches
MAX_BLOCKS: Final = 1000
#: the most passes over the blocks of a function with loops
MAX_PASSES: Final = 4


@dataclass
class Range:
    """Bytes that a node wrote: a value in memory. `spans` are the (first, last) nodes between which it is live."""

    buffer: int
    offset: Quantity | None
    length: Quantity | None
    writer: int
    readers: set[int] = field(default_factory=set)
    carried: set[int] = field(default_factory=set)  #: readers in a later iteration of a loop
    spans: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Edge:
    writer: int
    reader: int
    carried: bool
    buffers: tuple[int, ...]


@dataclass
class Dependencies:
    ranges: list[Range]
    loops: list[tuple[int, int]]  #: (first, last) node of each loop, outer loops first

    def edges(self) -> list[Edge]:
        found: dict[tuple[int, int], tuple[bool, set[int]]] = {}
        for row in self.ranges:
            for reader in sorted(row.readers | row.carried):
                carried, buffers = found.get((row.writer, reader), (True, set()))
                buffers.add(row.buffer)
                again = reader not in row.readers and _innermost(self.loops, row.writer, reader) is not None
                found[row.writer, reader] = carried and again, buffers
        return [Edge(*pair, carried, tuple(sorted(buffers))) for pair, (carried, buffers) in sorted(found.items())]


class _Bytes:
    """The writers of each byte of one buffer: disjoint rows (start, end, numbers of ranges), ascending."""

    __slots__ = ("ends", "starts", "writers")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.writers: list[frozenset[int]] = []

    def copy(self) -> _Bytes:
        made = _Bytes()
        made.starts, made.ends, made.writers = self.starts[:], self.ends[:], self.writers[:]
        return made

    def rows(self) -> list[tuple[int, int, frozenset[int]]]:
        return list(zip(self.starts, self.ends, self.writers, strict=True))

    def read(self, start: int, end: int) -> set[int]:
        found: set[int] = set()
        for at in range(bisect_right(self.ends, start), bisect_left(self.starts, end)):
            found |= self.writers[at]
            if len(found) >= MAX_WRITERS:
                break
        return found

    def write(self, start: int, end: int, writers: frozenset[int], over: bool) -> None:
        """`over`: the earlier writers are replaced."""
        if start >= end:
            return
        first, last = bisect_right(self.ends, start), bisect_left(self.starts, end)
        old = list(zip(self.starts[first:last], self.ends[first:last], self.writers[first:last], strict=True))
        new: list[tuple[int, int, frozenset[int]]] = []
        if old and old[0][0] < start:
            new.append((old[0][0], start, old[0][2]))
        new += [(start, end, writers)] if over else _mixed(old, start, end, writers)
        if old and old[-1][1] > end:
            new.append((end, old[-1][1], old[-1][2]))
        self.starts[first:last] = [row[0] for row in new]
        self.ends[first:last] = [row[1] for row in new]
        self.writers[first:last] = [row[2] for row in new]


def _mixed(
    old: list[tuple[int, int, frozenset[int]]], start: int, end: int, writers: frozenset[int]
) -> list[tuple[int, int, frozenset[int]]]:
    """From start to end, the earlier writers and these writers."""
    found, at = [], start
    for left, right, before in old:
        left, right = max(left, start), min(right, end)
        if at < left:
            found.append((at, left, writers))
        both = before | writers
        found.append((left, right, both if len(both) <= MAX_WRITERS else before))
        at = right
    return [*found, (at, end, writers)] if at < end else found


_State = dict[int, _Bytes]


def _copied(state: _State) -> _State:
    return {buffer: rows.copy() for buffer, rows in state.items()}


def _met(states: list[_State]) -> _State:
    """The state after several branches merge."""
    if not states:
        return {}
    found = _copied(states[0])
    for state in states[1:]:
        for buffer, rows in state.items():
            into = found.setdefault(buffer, _Bytes())
            for start, end, writers in rows.rows():
                into.write(start, end, writers, False)
    return found


class _Analysis:
    def __init__(self, blocks: Sequence[Collection[int]], nodes: list[Node], expressions: Expressions) -> None:
        self.blocks = blocks
        self.expressions = expressions
        self.nodes = nodes
        self.of_block: list[list[int]] = [[] for _ in blocks]
        for number, node in enumerate(nodes):
            self.of_block[node.block].append(number)
        self.before: list[list[int]] = [[] for _ in blocks]
        for at, following in enumerate(blocks):
            for target in following:
                self.before[target].append(at)
        self.ranges: list[Range] = []
        self.written: dict[tuple[int, int, int], int] = {}  #: (node, index in `touched`, buffer) -> range
        self.after: list[_State | None] = [None] * len(blocks)

    def run(self) -> None:
        back = any(target <= at for at, following in enumerate(self.blocks) for target in following)
        count = -1
        for turn in range(MAX_PASSES if back else 1):
            for at in range(len(self.blocks)):
                states = [state for place in self.before[at] if (state := self.after[place]) is not None]
                self.after[at] = self._block(at, _met(states), turn > 0)
            found = sum(len(row.readers) + len(row.carried) for row in self.ranges)
            if found == count:
                return
            count = found

    def _block(self, at: int, state: _State, again: bool) -> _State:
        for number in self.of_block[at]:
            node = self.nodes[number]
            if node.kind == "results":
                state = _met([*self._ends(), state])
            for touched in node.touched:
                if touched.reads:
                    self._read(number, touched, state, again)
            for place, touched in enumerate(node.touched):
                if touched.writes:
                    self._write(number, place, touched, state)
        return state

    def _ends(self) -> list[_State]:
        """The states at the ends of the function."""
        states = zip(self.blocks, self.after, strict=True)
        return [state for following, state in states if state and not following]

    def _read(self, number: int, touched: Touched, state: _State, again: bool) -> None:
        start, end = self._extent(touched)
        for buffer in touched.buffers or ():
            for writer in state[buffer].read(start, end) if buffer in state else ():
                row = self.ranges[writer]
                if number not in row.readers:
                    (row.carried if again else row.readers).add(number)

    def _write(self, number: int, place: int, touched: Touched, state: _State) -> None:
        start, end = self._extent(touched)
        buffers = touched.buffers or ()
        known = end < _ENDLESS and len(buffers) == 1
        for buffer in buffers:
            key = number, place, buffer
            if key not in self.written:
                self.written[key] = len(self.ranges)
                self.ranges.append(Range(buffer, touched.offset, touched.length, number))
            rows = state.setdefault(buffer, _Bytes())
            rows.write(start, end, frozenset((self.written[key],)), known)

    def _extent(self, touched: Touched) -> tuple[int, int]:
        start, length = self.expressions.value(touched.offset), self.expressions.value(touched.length)
        if start is None or start < 0:
            return 0, _ENDLESS
        return start, _ENDLESS if length is None else start + max(length, 0)

    def loops(self) -> list[tuple[int, int, int]]:
        """(first node, last node, block with the back edge)."""
        found = []
        for at, following in enumerate(self.blocks):
            for target in following:
                inside = [number for place in range(target, at + 1) for number in self.of_block[place]]
                if target <= at and inside:
                    found.append((min(inside), max(inside), at))
        return sorted(found, key=lambda row: (row[0], -row[1]))

    def lifetimes(self, loops: list[tuple[int, int, int]]) -> None:
        alive = {at: _alive(self.after[at] or {}) for _, _, at in loops}
        for number, row in enumerate(self.ranges):
            end = max(row.readers, default=row.writer)
            for first, last, at in loops:
                outside = not first <= row.writer <= last
                if outside and number in alive[at] and any(first <= reader <= last for reader in row.readers):
                    end = max(end, last)
            spans = [(row.writer, max(end, row.writer))]
            for reader in row.carried:
                around = _innermost(loops, row.writer, reader)
                spans += [(row.writer, reader)] if around is None else [(row.writer, around[1]), (around[0], reader)]
            row.spans = _united(spans)


def _innermost(loops: Sequence[tuple[int, ...]], a: int, b: int) -> tuple[int, ...] | None:
    """The innermost loop around both nodes; `loops` are sorted with outer loops first."""
    return next((loop for loop in reversed(loops) if loop[0] <= min(a, b) and max(a, b) <= loop[1]), None)


def _alive(state: _State) -> set[int]:
    return {number for rows in state.values() for writers in rows.writers for number in writers}


def _united(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


def dependencies(blocks: Sequence[Collection[int]], nodes: list[Node], expressions: Expressions) -> Dependencies:
    """The dependencies of the nodes of one function, which are in the order of its code. `blocks`: the successors of
    each block.
    """
    if len(blocks) > MAX_BLOCKS:
        blocks = [()]
        nodes = [replace(node, block=0) for node in nodes]
    analysis = _Analysis(blocks, nodes, expressions)
    analysis.run()
    loops = analysis.loops()
    analysis.lifetimes(loops)
    return Dependencies(analysis.ranges, [(first, last) for first, last, _ in loops])
