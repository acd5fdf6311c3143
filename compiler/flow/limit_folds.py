"""limit-folds: a call whose sizes make a fold too long for one invocation is the caller's error, and told so.

How many elements a reduction or a dot folds may be a size that a call brings. An invocation can take so many only
(docs/decisions/loop-turns.md), a workgroup, which few folds have each, as many times more. Where the bounds of the
symbols do not say that it is less, an assertion of the function does.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.ir.attributes import DimArray
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Dim, bounds
from orchestrion.compiler.stablehlo.base import tensor_of
from orchestrion.compiler.stablehlo.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.func import Func

from .dialect import Dispatch, Executable
from .util import Assert

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options

#: elements that one invocation folds at most, where a call brings how many: few enough for turns of 4
MOST_FOLDED: Final = 120_000
#: below so many, folds of a length that a call brings have a workgroup each, of `LANES` invocations
FEW_FOLDS: Final = 1024
LANES: Final = 128


def run(module: Module, options: Options) -> None:
    lengths: dict[str, list[tuple[int, int]]] = {}
    for executable in module.block:
        if isinstance(executable, Executable):
            lengths[executable.sym_name.value] = [fold for op in executable.walk() for fold in _folds(op)]
    for func in module.block:
        if isinstance(func, Func) and func.dims is not None:
            used = [fold for op in func.walk() if isinstance(op, Dispatch) for fold in lengths[op.entry.root]]
            for length, most in dict.fromkeys(used):
                _assert(func, length, most)


def _folds(op: Operation) -> list[tuple[int, int]]:
    """How many elements an op folds, and how many it may, where that is not known to be fewer."""
    if isinstance(op, Reduce):
        axes, value = op.dimensions.ints, op.inputs[0]
    elif isinstance(op, DotGeneral):
        axes, value = op.dimensions.lhs_contract, op.lhs
    else:
        return []
    length, folds = prod(tensor_of(value).shape[axis] for axis in axes), tensor_of(op.results[0]).num_elements
    few = not isinstance(folds, Dim) and folds < FEW_FOLDS
    most = MOST_FOLDED * LANES if few else MOST_FOLDED
    return [(length, most)] if isinstance(length, Dim) and bounds(length)[1] > most else []


def _assert(func: Func, length: int, most: int) -> None:
    entry = func.entry
    anchor = next((op for op in entry if not isinstance(op, Assert)), None)
    Builder(entry, anchor, func.loc).build(
        Assert,
        predicate="le",
        lhs=DimArray((length,)),
        rhs=DimArray((most,)),
        numbers=DimArray((length,)),
        message=f"a result is folded of {{0}} elements, of sizes that the call brings; {most} are the most",
    )
