/* ----- Reflections ----- */
CG_CALLED CG_T CG_NAME(sum_of_lanes)(const CG_VECTOR *sums)
{
    CG_T sum = 0;
#pragma GCC unroll 1
    for (int lane = 0; lane < CG_LANES; lane++) sum += (*sums)[lane];
    return sum;
}

/* The norm of n numbers, none of whose squares leaves the range. */
CG_CALLED CG_T CG_NAME(norm)(const CG_T *x, intptr_t n)
{
    CG_VECTOR sums = {0};
    CG_T sum = 0, scale = 0;
    intptr_t i = 0;
    for (; i + CG_LANES <= n; i += CG_LANES) sums += *(const CG_VECTOR *)(x + i) * *(const CG_VECTOR *)(x + i);
    for (; i < n; i++) sum += x[i] * x[i];
    sum += CG_NAME(sum_of_lanes)(&sums);
    if (sum > CG_LEAST / (CG_DIGIT * CG_DIGIT) && sum - sum == 0) return CG_SQRT(sum);
    for (i = 0; i < n; i++) {
        const CG_T size = x[i] < 0 ? -x[i] : x[i];
        if (!(size <= scale)) scale = size;
    }
    if (scale == 0 || scale - scale != 0) return scale;
    for (sum = 0, i = 0; i < n; i++) sum += x[i] / scale * (x[i] / scale);
    return scale * CG_SQRT(sum);
}

/* c -= factor * v * (v^T c) of so many columns, where v begins with 1, which is not stored. */
CG_INLINED void CG_NAME(reflect)(int columns, intptr_t m, const CG_T *restrict v, CG_T factor, CG_T *restrict c, intptr_t ld)
{
    CG_VECTOR sums[4] = {{0}};
    CG_T sum[4];
    intptr_t i = 1;
    for (; i + CG_LANES <= m; i += CG_LANES)
#pragma GCC unroll 4
        for (int j = 0; j < columns; j++) sums[j] += *(const CG_VECTOR *)(v + i) * *(const CG_VECTOR *)(c + i + j * ld);
    for (int j = 0; j < columns; j++) {
        sum[j] = c[j * ld];
        for (intptr_t r = i; r < m; r++) sum[j] += v[r] * c[r + j * ld];
        sum[j] = factor * (sum[j] + CG_NAME(sum_of_lanes)(sums + j)), c[j * ld] -= sum[j];
    }
    for (i = 1; i + CG_LANES <= m; i += CG_LANES)
#pragma GCC unroll 4
        for (int j = 0; j < columns; j++) *(CG_VECTOR *)(c + i + j * ld) -= *(const CG_VECTOR *)(v + i) * sum[j];
    for (int j = 0; j < columns; j++)
        for (intptr_t r = i; r < m; r++) c[r + j * ld] -= v[r] * sum[j];
}

CG_CALLED void CG_NAME(reflect_1)(intptr_t m, const CG_T *v, CG_T factor, CG_T *c, intptr_t ld)
{
    CG_NAME(reflect)(1, m, v, factor, c, ld);
}

CG_CALLED void CG_NAME(reflect_4)(intptr_t m, const CG_T *v, CG_T factor, CG_T *c, intptr_t ld)
{
    CG_NAME(reflect)(4, m, v, factor, c, ld);
}

/* Make of x the reflector that makes (norm, 0, ...) of it, and put the norm into x[0]. Return its factor: LAPACK's larfg. */
CG_CALLED CG_T CG_NAME(reflector)(intptr_t n, CG_T *x)
{
    if (CG_NAME(norm)(x + 1, n - 1) == 0) return 0;
    CG_T norm = CG_NAME(norm)(x, n), scale = 1;
    if (norm < CG_LEAST / CG_DIGIT) {   /* its digits get lost */
        scale = CG_LEAST / CG_DIGIT;
        CG_NAME(divide)(x, scale, n);
        norm = CG_NAME(norm)(x, n);
    }
    const CG_T first = x[0];
    if (!signbit(first)) norm = -norm;  /* the sign of 0 counts, as in LAPACK */
    CG_NAME(divide)(x + 1, first - norm, n - 1);
    x[0] = norm * scale;
    return (norm - first) / norm;
}

/* As LAPACK's geqr2. */
static void CG_NAME(qr_narrow)(intptr_t m, intptr_t n, CG_T *a, intptr_t ld, CG_T *tau)
{
    for (intptr_t j = 0; j < m && j < n; j++) {
        CG_T *const column = a + j * ld + j;
        const intptr_t rows = m - j;
        tau[j] = CG_NAME(reflector)(rows, column);
        if (tau[j] == 0) continue;
        intptr_t c = j + 1;
        for (; c + 4 <= n; c += 4) CG_NAME(reflect_4)(rows, column, tau[j], a + c * ld + j, ld);
        for (; c < n; c++) CG_NAME(reflect_1)(rows, column, tau[j], a + c * ld + j, ld);
    }
}

