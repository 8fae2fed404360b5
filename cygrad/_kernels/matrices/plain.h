/* Algorithms for matrices of CG_T, the textbook's (Golub and Van Loan, Matrix Computations) in the formats of LAPACK: dense columns,
 * `ld` elements apart. They are right for all sizes, and faster than LAPACK for small ones.
 *
 * Included once for each type, with CG_T, CG_REAL, CG_NAME, CG_SQRT, and CG_HAS_IMAGINARY. Indices count from 0, pivots and `info` from 1.
 * Comparisons are written so that NaN takes a way that ends.
 */
#if CG_HAS_IMAGINARY
#define CG_REAL_OF(x) (__real__(x))
#define CG_CONJ(x) (~(x))
#define CG_SIZE_OF(x) (fabs(__real__(x)) + fabs(__imag__(x))) /* the size by which LAPACK compares pivots */
#define CG_ABSOLUTE(x) ((CG_REAL)hypot(__real__(x), __imag__(x)))
#define CG_QUOTIENT CG_SCALED /* complex quotients take long */
#else
#define CG_REAL_OF(x) (x)
#define CG_CONJ(x) (x)
#define CG_SIZE_OF(x) fabs(x)
#define CG_ABSOLUTE(x) ((CG_REAL)fabs(x))
#define CG_QUOTIENT(x, y, inverse) ((void)(inverse), (x) / (y))
#endif
#define CG_SCALED(x, y, inverse) ((inverse) - (inverse) == 0 ? (x) * (inverse) : (x) / (y)) /* y may be too small to have an inverse */
#define CG_AT(a, ld, i, j) (a)[(i) + (j) * (ld)]

/* Half of a rounding error decides nothing here, so sizes of floats are compared as doubles. */
static intptr_t CG_NAME(largest)(const CG_T *x, intptr_t step, intptr_t n)
{
    intptr_t best = 0;
    double size = CG_SIZE_OF(x[0]);
    for (intptr_t i = 1; i < n; i++) {
        const double other = CG_SIZE_OF(x[i * step]);
        best = other > size ? i : best, size = other > size ? other : size;    /* no branches: they cannot be predicted */
    }
    return best;
}

static void CG_NAME(exchange)(CG_T *x, intptr_t step_x, CG_T *y, intptr_t step_y, intptr_t n)
{
    for (intptr_t i = 0; i < n; i++) {
        CG_T swapped = x[i * step_x];
        x[i * step_x] = y[i * step_y], y[i * step_y] = swapped;
    }
}

/* y -= factor * x */
static inline void CG_NAME(subtract)(CG_T *restrict y, CG_T factor, const CG_T *restrict x, intptr_t n)
{
    for (intptr_t i = 0; i < n; i++) y[i] -= factor * x[i];
}

static intptr_t CG_NAME(cholesky)(intptr_t n, void *matrix, intptr_t ld)
{
    CG_T *a = matrix;
    for (intptr_t j = 0; j < n; j++) {
        CG_T *column = a + j * ld;
        CG_REAL pivot = CG_REAL_OF(column[j]);
        if (!(pivot > 0)) return j + 1;
        column[j] = pivot = CG_SQRT(pivot);
        for (intptr_t i = j + 1; i < n; i++) column[i] /= pivot;
        for (intptr_t c = j + 1; c < n; c++) CG_NAME(subtract)(a + c * ld + c, CG_CONJ(column[c]), column + c, n - c);
    }
    return 0;
}

