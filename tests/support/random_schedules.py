"""Random schedules of a body: lists of steps from every row of `STEPS`, most of which `legality` accepts.

A schedule starts as one that fits the kind of the body in shape, with counts drawn at random and a guard where one is
seen to be needed. One in four is then changed in a step, which mostly makes it illegal.
"""

import random
from dataclasses import dataclass, replace

from orchestrion.compiler.ir.dims import Dim, bounds, is_dynamic
from orchestrion.compiler.kernel.body import DIMENSIONS, Body
from orchestrion.compiler.kernel.dialect import VECTOR_LANES
from orchestrion.compiler.kernel.elements.encodings import stored_shape
from orchestrion.compiler.kernel.elements.rules import element_of
from orchestrion.compiler.kernel.library import KERNELS
from orchestrion.compiler.kernel.machine import Machine
from orchestrion.compiler.kernel.panels.dot import contracted
from orchestrion.compiler.kernel.panels.lane_sums import reads_along
from orchestrion.compiler.kernel.products.grid import is_tiled_dot
from orchestrion.compiler.kernel.products.operands import packed_tile
from orchestrion.compiler.kernel.schedule import STEPS, WAYS, Schedule, Step
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

#: products in the text of a tile, about: longer code takes drivers seconds
MAX_PRODUCTS = 128


@dataclass(frozen=True)
class Drawn:
    """The schedules of an entry. `well_typed`: each step is about something that the body has."""

    schedules: tuple[Schedule, ...]
    well_typed: bool


def draw(rng: random.Random, body: Body, machine: Machine) -> Drawn:
    """Schedules of a body on a machine: one, or several if sizes are dynamic."""
    special = _special(rng, body, machine) if body.kind not in KERNELS else []
    known = [step for schedule in special for step in schedule.named("specialize")]
    rest = _one(rng, body, machine, known)
    schedules = [*special, rest]
    if rng.random() < 0.25:
        at = rng.randrange(len(schedules))
        schedules[at] = _changed(rng, body, schedules[at])
    if rng.random() < 0.04:
        wild = Step(*_wild(rng, body))
        return Drawn((*schedules[:-1], _schedule([*schedules[-1].steps, wild])), False)
    return Drawn(tuple(schedules), True)


def _schedule(steps: list[Step]) -> Schedule:
    """Each step once per dimension, the first one."""
    found: dict[tuple[str, str], Step] = {}
    for step in steps:
        found.setdefault((step.name, step.dim), step)
    return Schedule.of(*found.values())


def _special(rng: random.Random, body: Body, machine: Machine) -> list[Schedule]:
    """Schedules with a condition, for dispatches of some sizes."""
    dynamic = [dim for dim, extent in body.extents.items() if isinstance(extent, Dim)]
    if not dynamic or rng.random() < 0.5:
        return []
    found = []
    known: list[Step] = []
    for _ in range(rng.choice((1, 1, 2))):
        dim = rng.choice(dynamic)
        least, most = bounds(body.extents[dim])
        count = rng.choice((1, 2, 3, 4, 7, 8, 15, 16, 40, 64, 128, 256))
        condition = Step("specialize", dim, count=min(max(count, least), most))
        found.append(_schedule([condition, *_one(rng, body, machine, known).steps]))
        known.append(condition)
    return found


def _one(rng: random.Random, body: Body, machine: Machine, conditions: list[Step]) -> Schedule:
    """A schedule. `conditions`: of those in front of it, so larger extents may be assumed."""
    if body.kind in KERNELS:
        return Schedule.of(Step("library", body.kind, count=KERNELS[body.kind].workgroup_size(body.hero)))
    assumed = [Step("assume", step.dim, count=rng.randint(1, step.count + 1)) for step in conditions]
    assumed = [step for step in assumed if rng.random() < 0.6 and _may_assume(body, step)]
    if body.kind == "rows":
        return _schedule([*_rows(rng, body), *assumed])
    if body.kind == "contraction" and "m" in body.extents and rng.random() < 0.75:
        return _schedule([*_tiled(rng, body, machine, assumed), *assumed])
    return _schedule([*_elements(rng, body), *assumed])


def _may_assume(body: Body, step: Step) -> bool:
    least, most = bounds(body.extents[step.dim])
    return least <= step.count <= most


