/* Included by every generated file of loops: types of the tables, the loop forms, the cast.
 *
 * CG_LOOP is for exact formulas: a scalar tail has the same bits as the vector body. CG_VECTORS is for vector mathematics:
 * whole vectors only, running over the end of the arrays by less than 64 bytes (the drivers see to it that they may).
 * Streams are for large outputs.
 * Input and output are the same memory or disjoint, hence `omp simd`; no `restrict`, since they may be the same.
 */
#ifndef CG_LOOPS_H
#define CG_LOOPS_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "kernels.h"
#include "mathematics/vecmath.h"
#include "mathematics/inversemath.h"
#include "mathematics/complexmath.h"
#include "mathematics/errormath.h"
#include "mathematics/integermath.h"
#include "mathematics/narrowmath.h"

#define CG_UNUSED __attribute__((unused))
#define CG_LOOP(T, n) _Pragma("omp simd") for (intptr_t i = 0; i < (n); i++)
#define CG_SERIAL_LOOP(n) for (intptr_t i = 0; i < (n); i++)
#if defined(__GNUC__) && !defined(__clang__)
#define CG_SERIAL __attribute__((noinline, optimize("no-tree-vectorize"))) /* less code */
#else
#define CG_SERIAL __attribute__((noinline))
#endif
#define CG_COLD __attribute__((noinline, cold))
/* k counts from 0 since first + VL may wrap (-fwrapv), which would make gcc add scalar paths. */
#define CG_VL(T) (CG_BLOCK_BYTES / (intptr_t)sizeof(T))
#define CG_VECTORS(T, n) for (intptr_t first = 0; first < (n); first += CG_VL(T))
#define CG_LANE(T) _Pragma("omp simd") for (intptr_t k = 0; k < CG_VL(T); k++)

/* Formulas are so long that the processor does not see the next misses. Cached data need no prefetch; the condition is hidden,
   since gcc would make two loops of it. */
#define CG_FAR(T, n) int far = (n) * (intptr_t)sizeof(T) > 32768; __asm__("" : "+r"(far))
#define CG_IS_FAR __builtin_expect(far, 0)
#define CG_FETCH_BLOCK(address) __builtin_prefetch((const char *)(address) + 2048)
#define CG_FETCH_ROW(address) __builtin_prefetch((const char *)(address) + CG_ROW_AHEAD)

/* A vector of an output that no cache holds is written past the caches: memory is not read first to be written whole. The
   driver ends the streams of a thread (cg_stream_end). Arm's processors see by themselves that lines are written whole. */
#define CG_VECTOR(T) T CG_ALIGNED vector[CG_VL(T)]
#define CG_STREAM_VECTOR(address, block) \
    for (int part = 0; part < CG_BLOCK_BYTES; part += CG_VECTOR_BYTES) cg_stream((char *)(address) + part, (const char *)(block) + part)
#define CG_ALIGNED __attribute__((aligned(CG_VECTOR_BYTES)))
typedef long long cg_vector __attribute__((vector_size(CG_VECTOR_BYTES)));
typedef cg_vector cg_unaligned_vector __attribute__((aligned(1)));
static inline void cg_stream(void *out, const void *block) { /* by builtins: the header of the intrinsics takes 0.3 s to read */
    cg_vector *const target = out;
    const cg_vector vector = *(const cg_unaligned_vector *)block;
#if __has_builtin(__builtin_nontemporal_store)
    __builtin_nontemporal_store(vector, target);
#elif defined(__x86_64__) && CG_VECTOR_BYTES == 64
    __builtin_ia32_movntdq512(target, vector);
#elif defined(__x86_64__) && CG_VECTOR_BYTES == 32
    __builtin_ia32_movntdq256(target, vector);
#elif defined(__x86_64__)
    __builtin_ia32_movntdq(target, vector);
#else
    *target = vector;
#endif
}

#include "mathematics/roots.h"

/* Past the caches; whole vectors, the target aligned to one. */
#define CG_STREAM_COPY(name)                                                         \
    static void name(char *target, const char *block, intptr_t nbytes) {             \
        for (intptr_t i = 0; i < nbytes; i += CG_VECTOR_BYTES) cg_stream(target + i, block + i); \
    }

