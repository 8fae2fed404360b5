/* The routines of LAPACK that loops call, for each type of number. They are looked up when the first large matrix needs one; see loops.pyx.
 *
 * Integers are handed over as addresses of 64 bits whose upper half is zero, of which a library of 32-bit integers reads the lower half.
 */
#ifndef CG_LAPACK_H
#define CG_LAPACK_H
#include <stddef.h>
#include <stdint.h>

enum { CG_POTRF, CG_GETRF, CG_GETRI, CG_TRSM, CG_SYTRF, CG_HETRF, CG_SYTRS, CG_HETRS, CG_GEQRF, CG_ORGQR, CG_ORMQR, CG_SYTRD,
       CG_STEDC, CG_BDSDC, CG_GBTRF, CG_PBTRF, CG_ROUTINES };
static const char *const cg_routine_names[2][CG_ROUTINES] = {
    {"potrf", "getrf", "getri", "trsm", "sytrf", "sytrf", "sytrs", "sytrs", "geqrf", "orgqr", "ormqr", "sytrd", "stedc", "bdsdc",
     "gbtrf", "pbtrf"},
    {"potrf", "getrf", "getri", "trsm", "sytrf", "hetrf", "sytrs", "hetrs", "geqrf", "ungqr", "unmqr", "hetrd", "stedc", "bdsdc",
     "gbtrf", "pbtrf"}};

typedef const int64_t *cg_count;    /* Fortran's integers; lengths of letters come last */
typedef void cg_potrf(const char *triangle, cg_count n, void *a, cg_count ld, int64_t *info, size_t);
typedef void cg_getrf(cg_count m, cg_count n, void *a, cg_count ld, void *pivots, int64_t *info);
typedef void cg_getri(cg_count n, void *a, cg_count ld, const void *pivots, void *work, cg_count work_size, int64_t *info);
typedef void cg_trsm(const char *side, const char *triangle, const char *transposed, const char *diagonal, cg_count n, cg_count k,
                     const void *one, const void *a, cg_count ld, void *b, cg_count ld_b, size_t, size_t, size_t, size_t);
typedef void cg_sytrf(const char *triangle, cg_count n, void *a, cg_count ld, void *pivots, void *work, cg_count work_size, int64_t *info,
                      size_t);
typedef void cg_sytrs(const char *triangle, cg_count n, cg_count k, const void *a, cg_count ld, const void *pivots, void *b, cg_count ld_b,
                      int64_t *info, size_t);
typedef void cg_geqrf(cg_count m, cg_count n, void *a, cg_count ld, void *tau, void *work, cg_count work_size, int64_t *info);
typedef void cg_orgqr(cg_count m, cg_count n, cg_count k, void *a, cg_count ld, const void *tau, void *work, cg_count work_size,
                      int64_t *info);
typedef void cg_ormqr(const char *side, const char *transposed, cg_count m, cg_count n, cg_count k, const void *a, cg_count ld,
                      const void *tau, void *c, cg_count ld_c, void *work, cg_count work_size, int64_t *info, size_t, size_t);
typedef void cg_sytrd(const char *triangle, cg_count n, void *a, cg_count ld, void *d, void *e, void *tau, void *work, cg_count work_size,
                      int64_t *info, size_t);
typedef void cg_stedc(const char *vectors, cg_count n, void *d, void *e, void *z, cg_count ld, void *work, cg_count work_size, void *integers,
                      cg_count integer_size, int64_t *info, size_t);
typedef void cg_bdsdc(const char *triangle, const char *vectors, cg_count n, void *d, void *e, void *u, cg_count ld, void *v, cg_count ld_v,
                      void *q, void *iq, void *work, void *integers, int64_t *info, size_t, size_t);
typedef void cg_gbtrf(cg_count m, cg_count n, cg_count below, cg_count above, void *a, cg_count ld, void *pivots, int64_t *info);
typedef void cg_pbtrf(const char *triangle, cg_count n, cg_count below, void *a, cg_count ld, int64_t *info, size_t);

typedef struct {
    void *routines[4][CG_ROUTINES]; /* of s, d, c and z; NULL: not found */
    int looked_up, wide;            /* wide: its integers have 64 bits */
} cg_lapack_library;
static cg_lapack_library cg_lapack;
static void (*cg_look_up_lapack)(void);

/* A routine that takes sizes up to `largest`, or NULL. */
static void *cg_routine(int type, int routine, intptr_t largest)
{
    if (!cg_lapack.looked_up) cg_look_up_lapack();
    if (!cg_lapack.wide && (largest > INT32_MAX || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)) return NULL;
    return cg_lapack.routines[type][routine];
}
#endif
