"""Lifetimes as sets of positions: the bits of an integer. They overlap where `a & b` is not 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def spans(live: int) -> Iterator[tuple[int, int]]:
    """The runs of positions in a lifetime: first and last of each."""
    while live:
        first = (live & -live).bit_length() - 1
        run = live >> first
        length = ((run + 1) & ~run).bit_length() - 1
        yield first, first + length - 1
        live &= ~bits(first, first + length - 1)


def union(ranges: Iterable[tuple[int, int]]) -> int:
    """The lifetime of these runs."""
    live = 0
    for first, last in ranges:
        live |= bits(first, last)
    return live


def bits(first: int, last: int) -> int:
    """The lifetime from one position to another, both included."""
    return (1 << last + 1) - (1 << first)
