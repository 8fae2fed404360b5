/* Factorisations, recursive over products of blocks (Toledo 1997), and triangular solutions, for numbers of CG_T.
 *
 * A product is computed tile by tile, as in Goto and van de Geijn 2008: the sums of CG_ROWS x CG_COLUMNS elements stay in registers. For
 * that the left matrix is packed into panels of CG_ROWS rows, column after column, of which the last has fewer whole vectors, and
 * CG_COLUMNS columns of the right one are copied, CG_HEIGHT apart. Padding is 0, and its results are not read.
 */
#define CG_LANES ((intptr_t)(CG_VECTOR_BYTES / sizeof(CG_T)))
#define CG_ROWS (3 * CG_LANES)
#define CG_INLINED static inline __attribute__((always_inline))
#define CG_CALLED static __attribute__((noinline, noclone))   /* there is one of it, since calls take no time */
#define CG_VECTOR CG_NAME(vector)
#define CG_MASK CG_NAME(mask)
#define CG_JOB CG_NAME(job)
#define CG_THIN CG_NAME(thin)
#define CG_CLASSES ((int)(64 / sizeof(CG_T)))   /* at each level */
#define CG_CLASS_VECTORS (64 / CG_VECTOR_BYTES)
typedef CG_T CG_VECTOR __attribute__((vector_size(CG_VECTOR_BYTES), aligned(sizeof(CG_T)), may_alias));
typedef CG_BITS CG_MASK __attribute__((vector_size(CG_VECTOR_BYTES), aligned(sizeof(CG_T)), may_alias));
#ifdef __clang__
#define CG_LANE(x, lane) ((CG_VECTOR){0} + (x)[lane])
#define CG_SHUFFLE(x, lanes) CG_NAME(shuffled)(x, lanes)
CG_INLINED CG_VECTOR CG_NAME(shuffled)(CG_VECTOR x, CG_MASK lanes)
{
    CG_VECTOR y;
    for (int lane = 0; lane < CG_LANES; lane++) y[lane] = x[lanes[lane]];
    return y;
}
#else
#define CG_SHUFFLE(x, lanes) __builtin_shuffle(x, lanes)
#define CG_LANE(x, lane) __builtin_shuffle(x, (CG_MASK){0} + (lane))
#endif

/* ----- Products ----- */
/* c += factor a b, or, where it `begins`, c = a b, for `vectors` vectors of packed rows and CG_COLUMNS columns. */
CG_INLINED void CG_NAME(tile)(int vectors, intptr_t k, const CG_T *restrict a, const CG_T *restrict b, intptr_t down, intptr_t right,
                              CG_T factor, int begins, CG_T *restrict c, intptr_t ld)
{
    CG_VECTOR sums[CG_COLUMNS][3];
#pragma GCC unroll 8
    for (int j = 0; j < CG_COLUMNS; j++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) sums[j][v] = (CG_VECTOR){0};
    for (intptr_t p = 0; p < k; p++, a += vectors * CG_LANES, b += down) {
#pragma GCC unroll 8
        for (int j = 0; j < CG_COLUMNS; j++) {
            const CG_VECTOR number = b[j * right] - (CG_VECTOR){0};
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++) sums[j][v] += ((const CG_VECTOR *)a)[v] * number;
        }
    }
    const CG_MASK old = (CG_MASK){0} - (CG_BITS)!begins;    /* masked lanes may be anything, NaN too */
#pragma GCC unroll 8
    for (int j = 0; j < CG_COLUMNS; j++, c += ld)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            ((CG_VECTOR *)c)[v] = (CG_VECTOR)(((CG_MASK *)c)[v] & old) + sums[j][v] * factor;
}

typedef void CG_NAME(tile_function)(intptr_t k, const CG_T *a, const CG_T *b, intptr_t down, intptr_t right, CG_T factor, int begins,
                                    CG_T *c, intptr_t ld);
