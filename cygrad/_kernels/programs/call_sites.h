/* Calls of loops from several places. Processors predict the target of a call by the place of the call: where one place calls the loops of
   all steps in turn, predictions fail, and a step of a few doubles takes 5 to 10 ns longer. So each loop of a program has a place. */
#ifndef CG_CALL_SITES_H
#define CG_CALL_SITES_H

#include "kernels.h"

#define CG_CALL_SITES 16
#define CG_EACH_SITE(CASE) CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)      \
    CASE(13) CASE(14) CASE(15)

static inline __attribute__((always_inline)) void cg_call_loop(int site, cg_loop loop, char **data, const intptr_t *strides, intptr_t n,
                                                               const void *params)
{
#define CG_CALL(number)                                                                                                                    \
    case number:                                                                                                                           \
        __asm__ volatile("" : : "i"(number));   /* or compilers would make one place of them */                                            \
        loop(data, strides, n, params);                                                                                                    \
        break;
    switch (site) {
        CG_EACH_SITE(CG_CALL)
    default:
        __builtin_unreachable();
    }
#undef CG_CALL
}

#endif
