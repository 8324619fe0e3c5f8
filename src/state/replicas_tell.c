/* Where copies differ, and which of them is wrong. Only a run that ends comes here. */
#include "state/finding.h"
#include "state/inspect.h"
#include "state/replicas.h"
#include "state/visit.h"

#include <inttypes.h>
#include <string.h>

#include <xxhash.h>

#include "base/fail.h"

/* All ranks take part in the search, so that all have one verdict. The first of the searched ranks
 * tells where it looks to those that hold other arrays. */
struct search {
    zero_runner *r;
    zero_copies kind;
    int first, step; /* ranks first, first + step, ...: a ZeRO group, or a replica group */
    zero_finding at;
};

#define UNKNOWN (-1)

/* ---- looking ---- */

static bool is_member(const struct search *f, int rank)
{
    return rank % f->step == f->first;
}

/* The number that the searched group's ranks have. */
static zero_status learn(const struct search *f, int64_t *number)
{
    return zero_comm_broadcast(f->r->comm, f->first, number, sizeof *number);
}

static const zero_tensor *tensor_of(const struct search *f)
{
    return &f->r->schedule->input.model->tensors[f->at.tensor];
}

/* Two words that stand for elements of the tensor; of a single one they are its bits. */
struct description {
    zero_array array;
    int64_t len;
    size_t size; /* of a parameter */
    uint64_t words[2];
};

/* Ranks hold the same elements, so their blocks end at the same ones. */
static void add_elements(struct description *d, const void *x, int64_t len, size_t size)
{
    if (d->len == 1) {
        memcpy(d->words, x, size); /* little-endian, as all that zero writes */
        return;
    }
    XXH128_hash_t h = XXH3_128bits_withSeed(x, (size_t)len * size, d->words[0]);
    d->words[0] = h.low64;
    d->words[1] += h.high64;
}

static zero_status add_block(void *arg, const zero_state_block *block)
{
    struct description *d = arg;
    add_elements(d, block->part[d->array - ZERO_ARRAY_MASTERS],
                 zero_range_len(block->range), sizeof(float));
    return ZERO_OK;
}

static void add_parameters(void *arg, const void *piece, size_t bytes)
{
    struct description *d = arg;
    add_elements(d, piece, (int64_t)(bytes / d->size), d->size);
}

static zero_status describe(const struct search *f, zero_range part, uint64_t words[2])
{
    const zero_schedule *s = f->r->schedule;
    const zero_tensor *t = tensor_of(f);
    struct description d = {.array = f->at.array, .len = zero_range_len(part)};
    zero_range in_group = {t->offset + part.begin, t->offset + part.end};
    int param = s->groups[t->group].param;
    if (f->at.array == ZERO_ARRAY_PARAMETERS) {
        d.size = zero_type_size(s->buffers[param].type);
        ZERO_TRY(zero_inspect(f->r, zero_runner_element(f->r, param, in_group.begin),
                              (size_t)d.len * d.size, add_parameters, &d));
    } else
        ZERO_TRY(
            zero_states_visit(f->r, t->group, in_group, ZERO_VISIT_READ, add_block, &d));
    memcpy(words, d.words, sizeof d.words);
    return ZERO_OK;
}

/* Every rank looks at its copy; the ranks of a node see the same one. */
static zero_status look(const struct search *f, zero_range part, bool *differ)
{
    uint64_t mine[2] = {0};
    bool looks = is_member(f, f->r->comm->rank);
    ZERO_TRY(zero_agree(f->r->comm, looks ? describe(f, part, mine) : ZERO_OK));
    ZERO_TRY(zero_finding_exchange(f->r, mine));
    const uint64_t *words = zero_finding_space(f->r).words, *first = words + 2 * f->first;
    *differ = false;
    for (int k = f->first; k < f->r->comm->size; k += f->step)
        *differ = *differ || memcmp(first, words + 2 * k, 2 * sizeof *words) != 0;
    return ZERO_OK;
}

