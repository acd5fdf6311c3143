"""The progress of a compilation on a terminal, and a table of the times of its steps."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from orchestrion.compiler.pipeline import PHASES

from . import terminal

if TYPE_CHECKING:
    from orchestrion.compiler.steps import Step, StepListener


@contextmanager
def following(stream: TextIO) -> "Iterator[StepListener | None]":
    """The callback of `Steps` that shows a compilation's progress on `stream`; None if that is no terminal."""
    with terminal.line(stream) as line:
        if line is None:
            yield None
            return

        def told(phase: str, name: str, part: str) -> None:
            number = list(PHASES).index(phase) + 1
            of_step = f", {part}" if part else ""
            line.show(f"[{number}/{len(PHASES)}] {phase}: {name}{of_step}", is_part=bool(part))

        yield told


def table(steps: "Sequence[Step]") -> str:
    """A line for each step in order, with its time and share of the total."""
    whole = sum(step.seconds for step in steps)
    rows = [(step.phase, step.name, f"{step.seconds:.4f}", f"{step.seconds / whole:.1%}") for step in steps]
    rows = [("phase", "step", "seconds", "share"), *rows, ("", "all", f"{whole:.4f}", "100.0%")]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        f"{phase:{widths[0]}}  {name:{widths[1]}}  {seconds:>{widths[2]}}  {share:>{widths[3]}}"
        for phase, name, seconds, share in rows
    )
    return "".join(f"{line}\n" for line in lines)
