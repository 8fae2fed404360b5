/* Loops for triangular solutions, and for solutions and inverses by LU factors: blocked, by BLAS, or the plain way. */
#ifndef CG_MATRIX_SOLVING_H
#define CG_MATRIX_SOLVING_H

/* A triangle as BLAS takes one: in columns, or in rows, which are the columns of the transposed. Conjugates are had of rows only. */
typedef struct {
    cg_matrix matrix;
    int rows, conjugate;
    const cg_blocked *blocked;
    cg_trsm *trsm;
} cg_triangle;

static cg_triangle cg_triangle_of(const cg_field *f, intptr_t n, intptr_t k, int conjugate, const char *p, intptr_t batch, intptr_t down,
                                  intptr_t right)
{
    const cg_matrix columns = cg_matrix_of(f, n, n, p, batch, down, right), rows = cg_matrix_of(f, n, n, p, batch, right, down);
    const cg_blocked *const blocked = cg_blocked_of(f, n, CG_LARGE);
    const int turned = conjugate || (!columns.ld && rows.ld);
    return (cg_triangle){turned ? rows : columns, turned, conjugate, blocked,
                         n > CG_LARGE && !blocked ? cg_routine(f->type, CG_TRSM, n > k ? n : k) : NULL};
}

static void cg_solve(const cg_field *f, const cg_triangle *t, int upper, int unit, intptr_t k, const char *a, void *x, intptr_t ld_x,
                     const cg_room *room)
{
    const int64_t n = t->matrix.n, columns = k, ld = t->matrix.ld, ld_solved = ld_x, down = t->rows ? ld : 1, right = t->rows ? 1 : ld;
    if (t->blocked) t->blocked->solve(upper, unit, n, k, a, down, right, x, ld_x, room);
    else if (t->trsm)
        t->trsm("L", upper != t->rows ? "U" : "L", !t->rows ? "N" : t->conjugate ? "C" : "T", unit ? "U" : "N", &n, &columns, f->one, a,
                &ld, x, &ld_solved, 1, 1, 1, 1);
    else (upper ? f->plain->upper : f->plain->lower)(unit, t->conjugate, n, k, a, down, right, x, ld_x);
}

static void cg_triangular(const cg_field *f, int upper, int unit, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t n = dims[1], k = dims[2];
    cg_triangle a = cg_triangle_of(f, n, k, 0, p[0], s[0], s[3], s[4]);
    cg_matrix x = cg_matrix_of(f, n, k, p[2], s[2], s[7], s[8]);
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&a.matrix) + cg_room_of(&x) + cg_room_of_blocks(f, a.blocked, n))) return;
    cg_give_room(&a.matrix, &space);
    cg_give_room(&x, &space);
    const cg_room room = cg_take_blocks(a.blocked, &space);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3)) {
        cg_solve(f, &a, upper, unit, k, cg_read(&a.matrix, p[0]), cg_begin(&x, p[2], p[1], s[5], s[6]), x.ld, &room);
        cg_finish(&x, p[2]);
    }
    cg_release(&space);
}

/* Both factors as triangles; the adjoint's are in the same place. */
static cg_triangle cg_factors_of(const cg_field *f, intptr_t n, intptr_t k, int adjoint, const char *p, intptr_t batch, intptr_t down,
                                 intptr_t right)
{
    return adjoint ? cg_triangle_of(f, n, k, 1, p, batch, right, down) : cg_triangle_of(f, n, k, 0, p, batch, down, right);
}

static void cg_solve_by_factors(const cg_field *f, const cg_triangle *factors, int adjoint, intptr_t k, char *p, const int32_t *pivots,
                                char *x, intptr_t ld, const cg_room *room)
{
    const char *a = cg_read(&factors->matrix, p);
    const intptr_t n = factors->matrix.n, step = factors->matrix.ld;
    if (!factors->trsm && !factors->blocked) {
        f->plain->by_factors(adjoint, n, k, a, factors->rows ? step : 1, factors->rows ? 1 : step, pivots, x, ld);
        return;
    }
    void (*const permute)(int, intptr_t, intptr_t, const int32_t *, void *, intptr_t) =
        factors->blocked ? factors->blocked->permute : f->plain->permute;
    if (!adjoint) permute(0, n, k, pivots, x, ld);
    cg_solve(f, factors, 0, !adjoint, k, a, x, ld, room);   /* L, or the adjoint of U */
    cg_solve(f, factors, 1, adjoint, k, a, x, ld, room);
    if (adjoint) permute(1, n, k, pivots, x, ld);
}

