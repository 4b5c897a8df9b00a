/* The kernels of one instruction set. */
#include "simd.h"

#include "linear.c"

#include "rows.c"

#include "attention.c"

#include "draw.c"

#if defined(VARIANT_AVX512)
#define KERNELS kernels_avx512
#define NAME "avx512"
#elif defined(VARIANT_AVX2)
#define KERNELS kernels_avx2
#define NAME "avx2"
#else
#define KERNELS kernels_portable
#define NAME "portable"
#endif

const Kernels KERNELS = {
    .name = NAME,
    .run = {[OP_EMBED] = run_embed,
            [OP_NORM] = run_norm,
            [OP_QUANTISE] = run_quantise,
            [OP_LINEAR] = run_linear,
            [OP_ROPE] = run_rope,
            [OP_ATTEND] = run_attend,
            [OP_GATE] = run_gate,
            [OP_SELECT] = run_select,
            [OP_ADD] = run_add},
    .attend_scratch = attend_scratch,
    .attend_shared = attend_shared,
    .draw = run_draw,
    .score = run_score,
};
