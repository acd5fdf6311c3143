"""Floating-point instructions: arithmetic and comparison, for both widths.

A register holds a Python float; an f32 register one that binary32 can hold, so that results are computed in binary64
and rounded once more. For + - * / and square root that gives the correctly rounded binary32 result, since
53 >= 2 * 24 + 2 (Figueroa, "When is double rounding innocuous?"). A NaN that arithmetic makes is the positive
canonical one; abs, neg and copysign keep the bits of a NaN.
"""

import math
import struct
from collections.abc import Callable

from .table import Factory, Op, Registers

NAN = float.fromhex("nan")
INFINITY = float("inf")

_PACK, _UNPACK = struct.Struct("<f").pack, struct.Struct("<f").unpack
_copysign = math.copysign

Rounding = Callable[[float], float]


def round_f32(x: float) -> float:
    """The nearest binary32, ties to even. Overflow gives an infinity; any NaN gives the canonical NaN."""
    try:
        y: float = _UNPACK(_PACK(x))[0]
    except OverflowError:
        return _copysign(INFINITY, x)
    return y if y == y else NAN


def round_f64(x: float) -> float:
    return x if x == x else NAN


def quotient(x: float, y: float) -> float:
    """x / y as IEEE 754 defines it, in binary64."""
    if y != 0.0:
        return x / y
    if x == 0.0 or x != x:
        return NAN
    return INFINITY if _copysign(1.0, x) == _copysign(1.0, y) else -INFINITY


def least(x: float, y: float) -> float:
    if x != x or y != y:
        return NAN
    if x == y:
        return x if _copysign(1.0, x) < 0.0 else y
    return x if x < y else y


def greatest(x: float, y: float) -> float:
    if x != x or y != y:
        return NAN
    if x == y:
        return y if _copysign(1.0, x) < 0.0 else x
    return x if x > y else y


#: every binary64 from this value on is an integer
_WHOLE = 4503599627370496.0


def ceil(x: float) -> float:
    if not -_WHOLE < x < _WHOLE:
        return x if x == x else NAN
    return _copysign(float(math.ceil(x)), x)


def floor(x: float) -> float:
    if not -_WHOLE < x < _WHOLE:
        return x if x == x else NAN
    return _copysign(float(math.floor(x)), x)


def trunc(x: float) -> float:
    if not -_WHOLE < x < _WHOLE:
        return x if x == x else NAN
    return _copysign(float(math.trunc(x)), x)


def nearest(x: float) -> float:
    if not -_WHOLE < x < _WHOLE:
        return x if x == x else NAN
    return _copysign(abs(x) + _WHOLE - _WHOLE, x)


def root(x: float) -> float:
    if x < 0.0 or x != x:
        return NAN
    return math.sqrt(x)


def magnitude(x: float) -> float:
    return _copysign(x, 1.0)


def negated(x: float) -> float:
    return _copysign(x, -_copysign(1.0, x))


def _add(rounding: Rounding) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = rounding(regs[a] + regs[b])

        return op

    return make


def _sub(rounding: Rounding) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = rounding(regs[a] - regs[b])

        return op

    return make


def _mul(rounding: Rounding) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = rounding(regs[a] * regs[b])

        return op

    return make


def _div(rounding: Rounding) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = rounding(quotient(regs[a], regs[b]))

        return op

    return make


def _sqrt(rounding: Rounding) -> Factory:
    def make(a: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = rounding(root(regs[a]))

        return op

    return make


def _unary(function: Callable[[float], float]) -> Factory:
    """A unary instruction whose result needs no rounding, since it has the operand's width."""

    def make(a: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = function(regs[a])

        return op

    return make


def _binary(function: Callable[[float, float], float]) -> Factory:
    """A binary instruction whose result needs no rounding."""

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = function(regs[a], regs[b])

        return op

    return make


def _eq(a: int, b: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = 1 if regs[a] == regs[b] else 0

    return op


def _ne(a: int, b: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = 1 if regs[a] != regs[b] else 0

    return op


def _lt(a: int, b: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = 1 if regs[a] < regs[b] else 0

    return op


def _le(a: int, b: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = 1 if regs[a] <= regs[b] else 0

    return op


def _gt(a: int, b: int, d: int) -> Op:
    return _lt(b, a, d)


def _ge(a: int, b: int, d: int) -> Op:
    return _le(b, a, d)


_ROUNDED: dict[str, Callable[[Rounding], Factory]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "sqrt": _sqrt,
}

_EXACT: dict[str, Factory] = {
    "min": _binary(least),
    "max": _binary(greatest),
    "copysign": _binary(_copysign),
    "abs": _unary(magnitude),
    "neg": _unary(negated),
    "ceil": _unary(ceil),
    "floor": _unary(floor),
    "trunc": _unary(trunc),
    "nearest": _unary(nearest),
    "eq": _eq,
    "ne": _ne,
    "lt": _lt,
    "gt": _gt,
    "le": _le,
    "ge": _ge,
}

OPS: dict[str, Factory] = {
    **{f"f32.{name}": maker(round_f32) for name, maker in _ROUNDED.items()},
    **{f"f64.{name}": maker(round_f64) for name, maker in _ROUNDED.items()},
    **{f"{bank}.{name}": factory for bank in ("f32", "f64") for name, factory in _EXACT.items()},
}
