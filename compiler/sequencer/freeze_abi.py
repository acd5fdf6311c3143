"""freeze-abi: fixes the binding ABI of executables, and moves the workload from dispatches to entries.

The bindings of an entry are its inputs, then its outputs, each with an access and a least length in bytes, which may be
an expression over the entry's symbols. A body loads all inputs first and stores its outputs at the end. An output that
is tied to an input shares its binding, which then has access `readwrite`.
"""

from __future__ import annotations

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.flow.layout import storage_bytes
from orchestrion.compiler.ir.attributes import ArrayAttr, SymbolRef, attribute_of
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.types import Attribute, TensorType, Type
from orchestrion.compiler.stablehlo.ops.func import Func

from . import hl_seq, ll_seq


def run(program: hl_seq.Program) -> None:
    dispatches = {op.entry: op for op in program.walk(flow.Dispatch)}
    for op in program.body.block.of(flow.Executable):
        _freeze(op, dispatches)
        op.erase()


def _freeze(executable: flow.Executable, dispatches: dict[SymbolRef, flow.Dispatch]) -> None:
    """Erases entries that no dispatch names, and executables without entries."""
    body = Block()
    for func in executable.body.block:
        assert isinstance(func, Func) and func.symbol is not None
        dispatch = dispatches.get(SymbolRef(executable.sym_name.value, (func.symbol,)))
        if dispatch is not None:
            body.append(entry_of(func, dispatch))
    if body.first is not None:
        frozen = ll_seq.Executable.build(sym_name=executable.sym_name, body=Region([body]), loc=executable.loc)
        Builder.before(executable).insert(frozen)


def entry_of(func: Func, dispatch: flow.Dispatch) -> ll_seq.Entry:
    """The entry that a function becomes; the function stays as it is."""
    source = func.regions[0].block
    *ops, terminator = source.ops
    tied = dispatch.tied.ints if dispatch.tied is not None else (-1,) * len(terminator.operands)
    types = [argument.type for argument in source.arguments]
    access = ["readwrite" if index in tied else "read" for index in range(len(types))]
    place = []
    for value, index in zip(terminator.operands, tied, strict=True):
        place.append(len(types) if index < 0 else index)
        if index < 0:
            types.append(value.type)
            access.append("write")
    block = Block([ll_seq.BINDING] * len(types))
    builder = Builder(block)
    mapping: dict[Value, Value] = {}
    for argument, binding in zip(source.arguments, block.arguments, strict=False):
        with builder.at(argument.loc):
            loaded = builder.build(ll_seq.LoadInput, binding=binding, value=argument.type)
        mapping[argument] = loaded.value
    for op in ops:
        block.append(op.clone(mapping))
    for value, index in zip(terminator.operands, place, strict=True):
        with builder.at(value.loc):
            builder.build(ll_seq.StoreOutput, value=mapping[value], binding=block.arguments[index])
    with builder.at(func.loc):
        builder.build(ll_seq.End)
    return ll_seq.Entry.build(
        sym_name=func.symbol,
        workload=dispatch.workload,
        dims=func.dims,
        kind=func.kind,
        schedules=func.schedules,
        bindings=ArrayAttr(tuple(map(_binding, access, types))),
        body=Region([block]),
        loc=func.loc,
    )


def _binding(access: str, type: Type) -> Attribute:
    assert isinstance(type, TensorType)
    return attribute_of({"access": access, "length": storage_bytes(type)})
