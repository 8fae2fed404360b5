/* Look-up in the generated tables, by instruction-set level. */
#ifndef CG_TABLES_H
#define CG_TABLES_H
#include "kernels.h"
#include "levels.h"
#include <string.h>

CG_FOR_LEVELS(CG_DECLARE_TABLES)

static inline const cg_kernel *cg_find_kernel(int level, const char *name) {
    static const cg_kernel *const *const tables[] = CG_LEVELS(cg_kernels);
    for (const cg_kernel *const *unit = tables[level]; *unit; unit++)
        for (const cg_kernel *row = *unit; row->name; row++)
            if (!strcmp(row->name, name)) return row;
    return NULL;
}

static inline const cg_reduction *cg_find_reduction(int level, const char *name) {
    static const cg_reduction *const tables[] = CG_LEVELS(cg_reductions);
    const cg_reduction *row = tables[level];
    while (row->name && strcmp(row->name, name)) row++;
    return row->name ? row : NULL;
}

static inline cg_copy cg_find_stream_copy(int level) {
    const cg_copy copies[] = CG_LEVELS(cg_stream_copy);
    return copies[level];
}

static inline cg_move cg_find_gather(int level, int dtype) {
    static const cg_move *const tables[] = CG_LEVELS(cg_gathers);
    return tables[level][dtype];
}

static inline cg_move cg_find_scatter(int level, int dtype) {
    static const cg_move *const tables[] = CG_LEVELS(cg_scatters);
    return tables[level][dtype];
}

static inline cg_cast cg_find_cast(int level, int source, int target) {
    static const cg_cast (*const tables[])[CG_DTYPES] = CG_LEVELS(cg_casts);
    return tables[level][source][target];
}
#endif
