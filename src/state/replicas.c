#include "state/replicas.h"

#include "base/hash.h"

#include "sharding/schedule_device.h"
#include "sharding/update.h"
#include "state/finding.h"
#include "state/visit.h"

/* ---- parameters and masters in two places ---- */

struct comparing {
    zero_runner *r;
    int tensor, param; /* the buffer of parameters */
    zero_finding found;
};

/* Elements of a chunk (sharding/schedule_device.h) of floats: a piece of what a device
 * has. */
#define AT_ONCE ((int64_t)(ZERO_INSPECT_PIECE / sizeof(float)))

/* A piece of parameters, which is fetched from a device. Its masters are in the host's
 * memory, or copies that began before bring them. */
static zero_status compare_piece(struct comparing *c, zero_range piece,
                                 const float *masters)
{
    zero_runner *r = c->r;
    char *param = zero_runner_element(r, c->param, piece.begin);
    if (r->link.memory) {
        char *fetched = zero_runner_buffer(r, r->schedule->first_chunk + 1);
        zero_link_fetch_now(&r->link, fetched, param,
                            zero_range_bytes(piece, r->schedule->input.type));
        ZERO_TRY(zero_link_status(&r->link));
        param = fetched;
    }
    /* Widens what was found by elements whose parameters are not the rounded
     * masters. */
    const zero_plan_input *in = &c->r->schedule->input;
    const int64_t offset = in->model->tensors[c->tensor].offset;
    size_t size = zero_type_size(in->type);
    char *rounded = zero_finding_space(c->r).block;
    for (int64_t at = piece.begin, n; at < piece.end; at += n) {
        n = zero_min(ZERO_CHECK_BLOCK, piece.end - at);
        zero_convert(ZERO_FP32, in->type, n, masters, rounded);
        bool differ = memcmp(rounded, param, (size_t)n * size) != 0;
        for (size_t i = 0; differ && i < (size_t)n; i++) {
            if (memcmp(rounded + i * size, param + i * size, size) == 0) continue;
            int64_t element = at - offset + (int64_t)i;
            if (c->found.tensor < 0) c->found.range.begin = element;
            c->found.tensor = c->tensor;
            c->found.range.end = element + 1;
        }
        masters += n;
        param += (size_t)n * size;
    }
    return ZERO_OK;
}

static zero_status compare_masters(void *arg, const zero_state_block *own)
{
    for (int64_t at = own->range.begin; at < own->range.end; at += AT_ONCE)
        ZERO_TRY(compare_piece(arg,
                               (zero_range){at, zero_min(at + AT_ONCE, own->range.end)},
                               own->master + (at - own->range.begin)));
    return ZERO_OK;
}

static zero_status compare_tensor(struct comparing *c, int tensor)
{
    const zero_schedule *s = c->r->schedule;
    const zero_tensor *t = &s->model->tensors[tensor];
    zero_range held = zero_states_held(s, t->group);
    zero_range range = zero_range_overlap(zero_range_of_tensor(t), held);
    c->tensor = tensor;
    c->param = s->groups[t->group].param;
    if (c->param == ZERO_NO_BUFFER) return ZERO_OK; /* in the file, which checks it */
    if (c->r->link.memory && !zero_plan_updates_beside(&s->input)) {
        /* Masters on the device. */
        zero_runner *r = c->r;
        float *chunk = zero_runner_buffer(r, r->schedule->first_chunk);
        int master = r->schedule->groups[t->group].master;
        for (int64_t at = range.begin; at < range.end; at += AT_ONCE) {
            zero_range piece = {at, zero_min(at + AT_ONCE, range.end)};
            zero_ticket ended_by_the_next;
            zero_link_fetch(&r->link, chunk, zero_runner_element(r, master, at),
                            zero_range_bytes(piece, ZERO_FP32), &ended_by_the_next);
            ZERO_TRY(compare_piece(c, piece, chunk));
        }
        return ZERO_OK;
    }
    return zero_states_visit(c->r, t->group, range, ZERO_VISIT_READ, compare_masters, c);
}

