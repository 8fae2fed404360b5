/* Loops over batches of matrices, with the interface of NumPy's generalized ufuncs: dims are the count of matrices, then the core
 * dims as the signature first names them; strides, in bytes, from matrix to matrix, then of the core dims. No output overlaps
 * an input.
 *
 * Matrices are gathered into dense columns, in place where the output has such, and scattered again. Small ones take the plain way. Which
 * one it is depends on sizes only, so that a matrix of a batch has the bits that it has alone. Where memory is lacking they raise
 * MemoryError, as NumPy's do: callers look for an error afterwards.
 */
#ifndef CG_MATRIX_LOOPS_H
#define CG_MATRIX_LOOPS_H
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "blas_threads.h"
#include "blocked.h"
#include "kernel.h"
#include "lapack.h"

/* X(name, type, arguments): the functions of plain.h that loops call. */
#define CG_ALGORITHMS(X)                                                                                                         \
    X(cholesky, intptr_t, (intptr_t n, void *a, intptr_t ld))                                                                    \
    X(lu, intptr_t, (intptr_t m, intptr_t n, void *a, intptr_t ld, int32_t *pivots))                                             \
    X(lower, void, (int unit, int conjugate, intptr_t n, intptr_t k, const void *a, intptr_t down, intptr_t right, void *x,      \
                    intptr_t ld))                                                                                                \
    X(upper, void, (int unit, int conjugate, intptr_t n, intptr_t k, const void *a, intptr_t down, intptr_t right, void *x,      \
                    intptr_t ld))                                                                                                \
    X(permute, void, (int backwards, intptr_t n, intptr_t k, const int32_t *pivots, void *x, intptr_t ld))                       \
    X(by_factors, void, (int adjoint, intptr_t n, intptr_t k, const void *a, intptr_t down, intptr_t right,                      \
                         const int32_t *pivots, void *x, intptr_t ld))                                                           \
    X(determinant, void, (intptr_t n, const char *a, intptr_t step, const int32_t *pivots, void *result, void *logarithm))       \
    X(identity, void, (intptr_t n, void *a, intptr_t ld))                                                                        \
    X(ldl, intptr_t, (int hermitian, intptr_t n, void *a, intptr_t ld, int32_t *pivots))                                         \
    X(ldl_solve, void, (int hermitian, intptr_t n, intptr_t k, const void *a, intptr_t ld, const int32_t *pivots, void *x,       \
                        intptr_t ld_x))                                                                                          \
    X(qr, void, (intptr_t m, intptr_t n, void *a, intptr_t ld, void *tau))                                                       \
    X(product, void, (intptr_t m, intptr_t n, intptr_t k, void *a, intptr_t ld, const void *tau))                                \
    X(apply, void, (int adjoint, intptr_t m, intptr_t n, intptr_t k, const void *v, intptr_t ld, const void *tau, void *c,       \
                    intptr_t ld_c))                                                                                              \
    X(scale, int, (int lower, intptr_t m, intptr_t n, void *a, intptr_t ld))                                                     \
    X(tridiagonal, void, (intptr_t n, void *a, intptr_t ld, void *tau, void *d, void *e))                                        \
    X(bidiagonal, void, (intptr_t m, intptr_t n, void *a, intptr_t ld, void *tau, void *rows, void *tau_rows, void *d, void *e)) \
    X(enlarge, void, (intptr_t m, intptr_t columns, void *a, intptr_t ld, intptr_t n, const void *corner, intptr_t down))        \
    X(banded_lu, intptr_t, (intptr_t n, intptr_t l, intptr_t u, void *a, intptr_t ld, int32_t *pivots))                          \
    X(banded_by_factors, void, (int adjoint, intptr_t n, intptr_t l, intptr_t u, intptr_t k, const void *a, intptr_t ld,         \
                                const int32_t *pivots, void *x, intptr_t ld_x))                                                  \
    X(banded_cholesky, intptr_t, (intptr_t n, intptr_t l, void *a, intptr_t ld))                                                 \
    X(banded_by_cholesky, void, (intptr_t n, intptr_t l, intptr_t k, const void *a, intptr_t ld, void *x, intptr_t ld_x))
