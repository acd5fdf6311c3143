"""record-control-flow: loops and branches of a run loop become loops and branches inside its recordings.

Only in programs of profiles whose driver records control flow, for loops that become one kernel, and for loops whose
iterations the host submits in batches. The recording of a kernel runs some iterations, and the host reads the predicate
and runs it again, unless the number of iterations is known. The recording of a batch runs at most one
(`loop_batches.py`).
Three rewrites shrink the blocks of a run loop until none applies:

    sequence: a block with one predecessor, which continues nowhere else, joins it; two recordings become one
    branch:   blocks that a selector chooses between, and that meet again, become the arms of a `ll_seq.branch`
    loop:     a header that reads a predicate, and a body that returns to it, become a `ll_seq.loop`

A block is absorbed if all its work is commands. Calls of functions of other modules and numbers on the host are not, so
loops and branches around them stay with the host.

The header of a loop runs once before the loop and then at the end of each iteration. A loop's state cannot swap its
two buffers inside a recording. Instead, the next values of a small state are copied over the present ones in each
iteration. For a large state the recorded body is two iterations, the second with the buffers swapped; there is a copy
only if the loop ends after the first.

What stays with the host is a row of the placement report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.flow.blocks import set_values
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import IntegerAttr, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.dims import bounds
from orchestrion.compiler.ir.dominance import loop_blocks, predecessors
from orchestrion.compiler.ir.types import I32
from orchestrion.compiler.profiles import known_profile
from orchestrion.schema.hal_imports import MAX_NESTING

from . import hl_seq, ll_seq
from .arena import ALIGNMENT
from .command_emitter import pending_on_entry, record, region_of
from .loop_batches import BatchBlocks

if TYPE_CHECKING:
    from orchestrion.compiler.options import Options
    from orchestrion.compiler.provenance import Recorder


#: Bytes of the largest state that is copied in each iteration.
COPIED_STATE_BYTES: Final = 16 << 10
#: Label of the memory that says whether a loop in batches goes on.
LATCH: Final = "latch"
#: Why the host runs a loop or a branch.
HOST_COUNTS: Final = "the host counts the iterations: their number depends on sizes, or the loop contains host code"
HOST_INSIDE: Final = "it contains host code: a call of another module, or a loop that the host runs"


def run(program: hl_seq.Program, options: Options) -> None:
    control_flow = known_profile(program.profile).control_flow
    for op in list(program.walk(ll_seq.RunLoop)):
        _Recorder(op, control_flow).run()
        if control_flow and options.recorder is not None:
            _note_host(program, op, options.recorder)


def _note_host(program: hl_seq.Program, run_loop: ll_seq.RunLoop, recorder: Recorder) -> None:
    """Records for the report which loops and branches the host still runs, and why."""
    for block in run_loop.body.blocks:
        branch = block.last
        if not isinstance(branch, util.CondBranch | util.Switch):
            continue
        on_host = not isinstance(branch.operands[0].defining_op, ll_seq.Read)
        reason = HOST_COUNTS if on_host else HOST_INSIDE
        recorder.not_taken(program.sym_name.value, "a loop or branch in a recording", branch.loc, reason)


class _Segment:
    """A block of a run loop: `head` runs on the host, then the device runs `commands`, then the host runs `tail`.

    Commands use buffers where recordings use slots; `aliases` are pairs of buffers that a call may give as the same.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.head: list[Operation] = []
        self.commands: list[Operation] = []
        self.tail: list[Operation] = []
        self.aliases: dict[tuple[Value, Value], None] = {}
        self.read: ll_seq.Read | None = None
        self.terminator: Operation = block.end
        assert isinstance(self.terminator, util.BranchOp | ll_seq.Return)
        self.terminator.detach()
        for op in block.ops:
            self._take(op)

    def _take(self, op: Operation) -> None:
        match op:
            case ll_seq.Execute() | ll_seq.Enqueue():
                record = op.recording.defining_op
                assert isinstance(record, ll_seq.Record)
                self._take_commands(record, op.slots)
                op.erase()
                record.erase()
                return
            case ll_seq.Read():
                self.read = op
            case ll_seq.ImportedCall():
                self.tail.append(op)
            case ll_seq.Record():
                return  # until its submission
            case _:
                self.head.append(op)
        op.detach()

    def _take_commands(self, record: ll_seq.Record, buffers: Sequence[Value]) -> None:
        self.aliases.update(dict.fromkeys((buffers[a], buffers[b]) for a, b in record.alias_pairs))
        for slot, buffer in zip(record.body.block.arguments, buffers, strict=True):
            slot.replace_by(buffer)
        for op in record.body.block.ops:
            op.detach()
            if not isinstance(op, ll_seq.End):
                self.commands.append(op)

    @property
    def edges(self) -> tuple[util.Edge, ...]:
        return self.terminator.edges if isinstance(self.terminator, util.BranchOp) else ()

    @property
    def waits(self) -> bool:
        """Whether the host needs what the commands compute."""
        if isinstance(self.terminator, ll_seq.Return) or self.tail:
            return True
        return self.read is not None and not isinstance(self.read.buffer.defining_op, ll_seq.Check | ll_seq.Constant)

    @property
    def is_recordable(self) -> bool:
        """Whether the commands are all that the block does, besides numbers that cost nothing."""
        return not self.tail and all(isinstance(op, util.HOST_OPS) for op in self.head)

    def absorb(self, other: _Segment) -> None:
        """Takes the host's ops of a block whose commands were taken."""
        self.head += other.head
        self.aliases.update(other.aliases)

    def end_with(self, terminator: Operation) -> None:
        """Replaces the terminator, and drops the selector."""
        self.terminator.drop_uses()
        self.terminator.detach()
        if self.read is not None:
            self.read.drop_uses()
            self.read = None
        self.terminator = terminator


