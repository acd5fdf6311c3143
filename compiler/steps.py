"""The steps of a compilation and their times: reading, each pass, verification after each phase, encoding, writing.

A caller that follows a compilation creates `Steps` with a listener, which is called when a step or a part of it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step: its phase (a key of `pipeline.PHASES`), the name of the pass or other work, its duration."""

    phase: str
    name: str
    seconds: float


#: Called with the phase, the name of the step, and its progress as text, which is empty when the step begins.
StepListener = Callable[[str, str, str], None]


@dataclass(slots=True)
class Steps:
    """The finished steps, in order; failed ones are included."""

    told: StepListener | None = None
    done: list[Step] = field(default_factory=list)
    _now: tuple[str, str] = ("", "")

    @contextmanager
    def step(self, phase: str, name: str) -> Iterator[None]:
        """Context manager: its body is one step. Steps do not nest."""
        self._now = phase, name
        if self.told is not None:
            self.told(phase, name, "")
        start = perf_counter()
        try:
            yield
        finally:
            self.done.append(Step(phase, name, perf_counter() - start))

    def part(self, number: int, count: int) -> None:
        """Reports that part `number` of `count` of the current step begins; the first is 1."""
        if self.told is not None:
            self.told(*self._now, f"{number} of {count}")
