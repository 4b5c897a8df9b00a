/* Attention over paged keys and values.
 *
 * The softmax is made online, in chunks of context: each has its own maximum, sum and weighted
 * values, and chunks are merged by rescaling to the larger maximum (FlashAttention: Dao et al.,
 * arXiv 2205.14135). Where rows are few, threads share one row's chunks and merge them in a second
 * phase (Flash-Decoding: Dao et al., 2023).
 *
 * Chunks begin at fixed places of the context and are merged in their order by one formula, and
 * inside a chunk every sum runs over tokens in order: so a row's bits depend on its own query and
 * context alone, and tiles, blocks and threads are free to be what is fastest.
 */

enum {
    CHUNK = 256,     /* tokens; chunks begin at its multiples */
    TILE_LINES = 48, /* their queries and scores stay in the inner caches */
    STRIP = 16,      /* tokens of a page, or numbers of a value, that a block works on at once */
    STRIP_VECTORS = STRIP / LANES,
    PART_TAIL = 16,           /* numbers of a line's part beside its values; keeps parts aligned */
    MOST_SPLIT_LINES = 16,    /* the parts of so few lines are small beside the keys they read */
    ITEMS_PER_THREAD = 8,     /* that keep threads equally busy */
    MOST_SHARED = 4194304,    /* floats: bounds what split tiles write */
    PAGES_AHEAD = 2,          /* of keys: about the time that memory takes */
};

/* Lines of a block: its sums, with a strip and a factor, fill the vector registers. Unless they are
 * kept there, GCC puts products into the factor's register and spills sums, which costs a third. */
#if defined(VARIANT_AVX512) && !defined(EMULATED)
#define BLOCK_LINES 12
#define EACH_LINES(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#define KEEP_IN_REGISTER(sum) __asm__("" : "+v"(sum))
#elif defined(VARIANT_AVX2)
#define BLOCK_LINES 6
#define EACH_LINES(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define KEEP_IN_REGISTER(sum) __asm__("" : "+x"(sum))
#else
#define BLOCK_LINES 2
#define EACH_LINES(X) X(1) X(2)
#define KEEP_IN_REGISTER(sum) (void)0
#endif

/* Consecutive rows of one sequence, attended together so that they share loads of keys and values.
 * A line is one query head of one row: for a key/value head a tile has rows * group lines, those of
 * a row side by side. */
typedef struct {
    int32_t sequence;
    int32_t row, rows;
    int64_t position; /* of the first row */
    const int32_t *pages;
    int32_t first_chunk, chunks; /* that any of the rows sees */
    int split;                   /* whether each chunk is an item */
    int32_t item, items;         /* the first of its items in the step, and all of them */
    size_t part, parts;          /* floats: where its parts begin in shared memory; how many */
} Tile;

/* What a thread works on: one key/value head of a tile. */
typedef struct {
    const Op *op;
    const Tile *tile;
    int32_t kv_head;
    int32_t lines, dim, stride; /* stride: floats of a line's part */
    float *queries;             /* packed: per block of lines, [dim, lines of the block] */
    float *weights;             /* [lines, CHUNK] scores, then their exponentials */
    float *parts;               /* [lines, stride] of the chunk */
    float *state;               /* [lines, stride] of all chunks so far */
} Job;

/* A line's part: values [dim], the maximum score, the sum of weights. */
INLINE float *part_most(float *part, int dim) { return part + dim; }
INLINE float *part_sum(float *part, int dim) { return part + dim + 1; }

/* Tokens of a chunk, counted from its start. Empty if from >= to. */
typedef struct {
    int from, to;
} Span;

INLINE int least_of(int a, int b) { return a < b ? a : b; }
INLINE int most_of(int a, int b) { return a > b ? a : b; }

INLINE int32_t head_group(const Attention *attention) {
    return attention->heads / attention->kv_heads;
}

static int32_t tile_rows(const Attention *attention) {
    return most_of(1, TILE_LINES / head_group(attention));
}

static int64_t first_seen(const Attention *attention, int64_t position) {
    int64_t first = position - attention->window + 1;
    return attention->window && first > 0 ? first : 0;
}

/* The tokens of a chunk that a row at `position` sees. */
static Span seen_span(const Attention *attention, int64_t position, int32_t chunk) {
    int64_t start = (int64_t)chunk * CHUNK;
    int64_t from = first_seen(attention, position) - start, to = position + 1 - start;
    from = from < 0 ? 0 : from > CHUNK ? CHUNK : from;
    to = to < 0 ? 0 : to > CHUNK ? CHUNK : to;
    return (Span){(int)from, (int)to};
}

