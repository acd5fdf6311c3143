"""fuse-attention: makes one dispatch of a dot, of the rows that are computed from its result, and of a dot of the rows.

The dispatch of rows must alone read the result of the first dot, and the second dot alone the rows. The pass changes
programs for machines whose kernels keep the scores of a workgroup in its memory, where such a schedule fits
(`kernel/patterns/attention.py`). Sizes must be static.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.flow.deduplicate_executables import erase_unused
from orchestrion.compiler.flow.dialect import Dispatch, DispatchRegion, Executable, Yield
from orchestrion.compiler.flow.groups import MAX_BINDINGS
from orchestrion.compiler.flow.kinds import ATTENTION
from orchestrion.compiler.flow.outline_dispatch_regions import SharedExecutables, executable_of, inlined
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.cse import structure
from orchestrion.compiler.ir.locations import fused
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.kernel_target import KernelTarget
from orchestrion.compiler.targets.target import target


def run(program: hl_seq.Program) -> None:
    made_for = target(program.profile)
    if not isinstance(made_for, KernelTarget) or not made_for.row(program.machine_name).attention_bytes:
        return
    entries = {op.sym_name.value: op for op in program.body.block if isinstance(op, Executable)}
    executables, fitting = SharedExecutables(program), dict[Hashable, bool]()
    for last in list(program.walk(Dispatch)):
        for dispatches in _chains(last, entries):
            region = _region(dispatches, entries)
            func = executable_of(region, "attention").entry
            key = structure(func)
            if key not in fitting:
                fitting[key] = _fits(func, made_for, program)
            if fitting[key]:
                last.replace_by(region.outputs)
                for dispatch in reversed(dispatches[:-1]):
                    dispatch.erase()
                builder = Builder.after(entries[last.entry.root])
                made = executables.outline(region, f"{last.entry.root}_attention", builder)
                made.loc = fused(*(op.loc for op in reversed(dispatches)))
                break
            region.erase()
    erase_unused(program)


def _chains(last: Dispatch, entries: Mapping[str, Executable]) -> Iterator[tuple[Dispatch, Dispatch, Dispatch]]:
    """The dispatches that may be an attention, of which `last` is the last one."""
    if not _computes(last, "contraction", entries):
        return
    for rows in _only_read(last, "rows", entries):
        for first in _only_read(rows, "contraction", entries):
            yield first, rows, last


def _only_read(reader: Dispatch, kind: str, entries: Mapping[str, Executable]) -> Iterator[Dispatch]:
    """The dispatches of a kind whose one result `reader` alone reads, once."""
    for value in reader.arguments:
        maker = value.defining_op
        if isinstance(maker, Dispatch) and len(value.uses) == 1 and maker.parent is reader.parent:
            if _computes(maker, kind, entries):
                yield maker


def _computes(dispatch: Dispatch, kind: str, entries: Mapping[str, Executable]) -> bool:
    """Whether a dispatch computes one result, of static shape and in memory of its own, by an entry of a kind."""
    func = entries[dispatch.entry.root].entry if dispatch.entry.root in entries else None
    if func is None or func.kind is None or func.kind.value != kind or func.dims is not None:
        return False
    return dispatch.tied is None and len(dispatch.outputs) == 1


def _region(dispatches: Sequence[Dispatch], entries: Mapping[str, Executable]) -> DispatchRegion:
    """The ops of all dispatches, in front of the last one, whose results they give."""
    block, made = Block(), dict[Value, Value]()
    for dispatch in dispatches:
        given = [made.get(value, value) for value in dispatch.arguments]
        results = inlined(entries[dispatch.entry.root].entry, given, block)
        made.update(zip(dispatch.outputs, results, strict=True))
    last = dispatches[-1]
    block.append(Yield.build(values=[made[value] for value in last.outputs], loc=last.loc))
    outputs, loc = [value.type for value in last.outputs], dispatches[0].loc
    return Builder.before(last).build(DispatchRegion, body=Region([block]), outputs=outputs, loc=loc)


def _fits(func: Func, made_for: KernelTarget, program: hl_seq.Program) -> bool:
    """Whether a function is an attention that has a schedule."""
    if func.kind is None or func.kind.value != ATTENTION:
        return False
    if len(func.entry.arguments) + len(func.function_type.results) > MAX_BINDINGS:
        return False
    try:
        made_for.choose(Body.of_function(func, ()), program.machine_name)
    except CompileError:
        return False
    return True
