"""`batch_norm_inference`, `batch_norm_training` and `batch_norm_grad`, as the StableHLO specification defines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.attributes import FloatAttr, IntegerAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.rewriter import Pattern
from orchestrion.compiler.ir.types import F64
from orchestrion.compiler.stablehlo.builders.tensors import Made, Tensor, expansion
from orchestrion.schema.dtypes import FLOAT


@dataclass(frozen=True, slots=True)
class _Features:
    """Per-feature arithmetic, and its broadcast to the operand."""

    operand: Tensor
    axis: int
    epsilon: float

    def wide(self, x: Tensor) -> Tensor:
        """Broadcasts a number per feature to all elements."""
        return x.broadcast(self.operand.shape, [self.axis])

    def sum(self, x: Tensor) -> Tensor:
        return x.reduce([axis for axis in range(len(x.shape)) if axis != self.axis])

    def number(self, value: float | Size, like: Tensor) -> Tensor:
        """A number as a tensor of the type of `like`."""
        return like.splat(value, like.type.with_element(F64)).convert(like.dtype.name)

    def mean(self, x: Tensor) -> Tensor:
        summed = self.sum(x)
        return summed / self.number(self.count, summed)

    @property
    def count(self) -> Size:
        """Number of elements per feature."""
        return self.operand.type.num_elements // max(self.operand.shape[self.axis], 1)

    def shifted(self, variance: Tensor) -> Tensor:
        return variance + self.number(self.epsilon, variance)

    def normalized(self, scale: Tensor, offset: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        centered = self.operand - self.wide(mean)
        normal = centered / self.wide(self.shifted(variance).op("sqrt"))
        return self.wide(scale) * normal + self.wide(offset)


def _features(op: Operation, x: Tensor, *per_feature: Tensor) -> _Features | None:
    """The features of an op; None if the op is malformed."""
    index, epsilon = op.get_as("feature_index", IntegerAttr), op.get_as("epsilon", FloatAttr)
    if index is None or epsilon is None or not 0 <= index.value < len(x.shape) or x.dtype.kind != FLOAT:
        return None
    wanted = x.type.with_shape((x.shape[index.value],))
    return _Features(x, index.value, epsilon.value) if all(y.type == wanted for y in per_feature) else None


def _inference(op: Operation, x: Tensor, scale: Tensor, offset: Tensor, mean: Tensor, variance: Tensor) -> Made:
    f = _features(op, x, scale, offset, mean, variance)
    return None if f is None else f.normalized(scale, offset, mean, variance)


def _training(op: Operation, x: Tensor, scale: Tensor, offset: Tensor) -> Made:
    f = _features(op, x, scale, offset)
    if f is None:
        return None
    mean = f.mean(x)
    centered = x - f.wide(mean)
    variance = f.mean(centered * centered)
    return [f.normalized(scale, offset, mean, variance), mean, variance]


def _grad(op: Operation, x: Tensor, scale: Tensor, mean: Tensor, variance: Tensor, given: Tensor) -> Made:
    f = _features(op, x, scale, mean, variance)
    if f is None or given.type != x.type:
        return None
    centered, shifted = x - f.wide(mean), f.shifted(variance)
    deviation = shifted.op("sqrt")
    summed, weighted = f.sum(given), f.sum(given * centered)
    count = f.number(f.count, summed)
    own = given * f.wide(count) - f.wide(summed)
    through = f.wide(weighted / shifted) * centered
    return [f.wide(scale / deviation / count) * (own - through), weighted / deviation, summed]


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    "stablehlo.batch_norm_grad": (expansion(_grad, 5, 3),),
    "stablehlo.batch_norm_inference": (expansion(_inference, 5),),
    "stablehlo.batch_norm_training": (expansion(_training, 3, 3),),
}
