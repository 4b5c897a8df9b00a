/* Operations on rows of activations: embedding, norm, quantisation, rotation, gates. */

enum {
    GROUP_VECTORS = GROUP / LANES,
    SEGMENT = 8 * GROUP /* columns that one thread takes of a row: a lone row is shared too */
};

static int32_t rows_of(const Op *op, const Step *step) {
    return op->selected ? step->selected_rows : step->rows;
}

/* Stores 32 numbers as products with weights of `form` read them (native.h, act_stride).
 *
 * A group that is not finite gets a scale that is not, so that nothing hides it. */
INLINE void store_group(const vf values[GROUP_VECTORS], int form, uint8_t *act, int32_t columns,
                        int32_t g) {
    if (form == FORM_BF16) {
#if defined(VARIANT_AVX512)
        float plain[GROUP];
        for (int v = 0; v < GROUP_VECTORS; v++) vf_store(plain + LANES * v, values[v]);
        uint16_t *out = (uint16_t *)(void *)act + GROUP * g;
        for (int i = 0; i < GROUP; i++) out[i] = bf16_of_float(plain[i]);
#else
        for (int v = 0; v < GROUP_VECTORS; v++)
            vf_store((float *)(void *)act + GROUP * g + LANES * v, values[v]);
#endif
        return;
    }
    vf most = vf_abs(values[0]), strange = vf_sub(values[0], values[0]);
    for (int v = 1; v < GROUP_VECTORS; v++) {
        most = vf_max(most, vf_abs(values[v]));
        strange = vf_add(strange, vf_sub(values[v], values[v]));
    }
    float largest = vf_most(most);
    vf inverse = vf_set(largest > 0.0f ? 127.0f / largest : 0.0f);
    int32_t whole[GROUP], sum = 0;
    for (int v = 0; v < GROUP_VECTORS; v++) {
        vi rounded = vi_round(vf_mul(values[v], inverse));
        memcpy(whole + LANES * v, &rounded, sizeof rounded);
    }
    int8_t *q = (int8_t *)act + GROUP * g;
    for (int i = 0; i < GROUP; i++) {
        q[i] = (int8_t)whole[i];
        sum += q[i];
    }
    int32_t groups = columns / GROUP;
    float *scales = (float *)(void *)(act + columns);
    float scale = largest / 127.0f + vf_sum(strange);
    scales[g] = scale;
    scales[groups + g] = scale * (float)sum;
    memcpy(scales + 2 * groups + g, &sum, 4);
}

static float weight_at(const Matrix *matrix, int64_t row, int32_t column) {
    int32_t g = column / GROUP, k = column % GROUP, r = (int32_t)(row % BLOCK_ROWS);
    const uint8_t *w = matrix->blocks + (size_t)(row / BLOCK_ROWS) * block_bytes(matrix);
    float halves[LANES];
    int32_t lane = r / LANES * LANES;
    if (matrix->form == FORM_BF16) {
        const uint16_t *pairs = (const uint16_t *)(const void *)(w + (size_t)g * BF16_BYTES);
        return float_of_bf16(pairs[32 * (k / 2) + 2 * r + k % 2]);
    }
    if (matrix->form == FORM_INT8) {
        w += (size_t)g * INT8_BYTES;
        vf_store(halves, vf_half((const uint16_t *)(const void *)(w + 512 + 2 * lane)));
        return halves[r - lane] * (float)(w[64 * (k / 4) + 4 * r + k % 4] - 128);
    }
    w += (size_t)g * INT4_BYTES;
    uint8_t both = w[64 * (k / 8) + 4 * r + k % 4];
    vf_store(halves, vf_half((const uint16_t *)(const void *)(w + 256 + 2 * lane)));
    float scaled = halves[r - lane] * (float)(k % 8 < 4 ? both & 15 : both >> 4);
    vf_store(halves, vf_half((const uint16_t *)(const void *)(w + 288 + 2 * lane)));
    return scaled + halves[r - lane];
}

static void run_embed(const Op *op, const Step *step, Worker *worker) {
    int32_t segments = (op->columns + SEGMENT - 1) / SEGMENT, first, last;
    while (pool_take(worker, step->rows * segments, 1, &first, &last)) {
        int32_t row = first / segments, column = first % segments * SEGMENT;
        int32_t end = column + SEGMENT < op->columns ? column + SEGMENT : op->columns;
        for (; column < end; column++)
            op->out[(size_t)row * op->columns + column] =
                op->factor * weight_at(op->matrix, step->ids[row], column);
    }
}

/* Root mean square norm (Zhang, Sennrich 2019). */
static void run_norm(const Op *op, const Step *step, Worker *worker) {
    int32_t first, last;
    size_t stride = act_stride(op->form, op->columns);
    while (pool_take(worker, rows_of(op, step), 1, &first, &last)) {
        const float *x = op->in + (size_t)first * op->columns;
        vf squares = vf_zero();
        for (int32_t i = 0; i < op->columns; i += LANES) {
            vf value = vf_load(x + i);
            squares = vf_fma(value, value, squares);
        }
        vf scale = vf_set(1.0f / sqrtf(vf_sum(squares) / (float)op->columns + op->factor));
        for (int32_t g = 0; g < op->columns / GROUP; g++) {
            vf values[GROUP_VECTORS];
            for (int v = 0; v < GROUP_VECTORS; v++) {
                int32_t i = GROUP * g + LANES * v;
                values[v] = vf_mul(vf_mul(vf_load(x + i), scale), vf_load(op->weight + i));
                if (op->flag) vf_store(op->out + (size_t)first * op->columns + i, values[v]);
            }
            if (!op->flag)
                store_group(values, op->form, op->act + (size_t)first * stride, op->columns, g);
        }
    }
}

