"""StableHLO ops of control flow: `if`, `case`, `while`.

Their regions may use values from outside. Ops in them have no effect beyond their results, so an op with unused results
is erased, even a `while` that would never end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from orchestrion.compiler.ir.core import Trait, Value
from orchestrion.compiler.ir.declare import operand, operands, region, regions, results
from orchestrion.compiler.ir.types import I1, I32, TensorType

from .base import ShapeError, StablehloOp, tensor_of
from .contraction import check_region

_PURE: Final = frozenset({Trait.PURE})
_PREDICATE: Final = TensorType((), I1)
_INDEX: Final = TensorType((), I32)


class Choice(StablehloOp):
    """Base of `if` and `case`: regions without arguments, one of which is computed."""

    #: the type of the operand that selects the region
    selector: ClassVar[TensorType] = _INDEX

    def infer(self) -> Sequence[TensorType]:
        if not self.regions:
            raise ShapeError("needs a branch")
        chosen = self.operands[0].type
        if chosen != self.selector:
            raise ShapeError(f"operand 0 must be {self.selector}, is {chosen}")
        wanted = _types(self.results)
        for number, branch in enumerate(self.regions):
            check_region(f"branch {number}", branch, [], wanted)
        return wanted


class If(Choice):
    """Computes `true_branch` if `pred` is true, else `false_branch`."""

    name = "stablehlo.if"
    pred = operand(TensorType)
    true_branch = region()
    false_branch = region()
    out = results(TensorType)
    traits = _PURE
    selector = _PREDICATE


class Case(Choice):
    """Computes the branch with number `index`; the last one if the number is out of range."""

    name = "stablehlo.case"
    index = operand(TensorType)
    branches = regions()
    out = results(TensorType)
    traits = _PURE


class While(StablehloOp):
    """Carried values start as `inits`; while `cond` returns true for them, `body` computes the next ones."""

    name = "stablehlo.while"
    inits = operands(TensorType)
    cond = region()
    body = region()
    out = results(TensorType)
    traits = _PURE

    def infer(self) -> Sequence[TensorType]:
        carried = _types(self.inits)
        if len(self.results) != len(carried):
            raise ShapeError(f"{len(carried)} operands need as many results, not {len(self.results)}")
        check_region("cond", self.cond, carried, [_PREDICATE])
        check_region("body", self.body, carried, carried)
        return carried


def _types(values: Sequence[Value]) -> list[TensorType]:
    return [tensor_of(value) for value in values]
