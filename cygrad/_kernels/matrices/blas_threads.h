/* Whether BLAS's threads may be awake. OpenBLAS's look for work for 2^26 ticks of the processor's clock after a product, and ours for
 * milliseconds after a region. Where both are ready for one processor, each waits for the other: a product of 0.2 ms takes 50.
 */
#ifndef CG_BLAS_THREADS_H
#define CG_BLAS_THREADS_H
#include "system/clock.h"

enum { CG_AWAKE = 30000000 };       /* nanoseconds */
static int64_t cg_blas_ended;       /* when BLAS was last called for work that it may give to more than one thread; 0: never */

static void cg_note_blas(void) { __atomic_store_n(&cg_blas_ended, cg_nanoseconds(), __ATOMIC_RELAXED); }

static int cg_is_blas_awake(void)
{
    const int64_t ended = __atomic_load_n(&cg_blas_ended, __ATOMIC_RELAXED);
    return ended && cg_nanoseconds() - ended < CG_AWAKE;
}
#endif
