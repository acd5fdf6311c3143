"""`sort`: sorts the lines of elements along one axis by a comparator."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import BoolAttr, DialectAttr, IntegerAttr
from orchestrion.compiler.ir.core import Block, Region, Trait
from orchestrion.compiler.ir.declare import operands, optional, region, results
from orchestrion.compiler.ir.types import I1, TensorType
from orchestrion.schema.dtypes import FLOAT

from .base import ShapeError, StablehloOp, check_lines, dtype_of, tensor_of
from .contraction import Return, check_region
from .elementwise import Compare


class Sort(StablehloOp):
    """Sorts the lines along `dimension`, in all operands by the same permutation.

    The comparator takes two scalars per operand, of two positions, and returns whether the first position comes before
    the second. It must be a strict weak order, otherwise the order of the results is unspecified. A stable sort keeps
    the order of positions of which neither comes before the other. A negative dimension counts from the last axis.
    """

    name = "stablehlo.sort"
    inputs = operands(TensorType)
    dimension = optional(IntegerAttr)
    is_stable = optional(BoolAttr)
    comparator = region()
    out = results(TensorType)
    traits = frozenset({Trait.PURE, Trait.ISOLATED})

    @property
    def axis(self) -> int:
        """The dimension, counted from the first axis; by default the last."""
        given = -1 if self.dimension is None else self.dimension.value
        return given + tensor_of(self.inputs[0]).rank if given < 0 else given

    def infer(self) -> Sequence[TensorType]:
        types = check_lines(self.inputs, self.results)
        if not 0 <= self.axis < types[0].rank:
            given = -1 if self.dimension is None else self.dimension.value
            raise ShapeError(f"dimension {given} is not an axis of rank {types[0].rank}")
        scalars = [type.with_shape(()) for type in types for _ in range(2)]
        check_region("the comparator", self.comparator, scalars, [TensorType((), I1)])
        return types


def comparator_region(types: Sequence[TensorType], direction: str) -> Region:
    """A comparator for operands of these types: compares the first operand's elements, floats in total order."""
    scalars = [type.with_shape(()) for type in types for _ in range(2)]
    block = Block(scalars)
    lhs, rhs = block.arguments[:2]
    properties = {"comparison_direction": DialectAttr("stablehlo", f"comparison_direction {direction}")}
    if dtype_of(lhs).kind == FLOAT:
        properties["compare_type"] = DialectAttr("stablehlo", "comparison_type TOTALORDER")
    compare = Compare([lhs, rhs], [TensorType((), I1)], properties)
    block.append(compare)
    block.append(Return.build(values=[compare.result]))
    return Region([block])
