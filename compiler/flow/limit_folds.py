"""limit-folds: a call whose sizes make a fold too long for one invocation is the caller's error, and told so.

How many elements a reduction or a dot folds may be a size that a call brings, and so may be how many updates an
invocation of a scatter goes through. An invocation can take so many only (docs/decisions/loop-turns.md), a workgroup,
which few folds have each, as many times more as it has invocations. Where the bounds of the symbols do not say that it
is less, an assertion of the function does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.ir.attributes import DimArray
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim, bounds
from orchestrion.compiler.stablehlo.base import tensor_of
from orchestrion.compiler.stablehlo.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.func import Func

from .dialect import Dispatch, Executable
from .scatter import MOST_UPDATES, Scatter
from .util import Assert

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options

#: elements that one invocation folds at most, where a call brings how many: few enough for turns of 4
MOST_FOLDED: Final = 120_000
#: below so many, folds of a length that a call brings have a workgroup each
FEW_FOLDS: Final = 1024
#: folds fewer than -> invocations of such a workgroup; most calls bring short ones, of which many wait for each other
SHARED: Final = {8: 128, FEW_FOLDS: 16}

#: what there is so much of -> what is said of it
SAID: Final = {
    "folds": "a result is folded of {{0}} elements, of sizes that the call brings; {most} are the most",
    "updates": "a scatter has {{0}} updates, of sizes that the call brings; {most} are the most",
}

#: how much there is of something, the most there may be, and a row of `SAID`
Limit = tuple[int, int, str]


def run(module: Module, options: Options) -> None:
    limits: dict[str, list[Limit]] = {}
    for executable in module.block:
        if isinstance(executable, Executable):
            limits[executable.sym_name.value] = [limit for op in executable.walk() for limit in _limits(op)]
    for func in module.block:
        if isinstance(func, Func) and func.dims is not None:
            used = [limit for op in func.walk() if isinstance(op, Dispatch) for limit in limits[op.entry.root]]
            for length, most, what in dict.fromkeys(used):
                _assert(func, length, most, SAID[what])


def _limits(op: Operation) -> list[Limit]:
    """How many elements an op folds, or updates it makes, and how many it may, where they are not known to be fewer."""
    if isinstance(op, Scatter):
        updates = tensor_of(op.indices).shape[1]
        return [] if op.is_unique else _beyond(updates, MOST_UPDATES, "updates")
    if isinstance(op, Reduce):
        folds = tensor_of(op.results[0]).num_elements
        return _beyond(_along(op.inputs[0], op.dimensions.ints), MOST_FOLDED * sharing(folds), "folds")
    if isinstance(op, DotGeneral):
        return _beyond(_along(op.lhs, op.dimensions.lhs_contract), MOST_FOLDED * _sharing_dot(op), "folds")
    return []


def _along(value: Value, axes: Sequence[int]) -> int:
    return prod(tensor_of(value).shape[axis] for axis in axes)


def _sharing_dot(op: DotGeneral) -> int:
    """As `sharing`, but where a dot has rows and columns an invocation may compute some of them, each by itself."""
    dims, sides = op.dimensions, (op.lhs, op.rhs)
    free = [_along(value, dims.free(tensor_of(value).rank, value is op.lhs)) for value in sides]
    return 1 if 1 not in free else sharing(tensor_of(op.out).num_elements)


def sharing(folds: int) -> int:
    """How many invocations share a fold of a length that a call brings; where it brings how many folds there are,
    they are many."""
    return 1 if isinstance(folds, Dim) else next((lanes for few, lanes in SHARED.items() if folds < few), 1)


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
