"""Convolutions that are written as other convolutions, which run faster.

    base dilation                    a convolution without it for each phase of the results
    features before spatial axes     transposed operands with features last, and a transposed result

A base dilation of s puts s - 1 zeros between neighbours of the image. The result at place s q + p needs every s-th
element of the kernel only, from (low - p) mod s on, times elements of the image that lie side by side. Results of the
same *phase* p are therefore a convolution of the image itself. Phases that need as many elements of the kernel, from
the same place of the image on, are features of one convolution. The results of all phases are interleaved.

Images and results in between have the axes [b, 0, 1, ..., f]. Output features are the last axis of kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from orchestrion.compiler.ir.attributes import DialectAttr
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import ceildiv, is_dynamic, numbers
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.windowed import Convolution

#: fewest output features whose neighbours fill vectors, and fewest products of a result that are worth transposing it
FEWEST_FEATURES: Final = 8
FEWEST_PRODUCTS: Final = 24
#: fewest input features that are an axis of their own in the sum of products
FEWEST_INPUTS: Final = 16


@dataclass(frozen=True, slots=True)
class _Phases:
    """Neighbouring phases of an axis: their number; the first one's first element of the kernel, and the number of its
    elements; and the place in the image of the element with which the result 0 begins.
    """

    count: int
    first: int
    taps: int
    start: int


@dataclass(frozen=True, slots=True)
class _Axis:
    """A spatial axis: its dilation, the number of its results, those per phase, and its phases."""

    dilation: int
    results: int
    per_phase: int
    phases: tuple[_Phases, ...]

    @classmethod
    def of(cls, taps: int, dilation: int, low: int, results: int, joined: bool) -> _Axis:
        """`joined`: phases may be features of one convolution."""
        found: list[_Phases] = []
        for phase in range(dilation):
            first = (low - phase) % dilation
            own = _Phases(1, first, max(ceildiv(taps - first, dilation), 0), (phase + first - low) // dilation)
            last = found[-1] if found else own
            if joined and found and (last.taps, last.start) == (own.taps, own.start):
                found[-1] = _Phases(last.count + 1, last.first, last.taps, last.start)
            else:
                found.append(own)
        return cls(dilation, results, ceildiv(results, dilation), tuple(found))

    def padding(self, size: int) -> tuple[int, int]:
        """How many elements results read in front of the first and behind the last one of the image."""
        used = [phases for phases in self.phases if phases.taps]
        ends = [phases.start + self.per_phase + phases.taps - 1 for phases in used]
        return max(0, -min(phases.start for phases in used)), max(0, max(ends) - size)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel, and the meaning of its axes, as in `ConvolutionAxes`."""

    x: Tensor
    labels: tuple[str, ...]

    def transposed(self, *labels: str) -> Tensor:
        return self.x.transpose(*map(self.labels.index, labels))

    def with_outputs_last(self) -> _Kernel:
        """Other axes keep their order: in memory, only two axes are transposed."""
        at, shape = self.labels.index("o"), self.x.shape
        before, own, after = shape[:at], shape[at], shape[at + 1 :]
        joined = self.x.reshape(*before, own, prod(numbers(after)))
        labels = (*self.labels[:at], *self.labels[at + 1 :], "o")
        return _Kernel(joined.transpose(*range(at), at + 1, at).reshape(*before, *after, own), labels)


def without_base_dilation(op: Convolution, rewriter: Rewriter) -> Value | None:
    """The result of a convolution with a base dilation, by phases; None for another one."""
    window = op.window
    if all(step == 1 for step in window.base_dilations) or not _is_plain(op):
        return None
    image, given = _features_last(op, rewriter)
    kernel = given.transposed(*op.axes.spatial, "i", "o")
    kernel = kernel.reverse(*(axis for axis, back in enumerate(op.reversed) if back))
    rank = len(window.sizes)
    results = [tensor_of(op.out).shape[op.axes.out.index(axis)] for axis in op.axes.spatial]
    groups = op.feature_group_count.value * op.batch_group_count.value
    rows = zip(
        numbers(window.sizes), numbers(window.base_dilations), numbers(window.low), numbers(results), strict=True
    )
    axes = [_Axis.of(*row, joined=groups == 1) for row in rows]
    low, high = zip(
        *(axis.padding(size) for axis, size in zip(axes, numbers(image.shape[1:-1]), strict=True)), strict=True
    )
    image = image.pad((0, *low, 0), (0, *high, 0))

    def part(chosen: Sequence[_Phases]) -> Tensor:
        """The results of some phases of each axis: [b, q0, p0, q1, p1, ..., o]."""
        counts, features = [phases.count for phases in chosen], kernel.shape[-1]
        places = [axis.per_phase for axis in axes]
        batch = image.shape[0] // op.batch_group_count.value
        if all(phases.taps for phases in chosen):
            starts = [phases.start + before for phases, before in zip(chosen, low, strict=True)]
            ends = [
                start + count + phases.taps - 1 for start, count, phases in zip(starts, places, chosen, strict=True)
            ]
            own = image.slice((0, *starts, 0), (batch * op.batch_group_count.value, *ends, image.shape[-1]))
            whole = _convolved(own, _Kernel(_kernel(kernel, axes, chosen), (*op.axes.spatial, "i", "o")), op)
        else:
            whole = image.zeros((batch, *places, prod(counts) * features))
        whole = whole.reshape(batch, *places, *counts, features)
        return whole.transpose(0, *(at for axis in range(rank) for at in (1 + axis, 1 + rank + axis)), 2 * rank + 1)

    def joined(chosen: tuple[_Phases, ...]) -> Tensor:
        """The results with these phases of the first axes, and all of the others."""
        number = len(chosen)
        if number == rank:
            return part(chosen)
        parts = [joined((*chosen, phases)) for phases in axes[number].phases]
        return concatenate(parts, 2 * number + 2) if len(parts) > 1 else parts[0]

    whole = joined(())
    sizes = (whole.shape[0], *(axis.per_phase * axis.dilation for axis in axes), whole.shape[-1])
    shape = (whole.shape[0], *results, whole.shape[-1])
    return _in_order(whole.reshape(*sizes).leading(shape), op)