class _Recorder:
    """Records the control flow of one run loop."""

    def __init__(self, run_loop: ll_seq.RunLoop, control_flow: bool) -> None:
        self.run_loop = run_loop
        self.blocks = run_loop.body.blocks
        self.control_flow = control_flow
        #: blocks of loops that become kernels or run in batches, except the headers of outermost ones
        self.inside = set() if control_flow else _marked_blocks(run_loop)

    def run(self) -> None:
        if len(self.blocks) == 1 or not self.control_flow and not self.inside:
            return
        order = _slot_order(self.blocks)
        self.segments = {block: _Segment(block) for block in self.blocks}
        changed = True
        while changed:
            self._count_edges()
            changed = any(self._shrink(segment) for segment in self.segments.values())
        self.blocks[:] = self.segments
        onward = {block: [e.target for e in one.edges] for block, one in self.segments.items() if not one.waits}
        pending = pending_on_entry(onward, [block for block in onward if self.segments[block].commands])
        for block, segment in self.segments.items():
            _emit(segment, block in pending, order)

    def _count_edges(self) -> None:
        self.entering: dict[Block, list[_Segment]] = {block: [] for block in self.segments}
        for segment in self.segments.values():
            for edge in segment.edges:
                self.entering[edge.target].append(segment)

    def _shrink(self, segment: _Segment) -> bool:
        match segment.terminator:
            case util.Branch():
                return self._join_next(segment)
            case util.CondBranch() | util.Switch() if segment.read is not None and not segment.tail:
                return self._record_loop(segment) or self._record_branch(segment)
            case _:
                return False

    def _join_next(self, segment: _Segment) -> bool:
        (edge,) = segment.edges
        following = self.segments[edge.target]
        if segment.tail or following is segment or self.entering[edge.target] != [segment]:
            return False
        if not self.control_flow and not {segment.block, following.block} <= self.inside:
            return False
        for argument, value in zip(edge.target.arguments, edge.values, strict=True):
            argument.replace_by(value)
        segment.absorb(following)
        segment.commands += following.commands
        segment.end_with(following.terminator)
        segment.read, segment.tail = following.read, following.tail
        del self.segments[edge.target]
        return True

    def _record_branch(self, segment: _Segment) -> bool:
        """The arms are recordable, only this branch leads to them, and all lead to one block with the same values."""
        if not self.control_flow and segment.block not in self.inside:
            return False
        arms: list[_Segment | None] = []
        ends: list[util.Edge] = []
        for edge in segment.edges:
            arm = self.segments[edge.target]
            is_arm = self.entering[edge.target] == [segment] and not edge.values
            if is_arm and arm.is_recordable and isinstance(arm.terminator, util.Branch):
                arms.append(arm)
                ends += arm.edges
            else:
                arms.append(None)
                ends.append(edge)
        meeting = ends[0]
        if all(arm is None for arm in arms) or any(
            end.target is not meeting.target or end.values != meeting.values for end in ends
        ):
            return False
        lists = [arm.commands if arm is not None else [] for arm in arms]
        read = segment.read
        assert read is not None
        if max(map(_depth, lists)) >= MAX_NESTING:
            return False
        loc = segment.terminator.loc
        built = ll_seq.Branch.build(
            offset=read.offset,
            type=read.type,
            selector=read.buffer,
            arms=[region_of(commands, loc) for commands in lists],
            loc=loc,
        )
        segment.commands.append(built)
        segment.end_with(util.Branch.build(arguments=meeting.values, to=meeting.target, loc=loc))
        for taken in filter(None, arms):
            segment.absorb(taken)
            self._drop(taken)
        return True

    def _record_loop(self, header: _Segment) -> bool:
        """The body is recordable, only the header leads to it, and it returns to the header with the state swapped."""
        if not isinstance(header.terminator, util.CondBranch) or not header.is_recordable:
            return False
        count, batch = header.terminator.kernel_loop, header.terminator.batch
        if count is None and batch is None and not self.control_flow:
            return False
        into, out = header.edges
        body = self.segments[into.target]
        if self.entering[into.target] != [header] or into.values or out.values or not body.is_recordable:
            return False
        if not isinstance(body.terminator, util.Branch) or body.terminator.to is not header.block:
            return False
        states = self._states(header, body)
        if states is None or max(_depth(body.commands), _depth(header.commands)) >= MAX_NESTING - 1:
            return False
        read, loc = header.read, header.terminator.loc
        assert read is not None
        commands = _iterations(header, body, states, batch is not None)
        for argument, state in zip(header.block.arguments, states, strict=True):
            argument.replace_by(state)
        loop = ll_seq.Loop.build(
            offset=read.offset, most=count, predicate=read.buffer, body=region_of(commands, loc), loc=loc
        )
        if batch is not None:
            self._submit_batches(header, loop, batch.value, out.target)
        elif count is not None and header.block not in self.inside and not count.value:
            self._repeat(header, loop, out.target)
        else:
            header.commands.append(loop)
            header.end_with(util.Branch.build(arguments=[], to=out.target, loc=loc))
        header.absorb(body)
        self._drop(body)
        for segment in {*self.entering[header.block]} - {body}:
            _pass_nothing(segment.terminator, header.block)
        header.block.erase_arguments(range(len(states)))
        return True

    def _repeat(self, header: _Segment, loop: ll_seq.Loop, out: Block) -> None:
        """Puts a loop whose kernel may have to run again into a block of its own, which reads the predicate."""
        read, loc = header.read, loop.loc
        assert read is not None
        again = Block()
        header.end_with(util.Branch.build(arguments=[], to=again, loc=loc))
        copy = ll_seq.Read.build(buffer=loop.predicate, offset=read.offset, type=read.type, output=I32, loc=loc)
        again.append(copy)
        again.append(
            util.CondBranch.build(
                condition=copy.output, arguments=[], then=again, otherwise=out, counts=dense_ints(0, 0), loc=loc
            )
        )
        self._insert_after(header, [again])
        self.segments[again].commands.append(loop)

    def _submit_batches(self, header: _Segment, loop: ll_seq.Loop, most: int, out: Block) -> None:
        """Makes a loop run one iteration, and puts what submits it in batches behind the header. The predicate of the
        loop becomes a latch: memory that no other command writes, so that it holds during the whole iteration.
        """
        read, loc = header.read, loop.loc
        assert read is not None
        latch = ll_seq.Allocate.build(label=LATCH, size=ALIGNMENT, lifetime="transient", output=ll_seq.BUFFER, loc=loc)
        self.segments[self.blocks[0]].head.insert(0, latch)
        set_latch = ll_seq.Copy.build(
            source=loop.predicate,
            source_offset=read.offset.value,
            target=latch.output,
            target_offset=0,
            length=ll_seq.READ_BYTES["i1"],
            loc=loc,
        )
        header.commands.append(set_latch)
        loop.body.block.insert_before(set_latch.clone(), loop.body.block.last)
        loop.set_operand(0, latch.output)
        loop.offset, loop.most = IntegerAttr(0, read.offset.type), IntegerAttr(1, I32)
        blocks = BatchBlocks.build(latch.output, most, out, loc)
        header.end_with(util.Branch.build(arguments=[], to=blocks.enter, loc=loc))
        self._insert_after(header, blocks)
        self.segments[blocks.more].commands.append(loop)

    def _insert_after(self, segment: _Segment, blocks: Iterable[Block]) -> None:
        """Adds blocks of the host behind the block of a segment."""
        segments = dict(self.segments)
        self.segments.clear()
        for block, one in segments.items():
            self.segments[block] = one
            if one is segment:
                for added in blocks:
                    added.region = self.run_loop.body
                    self.segments[added] = _Segment(added)

    def _states(self, header: _Segment, body: _Segment) -> tuple[Value, ...] | None:
        """The two buffers of a loop's state, the first iteration's first; none for a loop without a state. None for a
        loop that carries anything else.
        """
        arguments = tuple(header.block.arguments)
        if not arguments:
            return ()
        given = {
            edge.values
            for segment in self.entering[header.block]
            for edge in segment.edges
            if edge.target is header.block and segment is not body
        }
        (back,) = body.edges
        if len(arguments) != 2 or back.values != arguments[::-1] or len(given) != 1:
            return None
        (states,) = given
        return states if all(isinstance(value.defining_op, ll_seq.Allocate) for value in states) else None

    def _drop(self, segment: _Segment) -> None:
        """Removes a block whose commands were taken."""
        segment.end_with(ll_seq.End.build())
        del self.segments[segment.block]