/* Lanes of a dense reduction: the same number on every instruction set, for the same bits. */
#define CG_LANES 64
#define CG_FEW_LANES 4
#define CG_BESIDE 32 /* short reductions side by side */
#define CG_COMPARED_AT_ONCE 64 /* elements that are compared before it is asked whether one was equal */
/* Bytes to fetch ahead, into the second-level cache, in a whole block: it is one of many, and hardware prefetchers stop at the
   end of a page. */
#define CG_AHEAD 32768
#define CG_FETCH(address, nbytes) \
    for (int line = 0; line < (nbytes); line += 64) __builtin_prefetch((const char *)(address) + CG_AHEAD + line, 0, 1)

/* Complex numbers of bools and integers, and the other way. */
#define CG_RARE_CAST(name, S, D, value)                                                                          \
    void name(char *d, intptr_t ds, const char *s, intptr_t ss, intptr_t n) {                             \
        for (intptr_t i = 0; i < n; i++) {                                               \
            const S x = *(const S *)(s + i * ss); *(D *)(d + i * ds) = value;                                    \
        }                                                                                                        \
    }

/* The dense case stands apart because gcc does not vectorise over a stride that is no constant. */
#define CG_CAST(name, S, D, value)                                                                               \
    void name(char *d, intptr_t ds, const char *s, intptr_t ss, intptr_t n) {                             \
        if (ds == (intptr_t)sizeof(D) && ss == (intptr_t)sizeof(S)) {                                            \
            CG_LOOP(D, n) { const S x = ((const S *)s)[i]; ((D *)d)[i] = value; }                                \
        } else if (ds == (intptr_t)sizeof(D) && ss == 0) {                                                       \
            const S x = *(const S *)s; const D y = value; CG_LOOP(D, n) ((D *)d)[i] = y;                         \
        } else {                                                                                                 \
            for (intptr_t i = 0; i < n; i++) { const S x = *(const S *)(s + i * ss); *(D *)(d + i * ds) = value; } \
        }                                                                                                        \
    }

/* Loops that convert numbers of 16 bits in registers, in whole vectors, are worth their bytes where conversions are instructions. */
#if defined(CG_HAVE_HALF) && !defined(__SANITIZE_ADDRESS__)
#define CG_NARROW_LOOPS
#define CG_NARROW_LOOP(name) name
#else
#define CG_NARROW_LOOP(name) 0
#endif

/* Between floats and 16-bit floats. `move` is widen or narrow. */
#define CG_NARROW_CAST(name, S, D, format, move)                                             \
    void name(char *d, intptr_t ds, const char *s, intptr_t ss, intptr_t n) {                \
        intptr_t i = 0;                                                                      \
        if (ds == (intptr_t)sizeof(D) && ss == (intptr_t)sizeof(S))                          \
            for (; i + CG_NARROW_LANES(format) <= n; i += CG_NARROW_LANES(format))           \
                move##_##format((D *)d + i, (const S *)s + i);                               \
        for (; i < n; i++) *(D *)(d + i * ds) = move##ed_##format(*(const S *)(s + i * ss)); \
    }

/* A dtype without a conversion of its own goes by way of another dtype of some bytes, as in torch. */
CG_SERIAL static void cg_cast_by(int size, char *d, intptr_t ds, const char *s, intptr_t ss, intptr_t n, cg_cast first, cg_cast second) {
    cg_number block[64];
    for (intptr_t i = 0; i < n; i += 64) {
        const intptr_t part = n - i < 64 ? n - i : 64;
        first((char *)block, size, s + i * ss, ss, part);
        second(d + i * ds, ds, (const char *)block, size, part);
    }
}
#define CG_CAST_BY(name, size, first, second)                                             \
    static void name(char *d, intptr_t ds, const char *s, intptr_t ss, intptr_t n) {     \
        cg_cast_by(size, d, ds, s, ss, n, first, second);                                \
    }

/* Memory behind the end is poisoned there (poison.h): the last vector is cut short, so that any other step over it is found. */
#ifdef __SANITIZE_ADDRESS__
#undef CG_LANE
#define CG_LANE(T) for (intptr_t k = 0; k < CG_VL(T) && first + k < n; k++)
#endif
#endif
