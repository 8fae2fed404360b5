/* The algorithms of blocked.h for one level: each type of number once. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "blocked.h"

/* Four doubles are a vector of 32 bytes: levels above have no loops of their own, and vectors of 16 bytes are not worth the code. */
#if CG_VECTOR_BYTES == 32 || defined(CG_NATIVE)
#define CG_FEW_PRODUCTS
#endif
#define CG_T float
#define CG_NAME(name) name##_float32
#include "small_products_template.h"
#define CG_T double
#define CG_NAME(name) name##_float64
#include "small_products_template.h"

/* From here on products are added without being rounded, where there is such an instruction. Long operations are written in vectors, or
 * CG_VECTORISED: the compiler would make vectors of short ends, too. */
#ifdef __clang__
#pragma clang fp contract(fast)
#define CG_VECTORISED static __attribute__((noinline))
#else
#pragma GCC optimize("fp-contract=fast", "no-tree-vectorize", "no-version-loops-for-strides")
#define CG_VECTORISED static __attribute__((noinline, noclone, optimize("tree-vectorize")))
#endif

/* Columns of a tile, whose sums fill the registers, and numbers from one of its packed columns to the next. */
#if CG_VECTOR_BYTES == 64 || defined(__aarch64__)
#define CG_COLUMNS 8
#else
#define CG_COLUMNS 4
#endif

/* For vectors of 32 bytes and less OpenBLAS's products are as quick. Where they are taken, threads pay for many multiplications only: BLAS
 * has threads of its own, which hold their processors for milliseconds after a product, as ours do. */
#if CG_VECTOR_BYTES == 64
#define CG_SLOWER_UNTIL 0x1p19
#define CG_QUICKER_UNTIL 0x1p27
#define CG_SHARE 4
#else
#define CG_SLOWER_UNTIL 0
#define CG_QUICKER_UNTIL 0
#define CG_SHARE 128
#endif

/* OpenBLAS packs the matrix. Vectors of 16 bytes are not worth the code. */
#if CG_VECTOR_BYTES > 16
#define CG_THIN_FROM 0x1p14
#else
#define CG_THIN_FROM HUGE_VAL
#endif

enum { CG_NARROW = 8, CG_HEIGHT = CG_DEPTH + 64, CG_PANEL = 64 };

#define CG_T float
#define CG_BITS int32_t
#define CG_LEAST FLT_MIN
#define CG_DIGIT FLT_EPSILON
#define CG_SQRT __builtin_sqrtf
#define CG_NAME(name) name##_float32
#include "blocked_template.h"
#define CG_T double
#define CG_BITS int64_t
#define CG_LEAST DBL_MIN
#define CG_DIGIT DBL_EPSILON
#define CG_SQRT __builtin_sqrt
#define CG_NAME(name) name##_float64
#include "blocked_template.h"

const cg_blocked *const CG_TABLE(cg_blocked)[2] = {&algorithms_float32, &algorithms_float64};