def _grid(rng: random.Random) -> Step:
    if rng.random() < 0.15:
        return Step("bind", "grid", "workgroup")
    return Step("bind", "grid", "invocation", rng.choice((1, 2, 3, 8, 32, 64, 100, 128)))


def _shared(rng: random.Random) -> list[Step]:
    beside = [Step("bind", "e", "local", rng.choice((2, 4, 8, 32)))] if rng.random() < 0.4 else []
    lanes = rng.choice((2, 4, 8, 16) if beside else (2, 4, 8, 16, 32, 64, 128))
    return [Step("bind", "grid", "workgroup"), Step("reduce", "k", "tree", lanes), *beside]


def _unrolled(rng: random.Random, results: int, often: float) -> list[Step]:
    most = [count for count in (1, 2, 4, 8, 16, 64) if count * results <= MAX_PRODUCTS]
    return [Step("unroll", "k", count=rng.choice(most or [1]))] if rng.random() < often else []


def _elements(rng: random.Random, body: Body) -> list[Step]:
    """Elements in the order of memory."""
    has_sum = "k" in body.extents
    if body.across is not None and rng.random() < 0.6:
        count, size = rng.choice((1, 2, 3, 4, 8, 16)), rng.choice((1, 2, 3, 8, 16, 64))
        divides = not (body.across.extent % count or body.across.columns % size)
        guard = [] if divides and rng.random() < 0.8 else [Step("guard", "t", "shift")]
        return [Step("tile", "t", count=count), Step("bind", "grid", "invocation", size), *guard]
    if body.padding is not None and rng.random() < 0.6:
        return [Step("bind", "grid", "workgroup"), Step("bind", "e", "local", rng.choice((2, 4, 16, 64)))]
    if body.lines is not None and rng.random() < 0.3:
        size = rng.choice((2, 4, 8, 16, 64))
        guard = [Step("guard", "e", "shift")] if size <= body.lines.length and rng.random() < 0.7 else []
        return [Step("bind", "grid", "workgroup"), Step("bind", "e", "local", size), *guard]
    steps = _shared(rng) if has_sum and body.has_one_size and rng.random() < 0.4 else [_grid(rng)]
    lasts = [(1, *stored_shape(value))[-1] for value in body.results]
    counts = [count for count in (2, 3, 4, 5, 8, 16) if all(not isinstance(n, Dim) and n % count == 0 for n in lasts)]
    tile = 1
    if rng.random() < (0.5 if len(steps) < 3 else 0.1):
        tile = rng.choice(counts or [1]) if rng.random() < 0.9 else rng.choice((2, 4, 300))
        steps.append(Step("tile", "e", count=tile))
    if has_sum and len(steps) < 3 and steps[0].how != "workgroup":
        steps += _unrolled(rng, tile, 0.4)
    return steps


def _rows(rng: random.Random, body: Body) -> list[Step]:
    """Rows, taken by an invocation or by a workgroup, in registers or not."""
    steps = _shared(rng) if rng.random() < 0.7 else [_grid(rng)]
    lanes = Schedule.of(*steps).lanes
    longest = bounds(body.extents["k"])[1]
    if rng.random() < 0.5 and longest <= 64 * lanes or rng.random() < 0.05:
        steps.append(Step("stage", "k", "register"))
    return steps


def _tiled(rng: random.Random, body: Body, machine: Machine, assumed: list[Step]) -> list[Step]:
    """Tiles of a dot: of an invocation, of a workgroup whose invocations divide them, or staged."""
    static = not isinstance(body.extents["k"], Dim)
    if machine.panel_bytes and _may_have_panels(body) and rng.random() < 0.5:
        return _panels(rng, body)
    way = rng.choice(("invocation", "invocation", "local", "staged"))
    if way == "staged" and static:
        steps = _staged(rng)
    else:
        sizes = {"m": rng.choice((1, 2, 3, 4, 8)), "n": rng.choice((1, 2, 4, 8, 16))}
        steps = [Step("tile", dim, count=count) for dim, count in sizes.items() if count > 1 or rng.random() < 0.8]
        if way == "invocation":
            steps.append(_grid(rng))
        else:
            steps += [
                Step("bind", "grid", "workgroup"),
                *(Step("bind", dim, "local", rng.choice((1, 2, 4, 8))) for dim in "mn" if rng.random() < 0.8),
            ]
        lanes = [count for count in VECTOR_LANES if sizes["n"] % count == 0 and count <= machine.vector_lanes]
        if lanes and rng.random() < 0.8 or rng.random() < 0.06:
            steps.append(Step("vectorize", "n", count=rng.choice(lanes or VECTOR_LANES)))
        steps += _unrolled(rng, sizes["m"] * sizes["n"], 0.4)
    if not is_tiled_dot(Schedule.of(*steps)):
        steps.append(Step("tile", "n", count=1))
    if rng.random() < 0.3:
        steps.append(Step("reorder", "n", "m"))
    return [*steps, *_guards(rng, body, Schedule.of(*steps), assumed)]