/* Before the first tile. */
static Tile tiles_start(const Step *step) {
    return (Tile){.sequence = step->sequences, .row = step->rows};
}

/* Moves to the next tile; 0 when there is none. Tiles come last first: later rows have more to do,
 * and what is started late should be short. `few`: whether tiles alone leave threads idle. */
static int next_tile(const Attention *attention, const Step *step, int few, Tile *tile) {
    int32_t end = tile->row;
    if (end <= 0) return 0;
    while (tile->sequence == step->sequences || end <= step->qo_indptr[tile->sequence])
        tile->sequence--;
    int32_t first = step->qo_indptr[tile->sequence], most = tile_rows(attention);
    tile->row = first + (end - 1 - first) / most * most;
    tile->rows = end - tile->row;
    tile->position = step->positions[tile->row];
    tile->pages = step->kv_indices + step->kv_indptr[tile->sequence];
    tile->first_chunk = (int32_t)(first_seen(attention, tile->position) / CHUNK);
    tile->chunks = (int32_t)((tile->position + tile->rows - 1) / CHUNK) + 1 - tile->first_chunk;
    tile->item += tile->items;
    tile->part += tile->split ? tile->parts : 0;
    tile->parts = (size_t)tile->rows * (size_t)attention->heads * (size_t)tile->chunks *
                  (size_t)(attention->head_dim + PART_TAIL);
    tile->split = tile->chunks > 1 && tile->part + tile->parts <= MOST_SHARED &&
                  (few || tile->rows * head_group(attention) <= MOST_SPLIT_LINES);
    tile->items = attention->kv_heads * (tile->split ? tile->chunks : 1);
    return 1;
}

/* Key or value pairs of the job's head in the page of a token. */
INLINE const uint16_t *head_page(const Job *job, const uint16_t *pool, int64_t token) {
    size_t page = (size_t)job->tile->pages[token / PAGE_TOKENS];
    size_t head = page * (size_t)job->op->attention->kv_heads + (size_t)job->kv_head;
    return pool + head * (size_t)(PAGE_TOKENS * job->dim);
}

/* Pages that are read soon: their lines are asked for from memory while others are worked on. */
typedef struct {
    const uint16_t *keys, *values;
} Ahead;

/* How lines fall into blocks of nearly one size: the first line of block `index`. */
INLINE int block_start(int lines, int blocks, int index) { return lines * index / blocks; }
INLINE int blocks_of(int lines) { return (lines + BLOCK_LINES - 1) / BLOCK_LINES; }

INLINE void load_firsts(vf strip[STRIP_VECTORS], const uint16_t *pairs) {
#pragma GCC unroll 4
    for (int v = 0; v < STRIP_VECTORS; v++) strip[v] = vf_first(pairs + 2 * LANES * v);
}
INLINE void load_seconds(vf strip[STRIP_VECTORS], const uint16_t *pairs) {
#pragma GCC unroll 4
    for (int v = 0; v < STRIP_VECTORS; v++) strip[v] = vf_second(pairs + 2 * LANES * v);
}

/* sums[line] += factors[line * stride] * strip */
INLINE void add_products(const int lines, vf sums[BLOCK_LINES][STRIP_VECTORS],
                         const vf strip[STRIP_VECTORS], const float *factors, const int stride) {
#pragma GCC unroll 12
    for (int line = 0; line < lines; line++) {
        vf factor = vf_set(factors[line * stride]);
#pragma GCC unroll 4
        for (int v = 0; v < STRIP_VECTORS; v++) {
            sums[line][v] = vf_fma(strip[v], factor, sums[line][v]);
            KEEP_IN_REGISTER(sums[line][v]);
        }
    }
}

