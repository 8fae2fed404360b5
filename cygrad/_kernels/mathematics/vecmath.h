/* Vector mathematics: branch-free functions F_float64 and F_float32 that GCC vectorises inside `omp simd` loops.
 *
 * No fast-math, no call but of sin, cos and pow for vectors: the same bits at every position. Products are fused
 * with sums where there is FMA, so between levels with and without it bits differ by a few ulp, exact functions'
 * excepted. All arguments: inf, NaN, -0, denormals in and out. "1.3, 1.4 ulp" are the largest errors measured on any
 * level, float64 and float32. Rounding must be to nearest. Pure functions, so thread-safe.
 * The file includes itself once per type: first the parts that differ between the types, then the functions, written once.
 */
#ifndef CG_VECMATH_H
#define CG_VECMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Vectors call sin, cos and pow by prototypes with `simd`: of glibc's libmvec on x86-64, elsewhere of vectorcalls.h.
 * Clang calls scalars.
 */
#ifndef CG_HAVE_LIBMVEC
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CG_HAVE_LIBMVEC 1
#else
#define CG_HAVE_LIBMVEC 0
#endif
#endif
#if !CG_HAVE_LIBMVEC && (defined(__x86_64__) || defined(__aarch64__)) && defined(__GNUC__) && !defined(__clang__)
#define CG_HAVE_VECTOR_CALLS
#define CG_LABEL_(prefix, name) #prefix #name
#define CG_LABEL(prefix, name) CG_LABEL_(prefix, name)
#define CG_CALLED_AS(name) __asm__(CG_LABEL(__USER_LABEL_PREFIX__, name)) /* a builtin function still: others have no vectors in branches */
#else
#define CG_CALLED_AS(name)
#endif
#if CG_HAVE_LIBMVEC || defined(CG_HAVE_VECTOR_CALLS)
#define CG_VECTOR_CALL __attribute__((simd("notinbranch"), const)) /* the vector variants, without -ffast-math */
#else
#define CG_VECTOR_CALL
#endif
extern double sin(double) CG_CALLED_AS(cg_sin) CG_VECTOR_CALL;
extern double cos(double) CG_CALLED_AS(cg_cos) CG_VECTOR_CALL;
extern double pow(double, double) CG_CALLED_AS(cg_pow) CG_VECTOR_CALL;
extern float sinf(float) CG_CALLED_AS(cg_sinf) CG_VECTOR_CALL;
extern float cosf(float) CG_CALLED_AS(cg_cosf) CG_VECTOR_CALL;
extern float powf(float, float) CG_CALLED_AS(cg_powf) CG_VECTOR_CALL;

#define CG_INLINE static inline __attribute__((always_inline))

/* Functions that formulas may call; the generator finds the definitions. A loop of exact functions may have a scalar tail, since scalars have the
 * same bits; one that calls a vector function runs in whole vectors only.
 */
#define CG_EXACT_FUNCTION CG_INLINE
#define CG_VECTOR_FUNCTION CG_INLINE

/* a b + c, rounded once where the instruction set can. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define CG_FUSED
#define CG_MULTIPLY_ADD(a, b, c) _Generic((a), double: fma, float: fmaf)(a, b, c)
#else
#define CG_MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

CG_INLINE uint64_t bits_float64(double x) { uint64_t b; memcpy(&b, &x, sizeof b); return b; }
CG_INLINE uint32_t bits_float32(float x) { uint32_t b; memcpy(&b, &x, sizeof b); return b; }
CG_INLINE double real_float64(uint64_t b) { double x; memcpy(&x, &b, sizeof x); return x; }
CG_INLINE float real_float32(uint32_t b) { float x; memcpy(&x, &b, sizeof x); return x; }

/* An exponent of b as a number. Below AVX-512 there is neither a shift of signed 64-bit integers nor their conversion: EXTRA, which the
 * exponent holds, keeps it positive, and it is put behind the digits of 2^52.
 */
CG_INLINE double exponent_float64(uint64_t b) { return real_float64(b >> 52 | (uint64_t)(1023 + 52) << 52) - (0x1p52 + 1100); }
CG_INLINE float exponent_float32(uint32_t b) { return (float)((int32_t)b >> 23); }

#include "polynomials.h"

