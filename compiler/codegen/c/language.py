"""C99 as a language of the C family, and the functions that generated code defines for itself.

Only the functions that a file uses are written into it. No function needs a library: those on floats work on bits, or
use instructions where the processor has them. Bits are copied by `memcpy`, so accesses are right under strict aliasing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
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
INLINE {T} sign_{t}({T} x, {T} y)
{{
  return bitcast_{u}_{t}((bitcast_{t}_{u}(x) & ~({U}){sign}) | (bitcast_{t}_{u}(y) & ({U}){sign}));
}}
"""
_TRUNC = """INLINE {T} trunc_{t}({T} x)
{{
  const bool small = abs_{t}(x) < {whole};
  const {T} y = ({T})({I})(small ? x : {zero});
  return small ? sign_{t}(y, x) : x;
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
  return y < x ? sign_{t}(y + {one}, x) : y;
}}
"""
_RINT = """INLINE {T} rint_{t}({T} x)
{{
  const {T} y = abs_{t}(x);
  const {T} z = y + {whole};
  return y < {whole} ? sign_{t}(z - {whole}, x) : x;
}}
"""

_VECTOR_HEAD = """/* {lanes} elements, in parts of {part} that the processor computes at once. */
typedef {T} {v}_part __attribute__((vector_size({bytes})));
typedef {T} {v}_memory __attribute__((vector_size({bytes}), aligned({item}), may_alias));
typedef struct {{
  {v}_part {parts};
}} {v};
"""


def _vector(dtype: str, lanes: int) -> str:
    """A vector type, with its operations, for each size of the vectors of a processor."""
    item = BY_NAME[dtype].itemsize
    ways = [(size, lanes if size >= lanes * item else size // item) for size in (64, 32, 16)]
    texts = []
    for number, (size, part) in enumerate(ways):
        word = "elif" if number else "if"
        texts.append(f"#{word} VECTOR_BYTES >= {size}\n{_vector_of_parts(dtype, lanes, part)}")
    texts.append(f"#else\n{_vector_of_elements(dtype, lanes)}#endif\n")
    return "".join(texts)


def _vector_of_parts(dtype: str, lanes: int, part: int) -> str:
    type, item, v = LANGUAGE.types[dtype], BY_NAME[dtype].itemsize, f"{dtype}x{lanes}"
    parts = range(lanes // part)
    text = _VECTOR_HEAD.format(
        T=type, v=v, lanes=lanes, part=part, bytes=part * item, item=item, parts=", ".join(f"p{p}" for p in parts)
    )
    load = "".join(f"  r.p{p} = *(const {v}_memory *)(m + {p * part});\n" for p in parts)
    text += f"INLINE {v} {v}_load(const mem_{dtype} *m)\n{{\n  {v} r;\n{load}  return r;\n}}\n"
    names = [f"x{lane}" for lane in range(lanes)]
    given = ", ".join(f"{type} {name}" for name in names)
    sets = "".join(
        f"  const {v}_part p{p} = {{{', '.join(names[p * part : (p + 1) * part])}}};\n  r.p{p} = p{p};\n" for p in parts
    )
    text += f"INLINE {v} {v}_of({given})\n{{\n  {v} r;\n{_declared_first(sets)}  return r;\n}}\n"
    splat = "".join(f"  r.p{p} = s;\n" for p in parts)
    same = ", ".join(["x"] * part)
    text += f"INLINE {v} {v}_splat({type} x)\n{{\n  const {v}_part s = {{{same}}};\n  {v} r;\n{splat}  return r;\n}}\n"
    for name, sign in (("add", "+"), ("multiply", "*")):
        steps = "".join(f"  r.p{p} = x.p{p} {sign} y.p{p};\n" for p in parts)
        text += f"INLINE {v} {v}_{name}({v} x, {v} y)\n{{\n  {v} r;\n{steps}  return r;\n}}\n"
    chosen = "".join(f"i < {(p + 1) * part} ? x.p{p}[i - {p * part}] : " for p in list(parts)[:-1])
    last = list(parts)[-1]
    body = f"return {chosen}x.p{last}[i - {last * part}];"
    return text + f"INLINE {type} {v}_lane({v} x, int i) {{ {body} }}\n"


def _declared_first(sets: str) -> str:
    lines = sets.splitlines(keepends=True)
    return "".join([line for line in lines if "const" in line] + [line for line in lines if "const" not in line])


def _vector_of_elements(dtype: str, lanes: int) -> str:
    type, v = LANGUAGE.types[dtype], f"{dtype}x{lanes}"
    loop = f"for (i = 0; i < {lanes}; ++i)\n    r.e[i] ="
    names = [f"x{lane}" for lane in range(lanes)]
    given = ", ".join(f"{type} {name}" for name in names)
    sets = "".join(f"  r.e[{lane}] = {name};\n" for lane, name in enumerate(names))
    return (
        f"typedef struct {{\n  {type} e[{lanes}];\n}} {v};\n"
        f"INLINE {v} {v}_load(const mem_{dtype} *m)\n{{\n  {v} r;\n  int i;\n  {loop} m[i];\n  return r;\n}}\n"
        f"INLINE {v} {v}_of({given})\n{{\n  {v} r;\n{sets}  return r;\n}}\n"
        f"INLINE {v} {v}_splat({type} x)\n{{\n  {v} r;\n  int i;\n  {loop} x;\n  return r;\n}}\n"
        f"INLINE {v} {v}_add({v} x, {v} y)\n{{\n  {v} r;\n  int i;\n  {loop} x.e[i] + y.e[i];\n  return r;\n}}\n"
        f"INLINE {v} {v}_multiply({v} x, {v} y)\n{{\n  {v} r;\n  int i;\n  {loop} x.e[i] * y.e[i];\n  return r;\n}}\n"
        f"INLINE {type} {v}_lane({v} x, int i) {{ return x.e[i]; }}\n"
    )


_SMALLER = "INLINE {T} smaller_{t}({T} x, {T} y) {{ return x < y ? x : y; }}\n"

#: pattern of a name -> makes the text that defines it, from the groups of the pattern
_HELPERS: Final[tuple[tuple[str, Callable[..., str]], ...]] = (
    (r"mem_(i1|u?i\d+|f32|f64)", _memory),
    (r"bitcast_(\w+?)_(\w+)", _bitcast),
    (r"bits_(f32|f64)", _bits),
    (r"abs_(f32|f64)", _float(_ABS)),
    (r"sign_(f32|f64)", _float(_SIGNED)),
    (r"trunc_(f32|f64)", _float(_TRUNC)),
    (r"floor_(f32|f64)", _float(_FLOOR)),
    (r"ceil_(f32|f64)", _float(_CEIL)),
    (r"rint_(f32|f64)", _float(_RINT)),
    (r"sqrt_(f32|f64)", _float(_SQRT)),
    (r"smaller_(ui32|ui64)", lambda t: _SMALLER.format(t=t, T=LANGUAGE.types[t])),
    (r"(f32|f64)x(\d+)(?:_\w+)?", lambda dtype, lanes: _vector(dtype, int(lanes))),
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

    need(text)
    return "".join(found.values())
