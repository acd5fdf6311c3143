"""convert-to-hl-seq: turns the tensors of every program into resources.

A function result that a dispatch or a fill produces, and that no other result has claimed, is external from the start.
Any other result (an argument, a constant, a value returned twice) is a clone. All remaining values are transient.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.flow.layout import storage_bytes
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Operation, Region, Value
from orchestrion.compiler.ir.types import DialectType, TensorType, Type
from orchestrion.compiler.stablehlo.ops.func import Func, Return

from . import hl_seq


def run(program: hl_seq.Program) -> None:
    variables = program.body.block.of(util.Global)
    lifetimes = {op.sym_name.value: "constant" if op.mutable is None else "variable" for op in variables}
    for variable in variables:
        variable.type = _resource(variable.type, lifetimes[variable.sym_name.value])
    for op in program.body.block.ops:
        if isinstance(op, util.Initializer):
            _Body(op.body, lifetimes, ()).convert()
        elif isinstance(op, Func):
            _Body(op.body, lifetimes, op.function_type.results).convert()


def _resource(type: Type, lifetime: str) -> DialectType:
    assert isinstance(type, TensorType)
    return hl_seq.resource(lifetime, storage_bytes(type))


class _Body:
    """Converts one function or initializer in place; `results`: the types of the function's results."""

    def __init__(self, body: Region, lifetimes: dict[str, str], results: Sequence[Type]) -> None:
        self.body = body
        self.lifetimes = lifetimes
        self.results = results
        returns = [block.last for block in body.blocks if isinstance(block.last, Return)]
        self.returned = {value for op in returns for value in op.operands}
        self.claimed: set[Value] = set()

    def convert(self) -> None:
        ops = [op for block in self.body.blocks for op in block]
        self._imports()
        for block in self.body.blocks[1:]:
            for argument in block.arguments:
                if isinstance(argument.type, TensorType):  # host values keep their types
                    argument.type = _resource(argument.type, "transient")
        for op in ops:
            self._op(op)

    def _imports(self) -> None:
        entry = self.body.blocks[0]
        builder = Builder(entry, entry.first)
        for argument in entry.arguments:
            with builder.at(argument.loc):
                made = builder.build(hl_seq.Import, source=argument, output=_resource(argument.type, "external"))
            argument.replace_by(made.output)
            made.set_operand(0, argument)

    def _op(self, op: Operation) -> None:
        match op:
            case flow.Dispatch() | flow.Splat() | flow.Empty():
                for value in op.results:
                    value.type = _resource(value.type, "external" if value in self.returned else "transient")
            case util.GlobalLoad():
                op.value.type = _resource(op.value.type, self.lifetimes[op.ref.root])
            case Return():
                op.set_operands(self._exports(op))
            case util.BranchOp():
                self._pass_on(op)
            case _:
                pass  # ops of util: stores, host values

    def _pass_on(self, branch: util.BranchOp) -> None:
        """Branch operands become transient resources that the function owns; others are cloned."""
        for index in range(branch.choosing, len(branch.operands)):
            value = branch.operands[index]
            if hl_seq.is_resource(value.type) and hl_seq.lifetime_of(value.type) != "transient":
                type = hl_seq.resource("transient", hl_seq.size_of(value.type))
                copy = Builder.before(branch).build(hl_seq.Clone, source=value, output=type)
                branch.set_operand(index, copy.output)

    def _exports(self, op: Return) -> list[Value]:
        """Exports each result over an external resource that no other result uses."""
        builder, exported = Builder.before(op), list[Value]()
        for storage, type in zip(op.operands, self.results, strict=True):
            is_made_here = isinstance(storage.defining_op, flow.Dispatch | flow.Splat | flow.Empty)
            if storage in self.claimed or not is_made_here:
                output = _resource(type, "external")
                storage = builder.build(hl_seq.Clone, source=storage, output=output).output
            self.claimed.add(storage)
            exported.append(builder.build(hl_seq.Export, source=storage, output=type).output)
        return exported
