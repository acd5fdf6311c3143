"""Table of elementwise ops on complex numbers, one row per op, expressed by real ops, `real`, `imag` and `complex`.

`expand` replaces ops of CHLO, `expand-complex` those of StableHLO; the conversions between ops cancel out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import scalar
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, convert, elementwise
from orchestrion.compiler.stablehlo.builders.real import Real
from orchestrion.compiler.stablehlo.ops import elementwise as ops
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_complex, part_type, tensor_of
from orchestrion.schema.dtypes import COMPLEX

from . import inverses, numbers
from .numbers import Complex

#: Returns the result's parts, or the real result.
Function = Callable[..., Complex | Real]

FUNCTIONS: Final[dict[str, Function]] = {
    "stablehlo.abs": numbers.magnitude,
    "stablehlo.add": numbers.add,
    "stablehlo.cbrt": numbers.cbrt,
    "stablehlo.cosine": numbers.cosine,
    "stablehlo.divide": numbers.divide,
    "stablehlo.exponential": numbers.exponential,
    "stablehlo.exponential_minus_one": numbers.exponential_minus_one,
    "stablehlo.log": numbers.log,
    "stablehlo.log_plus_one": numbers.log_plus_one,
    "stablehlo.logistic": numbers.logistic,
    "stablehlo.multiply": numbers.multiply,
    "stablehlo.negate": numbers.negate,
    "stablehlo.power": numbers.power,
    "stablehlo.rsqrt": numbers.rsqrt,
    "stablehlo.sign": numbers.sign,
    "stablehlo.sine": numbers.sine,
    "stablehlo.sqrt": numbers.sqrt,
    "stablehlo.subtract": numbers.subtract,
    "stablehlo.tan": numbers.tan,
    "stablehlo.tanh": numbers.tanh,
    "chlo.acos": inverses.acos,
    "chlo.acosh": inverses.acosh,
    "chlo.asin": inverses.asin,
    "chlo.asinh": inverses.asinh,
    "chlo.atan": inverses.atan,
    "chlo.atanh": inverses.atanh,
    "chlo.cosh": numbers.cosh,
    "chlo.sinh": numbers.sinh,
    "chlo.tan": numbers.tan,
}


def parts_of(rewriter: Rewriter, value: Value) -> tuple[Value, Value]:
    """The real and the imaginary part."""
    maker = value.defining_op
    if isinstance(maker, ops.Complex):
        return maker.lhs, maker.rhs
    type = part_type(tensor_of(value))
    real, imag = (rewriter.build(cls, operand_=value, out=type).result for cls in (ops.Real, ops.Imag))
    return real, imag


def make_complex(rewriter: Rewriter, real: Value, imag: Value) -> Value:
    """The complex number with these parts."""
    type = tensor_of(real)
    out = type.with_element(scalar(f"complex<{type.element}>"))
    return rewriter.build(ops.Complex, lhs=real, rhs=imag, out=out).result


def expand_function(op: Operation, rewriter: Rewriter) -> bool:
    """Expands an op of the table; skips malformed ops."""
    if op.name not in FUNCTIONS or len(op.results) != 1 or not op.operands or not all(map(is_complex, op.operands)):
        return False
    type = tensor_of(op.operands[0])
    given = part_type(type) if op.name == "stablehlo.abs" else type
    if any(value.type != type for value in op.operands) or op.results[0].type != given:
        return False
    pairs = [parts_of(rewriter, value) for value in op.operands]
    made = FUNCTIONS[op.name](*(Complex(Real(rewriter, re), Real(rewriter, im)) for re, im in pairs))
    value = made.value if isinstance(made, Real) else make_complex(rewriter, made.re.value, made.im.value)
    rewriter.replace(op, [value])
    return True


def _compare(op: Operation, rewriter: Rewriter) -> bool:
    assert isinstance(op, ops.Compare)
    if not is_complex(op.lhs):
        return False
    sides = zip(parts_of(rewriter, op.lhs), parts_of(rewriter, op.rhs), strict=True)
    found = [compare(rewriter, op.direction, left, right) for left, right in sides]
    rewriter.replace(op, [elementwise(rewriter, "and" if op.direction == "EQ" else "or", *found)])
    return True


def _select(op: Operation, rewriter: Rewriter) -> bool:
    assert isinstance(op, ops.Select)
    if not is_complex(op.on_true):
        return False
    sides = zip(parts_of(rewriter, op.on_true), parts_of(rewriter, op.on_false), strict=True)
    real, imag = (elementwise(rewriter, "select", op.pred, yes, no) for yes, no in sides)
    rewriter.replace(op, [make_complex(rewriter, real, imag)])
    return True


def _convert(op: Operation, rewriter: Rewriter) -> bool:
    assert isinstance(op, ops.Convert)
    if not is_complex(op.operand_) and not is_complex(op.out):
        return False
    target = dtype_of(op.out)
    element = target.storage if target.kind == COMPLEX else target.name
    parts = parts_of(rewriter, op.operand_) if is_complex(op.operand_) else (op.operand_,)
    given = [convert(rewriter, part, element) for part in parts]
    if target.kind != COMPLEX:
        rewriter.replace(op, given[:1])
        return True
    imag = given[1] if len(given) == 2 else constant(rewriter, 0.0, tensor_of(given[0]))
    rewriter.replace(op, [make_complex(rewriter, given[0], imag)])
    return True


def _real(op: Operation, rewriter: Rewriter) -> bool:
    return _part(op, rewriter, 0)


def _imag(op: Operation, rewriter: Rewriter) -> bool:
    return _part(op, rewriter, 1)


def _part(op: Operation, rewriter: Rewriter, index: int) -> bool:
    """The part of a complex number with known parts, or of a real number."""
    if not is_complex(op.operands[0]):
        part = op.operands[0] if index == 0 else constant(rewriter, 0.0, tensor_of(op.operands[0]))
        rewriter.replace(op, [part])
        return True
    maker = op.operands[0].defining_op
    if not isinstance(maker, ops.Complex):
        return False
    rewriter.replace(op, [maker.operands[index]])
    return True


#: Patterns that leave no elementwise op on complex numbers except `real`, `imag` and `complex`.
PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    **{name: (expand_function,) for name in FUNCTIONS if name.startswith("stablehlo.")},
    "stablehlo.compare": (_compare,),
    "stablehlo.convert": (_convert,),
    "stablehlo.imag": (_imag,),
    "stablehlo.real": (_real,),
    "stablehlo.select": (_select,),
}
