/* The regularized incomplete gamma functions, of single numbers. Included after gammamath.h, errormath.h and sumsmath.h.
 *
 * By the series (DLMF 8.11.4) left of the mean, the continued fraction (DLMF 8.9.2, Lentz 1976) right of it, and for large orders near it
 * by Temme's uniform expansion (1979; DLMF 8.12). The factor beside them is x^a exp(-x) / Gamma(a + 1), of large orders by
 * log(1 + m) - m, m = x / a - 1, so that no digits cancel. Errors are some 1e-15, and larger where the factor is tiny. Pure functions, so
 * thread-safe.
 */
#ifndef CG_INCOMPLETEGAMMA_H
#define CG_INCOMPLETEGAMMA_H

/* log(1 + m) - m, by the series of the inverse hyperbolic tangent near 0. */
CG_SCALAR_FUNCTION double log1p_less(double m)
{
    const double s = m / (2 + m), z = s * s;
    double power = 1, sum = 1.0 / 3;
    if (m < -0.3 || m > 0.5) return log1p_float64(m) - m;
    for (int k = 5; k < 60 && power > 1e-18; k += 2) {
        power *= z;
        sum += power / k;
    }
    return 2 * s * z * sum - m * s;
}

/* Gamma(a + 1), 0 <= a < 8: factors down to [1, 2], where the logarithm is small. */
CG_SCALAR_FUNCTION double small_factorial(double a)
{
    double product = 1;
    for (; a >= 1; a--) product *= a;
    return product * exp_float64(near_lgamma_float64(a, a - 1));
}

/* x^a exp(-x) / Gamma(a + 1). From a = 8 on exp(a (log(x / a) - x / a + 1)) by Stirling's series, by a power where x / a is far from 1. */
CG_SCALAR_FUNCTION double gamma_density(double a, double x)
{
    if (a < 8) {
        if (x > 2000) return 0; /* where x^a is infinite, too */
        const double half = exp_float64(-0.5 * x);
        return pow(x, a) * half / small_factorial(a) * half;
    }
    const double inverse = 1 / a, z = inverse * inverse, m = (x - a) / a;
    const double correction = inverse * CG_HORNER7(z, 0x1.5555555555555p-4, -0x1.6c16c16c14a76p-9, 0x1.a01a017e2d3d3p-11,
        -0x1.38134db2f9c9ep-11, 0x1.b92c63c3424dcp-11, -0x1.ef92c057f9c65p-10, 0x1.4c1bf975f0773p-8);
    const double exponent = a * log1p_less(m), root = __builtin_sqrt(6.283185307179586 * a);
    if (a > 500 || (m > -0.3 && m < 0.5) || exponent < -760) return exp_float64(exponent - correction) / root;
    const double q = x / a, lost = __builtin_fma(-q, a, x) / x; /* the quotient is q (1 + lost) */
    const double factor = pow(q, 0.5 * a) * exp_float64(0.5 * ((a - x) + (a * lost - correction)));
    return factor / root * factor;
}

