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


def counted_loop(rewriter: Rewriter, turns: int, inits: Sequence[Value], body: Body) -> list[Value]:
    """Runs `body` `turns` times on the iteration number and the carried values; returns the final carried values."""
    return while_loop(rewriter, inits, _test(turns), body)


def while_loop(rewriter: Rewriter, inits: Sequence[Value], test: Body, body: Body) -> list[Value]:
    """Runs `body` while `test` is true, both on the iteration number and the carried values; returns the final carried
    values.
    """
    types = [TensorType((), I32), *map(tensor_of, inits)]
    regions = [Block(types), Block(types)]
    for block in regions:
        block.append(Return.build(values=[], loc=rewriter.loc))
    inner = Rewriter({})
    for block, make in zip(regions, (test, _turn(body)), strict=True):
        end = block.end
        inner.at(end)
        end.set_operands(list(make(inner, block.arguments[0], list(block.arguments[1:]))))
    first = constant(rewriter, 0, types[0])
    cond, step = (Region([block]) for block in regions)
    made = rewriter.build(While, inits=[first, *inits], cond=cond, body=step, out=types)
    return list(made.results[1:])


def _test(turns: int) -> Body:
    return lambda rewriter, turn, _: [compare(rewriter, "LT", turn, constant(rewriter, turns, tensor_of(turn)))]


def _turn(body: Body) -> Body:
    def make(rewriter: Rewriter, turn: Value, carried: list[Value]) -> Sequence[Value]:
        made = body(rewriter, turn, carried)
        return [elementwise(rewriter, "add", turn, constant(rewriter, 1, tensor_of(turn))), *made]

    return make
