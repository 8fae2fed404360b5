/* A loop over batches of matrices for each dtype, with its signature as NumPy's generalized ufuncs have one. */
#ifndef CG_MATRIX_KERNEL_H
#define CG_MATRIX_KERNEL_H
#include "../kernels.h"

typedef void (*cg_matrix_loop)(char **arguments, const intptr_t *dims, const intptr_t *strides, void *unused);
typedef struct {
    const char *name, *signature, *kinds; /* kinds: of numbers of each argument: x as of the first, r real, i int32 */
    cg_matrix_loop loops[CG_DTYPES]; /* NULL: none for that dtype */
} cg_matrix_kernel;
#endif
