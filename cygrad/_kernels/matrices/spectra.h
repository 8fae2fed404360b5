/* Loops for eigenvalues and singular values with their vectors: reductions (plain.h), iterations (iterations.h), vectors of both. */
#ifndef CG_MATRIX_SPECTRA_H
#define CG_MATRIX_SPECTRA_H

/* Write numbers of one size as numbers of another, times a power of 2, or NaN where the iteration failed. */
static void cg_write_values(intptr_t size, intptr_t n, char *y, intptr_t stride, const void *values, intptr_t itemsize, int exponent, int converged)
{
    for (intptr_t i = 0; i < n; i++, y += stride) {
        double value = cg_real_number((const char *)values + i * itemsize, itemsize);
        value = !converged ? NAN : exponent ? ldexp(value, exponent) : value;
        if (size == sizeof(float)) *(float *)y = (float)value;
        else *(double *)y = value;
    }
}

/* Reverse the order of real numbers. */
static void cg_reverse(const cg_field *f, intptr_t n, char *x)
{
    for (intptr_t i = 0; i < n / 2; i++) {
        double swapped;
        memcpy(&swapped, x + i * f->alignment, f->alignment);
        memcpy(x + i * f->alignment, x + (n - 1 - i) * f->alignment, f->alignment);
        memcpy(x + (n - 1 - i) * f->alignment, &swapped, f->alignment);
    }
}

/* Numbers from a column to the next one of a matrix that is reduced by blocks, and its columns. */
static intptr_t cg_padded(const cg_field *f, intptr_t n)
{
    const intptr_t vector = CG_VECTOR_ALIGNMENT / f->size;
    return (n + vector - 1) / vector * vector;
}

/* Of a real matrix by blocks, but for LAPACK's divide and conquer of the tridiagonal one. */
static void cg_eigh_by_blocks(const cg_field *f, const cg_blocked *blocked, cg_stedc *stedc, int upper, char **p, const intptr_t *dims,
                              const intptr_t *s)
{
    const intptr_t n = dims[1], item = f->size, sign = upper ? -1 : 1, last = upper ? n - 1 : 0, ld = cg_padded(f, n);
    const intptr_t columns = ld > 4 * CG_REFLECTORS ? ld : 4 * CG_REFLECTORS;
    const int64_t size = n, work_size = (columns + 5) * ld, integers = 5 * n + 3;
    cg_matrix vectors = cg_matrix_of(f, n, n, p[2], s[2], s[6], s[7]);
    cg_workspace space;
    if (!cg_reserve(&space, CG_ROOM(ld * (n + 1) * item + CG_VECTOR_ALIGNMENT) + CG_ROOM(work_size * item + CG_VECTOR_ALIGNMENT)
                    + 3 * CG_ROOM(n * item) + CG_ROOM(integers * sizeof(int64_t)) + cg_room_of(&vectors)
                    + cg_room_of_blocks(f, blocked, n))) return;
    char *const a = cg_take_aligned(&space, ld * (n + 1) * item), *const work = cg_take_aligned(&space, work_size * item);
    char *const tau = cg_take(&space, n * item), *const d = cg_take(&space, n * item), *const e = cg_take(&space, n * item);
    void *const wide = cg_take(&space, integers * sizeof(int64_t));
    cg_give_room(&vectors, &space);
    cg_room room = cg_take_blocks(blocked, &space);
    room.work = work;
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3)) {
        char *const v = vectors.copy ? vectors.copy : p[2];
        int64_t ld_v = vectors.ld, info = 0;
        cg_copy_matrix(item, n, n, a, item, ld * item, p[0] + last * (s[3] + s[4]), sign * s[3], sign * s[4]);
        const int exponent = f->plain->scale(1, n, n, a, ld);
        blocked->tridiagonal(n, a, ld, tau, d, e, work);
        if (upper) cg_reverse(f, n, d), cg_reverse(f, n - 1, e);
        stedc("I", &size, d, e, v, &ld_v, work, &work_size, wide, &integers, &info, 1);
        cg_note_blas();
        for (intptr_t j = 0; upper && j < n; j++) cg_reverse(f, n, v + j * ld_v * item);
        blocked->reflect(n - 1, n, n - 1, a + item, ld, tau, v + item, ld_v, &room);
        for (intptr_t j = 0; upper && j < n; j++) cg_reverse(f, n, v + j * ld_v * item);
        cg_finish(&vectors, p[2]);
        cg_write_values(item, n, p[1], s[5], d, item, exponent, (int32_t)info == 0);
    }
    cg_release(&space);
}

