"""Sizes as scalar code: an expression over symbols in the index type of a builder.

Sums and products are computed modulo the range of the type, so that intermediate values may be negative if the whole is
not. A dividend is made non-negative first: x / k is (x + c * k) / k - c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrion.compiler.ir.dims import Atom, Call, Dim, Size, Symbol, bounds

if TYPE_CHECKING:
    from orchestrion.compiler.ir.core import Value

    from .builder import KernelBuilder


def emit(b: KernelBuilder, size: Size, values: Mapping[str, Value] | None = None) -> Value:
    """The value of a size. `values`: symbols that are no parameters of the dispatch, such as dimensions -> their
    values.
    """
    if not isinstance(size, Dim):
        return b.bits(size % (1 << (32 if b.index_type == "ui32" else 64)), b.index_type)
    if size.symbol is not None:
        b.index(1)  # its factor: constants are in the order of their first use in an expression
        return _atom(b, size.symbol, values)
    total: Value | None = None
    for count, factors in sorted(size.terms, key=lambda term: term[0] < 0):
        product = _product(b, abs(count), [_atom(b, atom, values) for atom in factors])
        if total is None:
            total = product if count > 0 else b.op("subtract", emit(b, 0), product)
        else:
            total = b.op("add" if count > 0 else "subtract", total, product)
    assert total is not None, "an expression has a term"
    return total


def _product(b: KernelBuilder, count: int, factors: Sequence[Value]) -> Value:
    product = emit(b, count)
    for factor in factors:
        product = b.op("multiply", product, factor)
    return product


def _atom(b: KernelBuilder, atom: Atom, values: Mapping[str, Value] | None) -> Value:
    if isinstance(atom, Symbol):
        return values[atom.name] if values and atom.name in values else b.symbol(atom.name)
    assert isinstance(atom, Call)
    match atom.op:
        case "floordiv" | "mod":
            return _divided(b, atom, values)
        case _:
            return _chosen(b, atom, values)


def _divided(b: KernelBuilder, atom: Call, values: Mapping[str, Value] | None) -> Value:
    lift = max(-(bounds(atom.lhs)[0] // bounds(atom.rhs)[0]), 0)
    lhs, rhs = emit(b, atom.lhs + lift * atom.rhs, values), emit(b, atom.rhs, values)
    if atom.op == "mod":
        return b.op("unchecked_remainder", lhs, rhs)
    return b.op("subtract", b.op("unchecked_divide", lhs, rhs), b.index(lift))


def _chosen(b: KernelBuilder, atom: Call, values: Mapping[str, Value] | None) -> Value:
    """The larger or the smaller of two sizes, as signed numbers."""
    signed = b.index_type.lstrip("u")
    lhs, rhs = (b.op("bitcast", emit(b, size, values), to=signed) for size in (atom.lhs, atom.rhs))
    name = {"max": "maximum", "min": "minimum"}[atom.op]
    return b.op("bitcast", b.op(name, lhs, rhs), to=b.index_type)
