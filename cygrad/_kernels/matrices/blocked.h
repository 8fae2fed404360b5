/* Algorithms for large matrices of real numbers, compiled for each instruction-set level (blocked_template.h).
 *
 * Matrices are dense columns, `ld` numbers apart. Pivots and `info` count from 1. The bits depend neither on the number of threads nor on
 * where a matrix lies.
 */
#ifndef CG_BLOCKED_H
#define CG_BLOCKED_H
#include "levels.h"
#include <stddef.h>
#include <stdint.h>

/* The pack size, in numbers: a block of CG_BLOCK rows, of the rest up to CG_LAST_BLOCK, and CG_DEPTH columns, or a triangle of
 * CG_DEPTH rows. */
enum { CG_BLOCK = 192, CG_LAST_BLOCK = 256, CG_DEPTH = 256, CG_PACKED = CG_LAST_BLOCK * CG_DEPTH, CG_VECTOR_ALIGNMENT = 64 };
enum { CG_REFLECTORS = 24 };    /* that are applied at once */
enum { CG_LEAST_MULTIPLIED = 8, CG_FEW = 4 };   /* rows and columns of a product; few of a thin one */

/* A part of a job: the panels of columns from the first one up to the last. */
typedef void cg_part(const void *job, intptr_t first, intptr_t last);
typedef void cg_share(cg_part *part, const void *job, intptr_t panels, double work);
typedef struct {
    void *memory;       /* CG_PACKED numbers, or as many as a matrix with 48 rows and columns more has, aligned to CG_VECTOR_ALIGNMENT */
    void *work;         /* for reflections: 2 (m + n) CG_REFLECTORS numbers */
    cg_share *share;    /* has all panels worked on, by several threads where so many multiplications are worth it */
} cg_room;

/* Loops of small products (small_products_template.h): of any, and by columns and terms of each element, less one,
 * where these have loops of their own. */
typedef void cg_product_loop(char **arguments, const intptr_t *dims, const intptr_t *strides, void *unused);
typedef struct {
    cg_product_loop *any, *few[CG_FEW][CG_FEW];
} cg_small_products;

typedef struct {
    intptr_t (*cholesky)(intptr_t n, void *a, intptr_t ld, const cg_room *room);
    intptr_t (*lu)(intptr_t m, intptr_t n, void *a, intptr_t ld, int32_t *pivots, const cg_room *room);
    /* With a triangle whose element (i, j) lies at i * down + j * right. */
    void (*solve)(int upper, int unit, intptr_t n, intptr_t k, const void *a, intptr_t down, intptr_t right, void *x, intptr_t ld,
                  const cg_room *room);
    void (*inverse)(intptr_t n, const void *lu, intptr_t down, intptr_t right, const int32_t *pivots, void *x, intptr_t ld,
                    const cg_room *room);
    void (*permute)(int backwards, intptr_t n, intptr_t k, const int32_t *pivots, void *x, intptr_t ld);
    void (*qr)(intptr_t m, intptr_t n, void *a, intptr_t ld, void *tau, const cg_room *room);
    void (*product)(intptr_t m, intptr_t n, intptr_t k, void *a, intptr_t ld, const void *tau, const cg_room *room);
    /* Apply k reflections to n columns of c, the last one first. */
    void (*reflect)(intptr_t m, intptr_t n, intptr_t k, const void *reflectors, intptr_t ld, const void *tau, void *c, intptr_t ld_c,
                    const cg_room *room);
    /* In `work` there is room for 7 columns; `ld` numbers fill vectors, and there is a column more than n. */
    void (*tridiagonal)(intptr_t n, void *a, intptr_t ld, void *tau, void *d, void *e, void *work);
    void (*bidiagonal)(intptr_t m, intptr_t n, void *a, intptr_t ld, void *tau, void *rows, void *tau_rows, void *d, void *e, void *work);
    /* c = a b; one of the steps of c is 1. */
    void (*multiply)(intptr_t m, intptr_t n, intptr_t k, const void *a, intptr_t a_down, intptr_t a_right, const void *b, intptr_t b_down,
                     intptr_t b_right, void *c, intptr_t c_down, intptr_t c_right, const cg_room *room);
    const cg_small_products *small_products;
    double slower_until, quicker_until;     /* multiplications of a product: BLAS takes as long */
    double thin_from;                       /* numbers of a matrix that is multiplied by few columns or rows, from which BLAS is slower */
    double share;                           /* multiplications that are as much worth sharing as an element of arithmetic */
} cg_blocked;

#define CG_DECLARE_BLOCKED(level) extern const cg_blocked *const cg_blocked_##level[2]; /* of float and double */
CG_FOR_LEVELS(CG_DECLARE_BLOCKED)
#endif