#define CG_FIELD_OF(name, type, arguments) type (*name) arguments;
#define CG_FUNCTION_OF(name, type, arguments) CG_NAME(name),
typedef struct {
    CG_ALGORITHMS(CG_FIELD_OF)
} cg_algorithms;
typedef struct {
    int (*eigenvalues)(intptr_t n, intptr_t rows, void *d, void *e, void *z);
    int (*singular_values)(int lower, intptr_t n, void *d, void *e, void *left, void *right, void *room);
} cg_iterations;

#define CG_SELDOM __attribute__((cold)) /* compiled to be small */
#define CG_CALLED __attribute__((noinline)) /* long, and called from several places */
#define CG_T float
#define CG_REAL float
#define CG_NAME(name) name##_float32
#define CG_SQRT sqrtf
#define CG_HAS_IMAGINARY 0
#include "plain.h"
#define CG_T double
#define CG_REAL double
#define CG_NAME(name) name##_float64
#define CG_SQRT sqrt
#define CG_HAS_IMAGINARY 0
#include "plain.h"
#define CG_T _Complex float
#define CG_REAL float
#define CG_NAME(name) name##_complex64
#define CG_SQRT sqrtf
#define CG_HAS_IMAGINARY 1
#include "plain.h"
#define CG_T _Complex double
#define CG_REAL double
#define CG_NAME(name) name##_complex128
#define CG_SQRT sqrt
#define CG_HAS_IMAGINARY 1
#include "plain.h"

typedef struct {
    int type, size, alignment;
    const cg_algorithms *plain;
    const cg_iterations *iterations;
    const void *one;
} cg_field;
static const float cg_one_float[2] = {1, 0};
static const double cg_one_double[2] = {1, 0};
#define CG_FIELD(number, name, parts, real, suffix)                                                            \
    static const cg_field cg_field_##name = {number, parts * sizeof(real), _Alignof(real), &algorithms_##name, \
                                             &iterations_##suffix, cg_one_##real};
CG_FIELD(0, float32, 1, float, float32)
CG_FIELD(1, float64, 1, double, float64)
CG_FIELD(2, complex64, 2, float, float32)
CG_FIELD(3, complex128, 2, double, float64)

/* Sizes above which LAPACK, or blocked algorithms, are quicker: these for Cholesky's factor and for QR from a larger size on. Those up to
 * which they are, for QR and for reductions. */
enum { CG_LARGE = 24, CG_LARGE_DEFINITE = 32, CG_LARGE_REFLECTED = 56, CG_LARGEST_REFLECTED = 1000, CG_LARGEST_REDUCED = 512 };
enum { CG_LARGE_BANDED = 16 }; /* diagonals below the main one */
enum { CG_WIDTH = 64 }; /* of LAPACK's blocks, at most */

/* ----- Memory ----- */
typedef struct {
    char *memory, *next;
    _Alignas(16) char own[4096];
} cg_workspace;

static int cg_reserve(cg_workspace *space, size_t bytes)
{
    space->memory = space->next = bytes <= sizeof space->own ? space->own : malloc(bytes);
    if (space->memory) return 1;
    PyGILState_STATE state = PyGILState_Ensure();
    PyErr_NoMemory();
    PyGILState_Release(state);
    return 0;
}

static void cg_release(cg_workspace *space)
{
    if (space->memory != space->own) free(space->memory);
}

#define CG_ROOM(bytes) (((size_t)(bytes) + 15) & ~(size_t)15)
static void *cg_take(cg_workspace *space, size_t bytes)
{
    char *start = space->next;
    space->next += CG_ROOM(bytes);
    return start;
}

/* The same, aligned to vectors: for that there is room of so many bytes more. */
static void *cg_take_aligned(cg_workspace *space, size_t bytes)
{
    space->next += (CG_VECTOR_ALIGNMENT - (uintptr_t)space->next % CG_VECTOR_ALIGNMENT) % CG_VECTOR_ALIGNMENT;
    return cg_take(space, bytes);
}

