/* Products of activation rows with blocks of 16 weight rows: out[m, 16 b + r] = x[m] . w[16 b + r].
 *
 * INT4 and INT8: whole-number dots of a group, exact in every instruction set, scaled in fp32.
 */

enum {
    ROW_TILE = 64, /* rows whose activations stay in the cache while weights pass */
    TAKES = 8,     /* pieces that a thread's share is cut into, for cores that are not equally free */
    INT4_BYTES = 320,
    INT8_BYTES = 544,
    BF16_BYTES = 1024
};

/* Rows of quantised activations, taken apart. */
typedef struct {
    const int8_t *q;
    const float *scales, *sums;
    const int32_t *counts;
} QuantisedRow;

INLINE QuantisedRow quantised_row(const uint8_t *act, int32_t columns) {
    int32_t groups = columns / GROUP;
    const float *scales = (const float *)(const void *)(act + columns);
    return (QuantisedRow){(const int8_t *)act, scales, scales + groups,
                          (const int32_t *)(const void *)(scales + 2 * groups)};
}

/* What a product of some rows with one block needs. */
typedef struct {
    const uint8_t *block;
    const float *bias; /* of the block, or NULL */
    const uint8_t *act;
    size_t act_stride;
    float *out;
    size_t out_stride;
    int32_t columns;
    int add;
} Product;

INLINE void finish(const Product *p, int row, int lane, vf sum) {
    float *out = p->out + (size_t)row * p->out_stride + lane;
    if (p->bias) sum = vf_add(sum, vf_load(p->bias + lane));
    if (p->add) sum = vf_add(sum, vf_load(out));
    vf_store(out, sum);
}

#if defined(VARIANT_AVX512)

enum { TILE = 8 };

INLINE __m512i four(const int8_t *q) {
    int32_t bytes;
    memcpy(&bytes, q, 4);
    return _mm512_set1_epi32(bytes);
}