#define CG_TILE(name, vectors)                                                                                                     \
    CG_CALLED void name(intptr_t k, const CG_T *a, const CG_T *b, intptr_t down, intptr_t right, CG_T factor, int begins, CG_T *c, \
                        intptr_t ld)                                                                                               \
    {                                                                                                                              \
        CG_NAME(tile)(vectors, k, a, b, down, right, factor, begins, c, ld);                                                       \
    }
CG_TILE(CG_NAME(tile_1), 1)
CG_TILE(CG_NAME(tile_2), 2)
CG_TILE(CG_NAME(tile_3), 3)
#undef CG_TILE
static CG_NAME(tile_function) *const CG_NAME(tiles)[] = {NULL, CG_NAME(tile_1), CG_NAME(tile_2), CG_NAME(tile_3)};

/* The rows of a panel of so many, padded. */
static inline intptr_t CG_NAME(padded)(intptr_t rows)
{
    return rows >= CG_ROWS ? CG_ROWS : (rows + CG_LANES - 1) / CG_LANES * CG_LANES;
}

/* The columns of a product, where they do not follow each other: of four vectors two and two are quicker than three and one. */
static inline intptr_t CG_NAME(evened)(intptr_t rows)
{
    return rows == CG_ROWS + CG_LANES ? 2 * CG_LANES : CG_NAME(padded)(rows);
}

/* Pack a panel of k columns; return where the next one begins. */
CG_VECTORISED CG_T *CG_NAME(pack)(intptr_t rows, intptr_t k, CG_T *restrict y, const CG_T *restrict a, intptr_t down, intptr_t right)
{
    const intptr_t height = CG_NAME(padded)(rows);
    if (rows < height) memset(y, 0, height * k * sizeof(CG_T));
    else rows = height;
    if (down == 1 && rows == CG_ROWS)
        for (intptr_t p = 0; p < k; p++)
            for (intptr_t i = 0; i < CG_ROWS; i++) y[i + p * CG_ROWS] = a[i + p * right];
    else {
        intptr_t i = 0;
        for (; i + 4 <= rows; i += 4)
#pragma GCC unroll 1
            for (intptr_t p = 0; p < k; p++)
#pragma GCC unroll 4
                for (int r = 0; r < 4; r++) y[i + r + p * height] = a[(i + r) * down + p * right];
        for (; i < rows; i++)
            for (intptr_t p = 0; p < k; p++) y[i + p * height] = a[i * down + p * right];
    }
    return y + height * k;
}

CG_VECTORISED void CG_NAME(copy)(intptr_t n, CG_T *restrict y, intptr_t step_y, const CG_T *restrict x, intptr_t step)
{
    if (step == 1 && step_y == 1) memcpy(y, x, n * sizeof(CG_T));
    else if (step == -1 && step_y == 1)
        for (intptr_t i = 0; i < n; i++) y[i] = x[-i];
    else
        for (intptr_t i = 0; i < n; i++) y[i * step_y] = x[i * step];
}

/* Copy n rows of CG_COLUMNS columns that lie side by side in one of both. */
CG_CALLED void CG_NAME(copy_rows)(intptr_t n, CG_T *restrict y, intptr_t y_down, intptr_t y_right, const CG_T *restrict x, intptr_t down,
                                  intptr_t right)
{
    for (intptr_t i = 0; i < n; i++, y += y_down, x += down)
#pragma GCC unroll 8
        for (int c = 0; c < CG_COLUMNS; c++) y[c * y_right] = x[c * right];
}

/* The data that threads share. Of products c -= a b: the sizes, packed rows of a, b and c. Of solutions: the sizes of x, the packed triangle, x. */
typedef struct {
    intptr_t m, n, k, down, right, ld, above;
    const CG_T *packed, *other;
    CG_T *result;
    CG_T factor;
    int triangular, begins;
} CG_JOB;

