"""Reads the expressions of dynamic dimensions in a module's signatures: `2 * s{..256} + 1`, `floordiv(n, 2)`.

A symbol may have its least and greatest value in braces. The runtime only uses expressions to choose how much memory it
allocates at once. It does not rely on them, since a module's author may write anything. So a text that cannot be read
gives None, never an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

#: the most characters of an expression that is read
_MAX_LENGTH: Final = 1000
_BOUNDS: Final = re.compile(r"([A-Za-z_]\w*)\{([0-9]{0,10})\.\.([0-9]{0,10})\}", re.ASCII)
_FUNCTIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max,
    "min": min,
}
_OPERATORS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
}


class SizeExpression(NamedTuple):
    """An expression over symbols. `symbols`: name -> declared greatest value, None if none is declared. `least`: name
    -> declared least value.
    """

    tree: ast.expr
    symbols: Mapping[str, int | None]
    least: Mapping[str, int] = MappingProxyType({})

    @classmethod
    def of_symbol(cls, name: str) -> SizeExpression:
        """The expression that is one symbol without bounds."""
        return cls(ast.Name(name), {name: None})

    @property
    def symbol(self) -> str | None:
        """The name of the symbol, if the expression is one symbol; else None."""
        return self.tree.id if isinstance(self.tree, ast.Name) else None

    def value(self, symbols: Mapping[str, int]) -> int | None:
        """The value for these values of symbols. None if one is missing, or for a division by 0."""
        try:
            return _value(self.tree, symbols)
        except (KeyError, ZeroDivisionError):
            return None


def read_size(text: str) -> SizeExpression | None:
    """The expression of a text; None if it cannot be read."""
    if len(text) > _MAX_LENGTH:
        return None
    bounds = _BOUNDS.findall(text)
    greatest = {name: int(most) for name, _, most in bounds if most}
    least = {name: int(fewest) for name, fewest, _ in bounds if fewest}
    try:
        tree = ast.parse(_BOUNDS.sub(r"\1", text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not _known(tree):
        return None
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called]
    return SizeExpression(tree, {name: greatest.get(name) for name in names}, least)


def _known(node: ast.expr) -> bool:
    match node:
        case ast.Name():
            return True
        case ast.Constant(value=int()):
            return not isinstance(node.value, bool)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _known(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return type(op) in _OPERATORS and _known(left) and _known(right)
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]):
            return name in _FUNCTIONS and _known(left) and _known(right)
    return False


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int:
    match node:
        case ast.Name(id=name):
            return symbols[name]
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(operand=operand):
            return -_value(operand, symbols)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, symbols), _value(right, symbols))
        case ast.Call(func=ast.Name(id=name), args=[left, right]):
            return _FUNCTIONS[name](_value(left, symbols), _value(right, symbols))
    raise AssertionError(f"{type(node).__name__} was not refused")
