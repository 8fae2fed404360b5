/* A place in a strided array, on the way through all of its elements in row-major order. */
#ifndef CG_CURSOR_H
#define CG_CURSOR_H
#include <stdint.h>

typedef struct {
    char *address; /* of the element */
    int ndim;      /* at least 1; dims of the array that lie as one are one */
    intptr_t shape[64], strides[64], index[64];
} cg_cursor;

/* Go on by n elements of dim d, at most to its end: there the next row of an outer dim begins. */
static inline void cg_advance(cg_cursor *place, int d, intptr_t n) {
    place->index[d] += n;
    place->address += n * place->strides[d];
    for (; d > 0 && place->index[d] == place->shape[d]; d--) {
        place->address += place->strides[d - 1] - place->shape[d] * place->strides[d];
        place->index[d] = 0;
        place->index[d - 1]++;
    }
}
#endif
