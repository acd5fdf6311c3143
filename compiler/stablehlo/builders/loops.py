"""Builders of loops for passes that write StableHLO. A loop with a known iteration count runs as one submission."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.ops.contraction import Return
from orchestrion.compiler.stablehlo.ops.control_flow import While

from .tensors import Tensor, build

Body = Callable[[Tensor, list[Tensor]], Sequence[Tensor]]


def region_of(rewriter: Rewriter, types: Sequence[TensorType], make: Callable[..., Sequence[Tensor]]) -> Region:
    """A region of one block with arguments of these types, which returns what `make` computes from them."""
    block, end = Block(types, [rewriter.loc] * len(types)), Return.build(values=[], loc=rewriter.loc)
    block.append(end)
    with rewriter.inside(end):
        end.set_operands([made.value for made in make(*(Tensor(rewriter, argument) for argument in block.arguments))])
    return Region([block])


def move_block(block: Block, rewriter: Rewriter) -> list[Value]:
    """Moves the ops of a block, except its terminator, to the place of the rewriter; returns what the block returns."""
    *inner, last = block.ops
    for op in inner:
        op.detach()
        rewriter.insert(op)
    return list(last.operands)


def counted_loop(iterations: Size, inits: Sequence[Tensor], body: Body) -> list[Tensor]:
    """Runs `body` that many times on the iteration number and the carried values; returns the final carried values."""
    return while_loop(inits, lambda iteration, _: [iteration < iterations], body)


def while_loop(inits: Sequence[Tensor], test: Body, body: Body) -> list[Tensor]:
    """Runs `body` while `test` is true, on the iteration number and the carried values; returns the final values."""
    rewriter, types = inits[0].rewriter, [TensorType((), I32), *(init.type for init in inits)]

    def step(iteration: Tensor, *carried: Tensor) -> Sequence[Tensor]:
        made = body(iteration, list(carried))
        return [iteration + 1, *made]

    cond = region_of(rewriter, types, lambda iteration, *carried: test(iteration, list(carried)))
    following = region_of(rewriter, types, step)
    return build(rewriter, While, inits=[inits[0].int32(0), *inits], cond=cond, body=following, out=types)[1:]
