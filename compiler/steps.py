"""The steps of a compilation with their times: reading, each pass, verification after each phase, encoding, writing.

Whoever follows a compilation makes `Steps` with a function that is called when a step or a part of it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its phase, a name of `pipeline.PHASES`; the name of the pass, or of what is no pass; its duration."""

    phase: str
    name: str
    seconds: float


#: called with phase, name of the step, and how much of it is done as text (empty when it begins)
StepListener = Callable[[str, str, str], None]


@dataclass(slots=True)
class Steps:
    """The steps that ended, in order. A step that fails is among them."""

    told: StepListener | None = None
    done: list[Step] = field(default_factory=list)
    _now: tuple[str, str] = ("", "")

    @contextmanager
    def step(self, phase: str, name: str) -> Iterator[None]:
        """What runs inside is one step. Steps do not nest."""
        self._now = phase, name
        if self.told is not None:
            self.told(phase, name, "")
        start = perf_counter()
        try:
            yield
        finally:
            self.done.append(Step(phase, name, perf_counter() - start))

    def part(self, number: int, count: int) -> None:
        """Part `number` of `count` of the present step begins; the first is 1."""
        if self.told is not None:
            self.told(*self._now, f"{number} of {count}")