static const char found_rounded[] = "found other bits than its masters, rounded, in";

/* The element that UPDATE has noted, if any. A device's word is fetched first. */
static zero_status find_changed(zero_runner *r, zero_finding *found)
{
    const zero_schedule *s = r->schedule;
    *found = (zero_finding){.tensor = -1, .array = ZERO_ARRAY_PARAMETERS};
    if (r->link.memory && !zero_plan_updates_beside(&s->input)) {
        char *host = zero_runner_buffer(r, s->squares_host);
        const char *word = zero_runner_buffer(r, s->squares);
        size_t at = zero_schedule_changed_at(s);
        zero_link_fetch_now(&r->link, host + at, word + at, sizeof r->changed);
        ZERO_TRY(zero_link_status(&r->link));
        memcpy(&r->changed, host + at, sizeof r->changed);
    }
    if (r->changed == 0) return ZERO_OK;
    found->tensor = zero_update_changed(s->model, r->changed, &found->range.begin);
    found->range.end = found->range.begin + 1;
    return ZERO_OK;
}

zero_status zero_replicas_tell_changed(zero_runner *r)
{
    zero_finding found;
    zero_status st = find_changed(r, &found);
    return zero_finding_agree(r, &found, st, found_rounded);
}

/* Looks through all tensors, or through those that are due in a step. */
static zero_status find_rounded(zero_runner *r, int64_t step, zero_finding *found)
{
    const zero_plan_input *in = &r->schedule->input;
    struct comparing c = {.r = r, .found = *found};
    zero_status st = ZERO_OK;
    for (int i = 0; st == ZERO_OK && i < in->model->n_tensors && c.found.tensor < 0; i++)
        if (step == ZERO_ALL_STEPS || (step + i) % in->check_replicas == 0)
            st = compare_tensor(&c, i);
    *found = c.found;
    return st;
}

/* ---- copies ---- */

#define BLOCK ZERO_OFFLOAD_BLOCK /* elements: visits and pieces bring a block as a whole */
_Static_assert(BLOCK * sizeof(float) <= ZERO_INSPECT_PIECE, "a block is one piece");

/* A sum of hashes of blocks, which are seeded with their numbers. The ranks of a node
 * divide the blocks of its copy between them, so their sums add up to the node's. */
struct hashing {
    uint64_t sum[2];
    int64_t number; /* of the present block */
    int64_t step;   /* or ZERO_ALL_STEPS: only blocks that are due in it are hashed */
    int64_t due;    /* such blocks so far; every ranks-th of them is this rank's */
    int rank, ranks;
    bool are_copies[ZERO_STATES]; /* of the present group */
};

/* Moves to the next block that this rank hashes; false if there is none. Begin with one
 * that is empty. */
static bool next_block(struct hashing *h, zero_range held, int period, zero_range *block)
{
    while (block->end < held.end) {
        *block = (zero_range){block->end, zero_min(block->end + BLOCK, held.end)};
        h->number++;
        bool is_due = h->step == ZERO_ALL_STEPS || (h->number + h->step) % period == 0;
        if (is_due && h->due++ % h->ranks == h->rank) return true;
    }
    return false;
}

static void add_bytes(void *arg, const void *x, size_t bytes)
{
    struct hashing *h = arg;
    XXH128_hash_t one = XXH3_128bits_withSeed(x, bytes, (uint64_t)h->number);
    h->sum[0] += one.low64;
    h->sum[1] += one.high64;
}

static zero_status add_block(void *arg, const zero_state_block *block)
{
    const struct hashing *h = arg;
    for (int p = 0; p < ZERO_STATES; p++)
        if (h->are_copies[p] && block->part[p])
            add_bytes(arg, block->part[p], zero_range_bytes(block->range, ZERO_FP32));
    return ZERO_OK;
}

/* The hash of what this rank holds, or its share of the node's; or of what is due in a
 * step. */