def _may_have_panels(body: Body) -> bool:
    assert body.hero is not None
    wide = bounds(body.extents["n"])[0] > 1 or is_dynamic(body.extents["n"])
    return wide and element_of(body.hero.results[0]).startswith("f")


def _panels(rng: random.Random, body: Body) -> list[Step]:
    """Blocks of a workgroup with panels of none, one or both operands, or with passes along rows, and vectors along
    either side. Blocks of a dynamic number of columns have a panel of these.
    """
    across = rng.choice([dim for dim in "mn" if bounds(body.extents[dim])[0] > 1] or ["n"])
    ragged, deep = is_dynamic(body.extents[across]), is_dynamic(body.extents["k"])
    down = "mn".replace(across, "")
    assert isinstance(body.hero, DotGeneral)
    if not (ragged or deep) and reads_along(body.hero) and rng.random() < 0.5:
        return _lane_sums(rng, body, down, across)
    columns = rng.choice(
        [count for count in (2, 4, 8, 12, 16, 24, 32) if ragged or count <= bounds(body.extents[across])[0]] or [2]
    )
    groups = rng.choice([count for count in (1, 1, 2, 4) if count * columns <= bounds(body.extents[across])[0]] or [1])
    sizes = {down: rng.choice((1, 2, 3, 5, 8)), across: columns}
    local = {down: rng.choice((1, 2, 4, 8, 16)), across: groups}
    staged = [operand for operand in ("lhs", "rhs") if rng.random() < 0.6]
    of_columns = {"m": "lhs", "n": "rhs"}[across]
    staged = sorted({*staged, of_columns}) if ragged else staged
    ways = {down: "clamp", across: "clamp" if ragged else "shift"}
    tile = packed_tile(body.hero, "mn".index(across))
    if tile is not None and tile % columns == 0 and groups == 1 and of_columns not in staged:
        ways[across] = "pad"
    stages = [Step("stage", "out", "stream", rng.choice((1, 4, 8, 32)))]
    if ragged or deep or len(contracted(body.hero)) != 1 or rng.random() < 0.7:
        stages = [
            Step("stage", "out", "panel", rng.choice((16, 64, 100, 200))),
            *(Step("stage", operand, "panel") for operand in staged),
        ]
    return [
        Step("bind", "grid", "workgroup"),
        *(Step("tile", dim, count=count) for dim, count in sizes.items()),
        *(Step("bind", dim, "local", count) for dim, count in local.items()),
        Step("vectorize", across, count=rng.choice([count for count in VECTOR_LANES if count <= columns])),
        *stages,
        *(Step("guard", d, ways[d]) for d in "mn" if body.extents[d] % (sizes[d] * local[d]) != 0),
        *([Step("reorder", "n", "m")] if rng.random() < 0.3 else []),
    ]


