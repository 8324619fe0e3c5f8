#include "state/digest.h"

#include "base/hash.h"

#include "nn/share.h"

enum { ARRAYS = ZERO_STATES, ENDS = 2 };

#define MERGED 16 /* blocks of a shared tensor, put together at once */

struct zero_digest_work {
    const zero_model *model;
    zero_comm *comm;
    zero_digest_source source;
    const zero_partition **partitions; /* [n_groups] */
    XXH3_state_t *list;
    XXH3_state_t *streams[ARRAYS]; /* of a block that arrives in several pieces */
    const zero_tensor **sorted;    /* [n_tensors] */
    /* Two words for each block that this rank has a part of, tensor by tensor as sorted; of
     * a shared model for each block of the longest tensor. Zeros are another rank's. */
    uint64_t *own;
    int64_t *first; /* [n_tensors + 1] of a tensor in `own` */
    /* [ENDS][ARRAYS][ZERO_DIGEST_BLOCK] this rank's elements of the blocks that it
     * shares with ranks before it and after it; other elements have any values */
    float *ends;
    float *foreign; /* [ZERO_DIGEST_BLOCK] a block of which this rank has no element */
    /* The same of all blocks of the longest tensor, on all ranks, and a flag. */
    uint64_t *hashes;
    float *merged; /* [MERGED][ARRAYS][merged_len()]; NULL: not shared */
    /* The present tensor. */
    const zero_tensor *tensor;
    int arrays;           /* its master and its states */
    zero_range blocks;    /* those in `own` */
    uint64_t *own_hashes; /* their words */
    zero_range merging;   /* elements of the whole tensor that are in `merged` */
    zero_range all;       /* the tensor, in its group; a shared one as a whole, from 0 */
    zero_range mine;      /* this rank's part, in its group */
    zero_failure failure; /* the first one in reading */
};

