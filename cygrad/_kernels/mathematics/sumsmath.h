/* Special functions by sums of a number of terms that depends on the argument: scalar functions,
 * with the same bits in every loop, whose numbers of steps are limited for all arguments, since loops run over the end of arrays.
 *
 * Computed in double for float32 too. vecmath.h must be included before. Pure functions, so thread-safe.
 */
#ifndef CG_SUMSMATH_H
#define CG_SUMSMATH_H

#define CG_SCALAR_FUNCTION static __attribute__((noinline, const)) /* one copy in an object */

/* (q + k)^-s, of the sum before it is rounded. */
CG_INLINE double shifted_power(double q, double k, double s)
{
    const double w = q + k, low = q - (w - k);
    return pow(w, -s) * (1 - s * (low / w));
}

/* zeta(s, q) for s > 1, q > 0, by the sum of Euler and Maclaurin (DLMF 25.11.28): n terms, and of the rest beyond w = q + n the ten terms
 * that have factors s (s + 1) ... B_2j / (2j)! w^-2j. More terms for larger s, since these factors grow.
 */
CG_SCALAR_FUNCTION double right_zeta(double s, double q)
{
    static const double bernoulli[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000,
        1.0 / 74724249600, -3617.0 / 10670622842880000.0, 43867.0 / 5109094217170944000.0, -174611.0 / 802857662698291200000.0};
    const double n = 10 + __builtin_floor(s < 100 ? s : 100), w = q + n, term = shifted_power(q, n, s);
    double sum = 0, factor = s / w, rest = 0.5;
    for (double k = n - 1; k >= 0; k--) sum += shifted_power(q, k, s);
    for (int j = 0; j < 10 && term > 0; j++) {
        rest += bernoulli[j] * factor;
        factor *= (s + 2 * j + 1) / w * ((s + 2 * j + 2) / w);
    }
    return sum + (shifted_power(q, n, s - 1) / (s - 1) + (term > 0 ? term * rest : 0)); /* w^(1-s) where w^-s may be 0 */
}

/* Hurwitz's zeta function: left of 0 for whole s, by the sum over all integers less the one on the left. */
CG_SCALAR_FUNCTION double whole_zeta(double s, double q)
{
    if (s != s || q != q) return s + q;
    if (s == 1) return __builtin_inf();
    if (s < 1) return __builtin_nan("");
    if (q > 0) return q == __builtin_inf() ? 0 : right_zeta(s, q);
    const double r = q - __builtin_rint(q), odd = s / 2 != __builtin_trunc(s / 2) ? -1 : 1;
    if (r == 0) return __builtin_inf();
    if (s != __builtin_trunc(s) || r != r) return __builtin_nan("");
    const double above = right_zeta(s, r > 0 ? r : 1 + r), below = right_zeta(s, r > 0 ? 1 - r : -r);
    return above + odd * (below - right_zeta(s, 1 - q));
}

/* The derivative of digamma of order n, (-1)^(n + 1) n! zeta(n + 1, x) (DLMF 25.11.12). */
CG_SCALAR_FUNCTION double whole_polygamma(double x, double n)
{
    double factor = 1;
    for (double k = 2; k <= n && factor < __builtin_inf(); k++) factor *= k;
    return (n / 2 != __builtin_trunc(n / 2) ? factor : -factor) * whole_zeta(n + 1, x);
}

CG_VECTOR_FUNCTION double higher_polygamma_float64(double x, double n) { return whole_polygamma(x, n); }
CG_IN_DOUBLE2(higher_polygamma)

#endif
