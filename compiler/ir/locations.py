"""Source locations: where in the user's program an operation comes from. Immutable, compared by value.

Text is MLIR's. `source_text` is the short form for messages: the innermost file position and the names around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeGuard

from .attributes import quote

#: places that one location is fused of at the most
MOST_FUSED: Final = 256


class Location:
    """Where something comes from."""

    __slots__ = ()

    def children(self) -> tuple[Location, ...]:
        return ()

    def text(self, of: dict[Location, str] | None = None) -> str:
        """What stands inside `loc(...)`; `of` gives names (aliases) to print for children."""
        raise NotImplementedError(type(self).__name__)

    def __str__(self) -> str:
        return f"loc({self.text()})"


def _name(location: Location, of: dict[Location, str] | None) -> str:
    return of[location] if of is not None and location in of else location.text(of)


@dataclass(frozen=True, slots=True)
class UnknownLoc(Location):
    def text(self, of: dict[Location, str] | None = None) -> str:
        return "unknown"


UNKNOWN = UnknownLoc()


@dataclass(frozen=True, slots=True)
class FileLoc(Location):
    """`"file":line:col`, or a range `"file":1:2 to 3:4`; zero ends mean no range. All from 1."""

    file: str
    line: int
    column: int
    end_line: int = 0
    end_column: int = 0

    def text(self, of: dict[Location, str] | None = None) -> str:
        start = f"{quote(self.file)}:{self.line}:{self.column}"
        if not self.end_column:
            return start
        line = "" if self.end_line == self.line else str(self.end_line)
        return f"{start} to {line}:{self.end_column}"


@dataclass(frozen=True, slots=True)
class NameLoc(Location):
    """`"name"(child)`."""

    name: str
    child: Location = UNKNOWN

    def children(self) -> tuple[Location, ...]:
        return (self.child,)

    def text(self, of: dict[Location, str] | None = None) -> str:
        return quote(self.name) if self.child == UNKNOWN else f"{quote(self.name)}({_name(self.child, of)})"


@dataclass(frozen=True, slots=True)
class CallSiteLoc(Location):
    """`callsite(callee at caller)`."""

    callee: Location
    caller: Location

    def children(self) -> tuple[Location, ...]:
        return (self.callee, self.caller)

    def text(self, of: dict[Location, str] | None = None) -> str:
        return f"callsite({_name(self.callee, of)} at {_name(self.caller, of)})"


@dataclass(frozen=True, slots=True)
class FusedLoc(Location):
    """`fused<metadata>[a, b]`; metadata is text, usually empty."""

    locations: tuple[Location, ...]
    metadata: str = ""

    def children(self) -> tuple[Location, ...]:
        return self.locations

    def text(self, of: dict[Location, str] | None = None) -> str:
        metadata = f"<{self.metadata}>" if self.metadata else ""
        return f"fused{metadata}[{', '.join(_name(child, of) for child in self.locations)}]"


def fused(*locations: Location) -> Location:
    """One location for what was made from several: duplicates and unknown ones go, nested fusions are flattened.

    It keeps the first MOST_FUSED places: an op that stands for thousands of equal ones is made in thousands of steps.
    """
    if locations and _is_full(locations[0]):
        return locations[0]
    flat: dict[Location, None] = {}
    for location in locations:
        for item in location.children() if _is_plain(location) else (location,):
            flat[item] = None
    flat.pop(UNKNOWN, None)
    if not flat:
        return UNKNOWN
    return next(iter(flat)) if len(flat) == 1 else FusedLoc(tuple(flat)[:MOST_FUSED])


def _is_plain(location: Location) -> TypeGuard[FusedLoc]:
    return isinstance(location, FusedLoc) and not location.metadata


def _is_full(location: Location) -> bool:
    return _is_plain(location) and len(location.locations) >= MOST_FUSED


def walk(location: Location) -> Iterator[Location]:
    """The location and everything in it, outermost first, without recursion."""
    stack = [location]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(reversed(item.children()))


def source_text(location: Location) -> str:
    """`file:line:column`, then the first name in quotes: for messages. Empty when nothing is known."""
    items = list(walk(location))
    place = next((f"{x.file}:{x.line}:{x.column}" for x in items if isinstance(x, FileLoc)), "")
    name = next((quote(x.name) for x in items if isinstance(x, NameLoc)), "")
    return f"{place} ({name})" if place and name else place or name
