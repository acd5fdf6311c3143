"""share-bindings: lets bindings of an entry share a buffer of the device, where the target's devices bind few of them.

Bindings that lie in one buffer in every dispatch of the entry (the arena, a pool of constants) become one binding over
the whole buffer, and their offsets become parameters (`Entry.shared`, `Dispatch.spans`). If an entry then still binds
too many buffers, the smallest operands are copied beside each other before a dispatch, and results back after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.errors import Diagnostic, TargetsError
from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Size, is_dynamic, typical
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.options import Options
from orchestrion.compiler.profiles import known_profile

from . import hl_seq, ll_seq
from .arena import align

LABEL: Final = "operands"

#: Sets of bindings of an entry.
Groups = list[list[int]]
#: Function -> its memory of static size for operands that are copied beside each other.
Memory = dict[Operation, ll_seq.Allocate]


def allocation_limit(program: hl_seq.Program, options: Options) -> int:
    """Bytes above which an arena or a pool of constants is split: a binding that is shared covers all of one."""
    limits = known_profile(program.profile)
    shares = limits.max_bindings is not None
    return min(options.max_allocation, limits.max_binding_bytes) if shares else options.max_allocation


def run(program: hl_seq.Program) -> None:
    """Raises TargetsError for an entry whose operands do not fit one binding beside each other."""
    limits = known_profile(program.profile)
    if limits.max_bindings is None:
        return
    tables = SymbolTables()
    sites: dict[ll_seq.Entry, list[ll_seq.Dispatch]] = {}
    for op in program.walk():
        if isinstance(op, ll_seq.Dispatch) and len(op.bindings) > limits.max_bindings:
            entry = tables.lookup(op, op.entry)
            assert isinstance(entry, ll_seq.Entry)
            sites.setdefault(entry, []).append(op)
    memory: Memory = {}
    for entry, dispatches in sites.items():
        _share(entry, dispatches, limits.max_bindings, limits.max_binding_bytes, program.profile, memory)


def _share(
    entry: ll_seq.Entry,
    dispatches: Sequence[ll_seq.Dispatch],
    most: int,
    most_bytes: int,
    profile: str,
    memory: Memory,
) -> None:
    lengths = [ll_seq.length_of(item) for item in entry.bindings]
    groups = _groups(dispatches, lengths)
    if len(groups) > most:
        groups.sort(key=lambda group: -sum(typical(lengths[index]) for index in group))
        staged = sorted(index for group in groups[most - 1 :] for index in group)
        size = sum(align(lengths[index]) for index in staged)
        if not is_dynamic(size) and size > most_bytes:
            text = (
                f"binds {len(groups)} buffers, a device of target {profile} has {most}; {size} bytes of them do not "
                f"fit beside each other into one of {most_bytes}: smaller batches need less"
            )
            raise TargetsError({profile: (Diagnostic(text, entry.loc, entry.name),)})
        groups = [*groups[: most - 1], staged]
        for dispatch in dispatches:
            _stage(dispatch, entry, staged, lengths, _memory_of(memory, dispatch, size))
    _set_shared(entry, dispatches, groups, lengths)


def share(entry: ll_seq.Entry, dispatches: Sequence[ll_seq.Dispatch]) -> None:
    """Lets the bindings of an entry that lie in one buffer in all its dispatches share one of the device."""
    lengths = [ll_seq.length_of(item) for item in entry.bindings]
    _set_shared(entry, dispatches, _groups(dispatches, lengths), lengths)


def _set_shared(
    entry: ll_seq.Entry, dispatches: Sequence[ll_seq.Dispatch], groups: Groups, lengths: Sequence[Size]
) -> None:
    groups.sort()
    number_of = {index: number for number, group in enumerate(groups) for index in group}
    entry.shared = dense_ints(*(number_of[index] for index in range(len(lengths))))
    for dispatch in dispatches:
        spans = [_span(dispatch, group, lengths) for group in groups]
        assert None not in spans, "the bytes of a buffer that bindings share are known"
        dispatch.spans = dense_ints(*(span for span in spans if span is not None))


def _groups(dispatches: Sequence[ll_seq.Dispatch], lengths: Sequence[Size]) -> Groups:
    """The bindings that lie in one buffer in every dispatch, if the bytes of it that they need are known."""
    found: dict[tuple[Value, ...], list[int]] = {}
    for index in range(len(lengths)):
        found.setdefault(tuple(dispatch.bindings[index] for dispatch in dispatches), []).append(index)
    groups: Groups = []
    for group in found.values():
        known = len(group) == 1 or all(_span(dispatch, group, lengths) is not None for dispatch in dispatches)
        groups += [group] if known else [[index] for index in group]
    return groups


def _span(dispatch: ll_seq.Dispatch, group: Sequence[int], lengths: Sequence[Size]) -> Size | None:
    """The bytes from the start of their buffer that a group of bindings needs; None if only a call knows the largest of
    several. All of a buffer that the program makes.
    """
    memory = dispatch.bindings[group[0]]
    made = memory.defining_op
    if isinstance(made, ll_seq.Allocate):
        return made.size
    if isinstance(made, ll_seq.Constant):
        return made.size.value
    ends = {dispatch.offsets.sizes[index] + lengths[index] for index in group}
    return max(ends) if len(ends) == 1 or not is_dynamic(*ends) else None


def _stage(
    dispatch: ll_seq.Dispatch, entry: ll_seq.Entry, staged: Sequence[int], lengths: Sequence[Size], memory: Value
) -> None:
    """Lays operands of a dispatch beside each other in `memory`: copies them before it, and results back after it."""
    before, after = Builder.before(dispatch), Builder.after(dispatch)
    offsets = list(dispatch.offsets.sizes)
    end: Size = 0
    for index in staged:
        access = ll_seq.access_of(entry.bindings.items[index])
        own, copy = (dispatch.bindings[index], offsets[index]), (memory, end)
        if "read" in access:
            _copy(before, own, copy, lengths[index])
            before.build(ll_seq.Barrier)
        if "write" in access:
            after.build(ll_seq.Barrier)
            _copy(after, copy, own, lengths[index])
        dispatch.set_operand(1 + index, memory)
        offsets[index] = end
        end += align(lengths[index])
    dispatch.offsets = dense_ints(*offsets)


def _copy(builder: Builder, source: tuple[Value, Size], goal: tuple[Value, Size], length: Size) -> None:
    builder.build(
        ll_seq.Copy, source=source[0], source_offset=source[1], target=goal[0], target_offset=goal[1], length=length
    )


def _memory_of(made: Memory, dispatch: ll_seq.Dispatch, size: Size) -> Value:
    """Memory of this size for the operands of a dispatch; dispatches of a function share that of static size."""
    record = next(op for op in dispatch.enclosing() if isinstance(op, ll_seq.Record))
    top = next(op for op in dispatch.enclosing() if isinstance(op, ll_seq.RunLoop | ll_seq.Instance))
    known = made.get(top)
    if known is not None and not is_dynamic(size):
        known.size = max(known.size, size)
        return known.output
    first = top.body.blocks[0].first if isinstance(top, ll_seq.RunLoop) else record
    assert first is not None and first.parent is not None
    front = Builder(first.parent, first, dispatch.loc)
    lifetime = "transient" if isinstance(top, ll_seq.RunLoop) else "setup"
    allocated = front.build(ll_seq.Allocate, label=LABEL, size=size, lifetime=lifetime, output=ll_seq.BUFFER)
    if not is_dynamic(size):
        made[top] = allocated
    return allocated.output