/* ----- Blocked algorithms ----- */
static const cg_blocked *const *const cg_blocked_levels[] = CG_LEVELS(cg_blocked);
static const cg_blocked *const *cg_blocked_algorithms;     /* of the level that runs; loops.pyx sets both */
static cg_share *cg_share_panels;

/* Those for matrices of n rows, or NULL: up to a size, and of complex numbers. */
static const cg_blocked *cg_blocked_of(const cg_field *f, intptr_t n, intptr_t without)
{
    return n > without && f->size == f->alignment ? cg_blocked_algorithms[f->type] : NULL;
}

/* Bytes for a matrix of at most so many rows and columns, aligned. */
static size_t cg_room_of_blocks(const cg_field *f, const cg_blocked *blocked, intptr_t n)
{
    const intptr_t least = n < CG_DEPTH ? (n + 48) * (n + 48) : CG_PACKED;
    return blocked ? CG_ROOM((least < CG_PACKED ? least : CG_PACKED) * f->size + CG_VECTOR_ALIGNMENT) : 0;
}

/* Bytes for a block of so many rows and columns, as it is packed. */
static size_t cg_room_of_block(const cg_field *f, intptr_t rows, intptr_t columns)
{
    const intptr_t height = rows < CG_LAST_BLOCK ? rows + CG_VECTOR_ALIGNMENT / (intptr_t)sizeof(float) : CG_LAST_BLOCK;
    return CG_ROOM(height * (columns < CG_DEPTH ? columns : CG_DEPTH) * f->size + CG_VECTOR_ALIGNMENT);
}

/* Bytes for the few columns or rows of a thin product, in order. */
static size_t cg_room_of_thin(const cg_field *f, intptr_t m, intptr_t n, intptr_t k)
{
    const intptr_t line = m < n ? n : m, columns = CG_FEW * (k + CG_VECTOR_ALIGNMENT / (intptr_t)sizeof(float));
    return CG_ROOM((k == 1 ? line : columns) * f->size + CG_VECTOR_ALIGNMENT);
}

/* The last part that is taken: its size is not known. */
static cg_room cg_take_blocks(const cg_blocked *blocked, cg_workspace *space)
{
    return (cg_room){blocked ? cg_take_aligned(space, 0) : NULL, NULL, cg_share_panels};
}

#include "columns.h"

static void cg_next_matrix(char **p, const intptr_t *strides, int count)
{
    for (int k = 0; k < count; k++) p[k] += strides[k];
}

/* ----- Pivots ----- */
/* LAPACK's integers have its width, and the width of int32 where the plain way wrote them. */
static void cg_write_pivots(intptr_t n, char *y, intptr_t stride, const void *pivots, int wide)
{
    cg_copy_vector(sizeof(int32_t), n, y, stride, pivots, wide ? sizeof(int64_t) : sizeof(int32_t));    /* the lower half comes first */
}

/* Read pivots, which users may have made up. Return whether each names a row, and, where they may, negative ones come in pairs. */
static int cg_read_pivots(intptr_t n, intptr_t rows, int32_t *pivots, const char *x, intptr_t stride, int pairs)
{
    for (intptr_t i = 0; i < n; i++) memcpy(pivots + i, x + i * stride, sizeof(int32_t));
    for (intptr_t i = 0; i < n; i++) {
        const int64_t row = pivots[i];
        if (row == 0 || row > rows || -row > rows || (row < 0 && !pairs)) return 0;
        if (row < 0 && (++i == n || pivots[i] >= 0 || pivots[i] < -rows)) return 0;
    }
    return 1;
}

/* Return pivots in LAPACK's width. */
static const void *cg_lapack_pivots(intptr_t n, const int32_t *pivots, int64_t *wide)
{
    for (intptr_t i = 0; i < n; i++) wide[i] = pivots[i];
    return cg_lapack.wide ? (const void *)wide : (const void *)pivots;
}

/* ----- Loops ----- */
static int cg_real_is_nan(const cg_field *f, const char *p)
{
    return f->alignment == sizeof(float) ? isnan(*(const float *)p) : isnan(*(const double *)p);
}

