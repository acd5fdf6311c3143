"""Builders of loops for passes that write StableHLO. A loop with a known iteration count runs as one submission."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Return
from orchestrion.compiler.stablehlo.ops.control_flow import While

from .basic import compare, constant, elementwise

Body = Callable[[Rewriter, Value, list[Value]], Sequence[Value]]


def counted_loop(rewriter: Rewriter, iterations: int, inits: Sequence[Value], body: Body) -> list[Value]:
    """Runs `body` that many times on the iteration number and the carried values; returns the final carried values."""
    return while_loop(rewriter, inits, _test(iterations), body)


def while_loop(rewriter: Rewriter, inits: Sequence[Value], test: Body, body: Body) -> list[Value]:
    """Runs `body` while `test` is true, both on the iteration number and the carried values; returns the final carried
    values.
    """
    types = [TensorType((), I32), *map(tensor_of, inits)]
    regions = [Block(types), Block(types)]
    for block in regions:
        block.append(Return.build(values=[], loc=rewriter.loc))
    inner = Rewriter({})
    for block, make in zip(regions, (test, _iteration(body)), strict=True):
        end = block.end
        inner.at(end)
        end.set_operands(list(make(inner, block.arguments[0], list(block.arguments[1:]))))
    first = constant(rewriter, 0, types[0])
    cond, step = (Region([block]) for block in regions)
    made = rewriter.build(While, inits=[first, *inits], cond=cond, body=step, out=types)
    return list(made.results[1:])


def _test(iterations: int) -> Body:
    return lambda rewriter, iteration, _: [
        compare(rewriter, "LT", iteration, constant(rewriter, iterations, tensor_of(iteration)))
    ]


def _iteration(body: Body) -> Body:
    def make(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
        made = body(rewriter, iteration, carried)
        return [elementwise(rewriter, "add", iteration, constant(rewriter, 1, tensor_of(iteration))), *made]

    return make
