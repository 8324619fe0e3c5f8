/* Replicated tensors of a shared model. Each rank of a TP group computes their gradients and updates
 * them for itself, from equal inputs, so they have equal bits without any exchange. With hybrid
 * sharding each replica has its own T copies, so there are K * T of them.
 *
 * Ranks of different p may own different elements of a tensor, as their groups have other lengths. So
 * the hash of a tensor is a sum over its elements, modulo 2^64, of a number that follows from tensor,
 * element and bits: it does not depend on who adds which of them. Each rank adds those that it owns. */
#include "state/replicas.h"

#include <string.h>

#include "base/fail.h"
#include "nn/share.h"
#include "state/finding.h"
#include "state/inspect.h"
#include "state/visit.h"

enum replicated { GRADIENTS, PARAMETERS, MASTERS, REPLICATED };

static const char *const names[REPLICATED] = {"gradients", "parameters", "masters"};

/* Elements of one array of one tensor. */
struct place {
    int tensor;
    enum replicated array;
    zero_range range;
};

/* Two words of a rank: the sum, and how many elements it has added. */
struct sum {
    uint64_t words[2];
    uint64_t seed;
    int64_t at; /* the next element of the tensor */
    size_t size;
};

/* ---- adding ---- */

/* Steele and others 2014, "Fast splittable pseudorandom number generators", figure 14, variant 13 */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void add_elements(struct sum *sum, const void *x, int64_t n)
{
    const char *at = x;
    for (int64_t i = 0; i < n; i++, at += sum->size) {
        uint64_t bits = 0;
        memcpy(&bits, at, sum->size);
        sum->words[0] += mix(mix(sum->seed + (uint64_t)(sum->at + i)) ^ bits);
    }
    sum->at += n;
    sum->words[1] += (uint64_t)n;
}

static void add_piece(void *arg, const void *piece, size_t bytes)
{
    struct sum *sum = arg;
    add_elements(sum, piece, (int64_t)(bytes / sum->size));
}

static zero_status add_masters(void *arg, const zero_state_block *block)
{
    add_elements(arg, block->master, zero_range_len(block->range));
    return ZERO_OK;
}

static zero_status add_buffer(zero_runner *r, int buffer, zero_range own, struct sum *sum)
{
    sum->size = zero_type_size(r->schedule->buffers[buffer].type);
    return zero_inspect(r, zero_runner_element(r, buffer, own.begin),
                        (size_t)zero_range_len(own) * sum->size, add_piece, sum);
}

/* Adds the elements of a place that this rank owns. Parameters that are the masters are added once,
 * and those in a file are checked there. */
static zero_status add_place(zero_runner *r, const struct place *place, struct sum *sum)
{
    const zero_schedule *s = r->schedule;
    const zero_tensor *t = &s->input.model->tensors[place->tensor];
    const zero_group_state *g = &s->groups[t->group];
    zero_range range = {t->offset + place->range.begin, t->offset + place->range.end};
    zero_range own =
        zero_range_overlap(zero_partition_shard(&g->partition, s->shard.rank), range);
    if (zero_range_is_empty(own)) return ZERO_OK;
    sum->seed = mix((uint64_t)(place->tensor * REPLICATED) + place->array + 1);
    sum->at = own.begin - t->offset;
    sum->size = sizeof(float);
    if (place->array == GRADIENTS) return add_buffer(r, g->grad, own, sum);
    if (place->array == MASTERS)
        return zero_states_visit(r, t->group, own, ZERO_VISIT_READ, add_masters, sum);
    if (g->param == ZERO_NO_BUFFER || g->param == zero_master_buffer(s, t->group))
        return ZERO_OK;
    return add_buffer(r, g->param, own, sum);
}

static zero_status add_tensor(zero_runner *r, int tensor, bool has_gradient,
                              struct sum *sum)
{
    const zero_tensor *t = &r->schedule->input.model->tensors[tensor];
    struct place place = {.tensor = tensor, .range = {0, t->rows * t->cols}};
    if (!zero_tensor_is_replicated(t)) return ZERO_OK;
    for (int a = has_gradient ? GRADIENTS : PARAMETERS; a < REPLICATED; a++) {
        place.array = (enum replicated)a;
        ZERO_TRY(add_place(r, &place, sum));
    }
    return ZERO_OK;
}

static zero_status add_all(zero_runner *r, bool has_gradient, struct sum *sum)
{
    for (int i = 0; i < r->schedule->input.model->n_tensors; i++)
        ZERO_TRY(add_tensor(r, i, has_gradient, sum));
    return ZERO_OK;
}

/* ---- comparing ---- */

/* Copies of a replicated tensor: the ranks of replica k with part p hold copy k * T + p. */
static int n_copies(const zero_runner *r)
{
    return r->schedule->input.model->share.ranks * r->schedule->shard.replicas;
}

static int copy_of(const zero_runner *r, int rank)
{
    int tp = r->schedule->input.model->share.ranks;
    return rank / (r->schedule->shard.size * tp) * tp + rank % tp;
}

zero_status zero_replicas_add_parts(zero_runner *r, int64_t step, bool has_gradient,
                                    uint64_t *sum)
{
    const zero_plan_input *in = &r->schedule->input;
    struct sum mine = {.seed = 0};
    uint64_t copies = (uint64_t)n_copies(r);
    for (int i = 0; i < in->model->n_tensors; i++)
        if (step == ZERO_ALL_STEPS || (step + i) % in->check_replicas == 0)
            ZERO_TRY(add_tensor(r, i, has_gradient, &mine));
    /* as zero_copy_weight() */
    *sum += mine.words[0] * (copy_of(r, r->comm->rank) == 0 ? 1 - copies : 1);
    return ZERO_OK;
}