def _lane_sums(rng: random.Random, body: Body, down: str, across: str) -> list[Step]:
    """Blocks of a workgroup with vectors along the reduction."""
    lanes = rng.choice([count for count in VECTOR_LANES if count <= bounds(body.extents["k"])[0]] or [2])
    local = rng.choice((1, 2, 4, 8))
    tile = max(lanes // local, 1) * rng.choice((1, 1, 2))
    return [
        Step("bind", "grid", "workgroup"),
        Step("bind", across, "local", local),
        Step("tile", across, count=tile),
        Step("tile", down, count=bounds(body.extents[down])[0]),
        Step("vectorize", "k", count=lanes),
        Step("stage", "out", "lanes"),
        *([Step("guard", across, "shift")] if body.extents[across] % (local * tile) != 0 else []),
    ]


def _staged(rng: random.Random) -> list[Step]:
    """Slices that give every invocation of a workgroup something to fetch."""
    down, across = rng.choice(((1, 2), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (4, 32)))
    lanes = down * across
    sizes = [one * rng.choice([t for t in (1, 2, 4, 8) if one * t <= lanes]) for one in (down, across)]
    depths = [depth for depth in (1, 2, 4, 8, 16, 32) if lanes // min(sizes) <= depth <= lanes]
    depth = rng.choice(depths or [1])
    return [
        Step("tile", "m", count=sizes[0] // down),
        Step("tile", "n", count=sizes[1] // across),
        Step("bind", "grid", "workgroup"),
        Step("bind", "m", "local", down),
        Step("bind", "n", "local", across),
        *(Step("stage", operand, "shared", depth) for operand in ("lhs", "rhs")),
        *([Step("unroll", "k", count=rng.choice((2, 4, 8, 16)))] if rng.random() < 0.5 else []),
    ]


def _guards(rng: random.Random, body: Body, schedule: Schedule, assumed: list[Step]) -> list[Step]:
    """Guards that are needed, and some that are not."""
    found = []
    for index, dim in enumerate("mn"):
        extent, local = body.extents[dim], schedule.local(dim)
        size = schedule.count("tile", dim) * local
        least = max([bounds(extent)[0], *(step.count for step in assumed if step.dim == dim)])
        ways = ["clamp"]
        if least >= size and local == 1:
            ways.append("shift")
        tile = packed_tile(body.hero, index)  # type: ignore[arg-type]
        if tile is not None and tile % size == 0 and local == 1 and not any(schedule.named("stage")):
            ways += ["pad", "pad"]
        needed = extent % size != 0
        if rng.random() < (0.97 if needed else 0.3):
            found.append(Step("guard", dim, rng.choice(ways)))
    return found


def _changed(rng: random.Random, body: Body, schedule: Schedule) -> Schedule:
    """Another count, a step less, or one more about something that the body has."""
    steps = list(schedule.steps)
    at = rng.randrange(len(steps))
    way = rng.choice(("count", "count", "less", "more", "more"))
    if way == "count" and steps[at].name != "library":
        steps[at] = replace(steps[at], count=rng.choice((0, 1, 2, 3, 4, 5, 7, 8, 16, 64, 128, 129, 512)))
        if steps[at].name in ("reorder", "guard"):
            steps[at] = replace(schedule.steps[at], how=rng.choice(list(WAYS[steps[at].name])))
    elif way == "less":
        del steps[at]
    elif body.kind in KERNELS or schedule.library is not None:
        steps = [replace(steps[0], count=rng.choice((1, 8, 64)))]
    else:
        steps.append(Step(*_typed(rng, body)))
    return _schedule(steps)


def _typed(rng: random.Random, body: Body) -> tuple[str, str, str, int]:
    """A step about a dimension or an operand that the body has."""
    parts: dict[str, list[str]] = {name: list(body.extents) for name in STEPS if name != "library"}
    parts["bind"] = ["grid", *(dim for dim in "mn" if dim in body.extents and body.kind == "contraction")]
    parts["stage"] = {"contraction": ["lhs", "rhs"], "rows": ["k"]}.get(body.kind, [])
    name = rng.choice([name for name, dims in parts.items() if dims])
    return _step(rng, name, rng.choice(parts[name]))


def _wild(rng: random.Random, body: Body) -> tuple[str, str, str, int]:
    """A step about anything."""
    return _step(rng, rng.choice(list(STEPS)), rng.choice([*DIMENSIONS, "grid", "lhs", "rhs", "nothing"]))


def _step(rng: random.Random, name: str, dim: str) -> tuple[str, str, str, int]:
    how = rng.choice(list(WAYS[name])) if name in WAYS else ""
    count = rng.choice((1, 2, 3, 4, 8, 16, 64)) if "{count}" in STEPS[name][0] else 0
    return name, dim, how, count
