/* Look-up in the generated tables, by instruction-set level. */
#ifndef CG_TABLES_H
#define CG_TABLES_H
#include "generated/native.h"
#include "kernels.h"
#include <string.h>

#ifdef CG_NATIVE
CG_DECLARE_TABLES(native)
#define CG_LEVELS(table) {table##_native}
#elif defined(__x86_64__) && !defined(__clang__)
CG_DECLARE_TABLES(v2)
CG_DECLARE_TABLES(v3)
CG_DECLARE_TABLES(v4)
#define CG_LEVELS(table) {table##_v2, table##_v3, table##_v4}
#else
CG_DECLARE_TABLES(baseline)
#define CG_LEVELS(table) {table##_baseline}
#endif

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
