/* Vectors of fp32 in three instruction sets: LANES numbers at a time.
 *
 * Included by variant.c, which is compiled once with -DVARIANT_AVX512, once with -DVARIANT_AVX2 and
 * once with neither. Every multiply-add is written as one: the compiler contracts nothing.
 */
#ifndef HELIOGRAPH_SIMD_H
#define HELIOGRAPH_SIMD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "native.h"

#define INLINE static inline __attribute__((always_inline, unused))

#if defined(VARIANT_AVX512) && defined(EMULATED)
#include "emulated.h" /* of the tests: a processor's instructions on another one */
#elif defined(VARIANT_AVX512) || defined(VARIANT_AVX2)
#include <immintrin.h>
#endif

#if defined(VARIANT_AVX512)

enum { LANES = 16 };
typedef __m512 vf;
typedef __m512i vi;
INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
INLINE vf vf_set(float x) { return _mm512_set1_ps(x); }
INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vf vf_abs(vf a) { return _mm512_abs_ps(a); }
INLINE vi vi_round(vf a) { return _mm512_cvtps_epi32(a); } /* to nearest, ties to even */
INLINE vf vf_of_vi(vi a) { return _mm512_cvtepi32_ps(a); }
/* 2^n for whole n in [-126, 127] */
INLINE vf vf_power(vi n) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
}
/* LANES pairs of bf16: the first, and the second, of each */
INLINE vf vf_first(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512((const void *)p), 16));
}
INLINE vf vf_second(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512((const void *)p),
                                                _mm512_set1_epi32((int)0xFFFF0000u)));
}
INLINE vf vf_half(const uint16_t *p) { /* fp16 */
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

#elif defined(VARIANT_AVX2)

enum { LANES = 8 };
typedef __m256 vf;
typedef __m256i vi;
INLINE vf vf_zero(void) { return _mm256_setzero_ps(); }
INLINE vf vf_set(float x) { return _mm256_set1_ps(x); }
INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE void vf_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
INLINE vi vi_round(vf a) { return _mm256_cvtps_epi32(a); }
INLINE vf vf_of_vi(vi a) { return _mm256_cvtepi32_ps(a); }
INLINE vf vf_power(vi n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
INLINE vf vf_first(const uint16_t *p) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p), 16));
}
INLINE vf vf_second(const uint16_t *p) {
    return _mm256_castsi256_ps(
        _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)p),
                         _mm256_set1_epi32((int)0xFFFF0000u)));
}
INLINE vf vf_half(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

#else

enum { LANES = 4 };
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
INLINE vf vf_set(float x) { return (vf){x, x, x, x}; }
INLINE vf vf_zero(void) { return vf_set(0.0f); }
INLINE vf vf_load(const float *p) {
    vf a;
    memcpy(&a, p, sizeof a);
    return a;
}
INLINE void vf_store(float *p, vf a) { memcpy(p, &a, sizeof a); }
INLINE vf vf_add(vf a, vf b) { return a + b; }
INLINE vf vf_sub(vf a, vf b) { return a - b; }
INLINE vf vf_mul(vf a, vf b) { return a * b; }
INLINE vf vf_div(vf a, vf b) { return a / b; }
INLINE vf vf_choose(vi take, vf a, vf b) { return (vf)((take & (vi)a) | (~take & (vi)b)); }
INLINE vf vf_max(vf a, vf b) { return vf_choose(a > b, a, b); }
INLINE vf vf_min(vf a, vf b) { return vf_choose(a < b, a, b); }
INLINE vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
INLINE vf vf_abs(vf a) { return (vf)((vi)a & 0x7FFFFFFF); }
INLINE vi vi_round(vf a) {
    vi n;
    for (int lane = 0; lane < LANES; lane++) n[lane] = (int32_t)lrintf(a[lane]);
    return n;
}
INLINE vf vf_of_vi(vi a) { return __builtin_convertvector(a, vf); }
INLINE vf vf_power(vi n) { return (vf)((n + 127) << 23); }
INLINE vf vf_first(const uint16_t *p) {
    vu a;
    memcpy(&a, p, sizeof a);
    return (vf)(a << 16);
}
INLINE vf vf_second(const uint16_t *p) {
    vu a;
    memcpy(&a, p, sizeof a);
    return (vf)(a & 0xFFFF0000u);
}
INLINE float float_of_half(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7FFF, bits;
    if (rest >= 0x7C00) bits = sign | 0x7F800000u | (rest & 0x3FF) << 13;
    else if (rest >= 0x0400) bits = sign | ((rest << 13) + 0x38000000u);
    else { /* subnormal: a multiple of 2^-24 */
        float small = (float)rest * 0x1p-24f;
        memcpy(&bits, &small, 4);
        bits |= sign;
    }
    float out;
    memcpy(&out, &bits, 4);
    return out;
}
INLINE vf vf_half(const uint16_t *p) {
    return (vf){float_of_half(p[0]), float_of_half(p[1]), float_of_half(p[2]), float_of_half(p[3])};
}

#endif

/* Sums and maxima over lanes, in a fixed order. */
INLINE float vf_sum(vf a) {
    float lanes[LANES], sum = 0.0f;
    vf_store(lanes, a);
    for (int width = LANES / 2; width; width /= 2)
        for (int lane = 0; lane < width; lane++) lanes[lane] += lanes[lane + width];
    sum = lanes[0];
    return sum;
}
INLINE float vf_most(vf a) {
    float lanes[LANES];
    vf_store(lanes, a);
    for (int width = LANES / 2; width; width /= 2)
        for (int lane = 0; lane < width; lane++)
            lanes[lane] = lanes[lane] > lanes[lane + width] ? lanes[lane] : lanes[lane + width];
    return lanes[0];
}

/* e^x within 2 units in the last place on [-87, 88]; clamped beyond (Cephes' expf polynomial). */
INLINE vf vf_exp(vf x) {
    x = vf_max(vf_set(-87.0f), vf_min(vf_set(88.0f), x)); /* a NaN stays one */
    vi n = vi_round(vf_mul(x, vf_set(1.44269504f)));
    vf whole = vf_of_vi(n);
    vf r = vf_fma(whole, vf_set(-0.693359375f), x);
    r = vf_fma(whole, vf_set(2.12194440e-4f), r);
    vf p = vf_set(1.9875691500e-4f);
    p = vf_fma(p, r, vf_set(1.3981999507e-3f));
    p = vf_fma(p, r, vf_set(8.3334519073e-3f));
    p = vf_fma(p, r, vf_set(4.1665795894e-2f));
    p = vf_fma(p, r, vf_set(1.6666665459e-1f));
    p = vf_fma(p, r, vf_set(5.0000001201e-1f));
    p = vf_fma(vf_mul(p, r), r, vf_add(r, vf_set(1.0f)));
    return vf_mul(p, vf_power(n));
}

INLINE vf vf_sigmoid(vf x) {
    return vf_div(vf_set(1.0f), vf_add(vf_set(1.0f), vf_exp(vf_sub(vf_zero(), x))));
}

/* tanh(x) = 2 sigmoid(2 x) - 1 */
INLINE vf vf_tanh(vf x) {
    vf twice = vf_sigmoid(vf_add(x, x));
    return vf_sub(vf_add(twice, twice), vf_set(1.0f));
}

INLINE float float_of_bf16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

/* To nearest, ties to even; a NaN stays one. */
INLINE uint16_t bf16_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

#endif
