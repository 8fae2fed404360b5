/* Sums of a few doubles, one by one (linked.pxd): each form is code without branches. */
#ifndef CG_ELEMENT_SUMS_H
#define CG_ELEMENT_SUMS_H

#define CG_MAX_PLACES 6

/* Numbers of terms, and a bit for each term that is a product of two operands. */
#define CG_EACH_FORM(CASE)                                                                                                                 \
    CASE(1, 0) CASE(1, 1) CASE(2, 0) CASE(2, 1) CASE(2, 2) CASE(2, 3) CASE(3, 0) CASE(3, 1) CASE(3, 2) CASE(3, 3) CASE(3, 4) CASE(3, 5)   \
    CASE(3, 6) CASE(4, 0) CASE(4, 1) CASE(4, 2) CASE(4, 4) CASE(4, 8)

#define CG_FORM(terms, products) (16 * (terms) + (products))

#define CG_INLINE static inline __attribute__((always_inline))

CG_INLINE double cg_next_term(char** data, int element, int products, int term, int* k)
{
    double value = ((const double*)data[(*k)++])[element];
    return products >> term & 1 ? value * ((const double*)data[(*k)++])[element] : value;
}

/* carried3 * (carried2 * (start + factor0 * x0 + factor1 * x1) + factor2 * x2) + factor3 * x3 */
CG_INLINE double cg_carried_sum(const double* numbers, char** data, int element, int terms, int products, int* k)
{
    double value = numbers[0] + numbers[1] * cg_next_term(data, element, products, 0, k);
    if (terms > 1)
        value += numbers[2] * cg_next_term(data, element, products, 1, k);
    if (terms > 2)
        value = numbers[3] * value + numbers[4] * cg_next_term(data, element, products, 2, k);
    if (terms > 3)
        value = numbers[5] * value + numbers[6] * cg_next_term(data, element, products, 3, k);
    return value;
}

/* The same, sooner, where no sum or product has a factor but 1: the start is added to the last term, for which others seldom
   wait. That is the same sum: 0 matters among zeros alone. */
CG_INLINE double cg_plain_sum(const double* numbers, char** data, int element, int terms, int products, int* k)
{
    double value = 0;
    for (int t = 0; t < terms; t++) {
        double term = cg_next_term(data, element, products, t, k);
        if (!(products >> t & 1))
            term *= numbers[1 + t];
        if (t == terms - 1)
            term = numbers[0] + term;
        value = t ? value + term : term;
    }
    return value;
}

CG_INLINE void cg_run_form(const double* numbers, const unsigned short* places, const int* offsets, char** bases, int n, int terms,
                           int products, int plain)
{
    char* data[CG_MAX_PLACES];
    for (int k = 0; k < terms + __builtin_popcount(products) + 1; k++)
        data[k] = bases[places[k]] + offsets[k];
    for (int element = 0; element < n; element++) {
        int k = 0;
        double value = plain ? cg_plain_sum(numbers, data, element, terms, products, &k)
                             : cg_carried_sum(numbers, data, element, terms, products, &k);
        ((double*)data[k])[element] = value;
    }
}

CG_INLINE void cg_run_sum(int form, const double* numbers, const unsigned short* places, const int* offsets, char** bases, int n, int plain)
{
#define CG_CASE(terms, products)                                                                                                           \
    case CG_FORM(terms, products):                                                                                                         \
        cg_run_form(numbers, places, offsets, bases, n, terms, products, plain);                                                           \
        break;
    switch (form) {
        CG_EACH_FORM(CG_CASE)
    }
#undef CG_CASE
}

#endif
