"""What entries say of themselves: the kind of their body from the phase `flow` on, schedules from `hl_seq` on.

Whether a schedule fits its body on a machine is decided where the body is lowered (`kernel/legality.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.flow.kinds import KINDS
from orchestrion.compiler.ir.attributes import ArrayAttr, StringAttr
from orchestrion.compiler.kernel.schedule import ScheduleError, parse


def known_kind(given: StringAttr | None) -> Iterator[str]:
    """What is wrong with the attribute `kind` of an entry."""
    if given is not None and given.value not in KINDS:
        yield f"kind {given} is none of {', '.join(KINDS)}"


def well_formed(given: ArrayAttr | None) -> Iterator[str]:
    """What is wrong with the text of the attribute `schedules` of an entry."""
    if given is not None and not len(given):
        yield "schedules is an empty list: the last one is for all dispatches that no other takes"
    for item in given or ():
        try:
            parse(item)
        except ScheduleError as error:
            yield f"schedules: {error}"


def without_schedules(given: ArrayAttr | None) -> Iterator[str]:
    """An entry that serves all targets has none."""
    if given is not None:
        yield "has schedules, which entries get in the phase hl_seq"
