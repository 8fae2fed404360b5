/* The levels that loops are compiled for in this build: FOR_LEVELS declares something of each, LEVELS lists the declarations of each. */
#ifndef CG_LEVELS_H
#define CG_LEVELS_H
#include "generated/native.h"

#ifdef CG_NATIVE
#define CG_FOR_LEVELS(declare) declare(native)
#define CG_LEVELS(table) {table##_native}
#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CG_FOR_LEVELS(declare) declare(v2) declare(v3) declare(v4)
#define CG_LEVELS(table) {table##_v2, table##_v3, table##_v4}
#else
#define CG_FOR_LEVELS(declare) declare(baseline)
#define CG_LEVELS(table) {table##_baseline}
#endif
#endif