static void cg_cholesky(const cg_field *f, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t n = dims[1];
    const cg_blocked *const blocked = cg_blocked_of(f, n, CG_LARGE_DEFINITE);
    cg_potrf *const potrf = n > CG_LARGE && !blocked ? cg_routine(f->type, CG_POTRF, n) : NULL;
    cg_matrix factor = cg_matrix_of(f, n, n, p[1], s[1], s[5], s[6]);
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factor) + cg_room_of_blocks(f, blocked, n))) return;
    cg_give_room(&factor, &space);
    const cg_room room = cg_take_blocks(blocked, &space);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3)) {
        char *l = cg_begin_lower(&factor, p[1], p[0], s[3], s[4]);
        int64_t size = n, ld = factor.ld, info = 0;
        if (potrf) {
            potrf("L", &size, l, &ld, &info, 1);
            for (intptr_t j = 0; j < n && (int32_t)info == 0; j++)      /* not every LAPACK finds NaN */
                if (cg_real_is_nan(f, l + (j + j * ld) * f->size)) info = j + 1;
        } else info = blocked ? blocked->cholesky(n, l, ld, &room) : f->plain->cholesky(n, l, ld);
        cg_clear_above(&factor, l);
        cg_finish(&factor, p[1]);
        *(int32_t *)p[2] = (int32_t)info;
    }
    cg_release(&space);
}

static double cg_real_number(const char *p, intptr_t size) { return size == sizeof(float) ? *(const float *)p : *(const double *)p; }

/* Whether a pivot is too small to have an inverse: of complex numbers OpenBLAS's getrf does not divide by it. */
static int cg_has_tiny_pivot(const cg_field *f, intptr_t n, const char *lu, intptr_t ld)
{
    const double least = f->alignment == sizeof(float) ? FLT_MIN : DBL_MIN;
    int is_small = 0;
    for (intptr_t j = 0; j < n && !is_small; j++) {
        double size = 0;
        for (intptr_t part = 0; part < f->size; part += f->alignment)
            size = fmax(size, fabs(cg_real_number(lu + (j + j * ld) * f->size + part, f->alignment)));
        is_small = size > 0 && size < least;
    }
    return is_small;
}

static void cg_lu_factor(const cg_field *f, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t m = dims[1], n = dims[2], least = dims[3];
    const cg_blocked *const blocked = cg_blocked_of(f, least, CG_LARGE);
    cg_getrf *const getrf = least > CG_LARGE && !blocked ? cg_routine(f->type, CG_GETRF, m > n ? m : n) : NULL;
    cg_matrix factors = cg_matrix_of(f, m, n, p[1], s[1], s[6], s[7]);
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factors) + CG_ROOM(least * sizeof(int64_t)) + cg_room_of_blocks(f, blocked, m > n ? m : n))) return;
    cg_give_room(&factors, &space);
    void *const pivots = cg_take(&space, least * sizeof(int64_t));
    const cg_room room = cg_take_blocks(blocked, &space);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 4)) {
        char *lu = cg_begin(&factors, p[1], p[0], s[4], s[5]);
        int64_t rows = m, columns = n, ld = factors.ld, info = 0;
        if (getrf) getrf(&rows, &columns, lu, &ld, pivots, &info);
        const int is_spoilt = getrf && cg_has_tiny_pivot(f, least, lu, ld), is_ours = !getrf || is_spoilt;
        if (is_spoilt) lu = cg_begin(&factors, p[1], p[0], s[4], s[5]);
        if (is_ours) info = blocked ? blocked->lu(m, n, lu, ld, pivots, &room) : f->plain->lu(m, n, lu, ld, pivots);
        cg_finish(&factors, p[1]);
        cg_write_pivots(least, p[2], s[8], pivots, !is_ours && cg_lapack.wide);
        *(int32_t *)p[3] = (int32_t)info;
    }
    cg_release(&space);
}

#include "solving.h"
#include "banded.h"