/* Copy columns from the j-th on, padded to CG_COLUMNS and by `tail` rows. */
CG_CALLED void CG_NAME(take_columns)(const CG_JOB *job, const CG_T *from, intptr_t j, intptr_t n, intptr_t tail, CG_T *columns)
{
    const int in_rows = job->right == 1 && j + CG_COLUMNS <= job->n;
    if (in_rows) CG_NAME(copy_rows)(n, columns, 1, CG_HEIGHT, from + j, job->down, 1);
    for (intptr_t c = 0; c < CG_COLUMNS; c++, columns += CG_HEIGHT) {
        const intptr_t length = j + c < job->n ? n : 0;
        if (length && !in_rows) CG_NAME(copy)(n, columns, 1, from + (j + c) * job->right, job->down);
        memset(columns + length, 0, (n - length + tail) * sizeof(CG_T));
    }
}

/* Copy them row by row, padded to CG_COLUMNS. */
CG_CALLED void CG_NAME(take_rows)(const CG_JOB *job, const CG_T *from, intptr_t width, CG_T *rows)
{
    if (width < CG_COLUMNS) memset(rows, 0, job->k * CG_COLUMNS * sizeof(CG_T));
    for (intptr_t p = 0; p < job->k; p++, from += job->down, rows += CG_COLUMNS)
        if (width == CG_COLUMNS) memcpy(rows, from, CG_COLUMNS * sizeof(CG_T));
        else
            for (intptr_t c = 0; c < width; c++) rows[c] = from[c];
}

static void CG_NAME(multiply_panels)(const void *shared, intptr_t first, intptr_t last)
{
    const CG_JOB *const job = shared;
    const int by_rows = job->right == 1 && job->down != 1;
    const intptr_t down = by_rows ? CG_COLUMNS : 1, right = by_rows ? 1 : CG_HEIGHT;
    _Alignas(CG_VECTOR_ALIGNMENT) CG_T columns[CG_COLUMNS * CG_HEIGHT], partial[CG_COLUMNS * CG_ROWS];
    for (intptr_t panel = first; panel < last; panel++) {
        const intptr_t j = panel * CG_COLUMNS, width = job->n - j < CG_COLUMNS ? job->n - j : CG_COLUMNS;
        const CG_T *packed = job->packed;
        if (by_rows) CG_NAME(take_rows)(job, job->other + j, width, columns);
        else CG_NAME(take_columns)(job, job->other, j, job->k, 0, columns);
        for (intptr_t i = 0, height; i < job->m; i += height, packed += height * job->k) {
            height = CG_NAME(evened)(job->m - i);
            const intptr_t rows = job->m - i < height ? job->m - i : height;
            CG_T *const c = job->result + i + j * job->ld;
            if (job->triangular && job->above + i + rows <= j) continue;
            if (rows == height && width == CG_COLUMNS) {
                CG_NAME(tiles)[height / CG_LANES](job->k, packed, columns, down, right, job->factor, job->begins, c, job->ld);
                continue;
            }
            CG_NAME(tiles)[height / CG_LANES](job->k, packed, columns, down, right, job->factor, 1, partial, CG_ROWS);
            for (intptr_t q = 0; q < width; q++)
                for (intptr_t r = 0; r < rows; r++)
                    c[r + q * job->ld] = (job->begins ? 0 : c[r + q * job->ld]) + partial[r + q * CG_ROWS];
        }
    }
}

/* c += factor a b, or c = a b where it `begins`. One of the steps of c is 1 or -1. With `triangular`, tiles above the diagonal are left as
 * they are. */
