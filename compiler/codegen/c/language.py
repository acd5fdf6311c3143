"""C99 as a language of the C family, and the functions that generated code defines for itself.

Only the functions that a file uses are written into it. No function needs a library: those on floats work on bits, or
use instructions where the processor has them. Bits are copied by `memcpy`, so accesses are right under strict aliasing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from orchestrion.compiler.targets.c_text.language import Language
from orchestrion.schema.dtypes import BY_NAME, FLOAT, DType

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
)


def is_reserved(name: str) -> bool:
    """Whether generated code cannot define a name."""
    return name in _RESERVED or name.startswith("_") or re.fullmatch(r"u?int\w*_t|size_t|U?INT\w+", name) is not None


def identifier(text: str, taken: Iterable[str] = ()) -> str:
    """An identifier like a text, and unlike those that are taken."""
    base = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "x"
    base = f"x{base}" if base[0].isdigit() else base
    name, number, used = base, 1, set(taken)
    while name in used or is_reserved(name):
        number += 1
        name = f"{base}_{number}"
    return name


def memory_name(dtype: DType) -> str:
    """The type by which kernels access elements in memory."""
    return f"mem_{dtype.name}"


def _memory(dtype: str) -> str:
    type = "uint8_t" if dtype == "i1" else LANGUAGE.types[dtype]
    return f"typedef {type} MAY_ALIAS mem_{dtype};\n"


def _bitcast(source: str, target: str) -> str:
    x, y = LANGUAGE.types[source], LANGUAGE.types[target]
    if FLOAT not in (BY_NAME[source].kind, BY_NAME[target].kind):
        return f"INLINE {y} bitcast_{source}_{target}({x} x) {{ return ({y})x; }}\n"
    return f"INLINE {y} bitcast_{source}_{target}({x} x)\n{{\n  {y} y;\n  memcpy(&y, &x, sizeof y);\n  return y;\n}}\n"


def _bits(dtype: str) -> str:
    bits = f"ui{BY_NAME[dtype].bits}"
    type = LANGUAGE.types
    return f"INLINE {type[dtype]} bits_{dtype}({type[bits]} x) {{ return bitcast_{bits}_{dtype}(x); }}\n"


def _float(template: str) -> Callable[[str], str]:
    """A function on f32 or f64 from a template."""

    def made(dtype: str) -> str:
        wide = BY_NAME[dtype].bits == 64
        return template.format(
            t=dtype, T=LANGUAGE.types[dtype], u=f"ui{BY_NAME[dtype].bits}", U=f"uint{BY_NAME[dtype].bits}_t",
            I=f"int{BY_NAME[dtype].bits}_t", sign=f"0x8{'0' * (15 if wide else 7)}u{'ll' if wide else ''}",
            whole="4503599627370496.0" if wide else "8388608.0f", zero="0.0" if wide else "0.0f",
            one="1.0" if wide else "1.0f", fraction=52 if wide else 23, exponent=2047 if wide else 255,
            bias=1023 if wide else 127,
            sse="_mm_cvtsd_f64(_mm_sqrt_sd(_mm_set_sd(x), _mm_set_sd(x)))"
            if wide
            else "_mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)))",
        )  # fmt: skip

    return made


_SQRT = """#if defined(__SSE2__)
#include <emmintrin.h>
INLINE {T} sqrt_{t}({T} x) {{ return {sse}; }}
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
INLINE {T} sqrt_{t}({T} x) {{ return vget_lane_{t}(vsqrt_{t}(vdup_n_{t}(x)), 0); }}
#else
/* Bit by bit, rounded to nearest. */
static {T} sqrt_{t}({T} x)
{{
  const {U} one = 1, bits = bitcast_{t}_{u}(x);
  {U} rest = bits & ((one << {fraction}) - 1), root = 0, sum = 0, bit = one << ({fraction} + 1);
  int e = (int)(bits >> {fraction});
  if (bits << 1 == 0 || e == {exponent})
    return x + x; /* 0, an infinity, a NaN */
  if (e > {exponent})
    return (bits << 1) >> ({fraction} + 1) == {exponent} && rest != 0 ? x + x : (x - x) / (x - x);
  if (e == 0) {{
    for (e = 1; rest >> {fraction} == 0; rest <<= 1)
      --e;
  }}
  rest |= one << {fraction};
  e -= {bias};
  if (e & 1) {{
    rest <<= 1;
    --e;
  }}
  for (rest <<= 1; bit != 0; bit >>= 1) {{
    if (sum + bit <= rest) {{
      rest -= sum + bit;
      sum += 2 * bit;
      root += bit;
    }}
    rest <<= 1;
  }}
  if (rest != 0)
    root += root & 1;
  return bitcast_{u}_{t}((root >> 1) + (({U})(e / 2 + {bias} - 1) << {fraction}));
}}
#endif
"""
_ABS = "INLINE {T} abs_{t}({T} x) {{ return bitcast_{u}_{t}(bitcast_{t}_{u}(x) & ~({U}){sign}); }}\n"
_SIGNED = """/* The absolute value of x, with the sign of y. */
INLINE {T} with_sign_{t}({T} x, {T} y)
{{
  return bitcast_{u}_{t}((bitcast_{t}_{u}(x) & ~({U}){sign}) | (bitcast_{t}_{u}(y) & ({U}){sign}));
}}
"""
_TRUNC = """INLINE {T} trunc_{t}({T} x)
{{
  const bool small = abs_{t}(x) < {whole};
  const {T} y = ({T})({I})(small ? x : {zero});
  return small ? with_sign_{t}(y, x) : x;
}}
"""
_FLOOR = """INLINE {T} floor_{t}({T} x)
{{
  const {T} y = trunc_{t}(x);
  return y > x ? y - {one} : y;
}}
"""
_CEIL = """INLINE {T} ceil_{t}({T} x)
{{
  const {T} y = trunc_{t}(x);
  return y < x ? with_sign_{t}(y + {one}, x) : y;
}}
"""
_RINT = """INLINE {T} rint_{t}({T} x)
{{
  const {T} y = abs_{t}(x);
  const {T} z = y + {whole};
  return y < {whole} ? with_sign_{t}(z - {whole}, x) : x;
}}
"""

_ARITHMETIC: Final = {"add": "+", "multiply": "*"}
_VECTOR_HEAD = """/* {lanes} elements, in parts of {part} that the processor computes at once. */
typedef {T} {v}_part __attribute__((vector_size({bytes})));
typedef {T} {v}_memory __attribute__((vector_size({bytes}), aligned({item}), may_alias));
typedef struct {{
  {v}_part {parts};
}} {v};
"""


def _vector(dtype: str, lanes: int, used: Collection[str]) -> str:
    """A vector type, with the operations that are used, for each size of the vectors of a processor."""
    item = BY_NAME[dtype].itemsize
    texts = []
    for number, size in enumerate((64, 32, 16)):
        made = _vector_of_parts(dtype, lanes, min(lanes, size // item))
        texts.append(f"#{'elif' if number else 'if'} VECTOR_BYTES >= {size}\n{_chosen(made, used)}")
    return "".join([*texts, f"#else\n{_chosen(_vector_of_elements(dtype, lanes), used)}#endif\n"])


def _chosen(made: Mapping[str, str], used: Collection[str]) -> str:
    """The type and the operations that are used."""
    return "".join(text for name, text in made.items() if not name or name in used)


def _function(vector: str, name: str, parameters: str, *statements: str) -> str:
    """A function that sets the vector r."""
    body = "".join(f"  {line}\n" for line in (*statements, "return r;"))
    return f"INLINE {vector} {vector}_{name}({parameters})\n{{\n{body}}}\n"


def _vector_of_parts(dtype: str, lanes: int, part: int) -> dict[str, str]:
    """Name of an operation, empty for the type -> its definition with parts of so many elements."""
    type, item, v = LANGUAGE.types[dtype], BY_NAME[dtype].itemsize, f"{dtype}x{lanes}"
    parts, last = range(lanes // part), lanes // part - 1
    names = [f"x{lane}" for lane in range(lanes)]
    sets = [f"const {v}_part p{p} = {{{', '.join(names[p * part : (p + 1) * part])}}};" for p in parts]
    same = f"const {v}_part p = {{{', '.join(['x'] * part)}}};"
    chosen = "".join(f"i < {(p + 1) * part} ? x.p{p}[i - {p * part}] : " for p in range(last))
    return {
        "": _VECTOR_HEAD.format(
            T=type, v=v, lanes=lanes, part=part, bytes=part * item, item=item, parts=", ".join(f"p{p}" for p in parts)
        ),
        "load": _function(
            v, "load", f"const mem_{dtype} *m", f"{v} r;",
            *(f"r.p{p} = *(const {v}_memory *)(m + {p * part});" for p in parts),
        ),
        "of": _function(
            v, "of", ", ".join(f"{type} {name}" for name in names), *sets, f"{v} r;",
            *(f"r.p{p} = p{p};" for p in parts),
        ),
        "splat": _function(v, "splat", f"{type} x", same, f"{v} r;", *(f"r.p{p} = p;" for p in parts)),
        **{
            name: _function(v, name, f"{v} x, {v} y", f"{v} r;", *(f"r.p{p} = x.p{p} {sign} y.p{p};" for p in parts))
            for name, sign in _ARITHMETIC.items()
        },
        "lane": f"INLINE {type} {v}_lane({v} x, int i) {{ return {chosen}x.p{last}[i - {last * part}]; }}\n",
    }  # fmt: skip


def _vector_of_elements(dtype: str, lanes: int) -> dict[str, str]:
    """The same with elements one by one."""
    type, v = LANGUAGE.types[dtype], f"{dtype}x{lanes}"
    head, loop = (f"{v} r;", "int i;"), f"for (i = 0; i < {lanes}; ++i) r.e[i] = "
    names = [f"x{lane}" for lane in range(lanes)]
    return {
        "": f"typedef struct {{\n  {type} e[{lanes}];\n}} {v};\n",
        "load": _function(v, "load", f"const mem_{dtype} *m", *head, f"{loop}m[i];"),
        "of": _function(
            v, "of", ", ".join(f"{type} {name}" for name in names), f"{v} r;",
            *(f"r.e[{lane}] = {name};" for lane, name in enumerate(names)),
        ),
        "splat": _function(v, "splat", f"{type} x", *head, f"{loop}x;"),
        **{
            name: _function(v, name, f"{v} x, {v} y", *head, f"{loop}x.e[i] {sign} y.e[i];")
            for name, sign in _ARITHMETIC.items()
        },
        "lane": f"INLINE {type} {v}_lane({v} x, int i) {{ return x.e[i]; }}\n",
    }  # fmt: skip


_SMALLER = "INLINE {T} smaller_{t}({T} x, {T} y) {{ return x < y ? x : y; }}\n"

#: pattern of a name -> makes the text that defines it, from the groups of the pattern
_HELPERS: Final[tuple[tuple[str, Callable[..., str]], ...]] = (
    (r"mem_(i1|u?i\d+|f32|f64)", _memory),
    (r"bitcast_(\w+?)_(\w+)", _bitcast),
    (r"bits_(f32|f64)", _bits),
    (r"abs_(f32|f64)", _float(_ABS)),
    (r"with_sign_(f32|f64)", _float(_SIGNED)),
    (r"trunc_(f32|f64)", _float(_TRUNC)),
    (r"floor_(f32|f64)", _float(_FLOOR)),
    (r"ceil_(f32|f64)", _float(_CEIL)),
    (r"rint_(f32|f64)", _float(_RINT)),
    (r"sqrt_(f32|f64)", _float(_SQRT)),
    (r"smaller_(ui32|ui64)", lambda t: _SMALLER.format(t=t, T=LANGUAGE.types[t])),
)
_WORD = re.compile(r"[a-z]\w*", re.ASCII)


def helpers(text: str) -> str:
    """The definitions of the functions and types that a text uses, and of those that these use."""
    found: dict[str, str] = {}

    def need(text: str) -> None:
        for word in dict.fromkeys(_WORD.findall(text)):
            for pattern, make in _HELPERS:
                match = re.fullmatch(pattern, word)
                if match is None:
                    continue
                key = f"{pattern}{match.groups()}"
                if key not in found:
                    found[key] = ""
                    made = make(*match.groups())
                    need(made)
                    del found[key]  # behind what it uses
                    found[key] = made
                break

    vectors: dict[tuple[str, str], set[str]] = {}
    for dtype, lanes, name in re.findall(r"\b(f32|f64)x(\d+)(?:_([a-z]+))?\b", text):
        need(f"mem_{dtype}")
        vectors.setdefault((dtype, lanes), set()).add(name)
    need(text)
    return "".join([*found.values(), *(_vector(dtype, int(lanes), used) for (dtype, lanes), used in vectors.items())])
