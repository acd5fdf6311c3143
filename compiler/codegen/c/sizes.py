"""Sizes as C expressions of type `int64_t`. Until a call has checked its sizes, they saturate where 64 bits do not
suffice.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.dims import Atom, Call, Dim, Size, Symbol

#: name of a function -> its definition
FUNCTIONS: dict[str, str] = {
    "size_add": """INLINE int64_t size_add(int64_t x, int64_t y)
{
  if (y > 0 ? x > INT64_MAX - y : x < INT64_MIN - y)
    return y > 0 ? INT64_MAX : INT64_MIN;
  return x + y;
}
""",
    "size_multiply": """INLINE int64_t size_multiply(int64_t x, int64_t y)
{
  const int64_t most = INT64_MAX / (y == 0 ? 1 : y < 0 ? -y : y);
  return x > most || x < -most ? ((x < 0) == (y < 0) ? INT64_MAX : -INT64_MAX) : x * y;
}
""",
    "size_mod": """INLINE int64_t size_mod(int64_t x, int64_t y)
{
  const int64_t rest = x % y;
  return rest < 0 ? rest + y : rest;
}
""",
    "size_floordiv": """INLINE int64_t size_floordiv(int64_t x, int64_t y)
{
  const int64_t rest = x % y;
  return (x - (rest < 0 ? rest + y : rest)) / y;
}
""",
    "size_max": "INLINE int64_t size_max(int64_t x, int64_t y) { return x > y ? x : y; }\n",
    "size_min": "INLINE int64_t size_min(int64_t x, int64_t y) { return x < y ? x : y; }\n",
}


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