static CG_SELDOM void cg_exchange_rows(const cg_field *f, int backwards, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t m = dims[1], n = dims[2], count = dims[3];
    cg_matrix x = cg_matrix_of(f, m, n, p[2], s[2], s[6], s[7]);
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&x) + CG_ROOM(count * sizeof(int32_t)))) return;
    cg_give_room(&x, &space);
    int32_t *const pivots = cg_take(&space, count * sizeof(int32_t));
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3)) {
        char *columns = cg_begin(&x, p[2], p[0], s[3], s[4]);
        if (cg_read_pivots(count, m, pivots, p[1], s[5], 0)) f->plain->permute(backwards, count, n, pivots, columns, x.ld);
        else cg_fill_with_nan(f, m, n, columns, f->size, x.ld * f->size);
        cg_finish(&x, p[2]);
    }
    cg_release(&space);
}

static void cg_determinant(const cg_field *f, int logarithm, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t n = dims[1], arguments = 3 + logarithm;
    cg_workspace space;
    if (!cg_reserve(&space, CG_ROOM(n * sizeof(int32_t)))) return;
    int32_t *const pivots = cg_take(&space, n * sizeof(int32_t));
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, (int)arguments)) {
        cg_copy_vector(sizeof(int32_t), n, pivots, sizeof(int32_t), p[1], s[arguments + 2]);
        f->plain->determinant(n, p[0], s[arguments] + s[arguments + 1], pivots, p[2], logarithm ? p[3] : NULL);
    }
    cg_release(&space);
}

static CG_SELDOM void cg_ldl_factor(const cg_field *f, int hermitian, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t n = dims[1];
    cg_sytrf *const sytrf = n > CG_LARGE ? cg_routine(f->type, hermitian ? CG_HETRF : CG_SYTRF, n * CG_WIDTH) : NULL;
    cg_matrix factors = cg_matrix_of(f, n, n, p[1], s[1], s[6], s[7]);
    const size_t work_size = sytrf ? n * CG_WIDTH : 0;
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factors) + CG_ROOM(n * sizeof(int64_t)) + work_size * f->size)) return;
    cg_give_room(&factors, &space);
    void *const pivots = cg_take(&space, n * sizeof(int64_t)), *const work = cg_take(&space, work_size * f->size);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 4)) {
        char *ld = cg_begin(&factors, p[1], p[0], s[4], s[5]);
        int64_t size = n, step = factors.ld, count = work_size, info = 0;
        if (sytrf) sytrf("L", &size, ld, &step, pivots, work, &count, &info, 1);
        else info = f->plain->ldl(hermitian, n, ld, factors.ld, pivots);
        cg_clear_above(&factors, ld);
        cg_finish(&factors, p[1]);
        cg_write_pivots(n, p[2], s[8], pivots, sytrf && cg_lapack.wide);
        *(int32_t *)p[3] = (int32_t)info;
    }
    cg_release(&space);
}

static CG_SELDOM void cg_ldl_solve(const cg_field *f, int hermitian, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t n = dims[1], k = dims[2];
    cg_sytrs *const sytrs = n > CG_LARGE ? cg_routine(f->type, hermitian ? CG_HETRS : CG_SYTRS, n > k ? n : k) : NULL;
    cg_matrix factors = cg_matrix_of(f, n, n, p[0], s[0], s[4], s[5]), x = cg_matrix_of(f, n, k, p[3], s[3], s[9], s[10]);
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factors) + cg_room_of(&x) + CG_ROOM(n * sizeof(int32_t)) + CG_ROOM(n * sizeof(int64_t)))) return;
    cg_give_room(&factors, &space);
    cg_give_room(&x, &space);
    int32_t *const pivots = cg_take(&space, n * sizeof(int32_t));
    int64_t *const wide = cg_take(&space, n * sizeof(int64_t));
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 4)) {
        if (!cg_read_pivots(n, n, pivots, p[1], s[6], 1)) {
            cg_fill_with_nan(f, n, k, p[3], s[9], s[10]);
            continue;
        }
        const char *a = cg_read(&factors, p[0]);
        char *solved = cg_begin(&x, p[3], p[2], s[7], s[8]);
        int64_t size = n, columns = k, ld = factors.ld, ld_x = x.ld, info = 0;
        if (sytrs) sytrs("L", &size, &columns, a, &ld, cg_lapack_pivots(n, pivots, wide), solved, &ld_x, &info, 1);
        else f->plain->ldl_solve(hermitian, n, k, a, ld, pivots, solved, x.ld);
        cg_finish(&x, p[3]);
    }
    cg_release(&space);
}

