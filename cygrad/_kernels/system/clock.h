/* The clock of time.perf_counter_ns(). */
#ifndef CG_CLOCK_H
#define CG_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline int64_t cg_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}
#endif
