/* Copies between a strided array and a dense block, for the type T of the size of an element. Included once for each; not guarded
 * on purpose.
 *
 * The array is at a cursor, which is moved on. Rows of its innermost dim are copied by loops that lie here, since they may be as
 * short as two elements. A repeated pattern is copied once and doubled.
 */

/* Rows of one number each. Vectors that run over the end of a row are overwritten by the next. */
static inline __attribute__((always_inline)) void CG_FN(spread_vectors)(T *block, const char *array, intptr_t rows, intptr_t length,
                                                                        intptr_t outer, const int lanes) {
    const T *const end = block + rows * length;
    for (; rows > 0; rows--, block += length, array += outer) {
        const T value = *(const T *)array;
        if (end - block < length + lanes) {
            for (intptr_t i = 0; i < length; i++) block[i] = value;
            continue;
        }
        T vector[CG_VECTOR_BYTES / sizeof(T)];
        for (int k = 0; k < lanes; k++) vector[k] = value;
        for (intptr_t i = 0; i < length; i += lanes) memcpy(block + i, vector, lanes * sizeof(T));
    }
}

/* Rows of a constant length, whose numbers lie one after the other: several rows make vectors. */
#define CG_SPREAD(length)                                                           \
    _Pragma("omp simd") for (intptr_t i = 0; i < rows; i++) {                       \
        const T value = numbers[i];                                                 \
        for (int k = 0; k < length; k++) block[i * length + k] = value;             \
    }

/* Short rows by short vectors, of which fewer cross a cache line. */
static inline void CG_FN(spread)(T *block, const char *array, intptr_t rows, intptr_t length, intptr_t outer) {
    const T *const numbers = (const T *)array;
    if (sizeof(T) >= 4 && sizeof(T) <= 8 && outer == (intptr_t)sizeof(T) && length > 1 && length < 5) {
        if (length == 2) CG_SPREAD(2)
        else if (length == 3) CG_SPREAD(3)
        else CG_SPREAD(4)
        return;
    }
    enum { LANES = CG_VECTOR_BYTES / sizeof(T), HALF = LANES > 1 ? LANES / 2 : 1, QUARTER = LANES > 3 ? LANES / 4 : HALF };
    if (length <= QUARTER) CG_FN(spread_vectors)(block, array, rows, length, outer, QUARTER);
    else if (length <= HALF) CG_FN(spread_vectors)(block, array, rows, length, outer, HALF);
    else CG_FN(spread_vectors)(block, array, rows, length, outer, LANES);
}

#define CG_MOVE(element, packed) (outwards ? (void)(*(T *)(element) = (packed)) : (void)((packed) = *(const T *)(element)))

/* `step` and `outer`: bytes between the elements and the rows of the array. */
static inline __attribute__((always_inline)) void CG_FN(rows)(char *array, T *block, intptr_t rows, intptr_t length, intptr_t step,
                                                              intptr_t outer, const int outwards) {
    const intptr_t nbytes = length * (intptr_t)sizeof(T);
    if (step == (intptr_t)sizeof(T)) {
        for (; rows > 0; rows--, array += outer, block += length) {
            if (outwards) cg_copy_row(array, (const char *)block, nbytes);
            else cg_copy_row((char *)block, array, nbytes);
        }
        return;
    }
    /* In tiles, where the rows lie closer in the array than the elements do; the longer loop inside, where rows are short. */
    const int tiled = rows >= CG_SHORT / 2 && (outer < 0 ? -outer : outer) < (step < 0 ? -step : step);
    const int crossed = length < CG_SHORT && rows > length;
    const intptr_t height = crossed ? CG_STRIP : tiled ? CG_TILE_ROWS : 1, width = tiled ? CG_TILE_COLUMNS : length;
    for (intptr_t top = 0; top < rows; top += height)
        for (intptr_t left = 0; left < length; left += width) {
            char *const corner = array + top * outer + left * step;
            T *const packed = block + top * length + left;
            const intptr_t tall = rows - top < height ? rows - top : height, wide = length - left < width ? length - left : width;
            if (crossed)
                for (intptr_t i = 0; i < wide; i++)
                    for (intptr_t r = 0; r < tall; r++) CG_MOVE(corner + i * step + r * outer, packed[r * length + i]);
            else
                for (intptr_t r = 0; r < tall; r++)
                    for (intptr_t i = 0; i < wide; i++) CG_MOVE(corner + i * step + r * outer, packed[r * length + i]);
        }
}

static inline __attribute__((always_inline)) void CG_FN(move)(cg_cursor *cursor, T *block, intptr_t n, const int outwards) {
    const int last = cursor->ndim - 1;
    const intptr_t length = cursor->shape[last], step = cursor->strides[last];
    while (n > 0) {
        const intptr_t left = length - cursor->index[last];
        if (left < length || n < length || last == 0) { /* a part of a row */
            const intptr_t part = left < n ? left : n;
            if (!outwards && step == 0) CG_FN(spread)(block, cursor->address, 1, part, 0);
            else CG_FN(rows)(cursor->address, block, 1, part, step, 0, outwards);
            block += part, n -= part;
            cg_advance(cursor, last, part);
            continue;
        }
        const intptr_t outer = cursor->strides[last - 1];
        intptr_t rows = cursor->shape[last - 1] - cursor->index[last - 1];
        if (rows * length > n) rows = n / length;
        if (!outwards && outer == 0) {
            CG_FN(rows)(cursor->address, block, 1, length, step, 0, 0);
            cg_double((char *)block, length * (intptr_t)sizeof(T), rows * length * (intptr_t)sizeof(T));
        } else if (!outwards && step == 0) {
            CG_FN(spread)(block, cursor->address, rows, length, outer);
        } else {
            CG_FN(rows)(cursor->address, block, rows, length, step, outer, outwards);
        }
        block += rows * length, n -= rows * length;
        cg_advance(cursor, last - 1, rows);
    }
}

static void CG_FN(gather)(cg_cursor *cursor, char *block, intptr_t n) {
    CG_FN(move)(cursor, (T *)block, n, 0);
}

static void CG_FN(scatter)(cg_cursor *cursor, char *block, intptr_t n) {
    CG_FN(move)(cursor, (T *)block, n, 1);
}
#undef CG_MOVE
#undef CG_SPREAD
#undef T
