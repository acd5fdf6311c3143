"""C99 as a language of the C family, and the functions that generated code defines for itself.

Only the functions that a file uses are written into it. No function needs a library: those on floats work on bits, or
use instructions where the processor has them. Bits are copied by `memcpy`, so accesses are right under strict aliasing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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

#: primitives on vectors of floats that processors have -> operator
ARITHMETIC: Final = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
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
_VECTOR_HEAD = """/* {lanes} elements, in parts of {part} that the processor computes at once. */
typedef {T} {v}_part __attribute__((vector_size({bytes})));
typedef {T} {v}_memory __attribute__((vector_size({bytes}), aligned({item}), may_alias));
typedef struct {{
  {v}_part {parts};
}} MAY_ALIAS {v};
"""


#: chooses elements of two vectors
_SHUFFLE = """#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(v, x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
typedef int{bits}_t {v}_mask __attribute__((vector_size({bytes})));
#define SHUFFLE(v, x, y, ...) __builtin_shuffle(x, y, __extension__(v##_mask){{__VA_ARGS__}})
#endif
"""


def _vector(dtype: str, lanes: int, used: Collection[str]) -> str:
    """A vector type, with the operations that are used, for each size of the vectors of a processor."""
    item = BY_NAME[dtype].itemsize
    if dtype == "i1":  # flags, one by one
        return _chosen(_vector_of_elements(dtype, lanes), used)
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
            for name, sign in ARITHMETIC.items()
        },
        "multiply_add": _multiply_add_of_parts(dtype, v, parts, part),
        "store": _statements(v, "store", f"mem_{dtype} *m, {v} x",
            *(f"*({v}_memory *)(m + {p * part}) = x.p{p};" for p in parts),
        ),
        "transpose": _transpose_of_parts(v, lanes, part),
        "lane": f"INLINE {type} {v}_lane({v} x, int i) {{ return {chosen}x.p{last}[i - {last * part}]; }}\n",
    }  # fmt: skip


def _multiply_add_of_parts(dtype: str, v: str, parts: Sequence[int], part: int) -> str:
    """Parts that no instruction takes are computed by elements."""
    item, wide = BY_NAME[dtype].itemsize, dtype == "f64"
    bits, kind = 8 * item * part, "pd" if wide else "ps"
    prefix, neon = "" if bits == 128 else bits, f"float{8 * item}x{part}_t"
    parameters, head = f"{v} x, {v} y, {v} z", f"{v} r;"
    vector = f"__m{bits}{'d' if wide else ''}"
    x86 = [
        f"r.p{p} = ({v}_part)_mm{prefix}_fmadd_{kind}(({vector})x.p{p}, ({vector})y.p{p}, ({vector})z.p{p});"
        for p in parts
    ]
    arm = [f"r.p{p} = ({v}_part)vfmaq_{dtype}(({neon})z.p{p}, ({neon})x.p{p}, ({neon})y.p{p});" for p in parts]
    alone = [f"r.p{p}[i] = multiply_add_{dtype}(x.p{p}[i], y.p{p}[i], z.p{p}[i]);" for p in parts]
    separate = [head, *(f"r.p{p} = x.p{p} * y.p{p};" for p in parts), *(f"r.p{p} = r.p{p} + z.p{p};" for p in parts)]
    texts = [("!defined(FUSED)", "", separate)]
    if bits >= 128:
        texts.append(("defined(__x86_64__) || defined(__i386__)", "#include <immintrin.h>\n", [head, *x86]))
    if bits == 128:
        texts.append(("defined(__aarch64__)", "#include <arm_neon.h>\n", [head, *arm]))
    loop = [head, "int i;", f"for (i = 0; i < {part}; ++i) {{", *(f"  {line}" for line in alone), "}"]
    made = [
        f"#{'elif' if number else 'if'} {test}\n{include}{_function(v, 'multiply_add', parameters, *lines)}"
        for number, (test, include, lines) in enumerate(texts)
    ]
    return "".join([*made, f"#else\n{_function(v, 'multiply_add', parameters, *loop)}#endif\n"])


def _transpose_of_parts(v: str, lanes: int, part: int) -> str:
    """Squares of parts are transposed; in each step, pairs of parts exchange halves of blocks of elements."""
    steps, distance = [], 1
    while distance < part:
        low = [n if not n & distance else part + n - distance for n in range(part)]
        high = [n + distance if not n & distance else part + n for n in range(part)]
        for first in (n for n in range(part) if not n & distance):
            x, y = f"m[{first}]", f"m[{first + distance}]"
            steps += [f"p = {x};", *(
                f"{to} = SHUFFLE({v}, p, {y if to == x else 'q'}, {', '.join(map(str, half))});"
                for to, half in ((x, low), (y, high))
            )]  # fmt: skip
            steps[-2:-2] = [f"q = {y};"]
        distance *= 2
    mask = _SHUFFLE.format(v=v, bytes=4 * part if v[1:3] == "32" else 8 * part, bits=v[1:3])
    square = mask + _statements(v, "square", f"{v}_part *m", f"{v}_part p, q;", *steps)
    blocks = lanes // part
    rows = [
        line
        for across in range(blocks)
        for down in range(blocks)
        for line in (
            f"for (i = 0; i < {part}; ++i) m[i] = t[{down * part} + i].p{across};",
            f"{v}_square(m);",
            f"for (i = 0; i < {part}; ++i) r[{across * part} + i].p{down} = m[i];",
        )
    ]
    copied = f"for (i = 0; i < {lanes}; ++i) t[i] = r[i];"
    return square + _statements(v, "transpose", f"{v} *t", f"{v} r[{lanes}];", f"{v}_part m[{part}];", "int i;",
                                *rows, copied)  # fmt: skip


def _statements(vector: str, name: str, parameters: str, *statements: str) -> str:
    """A function without a result."""
    body = "".join(f"  {line}\n" for line in statements)
    return f"INLINE void {vector}_{name}({parameters})\n{{\n{body}}}\n"


def _vector_of_elements(dtype: str, lanes: int) -> dict[str, str]:
    """The same with elements one by one."""
    type, v = LANGUAGE.types[dtype], f"{dtype}x{lanes}"
    head, loop = (f"{v} r;", "int i;"), f"for (i = 0; i < {lanes}; ++i) r.e[i] = "
    names = [f"x{lane}" for lane in range(lanes)]
    return {
        "": f"typedef struct {{\n  {type} e[{lanes}];\n}} MAY_ALIAS {v};\n",
        "load": _function(v, "load", f"const mem_{dtype} *m", *head, f"{loop}m[i];"),
        "of": _function(
            v, "of", ", ".join(f"{type} {name}" for name in names), f"{v} r;",
            *(f"r.e[{lane}] = {name};" for lane, name in enumerate(names)),
        ),
        "splat": _function(v, "splat", f"{type} x", *head, f"{loop}x;"),
        **{
            name: _function(v, name, f"{v} x, {v} y", *head, f"{loop}x.e[i] {sign} y.e[i];")
            for name, sign in ARITHMETIC.items()
        },
        "multiply_add": _function(
            v, "multiply_add", f"{v} x, {v} y, {v} z", *head, f"{loop}multiply_add_{dtype}(x.e[i], y.e[i], z.e[i]);"
        ),
        "store": _statements(v, "store", f"mem_{dtype} *m, {v} x", "int i;", f"for (i = 0; i < {lanes}; ++i) m[i] = x.e[i];"),
        "transpose": _statements(
            v, "transpose", f"{v} *t", "int i, j;", f"for (i = 0; i < {lanes}; ++i) {{", "  for (j = 0; j < i; ++j) {",
            f"    const {type} x = t[i].e[j];", "    t[i].e[j] = t[j].e[i];", "    t[j].e[i] = x;", "  }", "}",
        ),
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
    (r"multiply_add_(f32|f64)", _float(_MULTIPLY_ADD)),
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
        if name == "multiply_add":
            need(f"multiply_add_{dtype}")
        vectors.setdefault((dtype, lanes), set()).add(name)
    need(text)
    return "".join([*found.values(), *(_vector(dtype, int(lanes), used) for (dtype, lanes), used in vectors.items())])