static zero_status hash_copies(zero_runner *r, zero_copies kind, int64_t step,
                               uint64_t words[2])
{
    const zero_comm *group = r->shard;
    struct hashing h = {.step = step, .ranks = 1};
    if (kind == ZERO_COPIES_OF_NODES) {
        h.rank = group->layout.local_of[group->rank];
        h.ranks = zero_layout_local_size(&group->layout, group->rank);
    }
    for (int g = 0; g < r->schedule->model->n_groups; g++) {
        const zero_schedule *s = r->schedule;
        int param = s->groups[g].param, period = zero_compare_period(s, kind, true);
        zero_range held = zero_replicas_held(s, kind, g);
        zero_range block = {held.begin, held.begin};
        bool any = false;
        if (zero_copies_of(s, g, ZERO_ARRAY_PARAMETERS) == kind)
            while (next_block(&h, held, period, &block))
                ZERO_TRY(zero_inspect(r, zero_runner_element(r, param, block.begin),
                                      zero_range_bytes(block, s->buffers[param].type),
                                      add_bytes, &h));
        for (int p = 0; p < ZERO_STATES; p++) {
            h.are_copies[p] =
                zero_copies_of(s, g, (zero_array)(ZERO_ARRAY_MASTERS + p)) == kind;
            any = any || h.are_copies[p];
        }
        held = zero_states_held(s, g);
        block = (zero_range){held.begin, any ? held.begin : held.end};
        while (next_block(&h, held, zero_compare_period(s, kind, false), &block))
            ZERO_TRY(zero_states_visit(r, g, block, ZERO_VISIT_READ, add_block, &h));
    }
    memcpy(words, h.sum, sizeof h.sum);
    return ZERO_OK;
}

zero_range zero_replicas_held(const zero_schedule *s, zero_copies kind, int g)
{
    if (kind == ZERO_COPIES_OF_REPLICAS) return zero_states_held(s, g);
    return (zero_range){0, s->model->groups[g].n_params};
}

int zero_replicas_step(const zero_schedule *s, zero_copies kind)
{
    int tp = s->model->share.ranks;
    return kind == ZERO_COPIES_OF_REPLICAS ? s->shard.size * tp : tp;
}

int zero_replicas_first_beside(const zero_runner *r, int rank)
{
    const int *node_of = r->comm->layout.node_of;
    int tp = r->schedule->model->share.ranks, group = r->schedule->shard.size * tp;
    int first = rank / group * group + rank % tp; /* in the rank's shard group */
    while (node_of[first] != node_of[rank]) first += tp;
    return first;
}

/* All ranks learn the words of all copies and compare those that must be equal, so all have
 * one verdict. */
static zero_status compare_copies(zero_runner *r, zero_copies kind)
{
    uint64_t mine[2] = {0};
    int step = zero_replicas_step(r->schedule, kind);
    zero_status looked = hash_copies(r, kind, ZERO_ALL_STEPS, mine);
    ZERO_TRY(zero_finding_exchange(r, mine, looked));
    if (kind == ZERO_COPIES_OF_NODES) {
        /* The ranks' sums become those of their nodes. */
        const zero_layout *layout = &r->comm->layout;
        zero_check_space space = zero_finding_space(r);
        int *first = space.class_of; /* for each rank */
        for (int rank = 0; rank < layout->size; rank++) {
            first[rank] = zero_replicas_first_beside(r, rank);
            for (int k = 0; k < 2 && first[rank] < rank; k++)
                space.words[2 * first[rank] + k] += space.words[2 * rank + k];
        }
        for (int rank = 0; rank < layout->size; rank++)
            zero_copy(space.words + 2 * rank, space.words + 2 * first[rank], 2);
    }
    const uint64_t *words = zero_finding_space(r).words;
    const int all = zero_schedule_stage_ranks(r->schedule);
    for (int k = 0; k < r->comm->size; k++) {
        const int first = k / all * all + k % step;
        if (memcmp(words + 2 * first, words + 2 * k, 2 * sizeof *words) != 0)
            return zero_replicas_tell(r, kind, first);
    }
    return ZERO_OK;
}