static intptr_t CG_NAME(lu)(intptr_t m, intptr_t n, void *matrix, intptr_t ld, int32_t *pivots)
{
    CG_T *a = matrix;
    intptr_t info = 0, p = m < n ? m : n;
    for (intptr_t j = 0; j < p; j++) {
        CG_T *column = a + j * ld;
        intptr_t row = j + CG_NAME(largest)(column + j, 1, m - j);
        pivots[j] = (int32_t)(row + 1);
        if (column[row] == 0) {
            if (!info) info = j + 1;
            continue;
        }
        CG_NAME(exchange)(a + j, ld, a + row, ld, n);
        const CG_T pivot = column[j], inverse = 1 / pivot;
        for (intptr_t i = j + 1; i < m; i++) column[i] = CG_QUOTIENT(column[i], pivot, inverse);
        for (intptr_t c = j + 1; c < n; c++) CG_NAME(subtract)(a + c * ld + j + 1, CG_AT(a, ld, j, c), column + j + 1, m - j - 1);
    }
    return info;
}

/* Solve with a triangle whose element (i, j) lies at i * down + j * right, or its conjugate. */
static inline __attribute__((always_inline)) void CG_NAME(triangle)(int upper, int unit, int conjugate, intptr_t n, intptr_t k,
                                                                    const void *matrix, intptr_t down, intptr_t right, void *solved,
                                                                    intptr_t ld)
{
    const CG_T *a = matrix;
    for (intptr_t step = 0; step < n; step++) {
        const intptr_t i = upper ? n - 1 - step : step, first = upper ? i + 1 : 0, last = upper ? n : i;
        const CG_T *row = a + i * down, pivot = unit ? 1 : conjugate ? CG_CONJ(row[i * right]) : row[i * right], inverse = 1 / pivot;
        CG_T *x = solved;
        for (intptr_t c = 0; c < k; c++, x += ld) {
            CG_T sum = x[i];
            for (intptr_t j = first; j < last; j++) sum -= x[j] * (conjugate ? CG_CONJ(row[j * right]) : row[j * right]);
            x[i] = CG_SCALED(sum, pivot, inverse);
        }
    }
}

static CG_CALLED void CG_NAME(lower)(int unit, int conjugate, intptr_t n, intptr_t k, const void *matrix, intptr_t down, intptr_t right,
                                     void *solved, intptr_t ld)
{
    CG_NAME(triangle)(0, unit, conjugate, n, k, matrix, down, right, solved, ld);
}

static CG_CALLED void CG_NAME(upper)(int unit, int conjugate, intptr_t n, intptr_t k, const void *matrix, intptr_t down, intptr_t right,
                                     void *solved, intptr_t ld)
{
    CG_NAME(triangle)(1, unit, conjugate, n, k, matrix, down, right, solved, ld);
}

/* Exchange the rows of x that pivots name, in order or backwards. */
static void CG_NAME(permute)(int backwards, intptr_t n, intptr_t k, const int32_t *pivots, void *matrix, intptr_t ld)
{
    CG_T *x = matrix;
    for (intptr_t c = 0; c < k; c++, x += ld)
        for (intptr_t step = 0; step < n; step++) {
            intptr_t i = backwards ? n - 1 - step : step, row = pivots[i] - 1;
            CG_T swapped = x[i];
            x[i] = x[row], x[row] = swapped;
        }
}

