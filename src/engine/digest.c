#include "engine/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/range.h"

/* The work on one array of a tensor. */
struct digest {
    const zero_model *model;
    zero_comm *comm;
    XXH3_state_t *list;
    const zero_tensor **sorted; /* [n_tensors] */
    float *block;               /* [ZERO_DIGEST_BLOCK] */
    uint64_t *hashes;           /* two words for each block of the longest tensor */
};

static int by_name(const void *a, const void *b)
{
    const zero_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int64_t blocks_of(const zero_tensor *t)
{
    return zero_divide_up(t->rows * t->cols, ZERO_DIGEST_BLOCK);
}

/* The rank whose piece holds element `at`. */
static int owner_of(const zero_partition *p, int64_t at)
{
    return (int)((at + (p->scheme == ZERO_PARTITION_OWNER ? p->first : 0)) / p->shard_len);
}

/* Elements [begin, end) of the group, from the ranks that own them, on every rank. */
static zero_status assemble(struct digest *d, const zero_partition *p, const float *data,
                            const zero_group_view *view, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end;) {
        int owner = owner_of(p, at);
        int64_t stop = zero_min(end, zero_partition_piece(p, owner).end);
        float *part = d->block + (at - begin);
        size_t bytes = (size_t)(stop - at) * sizeof *part;
        if (owner == d->comm->rank) memcpy(part, data + (at - view->range.begin), bytes);
        ZERO_TRY(zero_comm_broadcast(d->comm, owner, part, bytes));
        at = stop;
    }
    return ZERO_OK;
}

static void hash_block(const float *x, int64_t n, uint64_t hash[2])
{
    XXH128_hash_t h = XXH3_128bits(x, (size_t)n * sizeof *x);
    hash[0] = h.high64;
    hash[1] = h.low64;
}

/* Each block is hashed by the rank that owns its beginning; other ranks contribute zeros. */
static zero_status hash_array(struct digest *d, const zero_tensor *t,
                              const zero_partition *p, const zero_group_view *view,
                              const float *data)
{
    int64_t n = t->rows * t->cols;
    for (int64_t at = 0; at < n; at += ZERO_DIGEST_BLOCK) {
        int64_t begin = t->offset + at, end = begin + zero_min(n - at, ZERO_DIGEST_BLOCK);
        uint64_t *hash = d->hashes + 2 * (at / ZERO_DIGEST_BLOCK);
        int owner = owner_of(p, begin);
        bool is_whole = end <= zero_partition_piece(p, owner).end;
        hash[0] = hash[1] = 0;
        if (!is_whole) ZERO_TRY(assemble(d, p, data, view, begin, end));
        if (owner != d->comm->rank) continue;
        hash_block(is_whole ? data + (begin - view->range.begin) : d->block, end - begin,
                   hash);
    }
    ZERO_TRY(zero_comm_or(d->comm, 2 * blocks_of(t), d->hashes));
    for (int64_t b = 0; b < blocks_of(t); b++) {
        XXH128_canonical_t canonical;
        XXH128_canonicalFromHash(
            &canonical,
            (XXH128_hash_t){.high64 = d->hashes[2 * b], .low64 = d->hashes[2 * b + 1]});
        XXH3_128bits_update(d->list, &canonical, sizeof canonical);
    }
    return ZERO_OK;
}

static zero_status allocate(struct digest *d)
{
    int n = d->model->n_tensors;
    int64_t longest = 1;
    for (int i = 0; i < n; i++)
        longest = zero_max(longest, blocks_of(&d->model->tensors[i]));
    d->sorted = malloc((size_t)n * sizeof *d->sorted);
    d->list = XXH3_createState();
    d->block = malloc(ZERO_DIGEST_BLOCK * sizeof *d->block);
    d->hashes = malloc((size_t)(2 * longest) * sizeof *d->hashes);
    if (!d->sorted || !d->list || !d->block || !d->hashes)
        return zero_fail(ZERO_ERR_NOMEM, "no memory to hash %d tensors", n);
    for (int i = 0; i < n; i++) d->sorted[i] = &d->model->tensors[i];
    qsort(d->sorted, (size_t)n, sizeof *d->sorted, by_name);
    XXH3_128bits_reset(d->list);
    return ZERO_OK;
}

static zero_status hash_all(struct digest *d, const zero_partition *const *partitions,
                            const zero_group_view *groups)
{
    for (int i = 0; i < d->model->n_tensors; i++) {
        const zero_tensor *t = d->sorted[i];
        const zero_group_view *view = &groups[t->group];
        const float *arrays[] = {view->master, view->momentum, view->variance};
        for (int a = 0; a < 3; a++)
            ZERO_TRY(hash_array(d, t, partitions[t->group], view, arrays[a]));
    }
    return ZERO_OK;
}

zero_status zero_digest(const zero_model *model, zero_comm *comm,
                        const zero_partition *const *partitions,
                        const zero_group_view *groups, char hex[33])
{
    struct digest d = {.model = model, .comm = comm};
    zero_status st = zero_agree(comm, allocate(&d));
    if (st == ZERO_OK) st = hash_all(&d, partitions, groups);
    if (st == ZERO_OK) {
        XXH128_canonical_t digest;
        XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(d.list));
        for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", digest.digest[i]);
    }
    XXH3_freeState(d.list);
    free(d.sorted);
    free(d.block);
    free(d.hashes);
    return st;
}
