"""unroll-short-loops: replaces a short loop with a small body by copies of the body, and any loop of one iteration.

Each iteration of a loop costs launches, and copies of the carried values that move. After unrolling, constants of the
iterations fold, and one dispatch computes all of them. JAX's random numbers are such a loop, with five iterations.
`docs/decisions/short-loops.md` has the measurement behind the limits.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.builder import inline_block
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block
from orchestrion.compiler.ir.dims import is_dynamic
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.ops import structural
from orchestrion.compiler.stablehlo.ops.contraction import Return
from orchestrion.compiler.stablehlo.ops.control_flow import While
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise

from .trip_count import trip_count

MAX_ITERATIONS: Final = 8
#: Maximum number of ops of all iterations together, without constants.
MAX_OPS: Final = 320


def run(module: Module) -> None:
    for op in reversed(list(module.walk())):  # inner ops come first
        if not isinstance(op, While):
            continue
        iterations = trip_count(op)
        if iterations is None or is_dynamic(iterations) or iterations > MAX_ITERATIONS:
            continue
        if iterations <= 1 or iterations * _iteration_size(op.body.block) <= MAX_OPS:
            _unroll(op, iterations)


def _iteration_size(body: Block) -> float:
    """Number of ops of one iteration; infinite with others than elementwise ops and movement between known places."""
    ops = [op for op in body if not isinstance(op, structural.Constant | Return)]
    simple = all(isinstance(op, Elementwise) or op.name in structural.OPS for op in ops)
    return len(ops) if simple else float("inf")


def _unroll(loop: While, iterations: int) -> None:
    rewriter = Rewriter.before(loop)
    carried = list(loop.inits)
    for _ in range(iterations):
        carried = inline_block(loop.body.block, carried, rewriter.insert)
    rewriter.replace(loop, carried)