#if !CG_HAS_IMAGINARY
/* The same as `by_factors`, with the same bits, for a constant n: columns stay in registers. */
static inline __attribute__((always_inline)) void CG_NAME(few_rows)(int adjoint, intptr_t n, intptr_t k, const CG_T *a, intptr_t down,
                                                                    intptr_t right, const int32_t *pivots, CG_T *x, intptr_t ld)
{
    enum { MOST = 4 };
    intptr_t rows[MOST] = {0, 1, 2, 3};
    CG_T t[MOST][MOST], pivot[2][MOST], inverse[2][MOST], y[MOST];
#pragma GCC unroll 4
    for (intptr_t i = 0; i < n; i++) {
        const intptr_t row = pivots[i] - 1, swapped = rows[i];
        rows[i] = rows[row], rows[row] = swapped;
#pragma GCC unroll 4
        for (intptr_t j = 0; j < n; j++) t[i][j] = a[i * down + j * right];
        pivot[adjoint][i] = 1, pivot[!adjoint][i] = t[i][i];
        inverse[0][i] = 1 / pivot[0][i], inverse[1][i] = 1 / pivot[1][i];
    }
    for (intptr_t c = 0; c < k; c++, x += ld) {
#pragma GCC unroll 4
        for (intptr_t i = 0; i < n; i++) {
            y[i] = x[adjoint ? i : rows[i]];
#pragma GCC unroll 4
            for (intptr_t j = 0; j < i; j++) y[i] -= y[j] * t[i][j];
            y[i] = CG_SCALED(y[i], pivot[0][i], inverse[0][i]);
        }
#pragma GCC unroll 4
        for (intptr_t i = n - 1; i >= 0; i--) {
#pragma GCC unroll 4
            for (intptr_t j = i + 1; j < n; j++) y[i] -= y[j] * t[i][j];
            y[i] = CG_SCALED(y[i], pivot[1][i], inverse[1][i]);
        }
#pragma GCC unroll 4
        for (intptr_t i = 0; i < n; i++) x[adjoint ? rows[i] : i] = y[i];
    }
}
#endif

/* Solve with the factors of `lu`, or with its adjoint, whose strides are given then. */
static void CG_NAME(by_factors)(int adjoint, intptr_t n, intptr_t k, const void *matrix, intptr_t down, intptr_t right,
                                const int32_t *pivots, void *solved, intptr_t ld)
{
#if !CG_HAS_IMAGINARY
#define CG_FEW(rows) case rows: CG_NAME(few_rows)(adjoint, rows, k, matrix, down, right, pivots, solved, ld); return;
    switch (n) { CG_FEW(2) CG_FEW(3) CG_FEW(4) }
#undef CG_FEW
#endif
    if (!adjoint) CG_NAME(permute)(0, n, k, pivots, solved, ld);
    CG_NAME(lower)(!adjoint, adjoint, n, k, matrix, down, right, solved, ld);
    CG_NAME(upper)(adjoint, adjoint, n, k, matrix, down, right, solved, ld);
    if (adjoint) CG_NAME(permute)(1, n, k, pivots, solved, ld);
}

/* The product of the pivots of `lu`, with the sign of their exchanges; or its phase and the logarithm of its size. */
static void CG_NAME(determinant)(intptr_t n, const char *matrix, intptr_t step, const int32_t *pivots, void *result, void *logarithm)
{
    CG_T product = 1;
    double sum = 0;
    for (intptr_t i = 0; i < n; i++, matrix += step) {
        CG_T factor;
        memcpy(&factor, matrix, sizeof factor);
        if (pivots[i] != i + 1) product = -product;
        if (logarithm) {
            const CG_REAL size = CG_ABSOLUTE(factor);
            sum += log(size);
            factor = size == 0 ? 0 : factor / size;
        }
        product *= factor;
    }
    if (logarithm) *(CG_REAL *)logarithm = (CG_REAL)sum;
    *(CG_T *)result = product;
}

static void CG_NAME(identity)(intptr_t n, void *matrix, intptr_t ld)
{
    CG_T *a = matrix;
    for (intptr_t j = 0; j < n; j++)
        for (intptr_t i = 0; i < n; i++) CG_AT(a, ld, i, j) = i == j;
}

