/* The logarithm of the gamma function and its derivatives, branch-free as in vecmath.h, which must be included before.
 *
 * Computed in double for float32 too, hence exact there but for the last rounding. Near 0, polynomials in t = (x - c) / (x + d), whose
 * coefficients come from the interpolation at Chebyshev's points, relative error below 2^-54; zeros are factors of their own. Far out
     the
 * series in 1 / x^2 (DLMF 5.11.1, 5.11.2), with such coefficients for x >= 8. Left of 0 by reflection (DLMF 5.5.3, 5.5.4, 5.15.6).
 * "1.4 ulp" is the largest error measured on any level, for float64. Pure functions, so thread-safe.
 */
#ifndef CG_GAMMAMATH_H
#define CG_GAMMAMATH_H

/* sin(pi r) / pi, |r| <= 1/2. */
CG_INLINE double sinpi_over_pi_float64(double r)
{
    const double z = r * r;
    return CG_MULTIPLY_ADD(r * z, CG_HORNER8(z, -0x1.a51a6625307d3p+0, 0x1.9f9cb402bc45dp-1, -0x1.86a8e4720c74dp-3, 0x1.ac6805cdf33d8p-6,
        -0x1.33816a063390cp-9, 0x1.3746c58004fp-13, -0x1.d3f28f5ca4278p-18, 0x1.080d9d95e8992p-22), r);
}

/* log(x) + shift, without the rounding error of the logarithm; x > 0. */
CG_INLINE double log_plus_float64(double x, double shift)
{
    const log_parts_float64 p = log_split_any_float64(x);
    const double s = p.f / (2 + p.f), curve = CG_MULTIPLY_ADD(-(s * s), log_tail_float64(s * s), p.f);
    const double base = p.k * 0x1.62e42feep-1 + shift, sum = base + p.f, f = sum - base, lost = (base - (sum - f)) + (p.f - f);
    return sum + (lost + CG_MULTIPLY_ADD(-s, curve, p.k * 0x1.a39ef35793c76p-33));
}

/* Of x from the distances from its zeros 1 and 2, u = x - 1 and v = x - 2; 1/2 <= x < 8. */
CG_INLINE double near_lgamma_float64(double u, double v)
{
    const double sum = u + 3, t = v / sum, z = t * t;
    return u * v * (CG_MULTIPLY_ADD(t, CG_HORNER8(z, 0x1.6080fd36832edp-4, 0x1.1d5bba0c13305p-5, 0x1.26439d219c947p-6,
        0x1.62b0fb15bb3cfp-7, 0x1.d9561e544b674p-8, 0x1.524632bbc5de1p-8, 0x1.fbb33d7b1da4fp-9, CG_HORNER8(z, 0x1.8ab41525fe45bp-9,
        0x1.3fb57e895598ap-9, 0x1.d2038185594dep-10, 0x1.6548947fb44d8p-9, -0x1.8ba9925c2ecefp-9, 0x1.dad733c88668bp-7,
        -0x1.c78a64c00d1f7p-6, CG_HORNER3(z, 0x1.675dcce42efe1p-5, -0x1.411acee2095c7p-5, 0x1.382c0540cff7fp-6))), CG_HORNER8(z,
        0x1.b0ee6072093cep+0, 0x1.2e75f633db98dp-1, 0x1.77625340c947bp-2, 0x1.11aadd016fc19p-2, 0x1.af38fc4ef660ep-3, 0x1.63e8fd24d41ap-3,
        0x1.2f13bd72e6a28p-3, CG_HORNER8(z, 0x1.0792abdfcf93p-3, 0x1.da73435465c2dp-4, 0x1.6c1d019ae6ecp-4, 0x1.5f9ccea369674p-3,
        -0x1.04d87109e7318p-2, 0x1.26b7a3da0bcabp+0, -0x1.2d227418aae85p+1, CG_HORNER3(z, 0x1.e82a1d87dd97ep+1, -0x1.c47e79efb6404p+1,
        0x1.c06bb66befc3p+0))))) / sum + 0.0; /* no -0 */
}