/* The elements of a tensor that the searched ranks hold. There may be none. */
static zero_status learn_held(const struct search *f, const zero_tensor *t,
                              zero_range *held)
{
    zero_range all = zero_range_overlap(
        zero_range_of_tensor(t), zero_replicas_held(f->r->schedule, f->kind, t->group));
    *held = (zero_range){all.begin - t->offset, all.end - t->offset};
    ZERO_TRY(learn(f, &held->begin));
    return learn(f, &held->end);
}

/* Sets the array and tensor, and all its elements; tensor -1 if copies are equal now. */
static zero_status find_tensor(struct search *f)
{
    const zero_schedule *s = f->r->schedule;
    for (int i = 0; i < s->input.model->n_tensors; i++)
        for (int a = 0; a < ZERO_ARRAYS; a++) {
            const zero_tensor *t = &s->input.model->tensors[i];
            bool differ;
            f->at = (zero_finding){.tensor = i, .array = (zero_array)a};
            if (zero_copies_of(s, t->group, f->at.array) != f->kind) continue;
            ZERO_TRY(learn_held(f, t, &f->at.range));
            if (zero_range_is_empty(f->at.range)) continue;
            ZERO_TRY(look(f, f->at.range, &differ));
            if (differ) return ZERO_OK;
        }
    f->at.tensor = -1;
    return ZERO_OK;
}

/* Shortens the range, in which copies differ, to the first such element. */
static zero_status find_first(const struct search *f, zero_range *range)
{
    while (zero_range_len(*range) > 1) {
        int64_t middle = range->begin + zero_range_len(*range) / 2;
        bool differ;
        ZERO_TRY(look(f, (zero_range){range->begin, middle}, &differ));
        if (differ)
            range->end = middle;
        else
            range->begin = middle;
    }
    return ZERO_OK;
}

static zero_status find_last(const struct search *f, zero_range *range)
{
    while (zero_range_len(*range) > 1) {
        int64_t middle = range->begin + zero_range_len(*range) / 2;
        bool differ;
        ZERO_TRY(look(f, (zero_range){middle, range->end}, &differ));
        if (differ)
            range->begin = middle;
        else
            range->end = middle;
    }
    return ZERO_OK;
}

/* ---- which copy is right ---- */

/* The owner of an element of the tensor, among the ranks of the ZeRO group. */
static int owner_of(const struct search *f, int64_t element)
{
    const zero_tensor *t = tensor_of(f);
    const zero_partition *p = &f->r->schedule->groups[t->group].partition;
    return zero_partition_owner_of(p, t->offset + element);
}

/* The last element, and one, that it owns of the tensor. */
static int64_t end_of_owned(const struct search *f, int64_t element)
{
    const zero_tensor *t = tensor_of(f);
    const zero_partition *p = &f->r->schedule->groups[t->group].partition;
    return zero_partition_shard(p, owner_of(f, element)).end - t->offset;
}

/* True if the owner of an element can say what it is: it holds the master, and its parameters
 * were found to be its masters, rounded. */
static bool owners_know(const struct search *f)
{
    const zero_schedule *s = f->r->schedule;
    return zero_has_rounded(s) && f->kind != ZERO_COPIES_OF_REPLICAS &&
           s->groups[tensor_of(f)->group].optimizer_held == ZERO_HOLD_PIECE;
}

static zero_status find_elements(struct search *f)
{
    zero_range first = f->at.range, last;
    ZERO_TRY(find_first(f, &first));
    last = (zero_range){first.begin, f->at.range.end};
    if (owners_know(f)) { /* one owner answers for all of them */
        int64_t end = is_member(f, f->r->comm->rank) ? end_of_owned(f, first.begin) : 0;
        ZERO_TRY(learn(f, &end));
        last.end = zero_min(last.end, end);
    }
    ZERO_TRY(find_last(f, &last));
    f->at.range = (zero_range){first.begin, last.end};
    return ZERO_OK;
}

/* True for one rank of each copy. */
static bool counts(const struct search *f, int rank)
{
    if (!is_member(f, rank) || f->kind != ZERO_COPIES_OF_NODES) return is_member(f, rank);
    return zero_replicas_first_beside(f->r, rank) == rank;
}

