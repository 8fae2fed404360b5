/* Products of real matrices by blocks, with the interface of NumPy's loop of matmul. */
#ifndef CG_MATRIX_PRODUCTS_H
#define CG_MATRIX_PRODUCTS_H

static void cg_multiply(const cg_field *f, char **p, const intptr_t *dims, const intptr_t *s)
{
    const intptr_t m = dims[1], k = dims[2], n = dims[3], size = f->size;
    const cg_blocked *const blocked = cg_blocked_algorithms[f->type];
    cg_workspace space;
    const size_t block = cg_room_of_block(f, s[8] == size ? n : m, k), thin = cg_room_of_thin(f, m, n, k);
    if (!cg_reserve(&space, block > thin ? block : thin)) return;
    const cg_room room = cg_take_blocks(blocked, &space);
    for (intptr_t batch = 0; batch < dims[0]; batch++, cg_next_matrix(p, s, 3))
        blocked->multiply(m, n, k, p[0], s[3] / size, s[4] / size, p[1], s[5] / size, s[6] / size, p[2], s[7] / size, s[8] / size, &room);
    cg_release(&space);
}

/* Whether that is quicker than BLAS, which is so for products of so many multiplications that are neither rows nor columns; of one column by
 * one row, which NumPy leaves to a plain loop; and of a matrix by a few columns or rows, for which BLAS packs all of it.
 */
static int cg_multiplies_quickly(const cg_field *f, intptr_t m, intptr_t n, intptr_t k)
{
    const cg_blocked *const blocked = cg_blocked_algorithms[f->type];
    const double work = (double)m * n * k;
    const intptr_t least = m < n ? m : n, most = m < n ? n : m;
    if (k == 1) return least >= CG_LEAST_MULTIPLIED;
    if (least <= CG_FEW) return least > 1 && (double)most * k >= blocked->thin_from;
    return m >= CG_LEAST_MULTIPLIED && n >= CG_LEAST_MULTIPLIED && work > blocked->slower_until && work <= blocked->quicker_until;
}
#endif
