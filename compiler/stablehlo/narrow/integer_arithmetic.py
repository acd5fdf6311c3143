"""Arithmetic on quantized values in integers: exact sums of products, rounded once to the integers of the result.

    number = (integer - zero point) * scale
    dot, convolution   sums of products of integers
    add, subtract      integers of both operands
    multiply, negate   products of integers, integers
    uniform_quantize   integers of another quantized type

The result is round_to_even(sum of (integer * scale / scale of the result) + zero point), clamped. A ratio of scales is
replaced by the nearest integer of 20 to 31 bits, divided by a power of two. Powers of two are exact. Otherwise a result
can differ by one step from the exact one if that is close to a tie.

Sums of products up to 2^24 are exact in f32, too, which processors and GPUs compute faster. So larger sums are split.
Without floats, sums are i32, or i64, and the zero point of the left operand is a correction: its product with the sums
of the right operand, which are constants if that is one. An op is left to arithmetic on numbers if integers could
overflow, or if its numbers are neither f32 nor f64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any, Final

import numpy as np

from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Size, numbers
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import ShapeError, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import HIGHEST, DotDimensions, DotGeneral
from orchestrion.compiler.stablehlo.ops.quantized_types import Quantized
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Constant, Reshape, Transpose
from orchestrion.compiler.stablehlo.ops.windowed import Convolution
from orchestrion.schema.dtypes import BY_NAME

Numbers = np.ndarray[Any, Any]

#: ops on operands of one quantized type, and with a result of that type, that compare or select integers
ORDERED: Final = frozenset({"stablehlo.maximum", "stablehlo.minimum", "stablehlo.clamp"})
#: bits of the largest ratio of scales: the most, and the least for which an op is computed in integers
_MOST_BITS: Final = 31
_LEAST_BITS: Final = 24
#: least bits of the smallest ratio with which all ratios along an axis have the same shift
_SHARED_BITS: Final = 20
#: products of parts that replace one product at most
_MOST_PARTS: Final = 16
#: magnitudes below which sums are exact in f32, i32 and i64
_EXACT: Final = {"f32": (1 << 24) + 1, "i32": 1 << 31, "i64": 1 << 38}


@dataclass(frozen=True, slots=True)
class _Term:
    """Integers without zero points, their greatest magnitude, and their scale, or scales along an axis."""

    x: Tensor
    bound: int
    scales: Numbers
    axis: int | None


@dataclass(frozen=True, slots=True)
class IntegerArithmetic:
    """Expands ops on the quantized values `known`. `floats`: f32 computes sums of products."""

    known: Mapping[Value, Quantized]
    floats: bool
    _bounds: dict[Value, int] = field(default_factory=dict)

    def expand(self, op: Operation, rewriter: Rewriter) -> Tensor | None:
        """The integers of the result of an op; None if floats must compute it."""
        rows = [self.known.get(value) for value in (*op.operands, *op.results)]
        found = [row for row in rows if row is not None and row.expressed in ("f32", "f64")]
        if len(found) != len(rows) or len(op.results) != 1:
            return None
        if op.name in ORDERED and all(row == found[0] for row in found):
            return Tensor(rewriter, rewriter.insert(op.clone()).results[0])
        try:
            terms = _TERMS[op.name](self, op, rewriter) if op.name in _TERMS else None
        except ShapeError:  # the verifier reports it
            return None
        return None if terms is None else self._rescaled(terms, found[-1])

    def term(self, rewriter: Rewriter, value: Value, sign: int = 1) -> _Term:
        """The integers of a value as a term."""
        row, x = self.known[value], Tensor(rewriter, value)
        if any(row.zero_points):
            wide = "i32" if BY_NAME[row.storage].bits <= 16 else "i64"
            x = x.convert(wide) - constant(x.convert(wide), row.zero_points, row.axis)
        elif row.storage == "ui32":
            x = x.convert("i64")
        return _Term(x, self._bound(value, row), sign * scales_of(row), row.axis)

    def _bound(self, value: Value, row: Quantized) -> int:
        """The greatest magnitude of the integers of a value without zero points."""
        if value in self._bounds:
            return self._bounds[value]
        op = value.defining_op
        if isinstance(op, Constant) and not any(row.zero_points):
            return int(np.abs(op.value.array().astype(np.int64)).max(initial=1))
        if isinstance(op, BroadcastInDim | Reshape | Transpose) and not any(row.zero_points):
            return self._bound(op.operands[0], row)
        return max(row.most - min(row.zero_points), max(row.zero_points) - row.least)

    def _rescaled(self, terms: Sequence[_Term], row: Quantized) -> Tensor | None:
        """The sum of terms as integers of a quantized type; None if it could overflow."""
        axes = {axis for axis in (row.axis, *(term.axis for term in terms)) if axis is not None}
        if len(axes) > 1:
            return None
        axis = next(iter(axes), None)
        plan = _plan([term.scales / scales_of(row) for term in terms], [term.bound for term in terms], row)
        if plan is None:
            return None
        factors, shifts, points, most = plan
        wide = "i32" if most < _EXACT["i32"] else "i64"
        total: Tensor | None = None
        for term, factor in zip(terms, factors, strict=True):
            x = term.x.convert(wide)
            x = x if (factor == 1).all() else x * constant(x, factor, axis)
            total = x if total is None else total + x
        assert total is not None, "an op has terms"
        total = total + constant(total, points << shifts, axis) if points.any() else total
        if shifts.any():
            distance = constant(total, shifts, axis)
            total = (total + ((total >> distance) & 1) + constant(total, (1 << (shifts - 1)) - 1, axis)) >> distance
        return self._clamped(total, most >> int(shifts.min()), row)

    def _clamped(self, total: Tensor, bound: int, row: Quantized) -> Tensor:
        """Integers of a magnitude up to `bound` within the limits of a quantized type, in its storage type."""
        total = total.convert("i32") if bound < _EXACT["i32"] else total
        total = total.op("maximum", row.least) if -bound < row.least else total
        total = total.op("minimum", row.most) if bound > row.most else total
        made = total.convert(row.storage)
        self._bounds[made.value] = bound + max(abs(point) for point in row.zero_points)
        return made


def _plan(
    ratios: Sequence[Numbers], bounds: Sequence[int], row: Quantized
) -> tuple[Numbers, Numbers, Numbers, int] | None:
    """The integers and shifts for ratios of scales, (terms, channels) and (channels), the zero points, and the
    greatest magnitude of the sum; None if it does not fit 63 bits.
    """
    points = np.array(row.zero_points, np.int64)
    table = np.stack(np.broadcast_arrays(*ratios, points.astype(float)))[:-1]
    table = np.where(np.abs(np.abs(table) - 1) < 2.0**-22, np.sign(table), table)
    exponents = np.frexp(np.abs(table).max(axis=0))[1]
    for bits in range(_MOST_BITS, _LEAST_BITS - 1, -1):
        shared = exponents.max() if bits - np.ptp(exponents) >= _SHARED_BITS else exponents
        shifts = np.clip(bits - shared, 0, 62).astype(np.int64) + np.zeros_like(exponents)
        factors = np.rint(np.ldexp(table, shifts))
        if np.abs(factors).max() >= 2.0**62:
            return None
        factors, shifts = _reduced(factors.astype(np.int64), shifts)
        sums = sum(bound * abs(factor.astype(object)) for bound, factor in zip(bounds, factors, strict=True))
        most = int(np.max(sums + (abs(points.astype(object)) + 1) * 2 ** shifts.astype(object)))
        if most < 1 << 63:
            return factors, shifts, np.broadcast_to(points, shifts.shape), most
    return None


def _reduced(factors: Numbers, shifts: Numbers) -> tuple[Numbers, Numbers]:
    """The same ratios with the least shifts, which are all zero or all positive."""
    bits = int(np.bitwise_or.reduce(factors, axis=None))
    spare = min((bits & -bits).bit_length() - 1 if bits else 62, int(shifts.min()))
    factors, shifts = factors >> spare, shifts - spare
    return (factors, shifts) if shifts.all() or not shifts.any() else (factors << 1, shifts + 1)


def scales_of(row: Quantized) -> Numbers:
    """The scales, rounded to the expressed type, as f64."""
    return np.array(row.scales, BY_NAME[row.expressed].numpy).astype(np.float64)


def constant(like: Tensor, values: Sequence[float] | Numbers, axis: int | None) -> Tensor:
    """Integers of the element type of `like`, one for all elements or one per index of an axis, in its shape."""
    numbers = np.asarray(values).astype(like.dtype.numpy).reshape(-1)
    if axis is None or (numbers == numbers[0]).all():
        return like.of(int(numbers[0]))
    type = TensorType((len(numbers),), like.type.element)
    made = like.build(Constant, value=DenseElements(type, numbers.tobytes()), out=type)
    return made.broadcast(like.shape, (axis,))


# Terms of each op


def _sum(self: IntegerArithmetic, op: Operation, rewriter: Rewriter) -> list[_Term] | None:
    signs = _SIGNS[op.name]
    if len(op.operands) != len(signs) or not _is_elementwise(op):
        return None
    return [self.term(rewriter, value, sign) for value, sign in zip(op.operands, signs, strict=True)]


def _product(self: IntegerArithmetic, op: Operation, rewriter: Rewriter) -> list[_Term] | None:
    if len(op.operands) != 2 or not _is_elementwise(op):
        return None
    left, right = (self.term(rewriter, value) for value in op.operands)
    bound, axes = left.bound * right.bound, {left.axis, right.axis} - {None}
    if bound >= _EXACT["i64"] or len(axes) > 1:
        return None
    wide = "i32" if bound < _EXACT["i32"] else "i64"
    x = left.x.convert(wide) * right.x.convert(wide)
    return [_Term(x, bound, left.scales * right.scales, next(iter(axes), None))]


def _is_elementwise(op: Operation) -> bool:
    return len({tensor_of(value).shape for value in (*op.operands, *op.results)}) == 1


@dataclass(frozen=True, slots=True)
class _Axes:
    """Axes of a contraction. `kept`: those of the right operand that are not summed -> those of the result. `split`:
    the axes of the operands along which a sum can be split.
    """

    kept: dict[int, int]
    split: tuple[int, int] | None


def _contraction(self: IntegerArithmetic, op: Operation, rewriter: Rewriter) -> list[_Term] | None:
    axes, left, right = _axes(op), *(self.known[value] for value in op.operands)
    if axes is None or left.axis is not None or not (right.axis is None or right.axis in axes.kept):
        return None
    sizes = tensor_of(op.operands[1]).shape
    summed = [size for axis, size in enumerate(sizes) if axis not in axes.kept]
    if not all(isinstance(size, int) and size > 0 for size in summed):
        return None
    weights = self.term(rewriter, op.operands[1])
    largest = prod(numbers(summed)) * weights.bound
    bound, length = largest * self._bound(op.operands[0], left), 1 if axes.split is None else int(sizes[axes.split[1]])
    step = min((_EXACT["f32"] - 1) * length // max(bound, 1), length)
    if self.floats and step * _MOST_PARTS >= length:
        found: Tensor | None = _in_floats(op, rewriter, left, weights.x, axes.split, step)
    else:
        bound = largest * (max(abs(left.least), abs(left.most)) + abs(left.zero_points[0]))
        found = _in_integers(op, rewriter, left, weights.x, axes, bound)
    if found is None:
        return None
    axis = None if right.axis is None else axes.kept[right.axis]
    return [_Term(found, bound, scales_of(left) * weights.scales, axis)]


def _in_floats(
    op: Operation, rewriter: Rewriter, row: Quantized, weights: Tensor, split: tuple[int, int] | None, step: int
) -> Tensor:
    """Sums of (l - zero point) * r: sums of parts of so many elements of the split axis, which are exact in f32."""
    left = Tensor(rewriter, op.operands[0]).convert("f32")
    left, right = left - row.zero_points[0] if row.zero_points[0] else left, weights.convert("f32")
    if split is None or step >= right.shape[split[1]]:
        return _like(op, left, right).convert("i32")
    size = right.shape[split[1]]
    places = [(start, min(start + step, size)) for start in range(0, size, step)]
    found = [_like(op, left.cut(split[0], *at), right.cut(split[1], *at)).convert("i32") for at in places]
    return reduce(Tensor.__add__, found)


def _in_integers(
    op: Operation, rewriter: Rewriter, row: Quantized, weights: Tensor, axes: _Axes, bound: int
) -> Tensor | None:
    """Sums of l * r - zero point * sums of r, which are up to `bound`; None if that is too much."""
    wide = next((name for name in ("i32", "i64") if bound < _EXACT[name]), None)
    if wide is None:
        return None
    left, plain, (point,) = Tensor(rewriter, op.operands[0]), op.clone(), row.zero_points
    if point and isinstance(plain, Convolution):
        left = _padded(plain, left, point)
    right = weights.convert(wide)
    total = _like(plain, left.convert(wide), right)
    if point:
        sums = right.reduce([axis for axis in range(len(right.shape)) if axis not in axes.kept]) * point
        total = total - sums.broadcast(total.shape, [axes.kept[axis] for axis in sorted(axes.kept)])
    return total


def _like(op: Operation, left: Tensor, right: Tensor) -> Tensor:
    """A contraction like `op` of other operands, in their element type."""
    made = op.clone()
    for index, operand in enumerate((left, right)):
        made.set_operand(index, operand.value)
    made.results[0].type = tensor_of(op.results[0]).with_element(left.type.element)
    if isinstance(made, Convolution):  # factors of transformed operands have more bits than f32
        made.properties["precision_config"] = HIGHEST
    return Tensor(left.rewriter, left.rewriter.insert(made).results[0])


def _padded(op: Convolution, x: Tensor, point: int) -> Tensor:
    """The left operand of a convolution, padded and dilated with a zero point; the op no longer does so."""
    axes, window = op.axes, op.window
    low, high, interior = (list[Size]([0] * len(axes.lhs)) for _ in range(3))
    for index, name in enumerate(axes.spatial):
        at = axes.lhs.index(name)
        low[at], high[at], interior[at] = window.low[index], window.high[index], window.base_dilations[index] - 1
    op.properties.pop("padding", None)
    op.properties.pop("lhs_dilation", None)
    return x.pad(low, high, x.splat(point, x.type.with_shape(())), interior)


def _axes(op: Operation) -> _Axes | None:
    """The axes of a contraction; None for an op that is not understood."""
    left, right, out = (tensor_of(value).rank for value in (*op.operands, *op.results))
    if isinstance(op, Convolution):
        axes, groups = op.axes, op.feature_group_count.value
        if not left == right == out == len(axes.lhs):
            return None
        split = (axes.lhs.index("f"), axes.rhs.index("i")) if groups == 1 else None
        return _Axes({axes.rhs.index("o"): axes.out.index("f")}, split)
    if isinstance(op, DotGeneral):
        dims = DotDimensions.of(op.dot_dimension_numbers)
        free, batch = dims.free(right, False), len(dims.lhs_batch)
        first = batch + len(dims.free(left, True))
        if op.algorithm is not None or out != first + len(free) or len(dims.lhs_contract) != len(dims.rhs_contract):
            return None
        if any(axis >= left for axis in dims.lhs_contract) or any(axis >= right for axis in dims.rhs_contract):
            return None
        pairs, sizes = zip(dims.lhs_contract, dims.rhs_contract, strict=True), tensor_of(op.rhs).shape
        split = max(pairs, key=lambda pair: sizes[pair[1]], default=None)
        kept = {axis: first + index for index, axis in enumerate(free)}
        return _Axes(dict(zip(dims.rhs_batch, range(batch), strict=False)) | kept, split)
    if not (1 <= right <= 2 and 1 <= left <= 2 and out == left + right - 2):
        return None
    return _Axes({axis: out - 1 for axis in range(1, right)}, (left - 1, 0))


_SIGNS: Final = {
    "stablehlo.add": (1, 1),
    "stablehlo.subtract": (1, -1),
    "stablehlo.negate": (-1,),
    "stablehlo.uniform_quantize": (1,),
}
_CONTRACTIONS: Final = ("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution")
#: op -> the terms of its result; None if floats must compute it
_TERMS: Final[dict[str, Callable[[IntegerArithmetic, Operation, Rewriter], list[_Term] | None]]] = {
    **dict.fromkeys(_SIGNS, _sum),
    "stablehlo.multiply": _product,
    **dict.fromkeys(_CONTRACTIONS, _contraction),
}
