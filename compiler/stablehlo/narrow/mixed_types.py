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
from typing import Final

from orchestrion.compiler.ir.attributes import DialectAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import F32, TensorType, Type
from orchestrion.compiler.stablehlo.builders.basic import convert
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_known, tensor_of
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


def unify_types(op: Operation, rewriter: Rewriter) -> bool:
    """Rewrites a dot or convolution to one element type."""
    if not isinstance(op, DotGeneral | Convolution) or (len(op.operands), len(op.results)) != (2, 1):
        return False
    if not all(is_known(value.type) for value in (*op.operands, *op.results)):
        return False
    lhs, rhs, out = (dtype_of(value) for value in (*op.operands, *op.results))
    if lhs is rhs is out or lhs is not rhs and lhs.computed and rhs.computed:
        return False
    inner = _inner(lhs, rhs, out)
    if inner is None:
        return False
    _compute_in(op, rewriter, inner)
    return True


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


def _compute_in(op: Operation, rewriter: Rewriter, dtype: DType) -> None:
    """Replaces an op by one on operands of `dtype`, whose result is converted back."""
    operands = [_as(rewriter, value, dtype.name) for value in op.operands]
    out = tensor_of(op.results[0])
    made = rewriter.insert(type(op)(operands, [tensor_of(operands[0]).with_shape(out.shape)], op.properties))
    rewriter.replace(op, [_as(rewriter, made.results[0], str(out.element))])


def _as(rewriter: Rewriter, value: Value, name: str) -> Value:
    return value if str(tensor_of(value).element) == name else convert(rewriter, value, name)


def apply_algorithm(op: Operation, rewriter: Rewriter) -> bool:
    """Removes the algorithm of a dot; skips unknown types."""
    given = op.get_as("algorithm", DialectAttr)
    if given is None or not isinstance(op, DotGeneral) or (len(op.operands), len(op.results)) != (2, 1):
        return False
    if not all(is_known(value.type) for value in (*op.operands, *op.results)):
        return False
    fields = dict(_FIELD.findall(given.body))
    inner = BY_NAME.get(fields.get("accumulation_type", ""))
    taken = [_taken_as(rewriter, value, fields, side) for value, side in zip(op.operands, ("lhs", "rhs"), strict=True)]
    lhs, rhs = taken
    if inner is None or lhs is None or rhs is None:
        return False
    if inner.kind != FLOAT and not all(_holds(inner, dtype_of(x)) for x in op.operands):
        return False
    del op.properties["algorithm"]
    op.set_operands([lhs, rhs])
    _compute_in(op, rewriter, BY_NAME["f32"] if is_narrow_float(inner) else inner)
    return True


def _taken_as(rewriter: Rewriter, value: Value, fields: dict[str, str], side: str) -> Value | None:
    """An operand rounded to the type that the algorithm takes; None for an unknown type."""
    name, given = fields.get(f"{side}_precision_type", ""), dtype_of(value)
    if name not in BY_NAME and name != "tf32":
        return None
    if name == given.name or fields.get("num_primitive_operations", "1") != "1":
        return value
    if name != "tf32":
        return convert(rewriter, value, name)
    return reduce_precision(rewriter, value, *_TF32) if given.name in ("f32", "f64") else value


def compute_in_f32(op: Operation, rewriter: Rewriter) -> bool:
    """Computes an elementwise op on narrow floats in f32."""
    types: list[Type] = [value.type for value in (*op.operands, *op.results)]
    if len(op.results) != 1 or op.regions or not op.operands or not all(map(is_known, types)):
        return False
    shapes = {type.shape for type in types if isinstance(type, TensorType)}
    if len(shapes) != 1 or not any(is_narrow_float(dtype_of(value)) for value in op.operands):
        return False
    operands = [_as(rewriter, x, "f32") if is_narrow_float(dtype_of(x)) else x for x in op.operands]
    out = tensor_of(op.results[0])
    inner = out.with_element(F32) if is_narrow_float(dtype_of(op.results[0])) else out
    made = _like(op, operands, inner)
    rewriter.insert(made)
    rewriter.replace(op, [_as(rewriter, made.results[0], str(out.element))])
    return True


def _like(op: Operation, operands: list[Value], out: Type) -> Operation:
    """The same op with other operands."""
    made = op.clone({old: new for old, new in zip(op.operands, operands, strict=True)})
    made.results[0].type = out
    return made
