"""Converts a function, setup function or initializer of ll_seq to instructions.

Each block becomes one block, in an order in which dominators come first, whatever the order of the text; unreachable
blocks are dropped. Only `vm.br` passes arguments, so each edge of a conditional branch with arguments gets a block of
its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import StringAttr
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.dims import is_dynamic
from orchestrion.compiler.ir.dominance import reachable
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.ops.function_dims import dim_definitions
from orchestrion.schema.dtypes import BY_NAME

from .emitter import Emitter
from .recording import RecordingEmitter
from .size_emitter import SizeEmitter


@dataclass
class BodyConverter:
    """Converts the body of `source`; `constants` maps constant ops to their ordinals."""

    source: Operation
    imports: set[str]
    executables: Mapping[str, ll_seq.Executable]
    constants: Mapping[Operation, int]
    values: dict[Value, Value] = field(default_factory=dict, init=False)
    blocks: dict[Block, Block] = field(default_factory=dict, init=False)
    #: source block -> the blocks of its outgoing edges, placed after its own
    ways: dict[Block, list[Block]] = field(default_factory=dict, init=False)
    #: those of the present block
    emitter: Emitter = field(init=False)
    sizes: SizeEmitter = field(init=False)

    def convert(self) -> Region:
        """The region of the `vm.func`."""
        body = self.source.regions[0]
        order = reachable(body)
        for block in order:
            made = self.blocks[block] = Block([a.type for a in block.arguments], [a.loc for a in block.arguments])
            self.values.update(zip(block.arguments, made.arguments, strict=True))
        for block in order:
            self.emitter = Emitter(self.blocks[block], self.imports, self.source.loc)
            self.sizes = self._sizes(self.blocks[block])
            for op in block:
                with self.emitter.builder.at(op.loc):
                    self._op(op)
        reached = [block for block in body.blocks if block in self.blocks]
        return Region([made for block in reached for made in (self.blocks[block], *self.ways.get(block, ()))])

    def _sizes(self, block: Block) -> SizeEmitter:
        """The emitter of sizes for a block: a setup function has one block and symbolic sizes; others are static."""
        if not isinstance(self.source, ll_seq.SetupFunc):
            return SizeEmitter(self.emitter, {}, {})
        names = [name.value for name in self.source.sizes if isinstance(name, StringAttr)]
        symbols = {one.name: value for one, value in dim_definitions(self.source.dims) if value is not None}
        return SizeEmitter(self.emitter, dict(zip(names, block.arguments, strict=True)), symbols)

    def _op(self, op: Operation) -> None:  # noqa: C901 one case per op
        emitter, values = self.emitter, self.values
        match op:
            case ll_seq.Check():
                values[op.output] = emitter.value("hal.view.check", values[op.view], *_type_operands(op.type))
            case ll_seq.Destination():
                operands = _type_operands(op.type, self._values(op.sizes))
                values[op.output] = emitter.value("hal.view.destination", values[op.view], *operands)
            case ll_seq.Measure():
                values[op.output] = emitter.value("hal.view.dim", values[op.view], op.axis.value)
            case ll_seq.Size():
                values[op.output] = self.sizes.value(op.value)
            case ll_seq.CallSetup():
                types = [value.type for value in op.outputs]
                made = emitter.op("call.cached", callee=op.callee, arguments=self._values(op.sizes), outputs=types)
                values.update(zip(op.outputs, made.results, strict=True))
            case util.DimValue():
                values[op.out] = self.sizes.word(op.size)
            case util.Assert():
                self.sizes.require(op)
            case ll_seq.Storage():
                values[op.output] = emitter.value("hal.view.buffer", values[op.view])
            case ll_seq.Enqueue():
                emitter.call("hal.enqueue", *self._values(op.operands))
            case ll_seq.Execute():
                emitter.call("hal.execute", *self._values(op.operands))
            case ll_seq.ImportedCall():
                self._imported_call(op)
            case ll_seq.Read():
                size = ll_seq.READ_BYTES[op.type.value]
                values[op.output] = emitter.value("hal.read", values[op.buffer], op.offset.value, size)
            case ll_seq.CacheLoad():
                values[op.output] = emitter.value("hal.cache.load", values[op.buffer], op.key.value)
            case ll_seq.CacheSave():
                emitter.call("hal.cache.save", values[op.buffer], op.key.value)
            case ll_seq.CreateExecutable():
                ordinal = list(self.executables).index(op.executable.root)
                values[op.output] = emitter.value("hal.executable.create", ordinal)
            case ll_seq.Constant():
                values[op.output] = emitter.value("hal.constant", self.constants[op], 0, op.size.value)
            case ll_seq.Allocate():
                values[op.output] = emitter.value("hal.allocate", self.sizes.number(op.size))
            case ll_seq.Record():
                commands = RecordingEmitter(emitter, values, self.executables, self.sizes)
                values[op.output] = commands.emit(op)
            case util.Constant():
                values[op.out] = emitter.constant("i32", op.value.value)
            case util.Add():
                values[op.out] = emitter.op("i32.add", a=values[op.lhs], b=values[op.rhs], d=I32).result
            case util.CompareLt():
                values[op.out] = emitter.op("i32.lt_s", a=values[op.lhs], b=values[op.rhs], d=I32).result
            case util.GlobalLoad():
                values[op.value] = emitter.load(op.ref.root, op.value.type)
            case util.GlobalStore():
                emitter.store(op.ref.root, values[op.value])
            case util.Return() | ll_seq.Return():
                emitter.op("return", values=self._values(op.operands))
            case util.BranchOp():
                self._branch(op)
            case _:
                raise AssertionError(f"{op.name} in a function after the executables phase")

    def _values(self, values: Sequence[Value]) -> list[Value]:
        return [self.values[value] for value in values]

    def _imported_call(self, op: ll_seq.ImportedCall) -> None:
        types = (*op.function_type.inputs, *op.function_type.results)
        views = [
            self.emitter.value("hal.view.create", self.values[buffer], 0, *_type_operands(type))
            for buffer, type in zip(op.buffers, types, strict=True)
            if isinstance(type, TensorType)
        ]
        self.emitter.call_function(op.callee.value, views)

    def _branch(self, op: util.BranchOp) -> None:
        emitter = self.emitter
        match op:
            case util.Branch():
                emitter.op("br", to=self.blocks[op.to], arguments=self._values(op.operands))
            case util.CondBranch():
                then, otherwise = self._targets(op)
                emitter.op("br_if", a=self.values[op.condition], then=then, **{"else": otherwise})
            case util.Switch():
                *table, last = self._targets(op)
                emitter.op("br_table", a=self.values[op.index], table=table, **{"else": last})
            case _:
                raise AssertionError(f"{op.name} in a function after the executables phase")

    def _targets(self, op: util.BranchOp) -> list[Block]:
        """The targets of a conditional branch: edges with arguments lead through a block of their own."""
        assert op.parent is not None
        ways = self.ways.setdefault(op.parent, [])
        found = []
        for edge in op.edges:
            target = self.blocks[edge.target]
            if edge.values:
                way = Block()
                Emitter(way, self.imports, op.loc).op("br", to=target, arguments=self._values(edge.values))
                ways.append(way)
                target = way
            found.append(target)
        return found


def _type_operands(type: TensorType, sizes: Sequence[Value] = ()) -> list[Value | int]:
    """Element type code and dimensions, as the `hal.view` functions take them. `sizes` are the symbolic dimensions, in
    order; a check leaves them open.
    """
    given = iter(sizes)
    dims = [next(given, -1) if is_dynamic(size) else size for size in type.shape]
    return [BY_NAME[str(type.element)].code, *dims]
