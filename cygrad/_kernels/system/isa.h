/* Instruction-set levels: which exist in this build, which this processor has, and how wide their vectors are.
 *
 * Levels are numbered from 0 upwards, each one containing those below it. x86-64 under GCC has the three levels of
 * the psABI, because only there are the loops compiled per level; everything else has one level, by the name of the architecture.
 * All functions are pure and safe from any thread. Nothing here changes the processor's state.
 */
#ifndef CYGRAD_ISA_H
#define CYGRAD_ISA_H
#include "generated/native.h"
#include <stddef.h>

#ifdef CG_NATIVE
#define CG_ISA_LEVELS 1

static inline const char *cg_isa_name(int level) { return level == 0 ? "native" : ""; }
static inline int cg_isa_vector_bytes(int level) { (void)level; return CG_NATIVE_VECTOR_BYTES; }

/* An instruction set that the loops were compiled for and the processor lacks; NULL where it lacks none. */
static inline const char *cg_isa_lacking(void) {
    __builtin_cpu_init();
#define CG_ASK(feature) if (!__builtin_cpu_supports(feature)) return feature;
    CG_NATIVE_NEEDS(CG_ASK)
#undef CG_ASK
    return NULL;
}
static inline int cg_isa_supported(int level) { return level == 0 && !cg_isa_lacking(); }

#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CG_ISA_LEVELS 3

static inline const char *cg_isa_name(int level) {
    static const char *const names[CG_ISA_LEVELS] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
    return level >= 0 && level < CG_ISA_LEVELS ? names[level] : "";
}

static inline int cg_isa_vector_bytes(int level) { return 16 << level; }

/* The compiler needs a literal in each call, hence the switch. It asks the operating system too (XGETBV). */
static inline int cg_isa_supported(int level) {
    __builtin_cpu_init();
    switch (level) {
    case 0: return __builtin_cpu_supports("x86-64-v2") != 0;
    case 1: return __builtin_cpu_supports("x86-64-v3") != 0;
    case 2: return __builtin_cpu_supports("x86-64-v4") != 0;
    default: return 0;
    }
}

#else
#define CG_ISA_LEVELS 1
#if defined(__aarch64__)
#define CG_ISA_NAME "aarch64"
#elif defined(__x86_64__)
#define CG_ISA_NAME "x86-64"
#else
#define CG_ISA_NAME "baseline"
#endif

static inline const char *cg_isa_name(int level) { return level == 0 ? CG_ISA_NAME : ""; }
static inline int cg_isa_vector_bytes(int level) { (void)level; return 16; }
static inline int cg_isa_supported(int level) { return level == 0; }

#endif

/* The one processor that a build of CYGRAD_ISA_BUILD=native is for; "" in others, which serve every processor of their lowest level. */
#ifdef CG_NATIVE
static inline const char *cg_isa_built_for(void) { return CG_NATIVE; }
#else
static inline const char *cg_isa_built_for(void) { return ""; }
static inline const char *cg_isa_lacking(void) { return cg_isa_supported(0) ? NULL : cg_isa_name(0); }
#endif

/* How the calling thread treats denormal numbers: bit 0, results flushed to zero; bit 1, operands read as zero. */
#if defined(__SSE2__)
#include <xmmintrin.h>
static inline int cg_denormal_mode(void) {
    unsigned int control = _mm_getcsr();
    return (control >> 15 & 1) | (control >> 6 & 1) << 1;
}
#elif defined(__aarch64__)
static inline int cg_denormal_mode(void) {
    unsigned long long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control >> 24 & 1 ? 3 : 0; /* FZ covers results and operands */
}
#else
static inline int cg_denormal_mode(void) { return 0; }
#endif

#endif