CG_CALLED void CG_NAME(accumulate)(CG_T factor, int begins, int triangular, intptr_t m, intptr_t n, intptr_t k, const CG_T *a,
                                   intptr_t a_down, intptr_t a_right, const CG_T *b, intptr_t b_down, intptr_t b_right, CG_T *c,
                                   intptr_t c_down, intptr_t c_right, const cg_room *room)
{
    if (c_down == -1) a += (m - 1) * a_down, c += (m - 1) * c_down, a_down = -a_down, c_down = 1;
    if (c_down != 1) {
        CG_NAME(accumulate)(factor, begins, 0, n, m, k, b, b_right, b_down, a, a_right, a_down, c, c_right, c_down, room);
        return;
    }
    for (intptr_t p = 0; p < k || !p; p += CG_DEPTH)
        for (intptr_t i = 0, rows; i < m; i += rows) {
            const intptr_t depth = k - p < CG_DEPTH ? k - p : CG_DEPTH;
            CG_T *packed = room->memory;
            rows = m - i <= CG_LAST_BLOCK ? m - i : CG_BLOCK;
            for (intptr_t r = i, height; r < i + rows; r += height) {
                height = CG_NAME(evened)(i + rows - r);
                packed = CG_NAME(pack)(i + rows - r < height ? i + rows - r : height, depth, packed, a + r * a_down + p * a_right, a_down,
                                       a_right);
            }
            const CG_JOB job = {.m = rows, .n = n, .k = depth, .down = b_down, .right = b_right, .ld = c_right, .above = i,
                                .packed = room->memory, .other = b + p * b_down, .result = c + i, .factor = factor,
                                .triangular = triangular, .begins = begins && !p};
            room->share(CG_NAME(multiply_panels), &job, (n + CG_COLUMNS - 1) / CG_COLUMNS, (double)m * n * k);
        }
}

/* c -= a b */
static void CG_NAME(update)(int triangular, intptr_t m, intptr_t n, intptr_t k, const CG_T *a, intptr_t a_down, intptr_t a_right,
                            const CG_T *b, intptr_t b_down, intptr_t b_right, CG_T *c, intptr_t c_down, intptr_t c_right,
                            const cg_room *room)
{
    CG_NAME(accumulate)(-1, 0, triangular, m, n, k, a, a_down, a_right, b, b_down, b_right, c, c_down, c_right, room);
}

#include "thin_template.h"

/* c = a b */
static void CG_NAME(multiply)(intptr_t m, intptr_t n, intptr_t k, const void *a, intptr_t a_down, intptr_t a_right, const void *b,
                              intptr_t b_down, intptr_t b_right, void *c, intptr_t c_down, intptr_t c_right, const cg_room *room)
{
    if (k == 1) CG_NAME(outer)(m, n, a, a_down, b, b_right, c, c_down, c_right, room);
#if CG_VECTOR_BYTES > 16
    else if (n <= CG_FEW) CG_NAME(multiply_thin)(m, n, k, a, a_down, a_right, b, b_down, b_right, c, c_down, c_right, room);
    else if (m <= CG_FEW) CG_NAME(multiply_thin)(n, m, k, b, b_right, b_down, a, a_right, a_down, c, c_right, c_down, room);
#endif
    else CG_NAME(accumulate)(1, 1, 0, m, n, k, a, a_down, a_right, b, b_down, b_right, c, c_down, c_right, room);
}

/* ----- Triangular solutions ----- */
/* Solve with a packed triangle of CG_LANES rows, below its pivots, of which some have no inverse. */
CG_CALLED void CG_NAME(substitute_by_division)(const CG_T *triangle, const CG_T *pivots, CG_T *x)
{
    for (int lane = 0; lane < CG_LANES; lane++, triangle += CG_LANES)
#pragma GCC unroll 1
        for (int c = 0; c < CG_COLUMNS; c++) {
            CG_T *const column = x + c * CG_HEIGHT, inverse = pivots[CG_HEIGHT + lane];
            column[lane] = inverse != 0 ? column[lane] * inverse : column[lane] / pivots[lane];
#pragma GCC unroll 1
            for (int row = lane + 1; row < CG_LANES; row++) column[row] -= triangle[row] * column[lane];
        }
}

