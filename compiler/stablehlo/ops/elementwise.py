"""Elementwise StableHLO ops: most are a name, whose operands and meaning are those of the scalar op of that name.

Element types and meaning are those of the row's scalar op in `schema/scalars.py`, `compiler/scalars/special/` or
`compiler/scalars/narrow_floats.py`, which is `op.scalar`. All operands and the result have one shape, except that the
predicate of `select` and the bounds of `clamp` may be scalars. Ops on complex numbers (`ON_COMPLEX`) have no scalar op;
`complex/functions.py` expresses them by real ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DialectAttr
from orchestrion.compiler.ir.core import Trait
from orchestrion.compiler.ir.declare import attr, operand, optional
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.scalars import narrow_floats, special
from orchestrion.compiler.scalars.lowering import SCALAR_OPS as SCALARS
from orchestrion.schema.dtypes import BOOL, BY_NAME, COMPLEX, FLOAT, SIGNED, UNSIGNED, DType
from orchestrion.schema.scalars import ScalarOp

from .base import PureOp, ShapeError, dtype_of, tensor_of

_OPERANDS: Final = {1: ("operand_",), 2: ("lhs", "rhs")}
_TRAITS: Final = (frozenset({Trait.PURE}), frozenset({Trait.PURE, Trait.COMMUTATIVE}))

#: Comparison -> the same comparison with its operands swapped.
MIRRORED: Final = {"EQ": "EQ", "NE": "NE", "LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}

#: Ops whose operands and meaning are those of the scalar op, in order.
_NAMES: Final = (
    "abs add and atan2 cbrt ceil cosine count_leading_zeros divide exponential exponential_minus_one floor is_finite "
    "log log_plus_one logistic maximum minimum multiply negate not or popcnt power remainder round_nearest_afz "
    "round_nearest_even rsqrt shift_left shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh "
    "xor"
).split()
_COMMUTATIVE: Final = frozenset("add and maximum minimum multiply or xor".split())
#: Ops with the attribute `result_accuracy`.
_WITH_ACCURACY: Final = frozenset(
    "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh".split()
)
#: Ops of the dialect CHLO, which JAX uses beside StableHLO.
_CHLO_NAMES: Final = ("erf", "erfc", *special.ROWS)
#: Ops of the compiler alone, which `expand-narrow` writes.
_FLOW_NAMES: Final = tuple(narrow_floats.ROWS)

#: Ops that accept complex numbers, besides those that exist in `complex/functions.py` for complex numbers only.
ON_COMPLEX: Final = frozenset(
    "abs add atan2 cbrt clamp compare convert cosine divide exponential exponential_minus_one log log_plus_one "
    "logistic maximum minimum multiply negate power rsqrt select sign sine sqrt subtract tan tanh".split()
)


class Elementwise(PureOp):
    """Computes each result element from the operand elements at the same index."""

    #: operands that may be scalars for any shape of the result
    scalar_operands: tuple[int, ...] = ()

    @property
    def scalar(self) -> ScalarOp:
        """The scalar op that it applies to elements."""
        return SCALARS[self.name.partition(".")[2]]

    @property
    def subject(self) -> int:
        """The index of an operand that has the result's shape."""
        return 0

    def infer(self) -> Sequence[TensorType]:
        shape = tensor_of(self.operands[self.subject]).shape
        for index, value in enumerate(self.operands):
            allowed = (shape, ()) if index in self.scalar_operands else (shape,)
            if tensor_of(value).shape not in allowed:
                raise ShapeError(f"operand {index} has shape {list(tensor_of(value).shape)}, must have {list(shape)}")
        operands = [dtype_of(value) for value in self.operands]
        given = tensor_of(self.results[0]).element
        if any(dtype.kind == COMPLEX for dtype in (*operands, BY_NAME[str(given)])):
            return [TensorType(shape, scalar(self._on_complex(operands, BY_NAME[str(given)])))]
        if not self.scalar.accepts(operands, BY_NAME[str(given)]):
            raise ShapeError(f"does not take ({', '.join(map(str, operands))}) -> {given}")
        return [TensorType(shape, given)]

    def _on_complex(self, operands: Sequence[DType], given: DType) -> str:
        """The element type of the result if complex numbers are involved. Raises ShapeError."""
        last, name = operands[-1], self.name.partition(".")[2]
        wanted = (BY_NAME["i1"] if (name, index) == ("select", 0) else last for index in range(len(operands)))
        fits = all(dtype is want for dtype, want in zip(operands, wanted, strict=True))
        if name not in ON_COMPLEX or not fits:
            raise ShapeError(f"does not take ({', '.join(map(str, operands))}) -> {given}")
        return last.storage if name == "abs" else last.name