/* The upper triangle is the lower one of the matrix with its rows and columns in reverse. */
static void cg_eigh(const cg_field *f, int upper, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t n = dims[1], item = f->size, real = f->alignment, sign = upper ? -1 : 1, last = upper ? n - 1 : 0;
    const cg_blocked *const blocked = cg_blocked_of(f, n, CG_LARGE);
    cg_stedc *const stedc = blocked ? cg_routine(f->type, CG_STEDC, n * n) : NULL;
    if (stedc) {
        cg_eigh_by_blocks(f, blocked, stedc, upper, p, dims, s);
        return;
    }
    cg_workspace space;
    if (!cg_reserve(&space, 2 * CG_ROOM(n * n * item) + CG_ROOM(n * item) + CG_ROOM(n * n * real) + 2 * CG_ROOM(n * real))) return;
    char *const a = cg_take(&space, n * n * item), *const v = cg_take(&space, n * n * item), *const tau = cg_take(&space, n * item);
    char *const z = cg_take(&space, n * n * real), *const d = cg_take(&space, n * real), *const e = cg_take(&space, n * real);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3)) {
        cg_copy_matrix(f->size, n, n, a, item, n * item, p[0] + last * (s[3] + s[4]), sign * s[3], sign * s[4]);
        const int exponent = f->plain->scale(1, n, n, a, n);
        f->plain->tridiagonal(n, a, n, tau, d, e);
        if (upper) cg_reverse(f, n, d), cg_reverse(f, n - 1, e);
        const int converged = f->iterations->eigenvalues(n, n, d, e, z);
        f->plain->enlarge(n, n, v, n, n, z + last * real, sign);
        f->plain->apply(0, n - 1, n, n - 1, a + item, n, tau, v + item, n);
        cg_copy_matrix(f->size, n, n, p[2] + last * s[6], sign * s[6], s[7], v, item, n * item);
        cg_write_values(real, n, p[1], s[5], d, real, exponent, converged);
    }
    cg_release(&space);
}

/* Values alone, in double: LAPACK's sterf, which takes squares, loses digits where numbers are graded, most of them in float. */
static void cg_eigvalsh(const cg_field *f, int upper, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t n = dims[1], item = f->size, real = f->alignment, sign = upper ? -1 : 1, last = upper ? n - 1 : 0;
    const cg_blocked *const blocked = n <= CG_LARGEST_REDUCED ? cg_blocked_of(f, n, CG_LARGE) : NULL;
    cg_sytrd *const sytrd = n > CG_LARGE && !blocked ? cg_routine(f->type, CG_SYTRD, n * CG_WIDTH) : NULL;
    const intptr_t ld = blocked ? cg_padded(f, n) : n, numbers = blocked ? 5 * ld : sytrd ? n * CG_WIDTH : 0;
    const int64_t size = n, work_size = numbers;
    cg_workspace space;
    if (!cg_reserve(&space, CG_ROOM(ld * (n + 1) * item + CG_VECTOR_ALIGNMENT) + CG_ROOM(numbers * item + CG_VECTOR_ALIGNMENT)
                    + CG_ROOM(n * item) + 4 * CG_ROOM(n * sizeof(double)))) return;
    char *const a = cg_take_aligned(&space, ld * (n + 1) * item), *const work = cg_take_aligned(&space, numbers * item);
    char *const tau = cg_take(&space, n * item);
    void *const d = cg_take(&space, n * sizeof(double)), *const e = cg_take(&space, n * sizeof(double));
    double *const values = cg_take(&space, n * sizeof(double)), *const beside = cg_take(&space, n * sizeof(double));
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 2)) {
        int64_t info;
        cg_copy_matrix(f->size, n, n, a, item, ld * item, p[0] + last * (s[2] + s[3]), sign * s[2], sign * s[3]);
        const int exponent = f->plain->scale(1, n, n, a, ld);
        if (blocked) blocked->tridiagonal(n, a, ld, tau, d, e, work);
        else if (sytrd) sytrd("L", &size, a, &size, d, e, tau, work, &work_size, &info, 1);
        else f->plain->tridiagonal(n, a, n, tau, d, e);
        cg_write_values(sizeof(double), n, (char *)values, sizeof(double), d, real, 0, 1);
        cg_write_values(sizeof(double), n - 1, (char *)beside, sizeof(double), e, real, 0, 1);
        const int converged = iterations_float64.eigenvalues(n, 0, values, beside, values);
        cg_write_values(real, n, p[1], s[4], values, sizeof(double), exponent, converged);
    }
    cg_release(&space);
}

