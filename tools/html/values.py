"""Abstract values: what a register may hold when a program's code is analysed without running it.

A value is a set of atoms, each of which the register may hold; None is an unknown value. Numbers that depend on the
sizes of a call are expressions over these sizes, in one table per program, so that the page can compute them for any
sizes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrion.vm.size_expressions import SizeExpression, read_size

#: the most atoms of one value; a value with more possibilities is unknown
MAX_ATOMS: Final = 8
#: the largest known number, which JavaScript still represents exactly
MAX_NUMBER: Final = 2**53 - 1
#: the most characters of an expression as text
LONGEST_TEXT: Final = 80
#: the value of each size for which the page is drawn first
FIRST_SIZE: Final = 16


@dataclass(frozen=True, slots=True)
class Expression:
    """A number that depends on sizes: a row of `Expressions.rows`."""

    row: int


Quantity = int | Expression


@dataclass(frozen=True, slots=True)
class Number:
    quantity: Quantity


@dataclass(frozen=True, slots=True)
class Null:
    """The null reference."""


@dataclass(frozen=True, slots=True)
class ExecutableRef:
    ordinal: int


@dataclass(frozen=True, slots=True)
class BufferRef:
    """A buffer: a row of `Walk.buffers`."""

    row: int


@dataclass(frozen=True, slots=True)
class ViewRef:
    """A view over a buffer. `argument` is numbered within the module; -1 if the view is no argument of an export."""

    buffer: int
    argument: int = -1


@dataclass(frozen=True, slots=True)
class RecordingRef:
    """A recording, identified by the instruction that creates it."""

    function: int
    pc: int


Atom = Number | Null | ExecutableRef | BufferRef | ViewRef | RecordingRef
Value = frozenset[Atom] | None
NULL: Final[Value] = frozenset((Null(),))


def number(quantity: Quantity | None) -> Value:
    return None if quantity is None else frozenset((Number(quantity),))


def quantity_of(value: Value) -> Quantity | None:
    """The number that a value is; None if it may be several numbers, or something else."""
    if value is None or len(value) != 1:
        return None
    (atom,) = value
    return atom.quantity if isinstance(atom, Number) else None


def join(a: Value, b: Value) -> Value:
    """The union of two values."""
    if a is None or b is None:
        return None
    both = a | b
    return both if len(both) <= MAX_ATOMS else None


def _quotient(x: int, y: int) -> int:
    """Division rounded towards zero."""
    found = abs(x) // abs(y)
    return found if (x < 0) == (y < 0) else -found


def _align(x: int, y: int) -> int:
    return -(-x // y) * y


#: name -> function and text; the page's script has a function of the same name and meaning; division by 0 has no result
OPERATIONS: Final[dict[str, tuple[Callable[..., int], str]]] = {
    "add": (lambda x, y: x + y, "{} + {}"),
    "subtract": (lambda x, y: x - y, "{} - {}"),
    "multiply": (lambda x, y: x * y, "{} * {}"),
    "divide": (_quotient, "{} / {}"),
    "remainder": (lambda x, y: x - y * _quotient(x, y), "{} mod {}"),
    "align": (_align, "align({}, {})"),
    "floordiv": (lambda x, y: x // y, "floor({} / {})"),
    "mod": (lambda x, y: x % y, "{} mod {}"),
    "max": (max, "max({}, {})"),
    "min": (min, "min({}, {})"),
    "less": (lambda x, y: int(x < y), "{} < {}"),
    "at_most": (lambda x, y: int(x <= y), "{} <= {}"),
    "equal": (lambda x, y: int(x == y), "{} = {}"),
    "select": (lambda c, x, y: x if c else y, "{} ? {} : {}"),
}
#: the operators of a declared dimension
_DECLARED: Final[dict[type[ast.operator], str]] = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply"}


@dataclass
class Expressions:
    """The expressions of one program. A row is ("size", symbol), or an operation and its operands, which are earlier
    rows. Equal rows are stored once.
    """

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)  #: symbol -> the value for which `values` are computed
    values: list[int | None] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)

    def value(self, quantity: Quantity | None) -> int | None:
        """The value for `sizes`."""
        return self.values[quantity.row] if isinstance(quantity, Expression) else quantity

    def text(self, quantity: Quantity) -> str:
        return self.texts[quantity.row] if isinstance(quantity, Expression) else str(quantity)

    def dimension(self, text: str) -> Quantity:
        """A dynamic dimension of a signature. One that cannot be parsed becomes a separate size."""
        try:
            read = read_size(text)
            return self._symbol(text, None) if read is None else self._declared(read.tree, read)
        except RecursionError:
            return self._symbol(text, None)

    def operation(self, name: str, *operands: Quantity) -> Quantity | None:
        """The result of an operation; None if it is undefined or too large."""
        if all(isinstance(operand, int) for operand in operands):
            return _computed(name, [self.value(operand) for operand in operands])
        simple = self._simplified(name, operands)
        if simple is not None:
            return simple
        key = (name, *operands)
        if key not in self._known:
            value = _computed(name, [self.value(operand) for operand in operands])
            text = OPERATIONS[name][1].format(*map(self._operand, operands))
            self._add(key, value, text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…")
        return Expression(self._known[key])

    def _simplified(self, name: str, operands: tuple[Quantity, ...]) -> Quantity | None:
        """Recognises what compilers write in several instructions: the next multiple, the maximum and minimum of two
        numbers.
        """
        rows = [self.rows[operand.row] if isinstance(operand, Expression) else () for operand in operands]
        match name, operands, rows:
            case "subtract", (whole, _), (("add", x, added), ("remainder", divided, int(divisor))):
                return self.operation("align", x, divisor) if (divided, added) == (whole, divisor - 1) else None
            case "select", (_, x, y), (("less", a, b), _, _):
                names = {(a, b): "min", (b, a): "max"}
                return self.operation(names[x, y], x, y) if (x, y) in names else None
            case "multiply", (x, 1), _:
                return x
        return None

    def _operand(self, quantity: Quantity) -> str:
        text = self.text(quantity)
        return f"({text})" if " " in text and not text.endswith(")") else text

    def _symbol(self, name: str, most: int | None) -> Quantity:
        key = ("size", name)
        if key not in self._known:
            self.sizes[name] = FIRST_SIZE if most is None else min(FIRST_SIZE, most)
            self._add(key, self.sizes[name], name)
        return Expression(self._known[key])

    def _declared(self, tree: ast.expr, read: SizeExpression) -> Quantity:
        match tree:
            case ast.Constant(value=int(value)) if abs(value) <= MAX_NUMBER:
                return value
            case ast.Name(id=name):
                return self._symbol(name, read.symbols.get(name))
            case ast.UnaryOp(operand=operand):
                return self._both("subtract", 0, self._declared(operand, read))
            case ast.BinOp(left=left, op=op, right=right):
                return self._both(_DECLARED[type(op)], self._declared(left, read), self._declared(right, read))
            case ast.Call(func=ast.Name(id=name), args=[left, right]):
                return self._both(name, self._declared(left, read), self._declared(right, read))
        return self._symbol(ast.unparse(tree), None)

    def _both(self, name: str, a: Quantity, b: Quantity) -> Quantity:
        found = self.operation(name, a, b)
        return 0 if found is None else found

    def _add(self, key: tuple[Any, ...], value: int | None, text: str) -> None:
        self._known[key] = len(self.rows)
        self.rows.append(key)
        self.values.append(value)
        self.texts.append(text)


def _computed(name: str, operands: Sequence[int | None]) -> int | None:
    if None in operands:
        return None
    try:
        found = OPERATIONS[name][0](*operands)
    except ZeroDivisionError:
        return None
    return found if abs(found) <= MAX_NUMBER else None
