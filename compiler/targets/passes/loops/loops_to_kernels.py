"""loops-to-kernels: each loop of a recording that a device cannot record becomes dispatches of an entry that runs it.

    before: loop %p { dispatch @a(...); copy; dispatch @b(...) }
    after:  dispatch @main_loop(...)   with the entry   loop %p most 4096 { part {body of @a}; copy; part {body of @b} }

The entry binds each buffer that the loop uses from its start on, once per element type. Where the recording swaps the
state of a loop by copying all of it, the entry copies the ranges that commands access.

A loop of one iteration, which the host submits in batches, may be too large for one kernel (`split_iterations.py`).

An entry runs at most `MAX_ITERATIONS` iterations, or fewer on machines that limit the loops of an invocation. A
recording dispatches it as often as a loop of known length needs, else for `MAX_ITERATIONS` iterations. A dispatch
after the end of the loop does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir.attributes import ArrayAttr, IntegerAttr, StringAttr, SymbolRef, attribute_of, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.dims import ceildiv
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import I32, tensor
from orchestrion.compiler.kernel.loop_entry import MAX_ITERATIONS, iterations_per_dispatch
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.sequencer.command_emitter import region_of
from orchestrion.compiler.targets.target import target
from orchestrion.schema.dtypes import BY_NAME

from .command_ranges import CommandRanges
from .split_iterations import SplitIteration, add_executable, share_buffers


def run(program: hl_seq.Program) -> None:
    profile, machine = known_profile(program.profile), target(program.profile).machine(program.machine_name)
    if profile.control_flow or machine is None:
        return
    tables, found, inside = SymbolTables(), list[tuple[ll_seq.Loop, CommandRanges]](), set[SymbolRef]()
    for loop in [op for op in program.walk(ll_seq.Loop) if isinstance(op.parent_op, ll_seq.Record)]:
        ranges = CommandRanges.of(loop, tables)
        inside |= {op.entry for op in loop.walk(ll_seq.Dispatch)}
        loops = [loop]
        if _count(loop) == 1:
            loops = SplitIteration(loop, ranges, machine, program).split()
        found += [(one, ranges) for one in loops]
    for loop, ranges in found:
        merged = _Merged(loop, ranges)
        function = next(op for op in loop.enclosing() if isinstance(op, ll_seq.RunLoop))
        entry = merged.entry(Names.of(program).fresh(f"{function.sym_name.value}_loop"))
        count = _count(loop)
        most = 1 if count == 1 else iterations_per_dispatch(entry, machine)
        body = entry.body.block.first
        assert isinstance(body, ll_seq.Loop)
        body.most = IntegerAttr(most, I32)
        dispatches = _replace(loop, entry, merged, ceildiv(count or MAX_ITERATIONS, most), program)
        share_buffers(entry, dispatches, profile)
    if found:
        _erase_unused(program)
        _rename(program, inside)


def _count(loop: ll_seq.Loop) -> int:
    """The number of iterations of a recorded loop; 0 if it is unknown."""
    return loop.most.value if loop.most is not None else 0


@dataclass
class _Binding:
    """A binding of an entry under construction."""

    number: int
    length: int = 0
    access: set[str] = field(default_factory=set)


#: Memory and the element type.
_Key = tuple[Value, str]


class _Merged:
    """The entry of a loop under construction."""

    def __init__(self, loop: ll_seq.Loop, ranges: CommandRanges) -> None:
        self.loop = loop
        self.bindings: dict[_Key, _Binding] = {}
        self.block = Block()
        self.ranges = ranges

    def entry(self, name: str) -> ll_seq.Entry:
        """The entry, in no executable."""
        loop = self._loop(self.loop)
        self.block.append(loop)
        Builder(self.block, loc=self.loop.loc).build(ll_seq.End)
        items, types = [], []
        for (_, dtype), one in self.bindings.items():
            access = "readwrite" if len(one.access) > 1 else next(iter(one.access))
            items.append(attribute_of({"access": access, "length": one.length}))
            types.append(tensor((one.length // BY_NAME[dtype].itemsize,), dtype))
        memories = [memory for memory, _ in self.bindings]
        retyped = [number for number, memory in enumerate(memories) if memories.count(memory) > 1]
        return ll_seq.Entry.build(
            sym_name=name,
            workload=dense_ints(1, 1, 1),
            bindings=ArrayAttr(tuple(items)),
            binding_types=ArrayAttr(tuple(types)),
            retyped=dense_ints(*retyped) if retyped else None,
            body=Region([self.block]),
            loc=self.loop.loc,
        )

    def _bind(self, memory: Value, offset: int, length: int, dtype: str, access: str) -> Value:
        """The argument of the entry for a range."""
        key = memory, dtype
        if key not in self.bindings:
            self.block.add_argument(ll_seq.BINDING)
            self.bindings[key] = _Binding(len(self.bindings))
        found = self.bindings[key]
        found.length = max(found.length, offset + length)
        found.access |= {"read", "write"} if access == "readwrite" else {access}
        return self.block.arguments[found.number]

    def _commands(self, commands: Iterable[Operation]) -> Iterator[Operation]:
        for op in commands:
            match op:
                case ll_seq.Dispatch():
                    yield self._part(op)
                case ll_seq.Copy():
                    yield from self._copies(op)
                case ll_seq.Fill():
                    (found,) = self.ranges.of_command(op)
                    goal = self._bind(*found, "write")
                    yield ll_seq.Fill.build(target=goal, offset=op.offset, length=op.length, value=op.value, loc=op.loc)
                case ll_seq.Loop():
                    yield self._loop(op)
                case ll_seq.Branch():
                    yield self._branch(op)
                case ll_seq.Barrier():
                    yield ll_seq.Barrier.build(loc=op.loc)

    def _loop(self, op: ll_seq.Loop) -> ll_seq.Loop:
        """A loop over bindings. Its predicate is a byte, or the last byte of a counter, in the word of which it is."""
        first = op.offset.value % 4
        given = ("i32", 4) if first else ("i1", 1)
        predicate = self._bind(op.predicate, op.offset.value - first, given[1], given[0], "read")
        body = region_of(self._commands(op.body.block), op.loc)
        return ll_seq.Loop.build(predicate=predicate, offset=op.offset, most=op.most, body=body, loc=op.loc)

    def _branch(self, op: ll_seq.Branch) -> ll_seq.Branch:
        size, dtype = ll_seq.READ_BYTES[op.type.value], op.type.value
        selector = self._bind(op.selector, op.offset.value, size, dtype, "read")
        arms = [region_of(self._commands(arm.block), op.loc) for arm in op.arms]
        return ll_seq.Branch.build(selector=selector, offset=op.offset, type=op.type, arms=arms, loc=op.loc)

    def _part(self, op: ll_seq.Dispatch) -> ll_seq.Part:
        entry = self.ranges.entry_of(op)
        bound = [
            self._bind(*found, ll_seq.access_of(item))
            for found, item in zip(self.ranges.of_command(op), entry.bindings, strict=True)
        ]
        body = Block([ll_seq.BINDING] * len(bound))
        mapping: dict[Value, Value] = dict(zip(entry.body.block.arguments, body.arguments, strict=True))
        for inner in entry.body.block:
            body.append(inner.clone(mapping))
        return ll_seq.Part.build(kind=entry.kind, offsets=op.offsets, bindings=bound, body=Region([body]), loc=op.loc)

    def _copies(self, op: ll_seq.Copy) -> Iterator[ll_seq.Copy]:
        for copy, dtype in self.ranges.copies(op):
            first, second, length = int(copy.source_offset), int(copy.target_offset), int(copy.length)
            copy.set_operand(0, self._bind(op.source, first, length, dtype, "read"))
            copy.set_operand(1, self._bind(op.target, second, length, dtype, "write"))
            yield copy


def _replace(
    loop: ll_seq.Loop, entry: ll_seq.Entry, merged: _Merged, times: int, program: hl_seq.Program
) -> list[ll_seq.Dispatch]:
    """Puts dispatches of the entry in the place of the loop. Returns them."""
    name = entry.sym_name.value
    record = loop.parent_op
    assert isinstance(record, ll_seq.Record)
    executable = add_executable(entry, program, record)
    before, found = Builder.before(loop), []
    for _ in range(times):
        if isinstance(before.block, Block) and loop.prev_op is not None:
            before.build(ll_seq.Barrier)
        found.append(
            before.build(
                ll_seq.Dispatch,
                entry=SymbolRef(name, (name,)),
                offsets=dense_ints(*(0 for _ in merged.bindings)),
                executable=executable,
                bindings=[memory for memory, _ in merged.bindings],
            )
        )
    if not isinstance(loop.next_op, ll_seq.End):
        before.build(ll_seq.Barrier)
    loop.erase()
    return found


def _erase_unused(program: hl_seq.Program) -> None:
    """Erases entries that no command dispatches any more, executables without entries, and what creates them."""
    used = {op.entry for op in program.walk(ll_seq.Dispatch)}
    for executable in program.body.block.of(ll_seq.Executable):
        entries = list(executable.entries())
        for ref, entry in entries:
            if ref not in used:
                entry.erase()
        if not any(ref in used for ref, _ in entries):
            for op in list(program.walk(ll_seq.CreateExecutable)):
                if op.executable.root == executable.sym_name.value:
                    op.erase()
            executable.erase()


def _rename(program: hl_seq.Program, inside: set[SymbolRef]) -> None:
    """Gives entries that are dispatched outside of kernels with loops, too, names of their own: an entry of one name
    runs equally often in all programs, which comparisons of devices rely on.
    """
    renamed = dict[SymbolRef, SymbolRef]()
    for executable in program.body.block.of(ll_seq.Executable):
        names = Names.of(executable)
        for ref, entry in [(ref, entry) for ref, entry in executable.entries() if ref in inside]:
            entry.sym_name = StringAttr(names.fresh(f"{entry.sym_name.value}_outside"))
            renamed[ref] = SymbolRef(ref.root, (entry.sym_name.value,))
    for op in list(program.walk(ll_seq.Dispatch)):
        op.entry = renamed.get(op.entry, op.entry)