def _is_plain(op: Convolution) -> bool:
    """Whether sizes are static, and windows with a base dilation lie side by side, as do their elements."""
    window, shapes = op.window, [tensor_of(value).shape for value in (op.lhs, op.rhs, op.out)]
    if any(is_dynamic(*shape) or 0 in shape for shape in shapes):
        return False
    return all(step == 1 for step in (*window.strides, *window.dilations))


def _kernel(kernel: Tensor, axes: Sequence[_Axis], chosen: Sequence[_Phases]) -> Tensor:
    """The elements of the kernel that some phases need, as features of each phase: [0, 1, ..., i, (p0, p1, ..., o)]."""
    rank, (inputs, features) = len(axes), kernel.shape[-2:]
    for number, (axis, phases) in enumerate(zip(axes, chosen, strict=True)):
        at, least, step, taps = 2 * number, phases.first - phases.count + 1, axis.dilation, phases.taps
        if phases.count == 1:
            kernel = kernel.cut(at, least, least + (taps - 1) * step + 1, step)
            kernel = kernel.reshape(*kernel.shape[: at + 1], 1, *kernel.shape[at + 1 :])
            continue
        kernel = kernel.cut(at, least, min(int(kernel.shape[at]), least + step * taps))
        kernel = kernel.pad_axis(at, 0, step * taps - kernel.shape[at], kernel.zeros(()))
        kernel = kernel.reshape(*kernel.shape[:at], taps, step, *kernel.shape[at + 1 :]).cut(at + 1, 0, phases.count)
        kernel = kernel.reverse(at + 1)  # a later phase begins with an earlier element
    order = (*range(0, 2 * rank, 2), 2 * rank, *range(1, 2 * rank, 2), 2 * rank + 1)
    kernel = kernel.transpose(*order)
    return kernel.reshape(*kernel.shape[:rank], inputs, prod(phases.count for phases in chosen) * features)


def features_last(op: Convolution, rewriter: Rewriter) -> Value | None:
    """The result of a convolution of planes with features in front of spatial axes; None for another one."""
    axes, image, kernel = op.axes, tensor_of(op.lhs).shape, tensor_of(op.rhs).shape
    groups = op.feature_group_count.value * op.batch_group_count.value
    planes = [image[axes.lhs.index(axis)] for axis in axes.spatial]
    if axes.out[-1] == "f" or groups > 1 or sum(size != 1 for size in planes) < 2 or is_dynamic(*kernel):
        return None
    if all(size == 1 for size in op.window.sizes):
        return None
    features = int(kernel[axes.rhs.index("o")])
    if features < FEWEST_FEATURES or prod(numbers(kernel)) < FEWEST_PRODUCTS * features:
        return None
    names = ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal")
    found = _convolved(*_features_last(op, rewriter), op, **{name: getattr(op, name) for name in names})
    return _in_order(found, op)


def _features_last(op: Convolution, rewriter: Rewriter) -> tuple[Tensor, _Kernel]:
    """The image with the axes [b, 0, 1, ..., f], and the kernel with output features last."""
    axes = op.axes
    image = Tensor(rewriter, op.lhs).transpose(*(axes.lhs.index(axis) for axis in ("b", *axes.spatial, "f")))
    kernel = _Kernel(Tensor(rewriter, op.rhs), axes.rhs)
    if is_dynamic(*kernel.x.shape) or int(kernel.x.shape[axes.rhs.index("i")]) < FEWEST_INPUTS:
        labels = (*axes.spatial, "i", "o")
        return image, _Kernel(kernel.transposed(*labels), labels)
    return image, kernel.with_outputs_last()


def _in_order(result: Tensor, op: Convolution) -> Value:
    """[b, 0, 1, ..., f] in the order of the results of an op."""
    order = ("b", *op.axes.spatial, "f")
    return result.transpose(*(order.index(axis) for axis in op.axes.out)).value


def _convolved(image: Tensor, kernel: _Kernel, op: Convolution, **fields: Any) -> Tensor:
    """A convolution with features last, with the groups and the precision of an op."""
    spatial = ", ".join(op.axes.spatial)
    if op.precision_config is not None:
        fields["precision_config"] = op.precision_config
    given = {
        "lhs": image.value,
        "rhs": kernel.x.value,
        "dimension_numbers": DialectAttr(
            "stablehlo.conv", f"[b, {spatial}, f]x[{', '.join(kernel.labels)}]->[b, {spatial}, f]"
        ),
        "feature_group_count": op.feature_group_count,
        "batch_group_count": op.batch_group_count,
        **{name: value for name, value in fields.items() if value is not None},
    }
    made = image.rewriter.build(Convolution, out=op.out.type, **given)
    (made.out.type,) = made.infer()
    return Tensor(image.rewriter, made.out)
