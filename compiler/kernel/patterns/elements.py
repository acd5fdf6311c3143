"""Schedules of elementwise bodies whose invocations compute several results."""

from orchestrion.compiler.ir.dims import is_dynamic, typical
from orchestrion.compiler.kernel.body import count_of
from orchestrion.compiler.kernel.elementwise.dynamic_rows import DynamicRows
from orchestrion.compiler.kernel.elementwise.padded_lines import PaddedLines
from orchestrion.compiler.kernel.emit import THREAD
from orchestrion.compiler.kernel.legality import MAX_PRODUCTS
from orchestrion.compiler.kernel.products.operands import is_read
from orchestrion.compiler.kernel.schedule import Schedule, Step

from .panels import PANEL_LANES
from .rows import ELEMENTS_PER_WORKGROUP
from .task import Task


def transposed_elements(task: Task) -> Schedule | None:
    """A workgroup computes a block of results along rows and along the axis by which an operand is read."""
    across, count = task.body.across, task.machine.transposed_tile
    if across is None or not count or across.extent < count or count * task.code.ops > MAX_PRODUCTS:
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
    return None if size < count else task.if_legal(schedule)


def lines_of_padding(task: Task) -> Schedule | None:
    """A workgroup copies a line of a padded tensor, if neighbours that are padded alike are no whole vectors."""
    lines = task.body.lines if task.machine.panel_bytes else None
    if (
        not isinstance(lines, PaddedLines)
        or lines.inner % PANEL_LANES == 0
        or lines.width < PANEL_LANES
        or not is_read(lines.pad.operand_)
    ):
        return None
    return task.if_legal(Schedule.of(Step("bind", "grid", "workgroup"), Step("bind", "e", "local", PANEL_LANES)))


def rows_of_elements(task: Task) -> Schedule | None:
    """A workgroup computes a row of dynamic size, if an operand is read in another order than that of memory."""
    rows, lanes = task.body.lines, task.machine.simd
    if not task.machine.lanes or not isinstance(rows, DynamicRows) or not rows.divides or typical(rows.count) < lanes:
        return None
    return task.if_legal(Schedule.of(Step("bind", "grid", "workgroup"), Step("bind", "e", "local", lanes)))


def run_of_elements(task: Task) -> Schedule | None:
    """An invocation computes neighbours, if enough invocations are left and the results have whole runs of them."""
    size, count = task.machine.element_tile, count_of(task.body.results[0])
    if size < 2 or is_dynamic(count) or count < size * task.machine.units or size * task.code.ops > MAX_PRODUCTS:
        return None
    return task.if_legal(Schedule.of(Step("tile", "e", count=size), *THREAD.steps))
