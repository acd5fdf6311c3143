"""Schedules: how the invocations of a dispatch share the iteration domain of an entry, as an attribute of the entry.

    #kernel.schedule<[tile(m, 8), tile(n, 16), bind(grid, invocation, 32), vectorize(n, 16), guard(n, shift)]>

A schedule is a list of steps, each a row of `STEPS`, about dimensions of the body (`body.DIMENSIONS`), its operands, or
the grid. The grid has a position for each tile of the parallel dimensions, in row-major order. Each schedule has
exactly one text: a name occurs at most once per dimension, and steps have the order of the table, those of one name the
order of the names of their dimensions. `legality.py` decides whether a schedule fits a body; `emit.py` lowers a
body by its schedule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Final

from orchestrion.compiler.ir.attributes import DialectAttr

ATTRIBUTE: Final = "kernel.schedule"
#: step -> (text form of its arguments, meaning). A form without a count has a count of 0
STEPS: Final[dict[str, tuple[str, str]]] = {
    "library": ("{dim}, {count}", "a library kernel, which has a fixed algorithm; `count` is its workgroup size"),
    "specialize": ("{dim}, ..{count}", "the kernel runs dispatches whose extent is at most `count`"),
    "assume": ("{dim}, {count}..", "every dispatch of the kernel has an extent of at least `count`"),
    "tile": ("{dim}, {count}", "an invocation computes `count` neighbours along a dimension"),
    "reorder": ("{dim}, {how}", "consecutive positions of the grid differ in dimension `how` first, not in `dim`"),
    "bind": ("{dim}, {how}, {count}", "`grid`: what computes a position; other `dim`: how it is divided"),
    "vectorize": ("{dim}, {count}", "neighbours along a dimension are computed in vectors of `count` lanes"),
    "unroll": (
        "{dim}, {count}",
        "an iteration of the innermost loop computes `count` elements, if that divides its extent",
    ),
    "reduce": ("{dim}, {how}, {count}", "`count` invocations share a reduction"),
    "stage": ("{dim}, {how}, {count}", "where elements of an operand or dimension are kept between load and use"),
    "guard": ("{dim}, {how}", "how the last tile is computed, if the extent is no multiple of the tile"),
}
#: step -> value of `{how}` -> meaning
WAYS: Final[dict[str, dict[str, str]]] = {
    "reorder": {"m": "neighbouring positions differ in their rows"},
    "bind": {
        "invocation": "one invocation computes a position, in workgroups of `count`",
        "workgroup": "one workgroup computes a position",
        "local": "`count` invocations of a workgroup divide the dimension; their tiles interleave",
    },
    "reduce": {"tree": "every invocation reduces a part, and a tree in shared memory combines the parts"},
    "stage": {
        "register": "in registers; each invocation keeps its share of a row",
        "shared": "in shared memory, in slices of `count` elements along the reduction",
        "panel": "in shared memory, as vectors; `out`: sums over slices of up to `count` elements",
        "stream": "`out`: sums in shared memory; each pass along whole rows of memory adds `count` products to them",
        "lanes": "`out`: sums in vectors of neighbours along the reduction; the lanes are added at the end",
        "rows": "in shared memory, as rows of attention scores; the second dot reads slices of up to `count`",
        "bytes": "in shared memory, as words of four bytes; `out`: sums of i32, over slices of up to `count` elements",
        "pairs": "in shared memory, as words of two bf16; `out`: sums of f32, over slices of up to `count` elements",
        "windows": "in shared memory, as a ring buffer of rows of an image; `out`: a workgroup computes `count` rows",
        "winograd": "in shared memory, as Winograd transforms for 2 x 2 results, in slices of `count` channels",
    },
    "guard": {
        "shift": "the last tile is moved back, so that it ends at the edge; it overlaps the tile before it",
        "clamp": "the last tile computes the last element again for each element beyond the edge",
        "pad": "the last tile reads the padding of the layout beyond the edge",
    },
}
_STEP: Final = re.compile(r"([a-z]+)\(([^()]*)\)")
_BODY: Final = re.compile(r"\[((?:[a-z]+\([^()]*\)(?:, (?!\])|(?=\])))*)\]")
_PARTS: Final = {"dim": r"(?P<dim>[a-z_]+)", "how": r"(?P<how>[a-z]+)", "count": r"(?P<count>0|[1-9][0-9]{0,9})"}


class ScheduleError(ValueError):
    """A text that is no schedule, or a schedule that does not fit its body."""


@dataclass(frozen=True, slots=True)
class Step:
    """A row of `STEPS` with its arguments. `dim`: a dimension, an operand, a kernel, or `grid`."""

    name: str
    dim: str
    how: str = ""
    count: int = 0

    def __str__(self) -> str:
        form = STEPS[self.name][0]
        if form.endswith(", {count}") and "{how}" in form and not self.count:
            form = form.removesuffix(", {count}")
        return f"{self.name}({form.format(dim=self.dim, how=self.how, count=self.count)})"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in the order of `STEPS`, those of one row in the order of the names of their dimensions."""

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, *steps: Step | None) -> Schedule:
        """The schedule of some steps, in any order. None is skipped."""
        order = list(STEPS)
        given = [step for step in steps if step is not None]
        return cls(tuple(sorted(given, key=lambda step: (order.index(step.name), step.dim))))

    def __str__(self) -> str:
        return f"#{ATTRIBUTE}<{self._body}>"

    @property
    def _body(self) -> str:
        return f"[{', '.join(map(str, self.steps))}]"

    @property
    def attribute(self) -> DialectAttr:
        """The schedule as an attribute of IR."""
        return DialectAttr(ATTRIBUTE, self._body)

    def named(self, name: str) -> Iterator[Step]:
        """The steps of a row of `STEPS`."""
        return (step for step in self.steps if step.name == name)

    def find(self, name: str, dim: str) -> Step | None:
        """The step of a row about a dimension; None if there is none."""
        return next((step for step in self.named(name) if step.dim == dim), None)

    def count(self, name: str, dim: str, default: int = 1) -> int:
        """The count of a step about a dimension; `default` if there is no such step."""
        step = self.find(name, dim)
        return default if step is None else step.count

    def local(self, dim: str) -> int:
        """Invocations of a workgroup that share a dimension; 1 if the workgroup is not divided along it."""
        step = self.find("bind", dim)
        return step.count if step is not None and step.how == "local" else 1

    def block(self, dim: str) -> int:
        """Elements along a dimension that a workgroup computes, if its invocations divide the dimension."""
        return self.count("tile", dim) * self.local(dim)

    @property
    def guards(self) -> dict[str, str]:
        """Dimension -> how tiles end at its edge."""
        return {step.dim: step.how for step in self.named("guard")}

    @property
    def library(self) -> Step | None:
        """The step that names a library kernel; None in a schedule of loops."""
        return next(self.named("library"), None)

    @property
    def by_workgroups(self) -> bool:
        """Whether a workgroup computes a position of the grid; otherwise an invocation does."""
        step = self.find("bind", "grid")
        return step is not None and step.how == "workgroup"

    @property
    def lanes(self) -> int:
        """Invocations that share a reduction; 1 if each invocation reduces alone."""
        return next((step.count for step in self.named("reduce")), 1)

    @property
    def by_lines(self) -> bool:
        """Whether invocations of a workgroup compute neighbours in a line of results, or copy a padded line."""
        return self.local("e") > 1 and self.lanes == 1

    @property
    def results(self) -> int:
        """Results that an invocation computes side by side."""
        if self.keeps_scores:
            return self.count("tile", "m") * max(self.count("tile", "k"), self.count("tile", "n"))
        return prod(step.count for step in self.named("tile"))

    @property
    def sums(self) -> str:
        """How the sums of a dot are staged; empty if they are not."""
        step = self.find("stage", "out")
        return "" if step is None else step.how

    @property
    def keeps_scores(self) -> bool:
        """Whether a workgroup computes rows of an attention."""
        return self.sums == "rows"

    @property
    def workgroup_size(self) -> int:
        """Invocations of a workgroup."""
        if self.library is not None:
            return self.library.count
        if not self.by_workgroups:
            return self.count("bind", "grid")
        if self.keeps_scores:
            return self.lanes
        return self.lanes * prod(map(self.local, "bemn"))

    @property
    def condition(self) -> Step | None:
        """The `specialize` step, which selects dispatches; None for a general schedule."""
        return next(self.named("specialize"), None)

    def range_of(self, dim: str) -> tuple[int, int | None]:
        """The least extent of a dimension that the schedule assumes, and the greatest, None if unlimited."""
        most = self.condition
        return self.count("assume", dim, 0), most.count if most is not None and most.dim == dim else None


