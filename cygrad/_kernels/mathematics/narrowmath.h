/* Numbers of 16 bits or fewer, which are stored only: as floats, and back, rounded to the nearest, ties to even. NaN keeps its sign and
 * the bits there is room for, and is quiet. No branches and no `_Float16`, whose conversions are calls before F16C: the same bits on
 * every level and every architecture. Each format has its two conversions, and a line of CG_NEIGHBOURS and of CG_NARROW_VECTORS.
 */
#ifndef CG_NARROWMATH_H
#define CG_NARROWMATH_H

/* The instructions for float16, of a vector and of a number; of an architecture, or of a level of it. */
#if defined(__F16C__) && !defined(__clang__)
#define CG_HAVE_HALF
typedef short cg_eight_shorts __attribute__((vector_size(16)));
typedef float cg_four_floats __attribute__((vector_size(16)));
typedef short cg_half_vector __attribute__((vector_size(CG_VECTOR_BYTES / 2)));
typedef float cg_wide_vector __attribute__((vector_size(CG_VECTOR_BYTES)));
#if CG_VECTOR_BYTES == 64
#define CG_WIDEN(narrow) __builtin_ia32_vcvtph2ps512_mask(narrow, (cg_wide_vector){0}, (short)-1, 4)
#define CG_NARROW(wide) __builtin_ia32_vcvtps2ph512_mask(wide, 0, (cg_half_vector){0}, (short)-1)
#else
#define CG_WIDEN(narrow) __builtin_ia32_vcvtph2ps256(narrow)
#define CG_NARROW(wide) __builtin_ia32_vcvtps2ph256(wide, 0)
#endif
#define CG_WIDENED(x) __builtin_ia32_vcvtph2ps((cg_eight_shorts){(short)x})[0]
#define CG_NARROWED(x) (uint16_t)__builtin_ia32_vcvtps2ph((cg_four_floats){x}, 0)[0]
#elif defined(__aarch64__) && defined(__ARM_FP16_FORMAT_IEEE)
#include <arm_neon.h>
#define CG_HAVE_HALF
typedef float16x4_t cg_half_vector;
typedef float32x4_t cg_wide_vector;
#define CG_WIDEN(narrow) vcvt_f32_f16(narrow)
#define CG_NARROW(wide) vcvt_f16_f32(wide)
#define CG_WIDENED(x) ((union { uint16_t bits; __fp16 number; }){x}.number)
#define CG_NARROWED(x) ((union { __fp16 number; uint16_t bits; }){(__fp16)x}.bits)
#endif

CG_INLINE float widened_float16(cg_float16 x)
{
#ifdef CG_HAVE_HALF
    return CG_WIDENED(x.bits);
#endif
    const uint32_t shifted = (uint32_t)(x.bits & 0x7fff) << 13, sign = (uint32_t)(x.bits & 0x8000) << 16;
    const uint32_t finite = bits_float32(real_float32(shifted) * 0x1p112f); /* of subnormal numbers, too */
    const uint32_t infinite = shifted | 0x7f800000 | (shifted > 0x0f800000 ? 0x400000 : 0);
    return real_float32((shifted < 0x0f800000 ? finite : infinite) | sign);
}

CG_INLINE cg_float16 narrowed_float16(float x)
{
#ifdef CG_HAVE_HALF
    return (cg_float16){CG_NARROWED(x)};
#endif
    const uint32_t bits = bits_float32(x), size = bits & 0x7fffffff;
    const uint32_t normal = (size - (112 << 23) + 0xfff + ((size >> 13) & 1)) >> 13;
    const uint32_t subnormal = bits_float32(real_float32(size) + 0.5f) - 0x3f000000; /* the sum rounds at 2^-24 */
    const uint32_t infinite = size > 0x7f800000 ? 0x7e00 | ((size >> 13) & 0x3ff) : 0x7c00;
    const uint32_t result = size < (113u << 23) ? subnormal : size < (143u << 23) ? normal : infinite;
    return (cg_float16){(uint16_t)(result | ((bits >> 16) & 0x8000))};
}

CG_INLINE float widened_bfloat16(cg_bfloat16 x) { return real_float32((uint32_t)x.bits << 16); }

CG_INLINE cg_bfloat16 narrowed_bfloat16(float x)
{
    const uint32_t bits = bits_float32(x), rounded = bits + 0x7fff + ((bits >> 16) & 1);
    return (cg_bfloat16){(uint16_t)((x == x ? rounded : bits | 0x400000) >> 16)};
}

/* The number beside x on the side of y; y where they are equal. By their bits, since floats have nearer ones. */
#define CG_NEIGHBOURS(D, width, digits)                                                                              \
    CG_EXACT_FUNCTION cg_##D nextafter_##D(cg_##D x, cg_##D y)                                                       \
    {                                                                                                                \
        enum { SIGN = 1 << (width - 1), INFINITE = (SIGN - 1) >> digits << digits, QUIET = 1 << (digits - 1) };      \
        const int##width##_t size = x.bits & (SIGN - 1), other = y.bits & (SIGN - 1);                                \
        const uint##width##_t least = (y.bits & SIGN) | (other != 0);                                                \
        const uint##width##_t beside = x.bits + ((size > other) | ((int##width##_t)(x.bits ^ y.bits) < 0) ? -1 : 1); \
        const uint##width##_t next = size == 0 ? least : x.bits == y.bits ? x.bits : beside;                         \
        return (cg_##D){size > INFINITE ? x.bits | QUIET : other > INFINITE ? y.bits | QUIET : next};                \
    }
CG_NEIGHBOURS(float16, 16, 10)
CG_NEIGHBOURS(bfloat16, 16, 7)

/* A vector of them, from memory into registers and back. */
#define CG_NARROW_LANES(format) (CG_VECTOR_BYTES / (int)sizeof(cg_##format))
#define CG_NARROW_VECTORS(format)                                                                                 \
    CG_INLINE void widen_##format(float *to, const cg_##format *from) {                                           \
        _Pragma("omp simd") for (int k = 0; k < CG_NARROW_LANES(format); k++) to[k] = widened_##format(from[k]);  \
    }                                                                                                             \
    CG_INLINE void narrow_##format(cg_##format *to, const float *from) {                                          \
        _Pragma("omp simd") for (int k = 0; k < CG_NARROW_LANES(format); k++) to[k] = narrowed_##format(from[k]); \
    }
#ifdef CG_HAVE_HALF
CG_INLINE void widen_float16(float *to, const cg_float16 *from)
{
    for (int k = 0; k < 2; k++) {
        cg_half_vector narrow;
        memcpy(&narrow, from + k * (CG_NARROW_LANES(float16) / 2), sizeof(narrow));
        const cg_wide_vector wide = CG_WIDEN(narrow);
        memcpy(to + k * (CG_NARROW_LANES(float16) / 2), &wide, sizeof(wide));
    }
}

CG_INLINE void narrow_float16(cg_float16 *to, const float *from)
{
    for (int k = 0; k < 2; k++) {
        cg_wide_vector wide;
        memcpy(&wide, from + k * (CG_NARROW_LANES(float16) / 2), sizeof(wide));
        const cg_half_vector narrow = CG_NARROW(wide);
        memcpy(to + k * (CG_NARROW_LANES(float16) / 2), &narrow, sizeof(narrow));
    }
}
#else
CG_NARROW_VECTORS(float16)
#endif
CG_NARROW_VECTORS(bfloat16)
#endif
