/* sin, cos and pow where there is no libmvec that has them: the functions that loops call by prototypes with `simd` (vecmath.h). One unit of each level
 * includes this.
 *
 * All numbers of a vector are computed here; those that are too far from 0, or special, become NaN, and the C library is asked for them,
 * lane by lane. So bits do not depend on the position. "1.3, 1.4 ulp": as in vecmath.h. Pure functions, so thread-safe.
 */
#ifndef CG_VECTORCALLS_H
#define CG_VECTORCALLS_H
#ifdef CG_HAVE_VECTOR_CALLS

#include "../generated/log_table.h"

/* ---- angles: near 0, or in the second part of the turn if k is odd, by minimax polynomials in z = r^2 ---- */

CG_INLINE double sine_float64(double r, double z)
{
    return CG_MULTIPLY_ADD(r * z, CG_HORNER6(z, -0x1.5555555555549p-3, 0x1.111111110f87ap-7, -0x1.a01a019c11968p-13, 0x1.71de3577b4798p-19,
        -0x1.ae5e663913aacp-26, 0x1.5d9300981038ap-33), r);
}

CG_INLINE double cosine_float64(double z)
{
    const double half = 0.5 * z, head = 1 - half;
    return head + CG_MULTIPLY_ADD(z * z, CG_HORNER6(z, 0x1.555555555554cp-5, -0x1.6c16c16c1517dp-10, 0x1.a01a019cb1b99p-16,
        -0x1.27e4f809ede4fp-22, 0x1.1ee9ebe776f0cp-29, -0x1.8fae9ba362095p-37), (1 - head) - half);
}

/* As float64, relative error below 2^-28. */
CG_INLINE double sine_float32(double r, double z)
{
    return CG_MULTIPLY_ADD(r * z, CG_HORNER3(z, -0x1.55554596df7b4p-3, 0x1.11075f50033bdp-7, -0x1.994e599dc3026p-13), r);
}

CG_INLINE double cosine_float32(double z)
{
    return CG_MULTIPLY_ADD(z, CG_HORNER4(z, -0x1.ffffffd0bc3a4p-2, 0x1.55553e0cc7a47p-5, -0x1.6c087d10053c0p-10, 0x1.9933d550d04c4p-16), 1);
}

