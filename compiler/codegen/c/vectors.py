"""Vectors in C: a type per element type and number of lanes, and functions on them.

A vector consists of parts that the processor computes at once, by the vector types of GCC and Clang. Where the compiler
or the processor has none, it is an array of elements. The same text has both, and one for each size of parts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from orchestrion.compiler.targets.cpu.squares import exchanges
from orchestrion.schema.dtypes import BY_NAME, SIGNED

from .language import LANGUAGE

#: primitives on vectors of floats that processors have -> operator
ARITHMETIC: Final = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
#: the same on vectors of integers, and the least bits of these
WRAPPING: Final = {"add": "+", "subtract": "-", "multiply": "*"}
WRAPPING_BITS: Final = 32
_VECTOR_HEAD = """/* {lanes} elements, in parts of {part} that the processor computes at once. */
typedef {T} {v}_part __attribute__((vector_size({bytes})));
typedef {T} {v}_memory __attribute__((vector_size({bytes}), aligned({item}), may_alias));
typedef struct {{
  {v}_part {parts};
}} MAY_ALIAS {v};
"""


#: the type in which sums and products of integers with a sign wrap
_UNSIGNED = "typedef uint{bits}_t {v}_wrapping __attribute__((vector_size({bytes})));\n"
#: chooses elements of two vectors
_SHUFFLE = """#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(v, x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
typedef int{bits}_t {v}_mask __attribute__((vector_size({bytes})));
#define SHUFFLE(v, x, y, ...) __builtin_shuffle(x, y, __extension__(v##_mask){{__VA_ARGS__}})
#endif
"""


def vector(dtype: str, lanes: int, used: Collection[str]) -> str:
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
    wraps, unsigned = BY_NAME[dtype].kind == SIGNED, _UNSIGNED.format(v=v, bits=8 * item, bytes=part * item)
    result, operand = (f"({v}_part)", f"({v}_wrapping)") if wraps else ("", "")
    chosen = "".join(f"i < {(p + 1) * part} ? x.p{p}[i - {p * part}] : " for p in range(last))
    return {
        "": _VECTOR_HEAD.format(
            T=type, v=v, lanes=lanes, part=part, bytes=part * item, item=item, parts=", ".join(f"p{p}" for p in parts)
        )
        + (unsigned if wraps else ""),
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
            name: _function(
                v, name, f"{v} x, {v} y", f"{v} r;",
                *(f"r.p{p} = {result}({operand}x.p{p} {sign} {operand}y.p{p});" for p in parts),
            )
            for name, sign in ARITHMETIC.items()
        },
        "multiply_add": _multiply_add_of_parts(dtype, v, parts, part),
        "multiply_add_bytes": _bytes_of_parts(v, lanes, parts, part * item),
        "choose": f"typedef uint{8 * item}_t {v}_bits __attribute__((vector_size({part * item})));\n" + _function(
            v, "choose", f"bool c, {v} x, {v} y", f"const uint{8 * item}_t mask = (uint{8 * item}_t)0 - c;", f"{v} r;",
            *(f"r.p{p} = ({v}_part)((({v}_bits)x.p{p} & mask) | (({v}_bits)y.p{p} & ~mask));" for p in parts),
        ),
        "store": _statements(v, "store", f"mem_{dtype} *m, {v} x",
            *(f"*({v}_memory *)(m + {p * part}) = x.p{p};" for p in parts),
        ),
        "transpose": _transpose_of_parts(v, lanes, part),
        "lane": f"INLINE {type} {v}_lane({v} x, int i) {{ return {chosen}x.p{last}[i - {last * part}]; }}\n",
    }  # fmt: skip


def _bytes_of_parts(v: str, lanes: int, parts: Sequence[int], size: int) -> str:
    """Products of the even and the odd bytes fit 16 bits; their sum is one of 32 bits without signs, which wraps."""
    types = [("half", "int16_t"), ("halves", "uint16_t"), ("word", "int32_t"), ("words", "uint32_t")]
    names = [f"typedef {type} {v}_{name} __attribute__((vector_size({size})));\n" for name, type in types]
    lines = []
    for p in parts:
        lines += [f"{v}_words s{p} = ({v}_words)z.p{p};"]
        for even in (True, False):
            x, y = (
                f"(({v}_half)(({v}_halves){name}.p{p} << 8) >> 8)" if even else f"(({v}_half){name}.p{p} >> 8)"
                for name in "xy"
            )
            q = f"q{p}{'e' if even else 'o'}"
            lines += [
                f"const {v}_half {q} = {x} * {y};",
                f"s{p} += ({v}_words)(({v}_word)(({v}_words){q} << 16) >> 16) + ({v}_words)(({v}_word){q} >> 16);",
            ]
    sums = [f"r.p{p} = ({v}_part)s{p};" for p in parts]
    parameters = f"ui32x{lanes} x, ui32x{lanes} y, {v} z"
    return "".join(names) + _function(v, "multiply_add_bytes", parameters, f"{v} r;", *lines, *sums)


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
    """Squares of parts are transposed."""
    steps = []
    for first, second, *masks in exchanges(part):
        x, y = f"m[{first}]", f"m[{second}]"
        low, high = (", ".join(map(str, mask)) for mask in masks)
        steps += [f"p = {x};", f"q = {y};", f"{x} = SHUFFLE({v}, p, {y}, {low});", f"{y} = SHUFFLE({v}, p, q, {high});"]
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
    wraps = BY_NAME[dtype].kind == SIGNED
    result, operand = (f"({type})", f"(uint{BY_NAME[dtype].bits}_t)") if wraps else ("", "")
    return {
        "": f"typedef struct {{\n  {type} e[{lanes}];\n}} MAY_ALIAS {v};\n",
        "load": _function(v, "load", f"const mem_{dtype} *m", *head, f"{loop}m[i];"),
        "of": _function(
            v, "of", ", ".join(f"{type} {name}" for name in names), f"{v} r;",
            *(f"r.e[{lane}] = {name};" for lane, name in enumerate(names)),
        ),
        "splat": _function(v, "splat", f"{type} x", *head, f"{loop}x;"),
        **{
            name: _function(v, name, f"{v} x, {v} y", *head, f"{loop}{result}({operand}x.e[i] {sign} {operand}y.e[i]);")
            for name, sign in ARITHMETIC.items()
        },
        "multiply_add": _function(
            v, "multiply_add", f"{v} x, {v} y, {v} z", *head, f"{loop}multiply_add_{dtype}(x.e[i], y.e[i], z.e[i]);"
        ),
        "multiply_add_bytes": _function(
            v, "multiply_add_bytes", f"ui32x{lanes} x, ui32x{lanes} y, {v} z", f"{v} r;", "int i, k;",
            f"for (i = 0; i < {lanes}; ++i) {{", "  uint32_t s = (uint32_t)z.e[i];", "  for (k = 0; k < 32; k += 8)",
            "    s += (((x.e[i] >> k & 255u) ^ 128u) - 128u) * (((y.e[i] >> k & 255u) ^ 128u) - 128u);",
            "  r.e[i] = (int32_t)s;", "}",
        ),
        "choose": _function(v, "choose", f"bool c, {v} x, {v} y", *head, f"{loop}choose_{dtype}(c, x.e[i], y.e[i]);"),
        "store": _statements(
            v, "store", f"mem_{dtype} *m, {v} x", "int i;", f"for (i = 0; i < {lanes}; ++i) m[i] = x.e[i];"
        ),
        "transpose": _statements(
            v, "transpose", f"{v} *t", "int i, j;", f"for (i = 0; i < {lanes}; ++i) {{", "  for (j = 0; j < i; ++j) {",
            f"    const {type} x = t[i].e[j];", "    t[i].e[j] = t[j].e[i];", "    t[j].e[i] = x;", "  }", "}",
        ),
        "lane": f"INLINE {type} {v}_lane({v} x, int i) {{ return x.e[i]; }}\n",
    }  # fmt: skip
