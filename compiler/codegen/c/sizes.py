"""Sizes as C expressions of type `int64_t`. Until a call has checked its sizes, they saturate where 64 bits do not
suffice.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.dims import Atom, Call, Dim, Size, Symbol


def size_text(size: Size, names: Mapping[str, str], saturates: bool = True) -> str:
    """A size. `names`: symbol -> the variable that holds it. Only sizes that were checked need not saturate.

    Raises CompileError for a symbol without a variable.
    """
    if not isinstance(size, Dim):
        return str(size)
    add, multiply = ("size_add({}, {})", "size_multiply({}, {})") if saturates else ("({} + {})", "({} * {})")
    terms = []
    for count, factors in size.terms:
        parts = [_atom(atom, names, saturates) for atom in factors]
        if not parts or count != 1:
            parts.append(str(count))
        terms.append(reduce(multiply.format, parts))
    return reduce(add.format, terms)


def _atom(atom: Atom, names: Mapping[str, str], saturates: bool) -> str:
    if isinstance(atom, Symbol):
        if atom.name not in names:
            raise CompileError(f"size {atom.name} has no value where C code needs it")
        return names[atom.name]
    assert isinstance(atom, Call)
    return f"size_{atom.op}({size_text(atom.lhs, names, saturates)}, {size_text(atom.rhs, names, saturates)})"


def rounded_up(text: str, to: int) -> str:
    """A size of at least 0, rounded up to a multiple."""
    return f"size_multiply(size_floordiv(size_add({text}, {to - 1}), {to}), {to})"
