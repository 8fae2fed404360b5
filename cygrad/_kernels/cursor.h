/* A cursor in a strided array, on the way through all of its elements in row-major order. */
#ifndef CG_CURSOR_H
#define CG_CURSOR_H
#include <stdint.h>

typedef struct {
    char *address; /* of the element */
    int ndim;      /* at least 1; dims of the array that lie as one are one */
    intptr_t shape[64], strides[64], index[64];
} cg_cursor;

/* Go on by n elements of dim d, at most to its end: there the next row of an outer dim begins. */
static inline void cg_advance(cg_cursor *cursor, int d, intptr_t n) {
    cursor->index[d] += n;
    cursor->address += n * cursor->strides[d];
    for (; d > 0 && cursor->index[d] == cursor->shape[d]; d--) {
        cursor->address += cursor->strides[d - 1] - cursor->shape[d] * cursor->strides[d];
        cursor->index[d] = 0;
        cursor->index[d - 1]++;
    }
}
#endif
