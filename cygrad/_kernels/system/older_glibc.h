/* Ways to functions by the oldest version that glibc has them in; included once.

   A library asks for the newest version that there is when it is linked, and runs with no older glibc. 2.34 took the functions that open libraries
   into libc, as new versions of the same code; an older one finds it in libdl, which Python has open. log and pow have new ones since
   2.29, hypot since 2.35 and fmod since 2.38, that set no errno, which is not read here; numbers are the same. The headers of 2.38
   give strtoull another name, of a function that reads 0b as well.
   The linker's --wrap leads all calls here: building/compiler.py asks the preprocessor for the names. */
#include <limits.h>     /* says which C library this is */

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#if __GLIBC_PREREQ(2, 34)
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#ifdef __x86_64__
#define CG_OLDEST "GLIBC_2.2.5"
#else
#define CG_OLDEST "GLIBC_2.17"
#endif

#define CG_OLDER_FOR(symbol, result, name, parameters, arguments) \
    __typeof__(name) cg_older_##name; \
    __asm__(".symver cg_older_" #name ", " #name "@" CG_OLDEST); \
    result __wrap_##symbol parameters; \
    result __wrap_##symbol parameters { return cg_older_##name arguments; }
#define CG_OLDER(result, name, parameters, arguments) CG_OLDER_FOR(name, result, name, parameters, arguments)

CG_OLDER(void *, dlopen, (const char *path, int mode), (path, mode))
CG_OLDER(void *, dlsym, (void *library, const char *name), (library, name))
CG_OLDER(int, dlclose, (void *library), (library))
CG_OLDER(int, dladdr, (const void *address, Dl_info *info), (address, info))
CG_OLDER(int, pthread_once, (pthread_once_t *guard, void (*function)(void)), (guard, function))
CG_OLDER(double, hypot, (double a, double b), (a, b))
CG_OLDER(double, log, (double x), (x))
CG_OLDER(double, pow, (double a, double b), (a, b))
CG_OLDER(double, fmod, (double a, double b), (a, b))
CG_OLDER_FOR(__isoc23_strtoull, unsigned long long, strtoull, (const char *text, char **end, int base), (text, end, base))
#endif
#endif
