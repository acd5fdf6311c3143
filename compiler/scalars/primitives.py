"""The primitives: the scalar ops of `kernel` IR, which every device computes alike. One row each.

A row whose name is also in `schema/scalars.py` has exactly the meaning that it has there, for the kinds given here.
Other kinds, and scalar ops without a row here, are written in primitives (`expand.py`), once for all targets. A target
renders these rows and nothing else.

An `unchecked_` row has a meaning only for the operands that its doc names; code that emits one must guarantee them.
Kinds are letters: b(ool), s(igned), u(nsigned), f(loat). `T` and `U` are type variables, as in `schema/scalars.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrion.schema import scalars
from orchestrion.schema.dtypes import BOOL, BY_NAME, BY_NUMPY, FLOAT, SIGNED, UNSIGNED, DType
from orchestrion.schema.scalar_meanings import Array, Meaning

KINDS: dict[int, str] = {BOOL: "b", SIGNED: "s", UNSIGNED: "u", FLOAT: "f"}


@dataclass(frozen=True, slots=True)
class Primitive:
    """One op: type variables of operands and result, the kinds of `T`, for each of them those of `U`, meanings."""

    name: str
    operands: tuple[str, ...]
    result: str
    kinds: str
    to: Mapping[str, str]
    meanings: Mapping[str, Meaning]
    doc: str

    def accepts(self, operands: Sequence[DType], result: DType) -> bool:
        """Whether the op takes these operand types and gives this result type."""
        if len(operands) != len(self.operands):
            return False
        subject = operands[-1]
        types = {"T": subject, "U": result, "i1": BY_NAME["i1"]}
        if any(types[variable] is not operand for variable, operand in zip(self.operands, operands, strict=True)):
            return False
        if types[self.result] is not result or KINDS[subject.kind] not in self.kinds:
            return False
        if self.result != "U":
            return True
        if self.name == "bitcast" and subject.bits != result.bits:
            return False
        if self.name == "unchecked_convert" and result.bits < 32:
            return False
        return KINDS[result.kind] in self.to[KINDS[subject.kind]] and subject is not result

    def evaluate(self, operands: Sequence[Array], result: DType) -> Array:
        """Compute over arrays that broadcast against each other; gives a new array."""
        arrays = np.broadcast_arrays(*operands)
        out = np.empty(arrays[-1].shape, result.numpy)
        kind = KINDS[BY_NUMPY[arrays[-1].dtype].kind]
        with np.errstate(all="ignore"):
            return self.meanings[kind](*arrays, out)


def _scalar(name: str, kinds: str, **to: str) -> Primitive:
    """A row of the scalar table, as it is there."""
    row = scalars.BY_NAME[name]
    meanings = {KINDS[kind]: meaning for kind, meaning in row.meanings.items() if KINDS[kind] in kinds}
    return Primitive(name, row.operands, row.result, kinds, to, meanings, row.doc)


def _own(name: str, operands: str, result: str, doc: str, kinds: str, meaning: Meaning, to: str = "") -> Primitive:
    """A row that the scalar table does not have."""
    return Primitive(
        name, tuple(operands.split()), result, kinds, dict.fromkeys(kinds, to), dict.fromkeys(kinds, meaning), doc
    )


def _proved(holds: Callable[..., Array], meaning: Meaning) -> Meaning:
    """The meaning inside its domain; outside it anything may come, and here zeros with all bits flipped do."""

    def apply(*operands_and_out: Array) -> Array:
        *operands, out = operands_and_out
        inside = holds(*operands)
        safe = [np.where(inside, operand, operand.dtype.type(1)) for operand in operands]
        result = meaning(*safe, np.empty_like(out))
        poison = ~out.dtype.type(0) ^ out.dtype.type(0x2A)
        out[...] = np.where(inside, result, poison)
        return out

    return apply


def _divides(x: Array, y: Array) -> Array:
    wraps = (x == np.iinfo(x.dtype).min) & (y == ~y.dtype.type(0)) & (x.dtype.kind == "i")
    return np.asarray((y != 0) & ~wraps)


def _shifts(x: Array, y: Array) -> Array:
    return (y >= 0) & (y < 8 * x.itemsize)


def _truncate(x: Array, out: Array) -> Array:
    info = np.iinfo(out.dtype)
    inside = (np.trunc(x) >= float(info.min)) & (x < 2.0 ** (info.bits - (1 if info.min else 0)))
    poison = ~out.dtype.type(0) ^ out.dtype.type(0x2A)
    out[...] = np.where(inside, np.where(inside, x, x.dtype.type(0)).astype(out.dtype), poison)
    return out


def _trunc(x: Array, out: Array) -> Array:
    return np.asarray(np.trunc(x, out=out))


_S = scalars.BY_NAME

PRIMITIVES: tuple[Primitive, ...] = (
    # bits and logic; those on i1 are logical
    _scalar("not", "bsu"),
    _scalar("and", "bsu"),
    _scalar("or", "bsu"),
    _scalar("xor", "bsu"),
    # arithmetic: integers wrap, floats are rounded to nearest even and never contracted
    _scalar("add", "suf"),
    _scalar("subtract", "suf"),
    _scalar("multiply", "suf"),
    _scalar("negate", "suf"),
    _scalar("abs", "f"),
    _scalar("divide", "f"),
    _scalar("sqrt", "f"),
    _scalar("floor", "f"),
    _scalar("ceil", "f"),
    _scalar("round_nearest_even", "f"),
    _own("trunc", "T", "T", "nearest integral value towards zero; keeps the sign", "f", _trunc),
    # comparisons: false with a NaN operand, except ne, which is true
    _scalar("compare_eq", "suf"),
    _scalar("compare_ne", "suf"),
    _scalar("compare_lt", "suf"),
    _scalar("compare_le", "suf"),
    _scalar("compare_gt", "suf"),
    _scalar("compare_ge", "suf"),
    _scalar("select", "bsuf"),
    # between types: integers to any number, floats to floats; i1 takes no part in them
    _scalar("convert", "suf", s="suf", u="suf", f="f"),
    _scalar("bitcast", "suf", s="suf", u="suf", f="suf"),
    # defined in a part of their domain only
    *(
        _own(f"unchecked_{name}", "T T", "T", doc, kinds, _proved(holds, _S[name].meaning(kind)))
        for name, kinds, kind, holds, doc in (
            (
                "divide",
                "su",
                SIGNED,
                _divides,
                "x / y towards zero; y is not 0, and not -1 where x is the least integer",
            ),
            ("remainder", "u", UNSIGNED, _divides, "x - x / y * y; y is not 0"),
            ("shift_left", "su", SIGNED, _shifts, "x << y filling zeros; 0 <= y < width"),
            ("shift_right_logical", "su", SIGNED, _shifts, "x >> y filling zeros; 0 <= y < width"),
            ("shift_right_arithmetic", "su", SIGNED, _shifts, "x >> y filling x's top bit; 0 <= y < width"),
        )
    ),
    _own(
        "unchecked_convert",
        "T",
        "U",
        "a float's integral part, which the integer type (32 or 64 bits) can hold; never NaN",
        "f",
        _truncate,
        to="su",
    ),
)

#: primitives between types
CONVERSIONS = frozenset({"convert", "bitcast", "unchecked_convert"})
BY_OP_NAME: dict[str, Primitive] = {row.name: row for row in PRIMITIVES}
