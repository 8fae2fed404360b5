/* Bessel functions, branch-free as in vecmath.h, which must be included before.
 *
 * Computed in double for float32 too, hence exact there but for the last rounding. Near 0 by polynomials in x^2, far out by polynomials in
 * 1 / x for the factors beside exp(x) / sqrt(x) (Blair 1974); coefficients of the interpolation at Chebyshev's points, relative
 * error below 2^-57. "1.4 ulp" is the largest error measured on any level, for float64. Pure functions, so thread-safe.
 */
#ifndef CG_BESSELMATH_H
#define CG_BESSELMATH_H

/* I0(x), I1(x) / x for x < 7.75, of z = x^2; times exp(-x) sqrt(x) beyond, of u = 15.5 / x - 1. */
CG_INLINE double near_i0_float64(double z) { return CG_HORNER8(z, 0x1p+0, 0x1.0000000000002p-2, 0x1.fffffffffffb5p-7,
    0x1.c71c71c71cc6p-12, 0x1.c71c71c71646cp-18, 0x1.23456789f1b71p-24, 0x1.02e85c0489408p-31, CG_HORNER8(z, 0x1.522a4449ad8aap-39,
    0x1.522a3f32a5433p-47, 0x1.0b316532a160dp-55, 0x1.55fe72fed11aap-64, 0x1.69edc0650471ep-73, 0x1.4076cf938fc41p-82,
    0x1.f41f4812f1d29p-92, CG_HORNER2(z, 0x1.0d0287d8c24ecp-101, 0x1.206ef69b87b0ap-110))); }
CG_INLINE double near_i1_float64(double z) { return CG_HORNER8(z, 0x1p-1, 0x1p-4, 0x1.555555555554dp-9, 0x1.c71c71c71c852p-15,
    0x1.6c16c16c15565p-21, 0x1.845c8a0d053b4p-28, 0x1.27e4fb75abb9dp-35, CG_HORNER8(z, 0x1.522a441caf42bp-43, 0x1.2c9756a98d1b2p-51,
    0x1.ab82191ca8085p-60, 0x1.f173c09ae8536p-69, 0x1.e283df59a8e9fp-78, 0x1.8ac3e8a424ed4p-87, 0x1.1c5c4d9c61d09p-96, CG_HORNER2(z,
    0x1.25e5314ed765dp-106, 0x1.18c55ab59e98ap-115))); }
CG_INLINE double far_i0_float64(double u) { return CG_HORNER8(u, 0x1.9bf09d24c9fb6p-2, 0x1.c7e07b9f99678p-9, 0x1.32d2e3d9005cep-13,
    0x1.a271ce4d816edp-17, 0x1.d34ef64ebed48p-20, 0x1.8cf600690a4fbp-22, 0x1.fe845f2a34384p-24, CG_HORNER8(u, 0x1.e4400160a2c9fp-25,
    0x1.02cc21ce51bb3p-25, 0x1.a10197ada3cadp-28, -0x1.192c4e2811e78p-26, -0x1.66d6f31987055p-26, -0x1.dd95d5397e36bp-30,
    0x1.09345aacf3cd6p-26, CG_HORNER8(u, 0x1.b5e6235ccaeap-28, -0x1.46990cba8d936p-27, -0x1.61b889e7e5be3p-28, 0x1.66d078a3fca46p-28,
    0x1.6653485f3d18ap-29, -0x1.38da4d4d344bcp-29, -0x1.ba847a8e3f4b2p-31, CG_HORNER3(u, 0x1.684bbd3164bedp-31, 0x1.f88c82e0b7ae1p-34,
    -0x1.8ab9bda7f42f2p-34)))); }
CG_INLINE double far_i1_float64(double u) { return CG_HORNER8(u, 0x1.8e6bf6fae06bdp-2, -0x1.4a4281867f524p-7, -0x1.ed3096ec3ae15p-13,
    -0x1.19f47a721da9fp-16, -0x1.206f690a4aad6p-19, -0x1.d008c2b6c4fb8p-22, -0x1.1ef7fba9dc618p-23, CG_HORNER8(u, -0x1.093a22f51fd12p-24,
    -0x1.19cc2a96135c6p-25, -0x1.ed933e1c2cf48p-28, 0x1.1f21461067bc7p-26, 0x1.7b1d607ab7385p-26, 0x1.4ce2ef4ffe093p-29,
    -0x1.10f168f9199d8p-26, CG_HORNER8(u, -0x1.e23a6e6bd2a18p-28, 0x1.4aae44fa86a68p-27, 0x1.7d1e8806780bp-28, -0x1.6826ff0a54b41p-28,
    -0x1.7f231440b6ba9p-29, 0x1.38ddc760f01bp-29, 0x1.d79aead7f3f69p-31, CG_HORNER3(u, -0x1.67dd8cfab012p-31, -0x1.0c712d0c68862p-33,
    0x1.8a27b6f9db052p-34)))); }

/* y exp(m), m >= 0, finite where exp(m) is not. */
CG_INLINE double growing_float64(double y, double m)
{
    const exp_parts_float64 p = exp_split_float64(m);
    return m > 720 ? __builtin_inf() : scale_float64(y, expm1_of_r_float64(p.r), p.k_bits);
}

/* exp(-m), 0 <= m < 7.75. */
CG_INLINE double near_decay_float64(double m)
{
    const exp_parts_float64 p = exp_split_float64(-(m < 7.75 ? m : 7.75));
    return decaying_float64(p.r, p.k_bits);
}

CG_VECTOR_FUNCTION double i0_float64(double x)
{
    const double m = __builtin_fabs(x), far = growing_float64(far_i0_float64(15.5 / m - 1) / __builtin_sqrt(m), m);
    return m < 7.75 ? near_i0_float64(m * m) : m == m ? far : x;
}
CG_IN_DOUBLE(i0)

CG_VECTOR_FUNCTION double i0e_float64(double x)
{
    const double m = __builtin_fabs(x), far = far_i0_float64(15.5 / m - 1) / __builtin_sqrt(m);
    return m < 7.75 ? near_i0_float64(m * m) * near_decay_float64(m) : far;
}
CG_IN_DOUBLE(i0e)

CG_VECTOR_FUNCTION double i1_float64(double x)
{
    const double m = __builtin_fabs(x), far = growing_float64(far_i1_float64(15.5 / m - 1) / __builtin_sqrt(m), m);
    return m < 7.75 ? x * near_i1_float64(m * m) : m == m ? __builtin_copysign(far, x) : x;
}
CG_IN_DOUBLE(i1)

CG_VECTOR_FUNCTION double i1e_float64(double x)
{
    const double m = __builtin_fabs(x), far = far_i1_float64(15.5 / m - 1) / __builtin_sqrt(m);
    return m < 7.75 ? x * near_i1_float64(m * m) * near_decay_float64(m) : __builtin_copysign(far, x);
}
CG_IN_DOUBLE(i1e)

#endif
