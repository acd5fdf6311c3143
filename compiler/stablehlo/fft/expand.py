"""`fft` in terms of `flow.fft`, which transforms lines that fit a workgroup, and of elementwise ops.

Numbers are real tensors whose last axis has their parts, as complex numbers lie in memory. Axes are transformed in
place. A longer line becomes a matrix: its columns are transformed, multiplied by twiddle factors, and then its rows,
whose results lie in columns. A length with a large prime factor becomes a convolution with a chirp (`plan.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import BoolAttr, DenseElements, IntegerAttr, dense_ints
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import tensor
from orchestrion.compiler.stablehlo.builders.basic import constant, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, reshape, slice_range, transpose
from orchestrion.compiler.stablehlo.complex.functions import make_complex, parts_of
from orchestrion.compiler.stablehlo.ops.base import is_complex, tensor_of
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft, longest
from orchestrion.compiler.stablehlo.ops.fourier import Fft
from orchestrion.compiler.stablehlo.ops.structural import Concatenate, Constant, Pad, Reverse
from orchestrion.schema.dtypes import BY_NAME

from . import plan
from .tables import generated_roots

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Maximum bytes of a table in the module; larger tables are computed when the module is loaded.
MAX_TABLE_BYTES: Final = 1 << 16
#: Maximum length with a large prime factor: the compiler computes its tables, of twice the length.
MAX_CHIRP_LENGTH: Final = 1 << 22


def expand_fft(op: Operation, rewriter: Rewriter) -> bool:
    """Expands a Fourier transform. Raises CompileError for a length that is too large."""
    assert isinstance(op, Fft)
    type, source = tensor_of(op.out), tensor_of(op.operand_)
    element = str(source.element).removeprefix("complex<").removesuffix(">")
    if 0 in (*type.shape, *source.shape):
        zero = constant(rewriter, 0.0, tensor(type.shape, element))
        rewriter.replace(op, [make_complex(rewriter, zero, zero) if is_complex(op.out) else zero])
        return True
    for length in op.fft_length.ints:
        if length > MAX_CHIRP_LENGTH and plan.matrix_rows(length, longest(BY_NAME[element].itemsize)) is None:
            message = f"length {length} has a large prime factor; such lengths are supported up to {MAX_CHIRP_LENGTH}"
            raise CompileError([Diagnostic(message, op.loc, op.name)])
    t = _Transform(rewriter, element, op.kind in ("IFFT", "IRFFT"))
    rewriter.replace(op, [_transformed(t, op)])
    return True


def _transformed(t: _Transform, op: Fft) -> Value:
    lengths, rank = op.fft_length.ints, tensor_of(op.operand_).rank
    last = rank - 1
    *others, _ = range(rank - len(lengths), rank)
    if op.kind == "RFFT":  # RFFT: the halved axis is transformed first; IRFFT: last
        value = t.line(t.packed(op.operand_), last, count=lengths[-1] // 2 + 1)
    else:
        value = t.packed(*parts_of(t.rewriter, op.operand_))
    for axis in reversed(others):
        value = t.line(value, axis)
    if op.kind == "IRFFT":
        value = t.line(t.mirrored(value, last, lengths[-1]), last, to_real=True)
        return reshape(t.rewriter, value, tensor_of(op.out).shape)
    return make_complex(t.rewriter, *t.parts(value if op.kind == "RFFT" else t.line(value, last)))


class _Transform:
    """Writes the ops of a transform. The last axis of values has the parts of numbers; a real number may
    have one part.
    """

    def __init__(self, rewriter: Rewriter, element: str, inverse: bool) -> None:
        self.rewriter = rewriter
        self.element = element
        self.inverse = inverse

    @property
    def sign(self) -> int:
        return 1 if self.inverse else -1

    def line(self, value: Value, axis: int, count: int = 0, to_real: bool = False) -> Value:
        """Transforms an axis; returns the first `count` numbers (0: all), with `to_real` only their real parts."""
        shape = tensor_of(value).shape
        length = shape[axis]
        count, parts = count or length, 1 if to_real else 2
        rows = plan.matrix_rows(length, longest(BY_NAME[self.element].itemsize))
        if rows == length and length > 1:
            return self._line(value, axis, count, parts)
        if rows is not None and length > 1:
            return self._four_steps(value, axis, rows, count, to_real)
        value = self._filled(value)
        value = self._bluestein(value, axis) if rows is None else value
        return self.cut(self.cut(value, axis, 0, count), len(shape) - 1, 0, parts)

    def _line(self, value: Value, axis: int, count: int, parts: int) -> Value:
        shape = list(tensor_of(value).shape)
        roots = plan.roots(plan.positions(shape[axis]), shape[axis], self.sign)
        length, shape[axis], shape[-1] = shape[axis], count, parts
        return self.rewriter.build(
            LineFft,
            operand_=value,
            roots=self.constant(roots.T.reshape(length, 2)),
            dimension=IntegerAttr(axis),
            inverse=BoolAttr(self.inverse),
            out=tensor(tuple(shape), self.element),
        ).result

    def _four_steps(self, value: Value, axis: int, rows: int, count: int, to_real: bool) -> Value:
        """Transforms a line as a matrix in row-major order; result k is row k // rows, column k % rows of another
        matrix.
        """
        shape = tensor_of(value).shape
        columns = shape[axis] // rows
        value = reshape(self.rewriter, value, (*shape[:axis], rows, columns, *shape[axis + 1 :]))
        turns = self._roots(rows, columns, shape[axis])
        value = self.multiplied(self.line(value, axis), turns, (axis, axis + 1))
        order = list(range(len(shape) + 1))
        order[axis], order[axis + 1] = axis + 1, axis
        value = transpose(self.rewriter, value, order)
        taken = -(-count // rows)
        value = self.line(value, axis, taken, to_real)
        last = 1 if to_real else 2
        value = reshape(self.rewriter, value, (*shape[:axis], taken * rows, *shape[axis + 1 : -1], last))
        return self.cut(value, axis, 0, count)

    def _bluestein(self, value: Value, axis: int) -> Value:
        length = tensor_of(value).shape[axis]
        padded = plan.padded_length(length, longest(BY_NAME[self.element].itemsize))
        chirp = plan.chirp(length, self.sign)
        value = self.multiplied(value, self._pair(chirp), (axis,))
        value = self._padded(value, axis, padded - length)
        value = _Transform(self.rewriter, self.element, False).line(value, axis)
        spectrum = plan.chirp_spectrum(length, padded, self.sign)
        value = self.multiplied(value, self._pair(spectrum), (axis,))
        value = self.cut(_Transform(self.rewriter, self.element, True).line(value, axis), axis, 0, length)
        return self.multiplied(value, self._pair(chirp / length if self.inverse else chirp), (axis,))

    def mirrored(self, value: Value, axis: int, length: int) -> Value:
        """The whole spectrum of real numbers from its first half."""
        rest = self.cut(value, axis, 1, length - length // 2)
        turned = self.rewriter.build(Reverse, operand_=rest, dimensions=dense_ints(axis), out=rest.type).result
        real, imag = self.parts(turned)
        return self._side_by_side([value, self.packed(real, self._op("negate", imag))], axis)

    # tables

    def _roots(self, rows: int, columns: int, length: int) -> tuple[Value, Value]:
        """e^(sign 2 pi i row column / length), of shape rows by columns, as real and imaginary parts."""
        if 2 * rows * columns * BY_NAME[self.element].itemsize > MAX_TABLE_BYTES:
            return generated_roots(self.rewriter, self.element, (rows, columns), length, self.sign)
        return self._pair(plan.roots(plan.products(rows, columns), length, self.sign))

    def _pair(self, parts: Array) -> tuple[Value, Value]:
        return self.constant(parts[0]), self.constant(parts[1])

    def constant(self, array: Array) -> Value:
        value = DenseElements.of(array.astype(BY_NAME[self.element].numpy), self.element)
        return self.rewriter.build(Constant, value=value, out=value.type).result

    # numbers

    def packed(self, *parts: Value) -> Value:
        lines = [reshape(self.rewriter, value, (*tensor_of(value).shape, 1)) for value in parts]
        return self._side_by_side(lines, tensor_of(parts[0]).rank)

    def parts(self, value: Value) -> tuple[Value, Value]:
        shape = tensor_of(value).shape
        real, imag = (
            reshape(self.rewriter, self.cut(value, len(shape) - 1, at, at + 1), shape[:-1]) for at in range(2)
        )
        return real, imag

    def _filled(self, value: Value) -> Value:
        """The numbers with both parts."""
        if tensor_of(value).shape[-1] == 2:
            return value
        zero = constant(self.rewriter, 0.0, tensor_of(value))
        return self._side_by_side([value, zero], tensor_of(value).rank - 1)

    def multiplied(self, value: Value, table: tuple[Value, Value], axes: tuple[int, ...]) -> Value:
        """Complex products with a table along some axes."""
        a, b = self.parts(value)
        c, d = (broadcast(self.rewriter, one, tensor_of(a).shape, axes) for one in table)
        real = self._op("subtract", self._op("multiply", a, c), self._op("multiply", b, d))
        return self.packed(real, self._op("add", self._op("multiply", a, d), self._op("multiply", b, c)))

    def _op(self, name: str, *operands: Value) -> Value:
        return elementwise(self.rewriter, name, *operands)

    # data movement

    def cut(self, value: Value, axis: int, start: int, limit: int) -> Value:
        shape = tensor_of(value).shape
        starts, limits = [0] * len(shape), list(shape)
        starts[axis], limits[axis] = start, limit
        return slice_range(self.rewriter, value, starts, limits)

    def _side_by_side(self, values: list[Value], axis: int) -> Value:
        if len(values) == 1:
            return values[0]
        shapes = [tensor_of(value).shape for value in values]
        shape = (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])
        out = tensor(shape, self.element)
        return self.rewriter.build(Concatenate, inputs=values, dimension=IntegerAttr(axis), out=out).result

    def _padded(self, value: Value, axis: int, count: int) -> Value:
        shape = tensor_of(value).shape
        none = dense_ints(*[0] * len(shape))
        return self.rewriter.build(
            Pad,
            operand_=value,
            padding_value=constant(self.rewriter, 0.0, tensor((), self.element)),
            edge_padding_low=none,
            edge_padding_high=dense_ints(*(count if place == axis else 0 for place in range(len(shape)))),
            interior_padding=none,
            out=tensor((*shape[:axis], shape[axis] + count, *shape[axis + 1 :]), self.element),
        ).result