/* The same. The inverses of the pivots lie CG_HEIGHT behind them, 0 where there is none. */
CG_CALLED void CG_NAME(substitute)(const CG_T *triangle, const CG_T *pivots, CG_T *x)
{
    CG_VECTOR left[CG_COLUMNS];
    int divides = 0;
    for (int lane = 0; lane < CG_LANES; lane++) divides |= pivots[CG_HEIGHT + lane] == 0;
    if (divides) {
        CG_NAME(substitute_by_division)(triangle, pivots, x);
        return;
    }
#pragma GCC unroll 8
    for (int c = 0; c < CG_COLUMNS; c++) left[c] = *(const CG_VECTOR *)(x + c * CG_HEIGHT);
#pragma GCC unroll 1
    for (int lane = 0; lane < CG_LANES; lane++)
#pragma GCC unroll 8
        for (int c = 0; c < CG_COLUMNS; c++) {
            const CG_VECTOR value = CG_LANE(left[c], lane) * pivots[CG_HEIGHT + lane];
            left[c] -= ((const CG_VECTOR *)triangle)[lane] * value;
            x[c * CG_HEIGHT + lane] = value[0];
        }
}

/* Columns of a triangular x are 0 above the diagonal, and stay so. */
static void CG_NAME(solve_panels)(const void *shared, intptr_t first, intptr_t last)
{
    const CG_JOB *const job = shared;
    _Alignas(CG_VECTOR_ALIGNMENT) CG_T columns[CG_COLUMNS * CG_HEIGHT];
    for (intptr_t panel = first; panel < last; panel++) {
        const intptr_t j = panel * CG_COLUMNS, above = job->triangular ? j / CG_ROWS * CG_ROWS : 0;
        const CG_T *packed = job->packed, *pivots = job->other;
        CG_NAME(take_columns)(job, job->result, j, job->m, CG_LANES, columns);
        for (intptr_t i = 0, height; i < job->m; i += height) {
            height = CG_NAME(padded)(job->m - i);
            CG_T *x = columns + i;
            if (i >= above)
                CG_NAME(tiles)[height / CG_LANES](i - above, packed + above * height, columns + above, 1, CG_HEIGHT, -1, 0, x, CG_HEIGHT);
            packed += height * i;
            for (intptr_t solved = 0; solved < height; solved += CG_LANES, x += CG_LANES, pivots += CG_LANES) {
                if (i >= above && solved) CG_NAME(tile_1)(solved, packed, columns + i, 1, CG_HEIGHT, -1, 0, x, CG_HEIGHT);
                packed += solved * CG_LANES;
                if (i >= above) CG_NAME(substitute)(packed, pivots, x);
                packed += CG_LANES * CG_LANES;
            }
        }
        if (job->right == 1 && j + CG_COLUMNS <= job->n)
            CG_NAME(copy_rows)(job->m, job->result + j, job->down, 1, columns, 1, CG_HEIGHT);
        else
            for (intptr_t c = 0; c < CG_COLUMNS && j + c < job->n; c++)
                CG_NAME(copy)(job->m, job->result + (j + c) * job->right, job->down, columns + c * CG_HEIGHT, 1);
    }
}