class Compare(Elementwise):
    """One of six comparisons; on floats also in the total order of IEEE 754."""

    name = "stablehlo.compare"
    lhs = operand(TensorType)
    rhs = operand(TensorType)
    comparison_direction = attr(DialectAttr)
    compare_type = optional(DialectAttr)

    @property
    def direction(self) -> str:
        """EQ, NE, LT, LE, GT or GE."""
        return self.comparison_direction.body.split()[-1]

    @property
    def scalar(self) -> ScalarOp:
        total = self.compare_type is not None and self.compare_type.body.split()[-1] == "TOTALORDER"
        return SCALARS[f"compare_{'total_' if total else ''}{self.direction.lower()}"]

    def infer(self) -> Sequence[TensorType]:
        if self.direction not in MIRRORED:
            raise ShapeError(f"comparison_direction {self.direction} is not one of EQ, NE, LT, LE, GT, GE")
        kind = dtype_of(self.lhs).kind
        given = "" if self.compare_type is None else self.compare_type.body.split()[-1]
        if kind == COMPLEX and self.direction not in ("EQ", "NE"):
            raise ShapeError(f"comparison_direction {self.direction} does not fit {dtype_of(self.lhs)}, EQ and NE do")
        natural = {SIGNED: "SIGNED", UNSIGNED: "UNSIGNED", BOOL: "UNSIGNED"}.get(kind, "FLOAT")
        wanted = (natural, "TOTALORDER") if natural == "FLOAT" else (natural,)
        if given not in ("", "NOTYPE", *wanted):
            raise ShapeError(f"compare_type {given} does not fit {dtype_of(self.lhs)}, must be {' or '.join(wanted)}")
        return super().infer()

    def _on_complex(self, operands: Sequence[DType], given: DType) -> str:
        super()._on_complex(operands, given)
        return "i1"


class Select(Elementwise):
    """The second operand where the predicate is true, else the third."""

    name = "stablehlo.select"
    pred = operand(TensorType)
    on_true = operand(TensorType)
    on_false = operand(TensorType)
    scalar_operands = (0,)

    @property
    def subject(self) -> int:
        return 1


class Clamp(Elementwise):
    """minimum(maximum(operand, min), max)."""

    name = "stablehlo.clamp"
    min = operand(TensorType)
    operand_ = operand(TensorType)
    max = operand(TensorType)
    scalar_operands = (0, 2)

    @property
    def subject(self) -> int:
        return 1


class Convert(Elementwise):
    """The value in another element type; the real part, if the operand is complex and the result is not."""

    name = "stablehlo.convert"
    operand_ = operand(TensorType)

    def _on_complex(self, operands: Sequence[DType], given: DType) -> str:
        return given.name


class Part(Elementwise):
    """Base of `real` and `imag`. A float is a complex number without imaginary part."""

    operand_ = operand(TensorType)

    def infer(self) -> Sequence[TensorType]:
        dtype = dtype_of(self.operands[0])
        if dtype.kind not in (COMPLEX, FLOAT):
            raise ShapeError(f"takes complex numbers or floats, not {dtype}")
        type = tensor_of(self.operands[0])
        return [type.with_element(scalar(dtype.storage)) if dtype.kind == COMPLEX else type]


class Real(Part):
    """The real part."""

    name = "stablehlo.real"


class Imag(Part):
    """The imaginary part."""

    name = "stablehlo.imag"


class Complex(Elementwise):
    """A complex number from its parts."""

    name = "stablehlo.complex"
    lhs = operand(TensorType)
    rhs = operand(TensorType)

    def infer(self) -> Sequence[TensorType]:
        lhs, rhs = tensor_of(self.lhs), tensor_of(self.rhs)
        if lhs != rhs or f"complex<{lhs.element}>" not in BY_NAME:
            raise ShapeError(f"takes two tensors of one type, of f32 or f64, not {lhs} and {rhs}")
        return [lhs.with_element(scalar(f"complex<{lhs.element}>"))]


class BitcastConvert(Elementwise):
    """The same bits in another element type of the same width. `i1` and complex types only convert to themselves."""

    name = "stablehlo.bitcast_convert"
    operand_ = operand(TensorType)

    def infer(self) -> Sequence[TensorType]:
        type = tensor_of(self.operand_)
        return [type] if type.element == tensor_of(self.results[0]).element else super().infer()

    @property
    def scalar(self) -> ScalarOp:
        return SCALARS["bitcast"]


def _class(name: str, dialect: str = "stablehlo") -> type[Elementwise]:
    scalar_op = SCALARS[name]
    declared: dict[str, object] = {field: operand(TensorType) for field in _OPERANDS[scalar_op.arity]}
    if name in _WITH_ACCURACY:
        declared["result_accuracy"] = optional(DialectAttr)
    made = {"name": f"{dialect}.{name}", "traits": _TRAITS[name in _COMMUTATIVE], "__doc__": scalar_op.doc}
    return type(name.title().replace("_", ""), (Elementwise,), declared | made)


_TABLE: Final = (
    *map(_class, _NAMES),
    *(_class(name, "chlo") for name in _CHLO_NAMES),
    *(_class(name, "flow") for name in _FLOW_NAMES),
)

_CLASSES: Final[tuple[type[Elementwise], ...]] = (Compare, Select, Clamp, Convert, Real, Imag, Complex, BitcastConvert)

OPS: Final[dict[str, type[Elementwise]]] = {cls.name: cls for cls in (*_TABLE, *_CLASSES)}
