/* The tables that the generated files define, one of each per instruction-set level.
 *
 * A loop takes pointers (inputs, then the output), the strides of the inputs (item size, or 0 for a scalar), a length and
 * the parameters of the row in the type it computes in. Scalars: one of two inputs of a loop that is not blocked.
 */
#ifndef CG_KERNELS_H
#define CG_KERNELS_H
#include <stdint.h>
#include "cursor.h"
#include "generated/dtypes.h"

#define CG_REDUCTION_BLOCK 4096 /* elements of a dense block of a reduction */
#define CG_REDUCTION_STRIP 512  /* neighbouring outputs that one task reduces, at most */
#define CG_REDUCTION_LONG 1024  /* elements of a dense row from which on it has the most lanes */
#define CG_REDUCTION_SHORTEST 4 /* elements of rows, one after the other, that vectors reduce together */
#define CG_REDUCTION_SHORT 64   /* elements up to which a reduction has few lanes, at every layout */
#define CG_ROW_AHEAD 4096       /* bytes from the operands that rows of tiles read to those they prefetch: more would leave the first-level cache again */

/* Bytes of a block of complex numbers, on every level; loops may run over the end by less. */
#define CG_COMPLEX_BLOCK 64
static inline int cg_block_bytes(int dtype, int vector_bytes) { return cg_is_complex[dtype] ? CG_COMPLEX_BLOCK : vector_bytes; }

typedef void cg_loop_function(char *const *pointers, const intptr_t *strides, intptr_t n, const void *params);
typedef cg_loop_function *cg_loop;
typedef void cg_cast_function(char *target, intptr_t target_stride, const char *source, intptr_t source_stride, intptr_t n);
typedef cg_cast_function *cg_cast;

typedef void (*cg_copy)(char *target, const char *block, intptr_t nbytes);
typedef void (*cg_move)(cg_cursor *cursor, char *block, intptr_t n); /* the next n elements from or to a dense block */

/* a + b, a - b, a + p * b, a - p * b with a number p of the call, a * b, -a */
enum { CG_OTHER_FORM, CG_SUM, CG_DIFFERENCE, CG_SCALED_SUM, CG_SCALED_DIFFERENCE, CG_PRODUCT, CG_NEGATIVE };

typedef struct {
    const char *name;
    int inputs;
    char stored; /* of numbers that are stored only: its loops read them as they are */
    char form;
    char blocked[CG_DTYPES]; /* runs over the end in whole vectors */
    cg_loop loops[CG_DTYPES];
    cg_loop streams[CG_DTYPES]; /* of exact formulas: whole vectors only, the output aligned to one, written past the caches */
} cg_kernel;

typedef void cg_reduce_fill(char *acc, intptr_t n);                        /* start n accumulators */
/* dense rows of n elements, each into one accumulator; of numbers that are stored only: of a block each */
typedef void cg_reduce_rows(const char *x, intptr_t stride, intptr_t n, intptr_t count, char *acc);
/* the same of products, of rows of two arrays */
typedef void cg_reduce_products(const char *x, const char *other, intptr_t stride, intptr_t n, intptr_t count, char *acc);
/* short reductions of elements at any offsets, each into one accumulator; accumulators are `step` apart */
typedef void cg_reduce_columns(const char *x, intptr_t stride, const intptr_t *offsets, intptr_t n, intptr_t count, char *acc, intptr_t step);
/* rows of n elements into n accumulators */
typedef void cg_reduce_across(char *acc, const char *x, intptr_t n, intptr_t rows, intptr_t stride);
typedef cg_reduce_across cg_reduce_across_wide;
typedef int cg_reduce_finite(const char *acc, intptr_t n);
typedef void cg_reduce_combine(char *acc, const char *other, intptr_t n);  /* combine n partial results with n */
typedef void cg_reduce_finish(const char *acc, char *y, intptr_t n, double count);
typedef void cg_reduce_scan(const char *x, intptr_t x_stride, char *y, intptr_t y_stride, intptr_t n);
typedef intptr_t cg_reduce_find(const char *x, intptr_t stride, intptr_t n, const char *value);

typedef struct {
    const char *name;
    cg_reduce_fill *fill[CG_DTYPES];
    cg_reduce_rows *rows[CG_DTYPES];
    cg_reduce_products *products[CG_DTYPES];
    cg_reduce_columns *columns[CG_DTYPES];
    cg_reduce_across *across[CG_DTYPES];
    cg_reduce_across *across_wide[CG_DTYPES]; /* each element as an accumulator; NULL where `across` does that */
    cg_reduce_finite *finite[CG_DTYPES];      /* NULL alike */
    cg_reduce_combine *combine[CG_DTYPES];
    cg_reduce_finish *finish[CG_DTYPES];
    cg_reduce_scan *scan[CG_DTYPES];
    cg_reduce_find *find[CG_DTYPES];
    signed char acc_dtype[CG_DTYPES], out_dtype[CG_DTYPES];
} cg_reduction;

/* Non-temporal stores are in order for other threads only after this; on Arm the end of a region suffices. */
#ifdef __x86_64__
#include <xmmintrin.h>
static inline void cg_stream_end(void) { _mm_sfence(); }
#else
static inline void cg_stream_end(void) {}
#endif

#define CG_DECLARE_TABLES(level)                          \
    extern const cg_kernel *const cg_kernels_##level[];   \
    extern const cg_reduction cg_reductions_##level[];    \
    extern const cg_cast cg_casts_##level[CG_DTYPES][CG_DTYPES]; \
    extern const cg_copy cg_stream_copy_##level;          \
    extern const cg_move cg_gathers_##level[CG_DTYPES];   \
    extern const cg_move cg_scatters_##level[CG_DTYPES];
#endif
