/* Dense rows, each into one; a part of reduction_template.h, from the macros CG_ROW(part), which names the functions defined here, CG_AT(i), the
 * element i of a row at `v` or a product of it and the one at `w`, and CG_PARTS, in which the most lanes are reduced one after the other
 * since there are registers for as many. Included for each form of element; not guarded on purpose.
 */

/* A short row: few lanes, and the rest in registers. Unrolled as GCC would, it stores its lanes again and again. */
CG_INLINE T CG_ROW(few)(const X *v, const X *w, intptr_t n) {
    T a[CG_FEW_LANES];
    intptr_t start = 0;
    for (int k = 0; k < CG_FEW_LANES; k++) a[k] = START;
    _Pragma("GCC unroll 2") for (; start + CG_FEW_LANES <= n; start += CG_FEW_LANES) {
        _Pragma("omp simd") for (int k = 0; k < CG_FEW_LANES; k++) a[k] = CG_FN(step)(a[k], CG_AT(start + k));
    }
    T first = a[0], second = a[1], third = a[2];
    if (start < n) first = CG_FN(step)(first, CG_AT(start));
    if (start + 1 < n) second = CG_FN(step)(second, CG_AT(start + 1));
    if (start + 2 < n) third = CG_FN(step)(third, CG_AT(start + 2));
    (void)w;
    return CG_FN(join)(CG_FN(join)(first, third), CG_FN(join)(second, a[3]));
}

#ifdef BLOCK_STEP
/* Lanes of X may overflow where the result does not: such rows are reduced again, as T. */
CG_COLD static T CG_ROW(wide)(const X *v, const X *w, intptr_t n) {
    T a[8];
    for (int k = 0; k < 8; k++) a[k] = START;
    for (intptr_t start = 0; start < n; start += 8) {
        _Pragma("omp simd") for (int k = 0; k < 8; k++) a[k] = CG_FN(step)(a[k], CG_AT(start + k));
    }
    CG_HALVE(a, 4) CG_HALVE(a, 2) CG_HALVE(a, 1)
    (void)w;
    return a[0];
}
#endif

/* Many lanes, of a whole number of elements each. */
CG_INLINE T CG_ROW(many)(const X *v, const X *w, intptr_t n, const int lanes, const int ahead) {
    CG_LANE_TYPE a[CG_MANY];
    const int part = lanes == CG_MANY ? lanes / CG_PARTS : lanes;
    for (int first = 0; first < lanes; first += part) {
        CG_LANE_TYPE own[CG_MANY / CG_PARTS];
        for (int k = 0; k < part; k++) own[k] = CG_LANE_START;
        for (intptr_t start = first; start < n; start += lanes) {
            if (ahead) CG_FETCH(v + start, part * (int)sizeof(X));
            _Pragma("omp simd") for (int k = 0; k < part; k++) own[k] = CG_LANE_STEP(own[k], CG_AT(start + k));
        }
        _Pragma("omp simd") for (int k = 0; k < part; k++) a[first + k] = own[k];
    }
    const T acc = CG_FN(tree)(a, lanes);
    (void)w;
#ifdef BLOCK_STEP
    if (!CG_FINITE(acc)) return CG_ROW(wide)(v, w, n);
#endif
    return acc;
}

/* The rest behind whole lanes is a short row. */
CG_INLINE T CG_ROW(long)(const X *v, const X *w, intptr_t n, const int lanes, const int ahead) {
    const intptr_t left = n % lanes, whole = n - left;
    const T acc = CG_ROW(many)(v, w, whole, lanes, ahead);
    return left ? CG_FN(join)(acc, CG_ROW(few)(v + whole, w + whole, left)) : acc;
}

#ifdef PRODUCTS
/* Rows that lie one after the other, of a constant length: several make vectors. */
CG_INLINE void CG_ROW(dense)(const char *p, const char *other, const intptr_t n, intptr_t count, T *out) {
    const X *const v = (const X *)p, *const w = (const X *)other;
    CG_LOOP(T, count) out[i] = CG_ROW(few)(v + i * n, w + i * n, n);
}
#endif

/* A single row with a stride is followed by others; a fetch behind a block on the stack would meet pages that nothing has touched. */
CG_INLINE void CG_ROW(reduce)(const char *p, const char *other, intptr_t stride, intptr_t n, intptr_t count, T *out) {
#define CG_ROWS(value)                                                                                           \
    for (intptr_t i = 0; i < count; i++) {                                                                       \
        const X *const v = (const X *)(p + i * stride), *const w = (const X *)(other + i * stride); out[i] = value; \
    }
#ifdef PRODUCTS
    if (stride == n * (intptr_t)sizeof(X) && n > 1 && n <= CG_REDUCTION_SHORTEST) {
        if (n == 2) CG_ROW(dense)(p, other, 2, count, out);
        else if (n == 3) CG_ROW(dense)(p, other, 3, count, out);
        else CG_ROW(dense)(p, other, 4, count, out);
        return;
    }
#endif
    if (n < CG_REDUCTION_SHORT) CG_ROWS(CG_ROW(few)(v, w, n))
    else if (sizeof(X) >= 4 && n < CG_REDUCTION_LONG) CG_ROWS(CG_ROW(long)(v, w, n, CG_MANY / 4, 0))
    else CG_ROWS(CG_ROW(long)(v, w, n, CG_MANY, stride && n == CG_REDUCTION_BLOCK))
#undef CG_ROWS
}
#undef CG_ROW
#undef CG_AT
#undef CG_PARTS
