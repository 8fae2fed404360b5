/* The kernels of one reduction for one dtype, from the macros NAME, X (element), T (accumulator), Y (result), CG_ELEMENT (X to T),
 * CG_RESULT (T to Y), CG_COUNT (of elements, a real type), START, STEP, COMBINE, FINISH, where lanes are reduced as X before they become
 * T BLOCK_START, BLOCK_STEP and CG_FINITE (of a T), ORDERED where there is an order, and PRODUCTS where rows of products are reduced as
 * well. Included once for each; not guarded on purpose.
 *
 * A reduction has a number of lanes that its length decides, reduced one by one and combined in a fixed tree. So the bits depend on the data
 * and the length alone: not on threads, position, strides or instruction set.
 */
#define CG_PASTE2(a, b) a##_##b
#define CG_PASTE(a, b) CG_PASTE2(a, b)
#define CG_FN(part) CG_PASTE(part, NAME)
#define CG_INLINE static inline __attribute__((always_inline))

CG_INLINE T CG_FN(step)(const T acc, const X element) { const T x = CG_ELEMENT(element); return STEP; }

CG_INLINE T CG_FN(join)(const T acc, const T x) { return COMBINE; }

void CG_FN(fill)(char *p, intptr_t n) {
    T *a = (T *)p;
    for (intptr_t i = 0; i < n; i++) a[i] = START;
}

void CG_FN(combine)(char *p, const char *q, intptr_t n) {
    T *a = (T *)p;
    const T *b = (const T *)q;
    CG_LOOP(T, n) a[i] = CG_FN(join)(a[i], b[i]);
}

/* ----- Rows into a row ----- */
#ifdef BLOCK_STEP
CG_INLINE X CG_FN(own)(const X acc, const X x) { return BLOCK_STEP; }

/* Conversions would cost more than memory does: eight rows are reduced as X before they become T. */
void CG_FN(across)(char *p, const char *q, intptr_t n, intptr_t rows, intptr_t stride) {
    T *a = (T *)p;
    for (; rows >= 8; rows -= 8, q += 8 * stride) {
        CG_LOOP(T, n) {
            X own = BLOCK_START;
            for (int k = 0; k < 8; k++) own = CG_FN(own)(own, ((const X *)(q + k * stride))[i]);
            a[i] = CG_FN(join)(a[i], CG_ELEMENT(own));
        }
    }
    for (; rows; rows--, q += stride) CG_LOOP(T, n) a[i] = CG_FN(step)(a[i], ((const X *)q)[i]);
}

/* Whether nothing overflowed; and each element as T, for rows of which something did. */
int CG_FN(finite)(const char *p, intptr_t n) {
    const T *a = (const T *)p;
    int finite = 1;
    _Pragma("omp simd reduction(&:finite)") for (intptr_t i = 0; i < n; i++) finite &= CG_FINITE(a[i]);
    return finite;
}
#define CG_ACROSS across_wide
#else
#define CG_ACROSS across
#endif
void CG_FN(CG_ACROSS)(char *p, const char *q, intptr_t n, intptr_t rows, intptr_t stride) {
    T *a = (T *)p;
    for (; sizeof(X) >= 4 && rows >= 4; rows -= 4, q += 4 * stride) { /* of smaller ones it is much code */
        CG_LOOP(T, n) {
            T acc = a[i];
            for (int k = 0; k < 4; k++) acc = CG_FN(step)(acc, ((const X *)(q + k * stride))[i]);
            a[i] = acc;
        }
    }
    for (; rows; rows--, q += stride) CG_LOOP(T, n) a[i] = CG_FN(step)(a[i], ((const X *)q)[i]);
}
#undef CG_ACROSS

/* ----- Dense rows, each into one ----- */
/* A step of the tree that combines lanes into one; a constant length becomes vectors. */
#define CG_HALVE(a, half) _Pragma("omp simd") for (int k = 0; k < half; k++) a[k] = CG_FN(join)(a[k], a[k + half]);

