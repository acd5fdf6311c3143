"""The functions and types that generated code defines for itself.

Only those that a file uses are written into it. None needs a library: functions on floats work on bits, or use
instructions where the processor has them. Bits are copied by `memcpy`, so accesses are right under strict aliasing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from orchestrion.schema.dtypes import BY_NAME, FLOAT

from .language import LANGUAGE
from .vectors import vector


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
            bias=1023 if wide else 127, f="" if wide else "f",
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
_CHOOSE = """/* c ? x : y */
INLINE {T} choose_{t}(bool c, {T} x, {T} y)
{{
  const {U} mask = ({U})0 - ({U})c;
  return bitcast_{u}_{t}((bitcast_{t}_{u}(x) & mask) | (bitcast_{t}_{u}(y) & ~mask));
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

_MULTIPLY_ADD = """/* x * y + z, rounded once if the processor can, else twice. */
#if defined(FUSED)
INLINE {T} multiply_add_{t}({T} x, {T} y, {T} z) {{ return __builtin_fma{f}(x, y, z); }}
#else
INLINE {T} multiply_add_{t}({T} x, {T} y, {T} z)
{{
  const {T} product = x * y;
  return product + z;
}}
#endif
"""
_NAN_OR = """/* x is NaN, or x SIGN y. y is no NaN. GCC has one comparison for both; Clang vectorizes one of bits. */
#if defined(__clang__)
INLINE bool nan_or_NAME_{t}({T} x, {T} y)
{{
  return ((bitcast_{t}_{u}(x) & ~({U}){sign}) > ({U}){exponent} << {fraction}) | (x SIGN y);
}}
#else
INLINE bool nan_or_NAME_{t}({T} x, {T} y) {{ return !(x OPPOSITE y); }}
#endif
"""


def _nan_or(name: str, dtype: str) -> str:
    sign, opposite = {"gt": (">", "<="), "lt": ("<", ">=")}[name]
    return _float(_NAN_OR.replace("NAME", name).replace("SIGN", sign).replace("OPPOSITE", opposite))(dtype)


_WORD_OF_BYTES = """INLINE uint32_t word_{t}(const mem_{t} *m)
{{
  return (uint32_t)(uint8_t)m[0] | (uint32_t)(uint8_t)m[1] << 8 | (uint32_t)(uint8_t)m[2] << 16 |
         (uint32_t)(uint8_t)m[3] << 24;
}}
"""
_WORD_OF_HALVES = """INLINE uint32_t word_{t}(const mem_{t} *m)
{{
  return (uint32_t)(uint16_t)m[0] | (uint32_t)(uint16_t)m[1] << 16;
}}
"""
_SMALLER = "INLINE {T} smaller_{t}({T} x, {T} y) {{ return x < y ? x : y; }}\n"

#: pattern of a name -> makes the text that defines it, from the groups of the pattern
_HELPERS: Final[tuple[tuple[str, Callable[..., str]], ...]] = (
    (r"mem_(i1|u?i\d+|f32|f64)", _memory),
    (r"bitcast_(\w+?)_(\w+)", _bitcast),
    (r"bits_(f32|f64)", _bits),
    (r"abs_(f32|f64)", _float(_ABS)),
    (r"with_sign_(f32|f64)", _float(_SIGNED)),
    (r"choose_(f32|f64)", _float(_CHOOSE)),
    (r"trunc_(f32|f64)", _float(_TRUNC)),
    (r"floor_(f32|f64)", _float(_FLOOR)),
    (r"ceil_(f32|f64)", _float(_CEIL)),
    (r"rint_(f32|f64)", _float(_RINT)),
    (r"sqrt_(f32|f64)", _float(_SQRT)),
    (r"multiply_add_(f32|f64)", _float(_MULTIPLY_ADD)),
    (r"nan_or_(gt|lt)_(f32|f64)", _nan_or),
    (r"word_(u?i8)", lambda t: _WORD_OF_BYTES.format(t=t)),
    (r"word_(u?i16)", lambda t: _WORD_OF_HALVES.format(t=t)),
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
    for dtype, lanes, name in re.findall(r"\b(i1|u?i\d+|f32|f64)x(\d+)(?:_([a-z_]+))?\b", text):
        need(f"mem_{dtype}")
        if name in ("multiply_add", "choose"):
            need(f"{name}_{dtype}")
        vectors.setdefault((dtype, lanes), set()).add(name)
    need(text)
    in_order = sorted(vectors.items(), key=lambda row: row[0][0] == "i32")  # their products of bytes take ui32
    return "".join([*found.values(), *(vector(dtype, int(lanes), used) for (dtype, lanes), used in in_order)])