#define CG_JOIN_(a, b) a##b
#define CG_JOIN(a, b) CG_JOIN_(a, b)
/* Constants of a type: REAL, its BITS, and numbers by their usual names. */
#define CG_TYPE float64
#define CG_REAL double
#define CG_BITS uint64_t
#define CG_SIGNED int64_t
#define CG_LIBM(name) __builtin_##name
#define CG_SCALAR(name) name
#define CG_DIGITS 52                      /* explicit bits of the significand */
#define CG_BIAS 1023                      /* of the exponent */
#define CG_C(x) x                         /* a constant of this type */
#define CG_LN2 0x1.62e42fefa39efp-1
#define CG_LN2_HI 0x1.62e42feep-1         /* times any exponent: exact */
#define CG_LN2_LO 0x1.a39ef35793c76p-33
#define CG_LOG10_2_HI 0x1.34413509f6p-2   /* log10(2), likewise */
#define CG_LOG10_2_LO 0x1.9fef311f12b36p-42
#define CG_LOG2_E_HI 0x1.71547652p+0      /* 1 / log(2), half the digits */
#define CG_LOG2_E_LO 0x1.705fc2eefa200p-33
#define CG_LOG10_E_HI 0x1.bcb7b152p-2
#define CG_LOG10_E_LO 0x1.b9438ca9aadd5p-36
#define CG_SQRT_HALF_BITS 0x3fe6a09e667f3bcd
#define CG_EXTRA 1100                     /* see exponent_float64 */
#define CG_HALF_DIGITS_MASK 0xfffffffff8000000 /* keeps 26 bits, so that a square is exact */
#define CG_EXP_MIN -746.0                 /* exp is 0 below */
#define CG_EXP_MAX 0x1.62e42fefa39efp+9   /* and inf above: log(DBL_MAX) */
#define CG_TAN_NEAR 0x1p24
#define CG_SINH_MAX 710.7
#define CG_TANH_MAX 22.0                  /* tanh is 1 from here */
#define CG_ERFC_MAX 27.4                  /* erfc is 0 from here, exp(-x^2/2) from GAUSSIAN_MAX */
#define CG_GAUSSIAN_MAX 38.7
#define CG_ERFCX_START 0x1.0dd50785280a5p+0
#include "vecmath.h"

#define CG_TYPE float32
#define CG_REAL float
#define CG_BITS uint32_t
#define CG_SIGNED int32_t
#define CG_LIBM(name) __builtin_##name##f
#define CG_SCALAR(name) name##f
#define CG_DIGITS 23
#define CG_BIAS 127
#define CG_C(x) x##f
#define CG_LN2 0x1.62e430p-1f
#define CG_LN2_HI 0x1.62e4p-1f
#define CG_LN2_LO 0x1.7f7d1cp-20f
#define CG_LOG10_2_HI 0x1.3440p-2f
#define CG_LOG10_2_LO 0x1.3509f8p-18f
#define CG_LOG2_E_HI 0x1.714p+0f
#define CG_LOG2_E_LO 0x1.47652cp-12f
#define CG_LOG10_E_HI 0x1.bcap-2f
#define CG_LOG10_E_LO 0x1.7b1526p-14f
#define CG_SQRT_HALF_BITS 0x3f3504f3
#define CG_EXTRA 0
#define CG_HALF_DIGITS_MASK 0xfffff000
#define CG_EXP_MIN -105.0f
#define CG_EXP_MAX 0x1.62e42ep+6f
#define CG_TAN_NEAR 0x1p20f
#define CG_SINH_MAX 89.6f
#define CG_TANH_MAX 10.0f
#define CG_ERFC_MAX 10.3f
#define CG_GAUSSIAN_MAX 14.5f
#define CG_ERFCX_START 0x1.0dd508p+0f
#include "vecmath.h"

#endif /* CG_VECMATH_H */

#ifdef CG_TYPE

#define CG_NAME(f) CG_JOIN(f##_, CG_TYPE)

/* 2^k, for k of a normal number. */
CG_INLINE CG_REAL CG_NAME(power_of_two)(CG_BITS k) { return CG_NAME(real)((k + CG_BIAS) << CG_DIGITS); }

/* condition ? b : 0, in arithmetic: two selections on one condition make GCC compute the code between them twice. */
CG_INLINE CG_BITS CG_NAME(bits_if)(int condition, CG_BITS b) { return -(CG_BITS)condition & b; }

CG_INLINE CG_REAL CG_NAME(zero_if)(int condition, CG_REAL y)
{
    return CG_NAME(real)(CG_NAME(bits_if)(!condition, CG_NAME(bits)(y)));
}

#define CG_ONE ((CG_BITS)CG_BIAS << CG_DIGITS) /* the bits of 1 */
#define CG_DIGITS_MASK (((CG_BITS)1 << CG_DIGITS) - 1)
#define CG_EXPONENT_MASK ((CG_BITS)(2 * CG_BIAS + 1) << CG_DIGITS)

