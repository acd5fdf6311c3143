"""A `select_and_scatter` as two reductions of windows.

The first finds the place that each window selects. It reduces pairs (element, place); padding has place -1 and is never
preferred. The second reverses the windows: a result element reduces, over the windows that contain it, pairs (element
of the source, whether that window selected this place), and skips the windows that did not. The windows that contain an
element are a window themselves, over the source with `stride - 1` gaps between its elements. No element is written
twice, so the order of sums is the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from orchestrion.compiler.ir.builder import inline_block
from orchestrion.compiler.ir.core import Region, Value
from orchestrion.compiler.ir.dims import Shape
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I1, TensorType
from orchestrion.compiler.stablehlo.builders.loops import region_of
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, index_type, iota, reduce_by
from orchestrion.compiler.stablehlo.ops.windowed import SelectAndScatter, Window

from .window_builders import windows_of


def as_reductions(op: SelectAndScatter, rewriter: Rewriter) -> Value:
    x, source = Tensor(rewriter, op.operand_), Tensor(rewriter, op.source)
    axes, count = range(len(x.shape)), prod(x.shape)
    places = iota(rewriter, (count,), 0, str(index_type(count))).reshape(*x.shape)  # row-major
    nowhere, zero = places.splat(-1, places.type.with_shape(())), x.splat(0, x.type.with_shape(()))
    read = [windows_of(one, fill, op.window, axes) for one, fill in ((x, zero), (places, nowhere))]
    selected = _reduced(read, [zero, nowhere], axes, _selecting(op))[1]
    back = _backwards(op.window, source.shape, x.shape)
    sources, chosen = (windows_of(one, fill, back, axes) for one, fill in ((source, zero), (selected, nowhere)))
    hits = chosen.eq(places.broadcast(chosen.shape, axes))
    true = x.splat(1, TensorType((), I1))
    return _reduced([sources, hits], [Tensor(rewriter, op.init_value), true], axes, _scattering(op))[0].value


def _reduced(
    inputs: Sequence[Tensor], inits: Sequence[Tensor], kept: range, make: Callable[..., Sequence[Tensor]]
) -> list[Tensor]:
    """Reduces all axes but the first ones, by the scalars that `make` computes."""
    rewriter, gone = inputs[0].rewriter, range(len(kept), len(inputs[0].shape))
    body = region_of(rewriter, [init.type for init in inits] * 2, make)
    return reduce_by(inputs, inits, gone, body)


def _backwards(window: Window, counts: Shape, shape: Shape) -> Window:
    """The window over the source, with its base dilated by the strides, of all windows that contain an element."""
    ones = (1,) * len(shape)
    low = tuple(size - 1 - before for size, before in zip(window.sizes, window.low, strict=True))
    spread = [count + max(count - 1, 0) * (by - 1) for count, by in zip(counts, window.strides, strict=True)]
    rows = zip(shape, window.sizes, low, spread, strict=True)
    high = tuple(whole + size - 1 - before - within for whole, size, before, within in rows)
    return Window(window.sizes, ones, low, high, window.strides, ones)


def _selecting(op: SelectAndScatter) -> Callable[..., Sequence[Tensor]]:
    """(x, i), (y, j) -> the selected pair. A pair whose place is below 0 is never selected."""

    def make(x: Tensor, i: Tensor, y: Tensor, j: Tensor) -> Sequence[Tensor]:
        keep = (j < 0) | ((i >= 0) & _given(op.select, x, y))
        return keep.select(x, y), keep.select(i, j)

    return make


def _scattering(op: SelectAndScatter) -> Callable[..., Sequence[Tensor]]:
    """(x, p), (y, q) -> the combination of the elements that count, and whether any counts."""

    def make(x: Tensor, p: Tensor, y: Tensor, q: Tensor) -> Sequence[Tensor]:
        return q.select(p.select(_given(op.scatter, x, y), y), x), p | q

    return make


def _given(region: Region, x: Tensor, y: Tensor) -> Tensor:
    """The result of a region for these arguments."""
    (value,) = inline_block(region.block, [x.value, y.value], x.rewriter.insert)
    return Tensor(x.rewriter, value)
