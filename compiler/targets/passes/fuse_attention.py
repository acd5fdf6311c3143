"""fuse-attention: makes one dispatch of a dot, of the rows that are computed from its result, and of a dot of the rows.

The dispatch of rows must alone read the result of the first dot, and the second dot alone the rows. The pass changes
programs for machines whose kernels keep the scores of a workgroup in its memory, where such a schedule fits
(`kernel/patterns/attention.py`). Sizes must be static.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.flow.dialect import Dispatch, Executable
from orchestrion.compiler.flow.groups import MAX_BINDINGS
from orchestrion.compiler.flow.kinds import ATTENTION, kind_of
from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir.attributes import SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.locations import fused
from orchestrion.compiler.ir.printer import operation_text
from orchestrion.compiler.ir.types import FunctionType
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.func import Func, Return
from orchestrion.compiler.targets.kernel_target import KernelTarget
from orchestrion.compiler.targets.target import target


def run(program: hl_seq.Program) -> None:
    made_for = target(program.profile)
    if not isinstance(made_for, KernelTarget) or not made_for.row(program.machine_name).attention_bytes:
        return
    entries = {op.sym_name.value: op for op in program.body.block if isinstance(op, Executable)}
    names, made = Names.of(program), dict[str, str]()
    for last in list(program.walk(Dispatch)):
        for dispatches in _chains(last, entries):
            arguments = _arguments(dispatches)
            func = _function(dispatches, arguments, entries)
            text = operation_text(func)
            if text not in made:
                made[text] = names.fresh(f"{last.entry.root}_attention") if _fits(func, made_for, program) else ""
                if made[text]:
                    Builder.after(entries[last.entry.root]).insert(Executable.of(func, made[text]))
            if made[text]:
                _replace(dispatches, arguments, made[text])
                break
    used = {op.entry.root for op in program.walk(Dispatch)}
    for name, executable in entries.items():
        if name not in used:
            executable.erase()


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


def _arguments(dispatches: Sequence[Dispatch]) -> list[Value]:
    """The values that dispatches read and that none of them makes, each once."""
    made = {value for op in dispatches for value in op.outputs}
    return list(dict.fromkeys(value for op in dispatches for value in op.arguments if value not in made))


def _function(dispatches: Sequence[Dispatch], arguments: Sequence[Value], entries: Mapping[str, Executable]) -> Func:
    """One function for all dispatches, of their arguments and the results of the last one."""
    block = Block([value.type for value in arguments], [value.loc for value in arguments])
    mapping: dict[Value, Value] = dict(zip(arguments, block.arguments, strict=True))
    for dispatch in dispatches:
        func = entries[dispatch.entry.root].entry
        inside: dict[Value, Value] = {
            own: mapping[value] for own, value in zip(func.entry.arguments, dispatch.arguments, strict=True)
        }
        *ops, end = func.entry.ops
        for op in ops:
            block.append(op.clone(inside))
        mapping.update(zip(dispatch.outputs, (inside[value] for value in end.operands), strict=True))
    returned = [mapping[value] for value in dispatches[-1].outputs]
    block.append(Return.build(values=returned, loc=dispatches[-1].loc))
    type = FunctionType(tuple(value.type for value in arguments), tuple(value.type for value in returned))
    kind = kind_of(block.ops[:-1], returned)
    return Func.build(sym_name="", function_type=type, kind=kind, body=Region([block]), loc=dispatches[0].loc)


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


def _replace(dispatches: Sequence[Dispatch], arguments: Sequence[Value], name: str) -> None:
    """Replaces dispatches by one, in the place of the last."""
    last = dispatches[-1]
    loc = fused(*(op.loc for op in reversed(dispatches)))
    outputs = [value.type for value in last.outputs]
    entry = SymbolRef(name, (name,))
    one = Builder.before(last).build(
        Dispatch, entry=entry, workload=last.workload, arguments=list(arguments), outputs=outputs, loc=loc
    )
    last.replace_by(one.outputs)
    for dispatch in reversed(dispatches[:-1]):
        dispatch.erase()
