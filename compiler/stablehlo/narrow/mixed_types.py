"""Ops with several element types, or narrow ones, as ops in the one type in which they compute.

- A dot or convolution with different operand and result types: operands are widened before, or the result is narrowed
  after.
- A dot with an `algorithm`: operands are rounded to its operand types, and it accumulates in its accumulation type, or
  in f32 if that is narrower. An algorithm of several operations approximates operands of higher precision; here the
  operands stay as they are.
- Functions of CHLO on narrow floats: computed in f32, rounded once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DialectAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.types import F32
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import dtype_of, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.compiler.stablehlo.ops.windowed import Convolution
from orchestrion.schema.dtypes import BY_NAME, FLOAT, DType

from .reduce_precision import reduce_precision

_FIELD: Final = re.compile(r"(\w+)\s*=\s*(\w+)\s*(?:,|$)")
#: Exponent and mantissa bits of tf32, which is no element type.
_TF32: Final = (8, 10)


def is_narrow_float(dtype: DType) -> bool:
    """Whether this is a float type that no device computes on."""
    return dtype.kind == FLOAT and not dtype.computed


def unify_types(op: Operation, left: Tensor, right: Tensor) -> Tensor | None:
    """Rewrites a dot or convolution to one element type."""
    lhs, rhs, out = left.dtype, right.dtype, dtype_of(op.results[0])
    if not isinstance(op, DotGeneral | Convolution) or lhs is rhs is out:
        return None
    if lhs is not rhs and lhs.computed and rhs.computed:
        return None
    inner = _inner(lhs, rhs, out)
    return None if inner is None else _compute_in(op, [left, right], inner)


def _inner(lhs: DType, rhs: DType, out: DType) -> DType | None:
    """The type to compute in; None if there is none."""
    if any(map(is_narrow_float, (lhs, rhs))):
        return out if out.name in ("f32", "f64") else BY_NAME["f32"]
    if all(_holds(out, operand) for operand in (lhs, rhs)):
        return out
    return lhs if lhs is rhs else None


def _holds(result: DType, operand: DType) -> bool:
    """Whether arithmetic in the result's type loses nothing compared with arithmetic in the operands' type."""
    if operand.kind == FLOAT:
        return result is operand or result.kind == FLOAT and result.bits > operand.bits
    return result.kind == FLOAT or result.bits >= operand.bits


def _compute_in(op: Operation, operands: Sequence[Tensor], dtype: DType) -> Tensor:
    """An op on operands of `dtype`, whose result is converted back."""
    given, out = [x.convert(dtype.name) for x in operands], tensor_of(op.results[0])
    made = type(op)([x.value for x in given], [given[0].type.with_shape(out.shape)], op.properties)
    rewriter = given[0].rewriter
    return Tensor(rewriter, rewriter.insert(made).results[0]).convert(str(out.element))


def apply_algorithm(op: Operation, lhs: Tensor, rhs: Tensor) -> Tensor | None:
    """Removes the algorithm of a dot; skips unknown types."""
    given = op.get_as("algorithm", DialectAttr)
    if given is None or not isinstance(op, DotGeneral):
        return None
    fields = dict(_FIELD.findall(given.body))
    inner = BY_NAME.get(fields.get("accumulation_type", ""))
    if inner is None or inner.kind != FLOAT and not all(_holds(inner, x.dtype) for x in (lhs, rhs)):
        return None
    taken = [_taken_as(x, fields, side) for x, side in ((lhs, "lhs"), (rhs, "rhs"))]
    operands = [x for x in taken if x is not None]
    if len(operands) != 2:
        return None
    del op.properties["algorithm"]
    return _compute_in(op, operands, BY_NAME["f32"] if is_narrow_float(inner) else inner)


def _taken_as(x: Tensor, fields: dict[str, str], side: str) -> Tensor | None:
    """An operand rounded to the type that the algorithm takes; None for an unknown type."""
    name = fields.get(f"{side}_precision_type", "")
    if name not in BY_NAME and name != "tf32":
        return None
    if fields.get("num_primitive_operations", "1") != "1":
        return x
    if name != "tf32":
        return x.convert(name)
    return reduce_precision(x, *_TF32) if x.dtype.name in ("f32", "f64") else x


def compute_in_f32(op: Operation, *operands: Tensor) -> Tensor | None:
    """Computes an elementwise op on narrow floats in f32."""
    out = tensor_of(op.results[0])
    if op.regions or any(x.shape != out.shape for x in operands):
        return None
    given = [x.convert("f32") if is_narrow_float(x.dtype) else x for x in operands]
    if given == list(operands):
        return None
    rewriter = operands[0].rewriter
    made = rewriter.insert(op.clone(dict(zip(op.operands, (x.value for x in given), strict=True))))
    if is_narrow_float(dtype_of(op.results[0])):
        made.results[0].type = out.with_element(F32)
    return Tensor(rewriter, made.results[0]).convert(str(out.element))
