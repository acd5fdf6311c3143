"""StableHLO ops that choose what is computed: `if`, `case`, `while`.

Their regions use values from outside freely. Nothing in them has an effect beyond its results, so an op whose results
nobody uses goes, even a `while` that would never end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from orchestrion.compiler.ir.core import Region, Trait, Value
from orchestrion.compiler.ir.declare import operand, operands, region, regions, results
from orchestrion.compiler.ir.types import I1, I32, TensorType

from .base import ShapeError, StablehloOp, tensor_of
from .contraction import Return

_PURE: Final = frozenset({Trait.PURE})
_PREDICATE: Final = TensorType((), I1)
_INDEX: Final = TensorType((), I32)


class Choice(StablehloOp):
    """What `if` and `case` have in common: regions without arguments, of which one is computed."""

    #: the type of the operand that chooses
    selector: ClassVar[TensorType] = _INDEX

    def infer(self) -> Sequence[TensorType]:
        if not self.regions:
            raise ShapeError("needs a branch")
        chosen = self.operands[0].type
        if chosen != self.selector:
            raise ShapeError(f"operand 0 must be {self.selector}, is {chosen}")
        wanted = _types(self.results)
        for number, branch in enumerate(self.regions):
            _check_region(f"branch {number}", branch, [], wanted)
        return wanted


class If(Choice):
    """Computes `true_branch` when `pred` is true, else `false_branch`."""

    name = "stablehlo.if"
    pred = operand(TensorType)
    true_branch = region()
    false_branch = region()
    out = results(TensorType)
    traits = _PURE
    selector = _PREDICATE


class Case(Choice):
    """Computes branch number `index`, or the last one when there is none."""

    name = "stablehlo.case"
    index = operand(TensorType)
    branches = regions()
    out = results(TensorType)
    traits = _PURE


class While(StablehloOp):
    """The carried values start as `inits`; as long as `cond` of them is true, `body` gives the next ones."""

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
        _check_region("cond", self.cond, carried, [_PREDICATE])
        _check_region("body", self.body, carried, carried)
        return carried


def _check_region(what: str, given: Region, taken: list[TensorType], returned: list[TensorType]) -> None:
    """One block that takes and returns values of these types. Raises ShapeError."""
    if len(given.blocks) != 1:
        raise ShapeError(f"{what} needs one block, has {len(given.blocks)}")
    arguments = [argument.type for argument in given.block.arguments]
    if arguments != taken:
        raise ShapeError(f"{what} must take ({_list(taken)}), takes ({_list(arguments)})")
    last = given.block.last
    if not isinstance(last, Return):
        raise ShapeError(f"{what} must end in {Return.name}")
    values = [value.type for value in last.operands]
    if values != returned:
        raise ShapeError(f"{what} must return ({_list(returned)}), returns ({_list(values)})")


def _types(values: Sequence[Value]) -> list[TensorType]:
    return [tensor_of(value) for value in values]


def _list(types: Sequence[object]) -> str:
    return ", ".join(map(str, types))


OPS: Final = {cls.name: cls for cls in (If, Case, While)}
