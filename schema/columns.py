"""The checks of columns, derived once from the attributes in `module.fbs`.

A check processes all values of a column at once (`max` of a tuple costs less than a comparison per row in Python), and
searches for the row to name only if it fails. Owned ranges do not overlap, so following them takes linear time.
"""

from collections.abc import Iterable
from functools import cache
from itertools import chain
from operator import le
from typing import NamedTuple, NoReturn

from .errors import ModuleError
from .layout import Column, Vector, layout
from .rows import NONE, SegmentKind
from .versions import MAJOR, MINOR

Values = tuple[int, ...]


class Tables:
    """A root being decoded: per slot the number of elements, their offset, and their columns (none if empty)."""

    __slots__ = ("columns", "counts", "offsets")

    def __init__(self, slots: int) -> None:
        self.counts = [0] * slots
        self.offsets = [0] * slots
        self.columns: list[list[Values]] = [[]] * slots


class Source(NamedTuple):
    """A column to check. A range takes two values from `position` on."""

    slot: int
    position: int
    vector: Vector
    column: Column

    def fail(self, tables: Tables, row: int, message: str) -> NoReturn:
        name = f"{self.vector.name}[{row}]" + (f".{self.column.name}" if self.column.name else "")
        raise ModuleError(f"{name}: {message}", tables.offsets[self.slot] + row * self.vector.format.size)


class Local(NamedTuple):
    """A column of ordinals within the range `target` of the owning row. The owner refers to this row by its range
    `own`.
    """

    source: Source
    owner: int
    own: int
    target: int


class Checks(NamedTuple):
    """The columns of each kind of check; targets are vectors."""

    allowed: tuple[tuple[frozenset[int], Source], ...]
    ordinals: tuple[tuple[Vector, tuple[Source, ...]], ...]
    ranges: tuple[tuple[Vector, Source], ...]
    owned: tuple[tuple[Vector, tuple[tuple[Source, ...], ...]], ...]
    local: tuple[Local, ...]
    kinds: tuple[tuple[int, int, tuple[SegmentKind, ...], Source], ...]


@cache
def checks() -> Checks:
    plan = layout()
    sources = [Source(v.slot, c.position, v, c) for v in plan.vectors for c in v.columns]

    def having(attribute: str) -> list[tuple[Vector, Source]]:
        """The columns with an attribute, and the vector that it names."""
        found = [(s.column.attributes[attribute], s) for s in sources if attribute in s.column.attributes]
        return [(plan.vector(name or "strings"), source) for name, source in found]

    ordinals: dict[str, list[Source]] = {}
    for target, source in having("string") + having("index"):
        ordinals.setdefault(target.name, []).append(source)
    owned: dict[str, dict[int, list[Source]]] = {}
    for target, source in having("owns"):
        owned.setdefault(target.name, {}).setdefault(source.slot, []).append(source)
    allowed = ((plan.allowed(source.column), source) for source in sources)
    return Checks(
        allowed=tuple((values, source) for values, source in allowed if values is not None),
        ordinals=tuple((plan.vector(name), tuple(found)) for name, found in ordinals.items()),
        ranges=tuple(having("range")),
        owned=tuple((plan.vector(name), tuple(map(tuple, found.values()))) for name, found in owned.items()),
        local=tuple(_local(source) for source in sources if "local" in source.column.attributes),
        kinds=tuple(_kind(target, source) for target, source in having("index") if "kind" in source.column.attributes),
    )


def _local(source: Source) -> Local:
    owner, own = layout().owner(source.vector.name)
    target = next(c for c in owner.columns if c.name == source.column.attributes["local"])
    return Local(source, owner.slot, own.position, target.position)


def _kind(target: Vector, source: Source) -> tuple[int, int, tuple[SegmentKind, ...], Source]:
    position = next(c.position for c in target.columns if c.type == SegmentKind.__name__)
    return target.slot, position, kinds_of(source.column), source


def kinds_of(column: Column) -> tuple[SegmentKind, ...]:
    """The kinds of segments that a column may refer to."""
    return tuple(SegmentKind[name] for name in column.attributes["kind"].split("|"))


def verify(tables: Tables) -> None:
    """Raises ModuleError for the first value that violates the schema."""
    plan = checks()
    _verify_ordinals(tables, plan)
    _verify_allowed(tables, plan)
    _verify_ranges(tables, plan)
    _verify_owned(tables, plan)
    _verify_local(tables, plan)
    _verify_kinds(tables, plan)