static void cg_lu_solve(const cg_field *f, int adjoint, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t n = dims[1], k = dims[2];
    cg_triangle factors = cg_factors_of(f, n, k, adjoint, p[0], s[0], s[4], s[5]);
    cg_matrix x = cg_matrix_of(f, n, k, p[3], s[3], s[9], s[10]);
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factors.matrix) + cg_room_of(&x) + CG_ROOM(n * sizeof(int32_t))
                    + cg_room_of_blocks(f, factors.blocked, n))) return;
    cg_give_room(&factors.matrix, &space);
    cg_give_room(&x, &space);
    int32_t *const pivots = cg_take(&space, n * sizeof(int32_t));
    const cg_room room = cg_take_blocks(factors.blocked, &space);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 4)) {
        if (!cg_read_pivots(n, n, pivots, p[1], s[6], 0)) {
            cg_fill_with_nan(f, n, k, p[3], s[9], s[10]);
            continue;
        }
        cg_solve_by_factors(f, &factors, adjoint, k, p[0], pivots, cg_begin(&x, p[3], p[2], s[7], s[8]), x.ld, &room);
        cg_finish(&x, p[3]);
    }
    cg_release(&space);
}

static void cg_lu_inverse(const cg_field *f, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t n = dims[1];
    cg_triangle factors = cg_factors_of(f, n, n, 0, p[0], s[0], s[3], s[4]);
    cg_getri *const getri = n > CG_LARGE && !factors.blocked ? cg_routine(f->type, CG_GETRI, n * CG_WIDTH) : NULL;
    cg_matrix x = cg_matrix_of(f, n, n, p[2], s[2], s[6], s[7]);
    const size_t work_size = getri ? n * CG_WIDTH : 0;
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factors.matrix) + cg_room_of(&x) + CG_ROOM(n * sizeof(int32_t)) + CG_ROOM(n * sizeof(int64_t))
                    + CG_ROOM(work_size * f->size) + cg_room_of_blocks(f, factors.blocked, n))) return;
    cg_give_room(&factors.matrix, &space);
    cg_give_room(&x, &space);
    int32_t *const pivots = cg_take(&space, n * sizeof(int32_t));
    int64_t *const wide = cg_take(&space, n * sizeof(int64_t));
    void *const work = cg_take(&space, work_size * f->size);
    const cg_room room = cg_take_blocks(factors.blocked, &space);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3)) {
        char *const solved = x.copy ? x.copy : p[2];
        if (cg_read_pivots(n, n, pivots, p[1], s[5], 0)) {
            int64_t size = n, ld = x.ld, count = work_size, info = 1;
            if (getri) {
                cg_begin(&x, p[2], p[0], s[3], s[4]);
                getri(&size, solved, &ld, cg_lapack_pivots(n, pivots, wide), work, &count, &info);
            }
            if (factors.blocked) {
                const intptr_t step = factors.matrix.ld;
                factors.blocked->inverse(n, cg_read(&factors.matrix, p[0]), factors.rows ? step : 1, factors.rows ? 1 : step, pivots, solved,
                                         ld, &room);
            } else if ((int32_t)info) {     /* getri leaves off where a pivot is 0 */
                f->plain->identity(n, solved, x.ld);
                cg_solve_by_factors(f, &factors, 0, n, p[0], pivots, solved, x.ld, &room);
            }
        } else cg_fill_with_nan(f, n, n, solved, f->size, x.ld * f->size);
        cg_finish(&x, p[2]);
    }
    cg_release(&space);
}
#endif
