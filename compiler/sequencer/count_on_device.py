"""count-on-device: the iterations of loops of known length are counted in device memory, so that recordings hold them.

    before: branch ^header(0)                 after: branch ^header(splat -n)
    ^header(i): cond_branch (i < n) ^body, ^rest     ^header(c): cond_branch c ^body, ^rest
    ^body: branch ^header(i + 1)                     ^body: branch ^header(dispatch c + 1)

The counter is an i32 from -n up to 0, so its last byte is the predicate. Only in programs of profiles whose driver
records control flow, or for loops that become one kernel, and only for loops that `record-control-flow` can record:
their length is a constant, they call no function of another module, and so do the loops inside them. The host counts
the iterations of all others.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import DenseElements, SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Region, Value
from orchestrion.compiler.ir.dominance import loop_blocks
from orchestrion.compiler.ir.types import I32, FunctionType, tensor
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.stablehlo.ops.elementwise import OPS
from orchestrion.compiler.stablehlo.ops.func import Func, Return
from orchestrion.compiler.stablehlo.ops.structural import Constant

from . import hl_seq

COUNTER: Final = tensor((), "i32")
COUNTER_RESOURCE: Final = hl_seq.resource("transient", 4)


def run(program: hl_seq.Program) -> None:
    control_flow = known_profile(program.profile).control_flow
    entry: SymbolRef | None = None
    for func in program.body.block.of(Func):
        for loop in _countable(func):
            if not control_flow and "kernel_loop" not in loop.argument.block.end.properties:
                continue
            entry = entry or _increment(program, func)
            _count(loop, entry)


@dataclass(frozen=True, eq=False)
class _Loop:
    """A loop that the host counts: `argument` of its header is the number of past iterations, of `length`.

    `entering`: the branches to the header, and the number of the operand that becomes the argument.
    """

    argument: BlockArgument
    length: int
    entering: list[tuple[Operation, int]]
    blocks: set[Block]


def _countable(func: Func) -> list[_Loop]:
    """The loops of a function whose whole control flow can be recorded."""
    loops = {loop.argument.block: loop for block in func.body.blocks if (loop := _loop(block, func)) is not None}
    while refused := [one for one, loop in loops.items() if any(_needs_host(block, loops) for block in loop.blocks)]:
        for header in refused:
            del loops[header]
    return list(loops.values())


def _needs_host(block: Block, loops: dict[Block, _Loop]) -> bool:
    """Whether the host must run the end of a block: a call of another module, or a choice by a number on the host."""
    last = block.last
    if isinstance(last, util.CondBranch | util.Switch):
        return last.operands[0].type == I32 and block not in loops
    return isinstance(last, util.ImportedCallBranch)


def counted_length(header: Block, func: Func) -> int | None:
    """The number of iterations of the loop of a header, if the host counts them; None for any other block."""
    loop = _loop(header, func)
    return None if loop is None else loop.length


def _loop(header: Block, func: Func) -> _Loop | None:
    """The loop of a header as `lower-control-flow` writes it; None for any other block."""
    branch = header.last
    test = branch.condition.defining_op if isinstance(branch, util.CondBranch) else None
    if not isinstance(test, util.CompareLt) or not isinstance(test.lhs, BlockArgument) or test.lhs.block is not header:
        return None
    length = _constant(test.rhs)
    if length is None or length < 0:
        return None
    entering: list[tuple[Operation, int]] = [
        (op, edge.start + test.lhs.index)
        for op in (block.last for block in func.body.blocks)
        if isinstance(op, util.BranchOp)
        for edge in op.edges
        if edge.target is header
    ]
    following = [op for op in test.lhs.users() if op is not test]
    given = [op.operands[index] for op, index in entering]
    backs = [op.parent for (op, _), value in zip(entering, given, strict=True) if value.defining_op in following]
    starts = [value for value in given if value.defining_op not in following]
    if not all(isinstance(op, util.Add) and _constant(op.rhs) == 1 for op in following):
        return None
    if not backs or any(_constant(value) != 0 for value in starts):
        return None
    latches = [block for block in backs if block is not None]
    return _Loop(test.lhs, length, entering, loop_blocks(header, latches, func.body))


def _constant(value: Value) -> int | None:
    op = value.defining_op
    return op.value.value if isinstance(op, util.Constant) else None


def _increment(program: hl_seq.Program, func: Func) -> SymbolRef:
    """Adds an executable that adds 1 to a counter."""
    name = Names.of(program).fresh("next_iteration")
    body = Block([COUNTER])
    builder = Builder(body, loc=func.loc)
    one = builder.build(Constant, value=DenseElements(COUNTER, struct.pack("<i", 1)), out=COUNTER).result
    total = builder.insert(OPS["stablehlo.add"]([body.arguments[0], one], [COUNTER])).result
    builder.build(Return, values=[total])
    entry = Func.build(
        sym_name=name, function_type=FunctionType((COUNTER,), (COUNTER,)), kind="elementwise", body=Region([body])
    )
    Builder.before(func).insert(flow.Executable.of(entry, name))
    return SymbolRef(name, (name,))


def _count(loop: _Loop, entry: SymbolRef) -> None:
    """Replaces the number on the host by the counter."""
    counter = loop.argument
    branch = counter.block.last
    assert isinstance(branch, util.CondBranch)
    test = branch.condition.defining_op
    counter.type = COUNTER_RESOURCE
    branch.set_operand(0, counter)
    unused: list[Operation | None] = [test]
    start = DenseElements(COUNTER, struct.pack("<i", -loop.length))
    for op, index in loop.entering:
        builder, given = Builder.before(op), op.operands[index].defining_op
        if isinstance(given, util.Add):
            made: Operation = builder.build(
                flow.Dispatch,
                entry=entry,
                workload=[1, 1, 1],
                in_place=[0],
                arguments=[counter],
                outputs=[COUNTER_RESOURCE],
            )
        else:
            made = builder.build(flow.Splat, value=start, output=COUNTER_RESOURCE)
        op.set_operand(index, made.results[0])
        unused.append(given)
    for old in [op for op in dict.fromkeys(unused) if op is not None]:
        numbers = [value.defining_op for value in old.operands]
        for op in (old, *(number for number in numbers if isinstance(number, util.Constant))):
            if op.parent is not None and not any(value.uses for value in op.results):
                op.erase()
