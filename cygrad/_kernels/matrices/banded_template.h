/* Matrices of few diagonals, in LAPACK's formats: element (i, j) lies in column j, i - j rows below the diagonal's row.
 *
 * Included by plain.h, once for each type. Elements outside of the matrix are not read. A matrix of l diagonals below and u above has
 * l + u diagonals above once its rows are exchanged, so l rows of zeros come first (gbtrf); a definite one has its lower ones (pbtrf).
 */
static intptr_t CG_NAME(banded_lu)(intptr_t n, intptr_t l, intptr_t u, void *matrix, intptr_t ld, int32_t *pivots)
{
    intptr_t info = 0, reach = 0;       /* the last column that an exchanged row has reached */
    for (intptr_t j = 0; j < n; j++) {
        CG_T *const diagonal = (CG_T *)matrix + j * ld + l + u;
        const intptr_t below = l < n - 1 - j ? l : n - 1 - j, row = CG_NAME(largest)(diagonal, 1, below + 1);
        pivots[j] = (int32_t)(j + row + 1);
        if (diagonal[row] == 0) {
            if (!info) info = j + 1;
            continue;
        }
        const intptr_t end = j + u + row < n - 1 ? j + u + row : n - 1;
        reach = end > reach ? end : reach;
        if (row) CG_NAME(exchange)(diagonal, ld - 1, diagonal + row, ld - 1, reach - j + 1);
        const CG_T pivot = *diagonal, inverse = 1 / pivot;
        for (intptr_t i = 1; i <= below; i++) diagonal[i] = CG_QUOTIENT(diagonal[i], pivot, inverse);
        for (intptr_t c = 1; c <= reach - j; c++) {
            CG_T *const column = diagonal + c * (ld - 1);
            CG_NAME(subtract)(column + 1, *column, diagonal + 1, below);
        }
    }
    return info;
}

static CG_T CG_NAME(conjugate_product)(const CG_T *a, const CG_T *x, intptr_t n)
{
    CG_T sum = 0;
    for (intptr_t i = 0; i < n; i++) sum += CG_CONJ(a[i]) * x[i];
    return sum;
}

static CG_CALLED void CG_NAME(banded_by_factors)(int adjoint, intptr_t n, intptr_t l, intptr_t u, intptr_t k, const void *matrix,
                                                 intptr_t ld, const int32_t *pivots, void *solved, intptr_t ld_x)
{
    for (int pass = 0; pass < 2; pass++) {
        const int lower = pass == adjoint;
        for (intptr_t step = 0; step < n; step++) {
            const intptr_t j = pass ? n - 1 - step : step, row = pivots[j] - 1;
            const CG_T *const diagonal = (const CG_T *)matrix + j * ld + l + u;
            const intptr_t below = l < n - 1 - j ? l : n - 1 - j, above = l + u < j ? l + u : j;
            const CG_T pivot = adjoint ? CG_CONJ(*diagonal) : *diagonal, inverse = 1 / pivot;
            for (intptr_t c = 0; c < k; c++) {
                CG_T *const column = (CG_T *)solved + c * ld_x, *const x = column + j;
                if (lower) {
                    if (adjoint) *x -= CG_NAME(conjugate_product)(diagonal + 1, x + 1, below);
                    const CG_T swapped = *x;
                    *x = column[row], column[row] = swapped;
                    if (!adjoint) CG_NAME(subtract)(x + 1, *x, diagonal + 1, below);
                } else {
                    if (adjoint) *x -= CG_NAME(conjugate_product)(diagonal - above, x - above, above);
                    *x = CG_SCALED(*x, pivot, inverse);
                    if (!adjoint) CG_NAME(subtract)(x - above, *x, diagonal - above, above);
                }
            }
        }
    }
}

static intptr_t CG_NAME(banded_cholesky)(intptr_t n, intptr_t l, void *matrix, intptr_t ld)
{
    for (intptr_t j = 0; j < n; j++) {
        CG_T *const diagonal = (CG_T *)matrix + j * ld;
        CG_REAL pivot = CG_REAL_OF(*diagonal);
        if (!(pivot > 0)) return j + 1;
        *diagonal = pivot = CG_SQRT(pivot);
        const intptr_t below = l < n - 1 - j ? l : n - 1 - j;
        for (intptr_t i = 1; i <= below; i++) diagonal[i] /= pivot;
        for (intptr_t c = 1; c <= below; c++) CG_NAME(subtract)(diagonal + c * ld, CG_CONJ(diagonal[c]), diagonal + c, below - c + 1);
    }
    return 0;
}

static CG_CALLED void CG_NAME(banded_by_cholesky)(intptr_t n, intptr_t l, intptr_t k, const void *matrix, intptr_t ld, void *solved,
                                                  intptr_t ld_x)
{
    for (int pass = 0; pass < 2; pass++)
        for (intptr_t step = 0; step < n; step++) {
            const intptr_t j = pass ? n - 1 - step : step, below = l < n - 1 - j ? l : n - 1 - j;
            const CG_T *const diagonal = (const CG_T *)matrix + j * ld;
            for (intptr_t c = 0; c < k; c++) {
                CG_T *const x = (CG_T *)solved + c * ld_x + j;
                if (pass) *x -= CG_NAME(conjugate_product)(diagonal + 1, x + 1, below);
                *x /= CG_REAL_OF(*diagonal);
                if (!pass) CG_NAME(subtract)(x + 1, *x, diagonal + 1, below);
            }
        }
}
