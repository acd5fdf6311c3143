"""Functions of CHLO by ops of StableHLO: inverse and hyperbolic functions, and the neighbour of a float.

The formulas avoid cancellation and overflow of intermediate values, so that errors are a few units in the last place.
An odd function has the sign of its argument, including that of a zero. Source of the formulas: W. Kahan, "Branch cuts
for complex elementary functions", 1987.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf
from typing import Final

from orchestrion.compiler.ir.attributes import DenseElements, FloatAttr, IntegerAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.builders.basic import bitcast, compare, constant, convert, elementwise
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_known, is_supported, tensor_of
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import BY_NAME, FLOAT_FORMATS, SIGNED, UNSIGNED

#: Element type -> bound above which x^2 + 1 rounds to x^2, and bound above which e^x approaches the end of the range.
_LARGE: Final = {"f32": (2.0**14, 80.0), "f64": (2.0**28, 700.0)}
#: Narrow floats with negative zero: their bits count by magnitude on both sides of zero.
_SIGNED_NARROW: Final = frozenset(name for name, row in FLOAT_FORMATS.items() if row.has_negative_zero)
_LN_2: Final = 0.6931471805599453


class _Math:
    """StableHLO ops on values of one float type."""

    def __init__(self, rewriter: Rewriter, type: TensorType) -> None:
        self.rewriter = rewriter
        self.type = type
        self.long, self.far = _LARGE.get(str(type.element), (inf, inf))

    def op(self, name: str, *values: Value | float) -> Value:
        return elementwise(self.rewriter, name, *map(self.value, values))

    def value(self, value: Value | float) -> Value:
        return constant(self.rewriter, value, self.type) if isinstance(value, float) else value

    def select(self, lhs: Value, direction: str, rhs: Value | float, yes: Value | float, no: Value | float) -> Value:
        chosen = compare(self.rewriter, direction, lhs, self.value(rhs))
        return elementwise(self.rewriter, "select", chosen, self.value(yes), self.value(no))

    def odd(self, x: Value, magnitude: Value) -> Value:
        """The magnitude with the sign of x."""
        return self.op("multiply", self.op("sign", x), magnitude)


def _side(m: _Math, x: Value) -> Value:
    """sqrt(1 - x^2)."""
    return m.op("sqrt", m.op("multiply", m.op("subtract", 1.0, x), m.op("add", 1.0, x)))


def _asin(m: _Math, x: Value) -> Value:
    return m.op("atan2", x, _side(m, x))


def _acos(m: _Math, x: Value) -> Value:
    return m.op("atan2", _side(m, x), x)


def _atan(m: _Math, x: Value) -> Value:
    return m.op("atan2", x, 1.0)


def _halves(m: _Math, a: Value) -> tuple[Value, Value]:
    """e^a / 2 and e^-a / 2 for a >= 0; e^a itself may be out of range."""
    root = m.op("exponential", m.op("multiply", a, 0.5))
    direct = m.op("exponential", a)
    grown = m.op("multiply", m.op("multiply", root, 0.5), root)
    return m.select(a, "LT", m.far, m.op("multiply", direct, 0.5), grown), m.op("divide", 0.5, direct)


def _sinh(m: _Math, x: Value) -> Value:
    a = m.op("abs", x)
    change = m.op("exponential_minus_one", a)
    near = m.op("add", change, m.op("divide", change, m.op("add", change, 1.0)))
    far = m.op("subtract", *_halves(m, a))
    return m.odd(x, m.select(a, "LT", 1.0, m.op("multiply", near, 0.5), far))


def _cosh(m: _Math, x: Value) -> Value:
    return m.op("add", *_halves(m, m.op("abs", x)))


def _asinh(m: _Math, x: Value) -> Value:
    a = m.op("abs", x)
    square = m.op("multiply", a, a)
    above = m.op("divide", square, m.op("add", m.op("sqrt", m.op("add", square, 1.0)), 1.0))
    near = m.op("log_plus_one", m.op("add", a, above))
    return m.odd(x, m.select(a, "LT", m.long, near, m.op("add", m.op("log", a), _LN_2)))


def _acosh(m: _Math, x: Value) -> Value:
    t = m.op("subtract", x, 1.0)
    root = m.op("sqrt", m.op("add", m.op("add", t, t), m.op("multiply", t, t)))
    near = m.op("log_plus_one", m.op("add", t, root))
    above = m.select(x, "LT", m.long, near, m.op("add", m.op("log", x), _LN_2))
    return m.select(x, "LT", 1.0, float("nan"), above)


def _atanh(m: _Math, x: Value) -> Value:
    a = m.op("abs", x)
    ratio = m.op("divide", m.op("add", a, a), m.op("subtract", 1.0, a))
    return m.odd(x, m.op("multiply", m.op("log_plus_one", ratio), 0.5))


def _unary(function: Callable[[_Math, Value], Value]) -> Pattern:
    def pattern(op: Operation, rewriter: Rewriter) -> bool:
        if not _takes(op, 1):
            return False
        rewriter.replace(op, [function(_Math(rewriter, tensor_of(op.operands[0])), op.operands[0])])
        return True

    return pattern


def next_after(op: Operation, rewriter: Rewriter) -> bool:
    """`chlo.next_after`: the bits of a float, read as an integer, count floats by magnitude."""
    if not (_takes(op, 2) or _takes(op, 2, _SIGNED_NARROW)):
        return False
    x, y = op.operands
    m = _Math(rewriter, tensor_of(x))
    integer = f"i{dtype_of(x).bits}"
    bits = bitcast(rewriter, x, integer)

    def moved(by: int) -> Value:
        step = constant(rewriter, by, tensor_of(bits))
        return bitcast(rewriter, elementwise(rewriter, "add", bits, step), str(m.type.element))

    least = bitcast(rewriter, constant(rewriter, 1, tensor_of(bits)), str(m.type.element))
    upwards, downwards = m.select(x, "GT", 0.0, moved(1), moved(-1)), m.select(x, "GT", 0.0, moved(-1), moved(1))
    from_zero = m.select(y, "GT", 0.0, least, m.op("negate", least))
    stepped = m.select(x, "EQ", 0.0, from_zero, m.select(y, "GT", x, upwards, downwards))
    known = m.select(x, "EQ", y, y, stepped)
    known = m.select(y, "NE", y, y, known)
    rewriter.replace(op, [m.select(x, "NE", x, x, known)])
    return True


def _takes(op: Operation, count: int, elements: Collection[str] = _LARGE) -> bool:
    """Whether the op has `count` operands of one supported float type, and a result of that type."""
    if len(op.operands) != count or len(op.results) != 1:
        return False
    type = op.results[0].type
    if not is_known(type) or any(value.type != type for value in op.operands):
        return False
    return isinstance(type, TensorType) and str(type.element) in elements


def _high_product(op: Operation, rewriter: Rewriter) -> bool:
    """`chlo.mulhi`: the upper half of the product of two integers."""
    type = op.results[0].type if len(op.operands) == 2 and len(op.results) == 1 else None
    if not isinstance(type, TensorType) or not is_supported(type) or any(v.type != type for v in op.operands):
        return False
    dtype = BY_NAME[str(type.element)]
    if dtype.kind not in (SIGNED, UNSIGNED):
        return False
    x, y = op.operands
    if dtype.bits < 64:
        wide = "i64" if dtype.kind == SIGNED else "ui64"
        product = elementwise(rewriter, "multiply", convert(rewriter, x, wide), convert(rewriter, y, wide))
        amount = constant(rewriter, dtype.bits, tensor_of(product))
        upper = elementwise(rewriter, "shift_right_logical", product, amount)
        rewriter.replace(op, [convert(rewriter, upper, dtype.name)])
        return True
    upper = _unsigned_high(rewriter, x, y)
    if dtype.kind == SIGNED:  # a negative factor is 2^64 less than its unsigned bits
        zero = constant(rewriter, 0, type)
        for one, other in ((x, y), (y, x)):
            less = elementwise(rewriter, "select", compare(rewriter, "LT", one, zero), other, zero)
            upper = elementwise(rewriter, "subtract", upper, less)
    rewriter.replace(op, [upper])
    return True


def _unsigned_high(rewriter: Rewriter, x: Value, y: Value) -> Value:
    """The upper half of the product of unsigned 64-bit numbers, by products of halves that do not overflow."""

    def op(name: str, *values: Value) -> Value:
        return elementwise(rewriter, name, *values)

    half, mask = constant(rewriter, 32, tensor_of(x)), constant(rewriter, 2**32 - 1, tensor_of(x))
    (x_high, x_low), (y_high, y_low) = (
        (op("shift_right_logical", value, half), op("and", value, mask)) for value in (x, y)
    )
    middle = op("add", op("multiply", x_high, y_low), op("shift_right_logical", op("multiply", x_low, y_low), half))
    carry = op("add", op("multiply", x_low, y_high), op("and", middle, mask))
    upper = op("add", op("multiply", x_high, y_high), op("shift_right_logical", middle, half))
    return op("add", upper, op("shift_right_logical", carry, half))


def _constant_like(op: Operation, rewriter: Rewriter) -> bool:
    """A constant with the shape of the operand."""
    type = op.results[0].type if len(op.results) == 1 else None
    value = op.get("value")
    if not isinstance(type, TensorType) or not is_supported(type) or not isinstance(value, FloatAttr | IntegerAttr):
        return False
    rewriter.replace(op, [constant(rewriter, value.value, type)])
    return True


def _constant(op: Operation, rewriter: Rewriter) -> bool:
    """`chlo.constant` becomes `stablehlo.constant`."""
    value = op.get_as("value", DenseElements)
    if value is None or [value.type] != [result.type for result in op.results]:
        return False
    rewriter.replace(op, [rewriter.build(Constant, value=value, out=value.type).result])
    return True


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    "chlo.acos": (_unary(_acos),),
    "chlo.acosh": (_unary(_acosh),),
    "chlo.asin": (_unary(_asin),),
    "chlo.asinh": (_unary(_asinh),),
    "chlo.atan": (_unary(_atan),),
    "chlo.atanh": (_unary(_atanh),),
    "chlo.constant": (_constant,),
    "chlo.constant_like": (_constant_like,),
    "chlo.mulhi": (_high_product,),
    "chlo.cosh": (_unary(_cosh),),
    "chlo.sinh": (_unary(_sinh),),
    "chlo.tan": (_unary(lambda m, x: m.op("tan", x)),),
}