/* Masters come first: later an owner's masters decide which copy of a parameter is
 * right. */
static const zero_copies kinds[] = {ZERO_COPIES_OF_REPLICAS, ZERO_COPIES_OF_RANKS,
                                    ZERO_COPIES_OF_NODES};

static zero_status compare_rounded(zero_runner *r)
{
    zero_finding found;
    if (!zero_has_rounded(r->schedule)) return ZERO_OK;
    zero_status st = find_changed(r, &found);
    if (st == ZERO_OK) st = find_rounded(r, ZERO_ALL_STEPS, &found);
    return zero_finding_agree(r, &found, st, found_rounded);
}

static zero_status compare_parts(zero_runner *r, bool has_gradient)
{
    return zero_has_replicated(r->schedule) ? zero_replicas_compare_parts(r, has_gradient)
                                            : ZERO_OK;
}

zero_status zero_replicas_compare(zero_runner *r, bool has_gradient)
{
    ZERO_TRY(compare_rounded(r));
    for (int k = 0; k < ZERO_COUNT(kinds); k++)
        if (zero_has_copies(r->schedule, kinds[k])) ZERO_TRY(compare_copies(r, kinds[k]));
    return compare_parts(r, has_gradient);
}

zero_status zero_replicas_compare_own(zero_runner *r)
{
    ZERO_TRY(compare_rounded(r));
    return compare_parts(r, false);
}

/* ---- a share of them in each step ---- */

/* Adds this rank's part of a sum that is zero over all ranks if copies are equal. */
static zero_status add_copies(zero_runner *r, int64_t step, uint64_t *sum)
{
    const zero_schedule *s = r->schedule;
    for (int k = 0; k < ZERO_COUNT(kinds); k++) {
        uint64_t words[2];
        if (!zero_has_copies(s, kinds[k])) continue;
        ZERO_TRY(hash_copies(r, kinds[k], step, words));
        *sum += words[0] * (uint64_t)zero_copy_weight(s, kinds[k]);
    }
    return ZERO_OK;
}

/* The same of all that is due. */
static zero_status add_due(zero_runner *r, int64_t step, bool has_gradient, uint64_t *sum)
{
    const zero_schedule *s = r->schedule;
    zero_finding found = {.tensor = -1};
    ZERO_TRY(add_copies(r, step, sum));
    if (zero_plan_updates_beside(&s->input) ||
        (zero_has_rounded(s) && step == ZERO_ALL_STEPS))
        ZERO_TRY(find_rounded(r, step, &found));
    *sum += found.tensor >= 0;
    return zero_has_replicated(s) ? zero_replicas_add_parts(r, step, has_gradient, sum)
                                  : ZERO_OK;
}

zero_status zero_replicas_judge(zero_runner *r, zero_status looked, uint64_t sum,
                                bool has_gradient)
{
    uint64_t words[ZERO_COMPARE_WORDS] = {sum, looked != ZERO_OK};
    ZERO_TRY(zero_comm_sum(r->comm, ZERO_COMPARE_WORDS, (int64_t *)words));
    if (words[1] > 0) return zero_agree(r->comm, looked);
    if (words[0] == 0) return ZERO_OK;
    ZERO_TRY(zero_replicas_compare(r, has_gradient));
    return zero_finding_lost("what ranks hold more than once");
}

zero_status zero_replicas_compare_due(zero_runner *r, int64_t step, bool has_gradient)
{
    uint64_t sum = 0;
    zero_status looked = add_due(r, step, has_gradient, &sum);
    return zero_replicas_judge(r, looked, sum, has_gradient);
}

bool zero_replicas_are_in_reach(const zero_runner *r)
{
    return !r->link.memory && r->schedule->input.offload == ZERO_OFFLOAD_OFF;
}

zero_status zero_replicas_sum_copies(zero_runner *r, uint64_t *sum)
{
    *sum = 0;
    return add_copies(r, ZERO_ALL_STEPS, sum);
}
