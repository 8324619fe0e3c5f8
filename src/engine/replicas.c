#include "engine/replicas.h"

#include <string.h>

#include <xxhash.h>

#include "base/fail.h"
#include "engine/finding.h"
#include "engine/states.h"

/* ---- 16-bit parameters and masters ---- */

/* Elements of a group, parameters and masters. */
struct pair {
    zero_range range;
    const char *param;
    const float *master;
};

/* Widens `found` by the elements of a block whose parameters are not the rounded masters. */
static void compare_block(const zero_runner *r, const struct pair *block,
                          zero_finding *found, int tensor)
{
    zero_type type = r->schedule->input.type;
    const zero_tensor *t = &r->schedule->input.model->tensors[tensor];
    size_t n = (size_t)zero_range_len(block->range), size = zero_type_size(type);
    char *rounded = zero_finding_space(r).block;
    r->backend->round(&r->math, type, (int64_t)n, block->master, rounded);
    if (memcmp(rounded, block->param, n * size) == 0) return;
    for (size_t i = 0; i < n; i++) {
        int64_t at = block->range.begin - t->offset + (int64_t)i;
        if (memcmp(rounded + i * size, block->param + i * size, size) == 0) continue;
        if (found->tensor < 0) found->range.begin = at;
        found->tensor = tensor;
        found->range.end = at + 1;
    }
}

static void compare_tensor(const zero_runner *r, int tensor, zero_finding *found)
{
    const zero_tensor *t = &r->schedule->input.model->tensors[tensor];
    zero_engine_state own = zero_states_of(r, t->group);
    zero_range part = zero_range_overlap(zero_range_of_tensor(t), own.range);
    int param = r->schedule->groups[t->group].param;
    for (int64_t at = part.begin; at < part.end; at += ZERO_CHECK_BLOCK) {
        struct pair block = {.range = {at, zero_min(at + ZERO_CHECK_BLOCK, part.end)},
                             .param = zero_runner_element(r, param, at),
                             .master = own.master + (at - own.range.begin)};
        compare_block(r, &block, found, tensor);
    }
}

static zero_status compare_rounded(zero_runner *r)
{
    zero_finding found = {.tensor = -1, .array = ZERO_ARRAY_PARAMETERS};
    for (int i = 0; i < r->schedule->input.model->n_tensors && found.tensor < 0; i++)
        compare_tensor(r, i, &found);
    return zero_finding_agree(r, &found, "has other bits than its masters, rounded, in");
}

/* ---- copies ---- */

#define BLOCK ((size_t)1 << 20) /* bytes */

/* A sum of hashes of blocks, which is seeded with their numbers. The ranks of a node divide the
 * blocks of its copy between them, so their sums add up to the node's. */
struct hashing {
    uint64_t sum[2];
    uint64_t block; /* the number of the next one */
    int rank, ranks;
};

static void add_bytes(struct hashing *h, const char *x, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += BLOCK) {
        uint64_t number = h->block++;
        if (number % (uint64_t)h->ranks != (uint64_t)h->rank) continue;
        XXH128_hash_t one =
            XXH3_128bits_withSeed(x + at, zero_min_size(BLOCK, bytes - at), number);
        h->sum[0] += one.low64;
        h->sum[1] += one.high64;
    }
}

static void add_copies(const zero_runner *r, zero_copies kind, struct hashing *h)
{
    const zero_schedule *s = r->schedule;
    for (int i = 0; i < s->input.model->n_tensors; i++) {
        const zero_tensor *t = &s->input.model->tensors[i];
        for (int a = 0; a < ZERO_ARRAYS; a++) {
            int buffer = zero_array_buffer(&s->groups[t->group], (zero_array)a);
            if (zero_copies_of(s, t->group, (zero_array)a) != kind) continue;
            add_bytes(h, zero_runner_element(r, buffer, t->offset),
                      (size_t)(t->rows * t->cols) *
                          zero_type_size(s->buffers[buffer].type));
        }
    }
}

/* The ranks' sums become those of their nodes. */
static void add_up_nodes(const zero_runner *r)
{
    const zero_layout *layout = &r->comm->layout;
    zero_check_space space = zero_finding_space(r);
    int *first = space.class_of; /* of each node */
    for (int rank = 0; rank < layout->size; rank++) {
        int node = layout->node_of[rank];
        if (layout->local_of[rank] == 0) {
            first[node] = rank;
            continue;
        }
        for (int k = 0; k < 2; k++)
            space.words[2 * first[node] + k] += space.words[2 * rank + k];
    }
    for (int rank = 0; rank < layout->size; rank++)
        memcpy(space.words + 2 * rank, space.words + 2 * first[layout->node_of[rank]],
               2 * sizeof *space.words);
}

static zero_status compare_copies(zero_runner *r, zero_copies kind)
{
    const zero_layout *layout = &r->comm->layout;
    int rank = r->comm->rank;
    struct hashing h = {.ranks = 1};
    if (kind == ZERO_COPIES_OF_NODES) {
        h.rank = layout->local_of[rank];
        h.ranks = zero_layout_local_size(layout, rank);
    }
    add_copies(r, kind, &h);
    ZERO_TRY(zero_finding_exchange(r, h.sum));
    if (kind == ZERO_COPIES_OF_NODES) add_up_nodes(r);
    const uint64_t *words = zero_finding_space(r).words;
    for (int k = 1; k < r->comm->size; k++)
        if (memcmp(words, words + 2 * k, 2 * sizeof *words) != 0)
            return zero_replicas_tell(r, kind);
    return ZERO_OK;
}

zero_status zero_replicas_compare(zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    ZERO_TRY(r->backend->sync(&r->math)); /* the host reads what the backend wrote */
    if (zero_has_rounded(s)) ZERO_TRY(compare_rounded(r));
    for (int kind = ZERO_COPIES_OF_RANKS; kind < ZERO_COPIES_KINDS; kind++)
        if (zero_has_copies(s, (zero_copies)kind))
            ZERO_TRY(compare_copies(r, (zero_copies)kind));
    return ZERO_OK;
}
