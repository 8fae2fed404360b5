/* Exact functions of floats, right to the last bit in scalars and in vectors; vecmath.h includes this once per type.
 *
 * The remainders are scalar, and exact up to one rounding. Pure functions, so thread-safe.
 */
#ifndef CG_EXACTMATH_H
#define CG_EXACTMATH_H

/* Rounds of division for modulus_float64: each takes the 26 leading bits of the quotient off. */
static __attribute__((noinline, cold)) double distant_modulus_float64(double x, double y)
{
    const uint64_t leading = ~(((uint64_t)1 << 27) - 1);
    const double size = __builtin_fabs(y);
    double rest = __builtin_fabs(x);
    if (!(rest < __builtin_inf() && size > 0)) return x * 0 / (size * 0); /* NaN */
    while (rest >= size) {
        double divisor = size, quotient;
        while ((quotient = rest / divisor) == __builtin_inf()) divisor *= 0x1p1000;
        /* Less 1, for a large one may have been rounded upwards. */
        double n = quotient < 0x1p26 ? __builtin_trunc(quotient) : real_float64((bits_float64(quotient) - 1) & leading);
        double head = real_float64(bits_float64(divisor) & leading);
        rest = (rest - n * head) - n * (divisor - head);
        if (rest < 0) rest += size;
    }
    return __builtin_copysign(rest, x);
}

/* C's fmod, for float32 too, by exact products and differences; scalar, since distant numbers need several rounds. */
CG_INLINE double modulus_float64(double x, double y)
{
    double size = __builtin_fabs(y), rest = __builtin_fabs(x), quotient = rest / size, n = __builtin_trunc(quotient);
    double head = real_float64(bits_float64(size) & ~(((uint64_t)1 << 27) - 1));
    if (!(quotient < 0x1p26 && size < __builtin_inf())) return distant_modulus_float64(x, y);
    rest = (rest - n * head) - n * (size - head);
    rest += real_float64(-(uint64_t)(rest < 0) & bits_float64(size)); /* the quotient was rounded upwards */
    return __builtin_copysign(rest, x);
}

#endif /* CG_EXACTMATH_H */

CG_EXACT_FUNCTION CG_REAL CG_NAME(abs)(CG_REAL x) { return CG_LIBM(fabs)(x); }
CG_EXACT_FUNCTION CG_REAL CG_NAME(sqrt)(CG_REAL x) { return CG_LIBM(sqrt)(x); }
CG_EXACT_FUNCTION CG_REAL CG_NAME(floor)(CG_REAL x) { return CG_LIBM(floor)(x); }
CG_EXACT_FUNCTION CG_REAL CG_NAME(ceil)(CG_REAL x) { return CG_LIBM(ceil)(x); }
CG_EXACT_FUNCTION CG_REAL CG_NAME(trunc)(CG_REAL x) { return CG_LIBM(trunc)(x); }
CG_EXACT_FUNCTION CG_REAL CG_NAME(round)(CG_REAL x) { return CG_LIBM(rint)(x); } /* half to even */
CG_EXACT_FUNCTION CG_REAL CG_NAME(copysign)(CG_REAL x, CG_REAL y) { return CG_LIBM(copysign)(x, y); }
CG_EXACT_FUNCTION int CG_NAME(isnan)(CG_REAL x) { return x != x; }

/* The float beside x on the side of y; y where they are equal. */
CG_EXACT_FUNCTION CG_REAL CG_NAME(nextafter)(CG_REAL x, CG_REAL y)
{
    const CG_REAL least = CG_LIBM(copysign)(CG_NAME(real)(1), y);
    const CG_REAL beside = CG_NAME(real)(CG_NAME(bits)(x) + ((x < y) == (x > 0) ? 1 : -(CG_BITS)1));
    const CG_REAL next = x == 0 ? least : beside, result = x == y ? y : next;
    return ((x == x) & (y == y)) ? result : x + y;
}

CG_EXACT_FUNCTION int CG_NAME(isinf)(CG_REAL x) { return CG_LIBM(fabs)(x) == CG_LIBM(inf)(); }
CG_EXACT_FUNCTION int CG_NAME(isfinite)(CG_REAL x) { return CG_LIBM(fabs)(x) < CG_LIBM(inf)(); }
CG_EXACT_FUNCTION CG_REAL CG_NAME(sign)(CG_REAL x) { return (CG_REAL)((x > 0) - (x < 0)); } /* NaN gives 0, as in torch */
CG_EXACT_FUNCTION CG_REAL CG_NAME(sgn)(CG_REAL x) { return CG_NAME(sign)(x); }
CG_EXACT_FUNCTION CG_REAL CG_NAME(angle)(CG_REAL x) { return x < 0 ? (CG_REAL)0x1.921fb54442d18p+1 : x == x ? 0 : x; }

/* NaN if either is; of equal ones (-0 and 0) the first, as in torch. In two steps, which are no branches in a scalar. */
CG_EXACT_FUNCTION CG_REAL CG_NAME(maximum)(CG_REAL a, CG_REAL b) { const CG_REAL y = a < b ? b : a; return b != b ? b : y; }
CG_EXACT_FUNCTION CG_REAL CG_NAME(minimum)(CG_REAL a, CG_REAL b) { const CG_REAL y = a > b ? b : a; return b != b ? b : y; }

/* ---- division with a remainder: scalar, exact up to the last rounding ---- */

/* With the sign of the divisor, also as zero. */
CG_EXACT_FUNCTION CG_REAL CG_NAME(remainder)(CG_REAL x, CG_REAL y)
{
    CG_REAL m = (CG_REAL)modulus_float64(x, y);
    m += CG_NAME(real)(CG_NAME(bits_if)((m != 0) & ((m < 0) != (y < 0)), CG_NAME(bits)(y)));
    return CG_LIBM(copysign)(m, y);
}

/* C's fmod, with the sign of the dividend. */
CG_EXACT_FUNCTION CG_REAL CG_NAME(fmod)(CG_REAL x, CG_REAL y) { return (CG_REAL)modulus_float64(x, y); }

/* The quotient rounded towards zero, as torch.div(rounding_mode="trunc"). */
CG_EXACT_FUNCTION CG_REAL CG_NAME(trunc_divide)(CG_REAL x, CG_REAL y) { return CG_NAME(trunc)(x / y); }

/* The integer n with x = n y + remainder(x, y), as Python, NumPy and torch find it. */
CG_EXACT_FUNCTION CG_REAL CG_NAME(floor_divide)(CG_REAL x, CG_REAL y)
{
    CG_REAL m = (CG_REAL)modulus_float64(x, y), quotient = (x - m) / y;
    CG_REAL sign = CG_NAME(real)(CG_NAME(bits)(x) ^ CG_NAME(bits)(y));
    quotient -= (CG_REAL)((m != 0) & ((m < 0) != (y < 0))); /* an integer, but for rounding */
    CG_REAL floored = CG_NAME(floor)(quotient), nearest = floored + (CG_REAL)(quotient - floored > CG_C(0.5));
    return y == 0 ? x / y : CG_LIBM(copysign)(nearest, sign);
}