def _iterations(header: _Segment, body: _Segment, states: tuple[Value, ...], one: bool) -> list[Operation]:
    """The recorded loop, with the commands of `body`: one iteration, or two for a large state unless `one`."""
    if not states:
        return [*body.commands, *(op.clone() for op in header.commands)]
    now, following = header.block.arguments
    read, made, loc = header.read, states[0].defining_op, header.terminator.loc
    assert read is not None and isinstance(made, ll_seq.Allocate)
    copy = ll_seq.Copy.build(source=following, source_offset=0, target=now, target_offset=0, length=made.size, loc=loc)
    has_loop = any(isinstance(inner, ll_seq.Loop) for op in body.commands for inner in op.walk())
    is_used = any(following in inner.operands for op in header.commands for inner in op.walk())
    if one or bounds(made.size)[1] <= COPIED_STATE_BYTES or has_loop or is_used:
        return [*body.commands, copy, *(op.clone() for op in header.commands)]
    swapped: dict[Value, Value] = {now: following, following: now}
    second = [*(op.clone(dict(swapped)) for op in body.commands), *(op.clone() for op in header.commands)]
    branch = ll_seq.Branch.build(
        offset=read.offset,
        type=read.type,
        selector=swapped.get(read.buffer, read.buffer),
        arms=[region_of(second, loc), region_of([copy], loc)],
        loc=loc,
    )
    return [*body.commands, *(op.clone(dict(swapped)) for op in header.commands), branch]