/* Apply k reflections, or with `adjoint` their adjoint, as I - V T V^T (Schreiber and Van Loan 1989), to n columns of c. */
static void CG_NAME(reflect_block)(int adjoint, intptr_t m, intptr_t n, intptr_t k, const CG_T *reflectors, intptr_t ld, const CG_T *tau,
                                   CG_T *c, intptr_t ld_c, const cg_room *room)
{
    CG_T t[CG_REFLECTORS * CG_REFLECTORS] = {0}, products[CG_REFLECTORS * CG_REFLECTORS] = {0};
    CG_T *const v = room->work, *const first = v + m * k, *const second = first + k * n;
    for (intptr_t j = 0; j < k; j++) {
        memset(v + j * m, 0, j * sizeof(CG_T));
        v[j + j * m] = 1;
        memcpy(v + j + 1 + j * m, reflectors + j + 1 + j * ld, (m - j - 1) * sizeof(CG_T));
    }
    CG_NAME(update)(0, k, k, m, v, m, 1, v, 1, m, products, 1, k, room);
    for (intptr_t j = 0; j < k; j++) {
        for (intptr_t r = 0; r < j; r++) CG_NAME(subtract)(t + j * k, -products[r + j * k] * tau[j], t + r * k, r + 1);
        t[j + j * k] = tau[j];
    }
    memset(first, 0, 2 * k * n * sizeof(CG_T));
    CG_NAME(update)(0, k, n, m, v, m, 1, c, 1, ld_c, first, 1, k, room);
    CG_NAME(update)(0, k, n, k, t, adjoint ? k : 1, adjoint ? 1 : k, first, 1, k, second, 1, k, room);
    CG_NAME(update)(0, m, n, k, v, 1, m, second, 1, k, c, 1, ld_c, room);
}

static void CG_NAME(qr)(intptr_t m, intptr_t n, void *matrix, intptr_t ld, void *factors, const cg_room *room)
{
    CG_T *const tau = factors;
    for (intptr_t j = 0; j < m && j < n; j += CG_REFLECTORS) {
        CG_T *const panel = (CG_T *)matrix + j + j * ld;
        const intptr_t rows = m - j, left = n - j, width = left < CG_REFLECTORS ? left : CG_REFLECTORS, k = rows < width ? rows : width;
        CG_NAME(qr_narrow)(rows, width, panel, ld, tau + j);
        if (left > width) CG_NAME(reflect_block)(1, rows, left - width, k, panel, ld, tau + j, panel + width * ld, ld, room);
    }
}

/* The first n columns of the product of k reflections, written over them: from the last ones on. */
static void CG_NAME(product)(intptr_t m, intptr_t n, intptr_t k, void *matrix, intptr_t ld, const void *factors, const cg_room *room)
{
    CG_T *const a = matrix;
    for (intptr_t j = k; j < n; j++) memset(a + j * ld, 0, m * sizeof(CG_T)), a[j + j * ld] = 1;
    for (intptr_t j = k ? (k - 1) / CG_REFLECTORS * CG_REFLECTORS : -1; j >= 0; j -= CG_REFLECTORS) {
        const intptr_t width = k - j < CG_REFLECTORS ? k - j : CG_REFLECTORS;
        CG_T *const reflectors = (CG_T *)room->work + (m - j) * width + 2 * width * (n - j);
        for (intptr_t c = j; c < j + width; c++) {
            memcpy(reflectors + (c - j) * (m - j), a + j + c * ld, (m - j) * sizeof(CG_T));
            memset(a + c * ld, 0, m * sizeof(CG_T));
            a[c + c * ld] = 1;
        }
        CG_NAME(reflect_block)(0, m - j, n - j, width, reflectors, m - j, (const CG_T *)factors + j, a + j + j * ld, ld, room);
    }
}

/* Apply k reflections to n columns of c. */
static void CG_NAME(reflect_all)(intptr_t m, intptr_t n, intptr_t k, const void *reflectors, intptr_t ld, const void *factors, void *matrix,
                                 intptr_t ld_c, const cg_room *room)
{
    for (intptr_t j = k ? (k - 1) / CG_REFLECTORS * CG_REFLECTORS : -1; j >= 0; j -= CG_REFLECTORS)
        CG_NAME(reflect_block)(0, m - j, n, k - j < CG_REFLECTORS ? k - j : CG_REFLECTORS, (const CG_T *)reflectors + j + j * ld, ld,
                               (const CG_T *)factors + j, (CG_T *)matrix + j, ld_c, room);
}
