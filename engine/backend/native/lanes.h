/* Comparisons of lanes, picks by them, sums in fp64: what draws and scores need beyond simd.h. */
#ifndef HELIOGRAPH_LANES_H
#define HELIOGRAPH_LANES_H

#include "simd.h"

/* lanes_above: a bit for each lane with a > b. lanes_unordered: with a NaN in either.
 * vf_pick: `value` where a >= least, else `otherwise`. vf_allowed: a, and -inf where no bit is set.
 * vd: a sum in fp64 of each lane. */
#if defined(VARIANT_AVX512)

INLINE unsigned lanes_above(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
INLINE unsigned lanes_unordered(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
INLINE vf vf_pick(vf a, vf least, vf value, vf otherwise) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, least, _CMP_GE_OQ), otherwise, value);
}
INLINE vf vf_allowed(vf a, uint32_t bits) {
    return _mm512_mask_blend_ps((__mmask16)bits, vf_set(-INFINITY), a);
}
typedef struct {
    __m512d low, high;
} vd;
INLINE vd vd_zero(void) { return (vd){_mm512_setzero_pd(), _mm512_setzero_pd()}; }
INLINE vd vd_add(vd sums, vf a) {
    __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1));
    return (vd){_mm512_add_pd(sums.low, _mm512_cvtps_pd(_mm512_castps512_ps256(a))),
                _mm512_add_pd(sums.high, _mm512_cvtps_pd(high))};
}
INLINE void vd_store(double *p, vd a) {
    _mm512_storeu_pd(p, a.low);
    _mm512_storeu_pd(p + 8, a.high);
}

#elif defined(VARIANT_AVX2)

INLINE unsigned lanes_above(vf a, vf b) {
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
INLINE unsigned lanes_unordered(vf a, vf b) {
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}
INLINE vf vf_pick(vf a, vf least, vf value, vf otherwise) {
    return _mm256_blendv_ps(otherwise, value, _mm256_cmp_ps(a, least, _CMP_GE_OQ));
}
INLINE vf vf_allowed(vf a, uint32_t bits) {
    __m256i own = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i set = _mm256_and_si256(_mm256_set1_epi32((int)bits), own);
    __m256 keep = _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, own));
    return _mm256_blendv_ps(vf_set(-INFINITY), a, keep);
}
typedef struct {
    __m256d low, high;
} vd;
INLINE vd vd_zero(void) { return (vd){_mm256_setzero_pd(), _mm256_setzero_pd()}; }
INLINE vd vd_add(vd sums, vf a) {
    return (vd){_mm256_add_pd(sums.low, _mm256_cvtps_pd(_mm256_castps256_ps128(a))),
                _mm256_add_pd(sums.high, _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)))};
}
INLINE void vd_store(double *p, vd a) {
    _mm256_storeu_pd(p, a.low);
    _mm256_storeu_pd(p + 4, a.high);
}

#else

INLINE unsigned lanes_set(vi lanes) { /* each 0 or -1 */
    return (unsigned)((lanes[0] & 1) | (lanes[1] & 2) | (lanes[2] & 4) | (lanes[3] & 8));
}
INLINE unsigned lanes_above(vf a, vf b) { return lanes_set((vi)(a > b)); }
INLINE unsigned lanes_unordered(vf a, vf b) { return lanes_set((vi)(a != a) | (vi)(b != b)); }
INLINE vf vf_pick(vf a, vf least, vf value, vf otherwise) {
    return vf_choose((vi)(a >= least), value, otherwise);
}
INLINE vf vf_allowed(vf a, uint32_t bits) {
    vi own = {1, 2, 4, 8}, all = {(int)bits, (int)bits, (int)bits, (int)bits};
    return vf_choose((vi)((all & own) == own), a, vf_set(-INFINITY));
}
typedef struct {
    double lanes[LANES];
} vd;
INLINE vd vd_zero(void) { return (vd){{0}}; }
INLINE vd vd_add(vd sums, vf a) {
    for (int lane = 0; lane < LANES; lane++) sums.lanes[lane] += (double)a[lane];
    return sums;
}
INLINE void vd_store(double *p, vd a) { memcpy(p, a.lanes, sizeof a.lanes); }

#endif

INLINE double vd_sum(vd a) { /* in a fixed order */
    double lanes[LANES];
    vd_store(lanes, a);
    for (int width = LANES / 2; width; width /= 2)
        for (int lane = 0; lane < width; lane++) lanes[lane] += lanes[lane + width];
    return lanes[0];
}

/* LANES numbers of which `count` are there; the others are -inf. */
INLINE vf vf_read(const float *p, int32_t count) {
    if (count >= LANES) return vf_load(p);
    float lanes[LANES];
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = lane < count ? p[lane] : -INFINITY;
    return vf_load(lanes);
}

#endif
