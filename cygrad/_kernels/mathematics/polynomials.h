/* The polynomials and rational functions of vecmath.h, which includes this: F_float64 and F_float32, each on a short interval. */
#ifndef CG_POLYNOMIALS_H
#define CG_POLYNOMIALS_H

/* Lowest coefficient first: Horner's scheme, of fewest operations, and Estrin's, of short chains; z = x^2, w = z^2. */
#define CG_HORNER2(x, c0, c1) CG_MULTIPLY_ADD(x, c1, c0)
#define CG_HORNER3(x, c0, ...) CG_MULTIPLY_ADD(x, CG_HORNER2(x, __VA_ARGS__), c0)
#define CG_HORNER4(x, c0, ...) CG_MULTIPLY_ADD(x, CG_HORNER3(x, __VA_ARGS__), c0)
#define CG_HORNER5(x, c0, ...) CG_MULTIPLY_ADD(x, CG_HORNER4(x, __VA_ARGS__), c0)
#define CG_HORNER6(x, c0, ...) CG_MULTIPLY_ADD(x, CG_HORNER5(x, __VA_ARGS__), c0)
#define CG_HORNER7(x, c0, ...) CG_MULTIPLY_ADD(x, CG_HORNER6(x, __VA_ARGS__), c0)
#define CG_HORNER8(x, c0, ...) CG_MULTIPLY_ADD(x, CG_HORNER7(x, __VA_ARGS__), c0)
#define CG_POLY3(x, z, c0, c1, c2) CG_MULTIPLY_ADD(z, c2, CG_HORNER2(x, c0, c1))
#define CG_POLY4(x, z, c0, c1, c2, c3) CG_MULTIPLY_ADD(z, CG_HORNER2(x, c2, c3), CG_HORNER2(x, c0, c1))
#define CG_POLY8(x, z, w, a, b, c, d, ...) CG_MULTIPLY_ADD(w, CG_POLY4(x, z, __VA_ARGS__), CG_POLY4(x, z, a, b, c, d))

/* ---- float64: minimax polynomials by Remez' algorithm, relative error of the functions they serve below 2^-54 ---- */

/* r coth(r/2) - 2 in z = r^2, |r| <= log(2)/2. */
CG_INLINE double coth_tail_float64(double z)
{
    return z * CG_HORNER5(z, 0x1.5555555555543p-3, -0x1.6c16c16bedd77p-9, 0x1.1566aaefcc794p-14, -0x1.bbd405ac07c1dp-20,
        0x1.63677e537ba56p-25);
}

/* (exp(r) - 1 - r) / z, z = r^2, |r| <= log(2)/2. */
CG_INLINE double exp_tail_float64(double r, double z)
{
    double even = CG_HORNER5(z, 0x1.0000000000004p-1, 0x1.55555555523dcp-5, 0x1.6c16c17e9fb08p-10, 0x1.a019a807f44c2p-16,
        0x1.28a15b14453a0p-22);
    double odd = CG_HORNER5(z, 0x1.555555555553bp-3, 0x1.1111111118b88p-7, 0x1.a01a017654276p-13, 0x1.71de8588c3c2ep-19,
        0x1.ae6f339ea58d8p-26);
    return CG_MULTIPLY_ADD(r, odd, even);
}

/* (log((1 + s) / (1 - s)) - 2 s) / s^3 in z = s^2, |s| <= 0.1716. */
CG_INLINE double log_tail_float64(double z)
{
    return CG_HORNER7(z, 0x1.555555555557cp-1, 0x1.9999999984716p-2, 0x1.2492493fbb83ep-2, 0x1.c71c52b1765dcp-3,
        0x1.74664ac740c28p-3, 0x1.399cd9486fc7dp-3, 0x1.2f54411dbb429p-3);
}

/* scale (P(t) - P(0)) / t of P = (x + 2.5) exp(x^2) erfc(x), t = (x - 2.5) / (x + 2.5), 0 <= x <= 27.4, P(0) being ERFCX_START;
 * Horner's scheme rounds less. The compiler merges the scale.
 */
CG_INLINE double erfcx_slope_float64(double t, double scale)
{
    double z = t * t, w = z * z, v = w * w;
    double low = CG_POLY8(t, z, w, scale * -0x1.5eb8eba1dfd44p-3, scale * 0x1.d0acf691fb2eep-6, scale * 0x1.1305f56563c20p-7,
        scale * -0x1.3bcdce3bc0b44p-8, scale * -0x1.cc8b120537702p-12, scale * 0x1.7069f50887bcap-11, scale * 0x1.e91ef2366e8f7p-15,
        scale * -0x1.d84ca71044a23p-14);
    double middle = CG_POLY8(t, z, w, scale * -0x1.47b0604940a39p-16, scale * 0x1.3219bd628e81fp-16, scale * 0x1.c52329a974a55p-18,
        scale * -0x1.39533975a02a5p-19, scale * -0x1.06ab924944383p-19, scale * -0x1.1d31b75a4367dp-30, scale * 0x1.d6c2453934a14p-22,
        scale * 0x1.183225db72a70p-23);
    double high = CG_MULTIPLY_ADD(w, scale * 0x1.c8ceeb2072759p-30, CG_POLY4(t, z, scale * -0x1.01320444aeee6p-24,
        scale * -0x1.84846beebc82ep-25, scale * -0x1.0d7206d46fb15p-30, scale * 0x1.c9eaa31daa934p-28));
    double tail = CG_MULTIPLY_ADD(v, CG_MULTIPLY_ADD(v, high, middle), low);
    return CG_HORNER3(t, scale * -0x1.9bfb53c4039d7p-1, scale * 0x1.d0cedcb8c902ap-2, tail);
}

