/* AVX-512 on processors without it, by simde and, where that lacks one, here. */
#include <math.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>

#undef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32 emulated_cvtps_epi32
static inline __m512i emulated_cvtps_epi32(__m512 a) {
    float lanes[16];
    int whole[16];
    _mm512_storeu_ps(lanes, a);
    for (int lane = 0; lane < 16; lane++) whole[lane] = (int)lrintf(lanes[lane]);
    return _mm512_loadu_si512((const void *)whole);
}

#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps
static inline __m512 emulated_cvtepi32_ps(__m512i a) {
    float lanes[16];
    int whole[16];
    _mm512_storeu_si512((void *)whole, a);
    for (int lane = 0; lane < 16; lane++) lanes[lane] = (float)whole[lane];
    return _mm512_loadu_ps(lanes);
}

#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps emulated_cvtph_ps
static inline __m512 emulated_cvtph_ps(__m256i a) {
    float lanes[16];
    unsigned short halves[16];
    _mm256_storeu_si256((__m256i *)(void *)halves, a);
    for (int lane = 0; lane < 16; lane++) lanes[lane] = _cvtsh_ss(halves[lane]);
    return _mm512_loadu_ps(lanes);
}

#undef _mm512_cvtps_pd
#define _mm512_cvtps_pd emulated_cvtps_pd
static inline __m512d emulated_cvtps_pd(__m256 a) {
    float lanes[8];
    double wide[8];
    _mm256_storeu_ps(lanes, a);
    for (int lane = 0; lane < 8; lane++) wide[lane] = (double)lanes[lane];
    return _mm512_loadu_pd(wide);
}
