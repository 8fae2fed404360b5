/* Products of small matrices of the type CG_T: BLAS takes longer to begin one than to compute it. Included once for each type; not guarded
 * on purpose. The loops have the interface of NumPy's loop of matmul; loops of few columns and terms have no branches but for rows.
 *
 * Each element is the sum of its products in order, each rounded: the same bits for any strides, place in a batch and instruction set.
 */
typedef CG_T CG_NAME(four) __attribute__((vector_size(4 * sizeof(CG_T)), aligned(sizeof(CG_T)), may_alias));

#define CG_ELEMENT(p) (*(const CG_T *)(p))
#define CG_INLINED static inline __attribute__((always_inline))

/* Up to four columns of up to four terms: the second matrix is in registers, with zeros in the columns beyond. */
#ifdef CG_FEW_PRODUCTS
CG_INLINED void CG_NAME(few)(char **p, const intptr_t *dims, const intptr_t *s, const int columns, const int terms)
{
    for (intptr_t batch = 0; batch < dims[0]; batch++, p[0] += s[0], p[1] += s[1], p[2] += s[2]) {
        CG_NAME(four) rows[4] = {{0}};
        for (int k = 0; k < terms; k++)
            if (columns == 4 && s[6] == (intptr_t)sizeof(CG_T)) rows[k] = *(const CG_NAME(four) *)(p[1] + k * s[5]);
            else
                for (int j = 0; j < columns; j++) rows[k][j] = CG_ELEMENT(p[1] + k * s[5] + j * s[6]);
        for (intptr_t i = 0; i < dims[1]; i++) {
            char *const row = p[2] + i * s[7];
            CG_NAME(four) sums = {0};
            for (int k = 0; k < terms; k++) sums += CG_ELEMENT(p[0] + i * s[3] + k * s[4]) * rows[k];
            if (columns == 4 && s[8] == (intptr_t)sizeof(CG_T)) *(CG_NAME(four) *)row = sums;
            else
                for (int j = 0; j < columns; j++) *(CG_T *)(row + j * s[8]) = sums[j];
        }
    }
}

#endif

/* The next columns of a row, as long as there are so many; `step` is that between columns of the second matrix. */
CG_INLINED intptr_t CG_NAME(columns)(char **p, const intptr_t *dims, const intptr_t *s, intptr_t i, intptr_t j, const int columns,
                                     const intptr_t step)
{
    for (; j + columns <= dims[3]; j += columns) {
        CG_T sums[4] = {0};
        const char *a = p[0] + i * s[3], *b = p[1] + j * step;
        for (intptr_t k = 0; k < dims[2]; k++, a += s[4], b += s[5])
            for (int c = 0; c < columns; c++) sums[c] += CG_ELEMENT(a) * CG_ELEMENT(b + c * step);
        for (int c = 0; c < columns; c++) *(CG_T *)(p[2] + i * s[7] + (j + c) * s[8]) = sums[c];
    }
    return j;
}

CG_INLINED void CG_NAME(all_columns)(char **p, const intptr_t *dims, const intptr_t *s, const intptr_t step)
{
    for (intptr_t batch = 0; batch < dims[0]; batch++, p[0] += s[0], p[1] += s[1], p[2] += s[2])
        for (intptr_t i = 0; i < dims[1]; i++)
            CG_NAME(columns)(p, dims, s, i, CG_NAME(columns)(p, dims, s, i, 0, 4, step), 1, step);
}

/* The step is known to the compiler where columns lie dense. */
static void CG_NAME(any)(char **p, const intptr_t *dims, const intptr_t *s, void *unused)
{
    (void)unused;
    if (s[6] == (intptr_t)sizeof(CG_T)) CG_NAME(all_columns)(p, dims, s, sizeof(CG_T));
    else CG_NAME(all_columns)(p, dims, s, s[6]);
}

#ifdef CG_FEW_PRODUCTS
#define CG_LOOP(columns, terms)                                                                                                \
    static void CG_NAME(few_##columns##_##terms)(char **p, const intptr_t *dims, const intptr_t *s, void *unused)              \
    {                                                                                                                          \
        (void)unused;                                                                                                          \
        CG_NAME(few)(p, dims, s, columns, terms);                                                                              \
    }
#define CG_LOOPS(columns) CG_LOOP(columns, 1) CG_LOOP(columns, 2) CG_LOOP(columns, 3) CG_LOOP(columns, 4)
CG_LOOPS(1)
CG_LOOPS(2)
CG_LOOPS(3)
CG_LOOPS(4)
#define CG_ROW(columns) \
    {CG_NAME(few_##columns##_1), CG_NAME(few_##columns##_2), CG_NAME(few_##columns##_3), CG_NAME(few_##columns##_4)}
static const cg_small_products CG_NAME(small_products) = {CG_NAME(any), {CG_ROW(1), CG_ROW(2), CG_ROW(3), CG_ROW(4)}};
#else
static const cg_small_products CG_NAME(small_products) = {.any = CG_NAME(any)};
#endif

#undef CG_T
#undef CG_NAME
#undef CG_ELEMENT
#undef CG_INLINED
#undef CG_LOOP
#undef CG_LOOPS
#undef CG_ROW
