"""A convolution as a `dot_general` of the windows of its left operand and the kernel, with axes in the order of its
result.

Axes have labels: `b`, `i`, `o` and the numbers of spatial axes as in the op, `g` for groups, and `k0`, `k1`, ... for
the axes of the window. The result of a dot has its batch axes first, then the free axes of the left operand, then those
of the right one. The feature axis of a convolution's result may be anywhere. Therefore:

    [b, 0, 1, f]          lhs = windows, free b, 0, 1;   rhs = kernel, free o
    [b, f, 0, 1]          batch b;  lhs = kernel, repeated along b, free o;  rhs = windows, free 0, 1
    [b, 0, 1, (g, o)]     batch b, 0, 1, g;  lhs = windows;  rhs = kernel, repeated along b, 0, 1, free o

The elements of the result are in the order in which they are written, so the ops behind it can be fused. Repeated
operands are never in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.compiler.stablehlo.ops.windowed import Convolution

from .window_builders import windows_of


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A tensor and the labels of its axes."""

    x: Tensor
    labels: tuple[str, ...]

    def axis(self, label: str) -> int:
        return self.labels.index(label)

    def size(self, label: str) -> Size:
        return self.x.shape[self.axis(label)]

    def axes(self, labels: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.axis(label) for label in labels)

    def split(self, label: str, groups: int) -> _Labelled:
        """Splits an axis into groups and members of a group."""
        if groups == 1:
            return self
        at, shape = self.axis(label), self.x.shape
        parts = (*shape[:at], groups, shape[at] // groups, *shape[at + 1 :])
        return _Labelled(self.x.reshape(*parts), (*self.labels[:at], "g", *self.labels[at:]))


def as_dot(op: Convolution, rewriter: Rewriter) -> Value:
    """The result of a convolution whose operands and result have one element type."""
    groups = op.feature_group_count.value * op.batch_group_count.value
    image, kernel = _windows(op, rewriter), _kernel(op, rewriter, groups)
    labels = tuple({"f": "o"}.get(label, label) for label in op.axes.out)
    at = labels.index("o")
    before, after = labels[:at], labels[at + 1 :]
    batch = before if after or groups > 1 else ()
    contracted = tuple(label for label in kernel.labels if label not in ("g", "o"))
    if op.axes.lhs[-1] == "f":  # neighbours in the image last
        contracted = tuple(sorted(contracted, key=lambda label: label == "i"))
    sizes, own = tuple(image.size(label) for label in batch), kernel.x.shape
    repeated = kernel.x.broadcast((*sizes, *own), range(len(sizes), len(sizes) + len(own)))
    kernel = _Labelled(repeated, (*batch, *kernel.labels))
    if groups > 1:
        batch = (*batch, "g")
    free = tuple(label for label in labels if label != "o" and label not in batch)
    if list(image.axes(free)) != sorted(image.axes(free)):
        order = (*batch, *free, *contracted)
        image = _Labelled(image.x.transpose(*image.axes(order)), order)
    left, right = (kernel, image) if after else (image, kernel)
    dims = DotDimensions(left.axes(batch), right.axes(batch), left.axes(contracted), right.axes(contracted))
    return left.x.dot(right.x, dims, op.precision_config).reshape(*tensor_of(op.out).shape).value


def _windows(op: Convolution, rewriter: Rewriter) -> _Labelled:
    """The windows of the left operand. Its feature axis has the label `i`."""
    image = _Labelled(Tensor(rewriter, op.lhs), tuple({"f": "i"}.get(label, label) for label in op.axes.lhs))
    image = image.split("i", op.feature_group_count.value).split("b", op.batch_group_count.value)
    axes, window = image.axes(op.axes.spatial), op.window
    zero = image.x.splat(0, image.x.type.with_shape(()))
    return _Labelled(
        windows_of(image.x, zero, window, axes),
        (*image.labels, *(f"k{n}" for n, size in enumerate(window.sizes) if size != 1)),
    )


def _kernel(op: Convolution, rewriter: Rewriter, groups: int) -> _Labelled:
    """The kernel, reversed where the op says so, without window axes of one element."""
    labels = tuple(f"k{label}" if label.isdigit() else label for label in op.axes.rhs)
    kernel, sizes = _Labelled(Tensor(rewriter, op.rhs), labels), op.window.sizes
    turned = [kernel.axis(f"k{n}") for n, back in enumerate(op.reversed) if back and sizes[n] != 1]
    kernel = _Labelled(kernel.x.reverse(*turned), labels).split("o", groups)
    kept = tuple(label for label in kernel.labels if not label.startswith("k") or kernel.size(label) != 1)
    return _Labelled(kernel.x.reshape(*map(kernel.size, kept)), kept)
