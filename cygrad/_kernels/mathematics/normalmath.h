/* Inverses and logarithms of the error function and of the normal distribution, branch-free as in vecmath.h, which must be included
    before, with gammamath.h.
 *
 * Computed in double for float32 too, hence exact there but for the last rounding. The rational functions are least squares of the
 * relative error at Chebyshev's points, reweighted (Sanathanan and Koerner 1963), below 2^-56. "1.4 ulp" is the largest error measured on
     any
 * level, for float64. Pure functions, so thread-safe.
 */
#ifndef CG_NORMALMATH_H
#define CG_NORMALMATH_H

/* erfinv(x), of u = 1 - |x|, which may be tiny: x P(w), w = -log(1 - x^2) (Giles 2010), and beyond 3/4 s - s R(s), s = sqrt(-log(u)), after
 * Wichura's AS 241 (1988). `distant`: u may be less than 2^-53.
 */
CG_INLINE double inverse_error(double x, double u, int distant)
{
    const double m = __builtin_fabs(x);
    const int near = m < 0.75;
    const double w = -log_float64(near ? (1 - m) * (1 + m) : u), s = __builtin_sqrt(w);
    double n = CG_HORNER8(s, 0x1.fda51d88c46b7p-1, -0x1.48daf19334239p+1, -0x1.87e8d3ae36ebap+1, -0x1.b364c47dbab2p+2,
        -0x1.2ee01cd98a5e4p+2, -0x1.9f34095295f9cp-1, -0x1.2d72dd3ff5ad6p-5, CG_HORNER3(s, -0x1.19b46d4b2c48bp-13, 0x1.5cde093ee483cp-20,
        -0x1.6307c589685ddp-27));
    double d = CG_HORNER8(s, 0x1p+0, -0x1.bc16984379674p+0, -0x1.150c4d6c25f66p+2, -0x1.7e05f2b48ae5ap+3, -0x1.982e0184e0f52p+3,
        -0x1.89222e125d3f5p+3, -0x1.13797c047da7cp+2, CG_HORNER2(s, -0x1.f0de422857debp-2, -0x1.ec4a32fc4ff4p-7));
    if (distant) {
        const double far_n = CG_HORNER7(s, 0x1.ce7e6b6283361p-1, 0x1.21af39b68e346p+0, 0x1.27570fdb573fdp-2, 0x1.68eb55485963cp-6,
            0x1.0e2660abd1a85p-11, 0x1.7ee973aac8a1ep-19, 0x1.4860489eca705p-31);
        const double far_d = CG_HORNER8(s, 0x1p+0, 0x1.9c339bdac89dp+0, 0x1.36c80c207fb18p+1, 0x1.367ced9c3ec61p+0, 0x1.937b12c355a7dp-3,
            0x1.68c10ef39eaa5p-7, 0x1.9c5dac65293dp-13, 0x1.b04727665a028p-21);
        n = s > 6.05 ? far_n : n;
        d = s > 6.05 ? far_d : d;
    }
    const double y = near ? m * (CG_HORNER8(w, 0x1.c5bf891b4ef6bp-1, 0x1.db29fb2fee5e4p-3, 0x1.7a72e72c1eebdp-7, -0x1.3211025e03943p-9,
        -0x1.0c86b85485f13p-13, 0x1.87014d41b990fp-15, 0x1.0f1ea93040b1ep-19, CG_HORNER6(w, -0x1.0fd0e60880f3ap-20,
        -0x1.3f88f56799fecp-25, 0x1.84c9720f302e4p-26, 0x1.02ccdfcd6b91ep-30, -0x1.6d0183c87ba0dp-31, 0x1.8ff67bf80a478p-35))) : u == 0 ?
        __builtin_inf() : CG_MULTIPLY_ADD(-s, n / d, s);
    return __builtin_copysign(y, x);
}

CG_VECTOR_FUNCTION double erfinv_float64(double x) { return inverse_error(x, 1 - __builtin_fabs(x), 0); }
CG_IN_DOUBLE(erfinv)

/* The inverse of the normal distribution, sqrt(2) erfinv(2 x - 1). */
CG_VECTOR_FUNCTION double ndtri_float64(double x)
{
    return 1.4142135623730951 * inverse_error(2 * x - 1, 2 * (x < 0.5 ? x : 1 - x), 1);
}
CG_IN_DOUBLE(ndtri)

/* exp(x^2) erfc(x), x >= 0, as P(t) / (x + 1 / sqrt(pi)), t = (x - 2.5) / (x + 2.5). */
CG_INLINE double erfcx_right_float64(double x)
{
    const double far = x < 0x1p60 ? x : 0x1p60, t = CG_MULTIPLY_ADD(2 * far, 1 / (far + 2.5), -1.0);
    return (CG_HORNER8(t, 0x1.4aba0ba92a2fbp-1, -0x1.5c52e93d96342p-4, -0x1.113e4e20b8351p-5, 0x1.21f3cb0fef553p-4, -0x1.90c2994063422p-5,
        0x1.082d589ebbaa6p-6, 0x1.36ba900c76e68p-12, CG_HORNER8(t, -0x1.17d07d2475c92p-9, 0x1.1140475e3ee75p-12, 0x1.42bda623b9992p-12,
        -0x1.8583c38ddd819p-15, -0x1.d2200f04aa0dcp-15, 0x1.e5998468d765ap-19, 0x1.77e5f95686c62p-17, CG_HORNER8(t, 0x1.3ecd33d487c77p-20,
        -0x1.1a78c891ea091p-19, -0x1.9bc9402bc77f7p-21, 0x1.211e7cc2f7736p-22, 0x1.19724804b2498p-22, 0x1.fd67e94bf9fe7p-27,
        -0x1.0b592d10ff1d3p-24, CG_HORNER5(t, -0x1.66317dbc389bep-26, 0x1.4d4761518464cp-27, 0x1.915ca74d340cep-28,
        -0x1.9ccc4420428d5p-31, -0x1.73362e7883e86p-31))))) / (x + 0x1.20dd750429b6dp-1);
}

/* exp(x^2) erfc(x), which does not underflow. */
CG_VECTOR_FUNCTION double erfcx_float64(double x)
{
    const double m = __builtin_fabs(x), y = erfcx_right_float64(m);
    const exp_parts_float64 p = exp_split_square_float64(-1, m);
    const double growing = scale_float64(2, expm1_of_r_float64(p.r), p.k_bits);
    return x < 0 ? (m > 26.7 ? __builtin_inf() : growing - y) : y;
}
CG_IN_DOUBLE(erfcx)

/* The logarithm of the normal distribution: by erfcx where it is small, else by the other tail. Infinite squares are no numbers there. */
CG_VECTOR_FUNCTION double log_ndtr_float64(double x)
{
    const double m = __builtin_fabs(x), half = 0.5 * erfcx_right_float64(0.7071067811865476 * m), square = -0.5 * x * x;
    const double left = log_plus_float64(half, square > -1e300 ? square : -1e300), right = log1p_float64(-half * gaussian_float64(m));
    return x < 0 ? (square > -1e300 ? left : square) : right;
}
CG_IN_DOUBLE(log_ndtr)

#endif