#include "exactmath.h"

/* ---- the exponential family: x = k log(2) + r, exp(r) = (2 + h + r) / (2 + h - r), 2 + h = r coth(r/2) ---- */

typedef struct {
    CG_REAL r, low; /* r and its rounding error */
    CG_REAL h, k;
    CG_BITS k_bits; /* k in the low bits */
} CG_NAME(exp_parts);

/* Adding it rounds to an integer, left in the low bits: below AVX-512 there is no other way from float64 to int64. */
#define CG_SHIFTER ((CG_REAL)(((CG_BITS)3 << (CG_DIGITS - 1)) + 2 * CG_BIAS)) /* the bias saves scale() a sum */

/* By Cody and Waite's reduction, from x / log(2) + SHIFTER. */
CG_INLINE CG_NAME(exp_parts) CG_NAME(exp_split_at)(CG_REAL x, CG_REAL shifted)
{
    CG_REAL k = shifted - CG_SHIFTER;
    CG_REAL exact = CG_MULTIPLY_ADD(k, -CG_LN2_HI, x), r = CG_MULTIPLY_ADD(k, -CG_LN2_LO, exact), z = r * r;
    CG_REAL low = CG_MULTIPLY_ADD(k, -CG_LN2_LO, exact - r);
    CG_NAME(exp_parts) p = {r, low, CG_NAME(coth_tail)(z), k, CG_NAME(bits)(shifted) - 2 * CG_BIAS};
    return p;
}

CG_INLINE CG_NAME(exp_parts) CG_NAME(exp_split)(CG_REAL x)
{
    return CG_NAME(exp_split_at)(x, CG_MULTIPLY_ADD(x, CG_C(0x1.71547652b82fep+0), CG_SHIFTER));
}

#ifdef CG_FUSED
/* exp(r) - 1; of larger r, no less than r. */
CG_INLINE CG_REAL CG_NAME(expm1_of_r)(CG_REAL r)
{
    CG_REAL z = r * r;
    return CG_MULTIPLY_ADD(z, CG_NAME(exp_tail)(r, z), r);
}

/* k + SHIFTER, but no k past every power of two that is a number: r is large then, and the result infinite. The order of floats of one
 * sign is the one of their bits, and integers have a minimum.
 */
CG_INLINE CG_REAL CG_NAME(limited)(CG_REAL shifted)
{
    const CG_SIGNED b = (CG_SIGNED)CG_NAME(bits)(shifted), last = (CG_SIGNED)CG_NAME(bits)(CG_SHIFTER + (CG_BIAS + 2));
    return CG_NAME(real)((CG_BITS)(b < last ? b : last));
}

CG_INLINE CG_REAL CG_NAME(or_overflow)(CG_REAL x, CG_REAL highest, CG_REAL y) { return y; }
#else /* the quotient takes fewer operations there, and grows no more than to a pole */
CG_INLINE CG_REAL CG_NAME(expm1_of_r)(CG_REAL r) { return (r + r) / ((2 - r) + CG_NAME(coth_tail)(r * r)); }
CG_INLINE CG_REAL CG_NAME(limited)(CG_REAL shifted) { return shifted; }
CG_INLINE CG_REAL CG_NAME(or_overflow)(CG_REAL x, CG_REAL highest, CG_REAL y) { return x <= highest ? y : x + CG_LIBM(inf)(); }
#endif

/* exp(r) - 1 - r, and the error of r; where the results near 0 need it. */
CG_INLINE CG_REAL CG_NAME(exp_curve)(CG_NAME(exp_parts) p) { return p.r * (p.r - p.h) / ((2 - p.r) + p.h) + p.low; }

/* y (1 + rest) 2^k, by two powers of about k/2, since 2^k may not be a number; a denormal result is rounded once. */
CG_INLINE CG_REAL CG_NAME(scale)(CG_REAL y, CG_REAL rest, CG_BITS k_bits)
{
    CG_BITS biased = k_bits + 2 * CG_BIAS, half = (biased << (CG_DIGITS - 1)) & CG_EXPONENT_MASK;
    CG_REAL half_power = CG_NAME(real)(half), other_power = CG_NAME(real)((biased << CG_DIGITS) - half);
    return CG_MULTIPLY_ADD(y * half_power, rest, y * half_power) * other_power;
}