/* The lower function of small x / a: the density times 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) ... */
CG_SCALAR_FUNCTION double lower_by_series(double a, double x)
{
    const double density = gamma_density(a, x);
    double term = 1, sum = 1;
    if (density == 0) return 0;
    for (double k = 1; term > sum * 1e-17; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return density * sum;
}

/* The upper function of large x: the density times a over the continued fraction. Forwards, by numerators and denominators, that says how
 * many terms there are, four at a time; backwards the errors of the last terms vanish. */
CG_SCALAR_FUNCTION double upper_by_fraction(double a, double x)
{
    const double density = gamma_density(a, x), first = x + 1 - a;
    if (density == 0) return 0; /* where x^2 is infinite, too */
    double k = 0, last = 0, p = first, p_before = 1, q = 1, q_before = 0, change = 1;
    while (change > 2e-16 && k < 1e6) {
        for (int j = 0; j < 4; j++) {
            k++;
            const double n = k * (a - k), b = first + 2 * k, p_next = b * p + n * p_before, q_next = b * q + n * q_before;
            p_before = p;
            q_before = q;
            p = p_next;
            q = q_next;
        }
        const double y = p / q;
        change = __builtin_fabs((y - last) / y);
        last = y;
        if (__builtin_fabs(p) > 1e200) {
            p *= 1e-200;
            q *= 1e-200;
            p_before *= 1e-200;
            q_before *= 1e-200;
        }
    }
    double y = first + 2 * k;
    for (; k >= 1; k--) y = (first + 2 * (k - 1)) + k * (a - k) / y;
    return density * a / y;
}

/* The upper function of small x and a, 1 - x^a / Gamma(1 + a) (1 + a sum), where the subtraction from 1 would cancel. */
CG_SCALAR_FUNCTION double upper_by_series(double a, double x)
{
    const double exponent = a * log_float64(x) - near_lgamma_float64(a, a - 1);
    double factor = 1, sum = 0;
    for (double k = 1; k < 200; k++) {
        factor *= -x / k;
        sum += factor / (a + k);
        if (__builtin_fabs(factor) < 1e-18) break;
    }
    return -expm1_float64(exponent) - exp_float64(exponent) * a * sum;
}

/* Either function of a large order near the mean. */
CG_SCALAR_FUNCTION double incomplete_by_temme(double a, double x, int upper)
{
    static const double coefficients[5][14] = {
    {-0x1.5555555555555p-2, 0x1.5555555555555p-4, -0x1.e573ac901e574p-7, 0x1.2f684bda12f68p-10, 0x1.71de3a556c734p-12,
     -0x1.76e06fec7273bp-13, 0x1.48c5892f7cd83p-15, -0x1.255370652afc1p-19, -0x1.f1b22f594c6b5p-20, 0x1.bd6d21e4b4109p-21,
     -0x1.7b5f9a2d0465cp-23, 0x1.ccf5ceb7f0d9fp-28, 0x1.6097d55c37c1cp-27, -0x1.2d2197c7a2faap-28},
    {-0x1.e573ac901e574p-10, -0x1.c71c71c71c71cp-9, 0x1.5ac056b015acp-9, -0x1.0394f6f09e723p-10, 0x1.af83440e53dbcp-13,
     -0x1.af83440e53dbcp-22, -0x1.2fa4ae89e5afp-16, 0x1.00a9cabd6b83ep-17, -0x1.b0bdfcc629cbap-20, 0x1.3f59230a8357cp-28,
     0x1.280f2cde3f847p-23, -0x1.ee23d0cba8aeep-25},
    {0x1.0ee643b990ee6p-8, -0x1.5f7268edab4c8p-9, 0x1.948b0fcd6e9ep-11, 0x1.0db20a88f4696p-19, -0x1.c253efaa1a932p-14,
     0x1.bbf43daf4fe53p-15, -0x1.ac2d05890f2c3p-17, 0x1.26154ae39151dp-25, 0x1.7058929663937p-20, -0x1.522cb05171911p-21},
    {0x1.547d93b34e2b6p-11, 0x1.e13ce465fa859p-13, -0x1.ebfb188b7cap-12, 0x1.18b9b5bf2d984p-12, -0x1.3d2a3a29b5d9dp-14,
     -0x1.0152a1871f27ap-22, 0x1.73df462204ef4p-17, -0x1.7cd6f27b3f02p-18},
    {-0x1.c3e0b02da7bf9p-11, 0x1.9b0ff6874f2c4p-11, -0x1.3999a85a4237ap-12, -0x1.88f2ae1def9dp-20, 0x1.16908b48ce058p-14,
     -0x1.4ce3fd902bcadp-15}};
    static const int counts[5] = {14, 12, 10, 8, 6};
    const double m = (x - a) / a, curve = -2 * log1p_less(m), eta = __builtin_copysign(__builtin_sqrt(curve), m);
    double sum = 0;
    for (int k = 4; k >= 0; k--) {
        double y = 0;
        for (int j = counts[k] - 1; j >= 0; j--) y = y * eta + coefficients[k][j];
        sum = sum / a + y;
    }
    const double rest = exp_float64(-0.5 * a * curve) / __builtin_sqrt(6.283185307179586 * a) * sum, tail = eta * __builtin_sqrt(0.5 * a);
    return upper ? 0.5 * erfc_float64(tail) + rest : 0.5 * erfc_float64(-tail) - rest;
}

CG_SCALAR_FUNCTION double incomplete_gamma(double a, double x, int upper)
{
    const double infinite = __builtin_inf();
    if (a != a || x != x || a < 0 || x < 0 || (a == 0 && x == 0) || (a == infinite && x == infinite)) return __builtin_nan("");
    if (x == 0 || a == infinite) return upper;
    if (a == 0 || x == infinite) return !upper;
    if (a > 2000 && __builtin_fabs(x - a) < 0.15 * a) return incomplete_by_temme(a, x, upper);
    if (upper && x <= 1.1 && a < 1.5 && (x <= 0.5 || 1.1 * x >= a)) return upper_by_series(a, x);
    if (x > 1.1 && x > (upper ? a : a + 1)) {
        const double y = upper_by_fraction(a, x);
        return upper ? y : 1 - y;
    }
    const double lower = lower_by_series(a, x);
    return upper ? 1 - lower : lower;
}

/* x^(a - 1) exp(-x) / Gamma(a), the derivative of the lower function by x. */
CG_SCALAR_FUNCTION double gamma_slope(double a, double x)
{
    if (a != a || x != x || a < 0 || x < 0) return __builtin_nan("");
    if (a == 0 || (x > 2000 && a < 8) || x == __builtin_inf() || a == __builtin_inf()) return 0;
    if (x == 0) return a < 1 ? __builtin_inf() : a == 1;
    if (a >= 8) {
        const double density = gamma_density(a, x);
        return density == 0 ? 0 : density * (a / x);
    }
    const double half = exp_float64(-0.5 * x), power = a < 0.5 ? pow(x, a) / x : pow(x, a - 1); /* a - 1 is exact from 1/2 on */
    return power * half / small_factorial(a) * half * a;
}

#endif
