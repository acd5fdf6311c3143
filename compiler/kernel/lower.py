"""Lowers the tensor body of an `ll_seq.entry` to `kernel` IR, in place, by the schedules of the entry.

The entry keeps its name, bindings and binding arguments. Its body becomes scalar code for one invocation, and it gets a
`workgroup_size` and a `workload` in invocations. Each specialized schedule becomes an entry of its own behind it. An
invocation cannot choose between them, since llvmpipe executes both arms of a branch (docs/decisions/few-and-many.md,
rows.md). All ops without a lowering are reported at once.
"""

from collections.abc import Iterator

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import ArrayAttr, StringAttr, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region
from orchestrion.compiler.ir.effects import erase_dead
from orchestrion.compiler.kernel.code.predicate import add_predicate
from orchestrion.compiler.kernel.elements.refusals import diagnose
from orchestrion.compiler.sequencer.ll_seq import Entry, Specialization
from orchestrion.schema.rows import UP_TO

from .body import ABI, Body
from .choose import Choice, choose
from .emit import emit, invocations
from .legality import choice_problems, problems
from .loop_entry import emit_loop, is_loop
from .machine import Machine
from .schedule import Schedule, ScheduleError, parse


def schedules_of(entry: Operation) -> list[Schedule]:
    """The schedules of an entry: specialized ones first, the general one last. Empty if the entry has none yet.

    Raises CompileError for an attribute that is no schedule.
    """
    given = entry.get("schedules")
    try:
        return [parse(item) for item in given] if isinstance(given, ArrayAttr) else []
    except ScheduleError as error:
        raise CompileError([Diagnostic(str(error), entry.loc, entry.name)]) from None


def attribute_of(choice: Choice) -> ArrayAttr:
    """The attribute `schedules` of an entry."""
    return ArrayAttr(tuple(one.attribute for one in (*choice.specialized, choice.schedule)))


def lower_entry(entry: Operation, machine: Machine) -> None:
    """Replaces the body of an `ll_seq.entry`. An entry without schedules, as in text of `ll_seq`, gets them first.

    Raises CompileError with a diagnostic for each op that cannot be lowered, or for each reason why a schedule does not
    fit.
    """
    assert isinstance(entry, Entry)
    if is_loop(entry):
        entry.workgroup_size = dense_ints(1, 1, 1)
        _replace(entry.body, emit_loop(entry, machine))
        return erase_dead(entry)
    _refuse(diagnose(op for op in entry.body.block if not isinstance(op, ABI)))
    body = Body.of_entry(entry)
    schedules = schedules_of(entry)
    if not schedules:
        entry.schedules = attribute_of(choose(body, machine))
        schedules = schedules_of(entry)
    _refuse(Diagnostic(message, entry.loc, entry.name) for message in illegal(body, schedules, machine))
    *special, schedule = schedules
    taken = {op.symbol for op in entry.parent or ()}
    rows, last = list(entry.specialized or ()), _last_of(entry)
    for one in special:
        made = _specialized(entry, body, one, machine)
        while made.symbol in taken:
            made.sym_name = StringAttr(f"{made.symbol}_")
        taken.add(made.symbol)
        Builder.after(last).insert(made)
        erase_dead(made)
        condition, last = one.condition, made
        assert condition is not None
        row = Specialization(made.sym_name.value, body.extents[condition.dim], condition.count)
        rows.append(row.attribute)
    block = emit(body, schedule, machine, entry.loc)
    if entry.predicate is not None:
        add_predicate(block, entry.predicate.value)
    entry.workgroup_size = dense_ints(schedule.workgroup_size, 1, 1)
    entry.workload = dense_ints(invocations(body, schedule), 1, 1)
    entry.schedules = ArrayAttr((schedule.attribute,))
    if rows:
        entry.specialized = ArrayAttr(tuple(rows))
    _replace(entry.body, block)
    erase_dead(entry)


def illegal(body: Body, schedules: list[Schedule], machine: Machine) -> Iterator[str]:
    """Why the schedules of an entry do not fit its body, or else each other; empty if they do."""
    found = [(schedule, message) for schedule in schedules for message in problems(body, schedule, machine)]
    for schedule, message in found:
        yield f"the schedule {schedule} does not fit: {message}"
    if not found:
        yield from choice_problems(body, schedules)


def _refuse(diagnostics: Iterator[Diagnostic] | list[Diagnostic]) -> None:
    if found := list(diagnostics):
        raise CompileError(found)


def _last_of(entry: Entry) -> Operation:
    """The last entry that was made from an entry."""
    last: Operation = entry
    for _ in entry.specialized or ():
        last = last.next_op or last
    return last


def _specialized(entry: Entry, body: Body, schedule: Schedule, machine: Machine) -> Entry:
    """An entry for a specialized schedule."""
    condition = schedule.condition
    assert condition is not None
    suffix = "_columns" if condition.dim == "n" else ""
    return Entry.build(
        sym_name=f"{entry.sym_name.value}{UP_TO}{condition.count}{suffix}",
        workload=dense_ints(invocations(body, schedule), 1, 1),
        workgroup_size=dense_ints(schedule.workgroup_size, 1, 1),
        bindings=entry.bindings,
        dims=entry.dims,
        shared=entry.shared,
        kind=entry.kind,
        schedules=ArrayAttr((schedule.attribute,)),
        source_ops=entry.source_ops,
        binding_types=entry.binding_types,
        body=Region([emit(body, schedule, machine, entry.loc)]),
        loc=entry.loc,
    )


def _replace(body: Region, block: Block) -> None:
    for op in reversed(body.block):
        op.erase()
    body.blocks.clear()
    body.add(block)
