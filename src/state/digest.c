#include "state/digest.h"

#include <xxhash.h>

#include "base/grow.h"
#include "nn/share.h"

enum { ARRAYS = ZERO_STATES, ENDS = 2 };

#define MERGED 16 /* blocks of a shared tensor, put together at once */

/* The work on one tensor. */
struct digest {
    const zero_model *model;
    zero_comm *comm;
    const zero_digest_source *source;
    XXH3_state_t *list;
    XXH3_state_t *streams[ARRAYS]; /* of a block that arrives in several pieces */
    const zero_tensor **sorted;    /* [n_tensors] */
    /* [ENDS][ARRAYS][ZERO_DIGEST_BLOCK] this rank's elements of the blocks that it
     * shares with ranks before it and after it; other elements have any values */
    float *ends;
    float *foreign; /* [ZERO_DIGEST_BLOCK] a block of which this rank has no element */
    uint64_t
        *hashes;   /* two words for each block of the longest tensor's arrays, and a flag */
    float *merged; /* [MERGED][ARRAYS][merged_len()]; NULL: not shared */
    const zero_tensor *tensor;
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

static zero_range block_at(const struct digest *d, int64_t b)
{
    int64_t begin = d->all.begin + b * ZERO_DIGEST_BLOCK;
    return (zero_range){begin, zero_min(begin + ZERO_DIGEST_BLOCK, d->all.end)};
}

static uint64_t *hash_at(const struct digest *d, int array, int64_t b)
{
    return d->hashes + 2 * (array * blocks_of(d->all) + b);
}

/* Memory for a block of which some elements are on other ranks. */
static float *shared_block(const struct digest *d, int array, zero_range block)
{
    if (zero_range_is_empty(zero_range_overlap(block, d->mine))) return d->foreign;
    int end = block.begin < d->mine.begin ? 0 : 1;
    return d->ends + (end * ARRAYS + array) * ZERO_DIGEST_BLOCK;
}

/* The elements of a group that this rank hashes. Ranks of other replicas than the first
 * hash nothing, because they hold the same. */
static zero_range hashed_here(const struct digest *d, const zero_partition *p)
{
    int rank = d->comm->rank / (d->merged ? d->model->share.ranks : 1);
    return rank < p->n_ranks ? zero_partition_shard(p, rank) : (zero_range){0, 0};
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
    struct digest *d = arg;
    for (int64_t at = piece->range.begin, stop; at < piece->range.end; at = stop) {
        int64_t b = (at - d->all.begin) / ZERO_DIGEST_BLOCK;
        const zero_range block = block_at(d, b);
        /* The block lies on this rank as a whole. */
        const bool is_whole = d->mine.begin <= block.begin && block.end <= d->mine.end;
        stop = zero_min(block.end, piece->range.end);
        for (int a = 0; a < ARRAYS; a++) {
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
static float *merged_at(const struct digest *d, int array, int64_t whole)
{
    int64_t at = whole - d->merging.begin, begin = at - at % ZERO_DIGEST_BLOCK;
    int64_t n = zero_min(zero_range_len(d->merging) - begin, ZERO_DIGEST_BLOCK);
    return d->merged + begin * ARRAYS + array * merged_len(n) + (at - begin);
}

static zero_status put_piece(void *arg, const zero_state_block *piece)
{
    struct digest *d = arg;
    int64_t offset = d->tensor->offset, end = piece->range.end - offset;
    for (int64_t at = piece->range.begin - offset; at < end;) {
        zero_stretch run = zero_share_run(d->tensor, at, end);
        /* Elements of one run go to the blocks of the whole tensor. */
        for (int64_t from = run.whole, stop; from < run.whole + run.n; from = stop) {
            stop = zero_min((from / ZERO_DIGEST_BLOCK + 1) * ZERO_DIGEST_BLOCK,
                            run.whole + run.n);
            int64_t skip = at + offset - piece->range.begin + from - run.whole;
            for (int a = 0; a < ARRAYS; a++)
                memcpy(merged_at(d, a, from), piece->part[a] + skip,
                       (size_t)(stop - from) * sizeof(float));
        }
        at += run.n;
    }
    return ZERO_OK;
}

/* Replicated tensors count once, on the first ranks of the TP groups. */
static zero_status hash_whole(struct digest *d, const zero_tensor *t,
                              const zero_partition *p)
{
    zero_range mine = hashed_here(d, p);
    if (zero_tensor_is_replicated(t) && d->model->share.rank > 0) mine = (zero_range){0, 0};
    mine = zero_range_overlap(mine, zero_range_of_tensor(t));
    d->tensor = t;
    for (int64_t b = 0; b < blocks_of(d->all); b += MERGED) {
        /* Ranks take turns in hashing the blocks, which all of them have. */
        int64_t n = zero_min(MERGED, blocks_of(d->all) - b);
        d->merging = (zero_range){block_at(d, b).begin, block_at(d, b + n - 1).end};
        int64_t floats = ARRAYS * merged_len(zero_range_len(d->merging));
        memset(d->merged, 0, (size_t)floats * sizeof *d->merged);
        /* After a failure this rank gives zeros: add_hashes() tells the others. */
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
        if (!zero_range_is_empty(range) && d->failure.status == ZERO_OK) {
            d->failure = zero_failure_keep(
                d->source->read(d->source->arg, t->group, range, put_piece, d));
        }
        ZERO_TRY(zero_comm_or(d->comm, floats / 2, (uint64_t *)(void *)d->merged));
        for (int64_t i = b; i < b + n; i++)
            for (int a = 0; a < ARRAYS && i % d->comm->size == d->comm->rank; a++) {
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

static zero_status hash_pieces(struct digest *d, const zero_tensor *t,
                               const zero_partition *p)
{
    d->mine = zero_range_overlap(hashed_here(d, p), d->all);
    if (!zero_range_is_empty(d->mine))
        d->failure = zero_failure_keep(
            d->source->read(d->source->arg, t->group, d->mine, take_piece, d));
    for (int64_t b = 0; b < blocks_of(d->all); b++) {
        zero_range block = block_at(d, b);
        int owner = zero_partition_owner_of(p, block.begin);
        if (block.end <= zero_partition_piece(p, owner).end) continue;
        for (int a = 0; a < ARRAYS; a++) {
            /* Completes a block on every rank, and hashes it on the rank that owns its
             * beginning. */
            float *x = shared_block(d, a, block);
            for (int64_t at = block.begin, stop; at < block.end; at = stop) {
                int holder = zero_partition_owner_of(p, at);
                stop = zero_min(block.end, zero_partition_piece(p, holder).end);
                ZERO_TRY(zero_comm_broadcast(d->comm, holder, x + (at - block.begin),
                                             (size_t)(stop - at) * sizeof *x));
            }
            if (zero_partition_owner_of(p, block.begin) == d->comm->rank)
                keep_hash(hash_at(d, a, b),
                          XXH3_128bits(x, zero_range_bytes(block, ZERO_FP32)));
        }
    }
    return ZERO_OK;
}

static zero_status hash_tensor(struct digest *d, const zero_tensor *t,
                               const zero_partition *p)
{
    d->all = all_of(d->model, t);
    memset(d->hashes, 0, (size_t)(2 * ARRAYS * blocks_of(d->all)) * sizeof *d->hashes);
    ZERO_TRY(d->merged ? hash_whole(d, t, p) : hash_pieces(d, t, p));
    /* The ranks' hashes together; other ranks than a block's contribute zeros. A
     * rank that cannot read its states stays until here, where all others hear of
     * it. */
    int64_t n = ARRAYS * blocks_of(d->all);
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

static zero_status allocate(struct digest *d)
{
    int n = d->model->n_tensors;
    int64_t longest = 1;
    for (int i = 0; i < n; i++)
        longest =
            zero_max(longest, zero_range_len(all_of(d->model, &d->model->tensors[i])));
    ZERO_TRY(zero_new(&d->sorted, n, "tensors to hash"));
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
    qsort(d->sorted, (size_t)n, sizeof *d->sorted, by_name);
    XXH3_128bits_reset(d->list);
    return ZERO_OK;
}

static void destroy(struct digest *d)
{
    XXH3_freeState(d->list);
    for (int a = 0; a < ARRAYS; a++) XXH3_freeState(d->streams[a]);
    free(d->sorted);
    free(d->ends);
    free(d->foreign);
    free(d->merged);
    free(d->hashes);
}

zero_status zero_digest(const zero_model *model, zero_comm *comm,
                        const zero_partition *const *partitions,
                        const zero_digest_source *source, char hex[ZERO_CHECKSUM])
{
    ZERO_AT_END(destroy) struct digest d = {.model = model, .comm = comm, .source = source};
    ZERO_TRY(zero_agree(comm, allocate(&d)));
    for (int i = 0; i < model->n_tensors; i++)
        ZERO_TRY(hash_tensor(&d, d.sorted[i], partitions[d.sorted[i]->group]));
    XXH128_hash_t h = XXH3_128bits_digest(d.list);
    snprintf(hex, ZERO_CHECKSUM, "%016" PRIx64 "%016" PRIx64, h.high64, h.low64);
    return ZERO_OK;
}
