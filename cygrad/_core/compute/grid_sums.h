/* The largest magnitudes in a run of columns, and their sums on two grids, in pairs of numbers: the widest vectors that every x86-64 has.
 * `x` is the run in the first row, `step` elements apart; grids and sums have the numbers of the coarse grid, then of the fine one. */
#ifndef CG_GRID_SUMS_H
#define CG_GRID_SUMS_H
#include <math.h>
#include <stdint.h>

enum { CG_LANES = 4 };
typedef double cg_two __attribute__((vector_size(16), aligned(8), may_alias));

static void cg_largest_of_run(const double *x, intptr_t rows, intptr_t step, double *largest)
{
    double y[CG_LANES] = {0};
    for (; rows > 0; rows--, x += step)
        for (int k = 0; k < CG_LANES; k++) y[k] = fabs(x[k]) > y[k] ? fabs(x[k]) : y[k];     /* the compiler makes vectors of it */
    for (int k = 0; k < CG_LANES; k++) largest[k] = y[k];
}

static void cg_sums_of_run(const double *x, intptr_t rows, intptr_t step, const double *grids, double *sums)
{
    const cg_two coarse0 = *(const cg_two *)grids, coarse1 = *(const cg_two *)(grids + 2);
    const cg_two fine0 = *(const cg_two *)(grids + 4), fine1 = *(const cg_two *)(grids + 6);
    cg_two y0 = {0}, y1 = {0}, z0 = {0}, z1 = {0};
    for (; rows > 0; rows--, x += step) {
        const cg_two a = *(const cg_two *)x, b = *(const cg_two *)(x + 2);
        const cg_two part0 = (a + coarse0) - coarse0, part1 = (b + coarse1) - coarse1;
        y0 += part0;
        y1 += part1;
        z0 += ((a - part0) + fine0) - fine0;
        z1 += ((b - part1) + fine1) - fine1;
    }
    *(cg_two *)sums = y0;
    *(cg_two *)(sums + 2) = y1;
    *(cg_two *)(sums + 4) = z0;
    *(cg_two *)(sums + 6) = z1;
}
#endif
