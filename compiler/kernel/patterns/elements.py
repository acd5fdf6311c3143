"""Schedules of elementwise bodies whose invocations compute several results."""

from orchestrion.compiler.flow.dialect import Windows
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, is_less, typical
from orchestrion.compiler.kernel.body import count_of
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.elementwise.result_lines import ResultLines
from orchestrion.compiler.kernel.emit import THREAD
from orchestrion.compiler.kernel.legality import MAX_PRODUCTS
from orchestrion.compiler.kernel.products.operands import is_read
from orchestrion.compiler.kernel.schedule import Schedule, Step

from .panels import PANEL_LANES
from .rows import ELEMENTS_PER_WORKGROUP
from .task import Task

#: vectors that can be computed in the time that a workgroup takes to begin
PER_WORKGROUP = 2
#: most results that alternate in vectors of neighbouring invocations
MOST_ALTERNATING = 4


def transposed_elements(task: Task) -> Schedule | None:
    """A workgroup computes a block of results along the last axis and an axis that is contiguous in an operand."""
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
    """A workgroup copies a line of a padded tensor, if the padded axis has inner elements that are no whole vectors."""
    lines = task.body.padding if task.machine.panel_bytes else None
    if lines is None or lines.inner % PANEL_LANES == 0 or lines.width < PANEL_LANES or not is_read(lines.pad.operand_):
        return None
    return task.if_legal(Schedule.of(Step("bind", "grid", "workgroup"), Step("bind", "e", "local", PANEL_LANES)))


def lines_of_results(task: Task) -> Schedule | None:
    """A workgroup computes neighbours in a line of results, if lines are no multiple of the vector length."""
    lines = task.body.lines
    return None if lines is None or lines.length % task.machine.simd == 0 else _parts_of_lines(task, lines)


def lines_of_windows(task: Task) -> Schedule | None:
    """A workgroup computes neighbours in a line of a depthwise convolution, whose dots share no operand elements."""
    dot, lines = task.dot, task.body.lines
    if dot is None or lines is None or not any(isinstance(op, Windows) for op in task.body.ops):
        return None
    extents = task.body.extents
    shares = is_less(1, extents["m"]) and is_less(1, extents["n"])
    return None if shares or is_less(BLOCK, extents["k"]) else _parts_of_lines(task, lines)


def _parts_of_lines(task: Task, lines: ResultLines) -> Schedule | None:
    simd = task.machine.simd
    if not task.machine.lanes or lines.in_order or not lines.is_near or lines.length < simd // 2:
        return None
    sizes = [1 << number for number in range(3, 8) if lines.replaces or 1 << number <= lines.length]
    size = min(sizes, key=lambda one: ceildiv(lines.length, one) * (ceildiv(one, simd) + PER_WORKGROUP))
    guard = None if lines.replaces or lines.length % size == 0 else Step("guard", "e", "shift")
    return task.if_legal(Schedule.of(Step("bind", "grid", "workgroup"), Step("bind", "e", "local", size), guard))


def rows_of_elements(task: Task) -> Schedule | None:
    """A workgroup computes a row of dynamic size, if an operand is not read in the order of memory."""
    rows, lanes = task.body.dynamic_rows, task.machine.simd
    if not task.machine.lanes or rows is None or not rows.divides or typical(rows.count) < lanes:
        return None
    return task.if_legal(Schedule.of(Step("bind", "grid", "workgroup"), Step("bind", "e", "local", lanes)))


def alternating_elements(task: Task) -> Schedule | None:
    """An invocation computes a short line of results, such as both parts of a complex number, if their ops differ."""
    lines = task.body.lines
    if lines is None or not task.machine.lanes or task.body.hero is not None or lines.in_order:
        return None
    count = lines.shape[-1]
    if not 1 < count <= MOST_ALTERNATING or count * task.code.ops > MAX_PRODUCTS:
        return None
    return task.if_legal(Schedule.of(Step("tile", "e", count=count), *THREAD.steps))


def run_of_elements(task: Task) -> Schedule | None:
    """An invocation computes neighbours, if enough invocations are left and the results have whole runs of them."""
    size, count = task.machine.element_tile, count_of(task.body.results[0])
    if size < 2 or is_dynamic(count) or count < size * task.machine.units or size * task.code.ops > MAX_PRODUCTS:
        return None
    return task.if_legal(Schedule.of(Step("tile", "e", count=size), *THREAD.steps))
