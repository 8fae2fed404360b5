/* Square roots of doubles in vectors of AVX-512, whose instruction takes 9 to 32 cycles: right to the last bit, as that is.
 *
 * Goldschmidt's iteration (Markstein, IA-64 and Elementary Functions, 2000) takes g to sqrt(x) and h to 1 / (2 sqrt(x)), from an estimate of 14
 * bits. After two steps both are within 3 u, u = 2^-53, and g + h (x - g g) before its rounding within 2^-49 units of the last place of sqrt(x).
 * So near to the middle of two doubles lie only roots of n n + n - k, |k| <= 32, of n in [2^52, 2^53): a test computes all of these.
 */
#ifndef CG_ROOTS_H
#define CG_ROOTS_H

#if defined(__AVX512F__) && CG_VECTOR_BYTES == 64 && defined(__GNUC__) && !defined(__clang__)
typedef double cg_doubles __attribute__((vector_size(64)));
typedef double cg_unaligned_doubles __attribute__((vector_size(64), aligned(8)));
typedef long long cg_bits_of_doubles __attribute__((vector_size(64)));
#define CG_ALL_LANES ((unsigned char)-1)
#define CG_ROUND_AS_SET 4
#define CG_LESS_UNSIGNED 1

CG_INLINE cg_doubles cg_multiply_add(cg_doubles a, cg_doubles b, cg_doubles c)
{
    return __builtin_ia32_vfmaddpd512_mask(a, b, c, CG_ALL_LANES, CG_ROUND_AS_SET);
}

CG_INLINE cg_doubles cg_roots(cg_doubles x)
{
    /* In 2^-960 to 2^1019 no step leaves the range; else, and of negative numbers, the instruction computes the vector. */
    const cg_bits_of_doubles offset = (cg_bits_of_doubles)x - 0x03f0000000000000, range = {0};
    if (__builtin_expect(__builtin_ia32_ucmpq512_mask(offset, range + 0x7bb0000000000000, CG_LESS_UNSIGNED, CG_ALL_LANES) != CG_ALL_LANES, 0))
        return __builtin_ia32_sqrtpd512_mask(x, x, CG_ALL_LANES, CG_ROUND_AS_SET);
    const cg_doubles half = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, estimate = __builtin_ia32_rsqrt14pd512_mask(x, x, CG_ALL_LANES);
    cg_doubles g = x * estimate, h = half * estimate;
    for (int step = 0; step < 2; step++) {
        const cg_doubles rest = cg_multiply_add(-g, h, half);
        g = cg_multiply_add(g, rest, g);
        h = cg_multiply_add(h, rest, h);
    }
    return cg_multiply_add(cg_multiply_add(-g, g, x), h, g);
}

#define CG_WHOLE_VECTORS_OF_ROOTS(store)                                                  \
    intptr_t first = 0;                                                                   \
    for (; n - first >= 8; first += 8) {                                                  \
        const cg_doubles roots = cg_roots(*(const cg_unaligned_doubles *)(x + first));    \
        store;                                                                            \
    }                                                                                     \
    return first;
#else
#define CG_WHOLE_VECTORS_OF_ROOTS(store) \
    (void)out; (void)x; (void)n;         \
    return 0;
#endif

/* The roots of whole vectors, and past the caches; their count. A loop of the formula sqrt(x) calls them first: it computes the rest, and all
 * roots on other levels.
 */
CG_INLINE intptr_t write_sqrt_float64(double *out, const double *x, intptr_t n)
{
    CG_WHOLE_VECTORS_OF_ROOTS(*(cg_unaligned_doubles *)(out + first) = roots)
}

CG_INLINE intptr_t stream_sqrt_float64(double *out, const double *x, intptr_t n)
{
    CG_WHOLE_VECTORS_OF_ROOTS(cg_stream(out + first, &roots))
}
#endif /* CG_ROOTS_H */
