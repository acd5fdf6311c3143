"""`fft` in terms of products with small matrices and of elementwise ops.

Numbers are one real tensor whose first axis has their two parts, so that a complex product is a real one of twice
the depth. A stage contracts the parts and a factor of the line with a matrix; the factor's results come to stand in
front of all other axes, and when all factors are done, they stand there in order. So the next line to transform is the
last axis again, and axes move only where there is a batch. `fourier_plan.py` says which factors, and what the numbers
are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements, IntegerAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import tensor
from orchestrion.schema.dtypes import BY_NAME

from . import fourier_plan as plan
from .base import is_complex, tensor_of
from .build import constant, elementwise
from .complex_functions import joined, parts_of
from .contraction import DotDimensions, DotGeneral
from .fourier import Fft
from .fourier_tables import generated_roots
from .structural import BroadcastInDim, Concatenate, Constant, Pad, Reshape, Reverse, Slice, Transpose

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: a table of more bytes is not in the module, but computed when that is loaded
MOST_BYTES: Final = 1 << 16


def expand_fft(op: Operation, rewriter: Rewriter) -> bool:
    assert isinstance(op, Fft)
    type, source = tensor_of(op.out), tensor_of(op.operand_)
    element = str(source.element).removeprefix("complex<").removesuffix(">")
    if 0 in (*type.shape, *source.shape):
        zero = constant(rewriter, 0.0, tensor(type.shape, element))
        rewriter.replace(op, [joined(rewriter, zero, zero) if is_complex(op.out) else zero])
        return True
    t = _Transform(rewriter, element, -1 if op.kind in ("FFT", "RFFT") else 1)
    rewriter.replace(op, [_transformed(t, op)])
    return True


def _transformed(t: _Transform, op: Fft) -> Value:
    lengths, rank = op.fft_length.ints, tensor_of(op.operand_).rank
    axes = list(range(rank - len(lengths), rank))
    # the halved axis of real numbers is the first one there, and the last one back
    todo = [*axes[:-1][::-1], axes[-1]] if op.kind == "IRFFT" else axes[::-1]
    value = op.operand_ if op.kind == "RFFT" else t.stacked(*parts_of(t.rewriter, op.operand_))
    order = list(range(rank))  #: which axes of the operand those of the value are, behind the parts
    for axis in todo:
        place, halved = order.index(axis), axis == axes[-1] and op.kind in ("RFFT", "IRFFT")
        if halved and op.kind == "RFFT":
            value = t.real_line(value, place)
        elif halved:
            value = t.line(t.mirrored(value, place + 1, lengths[-1]), place + 1, to_real=True)
        else:
            value = t.line(value, place + 1)
        order.insert(0, order.pop(place))
    back = [order.index(axis) for axis in range(rank)]
    if op.kind == "IRFFT":
        return t.transposed(value, back)
    value = t.transposed(value, (0, *(place + 1 for place in back)))
    return joined(t.rewriter, t.part(value, 0), t.part(value, 1))


class _Transform:
    """Writes the ops of a transform. `sign` is that of the exponent: 1 is the way back, which divides by the length."""

    def __init__(self, rewriter: Rewriter, element: str, sign: int) -> None:
        self.rewriter = rewriter
        self.element = element
        self.sign = sign

    # lines: an axis is transformed and put first, behind the parts

    def line(self, value: Value, axis: int, to_real: bool = False) -> Value:
        """`to_real`: only the real parts, and no axis of parts."""
        shape = tensor_of(value).shape
        length, others = shape[axis], (*shape[1:axis], *shape[axis + 1 :])
        factors = plan.factors(length, prod(others))
        if not factors:  # a large prime, or nothing to do
            rest = (place for place in range(1, len(shape)) if place != axis)
            made = self._bluestein(value, axis) if factors is None else self.transposed(value, (0, axis, *rest))
            return self.part(made, 0) if to_real else made
        for number, factor in enumerate(factors):
            to_parts = not (to_real and number == len(factors) - 1)
            value = self._stage(value, axis + number, factor, True, to_parts)
        return self.reshaped(value, (length, *others) if to_real else (2, length, *others))

    def real_line(self, value: Value, axis: int) -> Value:
        """The half spectrum of real numbers. One half of the first factor's results has all that others are made of."""
        shape = tensor_of(value).shape
        length, others = shape[axis], (*shape[:axis], *shape[axis + 1 :])
        half = length // 2 + 1
        factors = plan.factors(length, prod(others))
        if not factors:
            zero = constant(self.rewriter, 0.0, tensor_of(value))
            return self.slice(self.line(self.stacked(value, zero), axis + 1), 1, 0, half)
        first = factors[0] // 2 + 1
        value = self._stage(value, axis, factors[0], False, True, first)
        for number, factor in enumerate(factors[1:]):
            value = self._stage(value, axis + 2 + number, factor, True, True)
        if len(factors) == 1:
            return self.reshaped(value, (2, half, *others))
        return self._unfolded(self.reshaped(value, (2, length // factors[0], first, *others)), factors[0], half)

    def _unfolded(self, value: Value, factor: int, half: int) -> Value:
        """Rows of `factor` results from their first half: the spectrum of real numbers mirrors itself."""
        _, _, first, *others = tensor_of(value).shape
        rows = (half - 1) // factor + 1
        mirrored = self.slice(self.conjugate(self.reversed(value, (1, 2))), 2, 2 * first - 1 - factor, first - 1)
        whole = self.concatenated([self.slice(x, 1, 0, rows) for x in (value, mirrored)], 2)
        return self.slice(self.reshaped(whole, (2, rows * factor, *others)), 1, 0, half)

    def mirrored(self, value: Value, axis: int, length: int) -> Value:
        """The whole spectrum of real numbers from its first half."""
        rest = self.slice(value, axis, 1, length - length // 2)
        return self.concatenated([value, self.conjugate(self.reversed(rest, (axis,)))], axis)

    def _stage(self, value: Value, axis: int, factor: int, of_parts: bool, to_parts: bool, count: int = 0) -> Value:
        """Transforms the slower part of a line, a factor of its length, and multiplies by twiddle factors.

        The results, or the first `count` of them, come to stand in front; the rest of the line stays where it was.
        """
        shape = tensor_of(value).shape
        rest, depth = shape[axis] // factor, 1 + of_parts
        split = self.reshaped(value, (*shape[:axis], factor, rest, *shape[axis + 1 :]))
        matrix = self._matrix(count or factor, factor, of_parts, to_parts)
        inner = tuple(range(to_parts + 1, to_parts + 1 + depth))
        value = self.dot(matrix, split, inner, (0, axis) if of_parts else (axis,))
        if rest == 1:
            return value
        turns = self._roots(count or factor, rest, factor * rest)
        return self.multiplied(value, turns, (1, axis + 1 + to_parts - of_parts))

    def _bluestein(self, value: Value, axis: int) -> Value:
        shape = tensor_of(value).shape
        length = shape[axis]
        padded = plan.padded_length(length, prod(shape) // 2 // length)
        chirp = plan.chirp(length, self.sign)
        value = self.multiplied(value, self._pair(chirp), (axis,))
        value = self.padded(value, axis, padded - length)
        value = _Transform(self.rewriter, self.element, -1).line(value, axis)
        spectrum = plan.chirp_spectrum(length, padded, self.sign)
        value = self.multiplied(value, self._pair(spectrum), (1,))
        value = self.slice(_Transform(self.rewriter, self.element, 1).line(value, 1), 1, 0, length)
        return self.multiplied(value, self._pair(chirp / length if self.sign > 0 else chirp), (1,))

    # tables

    def _matrix(self, count: int, factor: int, of_parts: bool, to_parts: bool) -> Value:
        """Results by elements of a line; parts of the results in front of these, parts of the elements of those."""
        scale = 1.0 / factor if self.sign > 0 else 1.0
        if count * factor << of_parts + to_parts <= self._most:
            return self.constant(plan.matrix(count, factor, self.sign, scale, of_parts, to_parts))
        real, imag = self._roots(count, factor, factor)
        if scale != 1.0:
            real, imag = (self.op("multiply", x, constant(self.rewriter, scale, tensor_of(x))) for x in (real, imag))
        rows = [[real, self.op("negate", imag)], [imag, real]][: 1 + to_parts]
        lines = [self._side_by_side(row[: 1 + of_parts], 1) if of_parts else row[0] for row in rows]
        return self._side_by_side(lines, 0) if to_parts else lines[0]

    def _roots(self, rows: int, columns: int, length: int) -> tuple[Value, Value]:
        """e^(sign 2 pi i row column / length), of shape rows by columns."""
        if 2 * rows * columns > self._most:
            return generated_roots(self.rewriter, self.element, (rows, columns), length, self.sign)
        return self._pair(plan.roots(plan.products(rows, columns), length, self.sign))

    @property
    def _most(self) -> int:
        return MOST_BYTES // BY_NAME[self.element].itemsize

    def _pair(self, parts: Array) -> tuple[Value, Value]:
        return self.constant(parts[0]), self.constant(parts[1])

    # ops

    def constant(self, array: Array) -> Value:
        value = DenseElements.of(array.astype(BY_NAME[self.element].numpy), self.element)
        return self.rewriter.build(Constant, value=value, out=value.type).result

    def op(self, name: str, *operands: Value) -> Value:
        return elementwise(self.rewriter, name, *operands)

    def multiplied(self, value: Value, table: tuple[Value, Value], axes: Sequence[int]) -> Value:
        """Complex products with a table along some axes."""
        shape = tensor_of(value).shape
        real, imag = (self.broadcast(part, axes, shape) for part in table)
        turned = self._signed(self.reversed(value, (0,)), (-1.0, 1.0))
        return self.op("add", self.op("multiply", value, real), self.op("multiply", turned, imag))

    def conjugate(self, value: Value) -> Value:
        return self._signed(value, (1.0, -1.0))

    def _signed(self, value: Value, signs: tuple[float, float]) -> Value:
        import numpy as np

        return self.op("multiply", value, self.broadcast(self.constant(np.array(signs)), (0,), tensor_of(value).shape))

    def dot(self, lhs: Value, rhs: Value, left: tuple[int, ...], right: tuple[int, ...]) -> Value:
        sides = ((lhs, left), (rhs, right))
        free = [size for x, gone in sides for axis, size in enumerate(tensor_of(x).shape) if axis not in gone]
        numbers = DotDimensions((), (), left, right).attribute()
        out = tensor(tuple(free), self.element)
        return self.rewriter.build(DotGeneral, lhs=lhs, rhs=rhs, dot_dimension_numbers=numbers, out=out).result

    def reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        return self.rewriter.build(Reshape, operand_=value, out=tensor(shape, self.element)).result

    def stacked(self, real: Value, imag: Value) -> Value:
        """Parts as one tensor, theirs the first axis."""
        return self._side_by_side([real, imag], 0)

    def part(self, value: Value, index: int) -> Value:
        return self.reshaped(self.slice(value, 0, index, index + 1), tensor_of(value).shape[1:])

    def _side_by_side(self, values: Sequence[Value], axis: int) -> Value:
        """Along a new axis."""
        shape = tensor_of(values[0]).shape
        lines = [self.reshaped(value, (*shape[:axis], 1, *shape[axis:])) for value in values]
        return self.concatenated(lines, axis)

    def concatenated(self, values: Sequence[Value], axis: int) -> Value:
        shapes = [tensor_of(value).shape for value in values]
        shape = (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])
        out = tensor(shape, self.element)
        return self.rewriter.build(Concatenate, inputs=values, dimension=IntegerAttr(axis), out=out).result

    def slice(self, value: Value, axis: int, start: int, limit: int) -> Value:
        shape = tensor_of(value).shape
        starts, limits = [0] * len(shape), list(shape)
        starts[axis], limits[axis] = start, limit
        out = tensor((*shape[:axis], limit - start, *shape[axis + 1 :]), self.element)
        bounds = (DenseArray(tuple(x)) for x in (starts, limits, [1] * len(shape)))
        names = ("start_indices", "limit_indices", "strides")
        return self.rewriter.build(Slice, operand_=value, out=out, **dict(zip(names, bounds, strict=True))).result

    def padded(self, value: Value, axis: int, count: int) -> Value:
        shape = tensor_of(value).shape
        none = DenseArray((0,) * len(shape))
        high = DenseArray(tuple(count if place == axis else 0 for place in range(len(shape))))
        made = self.rewriter.build(
            Pad,
            operand_=value,
            padding_value=constant(self.rewriter, 0.0, tensor((), self.element)),
            edge_padding_low=none,
            edge_padding_high=high,
            interior_padding=none,
            out=tensor((*shape[:axis], shape[axis] + count, *shape[axis + 1 :]), self.element),
        )
        return made.result

    def reversed(self, value: Value, axes: tuple[int, ...]) -> Value:
        return self.rewriter.build(Reverse, operand_=value, dimensions=DenseArray(axes), out=value.type).result

    def transposed(self, value: Value, order: Sequence[int]) -> Value:
        shape = tensor_of(value).shape
        out = tensor(tuple(shape[axis] for axis in order), self.element)
        return self.rewriter.build(Transpose, operand_=value, permutation=DenseArray(tuple(order)), out=out).result

    def broadcast(self, value: Value, axes: Sequence[int], shape: tuple[int, ...]) -> Value:
        out = tensor(shape, self.element)
        to = DenseArray(tuple(axes))
        return self.rewriter.build(BroadcastInDim, operand_=value, broadcast_dimensions=to, out=out).result
