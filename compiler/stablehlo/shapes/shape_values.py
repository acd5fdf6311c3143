"""Symbolic evaluation of the integers with which programs compute shapes: a size per element, as an expression.

Ops are visited in program order. An element is a size (`ir/dims.py`), the result of a comparison, or unknown. An
unknown element has a name, so that the distance between two that differ by a size is known. `RULES` state how an op's
elements follow from those of its operands; results without a rule, and large tensors, are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from orchestrion.compiler.ir import dims
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.ops.elementwise import Compare
from orchestrion.compiler.stablehlo.ops.flow_ops import Size
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Concatenate, Constant, Slice
from orchestrion.schema.dtypes import BOOL, BY_NAME, SIGNED, UNSIGNED

#: Maximum number of elements of a tensor that is evaluated.
MAX_TRACKED_ELEMENTS: Final = 64


@dataclass(frozen=True, slots=True)
class Unknown:
    """An unknown integer, plus a size."""

    name: Hashable
    more: dims.Size = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two sizes by EQ, NE, LT, LE, GT or GE."""

    direction: str
    lhs: dims.Size
    rhs: dims.Size


Element = dims.Size | Unknown | Comparison
Elements = tuple[Element, ...]
Rule = Callable[[Any, list[Elements]], Elements | None]


class ShapeValues:
    """The known elements of values. `measured` returns the size of an axis of a tensor, or None."""

    def __init__(self, measured: Callable[[Value, int], dims.Size | None]) -> None:
        self.measured = measured
        self._known: dict[Value, Elements] = {}

    def of(self, value: Value) -> Elements:
        """The elements of a small tensor of integers in row-major order; empty for any other value."""
        if value not in self._known:
            self._known[value] = tuple(Unknown((value, i)) for i in range(_count(value)))
        return self._known[value]

    def sizes(self, value: Value) -> dims.Shape | None:
        """The elements of a list of sizes, if all are known; else None."""
        found = self.of(value)
        sizes = tuple(element for element in found if isinstance(element, int | Dim))
        return sizes if len(sizes) == len(found) and _count(value) == _length(value) else None

    def evaluate(self, op: Operation) -> None:
        """Computes the elements of an op's results."""
        if len(op.results) != 1 or not _count(op.results[0]):
            return
        if op.name == "stablehlo.get_dimension_size":
            size = self.measured(op.operands[0], op.dimension.value)  # type: ignore[attr-defined]
            found: Elements | None = None if size is None else (size,)
        elif isinstance(op, Size):
            found = (op.size,)
        else:
            rule = RULES.get(op.name)
            small = all(_count(value) == _length(value) for value in op.operands)
            found = rule(op, [self.of(value) for value in op.operands]) if rule is not None and small else None
        if found is not None:
            self._known[op.results[0]] = found


def _length(value: Value) -> int:
    """Number of elements of a tensor, -1 if it is not static."""
    type = value.type
    return int(type.num_elements) if isinstance(type, TensorType) and type.is_static else -1


def _count(value: Value) -> int:
    """Number of elements of a small tensor of integers, 0 for any other value."""
    type = value.type
    row = BY_NAME.get(str(type.element)) if isinstance(type, TensorType) else None
    if row is None or row.kind not in (BOOL, SIGNED, UNSIGNED):
        return 0
    return _length(value) if _length(value) <= MAX_TRACKED_ELEMENTS else 0


def _constant(op: Constant, operands: list[Elements]) -> Elements:
    found = tuple(int(x) for x in op.value.scalars())
    return found * op.value.type.num_elements if op.value.is_splat else found


def _broadcast(op: BroadcastInDim, operands: list[Elements]) -> Elements:
    (source,), shape = operands, op.operand_.type.shape  # type: ignore[attr-defined]
    found = []
    for place in product(*(range(size) for size in op.out.type.shape)):  # type: ignore[attr-defined]
        index = 0
        for size, axis in zip(shape, op.broadcast_dimensions.ints, strict=True):
            index = index * size + (place[axis] if size != 1 else 0)
        found.append(source[index])
    return tuple(found)


def _concatenate(op: Concatenate, operands: list[Elements]) -> Elements | None:
    if op.dimension.value != 0:
        return None
    return tuple(element for elements in operands for element in elements)


def _slice(op: Slice, operands: list[Elements]) -> Elements | None:
    if op.out.type.rank != 1:  # type: ignore[attr-defined]
        return None
    (start,), (limit,), (stride,) = op.start_indices.ints, op.limit_indices.ints, op.strides.ints
    return operands[0][start:limit:stride]


def _each(function: Callable[..., Element | None]) -> Rule:
    """A rule for an elementwise op; None means unknown."""

    def rule(op: Operation, operands: list[Elements]) -> Elements:
        out = op.results[0]
        count = _count(out)
        spread = [elements * count if len(elements) == 1 else elements for elements in operands]
        found = (function(*row) for row in zip(*spread, strict=True))
        return tuple(Unknown((out, i)) if x is None else x for i, x in enumerate(found))

    return rule