/* The lanes of a row are accumulators, or elements that become those at last. */
#ifdef BLOCK_STEP
#define CG_MANY (2 * CG_LANES)
#define CG_LANE_TYPE X
#define CG_LANE_START BLOCK_START
#define CG_LANE_STEP CG_FN(own)
#else
#define CG_MANY CG_LANES
#define CG_LANE_TYPE T
#define CG_LANE_START START
#define CG_LANE_STEP CG_FN(step)
#endif

CG_INLINE T CG_FN(tree)(const CG_LANE_TYPE *a, const int lanes) {
    T b[CG_MANY];
#ifdef BLOCK_STEP
    _Pragma("omp simd") for (int k = 0; k < lanes; k++) b[k] = CG_ELEMENT(a[k]);
#else
    memcpy(b, a, lanes * sizeof(T));
#endif
    if (lanes > 64) CG_HALVE(b, 64)
    if (lanes > 32) CG_HALVE(b, 32)
    if (lanes > 16) CG_HALVE(b, 16)
    CG_HALVE(b, 8) CG_HALVE(b, 4) CG_HALVE(b, 2) CG_HALVE(b, 1)
    return b[0];
}

#define CG_ROW(part) CG_FN(part)
#define CG_AT(i) v[i]
#define CG_PARTS 1
#include "reduction_rows.h"
void CG_FN(rows)(const char *p, intptr_t stride, intptr_t n, intptr_t count, char *q) { CG_FN(reduce)(p, p, stride, n, count, (T *)q); }

#ifdef PRODUCTS
#define CG_ROW(part) CG_FN(CG_PASTE(part, products))
#define CG_AT(i) (v[i] * w[i])
#define CG_PARTS 2
#include "reduction_rows.h"
void CG_FN(products)(const char *p, const char *other, intptr_t stride, intptr_t n, intptr_t count, char *q) {
    CG_FN(reduce_products)(p, other, stride, n, count, (T *)q);
}
#endif

/* Whole blocks of numbers of 16 bits, converted in registers: half of the lanes after the other, as many as there are registers for. */
#if defined(CG_NARROW_LOOPS) && defined(NARROW)
#define CG_NARROW_ROWS(name, format)                                                                                  \
    void name(const char *p, intptr_t stride, intptr_t n, intptr_t count, char *q) {                                  \
        for (intptr_t i = 0; i < count; i++) {                                                                        \
            const cg_##format *const v = (const cg_##format *)(p + i * stride);                                       \
            X a[2 * CG_LANES];                                                                                        \
            for (int half = 0; half < 2 * CG_LANES; half += CG_LANES) {                                               \
                X own[CG_LANES], x[CG_LANES];                                                                         \
                for (int k = 0; k < CG_LANES; k++) own[k] = BLOCK_START;                                              \
                for (intptr_t start = half; start < n; start += 2 * CG_LANES) {                                       \
                    if (stride) CG_FETCH(v + start, CG_LANES * (int)sizeof(*v));                                      \
                    for (int k = 0; k < CG_LANES; k += CG_NARROW_LANES(format)) widen_##format(x + k, v + start + k); \
                    _Pragma("omp simd") for (int k = 0; k < CG_LANES; k++) own[k] = CG_FN(own)(own[k], x[k]);         \
                }                                                                                                     \
                memcpy(a + half, own, sizeof(own));                                                                   \
            }                                                                                                         \
            T acc = CG_FN(tree)(a, CG_MANY);                                                                          \
            if (!CG_FINITE(acc)) {                                                                                    \
                acc = START;                                                                                          \
                for (intptr_t start = 0; start < n; start += CG_NARROW_LANES(format)) {                               \
                    X x[CG_NARROW_LANES(format)];                                                                     \
                    widen_##format(x, v + start);                                                                     \
                    for (int k = 0; k < CG_NARROW_LANES(format); k++) acc = CG_FN(step)(acc, x[k]);                   \
                }                                                                                                     \
            }                                                                                                         \
            ((T *)q)[i] = acc;                                                                                        \
        }                                                                                                             \
    }
NARROW
#undef CG_NARROW_ROWS
#endif

