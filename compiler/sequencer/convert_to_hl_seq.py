"""convert-to-hl-seq: turns the tensors of every program into resources.

A function result that a dispatch or a fill produces, and that no other result has claimed, is external from the start.
Any other result (an argument, a constant, a value returned twice) is a clone. All remaining values are transient.
Blocks stay; their arguments become resources.
"""

from __future__ import annotations

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.flow.layout import storage_bytes
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.types import DialectType, TensorType, Type
from orchestrion.compiler.stablehlo.ops.func import Func, Return

from . import hl_seq


def run(program: hl_seq.Program) -> None:
    originals = program.body.block.ops
    lifetimes = {op.sym_name.value: _lifetime(op) for op in originals if isinstance(op, util.Global)}
    for op in originals:
        program.body.block.append(_convert(op, lifetimes))
    for op in reversed(originals):
        op.erase()


def _lifetime(variable: util.Global) -> str:
    return "constant" if variable.mutable is None else "variable"


def _convert(op: Operation, lifetimes: dict[str, str]) -> Operation:
    match op:
        case flow.Executable():
            body = op.body.clone()
            return hl_seq.Executable.build(sym_name=op.sym_name, body=body, loc=op.loc)
        case util.Global():
            type = _resource(op.type, _lifetime(op))
            return util.Global.build(
                sym_name=op.sym_name, type=type, mutable=op.mutable, value=op.value, parameter=op.parameter, loc=op.loc
            )
        case util.Initializer():
            return util.Initializer.build(kind=op.kind, body=_Body(op.body, lifetimes).convert(), loc=op.loc)
        case Func():
            copy = op.clone()
            copy.regions[0] = _Body(op.body, lifetimes).convert()
            copy.regions[0].owner = copy
            return copy
        case _:
            raise AssertionError(f"{op.name} in a module after the flow phase")


def _resource(type: Type, lifetime: str) -> DialectType:
    assert isinstance(type, TensorType)
    return hl_seq.resource(lifetime, storage_bytes(type))


class _Body:
    """Converts one function or initializer; `made` maps each tensor to its resource."""

    def __init__(self, source: Region, lifetimes: dict[str, str]) -> None:
        self.lifetimes = lifetimes
        self.source = source
        self.blocks = {block: self._block(block) for block in source.blocks}
        self.builder = Builder(self.blocks[source.blocks[0]])
        self.made: dict[Value, Value] = {}
        returns = [block.last for block in source.blocks if isinstance(block.last, Return)]
        self.returned = {value for op in returns for value in op.operands}
        self.claimed: set[Value] = set()

    def _block(self, block: Block) -> Block:
        is_entry = block is self.source.blocks[0]
        types = [a.type if is_entry else _block_argument_type(a.type) for a in block.arguments]
        return Block(types, [a.loc for a in block.arguments])

    def convert(self) -> Region:
        self._imports()
        for source, block in self.blocks.items():
            self.builder.block = block
            for op in source:
                with self.builder.at(op.loc):
                    self._op(op)
        return Region(self.blocks.values())

    def _imports(self) -> None:
        entry, *others = self.blocks.items()
        for old, new in zip(entry[0].arguments, entry[1].arguments, strict=True):
            with self.builder.at(old.loc):
                imported = self.builder.build(hl_seq.Import, source=new, output=_resource(old.type, "external"))
            self.made[old] = imported.output
        for old_block, new_block in others:
            self.made.update(zip(old_block.arguments, new_block.arguments, strict=True))

    def _op(self, op: Operation) -> None:
        built: Operation
        match op:
            case flow.Dispatch():
                built = self.builder.build(
                    hl_seq.Dispatch,
                    entry=op.entry,
                    workload=op.workload,
                    tied=op.get("tied"),
                    in_place=op.get("in_place"),
                    arguments=[self.made[value] for value in op.arguments],
                    outputs=self._types(op),
                )
            case flow.Splat():
                built = self.builder.build(hl_seq.Splat, value=op.value, output=self._types(op)[0])
            case flow.Empty():
                built = self.builder.build(hl_seq.Empty, output=self._types(op)[0])
            case util.GlobalLoad():
                type = _resource(op.value.type, self.lifetimes[op.ref.root])
                built = self.builder.build(util.GlobalLoad, ref=op.ref, value=type)
            case Return():
                built = self.builder.build(Return, values=self._results(op))
            case util.BranchOp():
                built = self.builder.insert(op.clone(dict(self.made), self.blocks))
                assert isinstance(built, util.BranchOp)
                self._pass_on(built)
            case _:  # ops of util: stores, host values
                built = self.builder.insert(op.clone(dict(self.made), self.blocks))
        self.made.update(zip(op.results, built.results, strict=True))

    def _pass_on(self, branch: util.BranchOp) -> None:
        """Branch operands become transient resources that the function owns; others are cloned."""
        for index in range(branch.choosing, len(branch.operands)):
            value = branch.operands[index]
            if hl_seq.is_resource(value.type) and hl_seq.lifetime_of(value.type) != "transient":
                type = hl_seq.resource("transient", hl_seq.size_of(value.type))
                copy = Builder.before(branch).build(hl_seq.Clone, source=value, output=type)
                branch.set_operand(index, copy.output)

    def _types(self, op: Operation) -> list[Type]:
        return [_resource(value.type, "external" if value in self.returned else "transient") for value in op.results]

    def _results(self, op: Return) -> list[Value]:
        """Exports each result over an external resource that no other result uses."""
        exported: list[Value] = []
        for value in op.operands:
            storage = self.made[value]
            is_made_here = isinstance(storage.defining_op, hl_seq.Dispatch | hl_seq.Splat | hl_seq.Empty)
            if storage in self.claimed or not is_made_here:
                type = _resource(value.type, "external")
                storage = self.builder.build(hl_seq.Clone, source=storage, output=type).output
            self.claimed.add(storage)
            exported.append(self.builder.build(hl_seq.Export, source=storage, output=value.type).output)
        return exported


def _block_argument_type(type: Type) -> Type:
    """Type of a block argument; host values keep their type."""
    return _resource(type, "transient") if isinstance(type, TensorType) else type
