/* Steps over a few doubles (linked.pxd): each kind is code without branches but for the number of doubles. */
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
    CG_OF_FEW = 18,     /* an operation of several doubles is so much greater; the forms of one term are 16 and 17 */
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
    int n, paired;          /* the first of them go in pairs */
    unsigned char form;
    unsigned char plain;    /* no sum and no product is multiplied */
} cg_element_sum;

typedef int64_t __attribute__((aligned(1), may_alias)) cg_eight_bytes; /* two floats as well */
typedef double __attribute__((vector_size(16))) cg_pair;
typedef double __attribute__((vector_size(16), aligned(8), may_alias)) cg_pair_in_memory;

#define CG_INLINE static inline __attribute__((always_inline))

#define T double
#define T_IN_MEMORY double
#define CG_OF_T(name) name##_of_one
#include "programs/element_arithmetic.h"
#undef T
#undef T_IN_MEMORY
#undef CG_OF_T
#define T cg_pair
#define T_IN_MEMORY cg_pair_in_memory
#define CG_OF_T(name) name##_of_two
#include "programs/element_arithmetic.h"
#undef T
#undef T_IN_MEMORY
#undef CG_OF_T

CG_INLINE void cg_run_arithmetic(const cg_linked_step* step, char** bases, int n, int kind)
{
    const int is_binary = kind <= CG_MULTIPLY;
    const char *first = bases[step->bases[0]] + step->offsets[0], *second = first;
    char* result = bases[step->bases[is_binary + 1]] + step->offsets[is_binary + 1];
    double number = kind >= CG_ADD_NUMBER ? *(const double*)step->content : 0;
    int place = 0;
    if (is_binary)
        second = bases[step->bases[1]] + step->offsets[1];
    for (; place + 16 <= 8 * n; place += 16)
        cg_write_result_of_two(kind, first + place, second + place, number, result + place);
    if (place < 8 * n)
        cg_write_result_of_one(kind, first + place, second + place, number, result + place);
}

CG_INLINE void cg_run_sum(const cg_linked_step* step, char** bases, int is_one, int terms, int products, int plain)
{
    const cg_element_sum* sum = step->content;
    char* data[CG_MAX_PLACES];
    int k = 0;
    for (int j = 0; j < terms + __builtin_popcount(products) + 1; j++)
        data[j] = bases[step->bases[j]] + step->offsets[j];
    if (!is_one)
        for (; k < sum->paired; k += 2)
            cg_write_sum_of_two(sum->numbers, data, 8 * k, terms, products, plain);
    for (; k < (is_one ? 1 : sum->n); k++)
        cg_write_sum_of_one(sum->numbers, data, 8 * k, terms, products, plain);
}

/* The step is of one of the kinds above. */
CG_INLINE void cg_run_element_step(const cg_linked_step* step, char** bases)
{
#define CG_ARITHMETIC(kind)                                                                                                                \
    case kind:                                                                                                                             \
        cg_run_arithmetic(step, bases, 1, kind);                                                                                           \
        break;                                                                                                                             \
    case CG_OF_FEW + kind:                                                                                                                 \
        cg_run_arithmetic(step, bases, step->count, kind);                                                                                 \
        break;
#define CG_SUMS(terms, products)                                                                                                           \
    case CG_FORM(terms, products):                                                                                                         \
        cg_run_sum(step, bases, 1, terms, products, 1);                                                                                    \
        break;                                                                                                                             \
    case CG_SUM_OF_MORE + CG_FORM(terms, products):                                                                                        \
        cg_run_sum(step, bases, 0, terms, products, 1);                                                                                    \
        break;                                                                                                                             \
    case CG_CARRIED_SUM + CG_FORM(terms, products):                                                                                        \
        cg_run_sum(step, bases, 0, terms, products, 0);                                                                                    \
        break;
    switch (step->kind) {
        CG_ARITHMETIC(CG_ADD)
        CG_ARITHMETIC(CG_SUBTRACT)
        CG_ARITHMETIC(CG_MULTIPLY)
        CG_ARITHMETIC(CG_NEGATE)
        CG_ARITHMETIC(CG_ADD_NUMBER)
        CG_ARITHMETIC(CG_SUBTRACT_NUMBER)
        CG_ARITHMETIC(CG_SUBTRACT_FROM_NUMBER)
        CG_ARITHMETIC(CG_MULTIPLY_BY_NUMBER)
    case CG_MOVE:
        *(cg_eight_bytes*)(bases[step->bases[1]] + step->offsets[1]) = *(const cg_eight_bytes*)(bases[step->bases[0]] + step->offsets[0]);
        break;
        CG_EACH_FORM(CG_SUMS)
    default:
        __builtin_unreachable();
    }
#undef CG_ARITHMETIC
#undef CG_SUMS
}

#endif
