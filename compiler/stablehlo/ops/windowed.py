"""StableHLO ops over windows of a tensor: `convolution`, `reduce_window` and `select_and_scatter`.

A window has a size and moves by a stride, per axis. Its elements may be spaced apart (window dilation), and so may
those of the tensor (base dilation), which is then padded, or cropped by negative padding. Defaults are 1 and no
padding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.attributes import ArrayAttr, DenseArray, DenseElements, DialectAttr, IntegerAttr
from orchestrion.compiler.ir.core import Trait
from orchestrion.compiler.ir.declare import attr, operand, optional, region, result
from orchestrion.compiler.ir.dims import Shape, Size, is_less
from orchestrion.compiler.ir.types import I1, I64, TensorType
from orchestrion.schema.tensor_shapes import spread, window_count

from .base import PureOp, ShapeError, StablehloOp, per_axis, tensor_of
from .contraction import Reduction, check_inits, check_region

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """One number per axis of each kind; `low` and `high` are the padding at both ends."""

    sizes: Shape
    strides: Shape
    low: Shape
    high: Shape
    base_dilations: Shape
    dilations: Shape

    @classmethod
    def of(
        cls,
        sizes: Shape,
        strides: DenseArray | None,
        padding: DenseElements | None,
        base_dilations: DenseArray | None,
        dilations: DenseArray | None,
    ) -> Window:
        """From the attributes of an op. Raises ShapeError."""
        rank = len(sizes)
        low, high = _padding(padding, rank)
        given = {"strides": strides, "base dilations": base_dilations, "window dilations": dilations}
        steps = {name: _ones(rank) if x is None else per_axis(name, x, rank) for name, x in given.items()}
        for name, values in {"window sizes": sizes, **steps}.items():
            if any(is_less(value, 1) for value in values):
                raise ShapeError(f"{name} {list(values)} must be positive")
        return cls(sizes, steps["strides"], low, high, steps["base dilations"], steps["window dilations"])

    def padded(self, shape: Sequence[Size]) -> Shape:
        """The sizes that windows move over after dilation and padding, for axes of these sizes. Raises ShapeError."""
        found: list[Size] = []
        for axis, size in enumerate(shape):
            found.append(self.low[axis] + spread(size, self.base_dilations[axis] - 1) + self.high[axis])
            if is_less(found[-1], 0):
                raise ShapeError(f"padding leaves {found[-1]} elements of an axis of size {size}")
        return tuple(found)

    def counts(self, shape: Sequence[Size]) -> Shape:
        """The number of windows along axes of these sizes. Raises ShapeError."""
        rows = zip(self.padded(shape), self.sizes, self.strides, self.dilations, strict=True)
        return tuple(window_count(*row) for row in rows)


def _ones(rank: int) -> Ints:
    return (1,) * rank


def _padding(padding: DenseElements | None, rank: int) -> tuple[Ints, Ints]:
    """The padding before and after each axis."""
    if padding is None:
        return (0,) * rank, (0,) * rank
    if padding.type != TensorType((rank, 2), I64):
        raise ShapeError(f"padding must be tensor<{rank}x2xi64>, is {padding.type}")
    numbers = padding.array()
    return tuple(int(x) for x in numbers[:, 0]), tuple(int(x) for x in numbers[:, 1])


_NUMBERS: Final = re.compile(r"\s*\[([\w\s,]*)\]\s*x\s*\[([\w\s,]*)\]\s*->\s*\[([\w\s,]*)\]\s*")


@dataclass(frozen=True, slots=True)
class ConvolutionAxes:
    """The meaning of each axis of the operands and of the result: a letter, or the number of a spatial axis.

    `b` batch and `f` feature in `lhs` and `out`; `i` and `o`, input and output feature, in `rhs`.
    """

    lhs: tuple[str, ...]
    rhs: tuple[str, ...]
    out: tuple[str, ...]

    @classmethod
    def of(cls, attribute: DialectAttr) -> ConvolutionAxes:
        """From `#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`. Raises ShapeError."""
        match = _NUMBERS.fullmatch(attribute.body)
        if attribute.name != "stablehlo.conv" or match is None:
            raise ShapeError(f"dimension_numbers {attribute} is not understood")
        lhs, rhs, out = (tuple(text.replace(",", " ").split()) for text in match.groups())
        found = cls(lhs, rhs, out)
        spatial = [str(axis) for axis in range(len(found.lhs) - 2)]
        for given, letters in ((found.lhs, "bf"), (found.rhs, "io"), (found.out, "bf")):
            if sorted(given) != sorted([*letters, *spatial]):
                raise ShapeError(f"dimension_numbers {attribute}: [{', '.join(given)}] is not an order of its axes")
        return found

    @property
    def spatial(self) -> tuple[str, ...]:
        """The names of the spatial axes: "0", "1", ..."""
        return tuple(str(axis) for axis in range(len(self.lhs) - 2))


class AnyConvolution(PureOp):
    """What `convolution` and `dynamic_conv` have in common: everything except padding."""

    lhs = operand(TensorType)
    rhs = operand(TensorType)
    window_strides = optional(DenseArray)
    lhs_dilation = optional(DenseArray)
    rhs_dilation = optional(DenseArray)
    window_reversal = optional(DenseArray)
    dimension_numbers = attr(DialectAttr)
    feature_group_count = attr(IntegerAttr)
    batch_group_count = attr(IntegerAttr)
    precision_config = optional(ArrayAttr)

    @property
    def axes(self) -> ConvolutionAxes:
        """The meaning of each axis. Raises ShapeError."""
        return ConvolutionAxes.of(self.dimension_numbers)


class Convolution(AnyConvolution):
    """Products of windows of `lhs` with the kernel `rhs`, summed over the window and the input features.

    Feature groups divide the input features and the output features; each group of outputs uses only its group of
    inputs. Batch groups divide the batch instead of the input features. Operands and result may differ in element type
    only before legalization.
    """

    name = "stablehlo.convolution"
    padding = optional(DenseElements)

    @property
    def window(self) -> Window:
        """The window over the spatial axes, in the order of their numbers."""
        axes, kernel = self.axes, tensor_of(self.rhs).shape
        sizes = tuple(kernel[axes.rhs.index(axis)] for axis in axes.spatial)
        return Window.of(sizes, self.window_strides, self.padding, self.lhs_dilation, self.rhs_dilation)

    @property
    def reversed(self) -> tuple[bool, ...]:
        """Per spatial axis, whether the kernel is reversed."""
        if self.window_reversal is None:
            return (False,) * len(self.axes.spatial)
        return tuple(bool(x) for x in self.window_reversal.values)

    def infer(self) -> Sequence[TensorType]:
        left, right, axes = tensor_of(self.lhs), tensor_of(self.rhs), self.axes
        if left.element != right.element:
            raise ShapeError(f"operands differ in element type: {left}, {right}")
        if not left.rank == right.rank == len(axes.lhs):
            raise ShapeError(f"dimension_numbers are of rank {len(axes.lhs)}, operands are {left} and {right}")
        sizes = dict(zip(axes.lhs, left.shape, strict=True))
        kernel = dict(zip(axes.rhs, right.shape, strict=True))
        self._check_groups(sizes, kernel)
        if self.window_reversal is not None:
            per_axis("window_reversal", self.window_reversal, len(axes.spatial))
        counts = self.window.counts([sizes[axis] for axis in axes.spatial])
        found = dict(zip(axes.spatial, counts, strict=True))
        found |= {"b": sizes["b"] // self.batch_group_count.value, "f": kernel["o"]}
        return [TensorType(tuple(found[axis] for axis in axes.out), tensor_of(self.out).element)]

    def _check_groups(self, lhs: dict[str, Size], rhs: dict[str, Size]) -> None:
        features, batches = self.feature_group_count.value, self.batch_group_count.value
        if features < 1 or batches < 1 or min(features, batches) > 1:
            raise ShapeError(
                f"{features} feature groups and {batches} batch groups: both must be positive, and one of them 1"
            )
        if lhs["f"] != rhs["i"] * features:
            raise ShapeError(f"{lhs['f']} input features, the kernel has {rhs['i']} for {features} groups")
        if rhs["o"] % (features * batches):
            raise ShapeError(f"{rhs['o']} output features for {features * batches} groups")
        if lhs["b"] % batches:
            raise ShapeError(f"a batch of {lhs['b']} for {batches} groups")


class ReduceWindow(Reduction):
    """Combines the elements of each window, starting with the init values, which are also the padding."""

    name = "stablehlo.reduce_window"
    window_dimensions = attr(DenseArray)
    window_strides = optional(DenseArray)
    base_dilations = optional(DenseArray)
    window_dilations = optional(DenseArray)
    padding = optional(DenseElements)

    @property
    def window(self) -> Window:
        """The window over all axes. Raises ShapeError."""
        sizes = per_axis("window_dimensions", self.window_dimensions, tensor_of(self.inputs[0]).rank)
        return Window.of(sizes, self.window_strides, self.padding, self.base_dilations, self.window_dilations)

    def reduced(self, shape: Shape) -> Shape:
        return self.window.counts(shape)


class SelectAndScatter(StablehloOp):
    """Selects one element in each window of the operand; at its place, combines the element of `source` for the window
    with the present one, which is initially the init value. Padding is never selected.
    """

    name = "stablehlo.select_and_scatter"
    operand_ = operand(TensorType)
    source = operand(TensorType)
    init_value = operand(TensorType)
    window_dimensions = optional(DenseArray)
    window_strides = optional(DenseArray)
    padding = optional(DenseElements)
    select = region()
    scatter = region()
    out = result(TensorType)
    traits = frozenset({Trait.PURE, Trait.ISOLATED})

    @property
    def window(self) -> Window:
        """The window over all axes of the operand. Raises ShapeError."""
        rank = tensor_of(self.operand_).rank
        given = self.window_dimensions
        sizes = _ones(rank) if given is None else per_axis("window_dimensions", given, rank)
        return Window.of(sizes, self.window_strides, self.padding, None, None)

    def infer(self) -> Sequence[TensorType]:
        type, source = tensor_of(self.operand_), tensor_of(self.source)
        wanted = type.with_shape(self.window.counts(type.shape))
        if source != wanted:
            raise ShapeError(f"source must be {wanted}, one element for each window, is {source}")
        scalar = type.with_shape(())
        check_inits([self.init_value], [scalar])
        check_region("the select", self.select, [scalar] * 2, [scalar.with_element(I1)])
        check_region("the scatter", self.scatter, [scalar] * 2, [scalar])
        return [type]