/* x >= 8. */
CG_INLINE double far_lgamma_float64(double x)
{
    const double inverse = 1 / x, z = inverse * inverse;
    const double rest = CG_MULTIPLY_ADD(inverse, CG_HORNER7(z, 0x1.5555555555555p-4, -0x1.6c16c16c14a76p-9, 0x1.a01a017e2d3d3p-11,
        -0x1.38134db2f9c9ep-11, 0x1.b92c63c3424dcp-11, -0x1.ef92c057f9c65p-10, 0x1.4c1bf975f0773p-8), 0x1.acfe390c97d69p-2);
    return CG_MULTIPLY_ADD(x - 0.5, log_plus_float64(x, -1), rest);
}

/* log|Gamma(x)|; 0 < x < 1/2 by Gamma(1 + x) / x. Beside its zeros left of 0, the error of two terms that cancel. */
CG_VECTOR_FUNCTION double lgamma_float64(double x)
{
    const int low = x < 0.5, left = x <= 0;
    const double m = __builtin_fabs(x), u = low ? m : x - 1, v = u - 1, w = low ? 1 + m : x;
    const double sine = __builtin_fabs(sinpi_over_pi_float64(m - __builtin_rint(m)));
    const double y = w < 8 ? near_lgamma_float64(u, v) : far_lgamma_float64(w), e = log_float64(left ? sine : m);
    const double below = left ? -e - y : y - e;
    return ((left & (sine == 0)) | (m == __builtin_inf())) ? __builtin_inf() : low ? below : y;
}
CG_IN_DOUBLE(lgamma)

/* The root of digamma, 1.4616..., in two parts. */
#define CG_DIGAMMA_ROOT 0x1.762d86356be3fp+0
#define CG_DIGAMMA_ROOT_LO 0x1.b86a722197829p-54

/* pi cot(pi r), |r| <= 1/2. */
CG_INLINE double picotpi_float64(double r)
{
    const double m = __builtin_fabs(r), z = r * r;
    return (1 - 2 * m) * (1 + 2 * m) * (CG_HORNER8(z, 0x1p+0, 0x1.6b96676b3e013p-1, 0x1.5a0d12fb0daa8p-1, 0x1.5671eab6a162cp-1,
        0x1.559ad17199888p-1, 0x1.55665a3f1c18dp-1, 0x1.555ddc981a20cp-1, CG_HORNER8(z, 0x1.551170ccf886ap-1, 0x1.586817e9ffacbp-1,
        0x1.3c6180ab4ded9p-1, 0x1.e5b66889a5d9p-1, -0x1.e9f7fea618adfp-2, 0x1.e7cb8d52bce3ap+1, -0x1.2df362e7bd837p+2,
        0x1.57536b321129bp+2))) / r;
}

