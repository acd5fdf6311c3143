"""lower-control-flow: `if`, `case` and `while` become branches between the blocks of their function.

    before: branch ^header(init)
    ^header(x): c = cond(x); cond_branch c ^body, ^rest
    ^body: y = body(x); branch ^header(y)
    ^rest: the ops behind the loop, with x for its results

An `if` branches to two blocks, both of which branch to a block whose arguments are the results. The host counts the
iterations of a loop of known length, with `util` ops, so that no predicate is computed on the device or read back. A
block comes after all blocks that dominate it, and the blocks of a loop are contiguous.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.attributes import IntegerAttr, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.dims import Size, bounds, is_dynamic
from orchestrion.compiler.ir.types import I32
from orchestrion.compiler.ir.util import Add, Branch, CompareLt, CondBranch, Constant, DimValue, Switch
from orchestrion.compiler.stablehlo.control_flow.trip_count import trip_count
from orchestrion.compiler.stablehlo.ops.control_flow import Case, Choice, If, While

from .blocks import code_of, split_behind

#: most iterations that an i32 can count
MAX_COUNTED_ITERATIONS: Final = (1 << 31) - 1


def run(module: Module) -> None:
    """Lowers the control flow of all functions."""
    for op in code_of(module):
        _lower(op.regions[0])


def _lower(region: Region) -> None:
    """Lowers the ops of a region. New blocks are inserted behind the current one and visited next."""
    at = 0
    while at < len(region.blocks):
        block = region.blocks[at]
        op = next((op for op in block if isinstance(op, Choice | While)), None)
        if op is None:
            at += 1
            continue
        rest = split_behind(block, op)
        made = _loop(block, op, rest) if isinstance(op, While) else _choice(block, op, rest)
        for new in (*made, rest):
            new.region = region
        region.blocks[at + 1 : at + 1] = [*made, rest]
        op.erase()


def _choice(block: Block, op: Choice, rest: Block) -> list[Block]:
    """Branches to the blocks of the regions, which branch to `rest`. Returns the new blocks."""
    for result in op.results:
        result.replace_by(rest.add_argument(result.type, op.loc))
    arms = [region.blocks.pop() for region in op.regions]
    for arm in arms:
        last = arm.end
        Builder(arm, loc=op.loc).build(Branch, arguments=last.operands, to=rest)
        last.erase()
    builder = Builder(block, loc=op.loc)
    counts = dense_ints(*(0 for _ in arms))
    if isinstance(op, If):
        then, otherwise = arms
        builder.build(CondBranch, condition=op.pred, then=then, otherwise=otherwise, counts=counts)
    else:
        assert isinstance(op, Case)
        builder.build(Switch, index=op.index, targets=arms, counts=counts)
    return arms


def _loop(block: Block, op: While, rest: Block) -> list[Block]:
    """A loop that repeats the body while the predicate holds. Returns the new blocks."""
    trips = trip_count(op)
    header, body = op.cond.blocks.pop(), op.body.blocks.pop()
    for index, argument in enumerate(header.arguments):
        body.arguments[index].replace_by(argument)
        op.results[index].replace_by(argument)
    body.erase_arguments(range(len(body.arguments)))
    test, following = header.end, body.end
    start, after = Builder(block, loc=op.loc), Builder(body, following, op.loc)
    if trips is None or bounds(trips)[1] > MAX_COUNTED_ITERATIONS:
        condition = test.operands[0]
        start.build(Branch, arguments=op.inits, to=header)
        after.build(Branch, arguments=following.operands, to=header)
    else:
        iteration = header.add_argument(I32, op.loc)
        start.build(Branch, arguments=[*op.inits, _number(start, 0)], to=header)
        compare = Builder(header, test, op.loc)
        condition = compare.build(CompareLt, lhs=iteration, rhs=_number(compare, trips), out=I32).out
        done = after.build(Add, lhs=iteration, rhs=_number(after, 1), out=I32).out
        after.build(Branch, arguments=[*following.operands, done], to=header)
    counts = dense_ints(0, 0)
    Builder(header, loc=op.loc).build(CondBranch, condition=condition, then=body, otherwise=rest, counts=counts)
    test.erase()
    following.erase()
    return [header, body]


def _number(builder: Builder, value: Size) -> Value:
    if is_dynamic(value):
        return builder.build(DimValue, value=dense_ints(value), out=I32).out
    return builder.build(Constant, value=IntegerAttr(value, I32), out=I32).out