/* Bunch and Kaufman 1977, as LAPACK's sytf2 and hetf2 of the lower triangle. */
static CG_SELDOM intptr_t CG_NAME(ldl)(int hermitian, intptr_t n, void *matrix, intptr_t ld, int32_t *pivots)
{
#define CG_MIRROR(x) (hermitian ? CG_CONJ(x) : (x))
#define CG_OWN(x) (hermitian ? (CG_T)CG_REAL_OF(x) : (x))
    const double alpha = 0.6403882032022076; /* (1 + sqrt(17)) / 8 */
    CG_T *a = matrix;
    intptr_t info = 0, width;
    for (intptr_t k = 0; k < n; k += width) {
        CG_T *column = a + k * ld;
        const intptr_t below = n - k - 1;
        intptr_t row = below ? k + 1 + CG_NAME(largest)(column + k + 1, 1, below) : k, chosen = k;
        column[k] = CG_OWN(column[k]);
        double own = CG_SIZE_OF(column[k]), off = below ? CG_SIZE_OF(column[row]) : 0;
        width = 1;
        if (own != own || (own == 0 && off == 0)) {
            if (!info) info = k + 1;
            pivots[k] = (int32_t)(k + 1);
            continue;
        }
        if (own < alpha * off) {
            intptr_t pivot = k + CG_NAME(largest)(a + row + k * ld, ld, row - k);
            double largest = CG_SIZE_OF(CG_AT(a, ld, row, pivot));
            if (row < n - 1) {
                pivot = row + 1 + CG_NAME(largest)(a + row + 1 + row * ld, 1, n - row - 1);
                if (CG_SIZE_OF(CG_AT(a, ld, pivot, row)) > largest) largest = CG_SIZE_OF(CG_AT(a, ld, pivot, row));
            }
            if (own < alpha * off * (off / largest)) {
                chosen = row;
                width = CG_SIZE_OF(CG_OWN(CG_AT(a, ld, row, row))) >= alpha * largest ? 1 : 2;
            }
        }
        const intptr_t last = k + width - 1;
        CG_T *other = a + last * ld;
        if (chosen != last) {
            CG_NAME(exchange)(other + chosen + 1, 1, a + chosen * ld + chosen + 1, 1, n - chosen - 1);
            for (intptr_t i = last + 1; i < chosen; i++) {
                CG_T swapped = CG_MIRROR(other[i]);
                other[i] = CG_MIRROR(CG_AT(a, ld, chosen, i)), CG_AT(a, ld, chosen, i) = swapped;
            }
            other[chosen] = CG_MIRROR(other[chosen]);
            CG_NAME(exchange)(other + last, 1, a + chosen * ld + chosen, 1, 1);
            if (width == 2) CG_NAME(exchange)(column + k + 1, 1, column + chosen, 1, 1);
        }
        column[k] = CG_OWN(column[k]), other[last] = CG_OWN(other[last]);
        pivots[k] = pivots[last] = (int32_t)(width == 1 ? chosen + 1 : -(chosen + 1));
        if (width == 1) {
            for (intptr_t j = k + 1; j < n; j++) CG_NAME(subtract)(a + j * ld + j, CG_MIRROR(column[j]) / column[k], column + j, n - j);
            for (intptr_t i = k + 1; i < n; i++) column[i] /= column[k];
        } else {
            const CG_T corner = column[k + 1], first = column[k] / CG_MIRROR(corner), second = other[last] / corner;
            const CG_T scale = 1 / (first * second - 1);
            for (intptr_t j = k + 2; j < n; j++) {
                const CG_T x = scale * (second * column[j] - other[j]) / CG_MIRROR(corner);
                const CG_T y = scale * (first * other[j] - column[j]) / corner;
                CG_NAME(subtract)(a + j * ld + j, CG_MIRROR(x), column + j, n - j);
                CG_NAME(subtract)(a + j * ld + j, CG_MIRROR(y), other + j, n - j);
                column[j] = x, other[j] = y;
            }
        }
    }
    return info;
}