/* The quotient is the one of fdlibm's e_exp.c; 1.3, 1.4 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(exp)(CG_REAL x)
{
    CG_REAL shifted = CG_NAME(limited)(CG_MULTIPLY_ADD(x, CG_C(0x1.71547652b82fep+0), CG_SHIFTER));
    CG_NAME(exp_parts) p = CG_NAME(exp_split_at)(x, shifted);
    CG_REAL y = CG_NAME(scale)(1, CG_NAME(expm1_of_r)(p.r), p.k_bits);
    return CG_NAME(or_overflow)(x, CG_EXP_MAX, CG_NAME(zero_if)(x < CG_EXP_MIN, y));
}

/* exp(r) 2^k for k <= 0, by a polynomial: for formulas with a quotient of their own. k_bits as of exp_split. The power is lifted, so
 * that a denormal result is rounded once.
 */
CG_INLINE CG_REAL CG_NAME(decaying)(CG_REAL r, CG_BITS k_bits)
{
    CG_REAL z = r * r, lifted = CG_NAME(power_of_two)(k_bits + CG_BIAS / 2);
    return CG_MULTIPLY_ADD(lifted, CG_MULTIPLY_ADD(z, CG_NAME(exp_tail)(r, z), r), lifted) * CG_NAME(power_of_two)(-(CG_BIAS / 2));
}

/* a b + c, of the product before its rounding, for c near -a b. */
CG_INLINE CG_REAL CG_NAME(product_plus)(CG_REAL a, CG_REAL b, CG_REAL c)
{
#ifdef CG_FUSED
    return CG_MULTIPLY_ADD(a, b, c);
#else
    CG_REAL head = CG_NAME(real)(CG_NAME(bits)(a) & CG_HALF_DIGITS_MASK), tail = a - head;
    CG_REAL other_head = CG_NAME(real)(CG_NAME(bits)(b) & CG_HALF_DIGITS_MASK), other_tail = b - other_head;
    return (((c + head * other_head) + head * other_tail) + tail * other_head) + tail * other_tail;
#endif
}

/* r and k of -power x^2, of which exp would multiply the rounding error by the square; power is 1 or 1/2. */
CG_INLINE CG_NAME(exp_parts) CG_NAME(exp_split_square)(CG_REAL power, CG_REAL x)
{
    CG_REAL product = -power * x, shifted = CG_MULTIPLY_ADD(product * CG_C(0x1.71547652b82fep+0), x, CG_SHIFTER);
    CG_REAL k = shifted - CG_SHIFTER, head = k * -CG_LN2_HI;
#ifdef CG_FUSED
    CG_REAL r = CG_MULTIPLY_ADD(k, -CG_LN2_LO, CG_MULTIPLY_ADD(product, x, head));
#else /* the heads cancel exactly, and the sum of all is rounded once */
    CG_REAL x_head = CG_NAME(real)(CG_NAME(bits)(x) & CG_HALF_DIGITS_MASK), x_tail = x - x_head;
    CG_REAL r = (head - power * x_head * x_head) - (power * x_tail * (x + x_head) + k * CG_LN2_LO);
#endif
    CG_NAME(exp_parts) p = {.r = r, .k = k, .k_bits = CG_NAME(bits)(shifted) - 2 * CG_BIAS};
    return p;
}

/* exp(-x^2/2); 1.2, 1.2 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(gaussian)(CG_REAL x)
{
    CG_NAME(exp_parts) p = CG_NAME(exp_split_square)(CG_C(0.5), x);
    return CG_NAME(zero_if)(CG_LIBM(fabs)(x) > CG_GAUSSIAN_MAX, CG_NAME(decaying)(p.r, p.k_bits));
}

/* By an exponential that never overflows, so that small results keep their digits; 2.2, 2.9 ulp. sigmoid(-x) beside it takes no
 * second quotient.
 */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(sigmoid)(CG_REAL x)
{
    CG_REAL magnitude = CG_LIBM(fabs)(x);
    CG_NAME(exp_parts) p = CG_NAME(exp_split)(-magnitude);
    CG_REAL decaying = CG_NAME(zero_if)(magnitude > -CG_EXP_MIN, CG_NAME(decaying)(p.r, p.k_bits)), inverse = 1 / (1 + decaying);
    return (x > 0 ? 1 : decaying) * inverse;
}

