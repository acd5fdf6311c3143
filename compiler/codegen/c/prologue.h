/* The beginning of programs of style c, with the prefix of their public names for `prefix`. */

#include "prefix.h"

#include <float.h>
#include <stdbool.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "results are wrong with -ffast-math"
#endif
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 1
#error "results are wrong with excess precision: on x86 of 32 bits, compile with -msse2 -mfpmath=sse"
#endif

#if defined(__GNUC__) || defined(__clang__)
/* Comparisons that the sizes and types of the program make constant. */
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
/* Flags are combined without branches; loops that write whole arrays are not known to do so. */
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#elif __has_warning("-Wbitwise-instead-of-logical")
#pragma GCC diagnostic ignored "-Wbitwise-instead-of-logical"
#endif
#define INLINE static inline __attribute__((always_inline, unused))
#define MAY_ALIAS __attribute__((may_alias))
#define RESTRICT __restrict__
#define ALIGNED __attribute__((aligned(64)))
#else
#define INLINE static
#define MAY_ALIAS
#define RESTRICT
#define ALIGNED
#endif
#if defined(prefix_WEIGHTS_SECTION)
#define SECTION __attribute__((section(prefix_WEIGHTS_SECTION)))
#else
#define SECTION
#endif

/* Bytes of the vectors of the processor; 0 if the compiler has none. */
#if !defined(__GNUC__) && !defined(__clang__)
#define VECTOR_BYTES 0
#elif defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#elif defined(__SSE2__) || defined(__aarch64__) && defined(__ARM_NEON)
#define VECTOR_BYTES 16
#else
#define VECTOR_BYTES 0
#endif

/* Moves a variable to memory. Caches may take the memory at an offset in bytes, which need not be part of the data. */
#if defined(__GNUC__) || defined(__clang__)
#define IN_MEMORY(x) __asm__("" : "+m"(x))
#define PREFETCH(data, bytes) __builtin_prefetch((const void *)((uintptr_t)(data) + (bytes)), 0, 3)
#else
#define IN_MEMORY(x) (void)0
#define PREFETCH(data, bytes) (void)0
#endif

/* Functions on elements, which loops over vectors inline. */
#if VECTOR_BYTES && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define ELEMENTWISE INLINE
#else
#define ELEMENTWISE static
#endif

/* A loop whose iterations do not depend on each other, which vectors replace before it may be unrolled. */
#if defined(__clang__)
#pragma GCC diagnostic ignored "-Wpass-failed"
#define LANES(j, n) _Pragma("clang loop vectorize(assume_safety)") for (int j = 0; j < (n); ++j)
#elif defined(__GNUC__)
#define LANES(j, n) _Pragma("GCC ivdep") _Pragma("GCC unroll 1") for (int j = 0; j < (n); ++j)
#else
#define LANES(j, n) for (int j = 0; j < (n); ++j)
#endif

/* Defined if the processor adds a product to a number and rounds once. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMAF) && defined(__FP_FAST_FMA)
#define FUSED
#endif
