/* Copies between strided arrays and dense blocks, for each size of an element (packing_template.h), and the parts they share. */
#ifndef CG_PACKING_H
#define CG_PACKING_H
#include <string.h>
#include "kernels.h"

#define CG_LONG_COPY 256 /* bytes from which memcpy is worth its call */
#define CG_LONGEST_UNIT 4096
#define CG_SHORT 8 /* elements of a row up to which the loop around it counts */
#define CG_STRIP 64 /* short rows that are crossed together */
/* A tile of a transposed array: its rows share cache lines, and are written side by side as long as prefetchers follow. */
#define CG_TILE_ROWS 8
#define CG_TILE_COLUMNS 256

/* The last step of a row that is no multiple of a step lies over the one before. */
static inline void cg_copy_row(char *to, const char *from, intptr_t nbytes) {
    if (nbytes >= CG_LONG_COPY) {
        memcpy(to, from, (size_t)nbytes);
    } else if (nbytes >= 16) {
        for (intptr_t i = 0; i < nbytes - 16; i += 16) memcpy(to + i, from + i, 16);
        memcpy(to + nbytes - 16, from + nbytes - 16, 16);
    } else if (nbytes >= 8) {
        memcpy(to, from, 8);
        memcpy(to + nbytes - 8, from + nbytes - 8, 8);
    } else if (nbytes >= 4) {
        memcpy(to, from, 4);
        memcpy(to + nbytes - 4, from + nbytes - 4, 4);
    } else {
        for (intptr_t i = 0; i < nbytes; i++) to[i] = from[i];
    }
}

/* Repeat the first `made` bytes of a block until it has `nbytes`: doubled as long as they stay in the first-level cache. */
static inline void cg_double(char *block, intptr_t filled, intptr_t nbytes) {
    intptr_t unit = filled;
    while (filled < nbytes) {
        const intptr_t step = unit < nbytes - filled ? unit : nbytes - filled;
        cg_copy_row(block + filled, block, step);
        filled += step;
        if (unit < CG_LONGEST_UNIT) unit = filled;
    }
}

#define CG_PASTE2(a, b) a##_##b
#define CG_PASTE(a, b) CG_PASTE2(a, b)
#define CG_FN(part) CG_PASTE(part, T)
#define T uint8_t
#include "packing_template.h"
#define T uint16_t
#include "packing_template.h"
#define T uint32_t
#include "packing_template.h"
#define T uint64_t
#include "packing_template.h"
typedef struct { uint64_t low, high; } uint128_t; /* aligned as its parts are: as complex numbers */
#define T uint128_t
#include "packing_template.h"
#undef CG_FN
#undef CG_PASTE
#undef CG_PASTE2
#endif