static int by_name(const void *a, const void *b)
{
    const zero_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int64_t blocks_of(zero_range tensor)
{
    return zero_divide_up(zero_range_len(tensor), ZERO_DIGEST_BLOCK);
}

static zero_range block_at(const zero_digest_work *d, int64_t b)
{
    int64_t begin = d->all.begin + b * ZERO_DIGEST_BLOCK;
    return (zero_range){begin, zero_min(begin + ZERO_DIGEST_BLOCK, d->all.end)};
}

static uint64_t *hash_at(const zero_digest_work *d, int array, int64_t b)
{
    return d->own_hashes + 2 * (array * zero_range_len(d->blocks) + b - d->blocks.begin);
}

/* Memory for a block of which some elements are on other ranks. */
static float *shared_block(const zero_digest_work *d, int array, zero_range block)
{
    if (zero_range_is_empty(zero_range_overlap(block, d->mine))) return d->foreign;
    int end = block.begin < d->mine.begin ? 0 : 1;
    return d->ends + (end * ARRAYS + array) * ZERO_DIGEST_BLOCK;
}

/* The first rank that has the present tensor: the stages of a pipeline have others. */
static int first_rank(const zero_digest_work *d)
{
    const zero_digest_source *s = &d->source;
    return s->first ? s->first(s->arg, d->tensor->group) : 0;
}

/* The elements of the present tensor's group that this rank hashes. Ranks of other replicas
 * than the first hash nothing, because they hold the same. */
static zero_range hashed_here(const zero_digest_work *d, const zero_partition *p)
{
    int rank = d->comm->rank / (d->merged ? d->model->share.ranks : 1) - first_rank(d);
    bool is_one = rank >= 0 && rank < p->n_ranks;
    return is_one ? zero_partition_shard(p, rank) : (zero_range){0, 0};
}

/* After a failure this rank reads nothing any more: add_hashes() tells the others. */
static void read_with(zero_digest_work *d, zero_range range, zero_state_visitor *visit)
{
    if (zero_range_is_empty(range) || d->failure.status != ZERO_OK) return;
    d->failure =
        zero_failure_keep(d->source.read(d->source.arg, d->tensor->group, range, visit, d));
}

/* ---- this rank's part ---- */

static void keep_hash(uint64_t hash[2], XXH128_hash_t h)
{
    hash[0] = h.high64;
    hash[1] = h.low64;
}

/* A piece may begin and end anywhere within a block. */
static zero_status take_piece(void *arg, const zero_state_block *piece)
{
    zero_digest_work *d = arg;
    for (int64_t at = piece->range.begin, stop; at < piece->range.end; at = stop) {
        int64_t b = (at - d->all.begin) / ZERO_DIGEST_BLOCK;
        const zero_range block = block_at(d, b);
        /* The block lies on this rank as a whole. */
        const bool is_whole = d->mine.begin <= block.begin && block.end <= d->mine.end;
        stop = zero_min(block.end, piece->range.end);
        for (int a = 0; a < d->arrays; a++) {
            const float *x = piece->part[a] + (at - piece->range.begin);
            const size_t bytes = (size_t)(stop - at) * sizeof *x;
            if (!is_whole) {
                memcpy(shared_block(d, a, block) + (at - block.begin), x, bytes);
            } else if (at == block.begin && stop == block.end) {
                keep_hash(hash_at(d, a, b), XXH3_128bits(x, bytes));
            } else {
                if (at == block.begin) XXH3_128bits_reset(d->streams[a]);
                XXH3_128bits_update(d->streams[a], x, bytes);
                if (stop == block.end)
                    keep_hash(hash_at(d, a, b), XXH3_128bits_digest(d->streams[a]));
            }
        }
    }
    return ZERO_OK;
}

/* ---- a shared model ---- */

/* The floats that an array of this many elements takes in `merged`. Ranks exchange words
 * of two floats. */
static int64_t merged_len(int64_t elements)
{
    return zero_round_up(elements, 2);
}

/* Only the tensor's last block may be shorter than the others. */
static float *merged_at(const zero_digest_work *d, int array, int64_t whole)
{
    int64_t at = whole - d->merging.begin, begin = at - at % ZERO_DIGEST_BLOCK;
    int64_t n = zero_min(zero_range_len(d->merging) - begin, ZERO_DIGEST_BLOCK);
    return d->merged + begin * ARRAYS + array * merged_len(n) + (at - begin);
}

static zero_status put_piece(void *arg, const zero_state_block *piece)
{
    zero_digest_work *d = arg;
    int64_t offset = d->tensor->offset, end = piece->range.end - offset;
    for (int64_t at = piece->range.begin - offset; at < end;) {
        zero_stretch run = zero_share_run(d->tensor, at, end);
        /* Elements of one run go to the blocks of the whole tensor. */
        for (int64_t from = run.whole, stop; from < run.whole + run.n; from = stop) {
            stop = zero_min((from / ZERO_DIGEST_BLOCK + 1) * ZERO_DIGEST_BLOCK,
                            run.whole + run.n);
            int64_t skip = at + offset - piece->range.begin + from - run.whole;
            for (int a = 0; a < d->arrays; a++)
                memcpy(merged_at(d, a, from), piece->part[a] + skip,
                       (size_t)(stop - from) * sizeof(float));
        }
        at += run.n;
    }
    return ZERO_OK;
}

/* Replicated tensors count once, on the first ranks of the TP groups. */
static zero_status hash_whole(zero_digest_work *d)
{
    const zero_tensor *t = d->tensor;
    zero_range mine = hashed_here(d, d->partitions[t->group]);
    if (zero_tensor_is_replicated(t) && d->model->share.rank > 0) mine = (zero_range){0, 0};
    mine = zero_range_overlap(mine, zero_range_of_tensor(t));
    zero_clear(d->own, 2 * ARRAYS * blocks_of(d->all));
    for (int64_t b = 0; b < blocks_of(d->all); b += MERGED) {
        /* Ranks take turns in hashing the blocks, which all of them have. */
        int64_t n = zero_min(MERGED, blocks_of(d->all) - b);
        d->merging = (zero_range){block_at(d, b).begin, block_at(d, b + n - 1).end};
        int64_t floats = ARRAYS * merged_len(zero_range_len(d->merging));
        zero_clear(d->merged, floats);
        /* This rank's elements among some of the whole tensor's. They adjoin, as both are
         * in one order. */
        zero_range here = {0, 0};
        for (int64_t at = d->merging.begin; at < d->merging.end;) {
            zero_stretch run = zero_share_run_of_whole(t, at, d->merging.end);
            if (run.n == 0) break;
            if (zero_range_is_empty(here)) here.begin = run.local;
            here.end = run.local + run.n;
            at = run.whole + run.n;
        }
        zero_range range = zero_range_overlap(
            mine, (zero_range){t->offset + here.begin, t->offset + here.end});
        read_with(d, range, put_piece);
        ZERO_TRY(zero_comm_or(d->comm, floats / 2, (uint64_t *)(void *)d->merged));
        for (int64_t i = b; i < b + n; i++)
            for (int a = 0; a < d->arrays && i % d->comm->size == d->comm->rank; a++) {
                zero_range block = block_at(d, i);
                keep_hash(hash_at(d, a, i),
                          XXH3_128bits(merged_at(d, a, block.begin),
                                       zero_range_bytes(block, ZERO_FP32)));
            }
    }
    return ZERO_OK;
}

/* ---- all of it ---- */

/* The tensor on all ranks together: of a shared model the whole one. */
static zero_range all_of(const zero_model *model, const zero_tensor *t)
{
    if (model->share.ranks <= 1) return zero_range_of_tensor(t);
    return (zero_range){0, t->whole_rows * t->whole_cols};
}

/* Makes sorted[i] the present tensor. */
static void select_tensor(zero_digest_work *d, int i)
{
    const zero_tensor *t = d->tensor = d->sorted[i];
    d->arrays = zero_rule_parts(d->source.optimizer, t);
    d->all = all_of(d->model, t);
    d->own_hashes = d->merged ? d->own : d->own + d->first[i];
    d->blocks = (zero_range){0, blocks_of(d->all)};
    if (d->merged) return;
    d->mine = zero_range_overlap(hashed_here(d, d->partitions[t->group]), d->all);
    if (zero_range_is_empty(d->mine)) d->mine = (zero_range){d->all.begin, d->all.begin};
    d->blocks = (zero_range){(d->mine.begin - d->all.begin) / ZERO_DIGEST_BLOCK,
                             blocks_of((zero_range){d->all.begin, d->mine.end})};
}

/* This rank's elements of the tensor that are in blocks which it has as a whole. */
static zero_range whole_blocks(const zero_digest_work *d)
{
    zero_range r = {d->mine.end, d->mine.begin};
    for (int64_t b = d->blocks.begin; b < d->blocks.end; b++) {
        zero_range block = block_at(d, b);
        if (block.begin < d->mine.begin || block.end > d->mine.end) continue;
        r = (zero_range){zero_min(r.begin, block.begin), block.end};
    }
    return r.begin < r.end ? r : (zero_range){d->mine.end, d->mine.end};
}

/* Completes the blocks of which this rank has a part on every rank, and hashes them on the
 * rank that owns their beginning. */
static zero_status hash_shared_blocks(zero_digest_work *d)
{
    const zero_partition *p = d->partitions[d->tensor->group];
    zero_range whole = whole_blocks(d);
    read_with(d, (zero_range){d->mine.begin, whole.begin}, take_piece);
    read_with(d, (zero_range){whole.end, d->mine.end}, take_piece);
    for (int64_t b = 0; b < blocks_of(d->all); b++) {
        zero_range block = block_at(d, b);
        int owner = zero_partition_owner_of(p, block.begin);
        if (block.end <= zero_partition_piece(p, owner).end) continue;
        for (int a = 0; a < d->arrays; a++) {
            float *x = shared_block(d, a, block);
            for (int64_t at = block.begin, stop; at < block.end; at = stop) {
                int holder = zero_partition_owner_of(p, at);
                stop = zero_min(block.end, zero_partition_piece(p, holder).end);
                ZERO_TRY(zero_comm_broadcast(d->comm, first_rank(d) + holder,
                                             x + (at - block.begin),
                                             (size_t)(stop - at) * sizeof *x));
            }
            if (first_rank(d) + owner == d->comm->rank)
                keep_hash(hash_at(d, a, b),
                          XXH3_128bits(x, zero_range_bytes(block, ZERO_FP32)));
        }
    }
    return ZERO_OK;
}

/* The ranks' hashes of the tensor together; other ranks than a block's contribute zeros. A
 * rank that cannot read its states stays until here, where all others hear of it. */
static zero_status add_hashes(zero_digest_work *d)
{
    int64_t all = blocks_of(d->all), n = d->arrays * all;
    zero_clear(d->hashes, 2 * n);
    for (int a = 0; a < d->arrays && !zero_range_is_empty(d->blocks); a++)
        zero_copy(d->hashes + 2 * (a * all + d->blocks.begin),
                  hash_at(d, a, d->blocks.begin), 2 * zero_range_len(d->blocks));
    d->hashes[2 * n] = d->failure.status != ZERO_OK;
    ZERO_TRY(zero_comm_or(d->comm, 2 * n + 1, d->hashes));
    if (d->hashes[2 * n]) return zero_agree(d->comm, zero_failure_restore(&d->failure));
    for (int64_t i = 0; i < n; i++) {
        XXH128_canonical_t canonical;
        XXH128_canonicalFromHash(
            &canonical,
            (XXH128_hash_t){.high64 = d->hashes[2 * i], .low64 = d->hashes[2 * i + 1]});
        XXH3_128bits_update(d->list, &canonical, sizeof canonical);
    }
    return ZERO_OK;
}

static zero_status allocate(zero_digest_work *d, const zero_partition *const *partitions)
{
    int n = d->model->n_tensors;
    int64_t longest = 1;
    for (int i = 0; i < n; i++)
        longest =
            zero_max(longest, zero_range_len(all_of(d->model, &d->model->tensors[i])));
    ZERO_TRY(zero_new(&d->sorted, n, "tensors to hash"));
    ZERO_TRY(zero_new(&d->first, n + 1, "tensors to hash"));
    ZERO_TRY(zero_new(&d->partitions, d->model->n_groups, "groups"));
    for (int g = 0; g < d->model->n_groups; g++) d->partitions[g] = partitions[g];
    d->list = XXH3_createState();
    for (int a = 0; a < ARRAYS; a++) d->streams[a] = XXH3_createState();
    if (d->model->share.ranks > 1) { /* tensors are hashed as a whole */
        int64_t floats = merged_len(zero_min(longest, MERGED * ZERO_DIGEST_BLOCK));
        ZERO_TRY(zero_new(&d->merged, ARRAYS * floats, "floats to hash"));
    } else {
        ZERO_TRY(zero_new(&d->ends, ENDS * ARRAYS * ZERO_DIGEST_BLOCK, "floats to hash"));
        ZERO_TRY(zero_new(&d->foreign, ZERO_DIGEST_BLOCK, "floats to hash"));
    }
    int64_t blocks = blocks_of((zero_range){0, longest});
    ZERO_TRY(zero_new(&d->hashes, 2 * ARRAYS * blocks + 1, "words of hashes"));
    ZERO_TRY(zero_allocated(d->list && d->streams[0] && d->streams[1] && d->streams[2],
                            "no memory to hash %d tensors", n));
    for (int i = 0; i < n; i++) d->sorted[i] = &d->model->tensors[i];
    zero_sort(d->sorted, n, by_name);
    for (int i = 0; i < n; i++) {
        select_tensor(d, i);
        d->first[i + 1] = d->first[i] + 2 * d->arrays * zero_range_len(d->blocks);
    }
    XXH3_128bits_reset(d->list);
    int64_t words = d->merged ? 2 * ARRAYS * blocks : d->first[n];
    return zero_new(&d->own, words + 1, "words of hashes");
}

void zero_digest_free(zero_digest_work *d)
{
    if (!d) return;
    XXH3_freeState(d->list);
    for (int a = 0; a < ARRAYS; a++) XXH3_freeState(d->streams[a]);
    zero_free(d->sorted, d->first, d->partitions, d->own, d->ends, d->foreign, d->merged,
              d->hashes, d);
}

static void free_at(zero_digest_work **work)
{
    zero_digest_free(*work);
}

zero_status zero_digest_begin(const zero_model *model, zero_comm *comm,
                              const zero_partition *const *partitions,
                              const zero_digest_source *source, zero_digest_work **work)
{
    ZERO_AT_END(free_at) zero_digest_work *d = NULL;
    zero_status st = zero_new(&d, 1, "a digest");
    if (st == ZERO_OK) {
        *d = (zero_digest_work){.model = model, .comm = comm, .source = *source};
        st = allocate(d, partitions);
    }
    ZERO_TRY(zero_agree(comm, st));
    for (int i = 0; i < model->n_tensors; i++) {
        select_tensor(d, i);
        ZERO_TRY(d->merged ? hash_whole(d) : hash_shared_blocks(d));
        if (d->merged) ZERO_TRY(add_hashes(d));
    }
    free(d->ends);
    free(d->foreign);
    d->ends = d->foreign = NULL;
    ZERO_GIVE(work, d);
    return ZERO_OK;
}

void zero_digest_hash(zero_digest_work *d)
{
    for (int i = 0; i < d->model->n_tensors && !d->merged; i++) {
        select_tensor(d, i);
        read_with(d, whole_blocks(d), take_piece);
    }
}

zero_status zero_digest_end(zero_digest_work *work, char hex[ZERO_CHECKSUM])
{
    ZERO_AT_END(free_at) zero_digest_work *d = work;
    for (int i = 0; i < d->model->n_tensors && !d->merged; i++) {
        select_tensor(d, i);
        ZERO_TRY(add_hashes(d));
    }
    XXH128_hash_t h = XXH3_128bits_digest(d->list);
    snprintf(hex, ZERO_CHECKSUM, "%016" PRIx64 "%016" PRIx64, h.high64, h.low64);
    return ZERO_OK;
}