/* All bits where k is odd. By the sign of the last one: GCC 16 makes a bool of -(k & 1), and has no vectors of those. */
CG_INLINE uint64_t all_bits_if_odd(uint64_t k) { return -(uint64_t)((int64_t)(k << 63) < 0); }

/* n / d, or -d / n if k is odd: the tangent of r + k pi/2 from n / d = tan(r). */
CG_INLINE double tan_quotient(double n, double d, uint64_t k_bits)
{
    uint64_t odd = all_bits_if_odd(k_bits), swap = (bits_float64(n) ^ bits_float64(d)) & odd, sign = odd << 63;
    return real_float64(bits_float64(n) ^ swap ^ sign) / real_float64(bits_float64(d) ^ swap);
}

/* An angle as k pi/2 + r, |r| <= pi/4. */
typedef struct {
    double r;
    uint64_t k_bits; /* k in the low bits */
} quarter_turns;

/* Below 2^24: pi/2 in four parts, three of them with exact products, rounding errors kept. */
CG_INLINE quarter_turns quarter_turns_float64(double x)
{
    const double shifter = 0x1.8p52;
    double shifted = x * 0x1.45f306dc9c883p-1 + shifter, k = shifted - shifter;
    double k2 = k * 0x1.10b4611p-30, k3 = k * 0x1.4c4c662p-59, k4 = k * 0x1.1701b839a252p-88;
    double a = x - k * 0x1.921fb54p+0, b = a - k2, c = b - k3, r = c - (k4 - (((a - b) - k2) + ((b - c) - k3)));
    quarter_turns turns = {r, bits_float64(shifted)};
    return turns;
}

/* Below 2^20: a float32, in double arithmetic. */
CG_INLINE quarter_turns quarter_turns_float32(float x)
{
    const double shifter = 0x1.8p52;
    double shifted = x * 0x1.45f306dc9c883p-1 + shifter, k = shifted - shifter;
    quarter_turns turns = {(x - k * 0x1.921fb544p+0) - k * 0x1.0b4611a626331p-34, bits_float64(shifted)};
    return turns;
}

/* Below 2^24: a rational minimax. */
CG_INLINE double tan_near_float64(double x)
{
    const quarter_turns turns = quarter_turns_float64(x);
    double r = turns.r;
    double z = r * r, w = z * z;
    double n = r + (r * z) * CG_POLY3(z, w, -0x1.06b97843f49cfp-3, 0x1.6fc6e3f88b647p-9, -0x1.f6375cc086dbdp-18);
    double d = 1 + z * CG_POLY3(z, w, -0x1.d8b211774fa0ap-2, 0x1.7e7b5bc82cb11p-6, -0x1.b52574e21ada6p-13);
    return tan_quotient(n, d, turns.k_bits);
}

/* ---- float32: the same, relative error below 2^-27 ---- */

CG_INLINE float coth_tail_float32(float z) { return z * CG_HORNER2(z, 0x1.555516p-3f, -0x1.6a87ecp-9f); }

CG_INLINE float exp_tail_float32(float r, float z)
{
    float tail = CG_MULTIPLY_ADD(z, 0x1.6d99dcp-10f, CG_HORNER2(r, 0x1.5554acp-5f, 0x1.12282p-7f));
    return CG_MULTIPLY_ADD(z, tail, CG_HORNER2(r, 0.5f, 0x1.5554bp-3f));
}

CG_INLINE float log_tail_float32(float z)
{
    return CG_HORNER4(z, 0x1.555556p-1f, 0x1.999a7ep-2f, 0x1.24357ep-2f, 0x1.e3b192p-3f);
}

/* -log(erfc(x)) / x - x - 1, 0 <= x <= 3.95. */
CG_INLINE float erf_tail_float32(float x)
{
    return CG_HORNER4(x, 0x1.06eba8p-3f, -0x1.0f3d88p-2f, -0x1.21620cp-3f, -0x1.16922p-5f) /
           CG_HORNER4(x, 1, 0x1.88d314p-1f, 0x1.14fc00p-2f, 0x1.23385ep-5f);
}

/* 0 <= x <= 10.3. */
CG_INLINE float erfcx_slope_float32(float t, float scale)
{
    float z = t * t;
    float tail = CG_POLY8(t, z, z * z, scale * -0x1.5eb940p-3f, scale * 0x1.d0a16ep-6f, scale * 0x1.1336d6p-7f, scale * -0x1.3a9d3ap-8f,
        scale * -0x1.de7ae8p-12f, scale * 0x1.53fc9ep-11f, scale * 0x1.1bb97ap-14f, scale * -0x1.835d0cp-15f);
    return CG_HORNER3(t, scale * -0x1.9bfb54p-1f, scale * 0x1.d0cee6p-2f, tail);
}

/* Below 2^20: in double arithmetic. */
CG_INLINE float tan_near_float32(float x)
{
    const quarter_turns turns = quarter_turns_float32(x);
    double r = turns.r, z = r * r, w = z * z;
    double n = r * CG_POLY3(z, w, 0x1.00000000182bfp+0, -0x1.c822f3f53916bp-4, 0x1.19d87f42a19cfp-10);
    double d = CG_POLY3(z, w, 1, -0x1.c75e12361acb9p-2, 0x1.05b54b20df60bp-6);
    return (float)tan_quotient(n, d, turns.k_bits);
}

#endif