/* sytrs and hetrs of the factors of `ldl`. */
static CG_SELDOM void CG_NAME(ldl_solve)(int hermitian, intptr_t n, intptr_t k, const void *matrix, intptr_t ld, const int32_t *pivots,
                                         void *solved, intptr_t ld_solved)
{
    const CG_T *a = matrix;
    CG_T *x = solved;
    for (intptr_t c = 0; c < k; c++, x += ld_solved) {
        for (intptr_t j = 0; j < n;) {
            const CG_T *column = a + j * ld;
            const intptr_t width = pivots[j] > 0 ? 1 : 2, last = j + width - 1, row = (width == 1 ? pivots[j] : -pivots[j]) - 1;
            CG_NAME(exchange)(x + last, 1, x + row, 1, 1);
            for (intptr_t one = j; one <= last; one++) CG_NAME(subtract)(x + last + 1, x[one], a + one * ld + last + 1, n - last - 1);
            if (width == 1) x[j] /= column[j];
            else {
                const CG_T corner = column[j + 1], above = CG_MIRROR(corner), first = column[j] / above;
                const CG_T second = column[ld + j + 1] / corner, left = x[j] / above, right = x[last] / corner;
                const CG_T scale = 1 / (first * second - 1);
                x[j] = scale * (second * left - right), x[last] = scale * (first * right - left);
            }
            j += width;
        }
        for (intptr_t j = n - 1; j >= 0;) {
            const intptr_t width = pivots[j] > 0 ? 1 : 2, row = (width == 1 ? pivots[j] : -pivots[j]) - 1;
            for (intptr_t one = j - width + 1; one <= j; one++)
                for (intptr_t i = j + 1; i < n; i++) x[one] -= CG_MIRROR(CG_AT(a, ld, i, one)) * x[i];
            CG_NAME(exchange)(x + j, 1, x + row, 1, 1);
            j -= width;
        }
    }
#undef CG_MIRROR
#undef CG_OWN
}

/* c -= factor * v * (v^H c), where v begins with 1, which is not stored. */
static void CG_NAME(reflect)(intptr_t m, const CG_T *v, CG_T factor, intptr_t columns, CG_T *c, intptr_t ld)
{
    for (intptr_t j = 0; j < columns; j++, c += ld) {
        CG_T sum = c[0];
        for (intptr_t i = 1; i < m; i++) sum += CG_CONJ(v[i]) * c[i];
        sum *= factor;
        c[0] -= sum;
        CG_NAME(subtract)(c + 1, sum, v + 1, m - 1);
    }
}

/* The norm of n numbers, none of whose squares leaves the range. */
static CG_REAL CG_NAME(norm)(intptr_t n, const CG_T *x)
{
    double scale = 0, sum = 0;
    for (intptr_t i = 0; i < n; i++) {
        const double size = CG_SIZE_OF(x[i]);
        if (!(size <= scale)) scale = size;
    }
    if (scale == 0) return 0;
    for (intptr_t i = 0; i < n; i++) {
        const CG_T part = x[i] / (CG_REAL)scale;
        sum += CG_REAL_OF(part * CG_CONJ(part));
    }
    return (CG_REAL)(scale * sqrt(sum));
}

/* Make of x the reflector, as `reflect` takes it, that makes (norm, 0, ...) of it, and put the norm, which is real, into x[0]. Return its
 * factor: LAPACK's tau, of the adjoint.
 */
static CG_CALLED CG_T CG_NAME(reflector)(intptr_t n, CG_T *x)
{
    const CG_REAL least = sizeof(CG_REAL) == sizeof(float) ? FLT_MIN / FLT_EPSILON : (CG_REAL)(DBL_MIN / DBL_EPSILON);
    CG_T first = x[0];
    intptr_t same = 1;
    while (same < n && x[same] == 0) same++;
    if (same >= n && first == CG_REAL_OF(first)) return 0;
    CG_REAL norm = CG_NAME(norm)(n, x), scale = 1;
    if (norm < least) { /* its digits get lost */
        scale = least;
        for (intptr_t i = 0; i < n; i++) x[i] /= scale;
        first = x[0], norm = CG_NAME(norm)(n, x);
    }
    if (!signbit(CG_REAL_OF(first))) norm = -norm;  /* the sign of 0 counts, as in LAPACK */
    for (intptr_t i = 1; i < n; i++) x[i] /= first - norm;
    x[0] = norm * scale;
    return (norm - first) / norm;
}

