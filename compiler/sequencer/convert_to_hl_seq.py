"""convert-to-hl-seq: the tensors of every program become resources.

A result that a dispatch or a fill makes, and that no other result has claimed, is external from birth; any other result
(an argument, a constant, one returned twice) is a clone. What remains is transient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.flow import util
from orchestrion.compiler.flow.layout import storage_bytes
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.types import DialectType, TensorType, Type
from orchestrion.compiler.stablehlo.func import Func, Return

from . import hl_seq

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options


def run(module: Module, options: Options) -> None:
    _refuse(module)
    for program in module.block:
        if not isinstance(program, hl_seq.Program):
            continue
        originals = program.body.block.ops
        for op in originals:
            program.body.block.append(_convert(op))
        for op in reversed(originals):
            op.erase()


def _refuse(module: Module) -> None:
    """What the flow phase makes and no later phase takes."""
    branches = [op for op in module.walk() if isinstance(op, util.BranchOp)]
    if branches:
        message = "control flow is not supported from the phase hl_seq on"
        raise CompileError(Diagnostic(message, op.loc, op.name) for op in branches)


def _convert(op: Operation) -> Operation:
    match op:
        case flow.Executable():
            body = op.body.clone()
            return hl_seq.Executable.build(sym_name=op.sym_name, body=body, loc=op.loc)
        case util.Global():
            type = _resource(op.type, "constant")
            return util.Global.build(sym_name=op.sym_name, type=type, value=op.value, loc=op.loc)
        case Func():
            return _Function(op).convert()
        case _:
            raise AssertionError(f"{op.name} in a module after the flow phase")


def _resource(type: Type, lifetime: str) -> DialectType:
    assert isinstance(type, TensorType)
    return hl_seq.resource(lifetime, storage_bytes(type))


class _Function:
    """The conversion of one function: `made` tensor -> resource."""

    def __init__(self, func: Func) -> None:
        self.func = func
        self.source = func.regions[0].block
        self.block = Block([a.type for a in self.source.arguments], [a.loc for a in self.source.arguments])
        self.builder = Builder(self.block)
        self.made: dict[Value, Value] = {}
        terminator = self.source.last
        assert terminator is not None
        self.returned = list(terminator.operands)

    def convert(self) -> Operation:
        for old, new in zip(self.source.arguments, self.block.arguments, strict=True):
            with self.builder.at(old.loc):
                imported = self.builder.build(hl_seq.Import, source=new, output=_resource(old.type, "external"))
            self.made[old] = imported.output
        *ops, terminator = self.source.ops
        for op in ops:
            with self.builder.at(op.loc):
                self._op(op)
        with self.builder.at(terminator.loc):
            self.builder.build(Return, values=self._results())
        copy = self.func.clone()
        copy.regions[0] = Region([self.block])
        copy.regions[0].owner = copy
        return copy

    def _op(self, op: Operation) -> None:
        types = [_resource(value.type, "external" if value in self.returned else "transient") for value in op.results]
        built: Operation
        match op:
            case flow.Dispatch():
                arguments = [self.made[value] for value in op.arguments]
                built = self.builder.build(
                    hl_seq.Dispatch, entry=op.entry, workload=op.workload, arguments=arguments, outputs=types
                )
            case flow.Splat():
                built = self.builder.build(hl_seq.Splat, value=op.value, output=types[0])
            case flow.Empty():
                built = self.builder.build(hl_seq.Empty, output=types[0])
            case util.GlobalLoad():
                type = _resource(op.value.type, "constant")
                built = self.builder.build(util.GlobalLoad, ref=op.ref, value=type)
            case _:
                raise AssertionError(f"{op.name} in a function after the flow phase")
        self.made.update(zip(op.results, built.results, strict=True))

    def _results(self) -> list[Value]:
        """Exports, each over an external resource of its own."""
        claimed: set[Value] = set()
        exported: list[Value] = []
        for value in self.returned:
            storage = self.made[value]
            is_made_here = isinstance(storage.defining_op, hl_seq.Dispatch | hl_seq.Splat | hl_seq.Empty)
            if storage in claimed or not is_made_here:
                type = _resource(value.type, "external")
                storage = self.builder.build(hl_seq.Clone, source=storage, output=type).output
            claimed.add(storage)
            exported.append(self.builder.build(hl_seq.Export, source=storage, output=value.type).output)
        return exported