/* As exp, exact for integers; 1.3, 1.4 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(exp2)(CG_REAL x)
{
    CG_REAL shifted = CG_NAME(limited)(x + CG_SHIFTER), r = (x - (shifted - CG_SHIFTER)) * CG_LN2;
    CG_REAL y = CG_NAME(scale)(1, CG_NAME(expm1_of_r)(r), CG_NAME(bits)(shifted) - 2 * CG_BIAS);
    return CG_NAME(or_overflow)(x, CG_BIAS + 1, CG_NAME(zero_if)(x < -(CG_BIAS + CG_DIGITS + 4), y));
}

/* (2^k - 1 + 2^k r) + 2^k (exp(r) - 1 - r), halved against overflow; near 0, r + (exp(r) - 1 - r); 1.2, 1.3 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(expm1)(CG_REAL x)
{
    CG_NAME(exp_parts) p = CG_NAME(exp_split)(x);
    CG_REAL half = CG_NAME(power_of_two)(p.k_bits - 1), curve = CG_NAME(exp_curve)(p);
    CG_REAL y = 2 * CG_MULTIPLY_ADD(half, curve, CG_MULTIPLY_ADD(half, p.r, half - CG_C(0.5)));
    y = CG_LIBM(fabs)(x) < CG_C(0.3) ? p.r + curve : y;
    y = x < CG_C(-45.0) ? -1 : y;
    y = x > CG_EXP_MAX ? CG_LIBM(inf)() : y;
    return CG_LIBM(copysign)(y, x);
}

/* (1 - exp(-2|x|)) / (1 + exp(-2|x|)); no quotient but this one, since the chain of dependences takes the time; 2.3, 2.1 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(tanh)(CG_REAL x)
{
    CG_REAL magnitude = CG_LIBM(fabs)(x);
    CG_NAME(exp_parts) p = CG_NAME(exp_split)(-2 * magnitude);
    CG_REAL z = p.r * p.r, power = CG_NAME(power_of_two)(p.k_bits);
    CG_REAL expm1_of_r = CG_MULTIPLY_ADD(z, CG_NAME(exp_tail)(p.r, z), p.r);
    CG_REAL y = CG_MULTIPLY_ADD(power, expm1_of_r, power - 1) / CG_MULTIPLY_ADD(power, expm1_of_r, power + 1);
    return CG_LIBM(copysign)(magnitude > CG_TANH_MAX ? 1 : y, x);
}

typedef struct {
    CG_REAL sum, difference;            /* of 2^k/4 and 2^-k/4: quarters against overflow */
    CG_REAL r, r_curve, cosh_r_minus_1; /* sinh(r) = r + r_curve */
} CG_NAME(hyperbolic_parts);

/* For the addition theorem of k log(2) + r; sinh(r), cosh(r) are rational in r and h. */
CG_INLINE CG_NAME(hyperbolic_parts) CG_NAME(hyperbolic_split)(CG_REAL magnitude)
{
    CG_NAME(exp_parts) p = CG_NAME(exp_split)(magnitude);
    CG_REAL z = p.r * p.r, inverse = 1 / (4 + CG_MULTIPLY_ADD(p.h, p.h, 4 * p.h - z)); /* of (2 + h)^2 - r^2 */
    CG_REAL growing = CG_NAME(power_of_two)(p.k_bits - 2);
    CG_REAL decaying = magnitude < CG_C(40.0) ? CG_NAME(power_of_two)(-2 - p.k_bits) : 0;
    CG_REAL curve = p.r * CG_MULTIPLY_ADD(-p.h, p.h, z - (p.h + p.h));
    CG_NAME(hyperbolic_parts) q = {growing + decaying, growing - decaying, p.r,
                                   CG_MULTIPLY_ADD(curve, inverse, p.low), (z + z) * inverse};
    return q;
}

/* 1.4, 1.9 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(cosh)(CG_REAL x)
{
    CG_REAL magnitude = CG_LIBM(fabs)(x);
    CG_NAME(hyperbolic_parts) q = CG_NAME(hyperbolic_split)(magnitude);
    CG_REAL y = 2 * (q.sum + CG_MULTIPLY_ADD(q.sum, q.cosh_r_minus_1, q.difference * (q.r + q.r_curve)));
    return magnitude > CG_SINH_MAX ? CG_LIBM(inf)() : y;
}

/* 1.7, 1.5 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(sinh)(CG_REAL x)
{
    CG_REAL magnitude = CG_LIBM(fabs)(x);
    CG_NAME(hyperbolic_parts) q = CG_NAME(hyperbolic_split)(magnitude);
    CG_REAL head = CG_MULTIPLY_ADD(q.sum, q.r, q.difference);
    CG_REAL y = 2 * (head + CG_MULTIPLY_ADD(q.difference, q.cosh_r_minus_1, q.sum * q.r_curve));
    y = magnitude < CG_C(0.3) ? q.r + q.r_curve : y;
    return CG_LIBM(copysign)(magnitude > CG_SINH_MAX ? CG_LIBM(inf)() : y, x);
}

/* exp(-power m^2) scale P(t) / (m + center), t = (m - center) / (m + center), for m >= 0: t as 2 m / (m + center) - 1, since that is
 * right near 0, and the rounding of the inverse goes against the last factor's far out. The scale is in P's coefficients, where
 * it rounds nothing that depends on m.
 */
