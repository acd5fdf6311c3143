"""The checks of single columns, compiled once from the attributes in `module.fbs`.

A check takes all values of a column at once (`max` of a tuple costs less than one comparison per row in Python), and
only when one fails looks for the row to name. `first` checks need nothing but the counts. `second` checks follow
ordinals and ranges, which the first have proved; owned ranges do not overlap, so following them is linear.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from operator import le
from typing import NamedTuple

from .errors import ModuleError
from .layout import Column, Layout, Vector, layout
from .rows import NONE, SegmentKind

Values = tuple[int, ...]


class Tables:
    """A root being decoded: per slot the number of elements, where they lie, and their columns (none when empty)."""

    __slots__ = ("columns", "counts", "offsets")

    def __init__(self, slots: int) -> None:
        self.counts = [0] * slots
        self.offsets = [0] * slots
        self.columns: list[tuple[Values, ...]] = [()] * slots


Check = Callable[[Tables], None]


class Checks(NamedTuple):
    first: tuple[Check, ...]
    second: tuple[Check, ...]


@cache
def checks() -> Checks:
    plan = layout()
    first: list[Check] = []
    second: list[Check] = []
    for vector in plan.vectors:
        for column in vector.columns:
            first += _first(plan, vector, column)
            second += _second(plan, vector, column)
    owned = dict.fromkeys(c.attributes["owns"] for v in plan.vectors for c in v.columns if "owns" in c.attributes)
    first += (_owned(plan, plan.vector(name)) for name in owned)
    return Checks(tuple(first), tuple(second))


def _first(plan: Layout, vector: Vector, column: Column) -> Iterator[Check]:
    has = column.attributes
    allowed = plan.allowed(column)
    if allowed is not None:
        yield _allowed(vector, column, allowed)
    if "string" in has:
        yield _index(vector, column, plan.vector("strings"))
    if "index" in has:
        yield _index(vector, column, plan.vector(has["index"]))
    if "range" in has:
        yield _range(vector, column, plan.vector(has["range"]))


def _second(plan: Layout, vector: Vector, column: Column) -> Iterator[Check]:
    has = column.attributes
    if "local" in has:
        yield _local(plan, vector, column)
    if "kind" in has:
        yield _kind(plan, vector, column)


def bad(tables: Tables, vector: Vector, row: int, column: Column, message: str) -> ModuleError:
    name = f"{vector.name}[{row}]" + (f".{column.name}" if column.name else "")
    return ModuleError(f"{name}: {message}", tables.offsets[vector.slot] + row * vector.format.size)


def _allowed(vector: Vector, column: Column, allowed: frozenset[int]) -> Check:
    slot, position = vector.slot, column.position
    what = "element type" if "dtype" in column.attributes else column.type

    def check(tables: Tables) -> None:
        columns = tables.columns[slot]
        if columns and not allowed.issuperset(columns[position]):
            row, value = next((r, v) for r, v in enumerate(columns[position]) if v not in allowed)
            raise bad(tables, vector, row, column, f"no {what} has code {value}")

    return check


def _index(vector: Vector, column: Column, target: Vector) -> Check:
    slot, position, target_slot = vector.slot, column.position, target.slot
    none = NONE if "optional" in column.attributes else -1

    def check(tables: Tables) -> None:
        columns = tables.columns[slot]
        if not columns or max(columns[position]) < tables.counts[target_slot]:
            return
        count = tables.counts[target_slot]
        for row, value in enumerate(columns[position]):
            if value >= count and value != none:
                raise bad(tables, vector, row, column, f"{value} is out of range ({count} {target.name})")

    return check


def _range(vector: Vector, column: Column, target: Vector) -> Check:
    slot, position, target_slot = vector.slot, column.position, target.slot

    def check(tables: Tables) -> None:
        columns = tables.columns[slot]
        if not columns:
            return
        starts, ends = columns[position], columns[position + 1]
        count = tables.counts[target_slot]
        if max(ends) <= count and all(map(le, starts, ends)):
            return
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if start > end or end > count:
                message = f"{start} to {end} is out of range ({count} bytes of {target.name})"
                raise bad(tables, vector, row, column, message)

    return check


def _owned(plan: Layout, target: Vector) -> Check:
    """All ranges that own rows of `target` follow each other, in the owners' order, from its first row to its last."""
    owners = []
    for vector in plan.vectors:
        columns = [c for c in vector.columns if c.attributes.get("owns") == target.name]
        if columns:
            owners.append((vector, columns, tuple(c.position for c in columns)))

    def check(tables: Tables) -> None:
        free = 0
        for vector, owning, positions in owners:
            columns = tables.columns[vector.slot]
            if not columns:
                continue
            if len(positions) == 1:
                starts, ends = columns[positions[0]], columns[positions[0] + 1]
            else:
                starts = tuple(chain.from_iterable(zip(*(columns[p] for p in positions), strict=True)))
                ends = tuple(chain.from_iterable(zip(*(columns[p + 1] for p in positions), strict=True)))
            if starts != (free, *ends[:-1]) or not all(map(le, starts, ends)):
                place = _gap(free, starts, ends)
                row, number = divmod(place, len(owning))
                message = f"{starts[place]} to {ends[place]} does not continue at {ends[place - 1] if place else free}"
                raise bad(tables, vector, row, owning[number], message)
            free = ends[-1]
        if free != tables.counts[target.slot]:
            message = f"{target.name} has {tables.counts[target.slot]} rows; their owners end at {free}"
            raise ModuleError(message, tables.offsets[target.slot])

    return check


def _gap(free: int, starts: Values, ends: Values) -> int:
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start != free or end < start:
            return place
        free = end
    raise AssertionError("the ranges follow each other")


def _local(plan: Layout, vector: Vector, column: Column) -> Check:
    """An ordinal counts within a range of the row that owns this one, and that range has so many rows."""
    owner, owning = plan.owner(vector.name)
    name = column.attributes["local"]
    target = next(c for c in owner.columns if c.name == name)
    slot, position, owner_slot = vector.slot, column.position, owner.slot
    own, other = owning.position, target.position
    none = NONE if "optional" in column.attributes else -1

    def check(tables: Tables) -> None:
        columns = tables.columns[slot]
        if not columns:
            return
        values, owners = columns[position], tables.columns[owner_slot]
        for start, end, low, high in zip(owners[own], owners[own + 1], owners[other], owners[other + 1], strict=True):
            if start == end or max(values[start:end]) < high - low:
                continue
            for row in range(start, end):
                if values[row] >= high - low and values[row] != none:
                    raise bad(tables, vector, row, column, f"{values[row]} is out of range ({high - low} {name})")

    return check


def _kind(plan: Layout, vector: Vector, column: Column) -> Check:
    """The row that an ordinal names is of the kind that the column is for."""
    target = plan.vector(column.attributes["index"])
    kind = SegmentKind[column.attributes["kind"]]
    kinds = next(c.position for c in target.columns if c.type == SegmentKind.__name__)
    slot, position, target_slot = vector.slot, column.position, target.slot

    def check(tables: Tables) -> None:
        columns = tables.columns[slot]
        if not columns:
            return
        found = tables.columns[target_slot][kinds] if tables.columns[target_slot] else ()
        for row, value in enumerate(columns[position]):
            if value != NONE and found[value] != kind:
                raise bad(tables, vector, row, column, f"{target.name}[{value}] is no {kind.name} segment")

    return check