/* Scores [lines, 16] of a page's keys [dim / 2, 16, 2], in rows of CHUNK; queries [dim, lines]. */
INLINE void score_block(const int lines, const float *queries, const uint16_t *keys, int dim,
                        Ahead ahead, float *scores) {
    vf sums[BLOCK_LINES][STRIP_VECTORS], strip[STRIP_VECTORS];
#pragma GCC unroll 12
    for (int line = 0; line < lines; line++)
#pragma GCC unroll 4
        for (int v = 0; v < STRIP_VECTORS; v++) sums[line][v] = vf_zero();
    for (int d = 0; d < dim; d += 2, keys += 2 * PAGE_TOKENS, queries += 2 * lines) {
        __builtin_prefetch(ahead.keys + d * PAGE_TOKENS);
        __builtin_prefetch(ahead.values + d * PAGE_TOKENS);
        load_firsts(strip, keys);
        add_products(lines, sums, strip, queries, 1);
        load_seconds(strip, keys);
        add_products(lines, sums, strip, queries + lines, 1);
    }
#pragma GCC unroll 12
    for (int line = 0; line < lines; line++)
#pragma GCC unroll 4
        for (int v = 0; v < STRIP_VECTORS; v++)
            vf_store(scores + line * CHUNK + v * LANES, sums[line][v]);
}

/* Adds to sums [lines, 16] the products of weights [lines, CHUNK] and a span of tokens within one
 * page: `pairs` begins at the page's values of the strip, [8, dim, 2]. Tokens outside of the span
 * are not touched, not even times zero: they may hold anything. */
INLINE void add_page(const int lines, vf sums[BLOCK_LINES][STRIP_VECTORS], const float *weights,
                     const uint16_t *pairs, int dim, Span span) {
    vf strip[STRIP_VECTORS];
    int token = span.from;
    pairs += (size_t)(token % PAGE_TOKENS / 2) * (size_t)(2 * dim);
    if (token % 2) {
        load_seconds(strip, pairs);
        add_products(lines, sums, strip, weights + token++, CHUNK);
        pairs += 2 * dim;
    }
    for (; token + 1 < span.to; token += 2, pairs += 2 * dim) {
        load_firsts(strip, pairs);
        add_products(lines, sums, strip, weights + token, CHUNK);
        load_seconds(strip, pairs);
        add_products(lines, sums, strip, weights + token + 1, CHUNK);
    }
    if (token < span.to) {
        load_firsts(strip, pairs);
        add_products(lines, sums, strip, weights + token, CHUNK);
    }
}

/* parts [lines, stride] += weights [lines, CHUNK] * values of a span of the chunk. */
INLINE void value_block(const int lines, const Job *job, const float *weights, int32_t chunk,
                        Span span, float *parts) {
    for (int d = 0; d < job->dim; d += STRIP) {
        vf sums[BLOCK_LINES][STRIP_VECTORS];
#pragma GCC unroll 12
        for (int line = 0; line < lines; line++)
#pragma GCC unroll 4
            for (int v = 0; v < STRIP_VECTORS; v++)
                sums[line][v] = vf_load(parts + line * job->stride + d + v * LANES);
        for (int token = span.from, end; token < span.to; token = end) {
            int64_t place = (int64_t)chunk * CHUNK + token;
            const uint16_t *page = head_page(job, job->op->pages->values, place);
            end = least_of(span.to, (token / PAGE_TOKENS + 1) * PAGE_TOKENS);
            add_page(lines, sums, weights, page + 2 * d, job->dim, (Span){token, end});
        }
#pragma GCC unroll 12
        for (int line = 0; line < lines; line++)
#pragma GCC unroll 4
            for (int v = 0; v < STRIP_VECTORS; v++)
                vf_store(parts + line * job->stride + d + v * LANES, sums[line][v]);
    }
}

/* Scores of all lines for the page whose first token is `token` of the chunk. */
static void score_page(const Job *job, const uint16_t *keys, Ahead ahead, int token) {
    int blocks = blocks_of(job->lines);
    for (int index = 0; index < blocks; index++) {
        int first = block_start(job->lines, blocks, index);
        const float *queries = job->queries + first * job->dim;
        float *scores = job->weights + first * CHUNK + token;
        switch (block_start(job->lines, blocks, index + 1) - first) {
#define CASE(count) \
    case count: score_block(count, queries, keys, job->dim, ahead, scores); break;
            EACH_LINES(CASE)
#undef CASE
        }
    }
}

/* Adds the values of a span of the chunk to the parts of `lines` lines from `first` on. */
static void add_values(const Job *job, int first, int lines, int32_t chunk, Span span,
                       float *parts) {
    if (span.from >= span.to) return;
    int blocks = blocks_of(lines);
    for (int index = 0; index < blocks; index++) {
        int line = first + block_start(lines, blocks, index);
        const float *weights = job->weights + line * CHUNK;
        float *block_parts = parts + line * job->stride;
        switch (first + block_start(lines, blocks, index + 1) - line) {
#define CASE(count) \
    case count: value_block(count, job, weights, chunk, span, block_parts); break;
            EACH_LINES(CASE)
#undef CASE
        }
    }
}