static void run_quantise(const Op *op, const Step *step, Worker *worker) {
    int32_t segments = (op->columns + SEGMENT - 1) / SEGMENT, first, last;
    size_t stride = act_stride(op->form, op->columns);
    while (pool_take(worker, rows_of(op, step) * segments, 1, &first, &last)) {
        int32_t row = first / segments, column = first % segments * SEGMENT;
        int32_t end = column + SEGMENT < op->columns ? column + SEGMENT : op->columns;
        for (; column < end; column += GROUP) {
            vf values[GROUP_VECTORS];
            for (int v = 0; v < GROUP_VECTORS; v++)
                values[v] = vf_load(op->in + (size_t)row * op->columns + column + LANES * v);
            store_group(values, op->form, op->act + (size_t)row * stride, op->columns,
                        column / GROUP);
        }
    }
}

/* gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks, Gimpel 2016) */
INLINE vf activated(vf x, int kind) {
    if (kind == GATE_SILU) return vf_mul(x, vf_sigmoid(x));
    vf cube = vf_mul(vf_mul(x, x), x);
    vf inner = vf_mul(vf_set(0.7978845608f), vf_fma(cube, vf_set(0.044715f), x));
    vf half = vf_mul(x, vf_set(0.5f));
    return vf_fma(half, vf_tanh(inner), half);
}

static void run_gate(const Op *op, const Step *step, Worker *worker) {
    int32_t segments = (op->columns + SEGMENT - 1) / SEGMENT, first, last;
    size_t stride = act_stride(op->form, op->columns);
    while (pool_take(worker, rows_of(op, step) * segments, 1, &first, &last)) {
        int32_t row = first / segments, column = first % segments * SEGMENT;
        int32_t end = column + SEGMENT < op->columns ? column + SEGMENT : op->columns;
        const float *gate = op->in + (size_t)row * 2 * op->columns, *up = gate + op->columns;
        for (; column < end; column += GROUP) {
            vf values[GROUP_VECTORS];
            for (int v = 0; v < GROUP_VECTORS; v++) {
                int32_t i = column + LANES * v;
                values[v] = vf_mul(activated(vf_load(gate + i), op->flag), vf_load(up + i));
            }
            store_group(values, op->form, op->act + (size_t)row * stride, op->columns,
                        column / GROUP);
        }
    }
}

/* Rotates the halves of one head (RoFormer, in the order of transformers). */
INLINE void rotate(float *head, int32_t half, const float *cosines, const float *sines) {
    for (int32_t i = 0; i < half; i++) {
        float a = head[i], b = head[i + half];
        head[i] = a * cosines[i] - b * sines[i];
        head[i + half] = b * cosines[i] + a * sines[i];
    }
}

static void append(const Op *op, const float *key, const float *value, int64_t slot, int32_t head) {
    const Attention *a = op->attention;
    int32_t place = (int32_t)(slot % PAGE_TOKENS), dim = a->head_dim;
    size_t start = ((size_t)(slot / PAGE_TOKENS) * a->kv_heads + head) * (size_t)dim * PAGE_TOKENS;
    uint16_t *keys = op->pages->keys + start, *values = op->pages->values + start;
    for (int32_t i = 0; i < dim; i++) {
        keys[i / 2 * 2 * PAGE_TOKENS + 2 * place + i % 2] = bf16_of_float(key[i]);
        values[(place / 2 * dim + i) * 2 + place % 2] = bf16_of_float(value[i]);
    }
}

static void run_rope(const Op *op, const Step *step, Worker *worker) {
    const Attention *a = op->attention;
    int32_t dim = a->head_dim, half = dim / 2, shared = a->heads / a->kv_heads, first, last;
    while (pool_take(worker, step->rows * a->kv_heads, 1, &first, &last)) {
        int32_t row = first / a->kv_heads, head = first % a->kv_heads;
        float *heads = op->in + (size_t)row * (a->heads + 2 * a->kv_heads) * dim;
        float *key = heads + (a->heads + head) * dim, *value = key + a->kv_heads * dim;
        const float *cosines = a->cosines + step->positions[row] * half;
        const float *sines = a->sines + step->positions[row] * half;
        for (int32_t query = 0; query < shared; query++)
            rotate(heads + (head * shared + query) * dim, half, cosines, sines);
        rotate(key, half, cosines, sines);
        append(op, key, value, step->slots[row], head);
    }
}

static void run_select(const Op *op, const Step *step, Worker *worker) {
    int32_t first, last;
    while (pool_take(worker, step->selected_rows, 1, &first, &last))
        memcpy(op->out + (size_t)first * op->columns,
               op->in + (size_t)step->selected[first] * op->columns,
               (size_t)op->columns * sizeof(float));
}

static void run_add(const Op *op, const Step *step, Worker *worker) {
    int32_t first, last;
    while (pool_take(worker, rows_of(op, step), 1, &first, &last))
        for (int32_t i = 0; i < op->columns; i++)
            op->out[(size_t)first * op->columns + i] += op->in[(size_t)first * op->columns + i];
}