/* Those for so many reflections: where matrices leave the second-level cache, LAPACK is quicker again. */
static const cg_blocked *cg_reflecting(const cg_field *f, intptr_t count)
{
    return count <= CG_LARGEST_REFLECTED ? cg_blocked_of(f, count, CG_LARGE_REFLECTED) : NULL;
}

static void cg_qr(const cg_field *f, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t m = dims[1], n = dims[2], least = dims[3];
    const cg_blocked *const blocked = cg_reflecting(f, least);
    cg_geqrf *const geqrf = least > CG_LARGE && !blocked ? cg_routine(f->type, CG_GEQRF, m > n * CG_WIDTH ? m : n * CG_WIDTH) : NULL;
    cg_matrix factors = cg_matrix_of(f, m, n, p[1], s[1], s[5], s[6]);
    const size_t work_size = blocked ? 2 * (m + n) * CG_REFLECTORS : geqrf ? n * CG_WIDTH : 0;
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&factors) + CG_ROOM(least * f->size) + CG_ROOM(work_size * f->size)
                    + cg_room_of_blocks(f, blocked, m > n ? m : n))) return;
    cg_give_room(&factors, &space);
    void *const tau = cg_take(&space, least * f->size), *const work = cg_take(&space, work_size * f->size);
    cg_room room = cg_take_blocks(blocked, &space);
    room.work = work;
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3)) {
        char *qr = cg_begin(&factors, p[1], p[0], s[3], s[4]);
        int64_t rows = m, columns = n, ld = factors.ld, count = work_size, info = 0;
        if (blocked) blocked->qr(m, n, qr, ld, tau, &room);
        else if (geqrf) geqrf(&rows, &columns, qr, &ld, tau, work, &count, &info);
        else f->plain->qr(m, n, qr, ld, tau);
        cg_finish(&factors, p[1]);
        cg_copy_vector(f->size, least, p[2], s[7], tau, f->size);
    }
    cg_release(&space);
}

static CG_SELDOM void cg_product(const cg_field *f, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t m = dims[1], n = dims[2], k = dims[3];
    const cg_blocked *const blocked = cg_reflecting(f, k);
    cg_orgqr *const orgqr = k > CG_LARGE && !blocked ? cg_routine(f->type, CG_ORGQR, m > n * CG_WIDTH ? m : n * CG_WIDTH) : NULL;
    cg_matrix q = cg_matrix_of(f, m, n, p[2], s[2], s[6], s[7]);
    const size_t work_size = blocked ? 2 * (m + n) * CG_REFLECTORS : orgqr ? n * CG_WIDTH : 0;
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&q) + CG_ROOM(k * f->size) + CG_ROOM(work_size * f->size) + cg_room_of_blocks(f, blocked, m))) return;
    cg_give_room(&q, &space);
    void *const tau = cg_take(&space, k * f->size), *const work = cg_take(&space, work_size * f->size);
    cg_room room = cg_take_blocks(blocked, &space);
    room.work = work;
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3)) {
        char *columns = cg_begin(&q, p[2], p[0], s[3], s[4]);
        int64_t rows = m, width = n, reflectors = k, ld = q.ld, count = work_size, info = 0;
        cg_copy_vector(f->size, k, tau, f->size, p[1], s[5]);
        if (blocked) blocked->product(m, n, k, columns, ld, tau, &room);
        else if (orgqr) orgqr(&rows, &width, &reflectors, columns, &ld, tau, work, &count, &info);
        else f->plain->product(m, n, k, columns, ld, tau);
        cg_finish(&q, p[2]);
    }
    cg_release(&space);
}

