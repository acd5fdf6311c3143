"""mark-kernel-loops: marks the loops of a program that become one kernel (`CondBranch.kernel_loop`).

A loop becomes one kernel where recordings hold no loops, its commands are small dispatches of static size, copies and
fills, and its conditions are on the device or count to a constant. Loops inside it have a known number of iterations.
An iteration, inner loops included, has at most `Machine.loop_ops` ops. Later passes rely on the mark:
`count-on-device` counts in memory, `record-control-flow` makes one `ll_seq.loop` of the blocks, and
`loops-to-kernels` makes an entry of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import IntegerAttr, SymbolRef
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.dims import is_dynamic
from orchestrion.compiler.ir.dominance import loop_blocks, predecessors
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import I32
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.loop_entry import Cost, cost_of_bytes, cost_of_part
from orchestrion.compiler.kernel.machine import Machine
from orchestrion.compiler.kernel.reduction_limits import max_counted_iterations
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.target import target

from . import hl_seq
from .count_on_device import counted_length

#: Most buffers from outside of its memory that a loop uses.
MAX_BUFFERS: Final = 12
#: Most dispatches of a loop of known length in a recording; the host repeats longer loops.
MAX_DISPATCHES: Final = 64
#: Levels of loops in each other.
MAX_DEPTH: Final = 8


def run(program: hl_seq.Program) -> None:
    machine = target(program.profile).machine(program.machine_name)
    if known_profile(program.profile).control_flow or machine is None or not machine.loop_ops:
        return
    costs = _Costs(machine, SymbolTables(), {})
    for func in [op for op in program.body.block if isinstance(op, Func) and op.dims is None]:
        _mark(func, costs)


def _mark(func: Func, costs: _Costs) -> None:
    """Marks the outermost loops that fit, and those inside them."""
    loops = _loops_of(func)
    done: set[Block] = set()
    for header, blocks in sorted(loops.items(), key=lambda item: -len(item[1])):
        cost = None if header in done else costs.of_loop(header, loops)
        if cost is None or _buffers(blocks, func) > MAX_BUFFERS:
            continue
        most = MAX_DISPATCHES * max_counted_iterations(costs.machine) // (cost.iterations + 2)
        for inner in blocks & set(loops):
            branch, length = inner.last, counted_length(inner, func) or 0
            assert isinstance(branch, util.CondBranch)
            branch.kernel_loop = IntegerAttr(length if inner is not header or length <= most else 0, I32)
            done.add(inner)


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


def _buffers(blocks: set[Block], func: Func) -> int:
    """The buffers that a loop may use besides those that the sequencer allocates."""
    used = {value for block in blocks for op in block for value in op.operands}
    given = [value for value in used if _is_given(value, func)]
    return len(given) + len(func.function_type.results)


def _is_given(value: Value, func: Func) -> bool:
    return value.parent_block is func.body.blocks[0] and (
        value.defining_op is None or isinstance(value.defining_op, util.GlobalLoad)
    )


@dataclass(frozen=True)
class _Costs:
    """Costs of the loops of a program on a machine. `entries`: those that are known."""

    machine: Machine
    tables: SymbolTables
    entries: dict[SymbolRef, Cost | None]

    def of_loop(self, header: Block, loops: dict[Block, set[Block]], depth: int = 1) -> Cost | None:
        """The cost of an iteration, inner loops included. None if the loop does not become a kernel."""
        blocks, total = loops[header], Cost()
        func = header.parent_op
        assert isinstance(func, Func)
        inner = [one for one in loops if one in blocks and one is not header]
        outer = [one for one in inner if not any(one in loops[other] for other in inner if other is not one)]
        for one in outer:
            length, cost = counted_length(one, func), self.of_loop(one, loops, depth + 1)
            if length is None or cost is None:
                return None
            total += cost.times(length)
        nested = {block for one in outer for block in loops[one]}
        for op in (op for block in func.body.blocks if block in blocks - nested for op in block):
            cost = self._of_op(op, func)
            if cost is None:
                return None
            total += cost
        most = max_counted_iterations(self.machine)
        fits = depth <= MAX_DEPTH and total.ops <= self.machine.loop_ops and total.iterations < most
        return total if fits else None

    def _of_op(self, op: Operation, func: Func) -> Cost | None:
        """The cost of an op of a block; None if it has no place in a kernel."""
        match op:
            case flow.Dispatch():
                if op.entry not in self.entries:
                    self.entries[op.entry] = self._of_entry(op)
                return self.entries[op.entry]
            case flow.Splat() | hl_seq.Clone():
                size = hl_seq.size_of(op.output.type)
                return None if is_dynamic(size) else cost_of_bytes(size)
            case util.CondBranch() | util.Switch():
                on_host = not hl_seq.is_resource(op.operands[0].type)
                assert op.parent is not None
                return None if on_host and counted_length(op.parent, func) is None else Cost(2)
            case util.Branch() | util.Constant() | util.Add() | util.CompareLt() | util.GlobalLoad() | hl_seq.Export():
                return Cost()
            case _:
                return None

    def _of_entry(self, dispatch: flow.Dispatch) -> Cost | None:
        func = self.tables.lookup(dispatch, dispatch.entry)
        assert isinstance(func, Func)
        if func.dims is not None:
            return None
        tied = () if dispatch.tied is None else dispatch.tied.ints
        return cost_of_part(Body.of_function(func, tied), self.machine)
