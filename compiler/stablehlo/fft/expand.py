"""`fft` in terms of `flow.fft`, which transforms lines that fit a workgroup, and of elementwise ops.

Numbers are real tensors whose last axis has their parts, as complex numbers lie in memory. Axes are transformed in
place. A longer line becomes a matrix: its columns are transformed, multiplied by twiddle factors, and then its rows,
whose results lie in columns. A length with a large prime factor becomes a convolution with a chirp (`plan.py`).
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import tensor
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate, replace
from orchestrion.compiler.stablehlo.complex.parts import interleaved, parts_of, separated, tensor_of_parts
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft, longest
from orchestrion.compiler.stablehlo.ops.fourier import Fft
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import BY_NAME

from . import plan
from .tables import generated_roots

#: Maximum bytes of a table in the module; larger tables are computed when the module is loaded.
MAX_TABLE_BYTES: Final = 1 << 16
#: Maximum length with a large prime factor: the compiler computes its tables, of twice the length.
MAX_CHIRP_LENGTH: Final = 1 << 22


def expand_fft(op: Fft, rewriter: Rewriter) -> bool:
    """Expands a Fourier transform. Raises CompileError for a length that is too large."""
    type, source = tensor_of(op.out), tensor_of(op.operand_)
    element = str(source.element).removeprefix("complex<").removesuffix(">")
    x = Tensor(rewriter, op.operand_)
    if 0 in (*type.shape, *source.shape):
        return replace(op, rewriter, x.splat(0.0, type))
    for length in op.fft_length.ints:
        if length > MAX_CHIRP_LENGTH and plan.matrix_rows(length, longest(BY_NAME[element].itemsize)) is None:
            message = f"length {length} has a large prime factor; such lengths are supported up to {MAX_CHIRP_LENGTH}"
            raise CompileError([Diagnostic(message, op.loc, op.name)])
    return replace(op, rewriter, _transformed(_Transform(x, element, op.kind in ("IFFT", "IRFFT")), op))


def _transformed(t: _Transform, op: Fft) -> Tensor:
    lengths, out = op.fft_length.ints, tensor_of(op.out)
    last = out.rank - 1
    value = interleaved(parts_of(t.given))
    if op.kind == "RFFT":  # RFFT: the halved axis is transformed first; IRFFT: last
        value = t.line(value, last, count=lengths[-1] // 2 + 1)
    for axis in reversed(range(out.rank - len(lengths), last)):
        value = t.line(value, axis)
    if op.kind == "IRFFT":
        return t.line(_mirrored(value, last, lengths[-1]), last, to_real=True).reshape(*out.shape)
    return tensor_of_parts(out, separated(value if op.kind == "RFFT" else t.line(value, last)))


class _Transform:
    """Writes the ops of a transform. The last axis has the parts of numbers; a real number may have one part."""

    def __init__(self, given: Tensor, element: str, inverse: bool) -> None:
        self.given = given
        self.element = element
        self.inverse = inverse
        self.sign = 1 if inverse else -1

    def line(self, value: Tensor, axis: int, count: int = 0, to_real: bool = False) -> Tensor:
        """Transforms an axis; returns the first `count` numbers (0: all), with `to_real` only their real parts."""
        length = int(value.shape[axis])
        count, parts = count or length, 1 if to_real else 2
        rows = plan.matrix_rows(length, longest(BY_NAME[self.element].itemsize))
        if rows == length and length > 1:
            return self._line(value, axis, count, parts)
        if rows is not None and length > 1:
            return self._four_steps(value, axis, rows, count, to_real)
        last = len(value.shape) - 1
        value = value if value.shape[last] == 2 else concatenate([value, value.of(0.0)], last)
        value = self._bluestein(value, axis) if rows is None else value
        return value.cut(axis, 0, count).cut(last, 0, parts)

    def _line(self, value: Tensor, axis: int, count: int, parts: int) -> Tensor:
        shape = list(value.shape)
        length, shape[axis], shape[-1] = int(shape[axis]), count, parts
        roots = plan.line_roots(length, self.sign)
        fields = {"roots": self._constant(roots.T.reshape(length, 2)), "dimension": axis, "inverse": self.inverse}
        return value.build(LineFft, operand_=value, **fields, out=tensor(tuple(shape), self.element))

    def _four_steps(self, value: Tensor, axis: int, rows: int, count: int, to_real: bool) -> Tensor:
        """Transforms a line as a matrix in row-major order; result k is row k // rows, column k % rows of another."""
        shape = value.shape
        columns = int(shape[axis]) // rows
        value = value.reshape(*shape[:axis], rows, columns, *shape[axis + 1 :])
        turns = self._roots(rows, columns)
        value = _multiplied(self.line(value, axis), turns, (axis, axis + 1))
        order = list(range(len(shape) + 1))
        order[axis], order[axis + 1] = axis + 1, axis
        taken = -(-count // rows)
        value = self.line(value.transpose(*order), axis, taken, to_real)
        value = value.reshape(*shape[:axis], taken * rows, *shape[axis + 1 : -1], 1 if to_real else 2)
        return value.cut(axis, 0, count)

    def _bluestein(self, value: Tensor, axis: int) -> Tensor:
        length = int(value.shape[axis])
        padded = plan.padded_length(length, longest(BY_NAME[self.element].itemsize))
        chirp = plan.chirp(length, self.sign)
        value = _multiplied(value, self._pair(chirp), (axis,))
        value = value.pad_to(*value.shape[:axis], padded, *value.shape[axis + 1 :])
        value = _Transform(self.given, self.element, False).line(value, axis)
        spectrum = plan.chirp_spectrum(length, padded, self.sign)
        value = _multiplied(value, self._pair(spectrum), (axis,))
        value = _Transform(self.given, self.element, True).line(value, axis).cut(axis, 0, length)
        return _multiplied(value, self._pair(chirp / length if self.inverse else chirp), (axis,))

    def _roots(self, rows: int, columns: int) -> tuple[Tensor, Tensor]:
        """e^(sign 2 pi i row column / (rows columns)), of shape rows by columns, as real and imaginary parts."""
        if 2 * rows * columns * BY_NAME[self.element].itemsize > MAX_TABLE_BYTES:
            return generated_roots(self.given.rewriter, self.element, rows, columns, self.sign)
        return self._pair(plan.matrix_roots(rows, columns, self.sign))

    def _pair(self, parts: plan.Array) -> tuple[Tensor, Tensor]:
        return self._constant(parts[0]), self._constant(parts[1])

    def _constant(self, array: plan.Array) -> Tensor:
        value = DenseElements.of(array.astype(BY_NAME[self.element].numpy), self.element)
        return self.given.build(Constant, value=value, out=value.type)


def _multiplied(value: Tensor, table: tuple[Tensor, Tensor], axes: tuple[int, ...]) -> Tensor:
    """Complex products with a table along some axes."""
    a, b = separated(value)
    c, d = (one.broadcast(a.shape, axes) for one in table)
    return interleaved((a * c - b * d, a * d + b * c))


def _mirrored(value: Tensor, axis: int, length: int) -> Tensor:
    """The whole spectrum of real numbers from its first half."""
    real, imag = separated(value.cut(axis, 1, length - length // 2).reverse(axis))
    return concatenate([value, interleaved((real, -imag))], axis)