CG_INLINE CG_REAL CG_NAME(normal_tail)(CG_REAL m, CG_REAL power, CG_REAL center, CG_REAL scale)
{
    CG_REAL sum = m + center, inverse = 1 / sum, t = CG_MULTIPLY_ADD(2 * m, inverse, CG_C(-1.0));
    CG_REAL start = scale * CG_ERFCX_START, slope = CG_NAME(erfcx_slope)(t, scale), y = CG_MULTIPLY_ADD(t, slope, start);
    CG_NAME(exp_parts) p = CG_NAME(exp_split_square)(power, m);
    CG_REAL z = p.r * p.r, rest = CG_MULTIPLY_ADD(z, CG_NAME(exp_tail)(p.r, z), p.r);
#ifndef CG_FUSED /* more is rounded there: the rounding errors of y and of the sum are taken off; 1 / P is near 1.06 + 0.66 t */
    rest += ((start - y) + t * slope) * (CG_C(1.06) / scale + CG_C(0.66) / scale * t);
    rest -= (m - (sum - center)) * (CG_C(0.5) * inverse) * (1 - t);
#endif
    return CG_NAME(scale)(y * inverse, rest, p.k_bits);
}

/* 4.3, 3.7 ulp; 3.8, 3.8 with fused multiply-adds. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(erfc)(CG_REAL x)
{
    CG_REAL m = CG_LIBM(fabs)(x), y = CG_NAME(zero_if)(m > CG_ERFC_MAX, CG_NAME(normal_tail)(m, 1, CG_C(2.5), 1));
    y = x < 0 ? 2 - y : y;
    return x == x ? y : x;
}

/* The normal distribution, erfc(-x / sqrt(2)) / 2; the center is the number near 2.5 sqrt(2) by which ndtr(0) is 1/2. 4.0, 3.9 ulp;
 * 3.6, 3.8 with fused multiply-adds.
 */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(ndtr)(CG_REAL x)
{
    CG_REAL m = CG_LIBM(fabs)(x), tail = CG_NAME(normal_tail)(m, CG_C(0.5), CG_C(0x1.c48c6001f0ac1p+1), CG_C(0x1.6a09e667f3bcdp-1));
    CG_REAL y = CG_NAME(zero_if)(m > CG_GAUSSIAN_MAX, tail);
    y = x > 0 ? 1 - y : y;
    return x == x ? y : x;
}

/* ---- the logarithms: x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2) ---- */

typedef struct {
    CG_REAL f, k;
    CG_BITS b; /* k + EXTRA above the digits */
} CG_NAME(log_parts);

/* x > 0, normal; its exponent is lowered by that in `lift`. */
CG_INLINE CG_NAME(log_parts) CG_NAME(log_split)(CG_REAL x, CG_BITS lift)
{
    CG_BITS b = CG_NAME(bits)(x) + (((CG_BITS)CG_EXTRA << CG_DIGITS) - CG_SQRT_HALF_BITS);
    CG_REAL f = CG_NAME(real)((b & CG_DIGITS_MASK) + CG_SQRT_HALF_BITS) - 1;
    CG_NAME(log_parts) p = {f, CG_NAME(exponent)(b - lift), b - lift};
    return p;
}

/* x, or a denormal 2^DIGITS x: where multiply-adds are fused by one, since a selection takes as long as three of them. */
CG_INLINE CG_REAL CG_NAME(lifted)(CG_REAL x)
{
    const int denormal = x < CG_NAME(power_of_two)(1 - CG_BIAS);
#ifdef CG_FUSED
    return CG_MULTIPLY_ADD(CG_NAME(zero_if)(!denormal, x), CG_NAME(power_of_two)(CG_DIGITS) - 1, x);
#else
    return denormal ? x * CG_NAME(power_of_two)(CG_DIGITS) : x;
#endif
}