INLINE void int4_product(const Product *p, int first, int rows) {
    QuantisedRow x[TILE];
    vf acc[TILE];
    for (int m = 0; m < rows; m++) {
        x[m] = quantised_row(p->act + (size_t)(first + m) * p->act_stride, p->columns);
        acc[m] = vf_zero();
    }
    const __m512i low = _mm512_set1_epi8(15);
    const uint8_t *w = p->block;
    for (int g = 0; g < p->columns / GROUP; g++, w += INT4_BYTES) {
        __m512i part[8];
        for (int j = 0; j < 4; j++) {
            __m512i both = _mm512_loadu_si512((const void *)(w + 64 * j));
            part[2 * j] = _mm512_and_si512(both, low);
            part[2 * j + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
            __builtin_prefetch(w + 8 * INT4_BYTES + 64 * j);
        }
        vf scale = vf_half((const uint16_t *)(const void *)(w + 256));
        vf minimum = vf_half((const uint16_t *)(const void *)(w + 288));
        for (int m = 0; m < rows; m++) {
            const int8_t *q = x[m].q + g * GROUP;
            __m512i even = _mm512_setzero_si512(), odd = even;
            for (int j = 0; j < 8; j += 2) {
                even = _mm512_dpbusd_epi32(even, part[j], four(q + 4 * j));
                odd = _mm512_dpbusd_epi32(odd, part[j + 1], four(q + 4 * j + 4));
            }
            vf dot = vf_of_vi(_mm512_add_epi32(even, odd));
            acc[m] = vf_fma(dot, vf_mul(scale, vf_set(x[m].scales[g])), acc[m]);
            acc[m] = vf_fma(minimum, vf_set(x[m].sums[g]), acc[m]);
        }
    }
    for (int m = 0; m < rows; m++) finish(p, first + m, 0, acc[m]);
}

INLINE void int8_product(const Product *p, int first, int rows) {
    QuantisedRow x[TILE];
    vf acc[TILE];
    for (int m = 0; m < rows; m++) {
        x[m] = quantised_row(p->act + (size_t)(first + m) * p->act_stride, p->columns);
        acc[m] = vf_zero();
    }
    const uint8_t *w = p->block;
    for (int g = 0; g < p->columns / GROUP; g++, w += INT8_BYTES) {
        __m512i part[8];
        for (int j = 0; j < 8; j++) {
            part[j] = _mm512_loadu_si512((const void *)(w + 64 * j));
            __builtin_prefetch(w + 8 * INT8_BYTES + 64 * j);
        }
        vf scale = vf_half((const uint16_t *)(const void *)(w + 512));
        for (int m = 0; m < rows; m++) {
            const int8_t *q = x[m].q + g * GROUP;
            __m512i even = _mm512_set1_epi32(-128 * x[m].counts[g]), odd = _mm512_setzero_si512();
            for (int j = 0; j < 8; j += 2) {
                even = _mm512_dpbusd_epi32(even, part[j], four(q + 4 * j));
                odd = _mm512_dpbusd_epi32(odd, part[j + 1], four(q + 4 * j + 4));
            }
            vf dot = vf_of_vi(_mm512_add_epi32(even, odd));
            acc[m] = vf_fma(dot, vf_mul(scale, vf_set(x[m].scales[g])), acc[m]);
        }
    }
    for (int m = 0; m < rows; m++) finish(p, first + m, 0, acc[m]);
}

/* In pairs of bf16: the processor adds two products at once. */
INLINE void bf16_product(const Product *p, int first, int rows) {
    const int8_t *x[TILE];
    vf acc[TILE];
    for (int m = 0; m < rows; m++) {
        x[m] = (const int8_t *)p->act + (size_t)(first + m) * p->act_stride;
        acc[m] = vf_zero();
    }
    for (int32_t pair = 0; pair < p->columns / 2; pair++) {
        const uint8_t *w = p->block + 64 * (size_t)pair;
        __m512i weights = _mm512_loadu_si512((const void *)w);
        __builtin_prefetch(w + 4096);
        for (int m = 0; m < rows; m++)
            acc[m] = _mm512_dpbf16_ps(acc[m], (__m512bh)weights,
                                      (__m512bh)four(x[m] + 4 * (size_t)pair));
    }
    for (int m = 0; m < rows; m++) finish(p, first + m, 0, acc[m]);
}

#elif defined(VARIANT_AVX2)

enum { TILE = 4 };

INLINE __m256i four(const int8_t *q) {
    int32_t bytes;
    memcpy(&bytes, q, 4);
    return _mm256_set1_epi32(bytes);
}
INLINE __m256i bytes_at(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Scaled sums of a group, added up for both halves of a block: lane by lane the same steps as in
 * the other instruction sets. */
INLINE void int4_scaled(const __m256i pairs[2], const uint8_t *halves, const QuantisedRow *x, int g,
                        vf acc[2]) {
    const __m256i ones = _mm256_set1_epi16(1);
    for (int v = 0; v < 2; v++) {
        vf scale = vf_half((const uint16_t *)(const void *)(halves + 16 * v));
        vf minimum = vf_half((const uint16_t *)(const void *)(halves + 32 + 16 * v));
        vf dot = vf_of_vi(_mm256_madd_epi16(pairs[v], ones));
        acc[v] = vf_fma(dot, vf_mul(scale, vf_set(x->scales[g])), acc[v]);
        acc[v] = vf_fma(minimum, vf_set(x->sums[g]), acc[v]);
    }
}

/* In this place: a compiler that gathers sums first has no registers for all the products. */
INLINE void add_dot(__m256i *sum, __m256i weights, __m256i q) {
    *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(weights, q));
    __asm__("" : "+x"(*sum));
}

/* A pair of columns is at most 15 * 127 * 2: 16 bits hold the sums of a group's eight. */
INLINE void int4_product(const Product *p, int first, int rows) {
    QuantisedRow x[TILE];
    vf acc[TILE][2];
    for (int m = 0; m < rows; m++) {
        x[m] = quantised_row(p->act + (size_t)(first + m) * p->act_stride, p->columns);
        acc[m][0] = acc[m][1] = vf_zero();
    }
    const __m256i low = _mm256_set1_epi8(15);
    const uint8_t *w = p->block;
    for (int g = 0; g < p->columns / GROUP; g++, w += INT4_BYTES) {
        __m256i sums[TILE][2];
        for (int m = 0; m < rows; m++) sums[m][0] = sums[m][1] = _mm256_setzero_si256();
        for (int j = 0; j < 4; j++) {
            __m256i both = bytes_at(w + 64 * j), more = bytes_at(w + 64 * j + 32);
            __builtin_prefetch(w + 8 * INT4_BYTES + 64 * j);
            __m256i part[4] = {_mm256_and_si256(both, low), _mm256_and_si256(more, low),
                               _mm256_and_si256(_mm256_srli_epi16(both, 4), low),
                               _mm256_and_si256(_mm256_srli_epi16(more, 4), low)};
            for (int m = 0; m < rows; m++) {
                __m256i q = four(x[m].q + g * GROUP + 8 * j);
                add_dot(&sums[m][0], part[0], q);
                add_dot(&sums[m][1], part[1], q);
                q = four(x[m].q + g * GROUP + 8 * j + 4);
                add_dot(&sums[m][0], part[2], q);
                add_dot(&sums[m][1], part[3], q);
            }
        }
        for (int m = 0; m < rows; m++) int4_scaled(sums[m], w + 256, &x[m], g, acc[m]);
    }
    for (int m = 0; m < rows; m++)
        for (int v = 0; v < 2; v++) finish(p, first + m, LANES * v, acc[m][v]);
}

/* A byte is 16 * its high half + its low half: a whole byte's products would not fit 16 bits. */
INLINE void int8_half(const Product *p, int first, int rows, int lane) {
    QuantisedRow x[TILE];
    vf acc[TILE];
    for (int m = 0; m < rows; m++) {
        x[m] = quantised_row(p->act + (size_t)(first + m) * p->act_stride, p->columns);
        acc[m] = vf_zero();
    }
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i ones = _mm256_set1_epi16(1), sixteens = _mm256_set1_epi16(16);
    const uint8_t *w = p->block;
    for (int g = 0; g < p->columns / GROUP; g++, w += INT8_BYTES) {
        __m256i highs[TILE], lows[TILE];
        for (int m = 0; m < rows; m++) highs[m] = lows[m] = _mm256_setzero_si256();
        for (int j = 0; j < 8; j++) {
            __m256i both = bytes_at(w + 64 * j + 4 * lane);
            __builtin_prefetch(w + 8 * INT8_BYTES + 64 * j);
            __m256i lower = _mm256_and_si256(both, low);
            __m256i upper = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
            for (int m = 0; m < rows; m++) {
                __m256i q = four(x[m].q + g * GROUP + 4 * j);
                add_dot(&lows[m], lower, q);
                add_dot(&highs[m], upper, q);
            }
        }
        vf scale = vf_half((const uint16_t *)(const void *)(w + 512 + 2 * lane));
        for (int m = 0; m < rows; m++) {
            __m256i sum = _mm256_add_epi32(_mm256_madd_epi16(highs[m], sixteens),
                                           _mm256_madd_epi16(lows[m], ones));
            sum = _mm256_sub_epi32(sum, _mm256_set1_epi32(128 * x[m].counts[g]));
            acc[m] = vf_fma(vf_of_vi(sum), vf_mul(scale, vf_set(x[m].scales[g])), acc[m]);
        }
    }
    for (int m = 0; m < rows; m++) finish(p, first + m, lane, acc[m]);
}

INLINE void int8_product(const Product *p, int first, int rows) {
    int8_half(p, first, rows, 0);
    int8_half(p, first, rows, LANES);
}

#else

enum { TILE = 4 };

INLINE void scaled(const Product *p, const uint8_t *halves, const float *dots, const float *more,
                   const QuantisedRow *x, int g, float *acc) {
    (void)p;
    for (int lane = 0; lane < BLOCK_ROWS; lane += LANES) {
        vf scale = vf_mul(vf_half((const uint16_t *)(const void *)(halves + 2 * lane)),
                          vf_set(x->scales[g]));
        vf sum = vf_fma(vf_load(dots + lane), scale, vf_load(acc + lane));
        if (more) sum = vf_fma(vf_load(more + lane), vf_set(x->sums[g]), sum);
        vf_store(acc + lane, sum);
    }
}

INLINE void int4_row(const Product *p, int row) {
    QuantisedRow x = quantised_row(p->act + (size_t)row * p->act_stride, p->columns);
    float acc[BLOCK_ROWS] = {0}, dots[BLOCK_ROWS], minimums[BLOCK_ROWS];
    const uint8_t *w = p->block;
    for (int g = 0; g < p->columns / GROUP; g++, w += INT4_BYTES) {
        int32_t sums[BLOCK_ROWS] = {0};
        const int8_t *q = x.q + g * GROUP;
        for (int j = 0; j < 4; j++)
            for (int r = 0; r < BLOCK_ROWS; r++)
                for (int c = 0; c < 4; c++) {
                    uint8_t both = w[64 * j + 4 * r + c];
                    sums[r] += (both & 15) * q[8 * j + c] + (both >> 4) * q[8 * j + 4 + c];
                }
        for (int r = 0; r < BLOCK_ROWS; r++) dots[r] = (float)sums[r];
        for (int r = 0; r < BLOCK_ROWS; r += LANES)
            vf_store(minimums + r, vf_half((const uint16_t *)(const void *)(w + 288 + 2 * r)));
        scaled(p, w + 256, dots, minimums, &x, g, acc);
    }
    for (int lane = 0; lane < BLOCK_ROWS; lane += LANES) finish(p, row, lane, vf_load(acc + lane));
}

INLINE void int8_row(const Product *p, int row) {
    QuantisedRow x = quantised_row(p->act + (size_t)row * p->act_stride, p->columns);
    float acc[BLOCK_ROWS] = {0}, dots[BLOCK_ROWS];
    const uint8_t *w = p->block;
    for (int g = 0; g < p->columns / GROUP; g++, w += INT8_BYTES) {
        int32_t sums[BLOCK_ROWS];
        const int8_t *q = x.q + g * GROUP;
        for (int r = 0; r < BLOCK_ROWS; r++) sums[r] = -128 * x.counts[g];
        for (int j = 0; j < 8; j++)
            for (int r = 0; r < BLOCK_ROWS; r++)
                for (int c = 0; c < 4; c++) sums[r] += w[64 * j + 4 * r + c] * q[4 * j + c];
        for (int r = 0; r < BLOCK_ROWS; r++) dots[r] = (float)sums[r];
        scaled(p, w + 512, dots, NULL, &x, g, acc);
    }
    for (int lane = 0; lane < BLOCK_ROWS; lane += LANES) finish(p, row, lane, vf_load(acc + lane));
}

INLINE void int4_product(const Product *p, int first, int rows) {
    for (int m = 0; m < rows; m++) int4_row(p, first + m);
}
INLINE void int8_product(const Product *p, int first, int rows) {
    for (int m = 0; m < rows; m++) int8_row(p, first + m);
}

#endif

#if !defined(VARIANT_AVX512)
/* fp32 activations with weights widened to fp32. */
INLINE void bf16_product(const Product *p, int first, int rows) {
    enum { VECTORS = BLOCK_ROWS / LANES };
    const float *x[TILE];
    vf acc[TILE][VECTORS];
    for (int m = 0; m < rows; m++) {
        x[m] = (const float *)(const void *)(p->act + (size_t)(first + m) * p->act_stride);
        for (int v = 0; v < VECTORS; v++) acc[m][v] = vf_zero();
    }
    for (int32_t pair = 0; pair < p->columns / 2; pair++) {
        const uint16_t *w = (const uint16_t *)(const void *)p->block + 32 * (size_t)pair;
        for (int v = 0; v < VECTORS; v++) {
            vf one = vf_first(w + 2 * LANES * v), two = vf_second(w + 2 * LANES * v);
            for (int m = 0; m < rows; m++) {
                acc[m][v] = vf_fma(one, vf_set(x[m][2 * pair]), acc[m][v]);
                acc[m][v] = vf_fma(two, vf_set(x[m][2 * pair + 1]), acc[m][v]);
            }
        }
    }
    for (int m = 0; m < rows; m++)
        for (int v = 0; v < VECTORS; v++) finish(p, first + m, LANES * v, acc[m][v]);
}
#endif

/* The number of rows is a constant in each loop, so that their sums stay in registers. */
#define PRODUCT(name)                                                                              \
    static void name##_rows(const Product *p, int first, int last) {                               \
        for (; last - first >= TILE; first += TILE) name##_product(p, first, TILE);                \
        switch (last - first) {                                                                    \
            case 1: name##_product(p, first, 1); break;                                            \
            case 2: name##_product(p, first, 2); break;                                            \
            case 3: name##_product(p, first, 3); break;                                            \
            case 4: name##_product(p, first, TILE < 4 ? 0 : 4); break;                             \
            case 5: name##_product(p, first, TILE < 5 ? 0 : 5); break;                             \
            case 6: name##_product(p, first, TILE < 6 ? 0 : 6); break;                             \
            case 7: name##_product(p, first, TILE < 7 ? 0 : 7); break;                             \
            default: break;                                                                        \
        }                                                                                          \
    }
