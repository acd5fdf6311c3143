"""C99 as a language of the C family: its rows, and the names that it has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from orchestrion.compiler.targets.c_text.language import Language
from orchestrion.schema.dtypes import DType

_INTEGERS = {f"{u}i{bits}": f"{u}int{bits}_t" for u in ("", "u") for bits in (8, 16, 32, 64)}

LANGUAGE: Final = Language(
    types={"i1": "bool", **{f"{name}": type for name, type in _INTEGERS.items()}, "f32": "float", "f64": "double"},
    memory={},
    rows=(
        ("abs", "f", "abs_{t}({x})"),
        ("sqrt", "f", "sqrt_{t}({x})"),
        ("floor", "f", "floor_{t}({x})"),
        ("ceil", "f", "ceil_{t}({x})"),
        ("round_nearest_even", "f", "rint_{t}({x})"),
        ("trunc", "f", "trunc_{t}({x})"),
        ("bitcast", "suf", "bitcast_{t}_{r}({x})"),
    ),
    suffix="ll",
    not_finite="bits_{t}({bits})",
    vector="{t}x{lanes}",
    wide_literals=True,
    function="ELEMENTWISE",
)

#: keywords of C and C++, and names of the headers that generated code includes
_RESERVED: Final = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const const_cast
    consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
    typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq main memcpy memset memmove NULL
    linux unix
    """.split()
)  #: macros of generated code and of its headers: a member of a struct cannot have such a name
MACROS: Final = frozenset(
    """
    ALIGNED ELEMENTWISE FUSED INLINE IN_MEMORY LANES LOAD MAY_ALIAS PREFETCH RESTRICT SECTION SHUFFLE STAGES STAGING
    VECTOR_BYTES launch offsetof
    """.split()
)
_PATTERN: Final = re.compile(r"_.*|u?int\w*_t|size_t|U?INT\w+|(FLT|DBL|LDBL|SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC|VK)_\w+")


def is_reserved(name: str) -> bool:
    """Whether generated code cannot define a name."""
    return name in _RESERVED or name in MACROS or _PATTERN.fullmatch(name) is not None


def identifier(text: str, taken: Iterable[str] = ()) -> str:
    """An identifier like a text, and unlike those that are taken."""
    base = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "x"
    base = f"x{base}" if base[0].isdigit() else base
    name, number, used = base, 1, set(taken)
    while name in used or is_reserved(name):
        number += 1
        name = f"{base}_{number}"
    return name


def comment(text: str) -> str:
    """A text of the input inside a comment: nothing in it begins or ends a comment, or continues a line."""
    lines = ["".join(c if c.isprintable() else "?" for c in line) for line in text.strip().splitlines()]
    lines = [line.replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ?/") for line in lines]
    return "\n".join(line.rstrip(" \\") for line in lines)


def literal(text: str) -> str:
    """A text of the input as a string literal: nothing in it ends the literal, and no `??` begins a trigraph."""
    text = "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"(?<=\?)\?", r"\\?", text) + '"'


def memory_name(dtype: DType) -> str:
    """The type by which kernels access elements in memory."""
    return f"mem_{dtype.name}"
