"""`flow.fft` in StableHLO for the reference device: products with two small matrices.

A line of `a b` numbers is a matrix. One product transforms its columns, the results are multiplied by roots, and
another product transforms its rows. All factors are roots of the op, gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from orchestrion.compiler.ir.attributes import DenseElements, DialectAttr, dense_ints
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft
from orchestrion.compiler.stablehlo.ops.indexing import Gather
from orchestrion.compiler.stablehlo.ops.structural import Constant

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: the real and imaginary parts of numbers; real numbers have one part
Parts = tuple[Tensor, ...]


def transformed(op: LineFft, x: Tensor, roots: Tensor) -> Tensor:
    """The result of the op. Numbers are parts of shape [before, a, b, behind]; axes of results come first."""
    import numpy as np

    a = max(rows for rows in range(1, int(op.length**0.5) + 1) if op.length % rows == 0)
    b = op.length // a
    first, second = np.arange(a), np.arange(b)
    matrix = _taken(roots, np.multiply.outer(first, first) % a * b)
    lines = x.reshape(prod(x.shape[: op.axis]), a, b, prod(x.shape[op.axis + 1 : -1]), x.shape[-1])
    value = _product(matrix, _parts(lines), 1)
    turns = [root.broadcast(value[0].shape, (0, 2)) for root in _taken(roots, np.multiply.outer(first, second))]
    value = _times(value, turns, lambda x, y: x * y)
    return _packed(op, _product(_taken(roots, np.multiply.outer(second, second) % b * a), value, 2))


def _product(matrix: Parts, value: Parts, axis: int) -> Parts:
    """The product of a matrix, results by numbers, with the numbers along an axis."""
    axes = DotDimensions((), (), (1,), (axis,))
    return _times(value, matrix, lambda x, y: y.dot(x, axes))


def _times(value: Parts, factor: Sequence[Tensor], product: Callable[[Tensor, Tensor], Tensor]) -> Parts:
    real, imag = (product(value[0], part) for part in factor)
    if len(value) == 1:
        return real, imag
    turned = [product(value[1], part) for part in factor]
    return real - turned[1], imag + turned[0]


def _packed(op: LineFft, parts: Parts) -> Tensor:
    """The result, from parts [b, a, before, behind]."""
    out, lines = tensor_of(op.out), []
    for value in parts[: out.shape[-1]]:
        *_, before, behind = value.shape
        value = value.reshape(op.length, before, behind).leading((out.shape[op.axis], before, behind))
        if op.inverse.value:
            value = value * (1.0 / op.length)
        lines.append(value.transpose(1, 0, 2).reshape(*out.shape[:-1], 1))
    return concatenate(lines, out.rank - 1)


def _taken(roots: Tensor, places: Array) -> Parts:
    """The roots at these places, as parts of a matrix."""
    values = DenseElements.of(places.astype("int32"), "i32")
    axes = "offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2"
    return _parts(
        roots.build(
            Gather,
            operand_=roots.value,
            start_indices=roots.build(Constant, value=values, out=values.type).value,
            dimension_numbers=DialectAttr("stablehlo.gather", axes),
            slice_sizes=dense_ints(1, 2),
            out=roots.type.with_shape((*places.shape, 2)),
        )
    )


def _parts(x: Tensor) -> Parts:
    *shape, parts = x.shape
    cuts = [x.cut(len(shape), at, at + 1) for at in range(parts)]
    return tuple(cut.reshape(*shape) for cut in cuts)