def _is_size(*elements: Element) -> bool:
    return all(isinstance(element, int | Dim) for element in elements)


def _sum(x: Element, y: Element) -> Element | None:
    if isinstance(x, Comparison) or isinstance(y, Comparison):
        return None
    if isinstance(x, Unknown):
        return None if isinstance(y, Unknown) else Unknown(x.name, x.more + y)
    return Unknown(y.name, y.more + x) if isinstance(y, Unknown) else x + y


def _difference(x: Element, y: Element) -> Element | None:
    if isinstance(y, Unknown):
        return x.more - y.more if isinstance(x, Unknown) and x.name == y.name else None
    return None if isinstance(y, Comparison) else _sum(x, -y)


def _of_sizes(function: Callable[..., Element | None]) -> Rule:
    """A rule for an elementwise op on sizes; results of other elements are unknown."""
    return _each(lambda *elements: function(*elements) if _is_size(*elements) else None)


def _quotient(x: dims.Size, y: dims.Size) -> Element | None:
    """Rounds towards zero, which is down for positive x; else the quotient gets a name that `_chosen` recognizes."""
    if dims.bounds(y)[0] <= 0:
        return None
    return x // y if dims.bounds(x)[0] > 0 else Unknown(("quotient", x, y))


def _remainder(x: dims.Size, y: dims.Size) -> Element | None:
    if dims.bounds(y)[0] <= 0:
        return None
    return x % y if dims.bounds(x)[0] >= 0 else Unknown(("remainder", x, y))


def _chosen(pred: Element, yes: Element, no: Element) -> Element | None:
    """A select. Recognizes floor division and its remainder in the form that frontends write: a select of the quotient
    towards zero or one less, and of the remainder or the remainder plus the divisor.
    """
    if isinstance(pred, Comparison):
        pred = _decided(pred)
    if isinstance(pred, int):
        return yes if pred else no
    if yes == no:
        return yes
    if isinstance(yes, Unknown) and isinstance(no, Unknown) and yes.name == no.name and isinstance(no.name, tuple):
        kind, *numbers = no.name
        if kind == "quotient" and (yes.more, no.more) == (-1, 0):
            return dims.floordiv(*numbers)
        if kind == "remainder" and (yes.more, no.more) == (numbers[1], 0):
            return dims.mod(*numbers)
    return None


def _decided(pred: Comparison) -> Element:
    """A comparison with a known answer as a number."""
    try:
        return int(_COMPARED[pred.direction](pred.lhs, pred.rhs))
    except dims.UndecidedError:
        return pred


_COMPARED: Final[dict[str, Callable[[dims.Size, dims.Size], bool]]] = {
    "EQ": lambda x, y: not (x != y and (x - y)),
    "NE": lambda x, y: bool(x != y and (x - y)),
    "LT": lambda x, y: x < y,
    "LE": lambda x, y: x <= y,
    "GT": lambda x, y: x > y,
    "GE": lambda x, y: x >= y,
}


def _compare(op: Compare, operands: list[Elements]) -> Elements:
    def one(x: Element, y: Element) -> Element | None:
        x, y = (_decided(e) if isinstance(e, Comparison) else e for e in (x, y))
        return Comparison(op.direction, x, y) if _is_size(x, y) else None  # type: ignore[arg-type]

    return _each(one)(op, operands) or ()


def _sign(x: dims.Size) -> Element | None:
    low, high = dims.bounds(x)
    return 1 if low > 0 else -1 if high < 0 else 0 if low == high == 0 else None


def _and(x: Element, y: Element) -> Element | None:
    known = [_decided(e) if isinstance(e, Comparison) else e for e in (x, y)]
    if 0 in known:
        return 0
    return next((other for one, other in (known, reversed(known)) if one == 1), None)


def _convert(op: Operation, operands: list[Elements]) -> Elements | None:
    source = op.operands[0].type
    return operands[0] if isinstance(source, TensorType) and str(source.element) != "i1" else None


#: Op -> the elements of its result, of an integer type; None if they are unknown.
RULES: Final[dict[str, Rule]] = {
    "stablehlo.constant": _constant,
    "stablehlo.reshape": lambda op, operands: operands[0],
    "stablehlo.convert": _convert,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.slice": _slice,
    "stablehlo.add": _each(_sum),
    "stablehlo.subtract": _each(_difference),
    "stablehlo.multiply": _of_sizes(lambda x, y: x * y),
    "stablehlo.divide": _of_sizes(_quotient),
    "stablehlo.remainder": _of_sizes(_remainder),
    "stablehlo.negate": _of_sizes(lambda x: -x),
    "stablehlo.sign": _of_sizes(_sign),
    "stablehlo.maximum": _of_sizes(dims.dim_max),
    "stablehlo.minimum": _of_sizes(dims.dim_min),
    "stablehlo.clamp": _of_sizes(lambda low, x, high: dims.dim_min(dims.dim_max(x, low), high)),
    "stablehlo.compare": _compare,
    "stablehlo.and": _each(_and),
    "stablehlo.select": _each(_chosen),
}