/* Values alone; NaN where LAPACK is not there. */
static void cg_svdvals(const cg_field *f, char **p, const intptr_t *dims, const intptr_t *s)
{
    const int wide = dims[1] < dims[2];
    const intptr_t m = wide ? dims[2] : dims[1], n = dims[3], item = f->size, ld = cg_padded(f, m);
    cg_bdsdc *const bdsdc = cg_routine(f->type, CG_BDSDC, m);
    const int64_t size = n;
    cg_workspace space;
    if (!cg_reserve(&space, CG_ROOM(ld * (n + 1) * item + CG_VECTOR_ALIGNMENT) + CG_ROOM(8 * ld * item + CG_VECTOR_ALIGNMENT)
                    + CG_ROOM(n * n * item) + 4 * CG_ROOM(n * item) + CG_ROOM(8 * n * sizeof(int64_t)))) return;
    char *const a = cg_take_aligned(&space, ld * (n + 1) * item), *const work = cg_take_aligned(&space, 8 * ld * item);
    char *const rows = cg_take(&space, n * n * item), *const tau = cg_take(&space, n * item), *const tau_rows = cg_take(&space, n * item);
    char *const d = cg_take(&space, n * item), *const e = cg_take(&space, n * item);
    void *const integers = cg_take(&space, 8 * n * sizeof(int64_t));
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 2)) {
        int64_t info = !bdsdc;
        cg_copy_matrix(item, m, n, a, item, ld * item, p[0], s[2 + wide], s[3 - wide]);
        const int exponent = f->plain->scale(0, m, n, a, ld);
        cg_blocked_algorithms[f->type]->bidiagonal(m, n, a, ld, tau, rows, tau_rows, d, e, work);
        if (bdsdc) bdsdc("U", "N", &size, d, e, NULL, &size, NULL, &size, NULL, NULL, work, integers, &info, 1, 1);
        cg_write_values(item, n, p[1], s[4], d, item, exponent, (int32_t)info == 0);
    }
    cg_release(&space);
}

/* Begin with a matrix of n x n in the corner of an identity. */
static void cg_begin_with(const cg_field *f, intptr_t m, intptr_t columns, char *y, intptr_t n, const char *corner, intptr_t down,
                          intptr_t right)
{
    f->plain->enlarge(m, columns, y, m, 0, NULL, 0);
    cg_copy_matrix(f->size, n, n, y, f->size, m * f->size, corner, down, right);
}

/* Of a real matrix by blocks, but for LAPACK's divide and conquer of the bidiagonal one. */
static void cg_svd_by_blocks(const cg_field *f, const cg_blocked *blocked, cg_bdsdc *bdsdc, int full, char **p, const intptr_t *dims,
                             const intptr_t *s)
{
    const int wide = dims[1] < dims[2];
    const intptr_t m = wide ? dims[2] : dims[1], n = dims[3], columns = full ? m : n, item = f->size, ld = cg_padded(f, m);
    const intptr_t *const of_u = s + (wide ? 9 : 6), *const of_v = s + (wide ? 6 : 9);
    const intptr_t work_size = (n + 5 > 2 * CG_REFLECTORS ? n + 5 : 2 * CG_REFLECTORS) * 4 * ld;
    const int64_t size = n;
    cg_workspace space;
    if (!cg_reserve(&space, CG_ROOM(ld * (n + 1) * item + CG_VECTOR_ALIGNMENT) + CG_ROOM(work_size * item + CG_VECTOR_ALIGNMENT)
                    + CG_ROOM(m * columns * item) + 4 * CG_ROOM(n * n * item) + 4 * CG_ROOM(n * item) + CG_ROOM(8 * n * sizeof(int64_t))
                    + cg_room_of_blocks(f, blocked, m))) return;
    char *const a = cg_take_aligned(&space, ld * (n + 1) * item), *const work = cg_take_aligned(&space, work_size * item);
    char *const u = cg_take(&space, m * columns * item), *const v = cg_take(&space, n * n * item);
    char *const rows = cg_take(&space, n * n * item), *const left = cg_take(&space, n * n * item);
    char *const right = cg_take(&space, n * n * item), *const tau = cg_take(&space, n * item), *const tau_rows = cg_take(&space, n * item);
    char *const d = cg_take(&space, n * item), *const e = cg_take(&space, n * item);
    void *const integers = cg_take(&space, 8 * n * sizeof(int64_t));
    cg_room room = cg_take_blocks(blocked, &space);
    room.work = work;
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 4)) {
        int64_t info = 0;
        cg_copy_matrix(item, m, n, a, item, ld * item, p[0], s[4 + wide], s[5 - wide]);
        const int exponent = f->plain->scale(0, m, n, a, ld);
        blocked->bidiagonal(m, n, a, ld, tau, rows, tau_rows, d, e, work);
        bdsdc(wide ? "L" : "U", "I", &size, d, e, left, &size, right, &size, NULL, NULL, work, integers, &info, 1, 1);
        cg_note_blas();
        cg_begin_with(f, m, columns, u, n, wide ? right : left, wide ? n * item : item, wide ? item : n * item);
        blocked->reflect(m, columns, n, a, ld, tau, u, m, &room);
        cg_begin_with(f, n, n, v, n, wide ? left : right, wide ? item : n * item, wide ? n * item : item);
        blocked->reflect(n - 1, n, n - 1, rows + item, n, tau_rows, v + item, n, &room);
        cg_copy_matrix(item, m, columns, p[wide ? 3 : 1], of_u[wide], of_u[1 - wide], u, item, m * item);
        cg_copy_matrix(item, n, n, p[wide ? 1 : 3], of_v[1 - wide], of_v[wide], v, item, n * item);
        cg_write_values(item, n, p[2], s[8], d, item, exponent, (int32_t)info == 0);
    }
    cg_release(&space);
}

