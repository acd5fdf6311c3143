"""StableHLO ops that combine many elements into one: `reduce`, `dot_general`, and `return`, which ends a region."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.attributes import ArrayAttr, DenseArray, DialectAttr
from orchestrion.compiler.ir.core import Operation, Region, Trait, Value
from orchestrion.compiler.ir.declare import attr, operand, operands, optional, region, results
from orchestrion.compiler.ir.dims import Shape
from orchestrion.compiler.ir.types import TensorType

from .base import PureOp, ShapeError, StablehloOp, axes, check_lines, tensor_of, type_list

#: the precision of a convolution that sums products of its operands alone, never of sums of elements
HIGHEST: Final = ArrayAttr((DialectAttr("stablehlo", "precision HIGHEST"),) * 2)
_LIST: Final = re.compile(r"(\w+)\s*=\s*\[\s*((?:[0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*)?)\s*\]")


class Return(Operation):
    """Ends a region of an op; its operands are the region's results."""

    name = "stablehlo.return"
    values = operands()
    traits = frozenset({Trait.TERMINATOR})


class Reduction(StablehloOp):
    """Base of `reduce` and `reduce_window`. The reducer takes a scalar per operand: accumulators, then elements."""

    inputs = operands(TensorType)
    init_values = operands(TensorType)
    body = region()
    out = results(TensorType)
    traits = frozenset({Trait.PURE, Trait.ISOLATED})
    same_size = True

    def reduced(self, shape: Shape) -> Shape:
        """The shape of the results for operands of this shape. Raises ShapeError."""
        raise NotImplementedError(self.name)

    def infer(self) -> Sequence[TensorType]:
        types = check_lines(self.inputs, self.results)
        kept, scalars = self.reduced(types[0].shape), [type.with_shape(()) for type in types]
        check_inits(self.init_values, scalars)
        check_region("the reducer", self.body, scalars * 2, scalars)
        return [type.with_shape(kept) for type in types]


class Reduce(Reduction):
    """Combines the elements along `dimensions`, starting with the init values, in any order."""

    name = "stablehlo.reduce"
    dimensions = attr(DenseArray)

    def reduced(self, shape: Shape) -> Shape:
        gone = axes("dimensions", self.dimensions.ints, len(shape))
        return tuple(size for axis, size in enumerate(shape) if axis not in gone)


def check_inits(values: Sequence[Value], scalars: list[TensorType]) -> None:
    """Checks for one scalar init value per operand. Raises ShapeError."""
    inits = [value.type for value in values]
    if inits != scalars:
        raise ShapeError(f"init values must be ({type_list(scalars)}), are ({type_list(inits)})")


def check_region(what: str, body: Region, takes: list[TensorType], gives: list[TensorType]) -> None:
    """Checks that a region has one block with these arguments and results. Raises ShapeError."""
    if len(body.blocks) != 1:
        raise ShapeError(f"{what} needs one block, has {len(body.blocks)}")
    arguments, last = [argument.type for argument in body.block.arguments], body.block.last
    if arguments != takes:
        raise ShapeError(f"{what} must take ({type_list(takes)}), takes ({type_list(arguments)})")
    if not isinstance(last, Return):
        raise ShapeError(f"{what} must end in {Return.name}")
    given = [value.type for value in last.operands]
    if given != gives:
        raise ShapeError(f"{what} must return ({type_list(gives)}), returns ({type_list(given)})")


@dataclass(frozen=True, slots=True)
class DotDimensions:
    """Batch and contracted axes of a dot's operands; others are free. Result axes: batch, free of lhs, free of rhs."""

    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contract: tuple[int, ...]
    rhs_contract: tuple[int, ...]

    @classmethod
    def of(cls, attribute: DialectAttr) -> DotDimensions:
        """From `#stablehlo.dot<lhs_batching_dimensions = [0], ...>`. Raises ShapeError."""
        body = attribute.body
        found = {key: tuple(int(x) for x in text.split(",") if x) for key, text in _LIST.findall(body)}
        unknown = [key for key in found if key not in _DOT_KEYS]
        if attribute.name != "stablehlo.dot" or unknown or _LIST.sub("", body).strip(" ,\n"):
            raise ShapeError(f"dot_dimension_numbers {attribute} is not understood")
        return cls(*(found.get(key, ()) for key in _DOT_KEYS))

    def attribute(self) -> DialectAttr:
        """The axes as `#stablehlo.dot<...>`."""
        values = (self.lhs_batch, self.rhs_batch, self.lhs_contract, self.rhs_contract)
        parts = [f"{key} = {list(value)}" for key, value in zip(_DOT_KEYS, values, strict=True) if value]
        return DialectAttr("stablehlo.dot", ", ".join(parts))

    def free(self, rank: int, left: bool) -> tuple[int, ...]:
        """The axes of one operand that are neither batch nor contracted, in order."""
        bound = self.lhs_batch + self.lhs_contract if left else self.rhs_batch + self.rhs_contract
        return tuple(axis for axis in range(rank) if axis not in bound)

    def shape(self, left: TensorType, right: TensorType) -> Shape:
        """The shape of the result for operands of these types."""
        first = [left.shape[axis] for axis in (*self.lhs_batch, *self.free(left.rank, True))]
        return (*first, *(right.shape[axis] for axis in self.free(right.rank, False)))


_DOT_KEYS: Final = (
    "lhs_batching_dimensions",
    "rhs_batching_dimensions",
    "lhs_contracting_dimensions",
    "rhs_contracting_dimensions",
)


class DotGeneral(PureOp):
    """Sums products over the contracted axes. Operands and result differ in element type before legalization only."""

    name = "stablehlo.dot_general"
    lhs = operand(TensorType)
    rhs = operand(TensorType)
    dot_dimension_numbers = attr(DialectAttr)
    precision_config = optional(ArrayAttr)
    algorithm = optional(DialectAttr)

    @property
    def dimensions(self) -> DotDimensions:
        """The axes. Raises ShapeError."""
        return DotDimensions.of(self.dot_dimension_numbers)

    @property
    def sides(self) -> tuple[tuple[Value, tuple[int, ...]], tuple[Value, tuple[int, ...]]]:
        """Each operand with its contracted axes. Raises ShapeError."""
        dims = self.dimensions
        return (self.lhs, dims.lhs_contract), (self.rhs, dims.rhs_contract)

    def infer(self) -> Sequence[TensorType]:
        left, right, dims = tensor_of(self.lhs), tensor_of(self.rhs), self.dimensions
        _pairs("batching", left, right, dims.lhs_batch, dims.rhs_batch)
        _pairs("contracting", left, right, dims.lhs_contract, dims.rhs_contract)
        axes("lhs axes", dims.lhs_batch + dims.lhs_contract, left.rank)
        axes("rhs axes", dims.rhs_batch + dims.rhs_contract, right.rank)
        if left.element != right.element:
            raise ShapeError(f"operands differ in element type: {left}, {right}")
        return [tensor_of(self.out).with_shape(dims.shape(left, right))]


def _pairs(what: str, left: TensorType, right: TensorType, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> None:
    if len(lhs) != len(rhs):
        raise ShapeError(f"{len(lhs)} {what} axes on the left, {len(rhs)} on the right")
    for a, b in zip(lhs, rhs, strict=True):
        if a >= left.rank or b >= right.rank or left.shape[a] != right.shape[b]:
            raise ShapeError(f"{what} axes {a} of {left} and {b} of {right} do not match")
