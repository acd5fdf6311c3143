"""lower-windows: ops over windows become ops that read them.

    convolution        dot_general(windows(pad(lhs)), rhs)
    reduce_window      reduce(windows(pad(input, init))); where windows are wide, by doubling (wide_windows.py)
    select_and_scatter two reductions (select_and_scatter.py)

`flow.windows` only says where an element stands, as `pad`, `reverse` and `reshape` do, so nothing of this is in memory:
the dot or reduction computes from its operand's elements. Fusion and schedules are theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter, rewrite
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.windowed import Convolution, ReduceWindow, SelectAndScatter

from .convolution import as_dot
from .select_and_scatter import as_reductions
from .wide_windows import is_done, narrowed
from .window_builders import pad, windows

if TYPE_CHECKING:
    from orchestrion.compiler.options import Options


def run(module: Module, options: Options) -> None:
    rewrite(module, PATTERNS)


def _reduce_window(op: Operation, rewriter: Rewriter) -> bool:
    assert isinstance(op, ReduceWindow)
    window, rank, given = op.window, tensor_of(op.inputs[0]).rank, list(op.inputs)
    found = narrowed(op, rewriter)
    if found is not None:
        given, window = [found[0]], found[1]
        if is_done(window):
            rewriter.replace(op, given)
            return True
    inputs = []
    for value, init in zip(given, op.init_values, strict=True):
        inputs.append(windows(rewriter, pad(rewriter, value, init, window, range(rank)), window, range(rank)))
    gone = dense_ints(*range(rank, tensor_of(inputs[0]).rank))
    types = [result.type for result in op.results]
    body = op.body.clone()
    made = rewriter.build(Reduce, inputs=inputs, init_values=op.init_values, dimensions=gone, body=body, out=types)
    rewriter.replace(op, made.results)
    return True


def _convolution(op: Operation, rewriter: Rewriter) -> bool:
    assert isinstance(op, Convolution)
    rewriter.replace(op, [as_dot(op, rewriter)])
    return True


def _select_and_scatter(op: Operation, rewriter: Rewriter) -> bool:
    assert isinstance(op, SelectAndScatter)
    rewriter.replace(op, [as_reductions(op, rewriter)])
    return True


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    Convolution.name: (_convolution,),
    ReduceWindow.name: (_reduce_window,),
    SelectAndScatter.name: (_select_and_scatter,),
}
