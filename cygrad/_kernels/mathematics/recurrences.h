/* Orthogonal polynomials and spherical Bessel functions, of single numbers, by recurrences of three terms. Included after sumsmath.h.
 *
 * A degree is cut to a whole number; polynomials of a negative one are 0. Each step rounds, so errors grow with the degree, in units of the
 * largest term. Pure functions, so thread-safe.
 */
#ifndef CG_RECURRENCES_H
#define CG_RECURRENCES_H

#define CG_LONG_RECURRENCE 64  /* steps; beyond by trigonometric functions, whose errors grow slower */
#define CG_LAST_DEGREE 1048576 /* NaN beyond: a millisecond per element */

enum { CG_GEGENBAUER, CG_LAGUERRE, CG_HERMITE, CG_HERMITE_E }; /* with the parameter lambda or alpha of the first two */

/* y exp2(exponent). */
CG_INLINE double rescaled(double y, double exponent)
{
    for (; exponent > 0 && y - y == 0 && y != 0; exponent -= 512) y *= 0x1p512;
    return y;
}

/* Keep two steps of a recurrence within the range: both by a power of 2, which `exponent` counts. */
CG_INLINE void scale_down(double *before, double *y, double *exponent)
{
    if (!(__builtin_fabs(*y) > 0x1p512)) return;
    *before *= 0x1p-512;
    *y *= 0x1p-512;
    *exponent += 512;
}

/* The sign of x^n times infinity. */
CG_INLINE double infinite_power(double x, double n)
{
    return x < 0 && n / 2 != __builtin_trunc(n / 2) ? -__builtin_inf() : __builtin_inf();
}

/* Chebyshev's polynomials, which differ in the first degree alone: by p = 2 x p1 - p0. */
CG_SCALAR_FUNCTION double chebyshev_steps(double x, double n, double first)
{
    double before = 1, y = first, exponent = 0;
    if (n < 1) return n == 0;
    if (n > 2 && __builtin_fabs(x) > 0x1p400) return infinite_power(x, n);
    for (double k = 2; k <= n; k++) {
        const double next = 2 * x * y - before;
        before = y;
        y = next;
        scale_down(&before, &y, &exponent);
    }
    return rescaled(y, exponent);
}

/* sin(m t) / sin(part t) or the cosines, x = cos(t) >= 0; beyond 1 the hyperbolic functions. */
CG_SCALAR_FUNCTION double chebyshev_waves(double x, double m, double part, int sine)
{
    if (x < 1) {
        const double t = __builtin_acos(x);
        return sine ? __builtin_sin(m * t) / __builtin_sin(part * t) : __builtin_cos(m * t) / __builtin_cos(part * t);
    }
    const double t = __builtin_acosh(x);
    if (t == 0) return sine ? m / part : 1;
    if (m * t > 700) { /* exp((m - part) t) of two factors, as half of each would overflow; without t part is 0 */
        const double half = exp_float64(0.5 * (m - part) * t), ends = part == 0 ? 2 : sine ? 1 - exp_float64(-2 * part * t)
            : 1 + exp_float64(-2 * part * t);
        return half / ends * half;
    }
    return sine ? __builtin_sinh(m * t) / __builtin_sinh(part * t) : __builtin_cosh(m * t) / __builtin_cosh(part * t);
}

/* kind: t, u, v, w. Of negative x by the symmetry, which exchanges v and w. */
CG_SCALAR_FUNCTION double chebyshev(double x, double degree, char kind)
{
    const double n = __builtin_trunc(degree), m = __builtin_fabs(x);
    if (x != x || n != n) return x + n;
    if (n < CG_LONG_RECURRENCE)
        return chebyshev_steps(x, n, kind == 't' ? x : kind == 'u' ? 2 * x : kind == 'v' ? 2 * x - 1 : 2 * x + 1);
    if (n == __builtin_inf()) return m > 1 ? infinite_power(x, 0) : __builtin_nan("");
    const double y = kind == 't' ? chebyshev_waves(m, n, 0, 0) : kind == 'u' ? chebyshev_waves(m, n + 1, 1, 1)
        : chebyshev_waves(m, n + 0.5, 0.5, (kind == 'w') ^ (x >= 0) ? 0 : 1);
    return x < 0 && n / 2 != __builtin_trunc(n / 2) ? -y : y;
}

/* The other polynomials (DLMF 18.9.1): Gegenbauer's, which are Legendre's for 1/2, Laguerre's, and Hermite's in both scales. */
CG_SCALAR_FUNCTION double polynomial(double x, double degree, double parameter, int kind)
{
    const double n = __builtin_trunc(degree);
    double before = 0, y = 1, exponent = 0;
    if (x != x || n != n) return x + n;
    if (n < 1) return n == 0;
    if (n > 2 && __builtin_fabs(x) > 0x1p400) return infinite_power(kind == CG_LAGUERRE ? -x : x, n);
    if (n > CG_LAST_DEGREE) return __builtin_nan("");
    for (double k = 0; k < n; k++) {
        const double part = kind == CG_HERMITE || kind == CG_HERMITE_E ? k
            : (kind == CG_LAGUERRE ? k + parameter : k + 2 * parameter - 1) / (k + 1); /* no quotient waits for the step before */
        const double next = kind == CG_HERMITE ? 2 * (x * y - part * before) : kind == CG_HERMITE_E ? x * y - part * before
            : kind == CG_LAGUERRE ? y + part * (y - before) - x / (k + 1) * y : x * y + part * (x * y - before);
        before = y;
        y = next;
        scale_down(&before, &y, &exponent);
    }
    return rescaled(y, exponent);
}

/* The spherical Bessel function of the first kind of order n: near 0 by its series (DLMF 10.53.1), else upwards from sin(x) / x. */
CG_SCALAR_FUNCTION double spherical_bessel(double x, double n)
{
    const double m = __builtin_fabs(x), sign = x < 0 && n / 2 != __builtin_trunc(n / 2) ? -1 : 1;
    if (x != x) return x;
    if (m == __builtin_inf()) return 0;
    if (m > n + 1) {
        double before = __builtin_cos(m) / m, y = __builtin_sin(m) / m;
        for (double k = 0; k < n; k++) {
            const double next = (2 * k + 1) / m * y - before;
            before = y;
            y = next;
        }
        return sign * y;
    }
    double factor = sign, term = 1, sum = 1;
    for (double k = 1; k <= n; k++) factor *= m / (2 * k + 1);
    for (double k = 1; __builtin_fabs(term) > 1e-17 * __builtin_fabs(sum); k++) {
        term *= -m * m / (2 * k * (2 * n + 2 * k + 1));
        sum += term;
    }
    return factor * sum;
}

#endif
