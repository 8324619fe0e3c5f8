/* Replicated tensors of a shared model. Each rank of a TP group computes their gradients
 * and updates them for itself, from equal inputs, so they have equal bits without any
 * exchange. With hybrid sharding each replica has its own T copies, so there are K * T of
 * them.
 *
 * Ranks of different p may own different elements of a tensor, as their groups have other
 * lengths. So the hash of a tensor is a sum over its elements, modulo 2^64, of a number
 * that follows from tensor, element and bits: it does not depend on who adds which of them.
 * Each rank adds those that it owns. */
#include "state/replicas.h"

#include "nn/share.h"
#include "state/finding.h"

static const zero_array replicated[] = {ZERO_ARRAY_GRADIENTS, ZERO_ARRAY_PARAMETERS,
                                        ZERO_ARRAY_MASTERS};

/* Two words of a rank: the sum, and how many elements it has added. */
struct sum {
    uint64_t words[2];
    uint64_t seed;
    int64_t at; /* the next element of the tensor */
    size_t size;
};

/* ---- adding ---- */

/* Steele and others 2014, "Fast splittable pseudorandom number generators", figure 14,
 * variant 13 */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void add_piece(void *arg, const void *piece, size_t bytes)
{
    struct sum *sum = arg;
    const char *at = piece;
    for (const char *end = at + bytes; at < end; at += sum->size) {
        uint64_t bits = 0;
        memcpy(&bits, at, sum->size);
        sum->words[0] += mix(mix(sum->seed + (uint64_t)sum->at++) ^ bits);
        sum->words[1]++;
    }
}

/* Adds the elements of a place that this rank owns. Parameters that are the masters are
 * added once, and those in a file are checked there. */
static zero_status add_place(zero_runner *r, const zero_finding *place, struct sum *sum)
{
    const zero_schedule *s = r->schedule;
    const zero_tensor *t = &s->model->tensors[place->tensor];
    const zero_group_state *g = &s->groups[t->group];
    zero_range range = {t->offset + place->range.begin, t->offset + place->range.end};
    zero_range own =
        zero_range_overlap(zero_partition_shard(&g->partition, s->shard.rank), range);
    int buffer = g->buffers[place->array];
    bool is_param = place->array == ZERO_ARRAY_PARAMETERS;
    if (!g->is_here || zero_range_is_empty(own)) return ZERO_OK;
    if (is_param && (buffer == ZERO_NO_BUFFER || buffer == zero_master_buffer(s, t->group)))
        return ZERO_OK;
    zero_finding mine = *place;
    mine.range = (zero_range){own.begin - t->offset, own.end - t->offset};
    sum->seed = mix((uint64_t)(place->tensor * (ZERO_ARRAYS + 1)) + place->array + 1);
    sum->at = mine.range.begin;
    sum->size = place->array == ZERO_ARRAY_MASTERS
                    ? sizeof(float)
                    : zero_type_size(s->buffers[buffer].type);
    return zero_finding_inspect(r, &mine, add_piece, sum);
}

/* Adds all replicated tensors, or those that are due in a step. */
static zero_status add_all(zero_runner *r, int64_t step, bool has_gradient, struct sum *sum)
{
    const zero_plan_input *in = &r->schedule->input;
    for (int i = 0; i < in->model->n_tensors; i++) {
        const zero_tensor *t = &in->model->tensors[i];
        bool is_due = step == ZERO_ALL_STEPS || (step + i) % in->check_replicas == 0;
        if (!is_due || !zero_tensor_is_replicated(t)) continue;
        for (int a = has_gradient ? 0 : 1; a < ZERO_COUNT(replicated); a++)
            ZERO_TRY(add_place(r, &(zero_finding){i, replicated[a], {0, t->rows * t->cols}},
                               sum));
    }
    return ZERO_OK;
}

/* ---- comparing ---- */

/* Copies of a replicated tensor: the ranks of replica k with part p hold copy k * T + p, in
 * a pipeline those of the stage that has the tensor. */
static int n_copies(const zero_runner *r)
{
    return r->schedule->model->share.ranks * r->schedule->shard.replicas;
}

