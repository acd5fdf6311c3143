"""freeze-abi: executables get their binding ABI, and the workload of their dispatches becomes a fact they hold.

The bindings of an entry are its inputs, then its outputs, each with access and least length in bytes. A body loads
every input in front and stores its outputs at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.compiler.flow.layout import storage_bytes
from orchestrion.compiler.ir.attributes import ArrayAttr, DenseArray, SymbolRef, attribute_of
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.types import Attribute, TensorType, Type

from . import hl_seq, ll_seq

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options


def run(module: Module, options: Options) -> None:
    for program in module.block:
        if not isinstance(program, hl_seq.Program):
            continue
        workloads = {op.entry: op.workload for op in program.walk() if isinstance(op, hl_seq.Dispatch)}
        for op in program.body.block.ops:
            if isinstance(op, hl_seq.Executable):
                _freeze(op, workloads)
                op.erase()


def _freeze(executable: hl_seq.Executable, workloads: dict[SymbolRef, DenseArray]) -> None:
    """Entries that nobody dispatches go, and executables without entries."""
    body = Block()
    for func in executable.body.block:
        assert func.symbol is not None
        workload = workloads.get(SymbolRef(executable.sym_name.value, (func.symbol,)))
        if workload is not None:
            body.append(_entry(func, workload))
    if body.first is not None:
        frozen = ll_seq.Executable.build(sym_name=executable.sym_name, body=Region([body]), loc=executable.loc)
        Builder.before(executable).insert(frozen)


def _entry(func: Operation, workload: DenseArray) -> Operation:
    source = func.regions[0].block
    *ops, terminator = source.ops
    inputs = [argument.type for argument in source.arguments]
    outputs = [value.type for value in terminator.operands]
    block = Block([ll_seq.BINDING] * (len(inputs) + len(outputs)))
    builder = Builder(block)
    mapping: dict[Value, Value] = {}
    for argument, binding in zip(source.arguments, block.arguments, strict=False):
        with builder.at(argument.loc):
            loaded = builder.build(ll_seq.LoadInput, binding=binding, value=argument.type)
        mapping[argument] = loaded.value
    for op in ops:
        block.append(op.clone(mapping))
    for value, binding in zip(terminator.operands, block.arguments[len(inputs) :], strict=True):
        with builder.at(value.loc):
            builder.build(ll_seq.StoreOutput, value=mapping[value], binding=binding)
    with builder.at(func.loc):
        builder.build(ll_seq.End)
    bindings = ArrayAttr(tuple([_binding("read", t) for t in inputs] + [_binding("write", t) for t in outputs]))
    return ll_seq.Entry.build(
        sym_name=func.symbol, workload=workload, bindings=bindings, body=Region([block]), loc=func.loc
    )


def _binding(access: str, type: Type) -> Attribute:
    assert isinstance(type, TensorType)
    return attribute_of({"access": access, "length": storage_bytes(type)})
