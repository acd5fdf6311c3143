"""Emits the run loop of a function: the work of one request, and everything that it needs, which later passes hoist.

Each block of the function becomes one block. The header of a loop with a state takes the state's two buffers as
arguments, `now` and `next`; the back edge passes them swapped. Host values, such as loop counters, stay as they are. In
functions with dynamic shapes, arguments are checked, then their sizes are measured, then the function's conditions on
them are asserted.
"""

from __future__ import annotations

from typing import Any

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.flow.blocks import set_values
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.dims import Size, is_dynamic
from orchestrion.compiler.ir.types import I32, I64, FunctionType, TensorType
from orchestrion.compiler.stablehlo.ops.func import Func, Return, result_aliases, types_for_callers

from . import hl_seq, ll_seq
from .arena import align
from .buffer_assignment import EXTERNAL_KINDS, BufferAssignment, Placement
from .command_emitter import CommandEmitter, Constants, pending_on_entry, record
from .size_assertions import measured_axes, size_assertions

#: Bytes of a branch's selector -> the type by which it is read.
READ_KINDS = {size: kind for kind, size in ll_seq.READ_BYTES.items()}


class RunLoopEmitter:
    """Emits the run loop of one function."""

    def __init__(self, func: Func, constants: Constants, variables: dict[str, Value]) -> None:
        self.func = func
        signature = func.properties["function_type"]
        assert isinstance(signature, FunctionType)
        self.signature = signature
        self.buffers = BufferAssignment(func)
        assert not self.buffers.missing_copies, "a copy is missing"
        self.sources = func.body.blocks
        self.blocks = {block: Block() for block in self.sources}
        self.entry = self.blocks[self.sources[0]]
        self.builder = Builder(self.entry, loc=func.loc)
        self.commands = CommandEmitter(self.buffers, self.builder, constants, variables, "transient")
        self.numbers: dict[Value, Value] = {}
        self.sizes: dict[Size, Value] = {}
        self.results: list[Value] = []

    def emit(self) -> ll_seq.RunLoop:
        """Emits the `run_loop` op of the function."""
        for _ in (*self.signature.inputs, *self.signature.results):
            self.entry.add_argument(ll_seq.VIEW)
        self._asserts()
        self.commands.prepare()
        self._states()
        self._checks()
        commands = {block: self.commands.emit(block) for block in self.sources}
        onward = {block: block.end.successors for block in self.sources if not self._waits(block)}
        pending = pending_on_entry(onward, [block for block in onward if commands[block]])
        for source, block in self.blocks.items():
            self.builder.block = block
            self._block(source, commands[source], source in pending)
        return ll_seq.RunLoop.build(
            sym_name=self.func.sym_name,
            signature=self.signature,
            arg_attrs=self.func.arg_attrs,
            res_attrs=self.func.res_attrs,
            dims=self.func.dims,
            body=Region(self.blocks.values()),
            attributes=self.func.attributes,
            loc=self.func.loc,
        )

    def _asserts(self) -> None:
        """Asserts the conditions on the sizes of a call, those of the program itself first."""
        if self.func.dims is None:
            return
        for op in self.sources[0]:
            if isinstance(op, util.Assert):
                self.builder.insert(op.clone())
        for demand in size_assertions(self.signature, self.func.dims, self._computed()):
            self.builder.insert(demand)

    def _computed(self) -> list[Operation]:
        """The ops in the entries that the function dispatches."""
        program = self.func.parent_op
        assert program is not None
        used = {op.entry for block in self.sources for op in block.of(flow.Dispatch)}
        executables = program.regions[0].block.of(ll_seq.Executable)
        entries = [entry for op in executables for ref, entry in op.entries() if ref in used]
        return [op for entry in entries for op in entry.walk()]

    def _states(self) -> None:
        """Adds block arguments; loop headers with a state take its two buffers."""
        for source, block in list(self.blocks.items())[1:]:
            sizes = self._layout(source)
            if sizes != 0:
                first, second = self._state(sizes), self._state(sizes)
                self.commands.states[source] = first
                self.commands.made["second", source] = second
                for kind in ("now", "next"):
                    self.commands.add_slot_buffer(Placement(kind, source), block.add_argument(ll_seq.BUFFER))
            for argument in source.arguments:
                if not hl_seq.is_resource(argument.type):
                    self.numbers[argument] = block.add_argument(argument.type)

    def _state(self, size: Size) -> Value:
        label = f"{self.func.sym_name.value}_state"
        return self.builder.build(
            ll_seq.Allocate, label=label, size=size, lifetime="state", output=ll_seq.BUFFER
        ).output  # fmt: skip

    def _layout(self, header: Block) -> Size:
        """Assigns offsets to the values of a loop's state, the same to a value and to its successor; returns the bytes.

        Values of static size go first: the host reads predicates at static offsets.
        """
        end: Size = 0
        groups = self.buffers.group
        for argument in sorted(header.arguments, key=lambda a: a in groups and is_dynamic(groups[a].size)):
            following = self.buffers.next.get(argument)
            if following is not None:
                for value in (argument, following):
                    self.commands.offsets[id(self.buffers.group[value])] = end
                end += align(self.buffers.group[argument].size)
        return end

    def _checks(self) -> None:
        """Checks arguments and destinations before any command runs."""
        source = self.sources[0]
        views = self.entry.arguments
        for index, type in enumerate(types_for_callers(self.signature.inputs, self.func.arg_attrs)):
            assert isinstance(type, TensorType)
            loc = source.arguments[index].loc
            with self.builder.at(loc.at(self.func.loc)):
                checked = self.builder.build(ll_seq.Check, type=type, view=views[index], output=ll_seq.BUFFER)
            self.commands.add_slot_buffer(Placement("argument", index), checked.output)
        for axis in measured_axes(self.signature):
            self.builder.build(ll_seq.Measure, axis=axis.axis, view=views[axis.argument], output=I64)
        for index, type in enumerate(types_for_callers(self.signature.results, self.func.res_attrs)):
            assert isinstance(type, TensorType)
            view = views[len(self.signature.inputs) + index]
            sizes = [self._size(size) for size in type.shape if is_dynamic(size)]
            made = self.builder.build(ll_seq.Destination, type=type, view=view, sizes=sizes, output=ll_seq.VIEW)
            self.results.append(made.output)
        placements = {group.placement for group in self.buffers.groups()}
        for index in range(len(self.signature.results)):
            if Placement("result", index) in placements:
                storage = self.builder.build(ll_seq.Storage, view=self.results[index], output=ll_seq.BUFFER)
                self.commands.add_slot_buffer(Placement("result", index), storage.output)

    def _size(self, size: Size) -> Value:
        """A size as a host value, emitted once."""
        if size not in self.sizes:
            self.sizes[size] = self.builder.build(ll_seq.Size, value=size, output=I64).output
        return self.sizes[size]

    def _waits(self, block: Block) -> bool:
        """Whether the host must wait for the device at the end of a block."""
        match block.last:
            case Return() | util.ImportedCallBranch():
                return True
            case util.CondBranch() | util.Switch():
                chosen = block.last.operands[0]
                return hl_seq.is_resource(chosen.type) and not self._is_external(chosen)
            case _:
                return False

    def _is_external(self, value: Value) -> bool:
        placement = self.buffers.group[value].placement
        return placement is not None and placement.kind in EXTERNAL_KINDS and placement.kind != "variable"

    def _block(self, source: Block, commands: list[Operation], pending: bool) -> None:
        for op in source:
            if op is not source.last and op.results and not hl_seq.is_resource(op.results[0].type):
                self._host_op(op)
        terminator = source.end
        waits, ranks = self._waits(source), self.commands.slot_buffers
        recorded = record(commands, ranks, self._aliases(), self.builder) if commands else None
        with self.builder.at(terminator.loc):
            if recorded is None and pending and waits:  # submits the enqueued recordings
                recorded = record((), ranks, (), self.builder)
            if recorded is not None:
                kind: Any = ll_seq.Execute if waits else ll_seq.Enqueue
                self.builder.build(kind, recording=recorded[0], slots=recorded[1:])
            self._terminator(terminator)

    def _aliases(self) -> list[tuple[Value, Value]]:
        """The buffers of each donated argument and of the result in its place."""
        placements = self.commands.placements
        pairs = [
            (placements[Placement("argument", argument)], placements.get(Placement("result", result)))
            for result, argument in result_aliases(self.func.arg_attrs).items()
        ]
        return [(a, r) for a, r in pairs if r is not None]

    def _host_op(self, op: Operation) -> None:
        """Emits an op on host values."""
        if isinstance(op, hl_seq.Export):
            return
        built = self.builder.insert(op.clone(dict(self.numbers)))
        self.numbers.update(zip(op.results, built.results, strict=True))

    def _terminator(self, op: Operation) -> None:
        if isinstance(op, Return):
            self.builder.build(ll_seq.Return, values=self.results)
            return
        assert isinstance(op, util.BranchOp)
        if isinstance(op, util.ImportedCallBranch):
            self._call(op)
            return
        chosen = {op.operands[0]: self._selector(op)} if op.choosing else {}
        built = self.builder.insert(op.clone(chosen, self.blocks))
        assert isinstance(built, util.BranchOp)
        set_values(built, [self._branch_arguments(edge, op) for edge in op.edges])

    def _call(self, op: util.ImportedCallBranch) -> None:
        """Calls a function of another module on the globals' memory, after the block's commands have finished."""
        buffers = [self.commands.globals[ref.root] for ref in op.globals]
        self.builder.build(ll_seq.ImportedCall, callee=op.callee, function_type=op.function_type, buffers=buffers)
        self.builder.build(util.Branch, arguments=self._branch_arguments(op.edges[0], op), to=self.blocks[op.to])

    def _selector(self, branch: util.BranchOp) -> Value:
        value = branch.operands[0]
        if not hl_seq.is_resource(value.type):
            return self.numbers[value]
        buffer, offset = self.commands.address_of(value)
        size = int(hl_seq.size_of(value.type))
        if isinstance(branch, util.CondBranch):  # the last byte of a counter
            offset, size = offset + size - 1, 1
        kind = READ_KINDS[size]
        return self.builder.build(ll_seq.Read, buffer=buffer, offset=offset, type=kind, output=I32).output

    def _branch_arguments(self, edge: util.Edge, branch: Operation) -> list[Value]:
        """The arguments of a branch: the loop's state, swapped on the back edge, then host values."""
        header = edge.target
        given: list[Value] = []
        if header in self.commands.states:
            assert branch.parent is not None
            if self.buffers.order[branch.parent] >= self.buffers.order[header]:
                given = [
                    self.commands.placements[Placement("next", header)],
                    self.commands.placements[Placement("now", header)],
                ]
            else:
                given = [self.commands.states[header], self.commands.made["second", header]]
        return given + [self.numbers[value] for value in edge.values if not hl_seq.is_resource(value.type)]
