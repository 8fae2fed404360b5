/* Reductions of matrices of CG_T to few diagonals, reflection by reflection.
 *
 * The rest of a matrix is read and written once for each: it is updated by the last one while it is multiplied by the next one, as in
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
        CG_VECTOR *const entries = (CG_VECTOR *)(a + i + c * ld), updated = *entries - x * factors[3 * c] - y * factors[3 * c + 1];
        *entries = updated;
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
 * reflectors below the diagonal. The part above is lost.
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
            CG_VECTOR *const entries = (CG_VECTOR *)(w + i);
            *entries = (*(const CG_VECTOR *)(product + i) + *(const CG_VECTOR *)(sums + i)) * tau[k];
            total += *entries * *(const CG_VECTOR *)(u + i);
        }
        const CG_T along = CG_NAME(sum_of_lanes)(&total) * tau[k] / 2;
        CG_NAME(subtract)(w + k + 1, along, u + k + 1, below);
        memset(w + start, 0, (k + 1 - start) * sizeof(CG_T));
        v = u, u = next;
    }
}

CG_CALLED CG_T CG_NAME(dot)(intptr_t n, const CG_T *x, const CG_T *y)
{
    CG_VECTOR sums = {0};
    intptr_t i = 0;
    for (; i + CG_LANES <= n; i += CG_LANES) sums += *(const CG_VECTOR *)(x + i) * *(const CG_VECTOR *)(y + i);
    CG_T sum = CG_NAME(sum_of_lanes)(&sums);
    for (; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Two columns: a -= v y^T + x u^T, whose factors are given, y and u of a column after the other's; sums = a^T reflector; and product
 * += earlier r of the two columns before them.
 */
CG_CALLED void CG_NAME(update_pair)(intptr_t height, CG_T *a, intptr_t ld, const CG_T *v, const CG_T *x, const CG_T *reflector,
                                    const CG_T *y, const CG_T *u, const CG_T *earlier, const CG_T *r, CG_T *product, CG_T *sums)
{
    CG_VECTOR sum[2] = {{0}}, of_v[2], of_x[2], of_earlier[2];
#pragma GCC unroll 2
    for (int c = 0; c < 2; c++) {
        of_v[c] = y[c] - (CG_VECTOR){0}, of_x[c] = u[c] - (CG_VECTOR){0}, of_earlier[c] = r[c] - (CG_VECTOR){0};
    }
    for (intptr_t i = 0; i < height; i += CG_LANES) {
        const CG_VECTOR first = *(const CG_VECTOR *)(v + i), second = *(const CG_VECTOR *)(x + i);
        CG_VECTOR total = *(const CG_VECTOR *)(product + i);
#pragma GCC unroll 2
        for (int c = 0; c < 2; c++) {
            CG_VECTOR *const entries = (CG_VECTOR *)(a + i + c * ld), updated = *entries - first * of_v[c] - second * of_x[c];
            *entries = updated;
            sum[c] += updated * *(const CG_VECTOR *)(reflector + i);
            total += *(const CG_VECTOR *)(earlier + i + c * ld) * of_earlier[c];
        }
        *(CG_VECTOR *)(product + i) = total;
    }
    for (int c = 0; c < 2; c++) sums[c] = CG_NAME(sum_of_lanes)(sum + c);
}

/* Make a matrix B = Q^T A P, of no more columns than rows, bidiagonal, as LAPACK's gebd2: d and e are its diagonals, Q the product of the
 * reflectors in the matrix, and P is made of those in `rows`, dense columns, below the diagonal.
 *
 * The row that the next reflection is made of is known column by column while the first one is multiplied, so the matrix is multiplied by
 * that row in the same pass, and the product is corrected by the row's first number.
 */
static void CG_NAME(bidiagonal)(intptr_t m, intptr_t n, void *matrix, intptr_t ld, void *factors, void *rows, void *row_factors,
                                void *diagonal, void *beside, void *work)
{
    CG_T *const a = matrix, *const tau = factors, *const row_tau = row_factors, *const d = diagonal, *const e = beside;
    CG_T *v = work, *next = v + ld, *const x = next + ld, *const product = x + ld;
    CG_T *const y = product + ld, *const u = y + ld, *const r = u + ld;
    const intptr_t height = (m + CG_LANES - 1) / CG_LANES * CG_LANES;
    memset(work, 0, 7 * ld * sizeof(CG_T));
    for (intptr_t j = 0; j < n; j++) memset(a + m + j * ld, 0, (height - m) * sizeof(CG_T));
    if (n % 2) memset(a + n * ld, 0, height * sizeof(CG_T));
    for (intptr_t k = 0; k < n; k++) {
        CG_T *const column = a + k * ld, *const row = (CG_T *)rows + k * n + k + 1, *const free_column = v;
        const intptr_t below = m - k, right = n - k - 1, start = k / CG_LANES * CG_LANES;
        CG_NAME(subtract)(column + k, y[k], v + k, below);
        CG_NAME(subtract)(column + k, u[k], x + k, below);
        tau[k] = CG_NAME(reflector)(below, column + k);
        d[k] = column[k];
        if (!right) return;
        memcpy(next + k, column + k, below * sizeof(CG_T));
        memset(next + start, 0, (k - start) * sizeof(CG_T));
        next[k] = 1, y[k] = u[k] = 0;
        memset(product + start, 0, (height - start) * sizeof(CG_T));
        const intptr_t begin = (k + 1) / 2 * 2;
        const CG_T *earlier = a + start + begin * ld;
        const CG_T none[2] = {0}, *known = none;
        for (intptr_t j = begin; j < n; j += 2) {
            CG_T sums[2];
            CG_NAME(update_pair)(height - start, a + start + j * ld, ld, v + start, x + start, next + start, y + j, u + j, earlier, known,
                                 product + start, sums);
            for (intptr_t c = j; c < j + 2; c++) {
                y[c] = c == k ? 0 : tau[k] * sums[c - j];
                r[c] = c == k ? 0 : a[k + c * ld] - y[c];
            }
            earlier = a + start + j * ld, known = r + j;
        }
        for (int c = 0; c < 2; c++) CG_NAME(subtract)(product + k, -known[c], earlier + k - start + c * ld, below);
        const CG_T first = r[k + 1];
        row_tau[k] = CG_NAME(reflector)(right, r + k + 1);
        const CG_T norm = r[k + 1], size = norm < 0 ? -norm : norm;
        e[k] = norm, r[k + 1] = 1;
        memcpy(row, r + k + 1, right * sizeof(CG_T)), memcpy(u + k + 1, row, right * sizeof(CG_T));
        memset(x + start, 0, (height - start) * sizeof(CG_T));
        v = next, next = free_column;
        if (row_tau[k] == 0) continue;
        CG_T scale = row_tau[k];
        if (size >= CG_LEAST / CG_DIGIT) {
            scale /= first - norm;
            CG_NAME(subtract)(product + k, norm, column + ld + k, below);
        } else {    /* the row's digits were lost, but not the digits of the updated row */
            memset(product + k, 0, below * sizeof(CG_T));
            for (intptr_t j = k + 1; j < n; j++) CG_NAME(subtract)(product + k, -u[j], a + k + j * ld, below);
        }
        CG_NAME(subtract)(x + k + 1, -scale, product + k + 1, below - 1);
        CG_NAME(subtract)(x + k + 1, row_tau[k] * CG_NAME(dot)(right, y + k + 1, u + k + 1), v + k + 1, below - 1);
    }
}
