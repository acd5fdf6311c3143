"""`flow.merge`: merges sorted runs into runs of twice the length, stable, with any comparator. A sort is a loop of
merges.

An axis consists of runs of 2^step elements; the last may be shorter. Each two neighbouring runs are merged. If neither
of two elements comes before the other, the one of the left run comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.core import Trait
from orchestrion.compiler.ir.declare import attr, operand, operands, region, results
from orchestrion.compiler.ir.types import I1, I32, TensorType
from orchestrion.compiler.stablehlo.ops.base import ShapeError, StablehloOp, check_lines, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import check_region


class Merge(StablehloOp):
    """Merges neighbouring runs of 2^step elements along `dimension`, in all operands alike.

    The comparator is that of a `stablehlo.sort`. `step` is a scalar, so that one executable serves all iterations of a
    sort. A step larger than the axis means one run; a step below zero counts as 0.
    """

    name = "flow.merge"
    inputs = operands(TensorType)
    step = operand(TensorType)
    dimension = attr(IntegerAttr)
    comparator = region()
    out = results(TensorType)
    traits = frozenset({Trait.PURE, Trait.ISOLATED})

    @property
    def axis(self) -> int:
        """The axis along which runs lie."""
        return self.dimension.value

    def infer(self) -> Sequence[TensorType]:
        types = check_lines(self.inputs, self.results)
        if tensor_of(self.step) != TensorType((), I32):
            raise ShapeError(f"step must be tensor<i32>, is {self.step.type}")
        if not 0 <= self.axis < types[0].rank:
            raise ShapeError(f"dimension {self.axis} is no axis of rank {types[0].rank}")
        scalars = [type.with_shape(()) for type in types for _ in range(2)]
        check_region("comparator", self.comparator, scalars, [TensorType((), I1)])
        return types