def parse(attribute: object) -> Schedule:
    """The schedule of an attribute. Raises ScheduleError if it is none, or is not written in its only form."""
    if not isinstance(attribute, DialectAttr) or attribute.name != ATTRIBUTE:
        raise ScheduleError(f"{attribute} is not a #{ATTRIBUTE}<[...]>")
    return _parsed(attribute.body)


@lru_cache(maxsize=1024)
def _parsed(body: str) -> Schedule:
    if _BODY.fullmatch(body) is None:
        raise ScheduleError(f"#{ATTRIBUTE}<{body}> is not a list of steps such as tile(m, 8)")
    found = Schedule(tuple(_step(match[1], match[2]) for match in _STEP.finditer(body)))
    if found != Schedule.of(*found.steps):
        raise ScheduleError(f"the steps of {found} do not stand in the order {', '.join(STEPS)}, by dimension")
    keys = [(step.name, step.dim) for step in found.steps]
    if repeated := sorted({f"{name}({dim})" for name, dim in keys if keys.count((name, dim)) > 1}):
        raise ScheduleError(f"{found} has {', '.join(repeated)} twice")
    return found


def _step(name: str, text: str) -> Step:
    row = STEPS.get(name)
    if row is None:
        raise ScheduleError(f"no step is called {name}; steps are {', '.join(STEPS)}")
    pattern = re.escape(row[0]).replace(r"\{", "{").replace(r"\}", "}").format(**_PARTS)
    short = pattern.removesuffix(",\\ " + _PARTS["count"]) if name in WAYS else pattern
    match = re.fullmatch(pattern, text) or re.fullmatch(short, text)
    step = None if match is None else _of_parts(name, match.groupdict())
    form = f"{name}({row[0].format(dim='d', how='w', count='n')})" if step is None else str(step)
    if step is None or form != f"{name}({text})":
        raise ScheduleError(f"{name}({text}) is not of the form {form}")
    return step


def _of_parts(name: str, parts: dict[str, str]) -> Step:
    step = Step(name, parts["dim"], parts.get("how", ""), int(parts.get("count") or 0))
    if name in WAYS and step.how not in WAYS[name]:
        raise ScheduleError(f"{step}: {step.how} is none of {', '.join(WAYS[name])}")
    return step
