/* Fetching memory ahead of its use. */
#ifndef CG_FETCH_H
#define CG_FETCH_H
#include <stdint.h>

/* It may lie behind the end of an array: nothing is read. */
static inline void fetch(const char *address, intptr_t nbytes) {
    for (intptr_t line = 0; line < nbytes; line += 64) __builtin_prefetch(address + line);
    __asm__ volatile("");    /* to GCC a function that only fetches does nothing, and calls of it are left out */
}
#endif