def _verify_ordinals(tables: Tables, plan: Checks) -> None:
    columns = tables.columns
    for target, sources in plan.ordinals:
        count = tables.counts[target.slot]
        for source in sources:
            found = columns[source[0]]
            if found and max(found[source[1]]) >= count:
                _out_of_range(tables, source, target, count)


def _out_of_range(tables: Tables, source: Source, target: Vector, count: int) -> None:
    optional = "optional" in source.column.attributes
    for row, value in enumerate(tables.columns[source.slot][source.position]):
        if value >= count and not (optional and value == NONE):
            source.fail(tables, row, f"{value} is out of range ({count} {target.name})")


def _verify_allowed(tables: Tables, plan: Checks) -> None:
    columns = tables.columns
    for values, source in plan.allowed:
        found = columns[source[0]]
        if found and not values.issuperset(found[source[1]]):
            row, value = next((row, v) for row, v in enumerate(found[source[1]]) if v not in values)
            what = "element type" if "dtype" in source.column.attributes else source.column.type
            source.fail(tables, row, f"no {what} of format {MAJOR}.{MINOR} has code {value}; a newer one may")


def _verify_ranges(tables: Tables, plan: Checks) -> None:
    for target, source in plan.ranges:
        found = tables.columns[source.slot]
        if not found:
            continue
        starts, ends, count = found[source.position], found[source.position + 1], tables.counts[target.slot]
        if max(ends) <= count and all(map(le, starts, ends)):
            continue
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if start > end or end > count:
                source.fail(tables, row, f"{start} to {end} is out of range ({count} bytes of {target.name})")


def _verify_owned(tables: Tables, plan: Checks) -> None:
    """The ranges that own rows of a vector are adjacent, in the owners' order, and cover all of its rows."""
    columns = tables.columns
    for target, owners in plan.owned:
        free = 0
        for sources in owners:
            found = columns[sources[0][0]]
            if not found:
                continue
            position = sources[0][1]
            ranges = zip(found[position], found[position + 1])  # noqa: B905 (columns of one table)
            first = free
            for start, end in ranges if len(sources) == 1 else _interleaved(found, sources):
                if start != free or end < start:
                    _gap(tables, sources, first)
                free = end
        if free != tables.counts[target.slot]:
            message = f"{target.name} has {tables.counts[target.slot]} rows; {free} of them have owners"
            raise ModuleError(message, tables.offsets[target.slot])


def _interleaved(found: list[Values], sources: tuple[Source, ...]) -> Iterable[tuple[int, int]]:
    """The ranges by which the rows of one vector own rows of another: by row, and within a row by column."""
    columns = (zip(found[source[1]], found[source[1] + 1], strict=True) for source in sources)
    return chain.from_iterable(zip(*columns, strict=True))


def _gap(tables: Tables, sources: tuple[Source, ...], free: int) -> None:
    for place, (start, end) in enumerate(_interleaved(tables.columns[sources[0].slot], sources)):
        if start != free or end < start:
            row, number = divmod(place, len(sources))
            sources[number].fail(tables, row, f"{start} to {end} does not continue at {free}")
        free = end


def _verify_local(tables: Tables, plan: Checks) -> None:
    for source, owner, own, target in plan.local:
        found = tables.columns[source.slot]
        if not found:
            continue
        values, owners = found[source.position], tables.columns[owner]
        none = NONE if "optional" in source.column.attributes else -1
        bounds = zip(owners[own], owners[own + 1], owners[target], owners[target + 1], strict=True)
        for start, end, low, high in bounds:
            if start == end or max(values[start:end]) < high - low:
                continue
            for row in range(start, end):
                if values[row] >= high - low and values[row] != none:
                    name = source.column.attributes["local"]
                    source.fail(tables, row, f"{values[row]} is out of range ({high - low} {name} of its owner)")


def _verify_kinds(tables: Tables, plan: Checks) -> None:
    for slot, position, allowed, source in plan.kinds:
        found = tables.columns[source.slot]
        if not found:
            continue
        kinds = tables.columns[slot][position] if tables.columns[slot] else ()
        for row, value in enumerate(found[source.position]):
            if value != NONE and kinds[value] not in allowed:
                names = " or ".join(kind.name for kind in allowed)
                source.fail(tables, row, f"segments[{value}] is no {names} segment")
