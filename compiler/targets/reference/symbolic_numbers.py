"""Dynamic sizes in tensor bytecode: symbolic numbers, with the value for the least symbols and the expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrion.compiler.ir.dims import Atom, Call, Dim, Size, Symbol, evaluate
from orchestrion.schema.tensor_shapes import TensorType
from orchestrion.schema.tensor_template import SymbolicNumber, number, operation, parameter


def marked(value: Any, symbols: Sequence[Symbol]) -> Any:
    """An attribute of an instruction with its dynamic sizes as symbolic numbers. A symbol is the parameter of its
    position.
    """
    match value:
        case Dim():
            least = {symbol.name: symbol.least for symbol in symbols}
            return SymbolicNumber(evaluate(value, least), _size(value, symbols))
        case tuple():
            return tuple([marked(item, symbols) for item in value])
        case TensorType():
            return TensorType(value.dtype, marked(value.shape, symbols))
        case _:
            return value


def _size(size: Size, symbols: Sequence[Symbol]) -> bytes:
    if not isinstance(size, Dim):
        return number(size)
    total: bytes | None = None
    for count, factors in size.terms:
        product = number(count)
        for atom in factors:
            product = operation("multiply", product, _atom(atom, symbols))
        total = product if total is None else operation("add", total, product)
    assert total is not None, "an expression has a term"
    return total


def _atom(atom: Atom, symbols: Sequence[Symbol]) -> bytes:
    if isinstance(atom, Symbol):
        return parameter(symbols.index(atom))
    assert isinstance(atom, Call)
    return operation(atom.op, _size(atom.lhs, symbols), _size(atom.rhs, symbols))