/* Ranks of the group with equal words: class_of[r] is the lowest; UNKNOWN for the other ranks. */
static void classify(const struct search *f, int *class_of)
{
    const uint64_t *words = zero_finding_space(f->r).words;
    for (int r = 0; r < f->r->comm->size; r++) {
        class_of[r] = is_member(f, r) ? f->first : UNKNOWN;
        while (is_member(f, r) &&
               memcmp(words + 2 * class_of[r], words + 2 * r, 2 * sizeof *words) != 0)
            class_of[r] += f->step;
    }
}

/* The rank that owns the first element that differs. */
static zero_status find_owner(const struct search *f, int *rank)
{
    bool knows = is_member(f, f->r->comm->rank);
    int64_t d = knows ? owner_of(f, f->at.range.begin) : 0;
    ZERO_TRY(learn(f, &d));
    *rank = (int)d * f->step + f->first;
    return ZERO_OK;
}

/* A rank of the majority's class. */
static int find_majority(const struct search *f, const int *class_of)
{
    int size = f->r->comm->size, copies = 0;
    for (int r = 0; r < size; r++) copies += counts(f, r);
    for (int class = 0; class < size; class ++) {
        int same = 0;
        for (int r = 0; r < size; r++) same += counts(f, r) && class_of[r] == class;
        if (2 * same > copies) return class;
    }
    return UNKNOWN;
}

/* Divides the group's ranks into two classes: those that hold what `rank` holds, and the others. */
static void divide(const struct search *f, int rank, int *class_of, int *other)
{
    int size = f->r->comm->size, class = class_of[rank];
    *other = size;
    for (int r = size - 1; r >= 0; r--)
        if (is_member(f, r) && class_of[r] != class) *other = r;
    for (int r = f->first; r < size; r += f->step)
        class_of[r] = class_of[r] == class ? class : *other;
}

/* ---- telling ---- */

static void add_values(const struct search *f, zero_sentence *report, int one, int other,
                       const char *between)
{
    const uint64_t *words = zero_finding_space(f->r).words;
    if (zero_range_len(f->at.range) > 1) return;
    zero_sentence_add(report, " (0x%" PRIx64 " %s 0x%" PRIx64 ")", words[2 * one], between,
                      words[2 * other]);
}

static zero_status tell(const struct search *f)
{
    zero_sentence report = {.used = 0};
    zero_runner *r = f->r;
    int size = r->comm->size, other;
    int *class_of = zero_finding_space(r).class_of;
    classify(f, class_of);
    int right = find_majority(f, class_of);
    if (owners_know(f)) ZERO_TRY(find_owner(f, &right));
    divide(f, right == UNKNOWN ? f->first : right, class_of, &other);
    int first = class_of[right == UNKNOWN ? f->first : right];
    if (right == UNKNOWN) {
        zero_sentence_add_ranks(&report, size, class_of, first);
        zero_sentence_add(&report, " and ");
        zero_sentence_add_ranks(&report, size, class_of, other);
        zero_sentence_add(&report, " hold different bits in ");
        zero_finding_add_place(&report, r, &f->at);
        add_values(f, &report, first, other, "and");
        zero_sentence_add(&report, "; it is not known which are wrong");
    } else {
        zero_sentence_add_ranks(&report, size, class_of, other);
        zero_sentence_add(&report, " %s other bits than the other ranks in ",
                          zero_ranks_count(size, class_of, other) == 1 ? "holds" : "hold");
        zero_finding_add_place(&report, r, &f->at);
        add_values(f, &report, other, first, "instead of");
    }
    ZERO_TRY(zero_finding_add_advice(&report, r, right == UNKNOWN ? UNKNOWN : other));
    return zero_fail(ZERO_ERR_CORRUPTED, "%s", report.chars);
}

zero_status zero_replicas_tell(zero_runner *r, zero_copies kind, int first)
{
    struct search f = {.r = r,
                       .kind = kind,
                       .first = first,
                       .step = zero_replicas_step(r->schedule, kind)};
    bool differ = false;
    ZERO_TRY(find_tensor(&f));
    if (f.at.tensor >= 0) ZERO_TRY(find_elements(&f));
    if (f.at.tensor >= 0) ZERO_TRY(look(&f, f.at.range, &differ));
    return differ ? tell(&f) : zero_finding_lost("what ranks hold more than once");
}