/* Solve with a lower triangle. */
CG_CALLED void CG_NAME(solve_lower)(int unit, int triangular, intptr_t n, intptr_t k, const CG_T *a, intptr_t down, intptr_t right, CG_T *x,
                                 intptr_t x_down, intptr_t x_right, const cg_room *room)
{
    if (n > CG_DEPTH) {
        const intptr_t half = (n / 2 + CG_ROWS - 1) / CG_ROWS * CG_ROWS, known = triangular ? half : k;
        const CG_T *const below = a + half * down;
        CG_T *const rest = x + half * x_down;
        CG_NAME(solve_lower)(unit, triangular, half, known, a, down, right, x, x_down, x_right, room);
        CG_NAME(update)(0, n - half, known, half, below, down, right, x, x_down, x_right, rest, x_down, x_right, room);
        CG_NAME(solve_lower)(unit, 0, n - half, known, below + half * right, down, right, rest, x_down, x_right, room);
        if (triangular)
            CG_NAME(solve_lower)(unit, 1, n - half, k - half, below + half * right, down, right, rest + half * x_right, x_down, x_right,
                                 room);
        return;
    }
    CG_T pivots[2 * CG_HEIGHT], *packed = room->memory;
    for (intptr_t i = 0, height; i < n; i += height) {
        height = CG_NAME(padded)(n - i);
        packed = CG_NAME(pack)(n - i, i, packed, a + i * down, down, right);
        for (intptr_t v = i; v < i + height; v += CG_LANES) {
            const intptr_t rows = n - v < CG_LANES ? n - v : CG_LANES;
            CG_T *const triangle = packed + (v - i) * CG_LANES;
            packed = CG_NAME(pack)(rows, v - i + rows, packed, a + v * down + i * right, down, right);
            for (intptr_t r = 0; r < CG_LANES; r++) {
                const CG_T pivot = r < rows && !unit ? triangle[r + r * CG_LANES] : 1, inverse = 1 / pivot;
                const CG_T size = inverse < 0 ? -inverse : inverse;
                pivots[v + r] = pivot, pivots[v + r + CG_HEIGHT] = size >= CG_LEAST && size <= 1 / CG_LEAST ? inverse : 0;
                memset(triangle + r * CG_LANES, 0, (r < rows ? r + 1 : CG_LANES) * sizeof(CG_T));
            }
            packed = triangle + CG_LANES * CG_LANES;
        }
    }
    const CG_JOB job = {.m = n, .n = k, .down = x_down, .right = x_right, .packed = room->memory, .other = pivots, .result = x,
                        .triangular = triangular};
    room->share(CG_NAME(solve_panels), &job, (k + CG_COLUMNS - 1) / CG_COLUMNS, (double)n * n * k);
}

/* An upper triangle is a lower one in reverse. */
static void CG_NAME(solve)(int upper, int unit, intptr_t n, intptr_t k, const void *triangle, intptr_t down, intptr_t right, void *solved,
                           intptr_t ld, const cg_room *room)
{
    const intptr_t last = upper ? n - 1 : 0, sign = upper ? -1 : 1;
    const CG_T *const a = triangle;
    CG_NAME(solve_lower)(unit, 0, n, k, a + last * (down + right), sign * down, sign * right, (CG_T *)solved + last, sign, ld, room);
}

/* ----- Factorisations ----- */
/* The first of the largest numbers; NaN is none, but for the first number. */
static intptr_t CG_NAME(largest)(const CG_T *x, intptr_t n)
{
    const CG_BITS digits = sizeof(CG_T) == sizeof(int32_t) ? (CG_BITS)INT32_MAX : (CG_BITS)INT64_MAX;
    CG_VECTOR sizes = {0};
    CG_MASK places = {0}, here;
    CG_T size = x[0] == x[0] ? 0 : (CG_T)INFINITY;
    intptr_t best = 0, i = 0;
    for (int lane = 0; lane < CG_LANES; lane++) here[lane] = lane;
    for (; i + CG_LANES <= n; i += CG_LANES, here += (CG_BITS)CG_LANES) {
        const CG_VECTOR others = (CG_VECTOR)(*(const CG_MASK *)(x + i) & digits);
        const CG_MASK larger = others > sizes;
        sizes = (CG_VECTOR)(((CG_MASK)others & larger) | ((CG_MASK)sizes & ~larger));
        places = (here & larger) | (places & ~larger);
    }
#pragma GCC unroll 1
    for (int lane = 0; lane < CG_LANES; lane++) {   /* no branches: they cannot be predicted */
        const int better = (sizes[lane] > size) | ((sizes[lane] == size) & (places[lane] < best));
        best = better ? places[lane] : best, size = better ? sizes[lane] : size;
    }
    for (; i < n; i++) {
        const CG_T other = x[i] < 0 ? -x[i] : x[i];
        best = other > size ? i : best, size = other > size ? other : size;
    }
    return best;
}

