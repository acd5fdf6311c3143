"""Bugs put into the lowering of schedules, one at a time: random schedules find each (`test_schedules.py`).

A bug is a context manager. None of them makes a kernel leave its bindings, which some devices do not survive.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from orchestrion.compiler.kernel.elements import loops
from orchestrion.compiler.kernel.elements.parts import Parts
from orchestrion.compiler.kernel.products.grid import Side
from orchestrion.compiler.kernel.products.staged import StagedNest

Bug = Callable[[], AbstractContextManager[Any]]


def _holds_less(self: Side, b: Any, at: int) -> Any:
    """Of a tile that is not moved back, the first place is taken for one of another tile."""
    if self.guard == "shift":
        return b.op("compare_gt", self.results[at], self.first)
    return _holds(self, b, at)


def _other_cut(b: Any, reduction: loops.Reduction, per_iteration: int) -> loops.Reduction:
    """The elements of an iteration are those that other iterations take."""
    cut = _cut(b, reduction, per_iteration)
    if cut is reduction:
        return reduction

    def element(coordinates: Sequence[Any]) -> Any:
        *before, number, _ = coordinates
        return cut.element([*before, number, b.index(0)])

    return replace(cut, element=element)


def _swapped_parts(self: Parts, *rest: Any) -> Any:
    """Later parts come before earlier ones."""
    swapped = replace(self.reduction, combine=lambda x, y: self.reduction.combine(y, x))
    return _and_parts(replace(self, reduction=swapped), *rest)


_holds: Any = Side.holds
_cut: Any = loops._cut
_and_parts: Any = Parts._and_parts

#: name -> the bug
BUGS: dict[str, Bug] = {
    "the first place of a tile is not written": lambda: patch.object(Side, "holds", _holds_less),
    "an iteration takes its first element several times": lambda: patch.object(loops, "_cut", _other_cut),
    "neighbours of a shared reduction are swapped": lambda: patch.object(Parts, "_and_parts", _swapped_parts),
    "what is left of a slice is not left out": lambda: patch.object(
        StagedNest, "_fills_slices", lambda self, level: True
    ),
}

#: a seed in front of the first one that finds the bug: there the ordinary tests begin
NEAR: dict[str, int] = {
    "the first place of a tile is not written": 5,
    "an iteration takes its first element several times": 5,
    "neighbours of a shared reduction are swapped": 97,
    "what is left of a slice is not left out": 10,
}