/* x > 0. */
CG_INLINE CG_NAME(log_parts) CG_NAME(log_split_any)(CG_REAL x)
{
    CG_BITS lift = CG_NAME(bits_if)(x < CG_NAME(power_of_two)(1 - CG_BIAS), (CG_BITS)CG_DIGITS << CG_DIGITS);
    return CG_NAME(log_split)(CG_NAME(lifted)(x), lift);
}

/* The special cases: inf and NaN themselves, -inf at 0, NaN below. */
CG_INLINE CG_REAL CG_NAME(log_special)(CG_REAL x, CG_REAL y)
{
    y = CG_NAME(real)(CG_NAME(bits)(y) | CG_NAME(bits_if)(x < 0, ~(CG_BITS)0));
    y = x == 0 ? -CG_LIBM(inf)() : y;
    return x < CG_LIBM(inf)() ? y : x;
}

/* k log(2) + f - s (f - R(s^2)), s = f / (2 + f), as in fdlibm's e_log.c; log(2) as one number, which is near it; 1.5, 1.2 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(log)(CG_REAL x)
{
    CG_NAME(log_parts) p = CG_NAME(log_split_any)(x);
    CG_REAL s = p.f / (2 + p.f), z = s * s, curve = CG_MULTIPLY_ADD(-z, CG_NAME(log_tail)(z), p.f);
    return CG_NAME(log_special)(x, CG_MULTIPLY_ADD(p.k, CG_LN2, CG_MULTIPLY_ADD(-s, curve, p.f)));
}

/* 2^(1-k), finite for a normal number. */
CG_INLINE CG_REAL CG_NAME(twice_inverse_power)(CG_NAME(log_parts) p)
{
    return CG_NAME(real)(((CG_BITS)(CG_BIAS + CG_EXTRA + 1) << CG_DIGITS) - (p.b & ~CG_DIGITS_MASK));
}

/* log(u + e) = log(u) + e/u, of u and of e 2^(1-k), with 1 / (1 + f) = (1 - s) / (1 + s) = 1 - 2 s + 2 s^2 ... */
CG_INLINE CG_REAL CG_NAME(log_of_sum)(CG_NAME(log_parts) p, CG_REAL u, CG_REAL scaled_e)
{
    CG_REAL s = p.f / (2 + p.f), z = s * s;
    CG_REAL low = CG_MULTIPLY_ADD(scaled_e, CG_C(0.5) - (s - z), p.k * CG_LN2_LO);
    CG_REAL tail = CG_MULTIPLY_ADD(-s, CG_MULTIPLY_ADD(-z, CG_NAME(log_tail)(z), p.f), low);
    return CG_NAME(log_special)(u, CG_MULTIPLY_ADD(p.k, CG_LN2_HI, p.f) + tail);
}

/* 1 + x = u + e, exactly (Knuth); 1.4, 1.6 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(log1p)(CG_REAL x)
{
    CG_REAL u = 1 + x, x_in_u = u - 1, e = (1 - (u - x_in_u)) + (x - x_in_u);
    CG_NAME(log_parts) p = CG_NAME(log_split)(u, 0);
    return CG_LIBM(copysign)(CG_NAME(log_of_sum)(p, u, e * CG_NAME(twice_inverse_power)(p)), x);
}

/* Near 0 by log1p, and log(2 x) far out; 2.6, 2.7 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(asinh)(CG_REAL x)
{
    CG_REAL m = CG_LIBM(fabs)(x), near = CG_NAME(log1p)(m + m * m / (1 + CG_LIBM(sqrt)(1 + m * m)));
    return CG_LIBM(copysign)(m < CG_C(1e9) ? near : CG_NAME(log)(m) + CG_LN2, x);
}

CG_VECTOR_FUNCTION CG_REAL CG_NAME(acosh)(CG_REAL x)
{
    CG_REAL m = x - 1, near = CG_NAME(log1p)(m + CG_LIBM(sqrt)(m) * CG_LIBM(sqrt)(m + 2));
    return x < CG_C(1e9) ? near : CG_NAME(log)(x) + CG_LN2;
}

CG_VECTOR_FUNCTION CG_REAL CG_NAME(atanh)(CG_REAL x)
{
    CG_REAL m = CG_LIBM(fabs)(x);
    return CG_LIBM(copysign)(CG_C(0.5) * CG_NAME(log1p)(2 * m / (1 - m)), x);
}

/* Of the odds x / (1 - x), or where these are near 1 of u + e = 1 + (2 x - 1) / (1 - x); 2.1, 2.6 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(logit)(CG_REAL x)
{
    const int near = x > CG_C(0.3);
    CG_REAL q = (near ? 2 * x - 1 : x) / (1 - x), u = near ? 1 + q : q, q_in_u = u - 1;
    CG_REAL e = (1 - (u - q_in_u)) + (q - q_in_u);
    CG_NAME(log_parts) p = CG_NAME(log_split_any)(u);
    return CG_NAME(log_of_sum)(p, u, CG_NAME(zero_if)(!near, e * CG_NAME(twice_inverse_power)(p)));
}

/* log(x) / log(b): 1 / log(b), log_b(2) and log(1 + f) in two parts each (after fdlibm's k_log.h). */
CG_INLINE CG_REAL CG_NAME(log_base)(CG_REAL x, CG_REAL factor_hi, CG_REAL factor_lo, CG_REAL two_hi, CG_REAL two_lo)
{
    CG_NAME(log_parts) p = CG_NAME(log_split_any)(x);
    CG_REAL s = p.f / (2 + p.f), z = s * s, half_square = CG_C(0.5) * p.f * p.f;
    CG_REAL head = CG_NAME(real)(CG_NAME(bits)(p.f - half_square) & CG_HALF_DIGITS_MASK);
    CG_REAL curve = CG_MULTIPLY_ADD(z, CG_NAME(log_tail)(z), half_square);
    CG_REAL tail = CG_MULTIPLY_ADD(s, curve, (p.f - head) - half_square);
    CG_REAL y = p.k * two_hi, high = head * factor_hi, sum = y + high;
    CG_REAL low = CG_MULTIPLY_ADD(tail, factor_hi, CG_MULTIPLY_ADD(p.k, two_lo, (y - sum) + high));
    return CG_NAME(log_special)(x, sum + CG_MULTIPLY_ADD(tail + head, factor_lo, low));
}

