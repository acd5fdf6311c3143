"""Table of elementwise ops on complex numbers, one row per op, expressed by real ops, `real`, `imag` and `complex`.

`expand` replaces ops of CHLO, `expand-complex` those of StableHLO; the conversions between ops cancel out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.rewriter import Pattern
from orchestrion.compiler.stablehlo.builders.tensors import Made, Tensor, expansion
from orchestrion.compiler.stablehlo.ops import elementwise as ops
from orchestrion.compiler.stablehlo.ops.base import is_complex

from . import inverses, numbers
from .numbers import Complex
from .parts import parts_of, tensor_of_parts

#: Returns the result's parts, or the real result.
Function = Callable[..., Complex | Tensor]

_NAMES: Final = ops.ON_COMPLEX - {"abs", "compare", "convert", "select"}
FUNCTIONS: Final[dict[str, Function]] = {
    **{f"stablehlo.{name}": getattr(numbers, name) for name in _NAMES},
    "stablehlo.abs": numbers.magnitude,
    **{f"chlo.{name}": getattr(inverses, name) for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh")},
    **{f"chlo.{name}": getattr(numbers, name) for name in ("cosh", "sinh", "tan")},
}


def _function(op: Operation, *operands: Tensor) -> Tensor | None:
    if op.name not in FUNCTIONS or not operands:
        return None
    if isinstance(op, ops.Clamp):
        operands = tuple(x if x.shape else x.broadcast(operands[op.subject].shape) for x in operands)
    if any(x.type != operands[0].type or not x.is_complex for x in operands):
        return None
    made = FUNCTIONS[op.name](*(Complex(*parts_of(x)) for x in operands))
    return made if isinstance(made, Tensor) else tensor_of_parts(operands[0].type, [made.re, made.im])


def _compare(op: ops.Compare, lhs: Tensor, rhs: Tensor) -> Tensor | None:
    if not lhs.is_complex:
        return None
    real, imag = (left.compare(op.direction, right) for left, right in zip(parts_of(lhs), parts_of(rhs), strict=True))
    return real & imag if op.direction == "EQ" else real | imag


def _select(op: Operation, pred: Tensor, yes: Tensor, no: Tensor) -> Tensor | None:
    if not yes.is_complex:
        return None
    parts = [pred.select(a, b) for a, b in zip(parts_of(yes), parts_of(no), strict=True)]
    return tensor_of_parts(yes.type, parts)


def _convert(op: ops.Convert, x: Tensor) -> Tensor | None:
    if not x.is_complex and not is_complex(op.out):
        return None
    out = Tensor(x.rewriter, op.out)
    given = [part.convert(out.dtype.storage if out.is_complex else out.dtype.name) for part in parts_of(x)]
    return tensor_of_parts(out.type, given) if out.is_complex else given[0]


def _part(op: Operation, x: Tensor) -> Made:
    """The part of a complex number with known parts, or of a real number."""
    index = int(isinstance(op, ops.Imag))
    if not x.is_complex:
        return x.of(0.0) if index else x
    maker = x.value.defining_op
    return parts_of(x)[index] if isinstance(maker, ops.Complex) else None


#: Expands an op of the table; skips malformed ops.
expand_function: Final = expansion(_function, None)

#: Patterns that leave no elementwise op on complex numbers except `real`, `imag` and `complex`.
PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    **{name: (expand_function,) for name in FUNCTIONS if name.startswith("stablehlo.")},
    "stablehlo.compare": (expansion(_compare, 2),),
    "stablehlo.convert": (expansion(_convert, 1),),
    "stablehlo.imag": (expansion(_part, 1),),
    "stablehlo.real": (expansion(_part, 1),),
    "stablehlo.select": (expansion(_select, 3),),
}
