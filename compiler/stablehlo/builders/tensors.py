"""Tensors of a program as Python values: `2.0 * x + y` inserts the ops, and is again a `Tensor`.

Passes that write StableHLO use it so that formulas read like formulas. A Python number becomes a splat of the type of
the tensor that it meets. Nothing is simplified: every operation is computed as written, and rounds once; an op that
would only move elements, and moves none, is left out. `expansion` makes a pattern of a function on tensors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrion.compiler.ir import dims
from orchestrion.compiler.ir.attributes import (
    FLOAT_CODES,
    PARTS,
    ArrayAttr,
    DenseElements,
    DialectAttr,
    DimArray,
    IntegerAttr,
)
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.dims import Dim, ceildiv
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import I1, I32, TensorType, Type, scalar
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_complex, is_known, part_type, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, DotGeneral, Reduce, Return
from orchestrion.compiler.stablehlo.ops.elementwise import OPS, BitcastConvert, Compare, Complex, Convert
from orchestrion.compiler.stablehlo.ops.flow_ops import Size
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather
from orchestrion.compiler.stablehlo.ops.sort import Sort, comparator_region
from orchestrion.compiler.stablehlo.ops.structural import (
    BroadcastInDim,
    Concatenate,
    Constant,
    Iota,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from orchestrion.schema.dtypes import BY_NAME, FLOAT_FORMATS, SIGNED, DType
from orchestrion.schema.tensor_shapes import spread

Ints = Sequence[int]
Sizes = Sequence[dims.Size]
#: A number that becomes a splat; a size may depend on a call.
Number = float | Dim
OpClass = type[Operation]


@dataclass(frozen=True, slots=True)
class Format:
    """Properties of a float format that formulas need. `fraction` (bits) and `bias` are those of IEEE 754."""

    integer: str
    fraction: int
    bias: int
    #: Squares of magnitudes between 1 / large and large neither overflow nor underflow
    large: float
    #: x^2 + 1 rounds to x^2 above this bound
    long: float
    #: e^x is finite and normal for |x| up to this bound
    exponent: float
    #: tanh(x) rounds to 1 above this bound, since e^-2x vanishes beside 1
    flat: float


FORMATS: Final = {
    "f32": Format("i32", 23, 127, 2.0**60, 2.0**14, 80.0, 12.0),
    "f64": Format("i64", 52, 1023, 2.0**500, 2.0**28, 700.0, 24.0),
}


class Tensor:
    """A value of tensor type, and the rewriter that inserts what is computed from it."""

    __slots__ = ("rewriter", "value")

    def __init__(self, rewriter: Rewriter, value: Value) -> None:
        self.rewriter = rewriter
        self.value = value

    # Types

    @property
    def type(self) -> TensorType:
        return tensor_of(self.value)

    @property
    def shape(self) -> dims.Shape:
        """The size of each axis."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The row of the element type."""
        return dtype_of(self.value)

    @property
    def format(self) -> Format:
        """The properties of the element type, f32 or f64."""
        return FORMATS[self.dtype.name]

    @property
    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return is_complex(self.value)

    # Other tensors

    def build(self, cls: OpClass, **fields: Any) -> Tensor:
        """The first result of a new op; see `build`."""
        return build(self.rewriter, cls, **fields)[0]

    def splat(self, number: Number, type: TensorType) -> Tensor:
        """A number as a tensor of a type that can hold it."""
        return splat(self.rewriter, number, type)

    def int32(self, number: dims.Size, shape: Sizes = ()) -> Tensor:
        """A splat of an i32."""
        return self.splat(number, TensorType(tuple(shape), I32))

    def of(self, number: Tensor | Number) -> Tensor:
        """A Python number as a tensor of this type; a tensor unchanged."""
        return number if isinstance(number, Tensor) else self.splat(number, self.type)

    def zeros(self, shape: Sizes | None = None) -> Tensor:
        """Zeros of this element type, and of this shape unless another one is given."""
        type = self.type if shape is None else self.type.with_shape(tuple(shape))
        return _repeated(self.rewriter, bytes(BY_NAME[str(type.element)].itemsize), type)

    def iota(self, axis: int, element: str = "i32") -> Tensor:
        """The index along an axis of each element."""
        return iota(self.rewriter, self.shape, axis, element)

    # Elementwise ops

    def op(self, name: str, *others: Tensor | Number) -> Tensor:
        """An elementwise op by its name, without dialect for an op of StableHLO; this value is its first operand. The
        result has the type of the last operand.
        """
        operands = [self.value, *(self.of(other).value for other in others)]
        op = OPS[name if "." in name else f"stablehlo.{name}"](operands, [operands[-1].type])
        return Tensor(self.rewriter, self.rewriter.insert(op).result)

    def __add__(self, other: Tensor | Number) -> Tensor:
        return self.op("add", other)

    def __radd__(self, other: Number) -> Tensor:
        return self.of(other) + self

    def __sub__(self, other: Tensor | Number) -> Tensor:
        return self.op("subtract", other)

    def __rsub__(self, other: Number) -> Tensor:
        return self.of(other) - self

    def __mul__(self, other: Tensor | Number) -> Tensor:
        return self.op("multiply", other)

    def __rmul__(self, other: Number) -> Tensor:
        return self.of(other) * self

    def __truediv__(self, other: Tensor | Number) -> Tensor:
        return self.op("divide", other)

    def __rtruediv__(self, other: Number) -> Tensor:
        return self.of(other) / self

    def __neg__(self) -> Tensor:
        return self.op("negate")

    def __abs__(self) -> Tensor:
        return self.op("abs")

    def __and__(self, other: Tensor | dims.Size) -> Tensor:
        return self.op("and", other)

    def __or__(self, other: Tensor | dims.Size) -> Tensor:
        return self.op("or", other)

    def __xor__(self, other: Tensor | dims.Size) -> Tensor:
        return self.op("xor", other)

    def __invert__(self) -> Tensor:
        return self.op("not")

    def __lshift__(self, other: Tensor | dims.Size) -> Tensor:
        return self.op("shift_left", other)

    def __rshift__(self, other: Tensor | dims.Size) -> Tensor:
        return self.op("shift_right_arithmetic" if self.dtype.kind == SIGNED else "shift_right_logical", other)

    def compare(self, direction: str, other: Tensor | Number) -> Tensor:
        """Compares by EQ, NE, LT, LE, GT or GE; NaN makes all but NE false."""
        attribute, out = DialectAttr("stablehlo", f"comparison_direction {direction}"), self.type.with_element(I1)
        return self.build(Compare, lhs=self, rhs=self.of(other), comparison_direction=attribute, out=out)

    def eq(self, other: Tensor | Number) -> Tensor:
        """Whether elements are equal."""
        return self.compare("EQ", other)

    def ne(self, other: Tensor | Number) -> Tensor:
        """Whether elements differ."""
        return self.compare("NE", other)

    def __lt__(self, other: Tensor | Number) -> Tensor:
        return self.compare("LT", other)

    def __le__(self, other: Tensor | Number) -> Tensor:
        return self.compare("LE", other)

    def __gt__(self, other: Tensor | Number) -> Tensor:
        return self.compare("GT", other)

    def __ge__(self, other: Tensor | Number) -> Tensor:
        return self.compare("GE", other)

    def select(self, yes: Tensor | Number, no: Tensor | Number) -> Tensor:
        """`yes` where this mask is true, else `no`; at least one of them must be a tensor."""
        like = yes if isinstance(yes, Tensor) else no
        assert isinstance(like, Tensor), "one value has a type"
        return self.op("select", like.of(yes), like.of(no))

    def convert(self, element: str) -> Tensor:
        """A conversion to another element type; this tensor if it has that type."""
        if self.dtype.name == element:
            return self
        return self.build(Convert, operand_=self, out=self.type.with_element(scalar(element)))

    def bitcast(self, element: str) -> Tensor:
        """The same bits in another element type of the same width; this tensor if it has that type."""
        if self.dtype.name == element:
            return self
        return self.build(BitcastConvert, operand_=self, out=self.type.with_element(scalar(element)))

    # Floats and their bits

    @property
    def is_finite(self) -> Tensor:
        """True for numbers that are neither infinite nor NaN."""
        return abs(self) < float("inf")

    @property
    def is_infinite(self) -> Tensor:
        """True for infinities of both signs."""
        return abs(self).eq(float("inf"))

    @property
    def is_nan(self) -> Tensor:
        """True for NaN."""
        return self.ne(self)

    def signed(self, sign: Tensor) -> Tensor:
        """This magnitude with the sign of `sign`, including that of a zero or NaN."""
        format = self.format
        least = -(1 << format.fraction + format.bias.bit_length() + 1)
        bits = abs(self).bitcast(format.integer) | (sign.bitcast(format.integer) & least)
        return bits.bitcast(self.dtype.name)

    def exponent(self) -> Tensor:
        """The biased exponent of a magnitude, clamped so that 2 to this power and its inverse are normal numbers."""
        shifted = self.bitcast(self.format.integer) >> self.format.fraction
        return shifted.op("maximum", 1).op("minimum", 2 * self.format.bias - 1)

    def power(self, exponent: Tensor) -> Tensor:
        """2^(exponent - bias) in this type."""
        return (exponent << self.format.fraction).bitcast(self.dtype.name)

    # Shapes

    def reshape(self, *shape: dims.Size) -> Tensor:
        """The same elements in another shape."""
        if self.shape == shape:
            return self
        return self.build(Reshape, operand_=self, out=self.type.with_shape(shape))

    def transpose(self, *order: int) -> Tensor:
        """Result axis i is axis order[i]."""
        if list(order) == sorted(order):
            return self
        out = self.type.with_shape(tuple(self.shape[axis] for axis in order))
        return self.build(Transpose, operand_=self, permutation=order, out=out)

    def broadcast(self, shape: Sizes, axes: Ints = ()) -> Tensor:
        """Broadcasts to `shape`: axis i becomes axis axes[i]."""
        out = self.type.with_shape(tuple(shape))
        if out == self.type and list(axes) == list(range(len(shape))):
            return self
        return self.build(BroadcastInDim, operand_=self, broadcast_dimensions=axes, out=out)

    def slice(self, starts: Sizes, limits: Sizes, strides: Sizes = ()) -> Tensor:
        """The elements from `starts` up to `limits`, exclusive, `strides` apart; 1 apart by default."""
        steps = tuple(strides) or (1,) * len(starts)
        shape = tuple(ceildiv(end - start, step) for start, end, step in zip(starts, limits, steps, strict=True))
        if shape == self.shape:
            return self
        out = self.type.with_shape(shape)
        return self.build(Slice, operand_=self, start_indices=starts, limit_indices=limits, strides=steps, out=out)

    def cut(self, axis: int, start: dims.Size, limit: dims.Size, stride: dims.Size = 1) -> Tensor:
        """The elements from `start` up to `limit`, exclusive, of one axis, `stride` apart."""
        starts, limits, strides = self._per_axis(0), list(self.shape), self._per_axis(1)
        starts[axis], limits[axis], strides[axis] = start, limit, stride
        return self.slice(starts, limits, strides)

    def leading(self, shape: Sizes) -> Tensor:
        """A slice of the given shape from the start of each axis."""
        return self.slice((0,) * len(shape), shape)

    def reverse(self, *axes: int) -> Tensor:
        """Reverses the order of elements along axes."""
        if not axes:
            return self
        return self.build(Reverse, operand_=self, dimensions=axes, out=self.type)

    def pad(self, low: Sizes, high: Sizes, fill: Tensor | None = None, interior: Sizes = ()) -> Tensor:
        """Adds zeros or `fill` before each axis, behind it and between neighbours; negative numbers remove elements."""
        gaps = tuple(interior) or (0,) * len(low)
        if all(amount == 0 for amount in (*low, *high, *gaps)):
            return self
        rows = zip(low, self.shape, gaps, high, strict=True)
        return self.build(
            Pad,
            operand_=self,
            padding_value=self.zeros(()) if fill is None else fill,
            edge_padding_low=low,
            edge_padding_high=high,
            interior_padding=gaps,
            out=self.type.with_shape(tuple(before + spread(size, gap) + after for before, size, gap, after in rows)),
        )

    def pad_axis(self, axis: int, low: dims.Size, high: dims.Size, fill: Tensor) -> Tensor:
        """The same along one axis."""
        before, behind = self._per_axis(0), self._per_axis(0)
        before[axis], behind[axis] = low, high
        return self.pad(before, behind, fill)

    def _per_axis(self, number: int) -> list[dims.Size]:
        return [number] * len(self.shape)

    def pad_to(self, *shape: dims.Size) -> Tensor:
        """Pads at the end of each axis with zeros."""
        return self.pad([0] * len(shape), [size - old for size, old in zip(shape, self.shape, strict=True)])

    def take_along(self, places: Tensor, axis: int) -> Tensor:
        """The elements of each line along an axis, at the places that `places`, of the same shape, holds."""
        kept = [dim for dim in range(len(self.shape)) if dim != axis]
        return self.gather(
            places,
            [1] * len(self.shape),
            self.shape,
            collapsed_slice_dims=[axis],
            operand_batching_dims=kept,
            start_indices_batching_dims=kept,
            start_index_map=[axis],
        )

    def gather(self, at: Tensor, sizes: Sizes, shape: Sizes, **axes: Ints) -> Tensor:
        """Slices of `sizes` elements at the indices `at`, in a tensor of that shape. `axes` are the lists of
        `#stablehlo.gather`; each index is one number.
        """
        lists = "".join(f"{key} = {list(value)}, " for key, value in axes.items() if value)
        numbers = DialectAttr("stablehlo.gather", f"{lists}index_vector_dim = {len(at.shape)}")
        fields = {"start_indices": at, "dimension_numbers": numbers, "slice_sizes": sizes}
        return self.build(Gather, operand_=self, **fields, out=self.type.with_shape(tuple(shape)))

    def reduce(self, axes: Ints, name: str = "add", start: Tensor | None = None) -> Tensor:
        """Reduces along axes, with `add` or another elementwise op; starts with zero unless `start` is given."""
        if not axes:
            return self
        one = self.type.with_shape(())
        body = Block([one, one])
        combined = OPS[f"stablehlo.{name}"](body.arguments, [one])
        body.append(combined)
        body.append(Return.build(values=[combined.result]))
        return reduce_by([self], [self.zeros(()) if start is None else start], axes, Region([body]))[0]

    def dot(self, other: Tensor, dimensions: DotDimensions, precision: ArrayAttr | None = None) -> Tensor:
        """`dot_general`; the result has this element type. `precision`: its `precision_config`."""
        fields = {} if precision is None else {"precision_config": precision}
        out, numbers = self.type.with_shape(dimensions.shape(self.type, other.type)), dimensions.attribute()
        return self.build(DotGeneral, lhs=self, rhs=other, dot_dimension_numbers=numbers, out=out, **fields)

    # Places that are known at run time

    def _indices(self, starts: Sequence[Tensor | dims.Size]) -> list[Tensor]:
        """Start indices; a number gets the type of the others, or i32."""
        like = next((start for start in starts if isinstance(start, Tensor)), None) or self.int32(0)
        return [like.of(start) for start in starts]

    def dynamic_slice(self, starts: Sequence[Tensor | dims.Size], sizes: Sizes) -> Tensor:
        """`sizes` elements per axis from `starts` on."""
        places, out = self._indices(starts), self.type.with_shape(tuple(sizes))
        return self.build(DynamicSlice, operand_=self, start_indices=places, slice_sizes=sizes, out=out)

    def updated(self, starts: Sequence[Tensor | dims.Size], update: Tensor) -> Tensor:
        """This tensor with the elements from `starts` on replaced by those of `update`."""
        places = self._indices(starts)
        return self.build(DynamicUpdateSlice, operand_=self, update=update, start_indices=places, out=self.type)

    def line(self, axis: int, at: Tensor) -> Tensor:
        """The elements at an index of an axis, without that axis."""
        starts = [at if place == axis else 0 for place in range(len(self.shape))]
        rest = (self.shape[:axis], self.shape[axis + 1 :])
        return self.dynamic_slice(starts, (*rest[0], 1, *rest[1])).reshape(*rest[0], *rest[1])

    def with_line(self, axis: int, at: Tensor, line: Tensor) -> Tensor:
        """This tensor with the elements at an index of an axis replaced."""
        starts = [at if place == axis else 0 for place in range(len(self.shape))]
        return self.updated(starts, line.reshape(*self.shape[:axis], 1, *self.shape[axis + 1 :]))