INLINE void fill(float *numbers, int from, int to, float number) {
    for (int index = from; index < to; index++) numbers[index] = number;
}

static void cap_scores(float *scores, int from, int to, float cap) {
    vf limit = vf_set(cap), inverse = vf_set(1.0f / cap);
    for (int token = from; token < to; token += LANES) {
        vf score = vf_mul(vf_load(scores + token), inverse);
        vf_store(scores + token, vf_mul(vf_tanh(score), limit));
    }
}

/* Turns a line's scores [CHUNK] into weights over a span and begins its part: maximum, sum, values
 * of zero. What the span's pages hold beside it is overwritten, so that it never counts. */
static void weigh_line(const Attention *attention, float *scores, Span span, float *part) {
    int dim = attention->head_dim;
    int from = span.from / PAGE_TOKENS * PAGE_TOKENS;
    int to = (span.to + PAGE_TOKENS - 1) / PAGE_TOKENS * PAGE_TOKENS;
    if (attention->soft_cap > 0.0f) cap_scores(scores, from, to, attention->soft_cap);
    fill(scores, from, span.from, -INFINITY);
    fill(scores, span.to, to, -INFINITY);
    vf highest = vf_set(-INFINITY);
    for (int token = from; token < to; token += LANES)
        highest = vf_max(vf_load(scores + token), highest);
    float most = vf_most(highest);
    vf shift = vf_set(most);
    for (int token = from; token < to; token += LANES)
        vf_store(scores + token, vf_exp(vf_sub(vf_load(scores + token), shift)));
    fill(scores, from, span.from, 0.0f); /* vf_exp gives a little even for -inf */
    fill(scores, span.to, to, 0.0f);
    vf sums[STRIP_VECTORS];
    for (int v = 0; v < STRIP_VECTORS; v++) sums[v] = vf_zero();
    for (int token = from; token < to; token += STRIP)
#pragma GCC unroll 4
        for (int v = 0; v < STRIP_VECTORS; v++)
            sums[v] = vf_add(sums[v], vf_load(scores + token + v * LANES));
    for (int v = 1; v < STRIP_VECTORS; v++) sums[0] = vf_add(sums[0], sums[v]);
    fill(part, 0, dim, 0.0f);
    *part_most(part, dim) = most;
    *part_sum(part, dim) = vf_sum(sums[0]);
}

/* Scores of the chunk's pages in a span, while their values and later keys are on their way. */
static void score_chunk(const Job *job, int32_t chunk, Span span) {
    const Pages *pages = job->op->pages;
    int64_t start = (int64_t)chunk * CHUNK, last = job->tile->position + job->tile->rows - 1;
    for (int token = span.from / PAGE_TOKENS * PAGE_TOKENS; token < span.to; token += PAGE_TOKENS) {
        int64_t place = start + token, later = place + PAGES_AHEAD * PAGE_TOKENS;
        Ahead ahead = {head_page(job, pages->keys, later < last ? later : last),
                       head_page(job, pages->values, place)};
        score_page(job, head_page(job, pages->keys, place), ahead, token);
    }
}

/* The parts [lines, stride] of one chunk. A row that sees nothing of it has none. */
static void attend_chunk(const Job *job, int32_t chunk, float *parts) {
    const Attention *attention = job->op->attention;
    const Tile *tile = job->tile;
    int group = head_group(attention);
    Span any = {CHUNK, 0}, all = {0, CHUNK}; /* seen by any row; seen by all */
    for (int row = 0; row < tile->rows; row++) {
        Span seen = seen_span(attention, tile->position + row, chunk);
        any = (Span){least_of(any.from, seen.from), most_of(any.to, seen.to)};
        all = (Span){most_of(all.from, seen.from), least_of(all.to, seen.to)};
    }
    if (all.from >= all.to) all = (Span){CHUNK, CHUNK};
    score_chunk(job, chunk, any);
    for (int row = 0; row < tile->rows; row++) {
        Span seen = seen_span(attention, tile->position + row, chunk);
        if (seen.from >= seen.to) continue;
        for (int line = row * group; line < (row + 1) * group; line++)
            weigh_line(attention, job->weights + line * CHUNK, seen, parts + line * job->stride);
        add_values(job, row * group, group, chunk,
                   (Span){seen.from, least_of(seen.to, all.from)}, parts);
    }
    add_values(job, 0, job->lines, chunk, all, parts);
    for (int row = 0; row < tile->rows; row++) {
        Span seen = seen_span(attention, tile->position + row, chunk);
        add_values(job, row * group, group, chunk, (Span){most_of(seen.from, all.to), seen.to},
                   parts);
    }
}

