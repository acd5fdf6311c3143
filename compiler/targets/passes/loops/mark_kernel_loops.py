"""mark-kernel-loops: marks the loops of a program that become one kernel (`CondBranch.kernel_loop`), and those that the
host submits in batches (`CondBranch.batch`).

A loop becomes one kernel where recordings hold no loops and devices bind any number of buffers. Its commands are small
dispatches of static size, copies and fills, and its conditions are on the device or count to a constant. Loops inside
it have a known number of iterations. An iteration, inner loops included, has at most `Machine.loop_ops` ops. Later
passes rely on the mark: `count-on-device` counts in memory, `record-control-flow` makes one `ll_seq.loop` of the
blocks, and `loops-to-kernels` makes an entry of that.

A loop with larger commands runs in batches if its condition is on the device and it contains no loop. Commands with
more than `Machine.merged_ops` ops become entries with a predicate, and those between them kernels of one invocation. A
batch has at most `MAX_BATCH_OPS` ops, so that limits end a call in time, and `MAX_BATCH` iterations.

The placement report has a row for each loop that stays with the host, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import IntegerAttr, SymbolRef
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.dominance import loop_blocks, predecessors
from orchestrion.compiler.ir.locations import Location
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.loop_entry import Cost, cost_of_bytes, cost_of_part, estimated_cost
from orchestrion.compiler.kernel.machine import MAX_PARAMETER_WORDS, Machine
from orchestrion.compiler.kernel.reduction_limits import max_counted_iterations
from orchestrion.compiler.options import Options
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.sequencer.count_on_device import counted_length
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.target import target

#: Most bindings of a loop: on Vulkan, each may take a parameter word.
MAX_BINDINGS: Final = MAX_PARAMETER_WORDS
#: Most dispatches of a loop of known length in a recording; the host repeats longer loops.
MAX_DISPATCHES: Final = 64
#: Levels of loops in each other.
MAX_DEPTH: Final = 8
#: Most iterations of a batch, and most ops; fewer iterations are a power of 2.
MAX_BATCH: Final = 64
MAX_BATCH_OPS: Final = 1 << 24


def run(program: hl_seq.Program, options: Options) -> None:
    profile, machine = known_profile(program.profile), target(program.profile).machine(program.machine_name)
    if profile.control_flow or profile.max_bindings is not None or machine is None or not machine.merged_ops:
        return
    costs = _Costs(machine, SymbolTables(), {})
    for func in [op for op in program.body.block if isinstance(op, Func) and op.dims is None]:
        for loc, what, reason in _mark(func, costs):
            if options.recorder is not None:
                options.recorder.not_taken(program.sym_name.value, what, loc, reason)


class _Refused(Exception):
    """A loop does not become a kernel, or batches; the message is the reason."""


def _mark(func: Func, costs: _Costs) -> Iterator[tuple[Location, str, str]]:
    """Marks the outermost loops that fit, and those inside them. Yields what others do not become, and why."""
    loops = _loops_of(func)
    done: set[Block] = set()
    for header, blocks in sorted(loops.items(), key=lambda item: -len(item[1])):
        if header in done:
            continue
        try:
            if not costs.machine.loop_ops:
                raise _Refused("an invocation of a GPU is slow")
            _check_buffers(blocks, blocks & set(loops), func, costs.tables)
            cost = costs.of_loop(header, loops)
        except _Refused as refused:
            yield header.end.loc, "one kernel for a loop", str(refused)
            try:
                _mark_batch(header, loops, func, costs)
            except _Refused as reason:
                yield header.end.loc, "batches of a loop", str(reason)
            continue
        most = MAX_DISPATCHES * max_counted_iterations(costs.machine) // (cost.iterations + 2)
        for inner in blocks & set(loops):
            branch, length = inner.last, counted_length(inner, func) or 0
            assert isinstance(branch, util.CondBranch)
            branch.kernel_loop = IntegerAttr(length if inner is not header or length <= most else 0, I32)
            done.add(inner)


def _mark_batch(header: Block, loops: dict[Block, set[Block]], func: Func, costs: _Costs) -> None:
    """Marks a loop that the host submits in batches. Raises _Refused."""
    blocks, branch = loops[header], header.last
    assert isinstance(branch, util.CondBranch)
    if any(other in blocks for other in loops if other is not header):
        raise _Refused("it contains a loop")
    if not hl_seq.is_resource(branch.condition.type):
        raise _Refused("the host counts its iterations, and submits them all at once")
    _check_buffers(blocks, {header}, func, costs.tables)
    ops = [op for block in func.body.blocks if block in blocks for op in block]
    total = sum((costs.of_large(op) or costs.of_op(op, func) for op in ops), Cost())
    most = MAX_BATCH_OPS // max(total.ops, 1)
    if most < 2:
        raise _Refused(f"an iteration has {total.ops} ops, {MAX_BATCH_OPS // 2} are the most")
    branch.batch = IntegerAttr(min(MAX_BATCH, 1 << most.bit_length() - 1), I32)


def _loops_of(func: Func) -> dict[Block, set[Block]]:
    """Header -> the blocks of each loop of a function that ends in its header."""
    blocks = func.body.blocks
    order = {block: number for number, block in enumerate(blocks)}
    before = predecessors(blocks)
    found = {}
    for header in blocks:
        latches = [block for block in before[header] if order[block] >= order[header]]
        if latches and isinstance(header.last, util.CondBranch):
            found[header] = loop_blocks(header, latches, func.body)
    return found


def _check_buffers(blocks: set[Block], headers: set[Block], func: Func, tables: SymbolTables) -> None:
    """Raises _Refused for a loop that may need more bindings than there are: one for each argument, result and global,
    and one per element type for the arena and for each buffer of the state of a loop.
    """
    used = {value for block in blocks for op in block for value in op.operands}
    given = sum(_is_given(value, func) for value in used) + len(func.function_type.results)
    states = 2 * sum(bool(header.arguments) for header in headers)
    most = given + len(_types(blocks, tables)) * (1 + states)
    if most > MAX_BINDINGS:
        raise _Refused(f"it may need {most} bindings, {MAX_BINDINGS} are the most")


def _types(blocks: set[Block], tables: SymbolTables) -> set[str]:
    """The element types of the bindings of a loop."""
    found = {"i1", "i32"}
    for op in [op for block in blocks for op in block]:
        if isinstance(op, flow.Dispatch):
            func = tables.lookup(op, op.entry)
            assert isinstance(func, Func)
            types = (*func.function_type.inputs, *func.function_type.results)
            found |= {str(type.element) for type in types if isinstance(type, TensorType)}
        elif isinstance(op, flow.Splat):
            found.add(str(op.value.type.element))
        elif isinstance(op, hl_seq.Clone):
            found |= {"ui8", "ui32"}
    return found


def _is_given(value: Value, func: Func) -> bool:
    """Whether a value may lie in a buffer that the function does not allocate."""
    return value.parent_block is func.body.blocks[0] and isinstance(
        value.defining_op, util.GlobalLoad | hl_seq.Import | None
    )


@dataclass(frozen=True)
class _Costs:
    """Costs of the loops of a program on a machine. `entries`: those that are known, None for one without any."""

    machine: Machine
    tables: SymbolTables
    entries: dict[SymbolRef, Cost | None]

    def of_loop(self, header: Block, loops: dict[Block, set[Block]], depth: int = 1) -> Cost:
        """The cost of an iteration, inner loops included. Raises _Refused."""
        blocks, total, func = loops[header], Cost(), header.parent_op
        assert isinstance(func, Func)
        inner = [one for one in loops if one in blocks and one is not header]
        outer = [one for one in inner if not any(one in loops[other] for other in inner if other is not one)]
        for one in outer:
            length = counted_length(one, func)
            if length is None:
                raise _Refused("the number of iterations of a loop inside it is unknown")
            total += self.of_loop(one, loops, depth + 1).times(length)
        nested = {block for one in outer for block in loops[one]}
        for block in [block for block in func.body.blocks if block in blocks - nested]:
            total = sum((self.of_op(op, func) for op in block), total)
        if total.ops > self.machine.loop_ops:
            raise _Refused(f"an iteration has {total.ops} ops, {self.machine.loop_ops} are the most")
        if total.iterations > max_counted_iterations(self.machine) // 2 or depth > MAX_DEPTH:
            raise _Refused(f"an iteration has {total.iterations} iterations of loops in {depth} levels")
        return total

    def of_op(self, op: Operation, func: Func) -> Cost:
        """The cost of an op of a block. Raises _Refused for one that has no place in a kernel."""
        match op:
            case flow.Dispatch():
                if (cost := self._of_entry(op)) is None:
                    raise _Refused(f"{op.entry.root} has dynamic sizes, or needs several invocations")
                return cost
            case flow.Splat() | hl_seq.Clone():
                return cost_of_bytes(int(hl_seq.size_of(op.output.type)))
            case util.CondBranch() | util.Switch():
                assert op.parent is not None
                if not hl_seq.is_resource(op.operands[0].type) and counted_length(op.parent, func) is None:
                    raise _Refused("a number on the host decides")
                return Cost(2)
            case util.Branch() | util.Constant() | util.Add() | util.CompareLt() | util.GlobalLoad():
                return Cost()
            case _:
                raise _Refused(f"it contains {op.name}")

    def of_large(self, op: Operation) -> Cost | None:
        """The estimated cost of a dispatch that one invocation cannot run; None for any other op."""
        if not isinstance(op, flow.Dispatch) or self._entry_of(op).dims is not None:
            return None
        return None if self._of_entry(op) else estimated_cost(self._body_of(op))

    def _of_entry(self, dispatch: flow.Dispatch) -> Cost | None:
        if dispatch.entry not in self.entries:
            is_static = self._entry_of(dispatch).dims is None
            found = cost_of_part(self._body_of(dispatch), self.machine) if is_static else None
            self.entries[dispatch.entry] = found
        return self.entries[dispatch.entry]

    def _entry_of(self, dispatch: flow.Dispatch) -> Func:
        func = self.tables.lookup(dispatch, dispatch.entry)
        assert isinstance(func, Func)
        return func

    def _body_of(self, dispatch: flow.Dispatch) -> Body:
        return Body.of_function(self._entry_of(dispatch), () if dispatch.tied is None else dispatch.tied.ints)
