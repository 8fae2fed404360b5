/* Inverse trigonometric functions and hypot, branch-free as in vecmath.h, which must be included before.
 *
 * Computed in double for float32 too, hence exact there but for the last rounding. Polynomials from fdlibm's s_atan.c and
 * e_asin.c. "1.4 ulp" is the largest error measured on any level, for float64. Pure functions, so thread-safe.
 */
#ifndef CG_INVERSEMATH_H
#define CG_INVERSEMATH_H

#define CG_HALF_PI 0x1.921fb54442d18p+0
#define CG_HALF_PI_LO 0x1.1a62633145c07p-54
#define CG_IN_DOUBLE(f) CG_INLINE float f##_float32(float x) { return (float)f##_float64(x); }
#define CG_IN_DOUBLE2(f) CG_INLINE float f##_float32(float a, float b) { return (float)f##_float64(a, b); }

/* (t - atan(t)) / t in z = t^2, |t| <= 7/16. */
CG_INLINE double atan_tail_float64(double z)
{
    return z * CG_HORNER8(z, 3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01,
        -1.11111104054623557880e-01, 9.09088713343650656196e-02, -7.69187620504482999495e-02, 6.66107313738753120669e-02,
        CG_HORNER4(z, -5.83357013379057348645e-02, 4.97687799461593236017e-02, -3.65315727442169155270e-02,
        1.62858201153657823623e-02));
}

/* Of the quotient n / d >= 0, by 0, pi/4 or pi/2 and the rest, below tan(pi/8). */
CG_INLINE double atan_of_quotient_float64(double n, double d)
{
    const int large = n > d * 2.414213562373095, middle = n > d * 0.41421356237309503;
    const double numerator = large ? -d : middle ? n - d : n, denominator = large ? n : middle ? n + d : d;
    const double base = large ? CG_HALF_PI : middle ? CG_HALF_PI / 2 : 0;
    const double base_lo = large ? CG_HALF_PI_LO : middle ? CG_HALF_PI_LO / 2 : 0;
    const double t = numerator / denominator;
    return base - ((t * atan_tail_float64(t * t) - base_lo) - t);
}

/* 1.4 ulp. */
CG_VECTOR_FUNCTION double atan_float64(double x)
{
    const double magnitude = __builtin_fabs(x), far = magnitude > 0x1p60 ? 0x1p60 : magnitude;
    return __builtin_copysign(x == x ? atan_of_quotient_float64(far, 1) : x, x);
}

/* The angle of (b, a), by the angle of the absolute values, scaled so that neither sum nor product overflows; 1.2 ulp. */
CG_VECTOR_FUNCTION double atan2_float64(double a, double b)
{
    const double n = __builtin_fabs(a), d = __builtin_fabs(b), greater = n > d ? n : d, smaller = n > d ? d : n;
    const int special = (greater == 0) | (smaller == __builtin_inf());
    const double scale = greater > 0x1p1000 ? 0x1p-100 : greater < 0x1p-900 ? 0x1p200 : 1;
    const double scaled = special ? (n != 0) : n == __builtin_inf() ? 0x1p1000 : n * scale;
    const double angle = atan_of_quotient_float64(scaled, special ? 1 : n == __builtin_inf() ? 1 : d * scale);
    const double y = __builtin_copysign(1, b) < 0 ? 2 * CG_HALF_PI - (angle - 2 * CG_HALF_PI_LO) : angle;
    return ((a == a) & (b == b)) ? __builtin_copysign(y, a) : a + b;
}

/* asin(t) / t - 1 in z = t^2, |t| <= 1/2. */
CG_INLINE double asin_tail_float64(double z)
{
    return z * CG_HORNER6(z, 1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01,
        -4.00555345006794114027e-02, 7.91534994289814532176e-04, 3.47933107596021167570e-05) /
           CG_HORNER5(z, 1, -2.40339491173441421878e+00, 2.02094576023350569471e+00, -6.88283971605453293030e-01,
        7.70381505559019352791e-02);
}

/* Beyond 1/2 by pi/2 - 2 asin(sqrt((1 - m) / 2)); 2.2 ulp. */
CG_VECTOR_FUNCTION double asin_float64(double x)
{
    const double m = __builtin_fabs(x);
    const int near = m < 0.5;
    const double half = 0.5 * (1 - m), z = near ? m * m : half, t = near ? m : __builtin_sqrt(half);
    const double y = t + t * asin_tail_float64(z);
    return __builtin_copysign(near ? y : CG_HALF_PI - (2 * y - CG_HALF_PI_LO), x);
}

/* 1.2 ulp. */
CG_VECTOR_FUNCTION double acos_float64(double x)
{
    const double m = __builtin_fabs(x);
    const int near = m < 0.5;
    const double half = 0.5 * (1 - m), z = near ? m * m : half, t = near ? x : __builtin_sqrt(half);
    const double tail = t * asin_tail_float64(z);
    const double outer = 2 * (t + tail);
    const double y = near ? CG_HALF_PI - (t - (CG_HALF_PI_LO - tail)) : x < 0 ? 2 * (CG_HALF_PI - (t + (tail - CG_HALF_PI_LO))) : outer;
    return y;
}

/* By the quotient of the smaller and the greater, so that no square overflows. */
CG_INLINE double hypot_of_ordered(double greater, double smaller)
{
    const double quotient = smaller / (greater > 0 ? greater : 1);
    return greater * __builtin_sqrt(1 + quotient * quotient);
}

/* 1.7 ulp. */
CG_VECTOR_FUNCTION double hypot_float64(double a, double b)
{
    const double m = __builtin_fabs(a), n = __builtin_fabs(b), y = hypot_of_ordered(m > n ? m : n, m > n ? n : m);
    return ((m == __builtin_inf()) | (n == __builtin_inf())) ? __builtin_inf() : y + (a - a) + (b - b);
}

CG_IN_DOUBLE(atan)
CG_IN_DOUBLE(asin)
CG_IN_DOUBLE(acos)
CG_IN_DOUBLE2(atan2)
CG_INLINE float hypot_float32(float a, float b)
{
    const double y = __builtin_sqrt((double)a * a + (double)b * b);
    return ((__builtin_fabsf(a) == __builtin_inff()) | (__builtin_fabsf(b) == __builtin_inff())) ? __builtin_inff() : (float)y;
}
#endif
