"""Splits a recorded iteration of a loop in batches, which is too large for one kernel.

    before: loop most 1 %latch { dispatch @large(...); dispatch @small(...); copy; copy %p, %latch }
    after:  dispatch @large_predicated(..., %latch); loop most 1 %latch { dispatch @small(...); copy; copy %p, %latch }

Large dispatches run entries with the latch as predicate. Large copies and fills become such entries. Commands of at
most `Machine.merged_ops` ops between them stay in loops of one iteration, each of which becomes one kernel. The last
command sets the latch, so it is the last one in such a loop. The arms of a large branch are split in the same way, each
with a latch of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir.attributes import (
    ArrayAttr,
    DenseElements,
    IntegerAttr,
    StringAttr,
    SymbolRef,
    attribute_of,
    dense_ints,
)
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.types import I64, Attribute, TensorType, tensor
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.loop_entry import Cost, cost_of_bytes, cost_of_part
from orchestrion.compiler.kernel.machine import Machine
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.sequencer.arena import ALIGNMENT
from orchestrion.compiler.sequencer.command_emitter import region_of
from orchestrion.compiler.sequencer.share_bindings import share
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.profiles import Profile

from .command_ranges import CommandRanges

#: Buffers that the devices of every target bind.
LEAST_BUFFERS: Final = 4
#: Ops of a dispatch that one invocation cannot run.
LARGE: Final = 1 << 62
#: Most commands of the largest size in a kernel of one invocation.
RUN_COMMANDS: Final = 8


def add_executable(entry: ll_seq.Entry, program: hl_seq.Program, record: Operation) -> Value:
    """Adds an executable with this entry, of its name, and creates it before a recording."""
    name = entry.sym_name.value
    made = ll_seq.Executable.build(sym_name=name, body=Region([Block()]), loc=entry.loc)
    made.body.block.append(entry)
    instance = program.body.block.last
    assert instance is not None
    Builder.before(instance).insert(made)
    create = Builder.before(record).build(ll_seq.CreateExecutable, executable=SymbolRef(name), output=ll_seq.EXECUTABLE)
    return create.output


def share_buffers(entry: ll_seq.Entry, dispatches: Sequence[ll_seq.Dispatch], profile: Profile) -> None:
    """Lets bindings of an entry that lie in one buffer share one of the device, if it may bind fewer on Vulkan."""
    if profile.format == "spirv" and len(entry.bindings) > LEAST_BUFFERS:
        share(entry, dispatches)


@dataclass
class SplitIteration:
    """The commands of one iteration, in the place of its loop."""

    loop: ll_seq.Loop
    ranges: CommandRanges
    machine: Machine
    program: hl_seq.Program
    runs: list[ll_seq.Loop] = field(default_factory=list)
    dispatches: dict[ll_seq.Entry, list[ll_seq.Dispatch]] = field(default_factory=dict)  #: of entries with predicates
    _entries: dict[object, tuple[ll_seq.Entry, Value]] = field(default_factory=dict)
    _run: list[Operation] = field(default_factory=list)
    _cost: Cost = field(default_factory=Cost)
    _latch: int = 0  #: offset in bytes of the latch of the commands that are split, in the memory of the loop's latch

    def split(self) -> list[ll_seq.Loop]:
        """Replaces the loop. Returns the loops that become kernels."""
        self._split(self.loop.body.block)
        self.loop.erase()
        for entry, dispatches in self.dispatches.items():
            share_buffers(entry, dispatches, known_profile(self.program.profile))
        return self.runs

    def _split(self, commands: Block) -> None:
        for op in [op for op in commands if not isinstance(op, ll_seq.Barrier | ll_seq.End)]:
            for command in self._commands(op):
                cost = self._cost_of(command)
                if cost.ops <= self.machine.merged_ops:
                    self._merge(command, cost)
                    continue
                if isinstance(command, ll_seq.Branch):
                    self._split_branch(command)
                else:
                    self._end_run()
                    self._insert(self._predicated(command))
                command.drop_uses()
        self._end_run()

    def _split_branch(self, branch: ll_seq.Branch) -> None:
        """Splits the arms of a branch with large commands. Each has a latch, which is cleared in each iteration and
        then set in one arm of a small branch.
        """
        first, size = self._more_latches(len(branch.arms)), ALIGNMENT * len(branch.arms)
        places = range(first, first + size, ALIGNMENT)
        self._end_run()
        self._insert(_fill(self.loop.predicate, first, size, False, branch))
        setting = ll_seq.Branch.build(
            offset=branch.offset,
            type=branch.type,
            selector=branch.selector,
            arms=[region_of([_fill(self.loop.predicate, at, 1, True, branch)], branch.loc) for at in places],
            loc=branch.loc,
        )
        self._merge(setting, self._cost_of(setting))
        self._end_run()
        outer = self._latch
        for self._latch, arm in zip(places, branch.arms, strict=True):
            self._split(arm.block)
        self._latch = outer

    def _more_latches(self, count: int) -> int:
        """Makes room for latches behind that of the loop. Returns the offset of the first."""
        made = self.loop.predicate.defining_op
        assert isinstance(made, ll_seq.Allocate)
        first = int(made.size)
        made.size = first + ALIGNMENT * count
        return first

    def _entry_of(self, op: ll_seq.Dispatch) -> ll_seq.Entry:
        entry = self.ranges.tables.lookup(self.loop, op.entry)
        assert isinstance(entry, ll_seq.Entry)
        return entry

    def _commands(self, op: Operation) -> Iterable[Operation]:
        """A command, or the copies that a copy of the whole state stands for."""
        return [copy for copy, _ in self.ranges.copies(op)] if isinstance(op, ll_seq.Copy) else [op.clone()]

    def _cost_of(self, op: Operation) -> Cost:
        match op:
            case ll_seq.Dispatch():
                body = Body.of_entry(self._entry_of(op))
                return cost_of_part(body, self.machine) or Cost(LARGE)
            case ll_seq.Copy() | ll_seq.Fill():
                return cost_of_bytes(int(op.length))
            case ll_seq.Branch():
                return sum((self._cost_of(one) for arm in op.arms for one in arm.block), Cost(2))
            case _:
                return Cost()

    def _merge(self, command: Operation, cost: Cost) -> None:
        """Adds a command to the current run. One invocation has only so many iterations."""
        if (self._cost + cost).ops > RUN_COMMANDS * self.machine.merged_ops:
            self._end_run()
        self._run.append(command)
        self._cost += cost

    def _end_run(self) -> None:
        if self._run:
            body = region_of(self._run, self.loop.loc)
            run = ll_seq.Loop.build(
                offset=self._latch, most=1, predicate=self.loop.predicate, body=body, loc=self.loop.loc
            )
            self._insert(run)
            self.runs.append(run)
        self._run, self._cost = [], Cost()

    def _insert(self, op: Operation) -> None:
        before = Builder.before(self.loop)
        if isinstance(op, ll_seq.Dispatch) and isinstance(self.loop.prev_op, ll_seq.Dispatch):
            before.build(ll_seq.Barrier)
        before.insert(op)

    def _predicated(self, op: Operation) -> ll_seq.Dispatch:
        """The dispatch of an entry that does what a command does, if the latch is set."""
        match op:
            case ll_seq.Dispatch():
                key: object = op.entry
                places = [*zip(op.bindings, op.offsets.ints, strict=True)]
            case ll_seq.Copy():
                key = int(op.length)
                places = [(op.source, int(op.source_offset)), (op.target, int(op.target_offset))]
            case ll_seq.Fill():
                key = int(op.length), op.value
                places = [(op.target, int(op.offset))]
            case _:
                raise AssertionError(f"{op.name} in a recording")
        if key not in self._entries:
            entry = self._entry(op)
            self._entries[key] = entry, add_executable(entry, self.program, self._record)
        entry, executable = self._entries[key]
        made = ll_seq.Dispatch.build(
            entry=SymbolRef(entry.sym_name.value, (entry.sym_name.value,)),
            offsets=dense_ints(*(offset for _, offset in places), self._latch),
            executable=executable,
            bindings=[*(memory for memory, _ in places), self.loop.predicate],
            loc=op.loc,
        )
        self.dispatches.setdefault(entry, []).append(made)
        return made

    @property
    def _record(self) -> Operation:
        record = self.loop.parent_op
        assert isinstance(record, ll_seq.Record)
        return record

    def _entry(self, op: Operation) -> ll_seq.Entry:
        """The entry with a predicate for a command."""
        match op:
            case ll_seq.Dispatch():
                made = self._entry_of(op).clone()
                assert isinstance(made, ll_seq.Entry)
            case ll_seq.Copy():
                made = _entry_of_copy(op)
            case _:
                assert isinstance(op, ll_seq.Fill)
                made = _entry_of_fill(op)
        made.sym_name = StringAttr(Names.of(self.program).fresh(f"{made.sym_name.value}_predicated"))
        made.predicate = IntegerAttr(len(made.bindings), I64)
        made.bindings = ArrayAttr((*made.bindings.items, _binding("read", ll_seq.READ_BYTES["i1"])))
        made.body.block.add_argument(ll_seq.BINDING)
        return made


def _fill(memory: Value, offset: int, length: int, value: bool, branch: ll_seq.Branch) -> ll_seq.Fill:
    """Fills bytes of latches."""
    byte = DenseElements(tensor((), "i1"), bytes([value]))
    return ll_seq.Fill.build(target=memory, offset=offset, length=length, value=byte, loc=branch.loc)


def _binding(access: str, length: int) -> Attribute:
    return attribute_of({"access": access, "length": length})


def _entry_of_copy(op: ll_seq.Copy) -> ll_seq.Entry:
    length = int(op.length)
    dtype = "ui8" if length % 4 else "ui32"
    block = Block([ll_seq.BINDING] * 2)
    builder = Builder(block, loc=op.loc)
    type = tensor((length // BY_NAME[dtype].itemsize,), dtype)
    value = builder.build(ll_seq.LoadInput, binding=block.arguments[0], value=type).value
    return _entry_that_stores(builder, value, "copy", [_binding("read", length)], length)


def _entry_of_fill(op: ll_seq.Fill) -> ll_seq.Entry:
    length = int(op.length)
    block = Block([ll_seq.BINDING])
    builder = Builder(block, loc=op.loc)
    type = tensor((length // op.value.itemsize,), str(op.value.type.element))
    value = builder.build(Constant, value=DenseElements(type, op.value.data), out=type).out
    return _entry_that_stores(builder, value, "fill", [], length)


def _entry_that_stores(builder: Builder, value: Value, name: str, read: list[Attribute], length: int) -> ll_seq.Entry:
    """An entry that stores a tensor to its last binding."""
    block = builder.block
    assert isinstance(value.type, TensorType)
    builder.build(ll_seq.StoreOutput, value=value, binding=block.arguments[-1])
    builder.build(ll_seq.End)
    return ll_seq.Entry.build(
        sym_name=name,
        workload=dense_ints(value.type.num_elements, 1, 1),
        bindings=ArrayAttr((*read, _binding("write", length))),
        kind="elementwise",
        body=Region([block]),
        loc=builder.loc,
    )
