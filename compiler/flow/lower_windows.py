"""lower-windows: ops over windows become ops on the result of `flow.windows`.

    convolution        dot_general(windows(pad(lhs)), rhs), of a form that runs faster (convolution_forms.py)
    reduce_window      reduce(windows(pad(input, init))); wide windows by doubling (wide_windows.py)
    select_and_scatter two reductions (select_and_scatter.py)

`flow.windows` only places elements, as `pad`, `reverse` and `reshape` do, so its result is never in memory: the dot or
the reduction reads the elements of the original operand. Fusion and schedules treat it like any other dot or reduction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter, rewrite
from orchestrion.compiler.options import Options
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, reduce_by
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.windowed import Convolution, ReduceWindow, SelectAndScatter

from .convolution import as_dot
from .convolution_forms import features_last, without_base_dilation
from .select_and_scatter import as_reductions
from .wide_windows import is_done, narrowed
from .window_builders import windows_of


def run(module: Module, options: Options) -> None:
    """Lowers all ops over windows."""
    rewrite(module, PATTERNS_OF_PROCESSORS if "cpu" in options.machines else PATTERNS)


def _reduce_window(op: ReduceWindow, rewriter: Rewriter) -> bool:
    window, rank, given = op.window, tensor_of(op.inputs[0]).rank, list(op.inputs)
    found = narrowed(op, rewriter)
    if found is not None:
        given, window = [found[0]], found[1]
        if is_done(window):
            return rewriter.replace(op, given)
    inits = [Tensor(rewriter, init) for init in op.init_values]
    pairs = zip((Tensor(rewriter, value) for value in given), inits, strict=True)
    inputs = [windows_of(x, init, window, range(rank)) for x, init in pairs]
    made = reduce_by(inputs, inits, range(rank, len(inputs[0].shape)), op.body.clone())
    return rewriter.replace(op, [x.value for x in made])


def _by(make: Callable[[Any, Rewriter], Value | None]) -> Pattern:
    """A pattern that replaces an op by the value that a function makes for it, and keeps it if that is None."""

    def pattern(op: Operation, rewriter: Rewriter) -> bool:
        made = make(op, rewriter)
        return made is not None and rewriter.replace(op, [made])

    return pattern


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    Convolution.name: (_by(without_base_dilation), _by(as_dot)),
    ReduceWindow.name: (_reduce_window,),
    SelectAndScatter.name: (_by(as_reductions),),
}
#: transposed operands are measured on processors; a microcontroller has no memory for them
PATTERNS_OF_PROCESSORS: Final[dict[str, tuple[Pattern, ...]]] = {
    **PATTERNS,
    Convolution.name: (_by(features_last), *PATTERNS[Convolution.name]),
}