/* The derivative of lgamma; the sign of infinity at zeros as in torch, NaN at other poles. */
CG_VECTOR_FUNCTION double digamma_float64(double x)
{
    const int left = x <= 0;
    const double w = left ? 1 - x : x, inverse = 1 / w, square = inverse * inverse;
    const double far = log_float64(w) - inverse * CG_MULTIPLY_ADD(inverse, CG_HORNER8(square, 0x1.5555555555555p-4, -0x1.1111111110d63p-7,
        0x1.041041019fb6ep-8, -0x1.11110c1edcb59p-8, 0x1.f0772b33c9bfap-8, -0x1.58e7844063732p-6, 0x1.47d1d168b34acp-4,
        -0x1.32cfc4f5c472ep-2), 0.5);
    const double n = w < 1 ? 1 + w : w, t = (n - 2.75) / (n + 2.75), z = t * t;
    const double near = ((n - CG_DIGAMMA_ROOT) - CG_DIGAMMA_ROOT_LO) * (CG_MULTIPLY_ADD(t, CG_HORNER8(z, -0x1.8e204c60eea9bp-4,
        -0x1.eaa0fb801b04fp-2, -0x1.23857b8efe814p-1, -0x1.3a9d47d691b96p-1, -0x1.488afce981e34p-1, -0x1.51c74b400e93ep-1,
        -0x1.585ad41696da7p-1, CG_HORNER7(z, -0x1.5cdf4f1834b77p-1, -0x1.62b2a315a4cd1p-1, -0x1.60f4de939cf9fp-1, -0x1.48c37456ae49ap-1,
        -0x1.2c2cf44dc50a9p+0, 0x1.a83fa4a906d1fp-1, -0x1.7e1f56abbcce9p+1)), CG_HORNER8(z, 0x1.59c5c1b79e9c6p+1, 0x1.2d0c7305c8a83p+0,
        0x1.f3376575dbb85p-1, 0x1.cd6359e88ef36p-1, 0x1.ba5028eae6a38p-1, 0x1.aec5bf622b741p-1, 0x1.a6f384dcfe876p-1, CG_HORNER7(z,
        0x1.a1dfe4bd4f3dfp-1, 0x1.979678cc65804p-1, 0x1.c2e12631ba279p-1, 0x1.851dbd667af92p-2, 0x1.1d49261b45569p+1,
        -0x1.28518f7fd56eep+1, 0x1.0f7cb9af48f0cp+2)))) / (n + 1.5);
    const double y = w < 1 ? near - inverse : w < 8 ? near : far;
    const double r = __builtin_fabs(x) < 0.5 ? x : x - __builtin_rint(x), pole = x != 0 ? __builtin_nan("") : -1 / x;
    return left ? (r == 0 ? pole : y - picotpi_float64(r)) : y;
}
CG_IN_DOUBLE(digamma)

/* The derivative of digamma; infinite at the poles. */
CG_VECTOR_FUNCTION double trigamma_float64(double x)
{
    const int left = x <= 0;
    const double w = left ? 1 - x : x, inverse = 1 / w, square = inverse * inverse;
    const double far = CG_MULTIPLY_ADD(square, CG_MULTIPLY_ADD(inverse, CG_HORNER8(square, 0x1.5555555555555p-3, -0x1.1111111110159p-5,
        0x1.8618617baa0a8p-6, -0x1.1111067a40ea2p-5, 0x1.3648437a050afp-4, -0x1.0274e28dc94e8p-2, 0x1.1c0c2a61da503p+0,
        -0x1.250dad147cbbcp+2), 0.5), inverse);
    const double t = (w - 2.5) / (w + 6.5), z = t * t, next = 1 / (w + 1);
    const double near = square + CG_MULTIPLY_ADD(next, next, (CG_MULTIPLY_ADD(t, CG_HORNER8(z, -0x1.5fb0970b61643p+1,
        -0x1.f957d1650bafep+1, -0x1.56b4f6b89ad5fp+2, -0x1.ba68060e7d3b4p+2, -0x1.1232b3055150cp+3, -0x1.490cd8a869fb8p+3,
        -0x1.80f146d87bc71p+3, CG_HORNER6(z, -0x1.b8f00c54eccb3p+3, -0x1.f6a85378c361fp+3, -0x1.0184d3c0da4fbp+4, -0x1.a27311e98fe94p+4,
        0x1.08d3a017bf76bp+2, -0x1.186eb43e1b2d6p+6)), CG_HORNER8(z, 0x1.1e8804809c4a5p+1, 0x1.a8d0e75d4a224p+1, 0x1.284089b3063bep+2,
        0x1.8792e97030eep+2, 0x1.eecc3870dfecdp+2, 0x1.2d745c5b87ab2p+3, 0x1.64e4e0777ae0fp+3, CG_HORNER7(z, 0x1.9d2056567f0c6p+3,
        0x1.d4cddf31c1203p+3, 0x1.0baa713202bd7p+4, 0x1.018c59d3ea8c3p+4, 0x1.ed593a3da3dd8p+4, -0x1.99e285581c2d3p+3,
        0x1.483fc386950e3p+6)))) / (w + 6.5));
    const double y = w < 8 ? near : far, sine = 1 / sinpi_over_pi_float64(x - __builtin_rint(x));
    return left ? CG_MULTIPLY_ADD(sine, sine, -y) : y;
}
CG_IN_DOUBLE(trigamma)

#endif
