/* Matrices as dense columns: in place, or gathered into them and scattered again. Included by loops.h, behind the memory for them. */
#ifndef CG_COLUMNS_H
#define CG_COLUMNS_H

enum { CG_AT_ONCE = 8 };    /* columns that are copied together */

/* Copy a matrix of numbers of so many bytes, some columns at a time: one of both may lie dense along rows, the other along columns. */
static inline __attribute__((always_inline)) void cg_copy_numbers(const int size, intptr_t m, intptr_t n, char *restrict y, intptr_t y_down,
                                                                  intptr_t y_right, const char *restrict x, intptr_t down, intptr_t right)
{
    for (; n >= CG_AT_ONCE; n -= CG_AT_ONCE, x += CG_AT_ONCE * right, y += CG_AT_ONCE * y_right)
        for (intptr_t i = 0; i < m; i++)
#pragma GCC unroll 8
            for (int j = 0; j < CG_AT_ONCE; j++) memcpy(y + i * y_down + j * y_right, x + i * down + j * right, size);
    for (intptr_t i = 0; i < m; i++)
        for (intptr_t j = 0; j < n; j++) memcpy(y + i * y_down + j * y_right, x + i * down + j * right, size);
}

static __attribute__((noinline, noclone)) void cg_copy_matrix(int size, intptr_t m, intptr_t n, char *y, intptr_t y_down, intptr_t y_right, const char *x, intptr_t down,
                           intptr_t right)
{
    if (down == size && y_down == size && m > 16)
        for (intptr_t j = 0; j < n; j++) memcpy(y + j * y_right, x + j * right, m * size);
    else if (size == 4) cg_copy_numbers(4, m, n, y, y_down, y_right, x, down, right);
    else if (size == 8) cg_copy_numbers(8, m, n, y, y_down, y_right, x, down, right);
    else cg_copy_numbers(16, m, n, y, y_down, y_right, x, down, right);
}

/* A matrix as dense columns: in place where it has such, else in a copy. */
typedef struct {
    intptr_t m, n, size, down, right, ld;
    char *copy;
} cg_matrix;

/* `strides` are of its dims, `batch` is from matrix to matrix. */
static cg_matrix cg_matrix_of(const cg_field *f, intptr_t m, intptr_t n, const char *p, intptr_t batch, intptr_t down, intptr_t right)
{
    const intptr_t least = m > 1 ? m : 1, step = n > 1 ? right : least * f->size;
    const int dense = (m <= 1 || down == f->size) && step >= least * f->size && step % f->size == 0
                      && ((uintptr_t)p | (uintptr_t)batch) % f->alignment == 0;
    return (cg_matrix){m, n, f->size, down, right, dense ? step / f->size : 0, NULL};
}

static size_t cg_room_of(const cg_matrix *a) { return a->ld ? 0 : CG_ROOM(a->m * a->n * a->size); }

static void cg_give_room(cg_matrix *a, cg_workspace *space)
{
    if (a->ld) return;
    a->copy = cg_take(space, a->m * a->n * a->size);
    a->ld = a->m > 1 ? a->m : 1;
}

/* The columns of an input. */
static char *cg_read(const cg_matrix *a, char *p)
{
    if (!a->copy) return p;
    cg_copy_matrix(a->size, a->m, a->n, a->copy, a->size, a->ld * a->size, p, a->down, a->right);
    return a->copy;
}

/* The columns of an output, which begin as the columns of an input. */
static char *cg_begin(const cg_matrix *a, char *p, const char *input, intptr_t down, intptr_t right)
{
    char *columns = a->copy ? a->copy : p;
    cg_copy_matrix(a->size, a->m, a->n, columns, a->size, a->ld * a->size, input, down, right);
    return columns;
}

/* The same of a lower triangle: numbers above it are any. */
static char *cg_begin_lower(const cg_matrix *a, char *p, const char *input, intptr_t down, intptr_t right)
{
    char *columns = a->copy ? a->copy : p;
    for (intptr_t j = 0; j < a->n; j += CG_AT_ONCE)
        cg_copy_matrix(a->size, a->m - j, a->n - j < CG_AT_ONCE ? a->n - j : CG_AT_ONCE, columns + j * (a->ld + 1) * a->size, a->size,
                       a->ld * a->size, input + j * (down + right), down, right);
    return columns;
}

static void cg_finish(const cg_matrix *a, char *p)
{
    if (a->copy) cg_copy_matrix(a->size, a->m, a->n, p, a->down, a->right, a->copy, a->size, a->ld * a->size);
}

static void cg_copy_vector(int size, intptr_t n, void *y, intptr_t y_stride, const void *x, intptr_t stride)
{
    cg_copy_matrix(size, n, 1, y, y_stride, 0, x, stride, 0);
}

static void cg_clear_above(const cg_matrix *a, char *columns)
{
    for (intptr_t j = 1; j < a->n; j++) memset(columns + j * a->ld * a->size, 0, (j < a->m ? j : a->m) * a->size);
}

static void cg_fill_with_nan(const cg_field *f, intptr_t m, intptr_t n, char *p, intptr_t down, intptr_t right)
{
    static const float floats[2] = {NAN, NAN};
    static const double doubles[2] = {NAN, NAN};
    cg_copy_matrix(f->size, m, n, p, down, right, f->alignment == sizeof(float) ? (const char *)floats : (const char *)doubles, 0, 0);
}
#endif