/* The sum of the ranks that have the copy. */
static uint64_t sum_of(const zero_runner *r, int copy)
{
    const uint64_t *words = zero_finding_space(r).words;
    uint64_t sum = 0;
    for (int rank = 0; rank < r->comm->size; rank++)
        if (copy_of(r, rank) == copy) sum += words[2 * rank];
    return sum;
}

/* Tells all ranks what each has added; `looked` is the status of that. One verdict. */
static zero_status exchange(zero_runner *r, const struct sum *sum, zero_status looked,
                            bool *differ)
{
    uint64_t failed[2] = ZERO_FINDING_FAILED;
    ZERO_TRY(zero_finding_exchange(r, looked == ZERO_OK ? sum->words : failed));
    if (zero_finding_has_failed(r)) return zero_agree(r->comm, looked);
    *differ = false;
    for (int c = 1; c < n_copies(r); c++) *differ = *differ || sum_of(r, c) != sum_of(r, 0);
    return ZERO_OK;
}

static zero_status look(zero_runner *r, const struct place *place, bool *differ)
{
    struct sum sum = {.seed = 0};
    return exchange(r, &sum, add_place(r, place, &sum), differ);
}

/* ---- only a run that ends comes here ---- */

/* Sets tensor -1 if nothing differs now. */
static zero_status find_tensor(zero_runner *r, bool has_gradient, struct place *place)
{
    const zero_model *model = r->schedule->input.model;
    for (int a = has_gradient ? GRADIENTS : PARAMETERS; a < REPLICATED; a++)
        for (int i = 0; i < model->n_tensors; i++) {
            const zero_tensor *t = &model->tensors[i];
            bool differ = false;
            *place = (struct place){i, (enum replicated)a, {0, t->rows * t->cols}};
            if (!zero_tensor_is_replicated(t)) continue;
            ZERO_TRY(look(r, place, &differ));
            if (differ) return ZERO_OK;
        }
    place->tensor = -1;
    return ZERO_OK;
}

/* Shortens the place to its first element that differs, or to its last one. */
static zero_status find_element(zero_runner *r, bool last, struct place *place)
{
    while (zero_range_len(place->range) > 1) {
        int64_t middle = place->range.begin + zero_range_len(place->range) / 2;
        struct place half = *place;
        bool differ = false;
        if (last)
            half.range.begin = middle;
        else
            half.range.end = middle;
        ZERO_TRY(look(r, &half, &differ));
        if (differ)
            *place = half;
        else if (last)
            place->range.end = middle;
        else
            place->range.begin = middle;
    }
    return ZERO_OK;
}

/* A copy whose sum most copies have; -1: there is no majority. */
static int find_right(const zero_runner *r)
{
    for (int c = 0; c < n_copies(r); c++) {
        int same = 0;
        for (int q = 0; q < n_copies(r); q++) same += sum_of(r, q) == sum_of(r, c);
        if (2 * same > n_copies(r)) return c;
    }
    return -1;
}

/* Finds the ranks that own what differs, in the copies that are wrong or, if that is not known, in
 * all. Their class_of[] becomes the lowest of them, which is returned; that of other ranks -1. */
static int find_ranks(const zero_runner *r, int right, int *class_of)
{
    const uint64_t *words = zero_finding_space(r).words;
    int lowest = -1;
    for (int rank = 0; rank < r->comm->size; rank++) {
        bool is_right = right >= 0 && sum_of(r, copy_of(r, rank)) == sum_of(r, right);
        bool is_named = !is_right && words[2 * rank + 1] > 0;
        if (is_named && lowest < 0) lowest = rank;
        class_of[rank] = is_named ? lowest : -1;
    }
    return lowest;
}

static zero_status tell(zero_runner *r, const struct place *place)
{
    int right = find_right(r), *class_of = zero_finding_space(r).class_of;
    int lowest = find_ranks(r, right, class_of);
    zero_sentence report = {.used = 0};
    zero_sentence_add_ranks(&report, r->comm->size, class_of, lowest);
    if (right >= 0)
        zero_sentence_add(&report,
                          ": other bits than where the other parts of the model are, in ");
    else
        zero_sentence_add(&report, ": different bits in ");
    zero_finding_add_elements(&report, names[place->array],
                              &r->schedule->input.model->tensors[place->tensor],
                              place->range);
    zero_sentence_add(&report, ", which each rank of a TP group computes for itself");
    if (right < 0) zero_sentence_add(&report, "; it is not known which are wrong");
    ZERO_TRY(zero_finding_add_advice(&report, r, right >= 0 ? lowest : -1));
    return zero_fail(ZERO_ERR_CORRUPTED, "%s", report.chars);
}

static zero_status find(zero_runner *r, bool has_gradient)
{
    struct place first, last;
    bool differ = false;
    ZERO_TRY(find_tensor(r, has_gradient, &first));
    if (first.tensor >= 0) {
        last = first;
        ZERO_TRY(find_element(r, false, &first));
        last.range.begin = first.range.begin;
        ZERO_TRY(find_element(r, true, &last));
        first.range.end = last.range.end;
        ZERO_TRY(look(r, &first, &differ));
    }
    return differ ? tell(r, &first)
                  : zero_finding_lost("what the ranks of TP groups compute alike");
}

zero_status zero_replicas_compare_parts(zero_runner *r, bool has_gradient)
{
    struct sum sum = {.seed = 0};
    bool differ = false;
    ZERO_TRY(exchange(r, &sum, add_all(r, has_gradient, &sum), &differ));
    return differ ? find(r, has_gradient) : ZERO_OK;
}
