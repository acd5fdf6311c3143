"""Finds the parts of a new file that are in an old one, byte for byte: equal segments of modules, then equal runs of
bytes.

The second step is that of rsync, on whole arrays: blocks of the old bytes are indexed by a polynomial hash modulo
2**64, the hash of every window of the new bytes is looked up, and matches are compared and extended in both directions.
Time is linear in both files (about 100 s per GiB of changed segments); memory is about 20 MiB and the index.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from orchestrion.schema.decoder import read_module
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.shipping.delta import LITERAL

Bytes = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]
Span = tuple[int, int]
#: offset in the old file or LITERAL, length
Step = tuple[int, int]

#: least size of a block; a shorter run costs about as much as the step that copies it
BLOCK = 32
#: the most blocks in the index; above it, blocks become larger
_MAX_BLOCKS = 1 << 21
#: the number of windows that are hashed at a time
_SLAB = 1 << 20
_FACTOR = 0x9E3779B97F4A7C15  # odd, so that it has an inverse
_FILTER_BITS = 22


def find_steps(old: memoryview, new: memoryview) -> list[Step]:
    """The steps that make the new bytes from the old ones and literals."""
    matched = _equal_segments(old, new)
    taken = sorted((source, length) for source, _, length in matched)
    one, data = np.frombuffer(old, np.uint8), np.frombuffer(new, np.uint8)
    index = _Index(one, _gaps(taken, len(old)))
    steps: list[Step] = []
    free = 0
    rows = sorted(matched, key=lambda row: row[1])
    for number, (source, target, length) in enumerate(rows):
        end = rows[number + 1][1] if number + 1 < len(rows) else len(data)
        steps += index.steps(data, free, target)
        free = target + length
        same = _run(one[source + length :], data[free:end])  # the padding after a segment
        steps.append((source, length + same))
        free += same
    return _joined([*steps, *index.steps(data, free, len(data))])


def _equal_segments(old: memoryview, new: memoryview) -> list[tuple[int, int, int]]:
    """(offset in the old file, offset in the new one, length) of segments with equal digests, if both are modules."""
    try:
        before, after = read_module(old), read_module(new)
    except ModuleError:
        return []
    places = {
        row.digest: span
        for row, span in zip(before.segments, before.container.spans, strict=True)
        if span[0] and span[1]
    }
    found = []
    for row, (offset, size) in zip(after.segments, after.container.spans, strict=True):
        source = places.get(row.digest)
        if offset and size >= BLOCK and source is not None and source[1] == size:
            found.append((source[0], offset, size))
    return [row for row in found if _is_equal(old, new, *row)]


def _is_equal(old: memoryview, new: memoryview, source: int, target: int, length: int) -> bool:
    """Compares the bytes, because the digests of a damaged file do not match its content."""
    one, other = np.frombuffer(old, np.uint8), np.frombuffer(new, np.uint8)
    return _run(one[source : source + length], other[target : target + length]) == length


def _gaps(taken: Sequence[Span], length: int) -> Iterator[Span]:
    """(start, end) of the gaps between ordered spans of (start, length)."""
    free = 0
    for start, size in taken:
        if free < start:
            yield free, start
        free = max(free, start + size)
    if free < length:
        yield free, length


def _joined(steps: Sequence[Step]) -> list[Step]:
    """Merges neighbouring steps that one step can express."""
    found: list[Step] = []
    for offset, length in steps:
        before = found[-1] if found else (0, 0)
        if found and (offset == before[0] == LITERAL or (LITERAL not in (offset, before[0]) and offset == sum(before))):
            found[-1] = (before[0], before[1] + length)
        elif length:
            found.append((offset, length))
    return found


class _Index:
    """The blocks of the old bytes by hash."""

    def __init__(self, old: Bytes, regions: Iterator[Span]) -> None:
        self.old = old
        spans = list(regions)
        total = sum(end - start for start, end in spans)
        self.block = BLOCK
        while total // self.block > _MAX_BLOCKS:
            self.block *= 2
        exponents = np.full(_SLAB + self.block, _FACTOR, np.uint64)
        exponents[0] = 1
        self._powers: Hashes = np.multiply.accumulate(exponents)
        exponents[1:] = pow(_FACTOR, -1, 1 << 64)
        self._inverses: Hashes = np.multiply.accumulate(exponents)
        hashes, places = self._blocks(spans)
        self._hashes, first = np.unique(hashes, return_index=True)
        self._places = places[first]
        self._filter = np.zeros(1 << _FILTER_BITS, np.bool_)
        self._filter[self._hashes >> np.uint64(64 - _FILTER_BITS)] = True

    def _blocks(self, spans: Sequence[Span]) -> tuple[Hashes, npt.NDArray[np.int64]]:
        weights = self._powers[: self.block]
        hashes: list[Hashes] = [np.empty(0, np.uint64)]
        places: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
        step = _SLAB // self.block * self.block
        for start, end in spans:
            for at in range(start, end - self.block + 1, step):
                count = (min(at + step, end) - at) // self.block
                rows = self.old[at : at + count * self.block].reshape(count, self.block)
                hashes.append((rows * weights).sum(axis=1, dtype=np.uint64))
                places.append(at + self.block * np.arange(count, dtype=np.int64))
        return np.concatenate(hashes), np.concatenate(places)

    def steps(self, new: Bytes, start: int, end: int) -> Iterator[Step]:
        """The steps for new bytes from `start` to `end`."""
        free = at = start
        while len(self._hashes) and at <= end - self.block:
            count = min(_SLAB, end - self.block + 1 - at)
            for place, source in self._candidates(new, at, count):
                if place < free:
                    continue
                before, after = self._extent(new, place, source, free, end)
                if before + after < self.block:
                    continue  # the hash is equal, the bytes are not
                if place - before > free:
                    yield LITERAL, place - before - free
                yield source - before, before + after
                free = place + after
            at = max(at + count, free)
        if end > free:
            yield LITERAL, end - free

    def _candidates(self, new: Bytes, at: int, count: int) -> Iterator[Span]:
        """(position in the new bytes, position in the old ones) of windows with equal hashes, in order."""
        hashes = self._windows(new[at : at + count + self.block - 1])
        likely = np.flatnonzero(self._filter[hashes >> np.uint64(64 - _FILTER_BITS)])
        places = np.searchsorted(self._hashes, hashes[likely])
        places[places == len(self._hashes)] = 0
        sure = self._hashes[places] == hashes[likely]
        yield from zip((at + likely[sure]).tolist(), self._places[places[sure]].tolist(), strict=True)

    def _windows(self, data: Bytes) -> Hashes:
        """The hash of each window of a block's size."""
        sums = np.zeros(len(data) + 1, np.uint64)
        np.cumsum(data * self._powers[: len(data)], out=sums[1:])
        count = len(data) - self.block + 1
        found: Hashes = (sums[self.block :] - sums[:count]) * self._inverses[:count]
        return found

    def _extent(self, new: Bytes, place: int, source: int, free: int, end: int) -> Span:
        """The numbers of equal bytes before a position and from it on, between `free` and `end`."""
        after = _run(self.old[source:], new[place:end])
        before = _run(self.old[:source][::-1], new[free:place][::-1]) if after else 0
        return before, after


def _run(one: Bytes, other: Bytes) -> int:
    """The length of the common prefix of two arrays."""
    length = min(len(one), len(other))
    at, size = 0, 64
    while at < length:
        differ = one[at : at + size][: length - at] != other[at : at + size][: length - at]
        first = int(differ.argmax())
        if differ[first]:
            return at + first
        at, size = min(at + size, length), min(4 * size, _SLAB)
    return length
