/* The error function, branch-free as the functions of vecmath.h, which must be included before. Pure functions, so thread-safe. */
#ifndef CG_ERRORMATH_H
#define CG_ERRORMATH_H

#include "../generated/erf_table.h"

/* Taylor's series at the next multiple r of 1/128, of which the table has erf and erf' (as in the AdvSIMD erf of Arm's Optimized
 * Routines): erf(r + d) = erf(r) + erf'(r) (d - d^2 (r + d (1 - 2 r^2) / 3 ...)), |d| <= 1/256. NaN finds some place in the table as well,
 * and stays by its d. 2.1 ulp.
 */
CG_VECTOR_FUNCTION double erf_float64(double x)
{
    const double shifter = (double)(1ULL << 52) / CG_ERF_STEPS, magnitude = __builtin_fabs(x);
    const int distant = magnitude > 5.95;
    const double m = zero_if_float64(distant, magnitude), shifted = m + shifter, r = shifted - shifter, d = m - r;
    const uint64_t k = bits_float64(shifted) & (CG_ERF_ROWS - 1);
    const double square = r * r, z = d * d;
    const double even = d * CG_HORNER2(z, CG_HORNER2(square, 1.0 / 3, -2.0 / 3), CG_HORNER3(square, -1.0 / 10, 2.0 / 5, -2.0 / 15));
    const double odd = r * CG_HORNER3(z, 1, CG_HORNER2(square, -1.0 / 2, 1.0 / 3), CG_HORNER3(square, 1.0 / 6, -2.0 / 9, 2.0 / 45));
    const double y = CG_MULTIPLY_ADD(cg_erf_slope[k], CG_MULTIPLY_ADD(-z, odd + even, d), cg_erf[k]); /* 0 where x is distant */
    const uint64_t sign = bits_float64(x) ^ bits_float64(magnitude);
    return real_float64(bits_float64(y) | bits_if_float64(distant, bits_float64(1)) | sign);
}

/* 1 - exp(log(erfc|x|)), the logarithm being -m - m^2 - m R(m) for m = |x|, R rational; 3.4 ulp. */
CG_VECTOR_FUNCTION float erf_float32(float x)
{
    const float magnitude = __builtin_fabsf(x), slope = magnitude + erf_tail_float32(magnitude);
    const exp_parts_float32 p = exp_split_float32(-CG_MULTIPLY_ADD(magnitude, slope, magnitude));
    const float power = power_of_two_float32(p.k_bits);
    const float y = CG_MULTIPLY_ADD(power, expm1_of_r_float32(p.r), power - 1);
    return __builtin_copysignf(magnitude > 3.95f ? 1 : y, x);
}

#endif