PRODUCT(int4)
PRODUCT(int8)
PRODUCT(bf16)

static size_t block_bytes(const Matrix *matrix) {
    static const size_t bytes[] = {INT4_BYTES, INT8_BYTES, BF16_BYTES};
    return bytes[matrix->form] * (size_t)(matrix->columns / GROUP);
}

static void run_linear(const Op *op, const Step *step, Worker *worker) {
    static void (*const products[])(const Product *, int, int) = {int4_rows, int8_rows, bf16_rows};
    const Matrix *matrix = op->matrix;
    int32_t rows = op->selected ? step->selected_rows : step->rows;
    int32_t blocks = matrix->rows / BLOCK_ROWS, first, last;
    int32_t chunk = blocks / (worker->threads * TAKES);
    Product p = {.act = op->act,
                 .act_stride = act_stride(matrix->form, matrix->columns),
                 .out_stride = (size_t)matrix->rows,
                 .columns = matrix->columns,
                 .add = op->flag};
    while (pool_take(worker, blocks, chunk ? chunk : 1, &first, &last))
        for (int32_t row = 0; row < rows; row += ROW_TILE)
            for (int32_t block = first; block < last; block++) {
                p.block = matrix->blocks + (size_t)block * block_bytes(matrix);
                p.bias = matrix->bias ? matrix->bias + block * BLOCK_ROWS : NULL;
                p.out = op->out + block * BLOCK_ROWS;
                products[matrix->form](&p, row, row + ROW_TILE < rows ? row + ROW_TILE : rows);
            }
}
