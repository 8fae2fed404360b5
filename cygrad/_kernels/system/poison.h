/* Memory that no code may touch, in a build with the address sanitizer: the bytes behind owned data, and blocks in the cache. */
#ifndef CG_POISON_H
#define CG_POISON_H
#include <stddef.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
enum { cg_poisons = 1 };
static inline void cg_poison(const volatile void *start, size_t size) { ASAN_POISON_MEMORY_REGION(start, size); }
static inline void cg_unpoison(const volatile void *start, size_t size) { ASAN_UNPOISON_MEMORY_REGION(start, size); }
#else
enum { cg_poisons = 0 };
static inline void cg_poison(const volatile void *start, size_t size) { (void)start; (void)size; }
static inline void cg_unpoison(const volatile void *start, size_t size) { (void)start; (void)size; }
#endif
#endif