def _pass_nothing(branch: Operation, target: Block) -> None:
    """Removes the arguments that a branch passes to one of its targets."""
    assert isinstance(branch, util.BranchOp)
    set_values(branch, [() if edge.target is target else edge.values for edge in branch.edges])


def _marked_blocks(run_loop: ll_seq.RunLoop) -> set[Block]:
    """The blocks of all loops that become kernels or run in batches, without the headers of outermost ones."""
    blocks = run_loop.body.blocks
    order, before = {block: number for number, block in enumerate(blocks)}, predecessors(blocks)
    found: set[Block] = set()
    for header in blocks:
        branch = header.last
        if isinstance(branch, util.CondBranch) and (branch.kernel_loop or branch.batch) is not None:
            latches = [block for block in before[header] if order[block] >= order[header]]
            found |= loop_blocks(header, latches, run_loop.body) - {header}
    return found


def _depth(commands: Iterable[Operation]) -> int:
    """How deep loops and branches in these commands stand inside each other."""
    inner = [op for op in commands if isinstance(op, ll_seq.Loop | ll_seq.Branch)]
    return max((1 + _depth(region.block) for op in inner for region in op.regions), default=0)


def _slot_order(blocks: Sequence[Block]) -> dict[Value, int]:
    """The buffers of a request in the order of their slots: states of loops, then arguments, then results."""
    states: list[Value] = [argument for block in blocks[1:] for argument in block.arguments]
    given: list[Value] = [op.output for op in blocks[0] if isinstance(op, ll_seq.Check | ll_seq.Storage)]
    return {value: rank for rank, value in enumerate([*states, *given])}


def _emit(segment: _Segment, pending: bool, order: Mapping[Value, int]) -> None:
    """Writes a block: what the host does, with one recording for the commands."""
    block = segment.block
    for op in segment.head:
        block.append(op)
    if segment.commands or pending and segment.waits:
        builder = Builder(block, loc=segment.terminator.loc)
        recording, *slots = record(segment.commands, order, segment.aliases, builder)
        builder.build(ll_seq.Execute if segment.waits else ll_seq.Enqueue, recording=recording, slots=slots)
    for after in (segment.read, *segment.tail, segment.terminator):
        if after is not None:
            block.append(after)