static void CG_NAME(qr)(intptr_t m, intptr_t n, void *matrix, intptr_t ld, void *factors)
{
    CG_T *tau = factors;
    for (intptr_t j = 0; j < m && j < n; j++) {
        CG_T *column = (CG_T *)matrix + j * ld + j;
        tau[j] = CG_NAME(reflector)(m - j, column);
        if (tau[j] != 0) CG_NAME(reflect)(m - j, column, CG_CONJ(tau[j]), n - j - 1, column + ld, ld);
    }
}

static CG_SELDOM void CG_NAME(product)(intptr_t m, intptr_t n, intptr_t k, void *matrix, intptr_t ld, const void *factors)
{
    CG_T *a = matrix;
    const CG_T *tau = factors;
    for (intptr_t j = k; j < n; j++)
        for (intptr_t i = 0; i < m; i++) CG_AT(a, ld, i, j) = i == j;
    for (intptr_t j = k - 1; j >= 0; j--) {
        CG_T *column = a + j * ld;
        CG_NAME(reflect)(m - j, column + j, tau[j], n - j - 1, column + ld + j, ld);
        for (intptr_t i = 0; i < j; i++) column[i] = 0;
        column[j] = 1 - tau[j];
        for (intptr_t i = j + 1; i < m; i++) column[i] *= -tau[j];
    }
}

static CG_SELDOM void CG_NAME(apply)(int adjoint, intptr_t m, intptr_t n, intptr_t k, const void *reflectors, intptr_t ld,
                                     const void *factors, void *matrix, intptr_t ld_matrix)
{
    const CG_T *v = reflectors, *tau = factors;
    for (intptr_t step = 0; step < k; step++) {
        const intptr_t j = adjoint ? step : k - 1 - step;
        CG_NAME(reflect)(m - j, v + j * ld + j, adjoint ? CG_CONJ(tau[j]) : tau[j], n, (CG_T *)matrix + j, ld_matrix);
    }
}

/* Divide a matrix, or its lower triangle, by a power of 2 where squares of its numbers might leave the range; return its exponent. */
static int CG_NAME(scale)(int lower, intptr_t m, intptr_t n, void *matrix, intptr_t ld)
{
    const int most = sizeof(CG_REAL) == sizeof(float) ? FLT_MAX_EXP : DBL_MAX_EXP;
    const intptr_t parts = sizeof(CG_T) / sizeof(CG_REAL);
    CG_REAL largest = 0;
    for (intptr_t j = 0; j < n; j++)
        for (intptr_t i = (lower ? j : 0) * parts; i < m * parts; i++) {
            const CG_REAL size = (CG_REAL)fabs(((CG_REAL *)matrix)[j * ld * parts + i]);
            largest = size > largest ? size : largest;
        }
    int exponent;
    frexp(largest, &exponent);
    if (abs(exponent) < most / 4) return 0;
    exponent = exponent > 0 ? exponent : exponent > 2 - most ? exponent : 2 - most;
    for (intptr_t j = 0; j < n; j++)
        for (intptr_t i = (lower ? j : 0) * parts; i < m * parts; i++)
            ((CG_REAL *)matrix)[j * ld * parts + i] *= (CG_REAL)ldexp(1, -exponent);
    return exponent;
}

/* Make a Hermitian matrix T = Q^H A Q tridiagonal, as LAPACK's sytd2 of the lower triangle: d and e are its diagonals, and Q the product of
 * the reflectors below the diagonal.
 */
