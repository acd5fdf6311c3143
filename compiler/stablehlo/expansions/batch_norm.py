"""`batch_norm_inference`, `batch_norm_training` and `batch_norm_grad`, as the StableHLO specification defines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.attributes import FloatAttr, IntegerAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import F64, TensorType
from orchestrion.compiler.stablehlo.builders.basic import constant, convert, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, reduce_axes
from orchestrion.compiler.stablehlo.ops.base import is_known, tensor_of
from orchestrion.schema.dtypes import BY_NAME, FLOAT


@dataclass(frozen=True, slots=True)
class _Features:
    """Per-feature arithmetic, and its broadcast to the operand."""

    rewriter: Rewriter
    type: TensorType
    axis: int
    epsilon: float

    def op(self, name: str, *values: Value) -> Value:
        return elementwise(self.rewriter, name, *values)

    def wide(self, value: Value) -> Value:
        """Broadcasts a number per feature to all elements."""
        return broadcast(self.rewriter, value, self.type.shape, [self.axis])

    def sum(self, value: Value) -> Value:
        return reduce_axes(self.rewriter, value, [axis for axis in range(self.type.rank) if axis != self.axis])

    def number(self, value: float, like: Value) -> Value:
        """A number as a tensor with the element type of `like`."""
        given = constant(self.rewriter, value, tensor_of(like).with_element(F64))
        return convert(self.rewriter, given, str(tensor_of(like).element))

    def mean(self, value: Value) -> Value:
        summed = self.sum(value)
        return self.op("divide", summed, self.number(self.count, summed))

    @property
    def count(self) -> int:
        """Number of elements per feature."""
        return self.type.num_elements // max(self.type.shape[self.axis], 1)

    def shifted(self, variance: Value) -> Value:
        return self.op("add", variance, self.number(self.epsilon, variance))


def _features(op: Operation, rewriter: Rewriter, operands: int, results: int) -> _Features | None:
    """The features of an op; None if the op is malformed."""
    index, epsilon = op.get_as("feature_index", IntegerAttr), op.get_as("epsilon", FloatAttr)
    if (len(op.operands), len(op.results)) != (operands, results) or index is None or epsilon is None:
        return None
    type = op.operands[0].type
    if not is_known(type) or not isinstance(type, TensorType) or not 0 <= index.value < type.rank:
        return None
    per_feature = type.with_shape((type.shape[index.value],))
    wanted = [type, *[per_feature] * (operands - 1)]
    wanted[-1] = type if operands == 5 and op.name.endswith("grad") else wanted[-1]
    given = [type, *[per_feature] * (results - 1)]
    if [x.type for x in op.operands] != wanted or [x.type for x in op.results] != given:
        return None
    if BY_NAME[str(type.element)].kind != FLOAT:
        return None
    return _Features(rewriter, type, index.value, epsilon.value)


def _normalized(f: _Features, operand: Value, scale: Value, offset: Value, mean: Value, variance: Value) -> Value:
    centered = f.op("subtract", operand, f.wide(mean))
    normal = f.op("divide", centered, f.wide(f.op("sqrt", f.shifted(variance))))
    return f.op("add", f.op("multiply", f.wide(scale), normal), f.wide(offset))


def _inference(op: Operation, rewriter: Rewriter) -> bool:
    f = _features(op, rewriter, 5, 1)
    if f is None:
        return False
    operand, scale, offset, mean, variance = op.operands
    rewriter.replace(op, [_normalized(f, operand, scale, offset, mean, variance)])
    return True


def _training(op: Operation, rewriter: Rewriter) -> bool:
    f = _features(op, rewriter, 3, 3)
    if f is None:
        return False
    operand, scale, offset = op.operands
    mean = f.mean(operand)
    centered = f.op("subtract", operand, f.wide(mean))
    variance = f.mean(f.op("multiply", centered, centered))
    rewriter.replace(op, [_normalized(f, operand, scale, offset, mean, variance), mean, variance])
    return True


def _grad(op: Operation, rewriter: Rewriter) -> bool:
    f = _features(op, rewriter, 5, 3)
    if f is None:
        return False
    operand, scale, mean, variance, given = op.operands
    centered = f.op("subtract", operand, f.wide(mean))
    shifted = f.shifted(variance)
    deviation = f.op("sqrt", shifted)
    summed, weighted = f.sum(given), f.sum(f.op("multiply", given, centered))
    count = f.number(f.count, summed)
    own = f.op("subtract", f.op("multiply", given, f.wide(count)), f.wide(summed))
    through = f.op("multiply", f.wide(f.op("divide", weighted, shifted)), centered)
    factor = f.op("divide", f.op("divide", scale, deviation), count)
    of_operand = f.op("multiply", f.wide(factor), f.op("subtract", own, through))
    rewriter.replace(op, [of_operand, f.op("divide", weighted, deviation), summed])
    return True


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    "stablehlo.batch_norm_grad": (_grad,),
    "stablehlo.batch_norm_inference": (_inference,),
    "stablehlo.batch_norm_training": (_training,),
}
