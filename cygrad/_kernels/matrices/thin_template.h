/* Products of a column by a row, and of a matrix by a few columns, for blocked_template.h. */
/* A row of c = a b, where a is one column. */
CG_VECTORISED void CG_NAME(scale)(CG_T *restrict c, CG_T factor, const CG_T *restrict b, intptr_t n)
{
    for (intptr_t j = 0; j < n; j++) c[j] = factor * b[j] + 0;
}

/* c = a b, where a is one column and b one row. One of the steps of c is 1. */
static void CG_NAME(outer)(intptr_t m, intptr_t n, const CG_T *a, intptr_t a_down, const CG_T *b, intptr_t b_right, CG_T *c, intptr_t c_down,
                           intptr_t c_right, const cg_room *room)
{
    if (c_right != 1) {
        CG_NAME(outer)(n, m, b, b_right, a, a_down, c, c_right, c_down, room);
        return;
    }
    if (b_right != 1) CG_NAME(copy)(n, room->memory, 1, b, b_right), b = room->memory;
    for (intptr_t i = 0; i < m; i++) CG_NAME(scale)(c + i * c_down, a[i * a_down], b, n);
}

#if CG_VECTOR_BYTES > 16
/* c = a b, where b has few columns: an element is the sum of CG_CLASSES sums, each of every CG_CLASSES-th product. */
typedef struct {
    intptr_t m, n, k, down, right, c_down, c_right;
    const CG_T *a, *columns;    /* of b, `height` apart, with zeros behind them */
    CG_T *c;
    intptr_t height;
} CG_THIN;

/* Add the sums of one element up, half of them to the other half. */
CG_INLINED CG_T CG_NAME(total)(CG_VECTOR *sums)
{
    CG_MASK lanes;
    for (int lane = 0; lane < CG_LANES; lane++) lanes[lane] = lane;
    for (int half = CG_CLASS_VECTORS / 2; half; half /= 2)
        for (int v = 0; v < half; v++) sums[v] += sums[v + half];
    for (CG_BITS half = CG_LANES / 2; half; half /= 2) sums[0] += CG_SHUFFLE(sums[0], lanes ^ half);
    return sums[0][0];
}

/* Rows of a, which lie dense. */
static void CG_NAME(thin_by_rows)(const CG_THIN *thin, intptr_t first, intptr_t last)
{
    const intptr_t whole = thin->k / CG_CLASSES * CG_CLASSES;
    for (intptr_t i = first; i < last; i++) {
        const CG_T *const row = thin->a + i * thin->down;
        CG_VECTOR sums[CG_FEW][CG_CLASS_VECTORS] = {0};
        CG_T rest[CG_CLASSES] = {0};
        memcpy(rest, row + whole, (thin->k - whole) * sizeof(CG_T));
        for (intptr_t p = 0; p < thin->height; p += CG_CLASSES) {
            const CG_T *const x = p < whole ? row + p : rest, *const y = thin->columns + p;
#pragma GCC unroll 4
            for (int j = 0; j < CG_FEW; j++)
#pragma GCC unroll 4
                for (int v = 0; v < CG_CLASS_VECTORS; v++)
                    sums[j][v] += ((const CG_VECTOR *)x)[v] * ((const CG_VECTOR *)(y + j * thin->height))[v];
        }
        for (intptr_t j = 0; j < thin->n; j++) thin->c[i * thin->c_down + j * thin->c_right] = CG_NAME(total)(sums[j]);
    }
}

/* Any a, quickest where columns lie dense. */
static void CG_NAME(thin_by_columns)(const CG_THIN *thin, intptr_t first, intptr_t last)
{
    for (intptr_t i = first; i < last; i += CG_LANES) {
        CG_T sums[CG_FEW][CG_LANES][CG_CLASSES] = {0};
        const intptr_t rows = last - i < CG_LANES ? last - i : CG_LANES;
        for (int q = 0; q < CG_CLASSES; q++) {
            CG_VECTOR part[CG_FEW] = {0};
            for (intptr_t p = q; p < thin->k; p += CG_CLASSES) {
                const CG_T *const a = thin->a + i * thin->down + p * thin->right, *const b = thin->columns + p;
                CG_VECTOR column = {0};
                if (thin->down == 1 && rows == CG_LANES) column = *(const CG_VECTOR *)a;
                else
                    for (intptr_t r = 0; r < rows; r++) column[r] = a[r * thin->down];
#pragma GCC unroll 4
                for (int j = 0; j < CG_FEW; j++) part[j] += column * b[j * thin->height];
            }
            for (int j = 0; j < CG_FEW; j++)
                for (int r = 0; r < CG_LANES; r++) sums[j][r][q] = part[j][r];
        }
        for (intptr_t r = 0; r < rows; r++)
            for (intptr_t j = 0; j < thin->n; j++) thin->c[(i + r) * thin->c_down + j * thin->c_right] = CG_NAME(total)((CG_VECTOR *)sums[j][r]);
    }
}

static void CG_NAME(thin_panels)(const void *shared, intptr_t first, intptr_t last)
{
    const CG_THIN *const thin = shared;
    last = last * CG_PANEL < thin->m ? last * CG_PANEL : thin->m;
    (thin->right == 1 ? CG_NAME(thin_by_rows) : CG_NAME(thin_by_columns))(thin, first * CG_PANEL, last);
}

static void CG_NAME(multiply_thin)(intptr_t m, intptr_t n, intptr_t k, const CG_T *a, intptr_t a_down, intptr_t a_right, const CG_T *b,
                                   intptr_t b_down, intptr_t b_right, CG_T *c, intptr_t c_down, intptr_t c_right, const cg_room *room)
{
    const intptr_t height = (k + CG_CLASSES - 1) / CG_CLASSES * CG_CLASSES;
    CG_T *const columns = room->memory;
    memset(columns, 0, CG_FEW * height * sizeof(CG_T));
    for (intptr_t j = 0; j < n; j++)
        for (intptr_t p = 0; p < k; p++) columns[p + j * height] = b[p * b_down + j * b_right];
    const CG_THIN thin = {m, n, k, a_down, a_right, c_down, c_right, a, columns, c, height};
    room->share(CG_NAME(thin_panels), &thin, (m + CG_PANEL - 1) / CG_PANEL, (double)m * n * k);
}
#endif
