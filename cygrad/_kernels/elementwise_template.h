/* The loop of one elementwise formula for one dtype, from the macros
 *   NAME                               the function
 *   ELEMENT, RESULT                    the types of its elements and of its results
 *   COUNT                              the number of operands
 *   INPUTS(USE)                        USE(name, type, index) for each operand
 *   FIRST(USE), SECOND(USE)            the same of the operands of a formula of two
 *   NUMBER(USE)                        the same of an operand that is one number for all elements, and none of INPUTS
 *   PARAMS(USE)                        USE(name, index) for each constant of the call
 *   VALUE                              the formula, of these names
 *   WRITE                              a function that computes the first results in another way, with the same bits: their count
 * and how it runs: SERIAL, VECTORS (whole ones, over the end of the data), STREAM (past the caches), or NARROW (the name of a dtype of 16
 * bits: converted in registers, in whole vectors); otherwise a loop of elements. FETCHES: with prefetches of blocks.
 * Included once for each; not guarded on purpose.
 */
#define CG_POINTER(name, type, index) const type *p_##name = (const type *)p[index];
#define CG_PARAM(name, index) const T name = ((const T *)c)[index]; (void)name;
#define CG_FETCH_INPUT(name, type, index) CG_FETCH_BLOCK(p_##name + first);
#define CG_FETCH_INPUT_ROW(name, type, index) CG_FETCH_ROW(p_##name + first);
#define CG_POINTER_OF(name, type, index) , p_##name
#define CG_SKIP(name, type, index) p_##name += written;

#ifdef NARROW
#define CG_PASTE2(a, b) a##_##b
#define CG_PASTE(a, b) CG_PASTE2(a, b)
#define CG_VALUES(name, type, index) T v_##name[CG_VL(ELEMENT)]; CG_PASTE(widen, NARROW)(v_##name, p_##name + first);
#define CG_LOAD(name, type, index) const T name CG_UNUSED = v_##name[k];
void NAME(char *const *p, const intptr_t *s, intptr_t n, const void *c) {
    typedef RESULT T;
    ELEMENT *out = (ELEMENT *)p[COUNT];
    CG_FAR(ELEMENT, n);
    (void)s; (void)c;
    INPUTS(CG_POINTER)
    PARAMS(CG_PARAM)
    CG_VECTORS(ELEMENT, n) {
        T v_result[CG_VL(ELEMENT)];
#ifdef FETCHES
        if (CG_IS_FAR) { INPUTS(CG_FETCH_INPUT) CG_FETCH_BLOCK(out + first); }
#endif
        INPUTS(CG_VALUES)
        CG_LANE(ELEMENT) { INPUTS(CG_LOAD) v_result[k] = VALUE; }
        CG_PASTE(narrow, NARROW)(out + first, v_result);
    }
}
#undef CG_PASTE2
#undef CG_PASTE
#undef CG_VALUES

#else
#if defined(SERIAL) && COUNT == 2
#define CG_LOAD(name, type, index) const type name CG_UNUSED = p_##name[s[index] ? i : 0];
#else
#define CG_LOAD(name, type, index) const type name CG_UNUSED = p_##name[i];
#endif
#define CG_LOAD_ONE(name, type, index) const type name CG_UNUSED = *p_##name;

#ifdef FETCHES
#define CG_PREFETCH if (CG_IS_FAR) { INPUTS(CG_FETCH_INPUT) CG_FETCH_BLOCK(out + first); }
#elif defined(NUMBER)   /* tiles say by the parameters that the next operands are far */
#define CG_PREFETCH if (c) { INPUTS(CG_FETCH_INPUT_ROW) }
#else
#define CG_PREFETCH
#endif

#ifdef STREAM
#define CG_BEGIN CG_VECTORS(T, n) { CG_PREFETCH CG_VECTOR(T); CG_LANE(T) { const intptr_t i = first + k;
#define CG_END vector[k] = VALUE; } CG_STREAM_VECTOR(out + first, vector); }
#elif defined(VECTORS)
#define CG_BEGIN CG_VECTORS(T, n) { CG_PREFETCH CG_LANE(T) { const intptr_t i = first + k;
#define CG_END out[i] = VALUE; } }
#elif defined(SERIAL)
#define CG_BEGIN CG_SERIAL_LOOP(n) {
#define CG_END out[i] = VALUE; }
#else
#define CG_BEGIN CG_LOOP(T, n) {
#define CG_END out[i] = VALUE; }
#endif

#ifdef SERIAL
CG_SERIAL
#endif
void NAME(char *const *p, const intptr_t *s, intptr_t n, const void *c) {
    typedef ELEMENT T CG_UNUSED;
    RESULT *out = (RESULT *)p[COUNT];
    (void)s; (void)c;
#ifdef FETCHES
    CG_FAR(T, n);
#endif
    INPUTS(CG_POINTER)
#ifdef NUMBER
    NUMBER(CG_POINTER)
#endif
    PARAMS(CG_PARAM)
#ifdef WRITE
    const intptr_t written = WRITE(out INPUTS(CG_POINTER_OF), n);
    out += written; n -= written;
    INPUTS(CG_SKIP)
#endif
    /* A blocked loop gets no loops for scalars: gcc would hoist a function of one and call its scalar form, with other bits. */
#if COUNT == 2 && !defined(VECTORS) && !defined(SERIAL) && !defined(NUMBER)
    if (!s[0]) { FIRST(CG_LOAD_ONE) CG_BEGIN SECOND(CG_LOAD) CG_END return; }
    if (!s[1]) { SECOND(CG_LOAD_ONE) CG_BEGIN FIRST(CG_LOAD) CG_END return; }
#endif
#ifdef NUMBER
    NUMBER(CG_LOAD_ONE)
#endif
    CG_BEGIN INPUTS(CG_LOAD) CG_END
}
#undef CG_LOAD_ONE
#undef CG_PREFETCH
#undef CG_BEGIN
#undef CG_END
#endif

#undef CG_POINTER
#undef CG_PARAM
#undef CG_FETCH_INPUT
#undef CG_FETCH_INPUT_ROW
#undef CG_POINTER_OF
#undef CG_SKIP
#undef CG_LOAD
#undef NAME
#undef ELEMENT
#undef RESULT
#undef COUNT
#undef INPUTS
#undef FIRST
#undef SECOND
#undef NUMBER
#undef PARAMS
#undef VALUE
#undef WRITE
#undef SERIAL
#undef VECTORS
#undef STREAM
#undef NARROW
#undef FETCHES
