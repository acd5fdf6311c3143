"""Functions of CHLO by ops of StableHLO: inverse and hyperbolic functions, and the neighbour of a float.

The formulas avoid cancellation and overflow of intermediate values, so that errors are a few units in the last place.
An odd function has the sign of its argument, including that of a zero. Source of the formulas: W. Kahan, "Branch cuts
for complex elementary functions", 1987.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Final

from orchestrion.compiler.ir.attributes import DenseElements, FloatAttr, IntegerAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.stablehlo.builders.tensors import FORMATS, Tensor, expansion
from orchestrion.compiler.stablehlo.ops.base import is_supported, tensor_of
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import BY_NAME, FLOAT_FORMATS, SIGNED, UNSIGNED
from orchestrion.schema.float_formats import Special

#: Narrow floats with a sign, and the size of an integer type: their bits count by magnitude on both sides of zero.
_NARROW: Final = {
    name: row for name, row in FLOAT_FORMATS.items() if row.special is not Special.FNU and f"i{row.bits}" in BY_NAME
}
_LN_2: Final = 0.6931471805599453


def _side(x: Tensor) -> Tensor:
    """sqrt(1 - x^2)."""
    return ((1.0 - x) * (1.0 + x)).op("sqrt")


def _halves(a: Tensor) -> tuple[Tensor, Tensor]:
    """e^a / 2 and e^-a / 2 for a >= 0; e^a itself may be out of range."""
    root = (a * 0.5).op("exponential")
    direct = a.op("exponential")
    grown = root * 0.5 * root
    return (a < a.format.exponent).select(direct * 0.5, grown), 0.5 / direct


def _sinh(x: Tensor) -> Tensor:
    a = abs(x)
    change = a.op("exponential_minus_one")
    near = change + change / (change + 1.0)
    grown, fallen = _halves(a)
    far = grown - fallen
    return x.op("sign") * (a < 1.0).select(near * 0.5, far)


def _cosh(x: Tensor) -> Tensor:
    grown, fallen = _halves(abs(x))
    return grown + fallen


def _log_if_long(x: Tensor, short: Tensor) -> Tensor:
    """log 2x where x^2 + 1 rounds to x^2, else `short`."""
    return (x < x.format.long).select(short, x.op("log") + _LN_2)


def _asinh(x: Tensor) -> Tensor:
    a = abs(x)
    square = a * a
    above = square / ((square + 1.0).op("sqrt") + 1.0)
    return x.op("sign") * _log_if_long(a, (a + above).op("log_plus_one"))


def _acosh(x: Tensor) -> Tensor:
    t = x - 1.0
    root = (t + t + t * t).op("sqrt")
    return (x < 1.0).select(nan, _log_if_long(x, (t + root).op("log_plus_one")))


def _atanh(x: Tensor) -> Tensor:
    a = abs(x)
    ratio = (a + a) / (1.0 - a)
    return x.op("sign") * (ratio.op("log_plus_one") * 0.5)


def _infinity(op: Operation, x: Tensor) -> Tensor | None:
    """`chlo.is_inf`, `is_pos_inf` and `is_neg_inf`."""
    if x.dtype.name not in FORMATS:
        return None
    x = abs(x) if op.name == "chlo.is_inf" else x
    return x.eq(-inf if op.name == "chlo.is_neg_inf" else inf)


def _unary(function: Callable[[Tensor], Tensor]) -> Pattern:
    return expansion(lambda op, x: function(x) if x.dtype.name in FORMATS else None, 1)


def next_after(op: Operation, x: Tensor, y: Tensor) -> Tensor | None:
    """`chlo.next_after`: the bits of a float, read as an integer, count floats by magnitude."""
    name, row = x.dtype.name, _NARROW.get(x.dtype.name)
    if x.type != y.type or row is None and name not in FORMATS:
        return None
    bits = x.bitcast(f"i{x.dtype.bits}")
    least = bits.of(1).bitcast(name)
    above, below = bits + 1, bits - 1
    if row is not None and row.special is Special.FNUZ:  # the NaN lies beside the negative number next to zero
        below = below.eq(-128).select(0, below)
    above, below = above.bitcast(name), below.bitcast(name)
    upwards, downwards = (x > 0.0).select(above, below), (x > 0.0).select(below, above)
    from_zero = (y > 0.0).select(least, -least)
    stepped = x.eq(0.0).select(from_zero, (y > x).select(upwards, downwards))
    return x.is_nan.select(x, y.is_nan.select(y, x.eq(y).select(y, stepped)))


def _high_product(op: Operation, x: Tensor, y: Tensor) -> Tensor | None:
    """`chlo.mulhi`: the upper half of the product of two integers."""
    dtype = x.dtype
    if x.type != y.type or dtype.kind not in (SIGNED, UNSIGNED):
        return None
    if dtype.bits < 64:
        wide = "i64" if dtype.kind == SIGNED else "ui64"
        return (x.convert(wide) * y.convert(wide)).op("shift_right_logical", dtype.bits).convert(dtype.name)
    upper = _unsigned_high(x, y)
    if dtype.kind == SIGNED:  # a negative factor is 2^64 less than its unsigned bits
        for one, other in ((x, y), (y, x)):
            upper = upper - (one < 0).select(other, 0)
    return upper


def _unsigned_high(x: Tensor, y: Tensor) -> Tensor:
    """The upper half of the product of unsigned 64-bit numbers, by products of halves that do not overflow."""

    def halves(value: Tensor) -> tuple[Tensor, Tensor]:
        return value.op("shift_right_logical", 32), value & 2**32 - 1

    (x_high, x_low), (y_high, y_low) = halves(x), halves(y)
    over, middle = halves(x_high * y_low + halves(x_low * y_low)[0])
    carry = x_low * y_high + middle
    return x_high * y_high + over + halves(carry)[0]


def _constant_like(op: Operation, x: Tensor) -> Tensor | None:
    """A constant with the shape of the operand."""
    type, value = tensor_of(op.results[0]), op.get("value")
    return x.splat(value.value, type) if is_supported(type) and isinstance(value, FloatAttr | IntegerAttr) else None


def _constant(op: Operation, rewriter: Rewriter) -> bool:
    """`chlo.constant` becomes `stablehlo.constant`."""
    value = op.get_as("value", DenseElements)
    if value is None or [value.type] != [result.type for result in op.results]:
        return False
    return rewriter.replace(op, [rewriter.build(Constant, value=value, out=value.type).result])


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    "chlo.acos": (_unary(lambda x: _side(x).op("atan2", x)),),
    "chlo.acosh": (_unary(_acosh),),
    "chlo.asin": (_unary(lambda x: x.op("atan2", _side(x))),),
    "chlo.asinh": (_unary(_asinh),),
    "chlo.atan": (_unary(lambda x: x.op("atan2", 1.0)),),
    "chlo.atanh": (_unary(_atanh),),
    "chlo.constant": (_constant,),
    "chlo.constant_like": (expansion(_constant_like, 1),),
    "chlo.mulhi": (expansion(_high_product, 2),),
    "chlo.cosh": (_unary(_cosh),),
    "chlo.sinh": (_unary(_sinh),),
    "chlo.square": (expansion(lambda op, x: None if x.is_complex else x * x, 1),),
    "chlo.tan": (_unary(lambda x: x.op("tan")),),
    **{f"chlo.{name}": (expansion(_infinity, 1),) for name in ("is_inf", "is_neg_inf", "is_pos_inf")},
}
