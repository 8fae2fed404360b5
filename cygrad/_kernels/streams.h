/* Stores past the caches, for outputs that no cache holds: memory is not read first to be written whole. */
#ifndef CG_STREAMS_H
#define CG_STREAMS_H
#include <stddef.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Other threads see such stores in order only after this. */
static inline void cg_stream_end(void) {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/* Both aligned to 16 bytes, and so many of them. */
static inline void cg_stream_copy(char *out, const char *block, size_t nbytes) {
#if defined(__x86_64__)
    for (size_t i = 0; i < nbytes; i += 16) _mm_stream_si128((__m128i *)(out + i), _mm_load_si128((const __m128i *)(block + i)));
#else
    memcpy(out, block, nbytes);
#endif
}
#endif
