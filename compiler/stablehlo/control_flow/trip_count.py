"""Iteration counts of loops, as far as constants and sizes determine them.

Recognized are loops in the form of `lax.fori_loop` with static bounds and `lax.scan`: a scalar integer starts at a
constant, each iteration adds a constant, and the predicate compares it with a constant or with a size. If it is a
symbolic size, the count is an expression. Loops whose counter would wrap around have no count.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrion.compiler.ir.attributes import DenseArray
from orchestrion.compiler.ir.core import BlockArgument, Value
from orchestrion.compiler.ir.dims import Size, bounds, ceildiv, dim_max, is_dynamic
from orchestrion.compiler.stablehlo.ops.base import dtype_of, integer_limits, tensor_of
from orchestrion.compiler.stablehlo.ops.control_flow import While
from orchestrion.compiler.stablehlo.ops.elementwise import MIRRORED, Compare
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import SIGNED, UNSIGNED


@dataclass(frozen=True, slots=True)
class Counter:
    """The carried value `index` is `start`, `start + step`, ... as long as its comparison with `bound` is true."""

    index: int
    direction: str
    start: Size
    step: int
    bound: Size


def trip_count(loop: While) -> Size | None:
    """The number of iterations; None if it is unknown, or if the counter may leave the range of its type."""
    counter = _counter(loop)
    if counter is None:
        return None
    trips = _trips(counter)
    if trips is None:
        return None
    low, high = integer_limits(dtype_of(loop.inits[counter.index]))
    least, most = bounds(counter.start + trips * counter.step)
    return trips if low <= least and most <= high else None


def _trips(counter: Counter) -> Size | None:
    start, step, bound = counter.start, counter.step, counter.bound
    if counter.direction in ("GT", "GE"):
        start, step, bound = -start, -step, -bound
    if is_dynamic(bound):
        bound += counter.direction in ("LE", "GE")
        return dim_max(ceildiv(bound - start, step), 0) if step > 0 else None
    match counter.direction:
        case "EQ":
            return int(start == bound) if step or start != bound else None
        case "NE":
            whole = step != 0 and (bound - start) % step == 0 and (bound - start) // step >= 0
            return (bound - start) // step if whole else None if start != bound else 0
        case "LE" | "GE":
            bound += 1
    if start >= bound:
        return 0
    return -((start - bound) // step) if step > 0 else None


def _counter(loop: While) -> Counter | None:
    test = loop.cond.block.end.operands[0].defining_op
    if not isinstance(test, Compare):
        return None
    for value, other, direction in (
        (test.lhs, test.rhs, test.direction),
        (test.rhs, test.lhs, MIRRORED[test.direction]),
    ):
        bound = integer(other) if direction in ("EQ", "NE") else _number(other)
        if isinstance(value, BlockArgument) and value.block is loop.cond.block and bound is not None:
            start, step = integer(loop.inits[value.index]), step_of(loop, value.index)
            if start is None or step is None:
                return None
            return Counter(value.index, direction, start, step, bound)
    return None


def step_of(loop: While, index: int) -> int | None:
    """The amount that each iteration adds to a carried integer; None if it does anything else."""
    counter = loop.body.block.arguments[index]
    op = loop.body.block.end.operands[index].defining_op
    if op is None or op.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    lhs, rhs = op.operands
    if lhs is counter:
        step = integer(rhs)
        return -step if step is not None and op.name == "stablehlo.subtract" else step
    return integer(lhs) if rhs is counter and op.name == "stablehlo.add" else None


def _number(value: Value) -> Size | None:
    """A scalar integer constant, or a size that fits the value's type."""
    maker = value.defining_op
    if maker is None or maker.name != "flow.size":
        return integer(value)
    size = maker.properties["value"]
    assert isinstance(size, DenseArray)
    (found,) = size.sizes
    (least, most), (low, high) = bounds(found), integer_limits(dtype_of(value))
    return found if low <= least and most <= high else None


def integer(value: Value) -> int | None:
    """A scalar integer constant; None for any other value."""
    maker = value.defining_op
    if not isinstance(maker, Constant) or tensor_of(value).rank or dtype_of(value).kind not in (SIGNED, UNSIGNED):
        return None
    return int(maker.value.scalars()[0])
