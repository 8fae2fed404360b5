/* Loops for factors of matrices of few diagonals, and for solutions by them: by LAPACK, or the plain way. */
#ifndef CG_MATRIX_BANDED_H
#define CG_MATRIX_BANDED_H

/* Of b diagonals, with `fill` rows before them. A size that LAPACK does not take, or a pivot that it does not divide by, is for plain.h. */
static CG_SELDOM void cg_banded_lu(const cg_field *f, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t b = dims[1], n = dims[2], rows = dims[3], l = rows - b, u = b - 1 - l;
    cg_gbtrf *const gbtrf = l > CG_LARGE_BANDED ? cg_routine(f->type, CG_GBTRF, n * rows) : NULL;
    cg_matrix factors = cg_matrix_of(f, rows, n, p[1], s[1], s[6], s[7]);
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factors) + CG_ROOM(n * sizeof(int64_t)))) return;
    cg_give_room(&factors, &space);
    void *const pivots = cg_take(&space, n * sizeof(int64_t));
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 4)) {
        char *const lu = factors.copy ? factors.copy : p[1];
        int64_t size = n, below = l, above = u, ld = factors.ld, info = 0;
        int is_ours = !gbtrf;
        for (int attempt = 0; attempt <= !!gbtrf; attempt++) {
            for (intptr_t j = 0; j < n; j++) memset(lu + j * ld * f->size, 0, l * f->size);
            cg_copy_matrix(f->size, b, n, lu + l * f->size, f->size, ld * f->size, p[0], s[4], s[5]);
            if (is_ours) info = f->plain->banded_lu(n, l, u, lu, ld, pivots);
            else gbtrf(&size, &size, &below, &above, lu, &ld, pivots, &info);
            if (is_ours || !cg_has_tiny_pivot(f, n, lu + (l + u) * f->size, ld - 1)) break;
            is_ours = 1;
        }
        cg_finish(&factors, p[1]);
        cg_write_pivots(n, p[2], s[8], pivots, !is_ours && cg_lapack.wide);
        *(int32_t *)p[3] = (int32_t)info;
    }
    cg_release(&space);
}

static CG_SELDOM void cg_banded_solve(const cg_field *f, int adjoint, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t b = dims[1], n = dims[2], rows = dims[3], k = dims[4], l = rows - b;
    cg_matrix factors = cg_matrix_of(f, rows, n, p[1], s[1], s[7], s[8]), x = cg_matrix_of(f, n, k, p[4], s[4], s[12], s[13]);
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factors) + cg_room_of(&x) + CG_ROOM(n * sizeof(int32_t)))) return;
    cg_give_room(&factors, &space);
    cg_give_room(&x, &space);
    int32_t *const pivots = cg_take(&space, n * sizeof(int32_t));
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 5)) {
        if (!cg_read_pivots(n, n, pivots, p[2], s[9], 0)) {
            cg_fill_with_nan(f, n, k, p[4], s[12], s[13]);
            continue;
        }
        f->plain->banded_by_factors(adjoint, n, l, b - 1 - l, k, cg_read(&factors, p[1]), factors.ld, pivots,
                                    cg_begin(&x, p[4], p[3], s[10], s[11]), x.ld);
        cg_finish(&x, p[4]);
    }
    cg_release(&space);
}

static CG_SELDOM void cg_banded_cholesky(const cg_field *f, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t b = dims[1], n = dims[2];
    cg_pbtrf *const pbtrf = b - 1 > CG_LARGE_BANDED ? cg_routine(f->type, CG_PBTRF, n * b) : NULL;
    cg_matrix factor = cg_matrix_of(f, b, n, p[1], s[1], s[5], s[6]);
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factor))) return;
    cg_give_room(&factor, &space);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3)) {
        char *const columns = cg_begin(&factor, p[1], p[0], s[3], s[4]);
        int64_t size = n, below = b - 1, ld = factor.ld, info = 0;
        if (pbtrf) {
            pbtrf("L", &size, &below, columns, &ld, &info, 1);
            for (intptr_t j = 0; j < n && (int32_t)info == 0; j++)      /* not every LAPACK finds NaN */
                if (cg_real_is_nan(f, columns + j * ld * f->size)) info = j + 1;
        } else info = f->plain->banded_cholesky(n, b - 1, columns, ld);
        cg_finish(&factor, p[1]);
        *(int32_t *)p[2] = (int32_t)info;
    }
    cg_release(&space);
}

static CG_SELDOM void cg_banded_cholesky_solve(const cg_field *f, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t b = dims[1], n = dims[2], k = dims[3];
    cg_matrix factor = cg_matrix_of(f, b, n, p[0], s[0], s[3], s[4]), x = cg_matrix_of(f, n, k, p[2], s[2], s[7], s[8]);
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factor) + cg_room_of(&x))) return;
    cg_give_room(&factor, &space);
    cg_give_room(&x, &space);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3)) {
        f->plain->banded_by_cholesky(n, b - 1, k, cg_read(&factor, p[0]), factor.ld, cg_begin(&x, p[2], p[1], s[5], s[6]), x.ld);
        cg_finish(&x, p[2]);
    }
    cg_release(&space);
}
#endif
