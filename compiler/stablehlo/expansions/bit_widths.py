"""`bitcast_convert` between types of different widths: a last axis holds the parts of the wider type, the low bits
first.
"""

from __future__ import annotations

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.basic import bitcast, constant, convert, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import concatenate, reshape, slice_range
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_known, tensor_of
from orchestrion.schema.dtypes import BOOL, BY_NAME, DType


def expand_bitcast(op: Operation, rewriter: Rewriter) -> bool:
    """Expands a bitcast; skips equal widths and malformed ops."""
    if len(op.operands) != 1 or len(op.results) != 1 or not is_known(op.operands[0].type):
        return False
    if not is_known(op.results[0].type):
        return False
    x, out = op.operands[0], tensor_of(op.results[0])
    source, target = dtype_of(x), BY_NAME[str(out.element)]
    if source.bits == target.bits or BOOL in (source.kind, target.kind):
        return False
    parts = max(source.bits, target.bits) // min(source.bits, target.bits)
    type = tensor_of(x)
    narrow, whole = (out, type) if source.bits > target.bits else (type, out)
    if narrow.shape != (*whole.shape, parts):
        return False
    bits = x if source.name == f"ui{source.bits}" else bitcast(rewriter, x, f"ui{source.bits}")
    made = (_split if source.bits > target.bits else _merged)(rewriter, bits, parts, target)
    rewriter.replace(op, [made if target.name == f"ui{target.bits}" else bitcast(rewriter, made, target.name)])
    return True


def _split(rewriter: Rewriter, bits: Value, parts: int, target: DType) -> Value:
    """Splits each number into parts along a new last axis."""
    type = tensor_of(bits)
    pieces = []
    for index in range(parts):
        by = constant(rewriter, index * target.bits, type)
        piece = convert(rewriter, elementwise(rewriter, "shift_right_logical", bits, by), f"ui{target.bits}")
        pieces.append(reshape(rewriter, piece, (*type.shape, 1)))
    return concatenate(rewriter, pieces, type.rank)


def _merged(rewriter: Rewriter, bits: Value, parts: int, target: DType) -> Value:
    """Joins the parts along the last axis."""
    type, width = tensor_of(bits), dtype_of(bits).bits
    total: Value | None = None
    for index in range(parts):
        first, last = (0,) * (type.rank - 1), type.shape[:-1]
        piece = reshape(rewriter, slice_range(rewriter, bits, (*first, index), (*last, index + 1)), last)
        wide = convert(rewriter, piece, f"ui{target.bits}")
        wide = elementwise(rewriter, "shift_left", wide, constant(rewriter, index * width, tensor_of(wide)))
        total = wide if total is None else elementwise(rewriter, "or", total, wide)
    assert total is not None, "there are two parts at least"
    return total
