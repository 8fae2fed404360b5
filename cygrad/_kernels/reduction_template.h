/* The kernels of one reduction for one dtype, from the macros NAME, X (element), T (accumulator), Y (result), CG_ELEMENT (X to T),
 * START, STEP, COMBINE, FINISH and, where whole blocks are folded as X before they become T, BLOCK_STEP. Included once for each; not guarded on purpose.
 *
 * A dense block is folded in a fixed number of lanes and the lanes in a fixed tree, so the bits depend on the data and the
 * length alone: not on threads, position or instruction set.
 */
#define CG_PASTE2(a, b) a##_##b
#define CG_PASTE(a, b) CG_PASTE2(a, b)
#define CG_FN(part) CG_PASTE(part, NAME)

static void CG_FN(fill)(char *p, intptr_t n) {
    T *a = (T *)p;
    for (intptr_t i = 0; i < n; i++) a[i] = START;
}

static void CG_FN(combine)(char *p, const char *q, intptr_t n) {
    T *a = (T *)p;
    const T *b = (const T *)q;
    CG_LOOP(T, n) { const T acc = a[i], x = b[i]; a[i] = COMBINE; }
}

static void CG_FN(across)(char *p, const char *q, intptr_t n) {
    T *a = (T *)p;
    const X *b = (const X *)q;
    CG_LOOP(T, n) { const T acc = a[i]; const T x = CG_ELEMENT(b[i]); a[i] = STEP; }
}

/* A step of the tree that folds lanes into one; a constant length becomes vectors. */
#define CG_HALVE(a, half) \
    _Pragma("omp simd") for (int k = 0; k < half; k++) { const T acc = a[k], x = a[k + half]; a[k] = COMBINE; }

static inline __attribute__((always_inline)) void CG_FN(lanes)(const X *v, intptr_t n, T *out, const int lanes, const int ahead) {
    T a[CG_LANES];
    intptr_t start = 0;
    for (int k = 0; k < lanes; k++) a[k] = START;
    for (; start + lanes <= n; start += lanes) {
        if (ahead) CG_FETCH(v + start, lanes * (int)sizeof(X));
        _Pragma("omp simd") for (int k = 0; k < lanes; k++) { const T acc = a[k]; const T x = CG_ELEMENT(v[start + k]); a[k] = STEP; }
    }
    for (int k = 0; k < lanes && start + k < n; k++) { const T acc = a[k]; const T x = CG_ELEMENT(v[start + k]); a[k] = STEP; }
    for (int half = lanes / 2; half; half /= 2) {
        for (int k = 0; k < half; k++) { const T acc = a[k], x = a[k + half]; a[k] = COMBINE; }
    }
    *out = a[0];
}

#ifdef BLOCK_STEP
/* One of many blocks: twice the lanes of the element's own type, whose results are combined as T. Conversions would cost more
   than memory does. */
static void CG_FN(whole)(const X *v, T *out) {
    X a[2 * CG_LANES];
    T b[2 * CG_LANES];
    for (int k = 0; k < 2 * CG_LANES; k++) a[k] = START;
    for (int start = 0; start < CG_REDUCTION_BLOCK; start += 2 * CG_LANES) {
        CG_FETCH(v + start, 2 * CG_LANES * (int)sizeof(X));
        _Pragma("omp simd") for (int k = 0; k < 2 * CG_LANES; k++) { const X acc = a[k], x = v[start + k]; a[k] = BLOCK_STEP; }
    }
    _Pragma("omp simd") for (int k = 0; k < 2 * CG_LANES; k++) b[k] = a[k];
    CG_HALVE(b, 64) CG_HALVE(b, 32) CG_HALVE(b, 16) CG_HALVE(b, 8) CG_HALVE(b, 4) CG_HALVE(b, 2) CG_HALVE(b, 1)
    *out = b[0];
}
#endif

static void CG_FN(dense)(const char *p, intptr_t n, char *out) {
#ifdef BLOCK_STEP
    if (n == CG_REDUCTION_BLOCK) { CG_FN(whole)((const X *)p, (T *)out); return; }
#endif
    if (n < 2 * CG_LANES) CG_FN(lanes)((const X *)p, n, (T *)out, 4, 0);
    else if (n < CG_REDUCTION_BLOCK) CG_FN(lanes)((const X *)p, n, (T *)out, CG_LANES, 0);
    else CG_FN(lanes)((const X *)p, n, (T *)out, CG_LANES, 1);
}

static void CG_FN(finish)(const char *p, char *q, intptr_t length, double count) {
    const T *a = (const T *)p;
    const T n = (T)count;
    Y *y = (Y *)q;
    (void)n;
    for (intptr_t i = 0; i < length; i++) { const T acc = a[i]; y[i] = (Y)(FINISH); }
}

static void CG_FN(scan)(const char *p, intptr_t ps, char *q, intptr_t qs, intptr_t n) {
    T acc = START;
    for (intptr_t i = 0; i < n; i++) { const T x = CG_ELEMENT(*(const X *)(p + i * ps)); acc = STEP; *(Y *)(q + i * qs) = (Y)acc; }
}

static intptr_t CG_FN(find)(const char *p, intptr_t stride, intptr_t n, const char *q) {
    const X value = *(const X *)q;
    for (intptr_t i = 0; i < n; i++) {
        const X x = *(const X *)(p + i * stride);
        if (x == value || (x != x && value != value)) return i;
    }
    return 0;
}

#undef CG_PASTE2
#undef CG_PASTE
#undef CG_FN
#undef NAME
#undef X
#undef CG_ELEMENT
#undef T
#undef Y
#undef START
#undef STEP
#undef COMBINE
#undef FINISH
#undef BLOCK_STEP
#undef CG_HALVE
