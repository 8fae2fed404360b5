/* Complex numbers, CG_COMPLEX of two CG_REAL: the functions that formulas call for them, branch-free as the functions of vecmath.h, which must be
 * included before, with inversemath.h.
 *
 * Special values follow C's Annex G, which torch and NumPy have, too. "1.3, 1.4 eps" are the largest distances from the true
 * number that were measured, in eps of its absolute value, for complex128 and complex64. Formulas by Kahan (Branch cuts for complex
 * elementary functions, 1987), but where another source is named. Pure functions, so thread-safe.
 */
#ifndef CG_COMPLEXMATH_H
#define CG_COMPLEXMATH_H

/* GCC makes a fused operation of the two products of a complex one in spite of -ffp-contract=off, in vectors only. */
#if __has_builtin(__builtin_assoc_barrier)
#define CG_ROUNDED(product) __builtin_assoc_barrier(product)
#else
#define CG_ROUNDED(product) (product)
#endif

#define CG_LN2 0x1.62e42fefa39efp-1
#define CG_LOG2_E 0x1.71547652b82fep+0
#define CG_LOG10_E 0x1.bcb7b1526e50ep-2
#define CG_LOG10_2 0x1.34413509f79ffp-2

/* With the sign of b turned round where a's is set. */
CG_INLINE double signed_by_float64(double a, double b)
{
    return real_float64(bits_float64(b) ^ (bits_float64(a) & bits_float64(-0.0)));
}
CG_INLINE float signed_by_float32(float a, float b)
{
    return real_float32(bits_float32(b) ^ (bits_float32(a) & bits_float32(-0.0f)));
}

#define CG_TYPE float64
#define CG_COMPLEX_TYPE complex128
#define CG_REAL double
#define CG_LIBM(name) __builtin_##name
#define CG_C(x) x
#define CG_EXP_LIMIT 1400.0         /* exp(x) is beyond the range there, and so is its product with any sine */
#define CG_SINH_LIFT_FROM 700.0     /* sinh(x) is near the end of the range there */
#define CG_SINH_LIFT 600
#define CG_SINH_LIMIT 1120.0        /* and here beyond it also as a part of 2^LIFT */
#define CG_TANH_FAR 20.0            /* exp(-2 x) is nothing beside 1 there */
#define CG_TANH_LIMIT 700.0
#include "complexfunctions.h"

#define CG_TYPE float32
#define CG_COMPLEX_TYPE complex64
#define CG_REAL float
#define CG_LIBM(name) __builtin_##name##f
#define CG_C(x) x##f
#define CG_EXP_LIMIT 170.0f
#define CG_SINH_LIFT_FROM 80.0f
#define CG_SINH_LIFT 80
#define CG_SINH_LIMIT 140.0f
#define CG_TANH_FAR 10.0f
#define CG_TANH_LIMIT 80.0f
#include "complexfunctions.h"

#include "complexinverses.h"
#endif