static void begin_state(float *state, int dim) {
    fill(state, 0, dim, 0.0f);
    *part_most(state, dim) = -INFINITY;
    *part_sum(state, dim) = 0.0f;
}

/* Adds a chunk's part of a line to what earlier chunks gave. */
static void merge_part(float *state, float *part, int dim) {
    float before = *part_most(state, dim), now = *part_most(part, dim);
    float most = before > now ? before : now;
    float factors[LANES] = {before - most, now - most};
    vf_store(factors, vf_exp(vf_load(factors)));
    vf keep = vf_set(factors[0]), take = vf_set(factors[1]);
    for (int d = 0; d < dim; d += LANES) {
        vf kept = vf_mul(vf_load(state + d), keep);
        vf_store(state + d, vf_fma(vf_load(part + d), take, kept));
    }
    *part_most(state, dim) = most;
    *part_sum(state, dim) = *part_sum(state, dim) * factors[0] + *part_sum(part, dim) * factors[1];
}

static void write_line(const Op *op, int32_t row, int32_t head, float *state) {
    int dim = op->attention->head_dim;
    size_t line = (size_t)row * (size_t)op->attention->heads + (size_t)head;
    float *out = op->out + line * (size_t)dim;
    vf scale = vf_set(1.0f / *part_sum(state, dim));
    for (int d = 0; d < dim; d += LANES) vf_store(out + d, vf_mul(vf_load(state + d), scale));
}

/* Scales the job's queries and lays them out as score_block reads them. */
static void pack_queries(const Job *job) {
    const Attention *attention = job->op->attention;
    int group = head_group(attention), blocks = blocks_of(job->lines);
    size_t width = (size_t)(attention->heads + 2 * attention->kv_heads) * (size_t)job->dim;
    for (int index = 0; index < blocks; index++) {
        int first = block_start(job->lines, blocks, index);
        int end = block_start(job->lines, blocks, index + 1);
        float *packed = job->queries + first * job->dim;
        for (int line = first; line < end; line++) {
            const float *query = job->op->in + (size_t)(job->tile->row + line / group) * width +
                                 (job->kv_head * group + line % group) * job->dim;
            for (int d = 0; d < job->dim; d++)
                packed[d * (end - first) + line - first] = query[d] * attention->scale;
        }
    }
}

/* One key/value head of a tile, chunk after chunk. */
static void attend_whole(const Job *job) {
    const Attention *attention = job->op->attention;
    const Tile *tile = job->tile;
    int group = head_group(attention);
    for (int line = 0; line < job->lines; line++)
        begin_state(job->state + line * job->stride, job->dim);
    for (int32_t chunk = tile->first_chunk; chunk < tile->first_chunk + tile->chunks; chunk++) {
        attend_chunk(job, chunk, job->parts);
        for (int line = 0; line < job->lines; line++) {
            Span seen = seen_span(attention, tile->position + line / group, chunk);
            if (seen.from < seen.to)
                merge_part(job->state + line * job->stride, job->parts + line * job->stride,
                           job->dim);
        }
    }
    for (int line = 0; line < job->lines; line++)
        write_line(job->op, tile->row + line / group, job->kv_head * group + line % group,
                   job->state + line * job->stride);
}

/* Where a split tile's parts of a head and chunk are, [lines, stride]. */
INLINE float *shared_parts(const Job *job, float *shared, int32_t kv_head, int32_t chunk) {
    size_t index = (size_t)kv_head * (size_t)job->tile->chunks +
                   (size_t)(chunk - job->tile->first_chunk);
    return shared + job->tile->part + index * (size_t)job->lines * (size_t)job->stride;
}

/* Merges all chunks of one line of a split tile: `index` of its rows * heads. */
static void merge_line(const Job *job, float *shared, int32_t index) {
    const Attention *attention = job->op->attention;
    const Tile *tile = job->tile;
    int32_t row = index / attention->heads, head = index % attention->heads;
    int32_t group = head_group(attention), line = row * group + head % group;
    begin_state(job->state, job->dim);
    for (int32_t chunk = tile->first_chunk; chunk < tile->first_chunk + tile->chunks; chunk++) {
        Span seen = seen_span(attention, tile->position + row, chunk);
        if (seen.from >= seen.to) continue;
        float *parts = shared_parts(job, shared, head / group, chunk);
        merge_part(job->state, parts + line * job->stride, job->dim);
    }
    write_line(job->op, tile->row + row, head, job->state);
}

