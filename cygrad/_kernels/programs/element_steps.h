/* Steps over a few doubles, one by one (linked.pxd): each kind is code without branches. */
#ifndef CG_ELEMENT_STEPS_H
#define CG_ELEMENT_STEPS_H

#include <stdint.h>

#define CG_MAX_PLACES 6

/* Numbers of terms, and a bit for each term that is a product of two operands. */
#define CG_EACH_FORM(CASE)                                                                                                                 \
    CASE(1, 0) CASE(1, 1) CASE(2, 0) CASE(2, 1) CASE(2, 2) CASE(2, 3) CASE(3, 0) CASE(3, 1) CASE(3, 2) CASE(3, 3) CASE(3, 4) CASE(3, 5)   \
    CASE(3, 6) CASE(4, 0) CASE(4, 1) CASE(4, 2) CASE(4, 4) CASE(4, 8)

#define CG_FORM(terms, products) (16 * (terms) + (products))

/* Kinds of steps: operations of one double; from CG_PLAIN_SUM on a form, of a plain sum of one double, or so much greater. */
enum {
    CG_ADD,
    CG_SUBTRACT,
    CG_MULTIPLY,
    CG_NEGATE,
    CG_ADD_NUMBER,
    CG_SUBTRACT_NUMBER,
    CG_SUBTRACT_FROM_NUMBER,
    CG_MULTIPLY_BY_NUMBER,
    CG_MOVE,            /* of 8 bytes */
    CG_PLAIN_SUM = 16,
    CG_SUM_OF_MORE = 80,
    CG_CARRIED_SUM = 160,
    CG_ELEMENT_KINDS = 240
};

typedef struct {            /* 48 bytes, so that long programs stay in the caches */
    void* content;          /* a number, a sum, a loop or a kernel, which many steps may share; or nothing */
    int offsets[CG_MAX_PLACES];     /* of the operands */
    unsigned short bases[CG_MAX_PLACES];
    unsigned char kind, count;
} cg_linked_step;

typedef struct {            /* a sum of multiples */
    double numbers[8];      /* of a plain one the start and the factors, of products 1 */
    int n;
    unsigned char form;
    unsigned char plain;    /* no sum and no product is multiplied */
} cg_element_sum;

typedef int64_t __attribute__((aligned(1), may_alias)) cg_eight_bytes; /* two floats as well */

#define CG_INLINE static inline __attribute__((always_inline))

CG_INLINE double cg_next_term(char** data, int element, int products, int term, int* k)
{
    double value = ((const double*)data[(*k)++])[element];
    return products >> term & 1 ? value * ((const double*)data[(*k)++])[element] : value;
}

/* scale * (carried3 * (carried2 * (start + factor0 * x0 + factor1 * x1) + factor2 * x2) + factor3 * x3) */
CG_INLINE double cg_carried_sum(const double* numbers, char** data, int element, int terms, int products, int* k)
{
    double value = numbers[1] * cg_next_term(data, element, products, 0, k);
    if (terms == 1)
        return numbers[2] * (numbers[0] + value);
    value += numbers[0] + numbers[2] * cg_next_term(data, element, products, 1, k);
    if (terms > 2)
        value = numbers[3] * value + numbers[4] * cg_next_term(data, element, products, 2, k);
    if (terms > 3)
        value = numbers[5] * value + numbers[6] * cg_next_term(data, element, products, 3, k);
    return numbers[terms == 2 ? 3 : terms == 3 ? 5 : 7] * value;
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

CG_INLINE void cg_run_form(const cg_linked_step* step, char** bases, int n, int terms, int products, int plain)
{
    const cg_element_sum* sum = step->content;
    char* data[CG_MAX_PLACES];
    for (int k = 0; k < terms + __builtin_popcount(products) + 1; k++)
        data[k] = bases[step->bases[k]] + step->offsets[k];
    for (int element = 0; element < n; element++) {
        int k = 0;
        double value = plain ? cg_plain_sum(sum->numbers, data, element, terms, products, &k)
                             : cg_carried_sum(sum->numbers, data, element, terms, products, &k);
        ((double*)data[k])[element] = value;
    }
}

/* The step is of one of the kinds above. */
CG_INLINE void cg_run_element_step(const cg_linked_step* step, char** bases)
{
#define CG_AT(T, k) (*(T*)(bases[step->bases[k]] + step->offsets[k]))
#define CG_NUMBER (*(const double*)step->content)
#define CG_OPERATION(kind, T, output, value)                                                                                               \
    case kind:                                                                                                                             \
        CG_AT(T, output) = value;                                                                                                          \
        break;
#define CG_SUMS(terms, products)                                                                                                           \
    case CG_FORM(terms, products):                                                                                                         \
        cg_run_form(step, bases, 1, terms, products, 1);                                                                                   \
        break;                                                                                                                             \
    case CG_SUM_OF_MORE + CG_FORM(terms, products):                                                                                        \
        cg_run_form(step, bases, ((const cg_element_sum*)step->content)->n, terms, products, 1);                                           \
        break;                                                                                                                             \
    case CG_CARRIED_SUM + CG_FORM(terms, products):                                                                                        \
        cg_run_form(step, bases, ((const cg_element_sum*)step->content)->n, terms, products, 0);                                           \
        break;
    switch (step->kind) {
        CG_OPERATION(CG_ADD, double, 2, CG_AT(double, 0) + CG_AT(double, 1))
        CG_OPERATION(CG_SUBTRACT, double, 2, CG_AT(double, 0) - CG_AT(double, 1))
        CG_OPERATION(CG_MULTIPLY, double, 2, CG_AT(double, 0) * CG_AT(double, 1))
        CG_OPERATION(CG_NEGATE, double, 1, -CG_AT(double, 0))
        CG_OPERATION(CG_ADD_NUMBER, double, 1, CG_AT(double, 0) + CG_NUMBER)
        CG_OPERATION(CG_SUBTRACT_NUMBER, double, 1, CG_AT(double, 0) - CG_NUMBER)
        CG_OPERATION(CG_SUBTRACT_FROM_NUMBER, double, 1, CG_NUMBER - CG_AT(double, 0))
        CG_OPERATION(CG_MULTIPLY_BY_NUMBER, double, 1, CG_AT(double, 0) * CG_NUMBER)
        CG_OPERATION(CG_MOVE, cg_eight_bytes, 1, CG_AT(cg_eight_bytes, 0))
        CG_EACH_FORM(CG_SUMS)
    default:
        __builtin_unreachable();
    }
#undef CG_AT
#undef CG_NUMBER
#undef CG_OPERATION
#undef CG_SUMS
}

#endif