static CG_SELDOM void cg_apply(const cg_field *f, int adjoint, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t m = dims[1], k = dims[2], n = dims[3];
    cg_ormqr *const ormqr = k > CG_LARGE ? cg_routine(f->type, CG_ORMQR, m > n * CG_WIDTH ? m : n * CG_WIDTH) : NULL;
    cg_matrix reflectors = cg_matrix_of(f, m, k, p[0], s[0], s[4], s[5]), product = cg_matrix_of(f, m, n, p[3], s[3], s[9], s[10]);
    const size_t work_size = ormqr ? (n + CG_WIDTH + 1) * CG_WIDTH : 0;     /* and a triangle for a block of reflectors */
    cg_workspace space;
    if (!cg_reserve(&space, cg_room_of(&reflectors) + cg_room_of(&product) + CG_ROOM(k * f->size) + work_size * f->size)) return;
    cg_give_room(&reflectors, &space);
    cg_give_room(&product, &space);
    void *const tau = cg_take(&space, k * f->size), *const work = cg_take(&space, work_size * f->size);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 4)) {
        const char *v = cg_read(&reflectors, p[0]);
        char *c = cg_begin(&product, p[3], p[2], s[7], s[8]);
        int64_t rows = m, columns = n, count = k, ld = reflectors.ld, ld_c = product.ld, room = work_size, info = 0;
        cg_copy_vector(f->size, k, tau, f->size, p[1], s[6]);
        const char *const operation = !adjoint ? "N" : f->size > f->alignment ? "C" : "T";
        if (ormqr) ormqr("L", operation, &rows, &columns, &count, v, &ld, tau, c, &ld_c, work, &room, &info, 1, 1);
        else f->plain->apply(adjoint, m, n, k, v, ld, tau, c, ld_c);
        cg_finish(&product, p[3]);
    }
    cg_release(&space);
}

#include "spectra.h"
#include "products.h"

/* ----- Tables ----- */
#define CG_LOOP(name, dtype, call)                                                                           \
    static void name##_loop_##dtype(char **p, const intptr_t *dims, const intptr_t *strides, void *unused)   \
    {                                                                                                        \
        const cg_field *const f = &cg_field_##dtype;                                                         \
        (void)unused;                                                                                        \
        call;                                                                                                \
    }
#define CG_LOOPS(name, call)                                    \
    CG_LOOP(name, float32, call) CG_LOOP(name, float64, call)   \
    CG_LOOP(name, complex64, call) CG_LOOP(name, complex128, call)
