"""Expands `flow.fft` into StableHLO for the reference device: products with two small matrices.

A line of `a b` numbers is a matrix. One product transforms its columns, the results are multiplied by roots, and
another product transforms its rows. All factors are roots of the op, gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from orchestrion.compiler.ir.attributes import DenseElements, DialectAttr, IntegerAttr, dense_ints
from orchestrion.compiler.ir.core import Block, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.basic import constant, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, dot, reshape, slice_range, transpose
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft
from orchestrion.compiler.stablehlo.ops.indexing import Gather
from orchestrion.compiler.stablehlo.ops.structural import Concatenate, Constant

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: the real and imaginary parts of numbers; real numbers have one part
Parts = tuple[Value, ...]


def expand_ffts(block: Block) -> None:
    """Replaces every transform in a block."""
    for op in [op for op in block if isinstance(op, LineFft)]:
        rewriter = Rewriter({})
        rewriter.at(op)
        rewriter.replace(op, [_Lines(op, rewriter).result()])


class _Lines:
    """The transform of one op. Numbers are parts of shape [before, a, b, behind]; axes of results come first."""

    def __init__(self, op: LineFft, rewriter: Rewriter) -> None:
        self.op = op
        self.rewriter = rewriter
        self.length = op.length
        self.rows = max(rows for rows in range(1, int(self.length**0.5) + 1) if self.length % rows == 0)

    def result(self) -> Value:
        """The result of the op."""
        import numpy as np

        a, b = self.rows, self.length // self.rows
        first, second = np.arange(a), np.arange(b)
        value = self._product(self._taken(np.multiply.outer(first, first) % a * b), self._given(), 1)
        shape = tensor_of(value[0]).shape
        turns = [broadcast(self.rewriter, x, shape, (0, 2)) for x in self._taken(np.multiply.outer(first, second))]
        value = self._times(value, turns, lambda x, y: self._op("multiply", x, y))
        return self._packed(self._product(self._taken(np.multiply.outer(second, second) % b * a), value, 2))

    def _given(self) -> Parts:
        shape, axis = tensor_of(self.op.operand_).shape, self.op.axis
        sizes = (prod(shape[:axis]), self.rows, self.length // self.rows, prod(shape[axis + 1 : -1]), shape[-1])
        return self._parts(reshape(self.rewriter, self.op.operand_, sizes))

    def _product(self, matrix: Parts, value: Parts, axis: int) -> Parts:
        """The product of a matrix, results by numbers, with the numbers along an axis."""
        axes = DotDimensions((), (), (1,), (axis,))
        return self._times(value, matrix, lambda x, y: dot(self.rewriter, y, x, axes))

    def _times(self, value: Parts, factor: Sequence[Value], product: Callable[[Value, Value], Value]) -> Parts:
        real, imag = (product(value[0], part) for part in factor)
        if len(value) == 1:
            return real, imag
        turned = [product(value[1], part) for part in factor]
        return self._op("subtract", real, turned[1]), self._op("add", imag, turned[0])

    def _packed(self, parts: Parts) -> Value:
        """The result, from parts [b, a, before, behind]."""
        out, axis = tensor_of(self.op.out), self.op.axis
        wanted, lines = out.shape[axis], []
        for value in parts[: out.shape[-1]]:
            *_, before, behind = tensor_of(value).shape
            value = reshape(self.rewriter, value, (self.length, before, behind))
            value = slice_range(self.rewriter, value, (0, 0, 0), (wanted, before, behind))
            if self.op.inverse.value:
                value = self._op("multiply", value, constant(self.rewriter, 1.0 / self.length, tensor_of(value)))
            value = transpose(self.rewriter, value, (1, 0, 2))
            lines.append(reshape(self.rewriter, value, (*out.shape[:-1], 1)))
        last = IntegerAttr(out.rank - 1)
        return self.rewriter.build(Concatenate, inputs=lines, dimension=last, out=out).result

    def _taken(self, places: Array) -> Parts:
        """The roots at these places, as parts of a matrix."""
        values = DenseElements.of(places.astype("int32"), "i32")
        axes = "offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2"
        return self._parts(
            self.rewriter.build(
                Gather,
                operand_=self.op.roots,
                start_indices=self.rewriter.build(Constant, value=values, out=values.type).result,
                dimension_numbers=DialectAttr("stablehlo.gather", axes),
                slice_sizes=dense_ints(1, 2),
                out=tensor_of(self.op.roots).with_shape((*places.shape, 2)),
            ).result
        )

    def _parts(self, value: Value) -> Parts:
        *shape, parts = tensor_of(value).shape
        none = [0] * len(shape)
        cuts = [slice_range(self.rewriter, value, (*none, at), (*shape, at + 1)) for at in range(parts)]
        return tuple(reshape(self.rewriter, cut, shape) for cut in cuts)

    def _op(self, name: str, *operands: Value) -> Value:
        return elementwise(self.rewriter, name, *operands)
