"""Source locations: the place in the user's program that an operation comes from. Immutable, compared by value.

The text form is MLIR's. `source_text` is the short form for messages: the innermost file position and its first name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from .attributes import quote

#: Maximum number of places in one fused location.
MAX_FUSED: Final = 256


class Location:
    """The source of an operation."""

    __slots__ = ()
    #: Whether it states anything.
    known = True

    def at(self, other: Location) -> Location:
        """This location, or `other` if this one is unknown."""
        return self

    def children(self) -> tuple[Location, ...]:
        """The locations inside this one."""
        return ()

    def text(self, of: dict[Location, str] | None = None) -> str:
        """The text inside `loc(...)`; `of` has the aliases that stand for child locations."""
        raise NotImplementedError(type(self).__name__)

    def __str__(self) -> str:
        return f"loc({self.text()})"


def _name(location: Location, of: dict[Location, str] | None) -> str:
    return of[location] if of is not None and location in of else location.text(of)


@dataclass(frozen=True, slots=True)
class UnknownLoc(Location):
    """No location is known."""

    known = False

    def at(self, other: Location) -> Location:
        return other

    def text(self, of: dict[Location, str] | None = None) -> str:
        return "unknown"


UNKNOWN = UnknownLoc()


@dataclass(frozen=True, slots=True)
class FileLoc(Location):
    """`"file":line:col`, or a range `"file":1:2 to 3:4`; end 0 means no range. Lines and columns count from 1."""

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


class Origin:
    """The source ops that something was made from, as numbers; `parts` are the origins that were joined.

    `replaced` is called with this origin and another one, or None, if a value of the other replaces a value of this
    one.
    """

    __slots__ = ("_numbers", "parts", "replaced")

    def __init__(
        self, numbers: frozenset[int], replaced: Callable[[Origin, Origin | None], None], parts: tuple[Origin, ...] = ()
    ) -> None:
        self._numbers: frozenset[int] | None = None if parts else numbers
        self.replaced = replaced
        self.parts = parts

    @classmethod
    def joined(cls, origins: Sequence[Origin]) -> Origin:
        """The origin of something made from all of these; the first one is the main op's."""
        return origins[0] if len(origins) == 1 else cls(frozenset(), origins[0].replaced, tuple(origins))

    @property
    def numbers(self) -> frozenset[int]:
        """All numbers, collected at the first access: joining two origins must be cheap."""
        if self._numbers is None:
            self._numbers = frozenset(numbers_of([self]))
        return self._numbers


def numbers_of(origins: Iterable[Origin]) -> set[int]:
    """The numbers of all origins. Shared parts are visited once."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = list(origins)
    while stack:
        origin = stack.pop()
        if id(origin) not in seen:
            seen.add(id(origin))
            stack += origin.parts
            found |= frozenset() if origin.parts else origin.numbers
    return found


class Tracked(Location):
    """A location with an origin, for a placement report. It prints and fuses like its `place`."""

    __slots__ = ("origin", "place")

    def __init__(self, place: Location, origin: Origin) -> None:
        self.place = place
        self.origin = origin

    @property
    def known(self) -> bool:  # type: ignore[override]
        return self.place.known

    def at(self, other: Location) -> Location:
        return Tracked(self.place.at(place_of(other)), self.origin)

    def children(self) -> tuple[Location, ...]:
        return (self.place,)

    def text(self, of: dict[Location, str] | None = None) -> str:
        return self.place.text(of)


def place_of(location: Location) -> Location:
    """The location without its origin."""
    return location.place if isinstance(location, Tracked) else location


def origin_of(location: Location) -> Origin | None:
    """The origin of a tracked location; None for any other."""
    return location.origin if isinstance(location, Tracked) else None


def call_site(callee: Location, caller: Location) -> Location:
    """The location of an op that was inlined from `callee` into a call at `caller`; the callee's origin is kept."""
    if isinstance(callee, Tracked):
        return Tracked(call_site(callee.place, place_of(caller)), callee.origin)
    if not caller.known or not callee.known:
        return callee.at(caller)
    return CallSiteLoc(callee, place_of(caller))


def fused(*locations: Location) -> Location:
    """One location for something made from several: duplicates and unknown ones are dropped, nested fusions are
    flattened.

    Only the first MAX_FUSED places are kept: an op that replaces thousands of equal ops is fused thousands of times.
    All origins are kept.
    """
    if origins := [location.origin for location in locations if isinstance(location, Tracked)]:
        return Tracked(fused(*map(place_of, locations)), Origin.joined(origins))
    if locations and _is_plain(locations[0]) and len(locations[0].locations) >= MAX_FUSED:
        return locations[0]
    flat: dict[Location, None] = {}
    for location in locations:
        for item in location.children() if _is_plain(location) else (location,):
            flat[item] = None
    flat.pop(UNKNOWN, None)
    if not flat:
        return UNKNOWN
    return next(iter(flat)) if len(flat) == 1 else FusedLoc(tuple(flat)[:MAX_FUSED])


def _is_plain(location: Location) -> TypeGuard[FusedLoc]:
    return isinstance(location, FusedLoc) and not location.metadata


def walk(location: Location) -> Iterator[Location]:
    """The location and its children, outermost first, without recursion."""
    stack = [location]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(reversed(item.children()))


def source_text(location: Location) -> str:
    """`file:line:column`, then the first name in quotes, for messages. Empty if nothing is known."""
    items = list(walk(location))
    place = next((f"{x.file}:{x.line}:{x.column}" for x in items if isinstance(x, FileLoc)), "")
    name = next((quote(x.name) for x in items if isinstance(x, NameLoc)), "")
    return f"{place} ({name})" if place and name else place or name
