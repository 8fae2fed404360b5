/* The functions of the formulas for bool and integers. Sums wrap around (-fwrapv); nothing here traps:
 * a division by zero gives 0 (the core refuses it before), the most negative number divided by -1 wraps.
 */
#ifndef CG_INTEGERMATH_H
#define CG_INTEGERMATH_H
#include <stdint.h>

#define CG_INTEGER_FUNCTIONS(D, T)                                                                          \
    CG_EXACT_FUNCTION T abs_##D(T x) { return x < 0 ? (T)(0 - x) : x; }                                     \
    CG_EXACT_FUNCTION T sign_##D(T x) { return (T)((x > 0) - (x < 0)); }                                    \
    CG_EXACT_FUNCTION T sgn_##D(T x) { return sign_##D(x); }                                                \
    CG_EXACT_FUNCTION T maximum_##D(T a, T b) { return a > b ? a : b; }                                     \
    CG_EXACT_FUNCTION T minimum_##D(T a, T b) { return a < b ? a : b; }                                     \
    CG_EXACT_FUNCTION int isnan_##D(T x) { (void)x; return 0; }                                             \
    CG_EXACT_FUNCTION int isinf_##D(T x) { (void)x; return 0; }                                             \
    CG_EXACT_FUNCTION int isfinite_##D(T x) { (void)x; return 1; }                                          \
    CG_EXACT_FUNCTION T trunc_divide_##D(T a, T b) {                                                        \
        return b == 0 ? 0 : b == (T)-1 && (T)-1 < 0 ? (T)(0 - a) : (T)(a / b);                              \
    }                                                                                                       \
    CG_EXACT_FUNCTION T floor_divide_##D(T a, T b) {                                                        \
        const T q = trunc_divide_##D(a, b);                                                                 \
        return (T)(q - ((T)(q * b) != a && (a < 0) != (b < 0) && b != 0));                                  \
    }                                                                                                       \
    CG_EXACT_FUNCTION T fmod_##D(T a, T b) { return (T)(a - (T)(trunc_divide_##D(a, b) * b)); }             \
    CG_EXACT_FUNCTION T ceil_##D(T x) { return x; }                                                         \
    CG_EXACT_FUNCTION T floor_##D(T x) { return x; }                                                        \
    CG_EXACT_FUNCTION T round_##D(T x) { return x; }                                                        \
    CG_EXACT_FUNCTION T trunc_##D(T x) { return x; }                                                        \
    /* A shift by more than there is, or by less than 0, leaves only the sign (NumPy, torch). */            \
    CG_EXACT_FUNCTION T left_shift_##D(T a, T b) {                                                          \
        return (T)(b < 0 || (uint64_t)b >= 8 * sizeof(T) ? 0 : (T)((uint64_t)a << (b & 63)));               \
    }                                                                                                       \
    CG_EXACT_FUNCTION T right_shift_##D(T a, T b) {                                                         \
        return (T)(b >= 0 && (uint64_t)b < 8 * sizeof(T) ? a >> b : a < 0 ? -1 : 0);                        \
    }                                                                                                       \
    /* By Euclid's remainders, of absolute values without a sign bit: the most negative number has one. */  \
    CG_EXACT_FUNCTION T gcd_##D(T a, T b) {                                                                 \
        uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b, rest;      \
        for (; y; x = y, y = rest) rest = x % y;                                                            \
        return (T)x;                                                                                        \
    }                                                                                                       \
    CG_EXACT_FUNCTION T lcm_##D(T a, T b) {                                                                 \
        return a == 0 || b == 0 ? 0 : abs_##D((T)((T)(a / gcd_##D(a, b)) * b));                             \
    }                                                                                                       \
    CG_EXACT_FUNCTION T remainder_##D(T a, T b) { return (T)(a - (T)(floor_divide_##D(a, b) * b)); }        \
    /* By squaring; a negative exponent leaves only 1 and -1 (torch). */                                    \
    CG_EXACT_FUNCTION T pow_##D(T a, T b) {                                                                 \
        if (b < 0) return (T)(a == 1 ? 1 : a == (T)-1 ? (b & 1 ? -1 : 1) : 0);                              \
        T y = 1;                                                                                            \
        for (; b; b = (T)(b / 2), a = (T)(a * a)) if (b & 1) y = (T)(y * a);                                \
        return y;                                                                                           \
    }

CG_INTEGER_FUNCTIONS(bool, uint8_t)
CG_INTEGER_FUNCTIONS(uint8, uint8_t)
CG_INTEGER_FUNCTIONS(int8, int8_t)
CG_INTEGER_FUNCTIONS(int16, int16_t)
CG_INTEGER_FUNCTIONS(int32, int32_t)
CG_INTEGER_FUNCTIONS(int64, int64_t)
#endif