CG_INLINED void CG_NAME(exchange)(int columns, CG_T *x, CG_T *y, intptr_t ld)
{
    for (int c = 0; c < columns; c++) {
        const CG_T swapped = x[c * ld];
        x[c * ld] = y[c * ld], y[c * ld] = swapped;
    }
}

/* Exchange the rows of x that pivots name, in order or backwards. */
CG_CALLED void CG_NAME(permute)(int backwards, intptr_t n, intptr_t k, const int32_t *pivots, void *matrix, intptr_t ld)
{
    CG_T *x = matrix;
    for (intptr_t c = 0; c < k; c += 4, x += 4 * ld)
        for (intptr_t step = 0; step < n; step++) {
            const intptr_t i = backwards ? n - 1 - step : step, row = pivots[i] - 1;
            if (row == i) continue;
            if (c + 4 <= k) CG_NAME(exchange)(4, x + i, x + row, ld);
            else CG_NAME(exchange)((int)(k - c), x + i, x + row, ld);
        }
}

/* y -= factor * x */
CG_VECTORISED void CG_NAME(subtract)(CG_T *restrict y, CG_T factor, const CG_T *restrict x, intptr_t n)
{
    for (intptr_t i = 0; i < n; i++) y[i] -= factor * x[i];
}

CG_VECTORISED void CG_NAME(divide)(CG_T *x, CG_T divisor, intptr_t n)
{
    for (intptr_t i = 0; i < n; i++) x[i] /= divisor;
}

static intptr_t CG_NAME(lu_narrow)(intptr_t m, intptr_t n, CG_T *a, intptr_t ld, int32_t *pivots)
{
    intptr_t info = 0;
    for (intptr_t j = 0; j < m && j < n; j++) {
        CG_T *const column = a + j * ld + j;
        const intptr_t row = CG_NAME(largest)(column, m - j);
        pivots[j] = (int32_t)(j + row + 1);
        if (column[row] == 0) {
            if (!info) info = j + 1;
            continue;
        }
        CG_NAME(exchange)((int)n, a + j, a + j + row, ld);
        const CG_T pivot = column[0];
        CG_NAME(divide)(column + 1, pivot, m - j - 1);
        for (intptr_t c = 1; c < n - j; c++) CG_NAME(subtract)(column + c * ld + 1, column[c * ld], column + 1, m - j - 1);
    }
    return info;
}

static intptr_t CG_NAME(lu)(intptr_t m, intptr_t n, void *matrix, intptr_t ld, int32_t *pivots, const cg_room *room)
{
    const intptr_t least = m < n ? m : n, half = (least / 2 + CG_NARROW - 1) / CG_NARROW * CG_NARROW;
    CG_T *const a = matrix, *const right = a + (n <= CG_NARROW ? n : m <= CG_NARROW ? m : half) * ld, *const rest = right + half;
    if (n <= CG_NARROW) return CG_NAME(lu_narrow)(m, n, a, ld, pivots);
    if (m <= CG_NARROW) {
        const intptr_t info = CG_NAME(lu_narrow)(m, m, a, ld, pivots);
        CG_NAME(permute)(0, m, n - m, pivots, right, ld);
        CG_NAME(solve_lower)(1, 0, m, n - m, a, 1, ld, right, 1, ld, room);
        return info;
    }
    const intptr_t info = CG_NAME(lu)(m, half, a, ld, pivots, room);
    CG_NAME(permute)(0, half, n - half, pivots, right, ld);
    CG_NAME(solve_lower)(1, 0, half, n - half, a, 1, ld, right, 1, ld, room);
    CG_NAME(update)(0, m - half, n - half, half, a + half, 1, ld, right, 1, ld, rest, 1, ld, room);
    const intptr_t later = CG_NAME(lu)(m - half, n - half, rest, ld, pivots + half, room);
    CG_NAME(permute)(0, least - half, half, pivots + half, a + half, ld);
    for (intptr_t i = half; i < least; i++) pivots[i] += (int32_t)half;
    return info ? info : later ? later + half : 0;
}

