"""Schedules of elementwise bodies whose invocations compute several results."""

from orchestrion.compiler.ir.dims import is_dynamic

from .body import Body, count_of
from .choose_panels import PANEL_LANES
from .choose_rows import ELEMENTS_PER_WORKGROUP
from .emit import THREAD
from .legality import MAX_PRODUCTS, problems
from .machine import Machine
from .operands import is_read
from .schedule import Schedule, Step


def block_across(body: Body, machine: Machine, ops: int) -> Schedule | None:
    """The schedule of results that read an operand across; None if that does not pay. `ops`: those of one result."""
    across, count = body.across, machine.transposed_tile
    if across is None or not count or across.extent < count or count * ops > MAX_PRODUCTS:
        return None
    size = ELEMENTS_PER_WORKGROUP
    while size > across.columns:
        size //= 2
    is_whole = not (across.extent % count or across.columns % size)
    schedule = Schedule.of(
        Step("tile", "t", count=count),
        Step("bind", "grid", "invocation", size),
        None if is_whole else Step("guard", "t", "shift"),
    )
    return None if size < count or any(problems(body, schedule, machine)) else schedule


def padded_lines(body: Body, machine: Machine) -> Schedule | None:
    """The schedule of a padded copy in native code; None if elements padded alike are whole vectors, or computed."""
    lines = body.lines if machine.panel_bytes else None
    if lines is None or lines.inner % PANEL_LANES == 0 or lines.width < PANEL_LANES or not is_read(lines.pad.operand_):
        return None
    schedule = Schedule.of(Step("bind", "grid", "workgroup"), Step("bind", "e", "local", PANEL_LANES))
    return None if any(problems(body, schedule, machine)) else schedule


def run_of_elements(body: Body, machine: Machine, ops: int) -> Schedule | None:
    """An invocation computes neighbours, if enough invocations are left and the results have whole runs of them.
    `ops`: those of one result.
    """
    size = machine.element_tile
    count = count_of(body.results[0])
    if size < 2 or is_dynamic(count) or count < size * machine.units or size * ops > MAX_PRODUCTS:
        return None
    schedule = Schedule.of(Step("tile", "e", count=size), *THREAD.steps)
    return None if any(problems(body, schedule, machine)) else schedule