/* Item `index` of the job's tile: a key/value head, or a chunk of one. */
static void attend_item(Job *job, float *shared, int32_t index) {
    const Tile *tile = job->tile;
    int32_t parts = tile->split ? tile->chunks : 1;
    job->kv_head = index / parts;
    pack_queries(job);
    if (!tile->split) {
        attend_whole(job);
        return;
    }
    int32_t chunk = tile->first_chunk + index % parts;
    attend_chunk(job, chunk, shared_parts(job, shared, job->kv_head, chunk));
}

static int32_t lines_at_most(const Attention *attention) {
    return tile_rows(attention) * head_group(attention);
}

/* A job's memory, cut out of a thread's scratch. */
static Job job_of(const Op *op, const Tile *tile, float *scratch) {
    const Attention *attention = op->attention;
    size_t lines = (size_t)lines_at_most(attention), dim = (size_t)attention->head_dim;
    size_t stride = dim + PART_TAIL;
    float *weights = scratch + lines * dim, *parts = weights + lines * CHUNK;
    return (Job){.op = op, .tile = tile, .dim = (int32_t)dim, .stride = (int32_t)stride,
                 .queries = scratch, .weights = weights, .parts = parts,
                 .state = parts + lines * stride};
}

/* Both phases walk the tiles alongside the items that a thread takes, which only grow. */
static void attend_items(const Op *op, const Step *step, int few, int32_t items, Worker *worker) {
    Tile tile = tiles_start(step);
    Job job = job_of(op, &tile, worker->scratch);
    for (int32_t item, end; pool_take(worker, items, 1, &item, &end);) {
        while (item >= tile.item + tile.items) next_tile(op->attention, step, few, &tile);
        job.lines = tile.rows * head_group(op->attention);
        attend_item(&job, worker->shared, item - tile.item);
    }
}

static void merge_items(const Op *op, const Step *step, int few, int32_t items, Worker *worker) {
    Tile tile = tiles_start(step);
    Job job = job_of(op, &tile, worker->scratch);
    int32_t begin = 0, count = 0; /* items of the tile */
    for (int32_t item, end; pool_take(worker, items, 1, &item, &end);) {
        while (item >= begin + count) {
            next_tile(op->attention, step, few, &tile);
            begin += count;
            count = tile.split ? tile.rows * op->attention->heads : 0;
        }
        job.lines = tile.rows * head_group(op->attention);
        merge_line(&job, worker->shared, item - begin);
    }
}

/* out [N, heads * head_dim] = attention of in [N, heads + 2 kv_heads, head_dim] over the pages,
 * which hold the keys and values of these rows already. */
static void run_attend(const Op *op, const Step *step, Worker *worker) {
    int32_t tiles = 0, items = 0, merges = 0;
    for (Tile tile = tiles_start(step); next_tile(op->attention, step, 0, &tile);) tiles++;
    int few = tiles * op->attention->kv_heads < ITEMS_PER_THREAD * worker->threads;
    for (Tile tile = tiles_start(step); next_tile(op->attention, step, few, &tile);) {
        items += tile.items;
        merges += tile.split ? tile.rows * op->attention->heads : 0;
    }
    attend_items(op, step, few, items, worker);
    if (!merges) return;
    pool_barrier(worker);
    merge_items(op, step, few, merges, worker);
}

/* Floats of scratch that a thread needs, whatever the context. */
static size_t attend_scratch(const Attention *attention, int64_t context) {
    (void)context;
    size_t lines = (size_t)lines_at_most(attention), dim = (size_t)attention->head_dim;
    return lines * (dim + CHUNK + 2 * (dim + PART_TAIL));
}

/* Floats that hold the parts of split tiles, whatever the number of threads. */
static size_t attend_shared(const Attention *attention, const Step *step) {
    size_t floats = 0;
    for (Tile tile = tiles_start(step); next_tile(attention, step, 0, &tile);)
        if (tile.chunks > 1) floats += tile.parts;
    return floats < MOST_SHARED ? floats : MOST_SHARED;
}