/* ----- Short reductions side by side ----- */
/* Element k of all of them at once; each has the lanes, and so the bits, of a short row. */
CG_INLINE void CG_FN(beside)(const char *p, intptr_t stride, const intptr_t *offsets, intptr_t n, T *out, intptr_t out_step,
                           const intptr_t count) {
    T a[CG_FEW_LANES][CG_BESIDE];
    for (int lane = 0; lane < CG_FEW_LANES; lane++) for (int i = 0; i < CG_BESIDE; i++) a[lane][i] = START;
    for (intptr_t k = 0; k < n; k++) {
        T *const lane = a[k % CG_FEW_LANES];
        const char *const v = p + offsets[k];
        for (intptr_t i = 0; i < count; i++) lane[i] = CG_FN(step)(lane[i], *(const X *)(v + i * stride));
    }
    for (intptr_t i = 0; i < count; i++) out[i * out_step] = CG_FN(join)(CG_FN(join)(a[0][i], a[2][i]), CG_FN(join)(a[1][i], a[3][i]));
}

/* The last ones, and short reductions of integers and of complex numbers: vectors that are gathered take much code. */
#ifdef ORDERED
#define CG_GATHERED ((X)0.5 != 0)
#else
#define CG_GATHERED 0
#endif
CG_SERIAL static void CG_FN(beside_serially)(const char *p, intptr_t stride, const intptr_t *offsets, intptr_t n, T *out, intptr_t step,
                                             intptr_t count) {
    CG_FN(beside)(p, stride, offsets, n, out, step, count);
}

void CG_FN(columns)(const char *p, intptr_t stride, const intptr_t *offsets, intptr_t n, intptr_t count, char *q, intptr_t step) {
    T *out = (T *)q;
    for (; count > 0; count -= CG_BESIDE, out += CG_BESIDE * step, p += CG_BESIDE * stride) {
        if (CG_GATHERED && count >= CG_BESIDE) CG_FN(beside)(p, stride, offsets, n, out, step, CG_BESIDE);
        else CG_FN(beside_serially)(p, stride, offsets, n, out, step, count < CG_BESIDE ? count : CG_BESIDE);
    }
}

/* ----- Results ----- */
void CG_FN(finish)(const char *p, char *q, intptr_t length, double count) {
    const T *a = (const T *)p;
    const CG_COUNT n = (CG_COUNT)count;
    Y *y = (Y *)q;
    (void)n;
    for (intptr_t i = 0; i < length; i++) { const T acc = a[i]; y[i] = CG_RESULT(FINISH); }
}

void CG_FN(scan)(const char *p, intptr_t ps, char *q, intptr_t qs, intptr_t n) {
    T acc = START;
    for (intptr_t i = 0; i < n; i++) { acc = CG_FN(step)(acc, *(const X *)(p + i * ps)); *(Y *)(q + i * qs) = CG_RESULT(acc); }
}

#ifdef ORDERED
intptr_t CG_FN(find)(const char *p, intptr_t stride, intptr_t n, const char *q) {
    const X value = *(const X *)q;
    intptr_t i = 0;
    for (; stride == sizeof(X) && i + CG_COMPARED_AT_ONCE <= n; i += CG_COMPARED_AT_ONCE) { /* without an exit: in vectors */
        int equal = 0;
        for (int j = 0; j < CG_COMPARED_AT_ONCE; j++) {
            const X x = ((const X *)p)[i + j];
            equal |= (x == value) | ((x != x) & (value != value));
        }
        if (equal) break;
    }
    for (; i < n; i++) {
        const X x = *(const X *)(p + i * stride);
        if (x == value || (x != x && value != value)) return i;
    }
    return 0;
}
#endif

#undef CG_PASTE2
#undef CG_PASTE
#undef CG_GATHERED
#undef CG_FN
#undef CG_INLINE
#undef NAME
#undef X
#undef CG_ELEMENT
#undef T
#undef Y
#undef START
#undef STEP
#undef COMBINE
#undef FINISH
#undef BLOCK_START
#undef BLOCK_STEP
#undef CG_FINITE
#undef NARROW
#undef CG_COUNT
#undef CG_RESULT
#undef ORDERED
#undef CG_HALVE
#undef CG_MANY
#undef CG_LANE_TYPE
#undef CG_LANE_START
#undef CG_LANE_STEP
#undef PRODUCTS
