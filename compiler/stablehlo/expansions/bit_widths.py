"""`bitcast_convert` between types of different widths: a last axis holds the parts of the wider type, the low bits
first.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.schema.dtypes import BOOL, BY_NAME


def expand_bitcast(op: Operation, x: Tensor) -> Tensor | None:
    """Expands a bitcast; skips equal widths and malformed ops."""
    out = tensor_of(op.results[0])
    source, target = x.dtype, BY_NAME[str(out.element)]
    if source.bits == target.bits or BOOL in (source.kind, target.kind):
        return None
    parts = max(source.bits, target.bits) // min(source.bits, target.bits)
    narrow, whole = (out, x.type) if source.bits > target.bits else (x.type, out)
    if narrow.shape != (*whole.shape, parts):
        return None
    bits, name = x.bitcast(f"ui{source.bits}"), f"ui{target.bits}"
    if source.bits > target.bits:  # the parts lie along a new last axis
        pieces = ((bits >> index * target.bits).convert(name) for index in range(parts))
        return concatenate([piece.reshape(*x.shape, 1) for piece in pieces], len(x.shape)).bitcast(target.name)
    last = len(whole.shape)
    pieces = (bits.cut(last, index, index + 1).reshape(*whole.shape).convert(name) for index in range(parts))
    return reduce(or_, (piece << index * source.bits for index, piece in enumerate(pieces))).bitcast(target.name)
