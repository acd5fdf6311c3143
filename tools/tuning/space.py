"""The schedules that a search looks at: knobs of each form of schedule, and the neighbours of a schedule.

A *form* is a way to share the work of a body: elements, tiles of a dot, blocks of a dot in shared memory, rows. Its
knobs have values; `build` makes a schedule of them and adds the guards that the body's edges need. Only
`compiler/kernel/legality.py` says which schedules fit a body. Whatever else is to be searched, such as layouts of
operands, would be another space beside this one: the search asks a space for `starts` and `neighbours` alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.legality import problems
from orchestrion.compiler.kernel.machine import Machine
from orchestrion.compiler.kernel.patterns.task import Code
from orchestrion.compiler.kernel.products.grid import is_tiled_dot
from orchestrion.compiler.kernel.products.operands import packed_tile
from orchestrion.compiler.kernel.schedule import Schedule, Step
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

Knobs = Mapping[str, int | str]

_POWERS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
#: form -> knob -> its values, in order: neighbours of a value are the next ones
KNOBS: Final[dict[str, dict[str, tuple[int | str, ...]]]] = {
    "elements": {
        "tile": _POWERS[:6],
        "size": _POWERS,
        "unroll": _POWERS[:6],
        "lanes": _POWERS,
        "beside": _POWERS[:6],
    },
    "tiles": {
        "rows": _POWERS[:6],
        "columns": _POWERS[:7],
        "size": _POWERS,
        "vector": _POWERS[:5],
        "unroll": _POWERS[:5],
        "faster": ("n", "m"),
        "guard": ("auto", "clamp"),
    },
    "blocks": {
        "rows": _POWERS[:5],
        "columns": _POWERS[:5],
        "down": _POWERS[:6],
        "across": _POWERS[:6],
        "depth": _POWERS[:6],
        "unroll": _POWERS[:6],
        "faster": ("n", "m"),
    },
    "rows": {"size": _POWERS, "lanes": _POWERS, "held": (0, 1)},
}
#: knobs that change together, and whether in the same direction: one alone would not fit, or change too much
PAIRS: Final = (
    ("rows", "columns", False),
    ("rows", "columns", True),
    ("columns", "vector", True),
    ("down", "across", False),
    ("rows", "down", False),
    ("columns", "across", False),
    ("lanes", "held", True),
    ("lanes", "held", False),
    ("lanes", "beside", False),
)
#: form -> knobs from which a search starts again
STARTS: Final[dict[str, tuple[Knobs, ...]]] = {
    "elements": (
        {"tile": 1, "size": 64, "unroll": 1, "lanes": 1, "beside": 1},
        {"tile": 4, "size": 32, "unroll": 1, "lanes": 1, "beside": 1},
        {"tile": 1, "size": 64, "unroll": 4, "lanes": 1, "beside": 1},
        {"tile": 1, "size": 1, "unroll": 1, "lanes": 64, "beside": 1},
        {"tile": 1, "size": 1, "unroll": 1, "lanes": 16, "beside": 8},
    ),
    "tiles": (
        {"rows": 4, "columns": 8, "size": 32, "vector": 1, "unroll": 4, "faster": "n", "guard": "auto"},
        {"rows": 4, "columns": 16, "size": 32, "vector": 16, "unroll": 1, "faster": "n", "guard": "auto"},
        {"rows": 8, "columns": 8, "size": 16, "vector": 8, "unroll": 1, "faster": "m", "guard": "auto"},
    ),
    "blocks": (
        {"rows": 4, "columns": 4, "down": 8, "across": 8, "depth": 8, "unroll": 1, "faster": "n"},
        {"rows": 2, "columns": 4, "down": 8, "across": 16, "depth": 16, "unroll": 8, "faster": "n"},
    ),
    "rows": (
        {"size": 64, "lanes": 1, "held": 0},
        {"size": 64, "lanes": 1, "held": 1},
        {"size": 1, "lanes": 8, "held": 1},
        {"size": 1, "lanes": 32, "held": 0},
    ),
}
#: kind of a body -> the forms of its schedules
FORMS: Final = {
    "elementwise": ("elements",),
    "reduction": ("elements",),
    "contraction": ("elements", "tiles", "blocks"),
    "rows": ("rows",),
}
#: divisors of an extent up to this are values of the tile along it
LARGEST_DIVISOR: Final = 32
#: ops in the text of a kernel, about: above this a build takes seconds
MAX_OPS: Final = 16_384
#: knob -> the dimension that it divides
_DIMENSION: Final = {"tile": "e", "rows": "m", "columns": "n"}


@dataclass(frozen=True)
class Space:
    """The schedules of a body of static sizes on a machine."""

    body: Body
    machine: Machine

    @cached_property
    def ops(self) -> int:
        """Ops of the code of one element."""
        return Code(self.body).ops

    def is_legal(self, schedule: Schedule) -> bool:
        """Whether a schedule fits the body and its kernel is not too long."""
        tile = prod(step.count for step in schedule.named("tile"))
        unroll = max((step.count for step in schedule.named("unroll")), default=1)
        if tile > 1 and tile * unroll * self.ops > MAX_OPS:
            return False
        return next(problems(self.body, schedule, self.machine), None) is None

    def starts(self) -> Iterator[Schedule]:
        """Schedules of every form, each of which a search may start from."""
        for form in FORMS.get(self.body.kind, ()):
            for knobs in STARTS[form]:
                found = build(self.body, form, knobs)
                if self.is_legal(found):
                    yield found

    def neighbours(self, schedule: Schedule) -> list[Schedule]:
        """The legal schedules of the same form that differ in one knob or in a pair of them, each once, in an order
        that depends on the schedule alone. A schedule that has no knobs has no neighbours.
        """
        form, knobs = read(schedule, self.body)
        if not form or build(self.body, form, knobs) != schedule:
            return []
        changes = [{knob: value} for knob in knobs for value in self._next(form, knobs, knob)]
        for one, other, same in PAIRS:
            if one in knobs and other in knobs:
                for way in (-1, 1):
                    pair = self._moved(form, knobs, one, way), self._moved(form, knobs, other, way if same else -way)
                    if None not in pair:
                        changes.append({one: pair[0], other: pair[1]})  # type: ignore[dict-item]
        found = dict.fromkeys(build(self.body, form, {**knobs, **change}) for change in changes)
        return [one for one in found if one != schedule and self.is_legal(one)]

    def _next(self, form: str, knobs: Knobs, knob: str) -> list[int | str]:
        """The values next to that of a knob, in both directions: of the table, and of the divisors of an extent."""
        found = [self._moved(form, knobs, knob, way) for way in (-1, 1)]
        extent = self.body.extents.get(_DIMENSION.get(knob, ""), 0)
        if form != "blocks" and extent:
            divisors = [size for size in range(2, LARGEST_DIVISOR + 1) if extent % size == 0]
            found += [_beside(divisors, knobs[knob], way) for way in (-1, 1)]
        return list(dict.fromkeys(value for value in found if value is not None))

    def _moved(self, form: str, knobs: Knobs, knob: str, way: int) -> int | str | None:
        """The next value of a knob in its table in a direction, -1 or 1; None behind the last."""
        return _beside(KNOBS[form][knob], knobs[knob], way)


def _beside(values: Sequence[int | str], now: int | str, way: int) -> int | str | None:
    """The next of some values in a direction; None behind the last. Numbers ascend."""
    if now in values:
        place = values.index(now) + way
        return values[place] if 0 <= place < len(values) else None
    beyond = [
        value for value in values if isinstance(value, int) and isinstance(now, int) and (value > now) == (way > 0)
    ]
    return None if not beyond else min(beyond) if way > 0 else max(beyond)


def read(schedule: Schedule, body: Body) -> tuple[str, dict[str, int | str]]:
    """The form of a schedule and its knobs; an empty form if it has none. Guards that the body needs are no knobs."""
    if body.kind not in FORMS or schedule.library is not None:
        return "", {}
    size = schedule.count("bind", "grid")
    if body.kind == "rows":
        held = int(schedule.find("stage", "k") is not None)
        return "rows", {"size": max(size, 1), "lanes": schedule.lanes, "held": held}
    unroll = schedule.count("unroll", "k")
    if not is_tiled_dot(schedule):
        tile, beside = schedule.count("tile", "e"), schedule.local("e")
        lanes = schedule.lanes
        return "elements", {"tile": tile, "size": max(size, 1), "unroll": unroll, "lanes": lanes, "beside": beside}
    tiles: dict[str, int | str] = {"rows": schedule.count("tile", "m"), "columns": schedule.count("tile", "n")}
    faster = "n" if schedule.find("reorder", "n") is None else "m"
    if (stage := schedule.find("stage", "lhs")) is not None:
        local = {"down": schedule.local("m"), "across": schedule.local("n")}
        return "blocks", {**tiles, **local, "depth": stage.count, "unroll": unroll, "faster": faster}
    knobs = {**tiles, "size": size, "vector": schedule.count("vectorize", "n"), "unroll": unroll, "faster": faster}
    auto = build(body, "tiles", {**knobs, "guard": "auto"})
    return "tiles", {**knobs, "guard": "auto" if auto == schedule else "clamp"}


def build(body: Body, form: str, knobs: Knobs) -> Schedule:
    """The schedule of a form with these knobs; it may not be legal."""
    count = {name: value for name, value in knobs.items() if isinstance(value, int)}
    match form:
        case "rows":
            stage = Step("stage", "k", "register") if count["held"] else None
            return Schedule.of(*_shared(count["lanes"], count["size"]), stage)
        case "elements":
            tile = Step("tile", "e", count=count["tile"]) if count["tile"] > 1 else None
            unroll = _more("unroll", "k", count["unroll"]) if count["lanes"] == 1 else None
            beside = Step("bind", "e", "local", count["beside"]) if count["beside"] > 1 else None
            return Schedule.of(tile, beside, *_shared(count["lanes"], count["size"]), unroll)
    tiles = Step("tile", "m", count=count["rows"]), Step("tile", "n", count=count["columns"])
    order = Step("reorder", "n", "m") if knobs["faster"] == "m" else None
    if form == "blocks":
        local = Step("bind", "m", "local", count["down"]), Step("bind", "n", "local", count["across"])
        stages = [Step("stage", operand, "shared", count["depth"]) for operand in ("lhs", "rhs")]
        unroll = _more("unroll", "k", count["unroll"])
        made = Schedule.of(*tiles, order, Step("bind", "grid", "workgroup"), *local, unroll, *stages)
    else:
        grid = Step("bind", "grid", "invocation", count["size"])
        lanes = _more("vectorize", "n", count["vector"])
        made = Schedule.of(*tiles, order, grid, lanes, _more("unroll", "k", count["unroll"]))
    guards = [_guard(body, made, dim, knobs.get("guard") == "clamp") for dim in ("m", "n")]
    return Schedule.of(*made.steps, *guards)


def _shared(lanes: int, size: int) -> tuple[Step, ...]:
    """Steps for the grid: `lanes` invocations compute a position together, or each of a workgroup of `size` its own."""
    if lanes > 1:
        return Step("bind", "grid", "workgroup"), Step("reduce", "k", "tree", lanes)
    return (Step("bind", "grid", "invocation", size),)


def _more(name: str, dim: str, count: int) -> Step | None:
    return Step(name, dim, count=count) if count > 1 else None


def _guard(body: Body, schedule: Schedule, dim: str, clamps: bool) -> Step | None:
    """The guard of a dimension of a dot, if tiles do not divide it: padding if the layout has some, else a tile that is
    moved back, else, or if `clamps`, places that are taken again.
    """
    extent, local, dot = body.extents.get(dim), schedule.local(dim), body.hero
    size = schedule.count("tile", dim) * local
    if extent is None or not isinstance(dot, DotGeneral) or (extent >= size and extent % size == 0):
        return None
    how = "clamp"
    if not clamps and local == 1 and not any(schedule.named("stage")):
        packed = packed_tile(dot, 0 if dim == "m" else 1)
        if packed is not None and packed % size == 0:
            how = "pad"
        elif extent >= size:
            how = "shift"
    return Step("guard", dim, how)
