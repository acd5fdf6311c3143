"""limit-folds: a call whose sizes make a fold too long for one invocation is the caller's error, and told so.

How many elements a reduction or a dot folds may be a size that a call brings, and so may be how many updates an
invocation of a scatter goes through. An invocation can take so many only (docs/decisions/loop-turns.md), a workgroup,
which few folds have each, as many times more. Where the bounds of the symbols do not say that it is less, an assertion
of the function does.
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
from .scatter import Scatter
from .util import Assert

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options

#: elements that one invocation folds at most, where a call brings how many: few enough for turns of 4
MOST_FOLDED: Final = 120_000
#: below so many, folds of a length that a call brings have a workgroup each, of `LANES` invocations
FEW_FOLDS: Final = 1024
LANES: Final = 128
#: updates of a group in one scatter: an invocation looks at each, many a turn
MOST_UPDATES: Final = 1 << 18

#: what there is so much of -> what is said of it
SAID: Final = {
    "folds": "a result is folded of {{0}} elements, of sizes that the call brings; {most} are the most",
    "updates": "a scatter has {{0}} updates, of sizes that the call brings; {most} are the most",
}

#: how much there is of something, the most there may be, and a row of `SAID`
Limit = tuple[int, int, str]


def run(module: Module, options: Options) -> None:
    lengths: dict[str, list[Limit]] = {}
    for executable in module.block:
        if isinstance(executable, Executable):
            lengths[executable.sym_name.value] = [fold for op in executable.walk() for fold in _folds(op)]
    for func in module.block:
        if isinstance(func, Func) and func.dims is not None:
            used = [fold for op in func.walk() if isinstance(op, Dispatch) for fold in lengths[op.entry.root]]
            for length, most, what in dict.fromkeys(used):
                _assert(func, length, most, SAID[what])


def _folds(op: Operation) -> list[Limit]:
    """How many elements an op folds, and how many it may, where that is not known to be fewer."""
    if isinstance(op, Scatter):
        updates = tensor_of(op.indices).shape[1]
        return [] if op.is_unique else _beyond(updates, MOST_UPDATES, "updates")
    if isinstance(op, Reduce):
        axes, value = op.dimensions.ints, op.inputs[0]
    elif isinstance(op, DotGeneral):
        axes, value = op.dimensions.lhs_contract, op.lhs
    else:
        return []
    length, folds = prod(tensor_of(value).shape[axis] for axis in axes), tensor_of(op.results[0]).num_elements
    few = not isinstance(folds, Dim) and folds < FEW_FOLDS
    most = MOST_FOLDED * LANES if few else MOST_FOLDED
    return _beyond(length, most, "folds")


def _beyond(count: int, most: int, what: str) -> list[Limit]:
    return [(count, most, what)] if isinstance(count, Dim) and bounds(count)[1] > most else []


def _assert(func: Func, length: int, most: int, said: str) -> None:
    entry = func.entry
    anchor = next((op for op in entry if not isinstance(op, Assert)), None)
    Builder(entry, anchor, func.loc).build(
        Assert,
        predicate="le",
        lhs=DimArray((length,)),
        rhs=DimArray((most,)),
        numbers=DimArray((length,)),
        message=said.format(most=most),
    )