#define CG_TABLE(name)                                                                                                \
    {[CG_FLOAT32] = name##_loop_float32, [CG_FLOAT64] = name##_loop_float64, [CG_COMPLEX64] = name##_loop_complex64, \
     [CG_COMPLEX128] = name##_loop_complex128}

/* X(name, signature, kinds, call): the list of all loops. */
#define CG_MATRIX_KERNELS(X)                                                                       \
    X(cholesky, "(n,n)->(n,n),()", "xxi", cg_cholesky(f, p, dims, strides))                        \
    X(lu_factor, "(m,n)->(m,n),(p),()", "xxii", cg_lu_factor(f, p, dims, strides))                 \
    X(lu_solve, "(n,n),(n),(n,k)->(n,k)", "xixx", cg_lu_solve(f, 0, p, dims, strides))             \
    X(lu_solve_adjoint, "(n,n),(n),(n,k)->(n,k)", "xixx", cg_lu_solve(f, 1, p, dims, strides))     \
    X(lu_inverse, "(n,n),(n)->(n,n)", "xix", cg_lu_inverse(f, p, dims, strides))                   \
    X(exchange_rows, "(m,n),(p)->(m,n)", "xix", cg_exchange_rows(f, 0, p, dims, strides))          \
    X(exchange_rows_back, "(m,n),(p)->(m,n)", "xix", cg_exchange_rows(f, 1, p, dims, strides))     \
    X(determinant, "(n,n),(n)->()", "xix", cg_determinant(f, 0, p, dims, strides))                 \
    X(log_determinant, "(n,n),(n)->(),()", "xixr", cg_determinant(f, 1, p, dims, strides))         \
    X(solve_lower, "(n,n),(n,k)->(n,k)", "xxx", cg_triangular(f, 0, 0, p, dims, strides))          \
    X(solve_upper, "(n,n),(n,k)->(n,k)", "xxx", cg_triangular(f, 1, 0, p, dims, strides))          \
    X(solve_unit_lower, "(n,n),(n,k)->(n,k)", "xxx", cg_triangular(f, 0, 1, p, dims, strides))     \
    X(solve_unit_upper, "(n,n),(n,k)->(n,k)", "xxx", cg_triangular(f, 1, 1, p, dims, strides))     \
    X(ldl_factor, "(n,n)->(n,n),(n),()", "xxii", cg_ldl_factor(f, 0, p, dims, strides))            \
    X(ldl_factor_hermitian, "(n,n)->(n,n),(n),()", "xxii", cg_ldl_factor(f, 1, p, dims, strides))  \
    X(ldl_solve, "(n,n),(n),(n,k)->(n,k)", "xixx", cg_ldl_solve(f, 0, p, dims, strides))           \
    X(ldl_solve_hermitian, "(n,n),(n),(n,k)->(n,k)", "xixx", cg_ldl_solve(f, 1, p, dims, strides)) \
    X(geqrf, "(m,n)->(m,n),(p)", "xxx", cg_qr(f, p, dims, strides))                                \
    X(householder_product, "(m,n),(k)->(m,n)", "xxx", cg_product(f, p, dims, strides))             \
    X(ormqr, "(m,k),(k),(m,n)->(m,n)", "xxxx", cg_apply(f, 0, p, dims, strides))                   \
    X(ormqr_adjoint, "(m,k),(k),(m,n)->(m,n)", "xxxx", cg_apply(f, 1, p, dims, strides))           \
    X(eigh_lower, "(m,m)->(m),(m,m)", "xrx", cg_eigh(f, 0, p, dims, strides))                      \
    X(eigh_upper, "(m,m)->(m),(m,m)", "xrx", cg_eigh(f, 1, p, dims, strides))                      \
    X(eigvalsh_lower, "(m,m)->(m)", "xr", cg_eigvalsh(f, 0, p, dims, strides))                     \
    X(eigvalsh_upper, "(m,m)->(m)", "xr", cg_eigvalsh(f, 1, p, dims, strides))                     \
    X(svd, "(m,n)->(m,p),(p),(p,n)", "xxrx", cg_svd(f, 0, p, dims, strides))                       \
    X(svd_full, "(m,n)->(m,m),(p),(n,n)", "xxrx", cg_svd(f, 1, p, dims, strides))                  \
    X(banded_lu, "(b,n)->(f,n),(n),()", "xxii", cg_banded_lu(f, p, dims, strides))                 \
    X(banded_solve, "(b,n),(f,n),(n),(n,k)->(n,k)", "xxixx",                                       \
      cg_banded_solve(f, 0, p, dims, strides))                                                     \
    X(banded_solve_adjoint, "(b,n),(f,n),(n),(n,k)->(n,k)", "xxixx",                               \
      cg_banded_solve(f, 1, p, dims, strides))                                                     \
    X(banded_cholesky, "(b,n)->(b,n),()", "xxi", cg_banded_cholesky(f, p, dims, strides))          \
    X(banded_cholesky_solve, "(b,n),(n,k)->(n,k)", "xxx", cg_banded_cholesky_solve(f, p, dims, strides))

/* Of real numbers alone. */
#define CG_REAL_LOOPS(name, call) CG_LOOP(name, float32, call) CG_LOOP(name, float64, call)
#define CG_REAL_TABLE(name) {[CG_FLOAT32] = name##_loop_float32, [CG_FLOAT64] = name##_loop_float64}
CG_REAL_LOOPS(svdvals, cg_svdvals(f, p, dims, strides))
CG_REAL_LOOPS(matmul, cg_multiply(f, p, dims, strides))

#define CG_LOOPS_OF(name, signature, kinds, call) CG_LOOPS(name, call)
#define CG_ROW_OF(name, signature, kinds, call) {#name, signature, kinds, CG_TABLE(name)},
CG_MATRIX_KERNELS(CG_LOOPS_OF)
static const cg_matrix_kernel cg_matrix_kernels[] = {
    CG_MATRIX_KERNELS(CG_ROW_OF)
    {"svdvals", "(m,n)->(p)", "xx", CG_REAL_TABLE(svdvals)},
    {"matmul", "(m,k),(k,n)->(m,n)", "xxx", CG_REAL_TABLE(matmul)},
    {NULL}};
#endif