static void CG_NAME(tridiagonal)(intptr_t n, void *matrix, intptr_t ld, void *factors, void *diagonal, void *beside)
{
    CG_REAL *d = diagonal, *e = beside;
    for (intptr_t k = 0; k < n; k++) {
        CG_T *a = (CG_T *)matrix + k * ld + k, *v = a + 1, *tau = (CG_T *)factors + k, *x = tau;   /* x: before the later columns are there */
        d[k] = CG_REAL_OF(*a);
        const intptr_t below = n - k - 1;
        if (!below) return;
        const CG_T factor = CG_NAME(reflector)(below, v);
        e[k] = CG_REAL_OF(*v), a += ld + 1, *v = 1;
        if (factor != 0) {
            CG_T along = 0;
            for (intptr_t i = 0; i < below; i++) x[i] = 0;
            for (intptr_t j = 0; j < below; j++) {
                const CG_T *column = a + j * ld;
                CG_T sum = CG_REAL_OF(column[j]) * v[j];
                for (intptr_t i = j + 1; i < below; i++) x[i] += column[i] * v[j], sum += CG_CONJ(column[i]) * v[i];
                x[j] += sum;
            }
            for (intptr_t i = 0; i < below; i++) x[i] *= factor, along += CG_CONJ(x[i]) * v[i];
            along *= factor / 2;
            for (intptr_t i = 0; i < below; i++) x[i] -= along * v[i];
            for (intptr_t j = 0; j < below; j++)
                for (intptr_t i = j; i < below; i++) a[i + j * ld] -= v[i] * CG_CONJ(x[j]) + x[i] * CG_CONJ(v[j]);
        }
        *tau = factor;
    }
}

/* Make a matrix B = Q^H A P bidiagonal, as LAPACK's gebd2 of no more columns than rows: d and e are its diagonals, Q the product of the
 * reflectors in the matrix, and the conjugate of P is made of those in `rows`, dense columns, below the diagonal.
 */
static void CG_NAME(bidiagonal)(intptr_t m, intptr_t n, void *matrix, intptr_t ld, void *factors, void *rows, void *row_factors,
                                void *diagonal, void *beside)
{
    CG_REAL *d = diagonal, *e = beside;
    for (intptr_t k = 0; k < n; k++) {
        CG_T *a = (CG_T *)matrix + k * ld + k, *v = (CG_T *)rows + k * n + k + 1, *tau = (CG_T *)row_factors + k;
        const intptr_t right = n - k - 1;
        const CG_T factor = ((CG_T *)factors)[k] = CG_NAME(reflector)(m - k, a);
        d[k] = CG_REAL_OF(*a);
        CG_NAME(reflect)(m - k, a, CG_CONJ(factor), right, a + ld, ld);
        if (!right) return;
        for (intptr_t j = 0; j < right; j++) v[j] = a[(j + 1) * ld];
        *tau = CG_NAME(reflector)(right, v);
        e[k] = CG_REAL_OF(*v), *v = 1;
        for (intptr_t i = 1; i < m - k; i++) {
            CG_T sum = 0;
            for (intptr_t j = 0; j < right; j++) sum += a[i + (j + 1) * ld] * CG_CONJ(v[j]);
            sum *= CG_CONJ(*tau);
            for (intptr_t j = 0; j < right; j++) a[i + (j + 1) * ld] -= sum * v[j];
        }
    }
}

/* Begin with a real matrix of n x n, whose strides are given, in the corner of an identity. */
static void CG_NAME(enlarge)(intptr_t m, intptr_t columns, void *matrix, intptr_t ld, intptr_t n, const void *corner, intptr_t down)
{
    const CG_REAL *x = corner;
    for (intptr_t j = 0; j < columns; j++)
        for (intptr_t i = 0; i < m; i++) CG_AT((CG_T *)matrix, ld, i, j) = (CG_REAL)(i < n && j < n ? x[i * down + j * n] : i == j);
}

#include "banded_template.h"

static const cg_algorithms CG_NAME(algorithms) = {CG_ALGORITHMS(CG_FUNCTION_OF)};

#if !CG_HAS_IMAGINARY
#include "iterations.h"
#endif

#undef CG_T
#undef CG_REAL
#undef CG_NAME
#undef CG_SQRT
#undef CG_HAS_IMAGINARY
#undef CG_REAL_OF
#undef CG_CONJ
#undef CG_SIZE_OF
#undef CG_ABSOLUTE
#undef CG_QUOTIENT
#undef CG_SCALED
#undef CG_AT
