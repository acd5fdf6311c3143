"""A `select_and_scatter` as two reductions of windows.

The first finds the place that each window selects. It reduces pairs (element, place); padding has place -1 and is never
preferred. The second reverses the windows: a result element reduces, over the windows that contain it, pairs (element
of the source, whether that window selected this place), and skips the windows that did not. The windows that contain an
element are a window themselves, over the source with `stride - 1` gaps between its elements. No element is written
twice, so the order of sums is the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from orchestrion.compiler.ir.attributes import ELEMENT_BYTES, DenseElements, DialectAttr
from orchestrion.compiler.ir.builder import Builder, inline_block
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I1, TensorType, Type
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, index_type
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, iota, reduce_by, reshape
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Return
from orchestrion.compiler.stablehlo.ops.elementwise import OPS, Compare
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.compiler.stablehlo.ops.windowed import SelectAndScatter, Window

from .window_builders import windows_of


def as_reductions(op: SelectAndScatter, rewriter: Rewriter) -> Value:
    """The result of a `select_and_scatter`."""
    shape, axes = tensor_of(op.operand_).shape, range(tensor_of(op.operand_).rank)
    element = index_type(prod(shape))
    places = reshape(rewriter, iota(rewriter, (prod(shape),), 0, str(element)), shape)  # row-major positions
    nowhere = constant(rewriter, -1, TensorType((), element))
    zero = constant(rewriter, 0, tensor_of(op.operand_).with_shape(()))
    read = [
        windows_of(rewriter, value, fill, op.window, axes) for value, fill in ((op.operand_, zero), (places, nowhere))
    ]
    gone = range(len(shape), tensor_of(read[0]).rank)
    selected = reduce_by(rewriter, read, [zero, nowhere], gone, _selecting(op, element))[1]
    back = _backwards(op.window, tensor_of(op.source).shape, shape)
    sources, chosen = (
        windows_of(rewriter, value, fill, back, axes) for value, fill in ((op.source, zero), (selected, nowhere))
    )
    own = broadcast(rewriter, places, tensor_of(chosen).shape, axes)
    hits = compare(rewriter, "EQ", chosen, own)
    true = constant(rewriter, 1, TensorType((), I1))
    return reduce_by(rewriter, [sources, hits], [op.init_value, true], gone, _scattering(op))[0]


def _backwards(window: Window, counts: Sequence[int], shape: Sequence[int]) -> Window:
    """The window over the source, with its base dilated by the strides, of all windows that contain an element."""
    ones = (1,) * len(shape)
    low = tuple(size - 1 - before for size, before in zip(window.sizes, window.low, strict=True))
    spread = [count + max(count - 1, 0) * (by - 1) for count, by in zip(counts, window.strides, strict=True)]
    rows = zip(shape, window.sizes, low, spread, strict=True)
    high = tuple(whole + size - 1 - before - within for whole, size, before, within in rows)
    return Window(window.sizes, ones, low, high, window.strides, ones)


def _selecting(op: SelectAndScatter, element: Type) -> Region:
    """(x, i), (y, j) -> the selected pair. A pair whose place is below 0 is never selected."""
    value = tensor_of(op.operand_).with_shape(())
    place = TensorType((), element)
    block, builder = _block(op, [value, place] * 2)
    x, i, y, j = block.arguments
    zero = _constant(builder, place)
    first = _op(builder, "and", _compare(builder, "GE", i, zero), _given(builder, op.select, [x, y]))
    keep = _op(builder, "or", _compare(builder, "LT", j, zero), first)
    _end(builder, _op(builder, "select", keep, x, y), _op(builder, "select", keep, i, j))
    return Region([block])


def _scattering(op: SelectAndScatter) -> Region:
    """(x, p), (y, q) -> the combination of the elements that count, and whether any counts."""
    block, builder = _block(op, [tensor_of(op.operand_).with_shape(()), TensorType((), I1)] * 2)
    x, p, y, q = block.arguments
    both = _op(builder, "select", p, _given(builder, op.scatter, [x, y]), y)
    _end(builder, _op(builder, "select", q, both, x), _op(builder, "or", p, q))
    return Region([block])


def _block(op: Operation, types: Sequence[TensorType]) -> tuple[Block, Builder]:
    block = Block(types, [op.loc] * len(types))
    return block, Builder(block, loc=op.loc)


def _given(builder: Builder, region: Region, arguments: Sequence[Value]) -> Value:
    """The results of a region for these arguments."""
    (value,) = inline_block(region.block, arguments, builder.insert)
    return value


def _op(builder: Builder, name: str, *operands: Value) -> Value:
    return builder.insert(OPS[f"stablehlo.{name}"](operands, [operands[-1].type])).results[0]


def _compare(builder: Builder, direction: str, lhs: Value, rhs: Value) -> Value:
    attribute = DialectAttr("stablehlo", f"comparison_direction {direction}")
    return builder.build(Compare, lhs=lhs, rhs=rhs, comparison_direction=attribute, out=TensorType((), I1)).result


def _constant(builder: Builder, type: TensorType) -> Value:
    zero = DenseElements(type, bytes(ELEMENT_BYTES[str(type.element)]))
    return builder.build(Constant, value=zero, out=type).out


def _end(builder: Builder, *values: Value) -> None:
    builder.build(Return, values=list(values))
