/* Reductions of matrices of CG_T to few diagonals, reflection by reflection.
 *
 * What is left of a matrix is read and written once for each: it is updated by the last one while it is multiplied by the next one, as in
 * Howell et al. 2008. Columns are padded by zeros to whole vectors, to an even number of columns, and aligned alike.
 */

/* Two columns from a block of CG_LANES rows on: a -= v w^T + w v^T; product += a u; where they lie `below` their own block, sums += a^T u. */
CG_INLINED void CG_NAME(update_block)(int below, intptr_t i, CG_T *a, intptr_t ld, const CG_VECTOR *factors, const CG_T *v, const CG_T *w,
                                      const CG_T *u, CG_T *product, CG_VECTOR *sums)
{
    CG_VECTOR *const rows = (CG_VECTOR *)(product + i);
    const CG_VECTOR x = *(const CG_VECTOR *)(v + i), y = *(const CG_VECTOR *)(w + i), z = *(const CG_VECTOR *)(u + i);
    CG_VECTOR sum = *rows;
#pragma GCC unroll 2
    for (int c = 0; c < 2; c++) {
        CG_VECTOR *const place = (CG_VECTOR *)(a + i + c * ld), updated = *place - x * factors[3 * c] - y * factors[3 * c + 1];
        *place = updated;
        sum += updated * factors[3 * c + 2];
        if (below) sums[c] += updated * z;
    }
    *rows = sum;
}

CG_CALLED void CG_NAME(update_columns)(intptr_t j, intptr_t height, CG_T *a, intptr_t ld, const CG_T *v, const CG_T *w, const CG_T *u,
                                       CG_T *product, CG_T *sums)
{
    CG_VECTOR factors[6], sum[2] = {{0}};
#pragma GCC unroll 2
    for (int c = 0; c < 2; c++) {
        factors[3 * c] = w[j + c] - (CG_VECTOR){0};
        factors[3 * c + 1] = v[j + c] - (CG_VECTOR){0};
        factors[3 * c + 2] = u[j + c] - (CG_VECTOR){0};
    }
    intptr_t i = j / CG_LANES * CG_LANES;
    CG_NAME(update_block)(0, i, a, ld, factors, v, w, u, product, sum);
    for (i += CG_LANES; i < height; i += CG_LANES) CG_NAME(update_block)(1, i, a, ld, factors, v, w, u, product, sum);
    for (int c = 0; c < 2; c++) sums[j + c] = CG_NAME(sum_of_lanes)(sum + c);
}

/* Make a symmetric matrix T = Q^T A Q tridiagonal, as LAPACK's sytd2 of the lower triangle: d and e are its diagonals, and Q the product of the
 * reflectors below the diagonal. What lies above is lost.
 */
static void CG_NAME(tridiagonal)(intptr_t n, void *matrix, intptr_t ld, void *factors, void *diagonal, void *beside, void *work)
{
    CG_T *const a = matrix, *const tau = factors, *const d = diagonal, *const e = beside;
    CG_T *v = work, *u = v + ld, *const w = u + ld, *const product = w + ld, *const sums = product + ld;
    const intptr_t height = (n + CG_LANES - 1) / CG_LANES * CG_LANES;
    memset(work, 0, 5 * ld * sizeof(CG_T));
    for (intptr_t j = 0; j < n; j++) {
        for (intptr_t i = j / CG_LANES * CG_LANES; i < j; i++) a[i + j * ld] = a[j + i * ld];
        memset(a + n + j * ld, 0, (height - n) * sizeof(CG_T));
    }
    if (n % 2) memset(a + n * ld, 0, height * sizeof(CG_T));
    for (intptr_t k = 0; k < n; k++) {
        CG_T *const column = a + k * ld, *const next = v;
        const intptr_t below = n - k - 1, start = (k + 1) / CG_LANES * CG_LANES;
        CG_NAME(subtract)(column + k, w[k], v + k, below + 1);
        CG_NAME(subtract)(column + k, v[k], w + k, below + 1);
        d[k] = column[k];
        if (!below) return;
        tau[k] = CG_NAME(reflector)(below, column + k + 1);
        e[k] = column[k + 1];
        memcpy(u + k + 1, column + k + 1, below * sizeof(CG_T));
        v[k] = w[k] = u[k] = 0, u[k + 1] = 1;   /* this column is done, but may be one of two */
        memset(product + start, 0, (height - start) * sizeof(CG_T));
        for (intptr_t j = (k + 1) / 2 * 2; j < n; j += 2) CG_NAME(update_columns)(j, height, a + j * ld, ld, v, w, u, product, sums);
        CG_VECTOR total = {0};
        for (intptr_t i = start; i < height; i += CG_LANES) {
            CG_VECTOR *const place = (CG_VECTOR *)(w + i);
            *place = (*(const CG_VECTOR *)(product + i) + *(const CG_VECTOR *)(sums + i)) * tau[k];
            total += *place * *(const CG_VECTOR *)(u + i);
        }
        const CG_T along = CG_NAME(sum_of_lanes)(&total) * tau[k] / 2;
        CG_NAME(subtract)(w + k + 1, along, u + k + 1, below);
        memset(w + start, 0, (k + 1 - start) * sizeof(CG_T));
        v = u, u = next;
    }
}