static intptr_t CG_NAME(cholesky)(intptr_t n, void *matrix, intptr_t ld, const cg_room *room)
{
    CG_T *const a = matrix;
    if (n <= CG_ROWS) {
        for (intptr_t j = 0; j < n; j++) {
            CG_T *const column = a + j * ld;
            if (!(column[j] > 0)) return j + 1;
            const CG_T pivot = column[j] = CG_SQRT(column[j]);
            CG_NAME(divide)(column + j + 1, pivot, n - j - 1);
            for (intptr_t c = j + 1; c < n; c++) CG_NAME(subtract)(a + c * ld + c, column[c], column + c, n - c);
        }
        return 0;
    }
    const intptr_t half = (n / 2 + CG_LANES - 1) / CG_LANES * CG_LANES;
    CG_T *const below = a + half, *const rest = below + half * ld;
    intptr_t info = CG_NAME(cholesky)(half, a, ld, room);
    if (info) return info;
    CG_NAME(solve_lower)(0, 0, half, n - half, a, 1, ld, below, ld, 1, room);
    CG_NAME(update)(1, n - half, n - half, half, below, 1, ld, below, ld, 1, rest, 1, ld, room);
    info = CG_NAME(cholesky)(n - half, rest, ld, room);
    return info ? info + half : 0;
}

/* U^-1 L^-1, whose columns are exchanged last: until then L^-1 is a triangle. */
static void CG_NAME(inverse)(intptr_t n, const void *lu, intptr_t down, intptr_t right, const int32_t *pivots, void *matrix, intptr_t ld,
                             const cg_room *room)
{
    CG_T *const x = matrix;
    for (intptr_t j = 0; j < n; j++) memset(x + j * ld, 0, n * sizeof(CG_T)), x[j + j * ld] = 1;
    CG_NAME(solve_lower)(1, 1, n, n, lu, down, right, x, 1, ld, room);
    CG_NAME(solve)(1, 0, n, n, lu, down, right, x, ld, room);
    for (intptr_t j = n - 1; j >= 0; j--)
        if (pivots[j] - 1 != j)
            for (intptr_t i = 0; i < n; i++) CG_NAME(exchange)(1, x + i + j * ld, x + i + (pivots[j] - 1) * ld, 0);
}

#include "reflections_template.h"
#include "reductions_template.h"

static const cg_blocked CG_NAME(algorithms) = {CG_NAME(cholesky), CG_NAME(lu), CG_NAME(solve), CG_NAME(inverse), CG_NAME(permute),
                                               CG_NAME(qr), CG_NAME(product), CG_NAME(reflect_all), CG_NAME(tridiagonal), CG_NAME(bidiagonal),
                                               CG_NAME(multiply), &CG_NAME(small_products), CG_SLOWER_UNTIL, CG_QUICKER_UNTIL, CG_THIN_FROM, CG_SHARE};

#undef CG_T
#undef CG_BITS
#undef CG_LEAST
#undef CG_DIGIT
#undef CG_SQRT
#undef CG_NAME
#undef CG_LANES
#undef CG_ROWS
#undef CG_INLINED
#undef CG_CALLED
#undef CG_VECTOR
#undef CG_MASK
#undef CG_JOB
#undef CG_THIN
#undef CG_CLASSES
#undef CG_CLASS_VECTORS
#undef CG_SHUFFLE
#undef CG_LANE