/* sin(x + quarter pi/2); 1.4, 0.6 ulp. */
#define CG_NEAR_ANGLES(D, T, limit)                                                                                   \
    CG_INLINE T turned_##D(T x, uint64_t quarter)                                                                     \
    {                                                                                                                 \
        const quarter_turns turns = quarter_turns_##D(x);                                                             \
        const double z = turns.r * turns.r;                                                                           \
        const uint64_t k = turns.k_bits + quarter, odd = all_bits_if_odd(k), sine = bits_float64(sine_##D(turns.r, z)); \
        const uint64_t result = (sine & ~odd) | (bits_float64(cosine_##D(z)) & odd);                                   \
        return __builtin_fabs(x) < limit ? (T)real_float64(result ^ (k & 2) << 62) : (T)__builtin_nan("");             \
    }                                                                                                                 \
    CG_INLINE T near_sin_##D(T x) { const T y = turned_##D(x, 0); return x == 0 ? x : y; /* -0 */ }                   \
    CG_INLINE T near_cos_##D(T x) { return turned_##D(x, 1); }
CG_NEAR_ANGLES(float64, double, 0x1p24)
CG_NEAR_ANGLES(float32, float, 0x1p20)

/* ---- powers: exp(y log(x)), of a logarithm of twice as many digits ---- */

typedef struct {
    double high, low;
} two_parts;

/* x = 2^k c (1 + r), |r| < 0.006, log(c) and 1 / c from the table, of so few digits that r is exact (as in pow of Arm's Optimized
 * Routines). x > 0, normal.
 */
CG_INLINE two_parts log_of_two_parts(double x)
{
    const uint64_t b = bits_float64(x) - CG_LOG_START + ((uint64_t)1100 << 52); /* see exponent_float64 */
    const uint64_t row = b >> (52 - CG_LOG_DIGITS) & (CG_LOG_ROWS - 1);
    const double k = exponent_float64(b), z = real_float64((b & (((uint64_t)1 << 52) - 1)) + CG_LOG_START);
    const double r = product_plus_float64(z, cg_log_inverse[row], -1);
    const double base = CG_MULTIPLY_ADD(k, 0x1.62e42fefa3800p-1, cg_log[row]), sum = base + r; /* the base is exact */
    const double half = -0.5 * r, square = r * half, cube = r * square, high = sum + square;
    const double even = CG_HORNER4(r * r, -2.0 / 3, -2.0 / 5, -2.0 / 7, -2.0 / 9), odd = CG_HORNER3(r * r, 1.0 / 2, 1.0 / 3, 1.0 / 4);
    const double low = CG_MULTIPLY_ADD(k, 0x1.ef35793c76730p-45, cg_log_low[row]) + ((base - sum) + r);
    const double rest = low + (product_plus_float64(half, r, -square) + ((sum - high) + square)) + cube * CG_MULTIPLY_ADD(r, odd, even);
    const double y = high + rest;
    return (two_parts){y, (high - y) + rest};
}

/* It has the sign of x where y is odd; 1.4 ulp, 1.1 with fused multiply-adds. */
CG_INLINE double near_pow_float64(double x, double y)
{
    const double m = __builtin_fabs(x), whole = __builtin_rint(y), half = 0.5 * y;
    const int known = (m >= 0x1p-1022) & (m < __builtin_inf()) & ((x > 0) | (y == whole));
    const two_parts l = log_of_two_parts(m);
    const double e = y * l.high, lost = CG_MULTIPLY_ADD(y, l.low, product_plus_float64(y, l.high, -e));
    const exp_parts_float64 p = exp_split_float64(e);
    const double rest = expm1_of_r_float64(p.r), rounded = p.low + lost;
    const double size = scale_float64(1, rest + CG_MULTIPLY_ADD(rounded, rest, rounded), p.k_bits);
    const uint64_t odd = bits_if_float64((x < 0) & (half != __builtin_rint(half)), (uint64_t)1 << 63);
    return (known & (__builtin_fabs(e) < 700)) ? real_float64(bits_float64(size) | odd) : __builtin_nan("");
}

/* In double arithmetic; 0.5 ulp. */
CG_INLINE float near_pow_float32(float x, float y)
{
    const float m = __builtin_fabsf(x), half = 0.5f * y;
    const int known = (m > 0) & (m < __builtin_inff()) & ((x > 0) | (y == __builtin_rintf(y)));
    const double e = y * log_float64(m);
    const exp_parts_float64 p = exp_split_float64(e);
    const float size = (float)scale_float64(1, expm1_of_r_float64(p.r), p.k_bits);
    const uint32_t odd = bits_if_float32((x < 0) & (half != __builtin_rintf(half)), (uint32_t)1 << 31);
    return (known & (__builtin_fabs(e) < 700)) ? real_float32(bits_float32(size) | odd) : __builtin_nanf("");
}

/* ---- the functions that are called: scalars where the compiler makes no vectors, and vectors by their names in the ABI of vector functions ---- */

/* An architecture, or a level of it: the letter of its vectors, and how they are passed. */
#if defined(__aarch64__)
#define CG_LETTER n
#define CG_CONVENTION __attribute__((aarch64_vector_pcs))
#else
#define CG_LETTER CG_JOIN(CG_LETTER_, CG_VECTOR_BYTES)
#define CG_LETTER_16 b
#define CG_LETTER_32 d
#define CG_LETTER_64 e
#define CG_CONVENTION
#endif
#define CG_VARIANT_(letter, lanes, operands, name) _ZGV##letter##N##lanes##operands##_cg_##name
#define CG_VARIANT(letter, lanes, operands, name) CG_VARIANT_(letter, lanes, operands, name)

extern double libm_sin(double) CG_CALLED_AS(sin);
extern double libm_cos(double) CG_CALLED_AS(cos);
extern double libm_pow(double, double) CG_CALLED_AS(pow);
extern float libm_sinf(float) CG_CALLED_AS(sinf);
extern float libm_cosf(float) CG_CALLED_AS(cosf);
extern float libm_powf(float, float) CG_CALLED_AS(powf);

/* Under another name than the prototype with `simd`, lest GCC make vectors of the definition. */
#define CG_SCALAR_CALL(T, name, near, parameters, operands)         \
    T scalar_##name parameters CG_CALLED_AS(cg_##name);             \
    T scalar_##name parameters                                      \
    {                                                               \
        const T y = near operands;                                  \
        return y == y ? y : libm_##name operands;                   \
    }

#define CG_VECTORS_CALL(T, V, lanes, letters, name, near, parameters, operands)                      \
    CG_CONVENTION V CG_VARIANT(CG_LETTER, lanes, letters, name) parameters;                          \
    CG_CONVENTION V CG_VARIANT(CG_LETTER, lanes, letters, name) parameters                           \
    {                                                                                                \
        typedef T number;                                                                            \
        V result;                                                                                    \
        number *y = (number *)&result;                                                               \
        int far = 0;                                                                                 \
        _Pragma("omp simd") for (int k = 0; k < lanes; k++) y[k] = near operands;                    \
        _Pragma("omp simd reduction(|:far)") for (int k = 0; k < lanes; k++) far |= y[k] != y[k];    \
        if (__builtin_expect(far, 0))                                                                \
            for (int k = 0; k < lanes; k++) if (y[k] != y[k]) y[k] = libm_##name operands;           \
        return result;                                                                               \
    }
#define CG_OF(vector) ((const number *)&vector)[k]

#define CG_ANGLES_OF(T, V, lanes, name, near) CG_VECTORS_CALL(T, V, lanes, v, name, near, (V a), (CG_OF(a)))
#define CG_POWERS_OF(T, V, lanes, name, near) CG_VECTORS_CALL(T, V, lanes, vv, name, near, (V a, V b), (CG_OF(a), CG_OF(b)))
#define CG_CALLS_OF_DOUBLES(V, lanes)                             \
    typedef double V __attribute__((vector_size(8 * lanes)));     \
    CG_ANGLES_OF(double, V, lanes, sin, near_sin_float64)         \
    CG_ANGLES_OF(double, V, lanes, cos, near_cos_float64)         \
    CG_POWERS_OF(double, V, lanes, pow, near_pow_float64)
#define CG_CALLS_OF_FLOATS(V, lanes)                              \
    typedef float V __attribute__((vector_size(4 * lanes)));      \
    CG_ANGLES_OF(float, V, lanes, sinf, near_sin_float32)         \
    CG_ANGLES_OF(float, V, lanes, cosf, near_cos_float32)         \
    CG_POWERS_OF(float, V, lanes, powf, near_pow_float32)

#if CG_VECTOR_BYTES == 16
CG_CALLS_OF_DOUBLES(cg_two_doubles, 2)
CG_CALLS_OF_FLOATS(cg_some_floats, 4)
CG_SCALAR_CALL(double, sin, near_sin_float64, (double a), (a))
CG_SCALAR_CALL(double, cos, near_cos_float64, (double a), (a))
CG_SCALAR_CALL(double, pow, near_pow_float64, (double a, double b), (a, b))
CG_SCALAR_CALL(float, sinf, near_sin_float32, (float a), (a))
CG_SCALAR_CALL(float, cosf, near_cos_float32, (float a), (a))
CG_SCALAR_CALL(float, powf, near_pow_float32, (float a, float b), (a, b))
#elif CG_VECTOR_BYTES == 32
CG_CALLS_OF_DOUBLES(cg_four_doubles, 4)
CG_CALLS_OF_FLOATS(cg_eight_floats, 8)
#else
CG_CALLS_OF_DOUBLES(cg_eight_doubles, 8)
CG_CALLS_OF_FLOATS(cg_sixteen_floats, 16)
#endif
#ifdef __aarch64__ /* whose floats beside doubles are half a vector */
CG_CALLS_OF_FLOATS(cg_two_floats, 2)
#endif

#endif
#endif