/* A wide matrix is decomposed as the transposed of a tall one: as LAPACK does, which makes it lower bidiagonal. */
static void cg_svd(const cg_field *f, int full, char **p, const intptr_t *dims, const intptr_t *s)
{
    const int wide = dims[1] < dims[2];
    const intptr_t m = wide ? dims[2] : dims[1], n = dims[3], columns = full ? m : n, item = f->size, real = f->alignment;
    const intptr_t *const of_u = s + (wide ? 9 : 6), *const of_v = s + (wide ? 6 : 9);
    const cg_blocked *const blocked = cg_blocked_of(f, m, CG_LARGE);
    cg_bdsdc *const bdsdc = blocked ? cg_routine(f->type, CG_BDSDC, 4 * n * n) : NULL;
    if (bdsdc) {
        cg_svd_by_blocks(f, blocked, bdsdc, full, p, dims, s);
        return;
    }
    cg_workspace space;
    if (!cg_reserve(&space, CG_ROOM(m * n * item) + CG_ROOM(m * columns * item) + 2 * CG_ROOM(n * n * item) + 2 * CG_ROOM(n * item)
                    + 2 * CG_ROOM(n * n * real) + 2 * CG_ROOM(n * real) + CG_ROOM(n * sizeof(rotation_float64)))) return;
    char *const a = cg_take(&space, m * n * item), *const u = cg_take(&space, m * columns * item), *const tau = cg_take(&space, n * item);
    char *const rows = cg_take(&space, n * n * item), *const v = cg_take(&space, n * n * item), *const tau_rows = cg_take(&space, n * item);
    char *const left = cg_take(&space, n * n * real), *const right = cg_take(&space, n * n * real);
    char *const d = cg_take(&space, n * real), *const e = cg_take(&space, n * real);
    void *const room = cg_take(&space, n * sizeof(rotation_float64));
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 4)) {
        cg_copy_matrix(f->size, m, n, a, item, m * item, p[0], s[4 + wide], s[5 - wide]);
        const int exponent = f->plain->scale(0, m, n, a, m);
        f->plain->bidiagonal(m, n, a, m, tau, rows, tau_rows, d, e);
        const int converged = f->iterations->singular_values(wide, n, d, e, left, right, room);
        f->plain->enlarge(m, columns, u, m, n, wide ? right : left, 1);
        f->plain->apply(0, m, columns, n, a, m, tau, u, m);
        f->plain->enlarge(n, n, v, n, n, wide ? left : right, 1);
        f->plain->apply(0, n - 1, n, n - 1, rows + item, n, tau_rows, v + item, n);
        cg_copy_matrix(f->size, m, columns, p[wide ? 3 : 1], of_u[wide], of_u[1 - wide], u, item, m * item);
        cg_copy_matrix(f->size, n, n, p[wide ? 1 : 3], of_v[1 - wide], of_v[wide], v, item, n * item);
        cg_write_values(real, n, p[2], s[8], d, real, exponent, converged);
    }
    cg_release(&space);
}
#endif
