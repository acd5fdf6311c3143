"""Where the values of a program are in memory, and which bindings of an entry cannot overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from orchestrion.compiler.ir.core import Block
from orchestrion.compiler.ir.dims import Size, is_dynamic
from orchestrion.compiler.sequencer import ll_seq

from .weights import ALIGNMENT

MEMORY: Final = ("memory",)
WEIGHTS: Final = ("weights",)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a buffer. `root`: an expression of type `unsigned char *`; `base`: what it is a part of, such as
    `MEMORY`, a slot of a recording, or an argument; `start`: its first byte in there; `text_of_start`: the expression
    for it if that depends on sizes.
    """

    root: str
    base: tuple[object, ...]
    start: int = 0
    text_of_start: str = ""

    @property
    def text(self) -> str:
        """The expression for its address."""
        parts = [self.root, *filter(None, [self.text_of_start, self.start and str(self.start)])]
        return " + ".join(map(str, parts))

    @property
    def known_start(self) -> int | None:
        """The first byte, None if that depends on sizes."""
        return None if self.text_of_start else self.start

    def moved(self, offset: Size, text: str) -> Place:
        """The place an offset further on; `text`: the expression for the offset."""
        if not is_dynamic(offset):
            return replace(self, start=self.start + offset)
        joined = f"{self.text_of_start} + {text}" if self.text_of_start else text
        return replace(self, text_of_start=joined)


@dataclass(slots=True)
class Allocations:
    """The memory of a context: what it keeps, then what is used inside one call or one initializer."""

    alignment: int = ALIGNMENT
    offsets: dict[ll_seq.Allocate, int] = field(default_factory=dict)
    size: int = 0

    def plan(self, blocks: Iterable[Block]) -> None:
        """Gives each allocation of the initializers an offset."""
        made = [op for block in blocks for op in block if isinstance(op, ll_seq.Allocate)]
        kept = [op for op in made if op.lifetime.value not in ("setup", "transient")]
        self._place(kept, 0)
        start = self.size
        for lifetime in ("setup", "transient"):
            self._place([op for op in made if op.lifetime.value == lifetime], start)

    def _place(self, ops: Sequence[ll_seq.Allocate], start: int) -> None:
        for op in ops:
            self.offsets[op] = start
            start += -(-int(op.size) // self.alignment) * self.alignment
        self.size = max(self.size, start)


@dataclass(frozen=True, slots=True)
class Range:
    """The bytes of a binding in a dispatch; `length` None if it depends on sizes."""

    place: Place
    length: int | None
    written: bool

    def overlaps(self, other: Range) -> bool:
        """Whether two ranges of one base may have bytes in common."""
        x, y = self.place.known_start, other.place.known_start
        if x is None or y is None or self.length is None or other.length is None:
            return True
        return x < y + other.length and y < x + self.length


@dataclass(slots=True)
class Recorded:
    """What is known of a recording. `aliases`: pairs of slots that a call may fill with one buffer; `calls`: the
    buffers in its slots, per place in the program that executes it; `dispatches`: the ranges of each dispatch, by the
    name of its kernel.
    """

    aliases: frozenset[frozenset[int]]
    calls: list[list[Place]] = field(default_factory=list)
    dispatches: list[tuple[str, list[Range]]] = field(default_factory=list)

    def overlap(self, x: Range, y: Range) -> bool:
        """Whether two ranges may overlap in a call."""
        one, other = x.place.base, y.place.base
        if one == other:
            return x.overlaps(y)
        if one[0] == other[0] == "slot" and frozenset((one[1], other[1])) in self.aliases:
            return True
        return any(self._overlap(_filled(x, call), _filled(y, call)) for call in self.calls)

    @staticmethod
    def _overlap(x: Range, y: Range) -> bool:
        if "any" in (x.place.base[0], y.place.base[0]):
            return True
        return x.place.base == y.place.base and x.overlaps(y)


def _filled(range: Range, call: Sequence[Place]) -> Range:
    """The range in the buffer that fills its slot."""
    base = range.place.base
    if base[0] != "slot":
        return range
    assert isinstance(base[1], int)
    buffer, place = call[base[1]], range.place
    joined = buffer.text_of_start or place.text_of_start
    return replace(range, place=replace(buffer, start=buffer.start + place.start, text_of_start=joined))


def bindings_apart(recordings: Iterable[Recorded]) -> dict[str, set[int]]:
    """Kernel -> the bindings that overlap no other one of which one is written, in all dispatches."""
    found: dict[str, set[int]] = {}
    for recording in recordings:
        for kernel, ranges in recording.dispatches:
            apart = found.setdefault(kernel, set(range(len(ranges))))
            for number, x in enumerate(ranges):
                if any((x.written or y.written) and recording.overlap(x, y) for y in ranges if y is not x):
                    apart.discard(number)
    return found
