/* Products of small matrices: BLAS takes longer to begin one than to compute it. The interface is the one of NumPy's loop of matmul.
 *
 * Each element is the sum of its products in order, each rounded: the same bits for any strides, place in a batch and instruction set.
 * Four columns at a time, which makes vectors of the baseline; fewer at once, which spares loops of unknown length.
 */
#ifndef CG_SMALL_PRODUCTS_H
#define CG_SMALL_PRODUCTS_H
#include <stdint.h>
#include "kernels.h"

#define CG_COLUMNS(T, width)                                                                                                   \
    for (; j + (width) <= m; j += (width)) {                                                                                   \
        T sums[width] = {0};                                                                                                   \
        const char *a = p[0] + i * s[3], *b = p[1] + j * step;                                                                 \
        for (intptr_t k = 0; k < inner; k++, a += s[4], b += s[5])                                                             \
            for (int c = 0; c < (width); c++) sums[c] += *(const T *)a * *(const T *)(b + c * step);                           \
        for (int c = 0; c < (width); c++) *(T *)(p[2] + i * s[7] + (j + c) * s[8]) = sums[c];                                  \
    }

/* All columns at once, where there are fewer than four. */
#define CG_FEW_COLUMNS(T, width) {                                                                                             \
        const intptr_t n = dims[1], inner = dims[2], m = width, step = s[6];                                                   \
        for (intptr_t batch = 0; batch < dims[0]; batch++, p[0] += s[0], p[1] += s[1], p[2] += s[2])                           \
            for (intptr_t i = 0, j = 0; i < n; i++, j = 0) CG_COLUMNS(T, width)                                                \
    }

/* `step` is that between columns of the second matrix: known to the compiler where they lie dense. */
#define CG_SMALL_PRODUCT(T)                                                                                                    \
    static inline __attribute__((always_inline)) void small_products_by_##T(char **p, const intptr_t *dims, const intptr_t *s, \
                                                                            const intptr_t step) {                             \
        const intptr_t n = dims[1], inner = dims[2], m = dims[3];                                                              \
        for (intptr_t batch = 0; batch < dims[0]; batch++, p[0] += s[0], p[1] += s[1], p[2] += s[2])                           \
            for (intptr_t i = 0; i < n; i++) {                                                                                 \
                intptr_t j = 0;                                                                                                \
                CG_COLUMNS(T, 4)                                                                                               \
                CG_COLUMNS(T, 1)                                                                                               \
            }                                                                                                                  \
    }                                                                                                                          \
    static void small_products_##T(char **p, const intptr_t *dims, const intptr_t *s, void *unused) {                          \
        (void)unused;                                                                                                          \
        if (dims[3] == 1) CG_FEW_COLUMNS(T, 1)                                                                                 \
        else if (dims[3] == 2) CG_FEW_COLUMNS(T, 2)                                                                            \
        else if (dims[3] == 3) CG_FEW_COLUMNS(T, 3)                                                                            \
        else if (s[6] == (intptr_t)sizeof(T)) small_products_by_##T(p, dims, s, sizeof(T));                                    \
        else small_products_by_##T(p, dims, s, s[6]);                                                                          \
    }

CG_SMALL_PRODUCT(float)
CG_SMALL_PRODUCT(double)
static void (*const cg_small_products[CG_DTYPES])(char **, const intptr_t *, const intptr_t *, void *) = {
    [CG_FLOAT32] = small_products_float, [CG_FLOAT64] = small_products_double};
#endif
