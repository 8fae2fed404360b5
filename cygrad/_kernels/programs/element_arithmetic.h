/* Arithmetic of T: of doubles, or of pairs of them (element_steps.h includes this for both). */
CG_INLINE void CG_OF_T(cg_write_result)(int kind, const char* first, const char* second, double number, char* result)
{
    T a = *(const T_IN_MEMORY*)first, value;
    switch (kind) {
    case CG_ADD:
        value = a + *(const T_IN_MEMORY*)second;
        break;
    case CG_SUBTRACT:
        value = a - *(const T_IN_MEMORY*)second;
        break;
    case CG_MULTIPLY:
        value = a * *(const T_IN_MEMORY*)second;
        break;
    case CG_NEGATE:
        value = -a;
        break;
    case CG_ADD_NUMBER:
        value = a + number;
        break;
    case CG_SUBTRACT_NUMBER:
        value = a - number;
        break;
    case CG_SUBTRACT_FROM_NUMBER:
        value = number - a;
        break;
    default:
        value = a * number;
    }
    *(T_IN_MEMORY*)result = value;
}

CG_INLINE T CG_OF_T(cg_next_term)(char** data, int place, int products, int term, int* k)
{
    T value = *(const T_IN_MEMORY*)(data[(*k)++] + place);
    if (products >> term & 1)
        value *= *(const T_IN_MEMORY*)(data[(*k)++] + place);
    return value;
}

/* scale * (carried3 * (carried2 * (start + factor0 * x0 + factor1 * x1) + factor2 * x2) + factor3 * x3) */
CG_INLINE T CG_OF_T(cg_carried_sum)(const double* numbers, char** data, int place, int terms, int products, int* k)
{
    T value = numbers[1] * CG_OF_T(cg_next_term)(data, place, products, 0, k);
    if (terms == 1)
        return numbers[2] * (numbers[0] + value);
    value += numbers[0] + numbers[2] * CG_OF_T(cg_next_term)(data, place, products, 1, k);
    if (terms > 2)
        value = numbers[3] * value + numbers[4] * CG_OF_T(cg_next_term)(data, place, products, 2, k);
    if (terms > 3)
        value = numbers[5] * value + numbers[6] * CG_OF_T(cg_next_term)(data, place, products, 3, k);
    return numbers[terms == 2 ? 3 : terms == 3 ? 5 : 7] * value;
}

/* The same, sooner, where no sum or product has a factor but 1: the start is added to the last term, for which others seldom
   wait. That is the same sum: 0 matters among zeros alone. */
CG_INLINE T CG_OF_T(cg_plain_sum)(const double* numbers, char** data, int place, int terms, int products, int* k)
{
    T value = {0};
    for (int t = 0; t < terms; t++) {
        T term = CG_OF_T(cg_next_term)(data, place, products, t, k);
        if (!(products >> t & 1))
            term *= numbers[1 + t];
        if (t == terms - 1)
            term = numbers[0] + term;
        if (t)
            value += term;
        else
            value = term;
    }
    return value;
}

CG_INLINE void CG_OF_T(cg_write_sum)(const double* numbers, char** data, int place, int terms, int products, int plain)
{
    int k = 0;
    T value = plain ? CG_OF_T(cg_plain_sum)(numbers, data, place, terms, products, &k)
                    : CG_OF_T(cg_carried_sum)(numbers, data, place, terms, products, &k);
    *(T_IN_MEMORY*)(data[k] + place) = value;
}
