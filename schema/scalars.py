"""Scalar ops: one row each, with operand and result types, and the meaning of the op in NumPy.

Used by the compiler (constant folding, `kernel` IR), the reference device, and the tests of every target. Names are
those of StableHLO without the dialect. The meaning is that of StableHLO 1.17; where it is undefined, that of XLA on
CPU. A row's `operands` and `result` are type variables: `T` is any type of the kinds for which the row has a meaning,
`U` any type, `i1` the boolean.

- `row.meaning(kind)(*operands, out)` computes elementwise over arrays of one shape. `out` is None (a new array is
  returned) or an array of the result's type, which may be one of the operands, and is returned.
- Meanings may raise NumPy's floating-point flags; `evaluate` silences them.
- Transcendentals of f32 are computed in f64 and rounded once; those of f64 are NumPy's.
- Subnormals are kept (XLA on CPU flushes them). NaNs have any sign and payload; zeros have the sign stated here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import scalar_meanings as m
from .dtypes import BOOL, BY_NUMPY, COMPUTED, FLOAT, SIGNED, UNSIGNED, DType
from .scalar_meanings import Array, Meaning


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """One op: its name, the type variable of each operand and of the result, a meaning per kind of `T`, and its doc."""

    name: str
    operands: tuple[str, ...]
    result: str
    meanings: Mapping[int, Meaning]
    doc: str

    @property
    def arity(self) -> int:
        return len(self.operands)

    @property
    def kinds(self) -> frozenset[int]:
        """The kinds of element type (`dtypes.BOOL`, ...) that `T` may have."""
        return frozenset(self.meanings)

    def meaning(self, kind: int) -> Meaning:
        return self.meanings[kind]

    def accepts(self, operands: Sequence[DType], result: DType) -> bool:
        """Whether the row can be applied to these operand types with this result type."""
        if len(operands) != len(self.operands):
            return False
        found: dict[str, DType] = {"i1": _I1}
        for variable, dtype in zip((*self.operands, self.result), (*operands, result), strict=True):
            if found.setdefault(variable, dtype) is not dtype:
                return False
        return found["T"].kind in self.meanings and (self.name != "bitcast" or _same_width(found["T"], found["U"]))

    def subject(self, operands: Sequence[DType]) -> DType:
        """The type that `T` stands for, which selects the meaning: that of the last operand."""
        return operands[-1]


def evaluate(row: ScalarOp, operands: Sequence[Array], result: DType) -> Array:
    """Applies a row to arrays of one shape. Returns a new array of the result's type.

    Raises TypeError if the row does not accept the types.
    """
    types = [BY_NUMPY[operand.dtype] for operand in operands]
    if not row.accepts(types, result):
        raise TypeError(f"{row.name} does not take ({', '.join(map(str, types))}) -> {result}")
    out = np.empty(operands[-1].shape, result.numpy)
    with np.errstate(all="ignore"):
        return row.meaning(row.subject(types).kind)(*operands, out)


_I1 = COMPUTED[0]


def _same_width(a: DType, b: DType) -> bool:
    return a.bits == b.bits and BOOL not in (a.kind, b.kind)


def _row(name: str, operands: str, result: str, doc: str, **meanings: Any) -> ScalarOp:
    """Makes a row. `meanings` by letters of the kinds: b(ool), s(igned), u(nsigned), f(loat)."""
    kinds = {"b": BOOL, "s": SIGNED, "u": UNSIGNED, "f": FLOAT}
    by_kind = {kinds[letter]: meaning for letters, meaning in meanings.items() for letter in letters}
    return ScalarOp(name, tuple(operands.split()), result, by_kind, doc)


SCALARS: tuple[ScalarOp, ...] = (
    # Sign and bits.
    _row(
        "abs", "T", "T", "|x|; the least integer stays itself; clears a float's sign bit", s=np.absolute, f=np.absolute
    ),
    _row("negate", "T", "T", "-x; integers wrap modulo 2^n; flips a float's sign bit", su=np.negative, f=np.negative),
    _row("sign", "T", "T", "-1, 0 or 1; a float zero or NaN gives itself", s=np.sign, f=m.sign),
    _row("not", "T", "T", "every bit flipped; on i1 the logical not", b=np.logical_not, su=np.invert),
    _row("popcnt", "T", "T", "number of one bits", su=m.popcnt),
    _row("count_leading_zeros", "T", "T", "number of zero bits above the highest one bit; n for 0", su=m.clz),
    # Rounding.
    _row("ceil", "T", "T", "least integral value >= x; keeps the sign of zero", f=np.ceil),
    _row("floor", "T", "T", "greatest integral value <= x; keeps the sign of zero", f=np.floor),
    _row("round_nearest_afz", "T", "T", "nearest integral value, ties away from zero; keeps the sign", f=m.round_afz),
    _row("round_nearest_even", "T", "T", "nearest integral value, ties to even; keeps the sign", f=np.rint),
    _row("is_finite", "T", "i1", "x is neither infinite nor NaN", f=np.isfinite),
    # Functions of one variable, after IEEE 754 section 9.2.
    _row("exponential", "T", "T", "e^x", f=m.Widened(np.exp)),
    _row("exponential_minus_one", "T", "T", "e^x - 1 without cancellation; -0 gives -0", f=m.Widened(np.expm1)),
    _row("log", "T", "T", "natural logarithm; log(+-0) = -inf; NaN below zero", f=m.Widened(np.log)),
    _row(
        "log_plus_one", "T", "T", "log(1 + x) without cancellation; -1 gives -inf, -0 gives -0", f=m.Widened(np.log1p)
    ),
    _row("logistic", "T", "T", "1 / (1 + e^-x), accurate in relative terms on both sides", f=m.logistic),
    _row("sqrt", "T", "T", "square root, correctly rounded; sqrt(-0) = -0; NaN below zero", f=np.sqrt),
    _row("rsqrt", "T", "T", "1 / sqrt(x); +0 gives inf, -0 gives -inf, inf gives 0; NaN below zero", f=m.rsqrt),
    _row("cbrt", "T", "T", "cube root, of negative values too; keeps the sign of zero", f=m.Widened(np.cbrt)),
    _row("sine", "T", "T", "sin(x), x in radians, argument reduced exactly; NaN for infinities", f=m.Widened(np.sin)),
    _row("cosine", "T", "T", "cos(x), x in radians, argument reduced exactly; NaN for infinities", f=m.Widened(np.cos)),
    _row("tan", "T", "T", "tan(x), x in radians, argument reduced exactly; NaN for infinities", f=m.Widened(np.tan)),
    _row("tanh", "T", "T", "hyperbolic tangent; keeps the sign of zero", f=m.Widened(np.tanh)),
    # Arithmetic of two operands.
    _row("add", "T T", "T", "x + y; integers wrap; on i1 or", b=np.logical_or, su=np.add, f=np.add),
    _row("subtract", "T T", "T", "x - y; integers wrap", su=np.subtract, f=np.subtract),
    _row("multiply", "T T", "T", "x * y; integers wrap; on i1 and", b=np.logical_and, su=np.multiply, f=np.multiply),
    _row(
        "divide",
        "T T",
        "T",
        "x / y; integers round towards zero, x / 0 has all bits set (-1), least / -1 = least",
        su=m.divide,
        f=np.divide,
    ),
    _row(
        "remainder",
        "T T",
        "T",
        "x - trunc(x / y) * y with the sign of x, exact (C fmod); integer x rem 0 = x, least rem -1 = 0",
        su=m.remainder,
        f=np.fmod,
    ),
    _row(
        "power",
        "T T",
        "T",
        "x^y; floats as C pow (x^0 = 1^y = 1 even for NaN); integers wrap, and for y < 0 give 1 for x = 1, "
        "(-1)^y for x = -1, else 0",
        su=m.power_int,
        f=m.power_float,
    ),
    _row("atan2", "T T", "T", "angle of the point (y, x) in (-pi, pi], as C atan2(x0, x1)", f=m.Widened(np.arctan2)),
    _row(
        "maximum",
        "T T",
        "T",
        "greater of both; NaN when either is; +0 above -0; on i1 or",
        b=np.logical_or,
        su=m.maximum,
        f=m.maximum_float,
    ),
    _row(
        "minimum",
        "T T",
        "T",
        "lesser of both; NaN when either is; -0 below +0; on i1 and",
        b=np.logical_and,
        su=m.minimum,
        f=m.minimum_float,
    ),
    _row("and", "T T", "T", "bitwise and; on i1 logical", b=np.logical_and, su=np.bitwise_and),
    _row("or", "T T", "T", "bitwise or; on i1 logical", b=np.logical_or, su=np.bitwise_or),
    _row("xor", "T T", "T", "bitwise exclusive or; on i1 logical", b=np.logical_xor, su=np.bitwise_xor),
    # Shifts: the amount is read as an unsigned n-bit number, so a negative one is >= n.
    _row("shift_left", "T T", "T", "x << y filling zeros; 0 for y >= n", su=m.shift_left),
    _row(
        "shift_right_arithmetic", "T T", "T", "x >> y filling x's top bit, of unsigned types too", su=m.shift_arithmetic
    ),
    _row(
        "shift_right_logical", "T T", "T", "x >> y filling zeros, of signed types too; 0 for y >= n", su=m.shift_logical
    ),
    # Comparisons: false with a NaN operand, except ne, which is true.
    _row("compare_eq", "T T", "i1", "x == y; -0 equals +0; false with NaN", bsuf=np.equal),
    _row("compare_ne", "T T", "i1", "x != y; -0 equals +0; true with NaN", bsuf=np.not_equal),
    _row("compare_lt", "T T", "i1", "x < y; false < true; false with NaN", bsuf=np.less),
    _row("compare_le", "T T", "i1", "x <= y; false with NaN", bsuf=np.less_equal),
    _row("compare_gt", "T T", "i1", "x > y; false with NaN", bsuf=np.greater),
    _row("compare_ge", "T T", "i1", "x >= y; false with NaN", bsuf=np.greater_equal),
    # Total order of floats: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN; NaNs by payload, equal only bit for bit.
    _row("compare_total_eq", "T T", "i1", "x and y have the same bits", f=m.total(np.equal)),
    _row("compare_total_ne", "T T", "i1", "x and y differ in a bit", f=m.total(np.not_equal)),
    _row("compare_total_lt", "T T", "i1", "x before y in IEEE 754 totalOrder", f=m.total(np.less)),
    _row(
        "compare_total_le", "T T", "i1", "x before y in IEEE 754 totalOrder, or the same bits", f=m.total(np.less_equal)
    ),
    _row("compare_total_gt", "T T", "i1", "x after y in IEEE 754 totalOrder", f=m.total(np.greater)),
    _row(
        "compare_total_ge",
        "T T",
        "i1",
        "x after y in IEEE 754 totalOrder, or the same bits",
        f=m.total(np.greater_equal),
    ),
    # Three operands.
    _row("select", "i1 T T", "T", "the second operand where the first is true, else the third", bsuf=m.select),
    _row(
        "clamp",
        "T T T",
        "T",
        "clamp(low, x, high) = minimum(maximum(x, low), high)",
        b=m.clamp_bool,
        su=m.clamp_int,
        f=m.clamp_float,
    ),
    _row("fma", "T T T", "T", "x * y + z rounded once", f=m.fma),
    # Between types.
    _row(
        "convert",
        "T",
        "U",
        "the value in another type: to i1 x != 0 (NaN is true); integers to integers modulo 2^n; to a float rounded to "
        "nearest even; float to integer rounds towards zero and saturates, NaN gives 0",
        bsu=m.convert_exact,
        f=m.convert_float,
    ),
    _row("bitcast", "T", "U", "the same bits read as a type of the same width; not i1", suf=m.bitcast),
    # The table is append-only: tensor bytecode derives its codes from this order.
    _row("erf", "T", "T", "error function: 2/sqrt(pi) times the integral of e^-t^2 from 0 to x", f=m.Mapped(math.erf)),
    _row("erfc", "T", "T", "1 - erf(x), accurate where that is small", f=m.Mapped(math.erfc)),
)

BY_NAME: dict[str, ScalarOp] = {row.name: row for row in SCALARS}
