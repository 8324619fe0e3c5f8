/* Where copies differ, and which of them is wrong. Only a run that ends comes here. */
#include "state/replicas.h"

#include "base/hash.h"
#include "sharding/stages.h"
#include "state/finding.h"

/* All ranks take part in the search, so that all have one verdict. The first of the
 * searched ranks tells where it looks to those that hold other arrays. */
struct search {
    zero_runner *r;
    zero_copies kind;
    /* Ranks first, first + step, ... below end: a ZeRO group, or a replica group. */
    int first, step, end;
    zero_finding at;
};

#define UNKNOWN (-1)

/* ---- looking ---- */

static bool is_member(const struct search *f, int rank)
{
    return f->first <= rank && rank < f->end && (rank - f->first) % f->step == 0;
}

/* The number that the searched group's ranks have. */
static zero_status learn(const struct search *f, int64_t *number)
{
    return zero_comm_broadcast(f->r->comm, f->first, number, sizeof *number);
}

static const zero_tensor *tensor_of(const struct search *f)
{
    return &f->r->schedule->model->tensors[f->at.tensor];
}

/* Two words that stand for elements of the tensor; of a single one they are its bits. */
struct description {
    bool is_single;
    uint64_t words[2];
};

/* Ranks hold the same elements, so their pieces end at the same ones. */
static void add_piece(void *arg, const void *piece, size_t bytes)
{
    struct description *d = arg;
    if (d->is_single) {
        memcpy(d->words, piece, bytes); /* little-endian, as all that zero writes */
        return;
    }
    XXH128_hash_t h = XXH3_128bits_withSeed(piece, bytes, d->words[0]);
    d->words[0] = h.low64;
    d->words[1] += h.high64;
}

/* Every rank looks at its copy; the ranks of a node see the same one. */
static zero_status look(void *arg, const zero_finding *at, bool *differ)
{
    const struct search *f = arg;
    struct description d = {.is_single = zero_range_len(at->range) == 1};
    bool looks = is_member(f, f->r->comm->rank);
    zero_status looked = looks ? zero_finding_inspect(f->r, at, add_piece, &d) : ZERO_OK;
    ZERO_TRY(zero_finding_exchange(f->r, d.words, looked));
    const uint64_t *words = zero_finding_space(f->r).words, *first = words + 2 * f->first;
    *differ = false;
    for (int k = f->first; k < f->end; k += f->step)
        *differ = *differ || memcmp(first, words + 2 * k, 2 * sizeof *words) != 0;
    return ZERO_OK;
}

/* Sets the array and tensor, and all its elements that the searched ranks hold; tensor -1
 * if copies are equal now. */
static zero_status find_tensor(struct search *f)
{
    const zero_schedule *s = f->r->schedule;
    for (int i = 0; i < s->model->n_tensors; i++)
        for (zero_array a = 0; a < ZERO_ARRAYS; a++) {
            const zero_tensor *t = &s->model->tensors[i];
            zero_range held = {t->offset, t->offset};
            bool differ;
            /* Other stages of a pipeline have none of it. */
            if (zero_copies_of(s, t->group, a) == f->kind)
                held = zero_range_overlap(zero_range_of_tensor(t),
                                          zero_replicas_held(s, f->kind, t->group));
            f->at = (zero_finding){i, a, {held.begin - t->offset, held.end - t->offset}};
            ZERO_TRY(learn(f, &f->at.range.begin));
            ZERO_TRY(learn(f, &f->at.range.end));
            if (zero_range_is_empty(f->at.range)) continue;
            ZERO_TRY(look(f, &f->at, &differ));
            if (differ) return ZERO_OK;
        }
    f->at.tensor = -1;
    return ZERO_OK;
}

/* ---- which copy is right ---- */

/* The owner of an element of the tensor, among the ranks of the ZeRO group; *end is where
 * the elements that it owns there end. */
static int owner_of(const struct search *f, int64_t element, int64_t *end)
{
    const zero_tensor *t = tensor_of(f);
    const zero_partition *p = &f->r->schedule->groups[t->group].partition;
    int owner = zero_partition_owner_of(p, t->offset + element);
    *end = zero_partition_shard(p, owner).end - t->offset;
    return owner;
}

/* True if the owner of an element can say what it is: it holds the master, and its
 * parameters were found to be its masters, rounded. */
static bool owners_know(const struct search *f)
{
    const zero_schedule *s = f->r->schedule;
    const int stage = f->first / zero_schedule_stage_ranks(s);
    return zero_has_rounded(s) && f->kind != ZERO_COPIES_OF_REPLICAS &&
           s->groups[tensor_of(f)->group].stage == stage &&
           zero_stage_at(s->input.stage)->optimizer == ZERO_HOLD_PIECE;
}

/* True for one rank of each copy. */
static bool counts(const struct search *f, int rank)
{
    if (!is_member(f, rank) || f->kind != ZERO_COPIES_OF_NODES) return is_member(f, rank);
    return zero_replicas_first_beside(f->r, rank) == rank;
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

/* Divides the group's ranks into two classes: those that hold what `rank` holds, and the
 * others. */
static void divide(const struct search *f, int rank, int *class_of, int *other)
{
    int size = f->r->comm->size, class = class_of[rank];
    *other = size;
    for (int r = size - 1; r >= 0; r--)
        if (is_member(f, r) && class_of[r] != class) *other = r;
    for (int r = f->first; r < f->end; r += f->step)
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
    /* Ranks of the group with equal words: class_of[k] is the lowest; UNKNOWN for the other
     * ranks. */
    const uint64_t *words = zero_finding_space(r).words;
    for (int k = 0; k < size; k++) {
        class_of[k] = is_member(f, k) ? f->first : UNKNOWN;
        while (is_member(f, k) &&
               memcmp(words + 2 * class_of[k], words + 2 * k, 2 * sizeof *words) != 0)
            class_of[k] += f->step;
    }
    int right = find_majority(f, class_of);
    if (owners_know(f)) { /* the owner of the first element that differs is right */
        int64_t d = 0, end;
        if (is_member(f, r->comm->rank)) d = owner_of(f, f->at.range.begin, &end);
        ZERO_TRY(learn(f, &d));
        right = (int)d * f->step + f->first;
    }
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
    const int all = zero_schedule_stage_ranks(r->schedule);
    struct search f = {.r = r,
                       .kind = kind,
                       .first = first,
                       .end = (first / all + 1) * all,
                       .step = zero_replicas_step(r->schedule, kind)};
    bool differ = false;
    ZERO_TRY(find_tensor(&f));
    if (f.at.tensor >= 0) {
        zero_finding last = f.at;
        ZERO_TRY(zero_finding_narrow(&f.at, false, look, &f));
        last.range.begin = f.at.range.begin;
        if (owners_know(&f)) { /* one owner answers for all of them */
            int64_t end = 0;
            if (is_member(&f, f.r->comm->rank)) (void)owner_of(&f, last.range.begin, &end);
            ZERO_TRY(learn(&f, &end));
            last.range.end = zero_min(last.range.end, end);
        }
        ZERO_TRY(zero_finding_narrow(&last, true, look, &f));
        f.at.range.end = last.range.end;
    }
    if (f.at.tensor >= 0) ZERO_TRY(look(&f, &f.at, &differ));
    return differ ? tell(&f) : zero_finding_lost("what ranks hold more than once");
}
