"""Ops with dynamic shapes whose result type is static: replaces them by the ops with attributes.

The operands that would state the shape are constants, or must agree with the result type, and are ignored. Other ops
are left for `refine-shapes`, or for the legality check.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.attributes import DenseElements, IntegerAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.verifier import declaration_problems
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, expansion
from orchestrion.compiler.stablehlo.ops.base import is_known
from orchestrion.compiler.stablehlo.ops.dynamic import STATIC_FORMS, static_fields
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.compiler.stablehlo.ops.windowed import Convolution
from orchestrion.schema.rules import MAX_RANK


def _ints(value: Value) -> tuple[int, ...] | None:
    """The integers of a constant of rank 1; None for any other value."""
    maker = value.defining_op
    if not isinstance(maker, Constant) or "value" not in maker.properties or maker.value.type.rank != 1:
        return None
    if maker.value.type.num_elements > MAX_RANK:  # a splat may stand for any number of elements
        return None
    return tuple(int(number) for number in maker.value.array())


def _static(op: Operation, rewriter: Rewriter) -> bool:
    """Replaces an op whose types are static, and whose lists are constants."""
    if any(declaration_problems(op)) or not all(is_known(value.type) for value in (*op.operands, *op.results)):
        return False
    cls, names = STATIC_FORMS[type(op)]
    lists = {name: numbers for name in names if (numbers := _ints(getattr(op, name))) is not None}
    if len(lists) != len(names):
        return False
    made = cls.build(**static_fields(op, lists), out=op.results[0].type)
    if any(made.check()):
        made.erase()
        return False
    return rewriter.replace(op, rewriter.insert(made).results)


def _convolution(op: Operation, lhs: Tensor, rhs: Tensor, padding: Tensor) -> Tensor | None:
    maker = padding.value.defining_op
    if not isinstance(maker, Constant) or not isinstance(maker.properties.get("value"), DenseElements):
        return None
    made = Convolution(op.operands[:2], [op.results[0].type], {**op.properties, "padding": maker.value})
    return Tensor(lhs.rewriter, lhs.rewriter.insert(made).results[0])


def _size(op: Operation, x: Tensor) -> Tensor | None:
    axis = op.get_as("dimension", IntegerAttr)
    return x.int32(x.shape[axis.value]) if axis is not None and 0 <= axis.value < len(x.shape) else None


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    **{cls.name: (_static,) for cls in STATIC_FORMS},
    "stablehlo.dynamic_conv": (expansion(_convolution, 3),),
    "stablehlo.get_dimension_size": (expansion(_size, 1),),
}
