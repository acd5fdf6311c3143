"""Lifetimes as sets of positions, stored as the bits of an integer. Two lifetimes overlap if `a & b` is not 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def spans(live: int) -> Iterator[tuple[int, int]]:
    """Yields the first and last position of each contiguous run in a lifetime."""
    while live:
        first = (live & -live).bit_length() - 1
        run = live >> first
        length = ((run + 1) & ~run).bit_length() - 1
        yield first, first + length - 1
        live &= ~interval(first, first + length - 1)


def union(ranges: Iterable[tuple[int, int]]) -> int:
    """The lifetime that consists of these runs, each given by its first and last position."""
    live = 0
    for first, last in ranges:
        live |= interval(first, last)
    return live


def interval(first: int, last: int) -> int:
    """The lifetime from `first` to `last`, both included."""
    return (1 << last + 1) - (1 << first)