static int copy_of(const zero_runner *r, int rank)
{
    const int tp = r->schedule->model->share.ranks, group = r->schedule->shard.size * tp;
    return rank % zero_schedule_stage_ranks(r->schedule) / group * tp + rank % tp;
}

zero_status zero_replicas_add_parts(zero_runner *r, int64_t step, bool has_gradient,
                                    uint64_t *sum)
{
    struct sum mine = {.seed = 0};
    uint64_t copies = (uint64_t)n_copies(r);
    ZERO_TRY(add_all(r, step, has_gradient, &mine));
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
    ZERO_TRY(zero_finding_exchange(r, sum->words, looked));
    *differ = false;
    for (int c = 1; c < n_copies(r); c++) *differ = *differ || sum_of(r, c) != sum_of(r, 0);
    return ZERO_OK;
}

static zero_status look(void *arg, const zero_finding *at, bool *differ)
{
    struct sum sum = {.seed = 0};
    return exchange(arg, &sum, add_place(arg, at, &sum), differ);
}

/* ---- only a run that ends comes here ---- */

/* Sets tensor -1 if nothing differs now. */
static zero_status find_tensor(zero_runner *r, bool has_gradient, zero_finding *place)
{
    const zero_model *model = r->schedule->model;
    for (int a = has_gradient ? 0 : 1; a < ZERO_COUNT(replicated); a++)
        for (int i = 0; i < model->n_tensors; i++) {
            const zero_tensor *t = &model->tensors[i];
            bool differ = false;
            *place = (zero_finding){i, replicated[a], {0, t->rows * t->cols}};
            if (!zero_tensor_is_replicated(t)) continue;
            ZERO_TRY(look(r, place, &differ));
            if (differ) return ZERO_OK;
        }
    place->tensor = -1;
    return ZERO_OK;
}

zero_status zero_replicas_compare_parts(zero_runner *r, bool has_gradient)
{
    struct sum sum = {.seed = 0};
    zero_finding first;
    bool differ = false;
    zero_status looked = add_all(r, ZERO_ALL_STEPS, has_gradient, &sum);
    ZERO_TRY(exchange(r, &sum, looked, &differ));
    if (!differ) return ZERO_OK;
    ZERO_TRY(find_tensor(r, has_gradient, &first));
    if (first.tensor >= 0) {
        zero_finding last = first;
        ZERO_TRY(zero_finding_narrow(&first, false, look, r));
        last.range.begin = first.range.begin;
        ZERO_TRY(zero_finding_narrow(&last, true, look, r));
        first.range.end = last.range.end;
        ZERO_TRY(look(r, &first, &differ));
        if (differ) {
            /* Names the ranks that own what differs, in the copies that are wrong or, if no
             * copy is that of most, in all. */
            const uint64_t *words = zero_finding_space(r).words;
            int *class_of = zero_finding_space(r).class_of, n = n_copies(r);
            int right = -1, lowest = -1;
            for (int c = 0; c < n && right < 0; c++) {
                int same = 0;
                for (int q = 0; q < n; q++) same += sum_of(r, q) == sum_of(r, c);
                if (2 * same > n) right = c;
            }
            for (int rank = 0; rank < r->comm->size; rank++) {
                bool is_right =
                    right >= 0 && sum_of(r, copy_of(r, rank)) == sum_of(r, right);
                bool is_named = !is_right && words[2 * rank + 1] > 0;
                if (is_named && lowest < 0) lowest = rank;
                class_of[rank] = is_named ? lowest : -1;
            }
            zero_sentence report = {.used = 0};
            zero_sentence_add_ranks(&report, r->comm->size, class_of, lowest);
            zero_sentence_add(
                &report,
                right >= 0 ? ": other bits than where the other parts of the model are, in "
                           : ": different bits in ");
            zero_finding_add_place(&report, r, &first);
            zero_sentence_add(&report,
                              ", which each rank of a TP group computes for itself");
            if (right < 0) zero_sentence_add(&report, "; it is not known which are wrong");
            ZERO_TRY(zero_finding_add_advice(&report, r, right >= 0 ? lowest : -1));
            return zero_fail(ZERO_ERR_CORRUPTED, "%s", report.chars);
        }
    }
    return zero_finding_lost("what the ranks of TP groups compute alike");
}