def build(rewriter: Rewriter, cls: OpClass, **fields: Any) -> list[Tensor]:
    """The results of a new op. Fields for its operands are tensors, or lists of them."""
    made = rewriter.build(cls, **{name: _plain(given) for name, given in fields.items()})
    return [Tensor(rewriter, result) for result in made.results]


def _plain(given: Any) -> Any:
    if isinstance(given, list | tuple):
        return [_plain(one) for one in given]
    return given.value if isinstance(given, Tensor) else given


def index_type(count: dims.Size) -> Type:
    """The scalar type of indices below `count`: i32 if it suffices. Symbolic counts always fit i32."""
    return scalar("i32" if isinstance(count, Dim) or count < 1 << 31 else "i64")


def splat(rewriter: Rewriter, number: Number, type: TensorType) -> Tensor:
    """A number or size as a tensor of a type that can hold it. Integers are reduced modulo the type's width."""
    element = str(type.element)
    if isinstance(number, Dim):
        size = rewriter.build(Size, value=DimArray((number,)), out=type.with_shape(()))
        return Tensor(rewriter, size.result).broadcast(type.shape)
    if element in PARTS:
        real = splat(rewriter, number, part_type(type))
        return real.build(Complex, lhs=real, rhs=real.zeros(), out=type)
    if element in FLOAT_FORMATS:
        data = FLOAT_FORMATS[element].rounded(number).to_bytes(BY_NAME[element].itemsize, "little")
    elif element in FLOAT_CODES:
        data = struct.pack(FLOAT_CODES[element], number)
    else:
        bits = BY_NAME[element].bits
        data = (int(number) % (1 << bits)).to_bytes(max(bits // 8, 1), "little")
    return _repeated(rewriter, data, type)


def _repeated(rewriter: Rewriter, data: bytes, type: TensorType) -> Tensor:
    """An element in every place."""
    stated = type if type.is_static else type.with_shape(())
    made = rewriter.build(Constant, value=DenseElements(stated, data), out=stated)
    return Tensor(rewriter, made.result).broadcast(type.shape, range(stated.rank))


def iota(rewriter: Rewriter, shape: Sizes, axis: int, element: str = "i32") -> Tensor:
    """0, 1, 2, ... along an axis."""
    out = TensorType(tuple(shape), scalar(element))
    return Tensor(rewriter, rewriter.build(Iota, iota_dimension=IntegerAttr(axis), out=out).result)


def reduce_by(tensors: Sequence[Tensor], inits: Sequence[Tensor], axes: Ints, body: Region) -> list[Tensor]:
    """Reduces along axes by the region `body`, which the op takes over."""
    kept = tuple(size for axis, size in enumerate(tensors[0].shape) if axis not in axes)
    out = [x.type.with_shape(kept) for x in tensors]
    return build(tensors[0].rewriter, Reduce, inputs=tensors, init_values=inits, dimensions=axes, body=body, out=out)


def concatenate(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Joins tensors along an axis."""
    first = tensors[0]
    size = sum(one.shape[axis] for one in tensors)
    out = first.type.with_shape((*first.shape[:axis], size, *first.shape[axis + 1 :]))
    return first.build(Concatenate, inputs=tensors, dimension=axis, out=out)


def sort(tensors: Sequence[Tensor], axis: int, comparator: Region) -> list[Tensor]:
    """The lines of the first tensor along an axis in the order of a comparator, the others by the same permutation.
    Elements that are equal keep their order.
    """
    fields = {"dimension": axis, "is_stable": True, "comparator": comparator}
    return build(tensors[0].rewriter, Sort, inputs=tensors, **fields, out=[x.type for x in tensors])


def sort_with_places(x: Tensor, direction: str) -> list[Tensor]:
    """The last axis in ascending (LT) or descending (GT) order, and the place that each element had, as an i32."""
    both = [x, x.iota(len(x.shape) - 1)]
    return sort(both, len(x.shape) - 1, comparator_region([one.type for one in both], direction))


Made = Tensor | Sequence[Tensor] | None


def expansion(function: Callable[..., Made], operands: int | None, results: int | None = 1) -> Pattern:
    """A pattern that replaces an op of so many operands and results (None: any number), all of known types, by the
    tensors that `function(op, *operands)` returns. The op stays if that is None, or if a type differs.
    """

    def pattern(op: Operation, rewriter: Rewriter) -> bool:
        values = (*op.operands, *op.results)
        fits = operands in (None, len(op.operands)) and results in (None, len(op.results))
        if not fits or not all(is_known(value.type) for value in values):
            return False
        return replace(op, rewriter, function(op, *(Tensor(rewriter, value) for value in op.operands)))

    return pattern


def replace(op: Operation, rewriter: Rewriter, made: Made) -> bool:
    """Replaces an op by tensors of its result types; returns False for None and for other types."""
    tensors = [] if made is None else [made] if isinstance(made, Tensor) else made
    if made is None or [one.type for one in tensors] != [result.type for result in op.results]:
        return False
    return rewriter.replace(op, [one.value for one in tensors])