/* Exact for powers of two; 1.1, 0.8 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(log2)(CG_REAL x) { return CG_NAME(log_base)(x, CG_LOG2_E_HI, CG_LOG2_E_LO, 1, 0); }

/* 1.1, 0.8 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(log10)(CG_REAL x)
{
    return CG_NAME(log_base)(x, CG_LOG10_E_HI, CG_LOG10_E_LO, CG_LOG10_2_HI, CG_LOG10_2_LO);
}

/* ---- from libmvec, whose huge arguments go to the scalar functions, lane by lane ---- */

/* 3.1, 2.4 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(sin)(CG_REAL x) { return CG_SCALAR(sin)(x); }

/* 3.5, 2.4 ulp. The sum, lest GCC join sin(x) and cos(x) into one scalar sincos(x). */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(cos)(CG_REAL x) { return CG_SCALAR(cos)(x + CG_C(0.0)); }

/* 1.0, 1.1 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(pow)(CG_REAL x, CG_REAL y) { return CG_SCALAR(pow)(x, y); }

/* Own below TAN_NEAR: the quotient reaches 4.5 ulp there, 2 ulp above; 3.0, 2.0 ulp. */
CG_VECTOR_FUNCTION CG_REAL CG_NAME(tan)(CG_REAL x)
{
    CG_REAL near = CG_NAME(tan_near)(x), far = CG_NAME(sin)(x) / CG_NAME(cos)(x);
    CG_REAL y = CG_LIBM(fabs)(x) < CG_TAN_NEAR ? near : far;
    return x == 0 ? x : y; /* -0 */
}

#undef CG_TYPE
#undef CG_REAL
#undef CG_BITS
#undef CG_SIGNED
#undef CG_LIBM
#undef CG_SCALAR
#undef CG_DIGITS
#undef CG_BIAS
#undef CG_C
#undef CG_LN2
#undef CG_LN2_HI
#undef CG_LN2_LO
#undef CG_LOG10_2_HI
#undef CG_LOG10_2_LO
#undef CG_LOG2_E_HI
#undef CG_LOG2_E_LO
#undef CG_LOG10_E_HI
#undef CG_LOG10_E_LO
#undef CG_SQRT_HALF_BITS
#undef CG_HALF_DIGITS_MASK
#undef CG_EXP_MIN
#undef CG_EXP_MAX
#undef CG_TAN_NEAR
#undef CG_SINH_MAX
#undef CG_TANH_MAX
#undef CG_ERFC_MAX
#undef CG_GAUSSIAN_MAX
#undef CG_ERFCX_START
#undef CG_NAME
#undef CG_SHIFTER
#undef CG_ONE
#undef CG_DIGITS_MASK
#undef CG_EXPONENT_MASK
#undef CG_EXTRA
#endif
