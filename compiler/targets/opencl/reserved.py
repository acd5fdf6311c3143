"""Identifiers that OpenCL C 1.2 keeps for itself, so that no kernel may have them: keywords, types, built-in functions
and macros (OpenCL 1.2, 6.1, 6.9 and 6.12; C99, 6.4.1). Drivers refuse them, with a message about a line nobody wrote.
"""

import re

_KEYWORDS = """
auto break case char const continue default do double else enum extern false float for goto if inline int long
register restrict return short signed sizeof static struct switch true typedef union unsigned void volatile while
_Bool _Complex _Imaginary bool complex half imaginary quad uchar uint ulong ushort event_t image1d_array_t
image1d_buffer_t image1d_t image2d_array_t image2d_t image3d_t intptr_t ptrdiff_t sampler_t size_t uintptr_t constant
generic global kernel local private read_only read_write write_only main __constant __generic __global __kernel
__local __private __read_only __read_write __write_only __attribute__ __asm__ __inline
""".split()

_FUNCTIONS = """
get_global_id get_global_offset get_global_size get_group_id get_local_id get_local_size get_num_groups get_work_dim
acos acosh acospi asin asinh asinpi atan atan2 atan2pi atanh atanpi cbrt ceil copysign cos cosh cospi erf erfc exp
exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp lgamma lgamma_r log log10 log1p log2
logb mad maxmag minmag modf nan nextafter pow pown powr remainder remquo rint rootn round rsqrt sin sincos sinh sinpi
sqrt tan tanh tanpi tgamma trunc half_cos half_divide half_exp half_exp10 half_exp2 half_log half_log10 half_log2
half_powr half_recip half_rsqrt half_sin half_sqrt half_tan native_cos native_divide native_exp native_exp10
native_exp2 native_log native_log10 native_log2 native_powr native_recip native_rsqrt native_sin native_sqrt
native_tan abs abs_diff add_sat clamp clz hadd mad24 mad_hi mad_sat max min mul24 mul_hi popcount rhadd rotate sub_sat
upsample degrees mix radians sign smoothstep step cross distance dot fast_distance fast_length fast_normalize length
normalize all any bitselect isequal isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan
isnormal isnotequal isordered isunordered select signbit shuffle shuffle2 printf vec_step barrier mem_fence prefetch
read_mem_fence write_mem_fence async_work_group_copy async_work_group_strided_copy wait_group_events atomic_add
atomic_and atomic_cmpxchg atomic_dec atomic_inc atomic_max atomic_min atomic_or atomic_sub atomic_xchg atomic_xor
HUGE_VAL HUGE_VALF INFINITY MAXFLOAT NAN NULL
""".split()

_NAMES = frozenset(_KEYWORDS + _FUNCTIONS)
_NUMBER = "(u?(char|short|int|long)|float|double|half)"
_PATTERN = re.compile(
    rf"{_NUMBER}(2|3|4|8|16)"
    rf"|(as|convert)_{_NUMBER}\w*|v(load|store)(a?_half)?(2|3|4|8|16|)(_rt[ezpn])?"
    r"|(read|write|get)_image\w*"
    r"|(CL|CLK|CHAR|DBL|FLT|FP|HALF|INT|LONG|M|SCHAR|SHRT|UCHAR|UINT|ULONG|USHRT)_[A-Z0-9_]+",
    re.ASCII,
)


def is_reserved(name: str) -> bool:
    """Whether OpenCL C reserves an identifier."""
    return name in _NAMES or _PATTERN.fullmatch(name) is not None
