#include "engine/origin.h"

#include <unistd.h>

#include "base/hash.h"
#include "nn/mark.h"
#include "sharding/checks.h"
#include "state/inspect.h"

/* ---- the results of a call ---- */

/* An array that a call writes: x[n], of which it may read the first `kept` elements. `what`
 * is a tensor, or one of ZERO_ORIGIN_. */
struct result {
    int what;
    zero_type type;
    void *x;
    int64_t n, kept;
};

/* One call of a unit, and what is done with each of its results. */
struct looking {
    zero_runner *r;
    const zero_instruction *i;
    const zero_call *call;
    zero_origin *first;
    void (*look)(const struct looking *l, const struct result *result);
    uint64_t **hashes; /* the next one, of results computed twice */
};

static const zero_model *model_of(const struct looking *l)
{
    return l->r->schedule->model;
}

static zero_unit_sizes sizes_of(const struct looking *l, int unit)
{
    const zero_unit *u = &model_of(l)->units[unit];
    return u->sizes(u, l->call->batch->B, l->call->batch->T);
}

static void note(const struct looking *l, int what, int64_t element)
{
    if (l->first->at >= 0) return;
    *l->first = (zero_origin){.at = l->r->at,
                              .unit = l->i->unit,
                              .tensor = what,
                              .microbatch = l->i->microbatch,
                              .element = element};
}

/* The tensors of a group within `range` of it, whose elements begin at `x`. */
static void look_at_tensors(const struct looking *l, int group, zero_range range,
                            zero_type type, void *x, bool is_kept)
{
    zero_range part;
    for (int t = -1; zero_next_part(model_of(l), group, range, &t, &part);) {
        int64_t n = zero_range_len(part);
        l->look(l,
                &(struct result){t, type, zero_type_to(type, x, part.begin - range.begin),
                                 n, is_kept ? n : 0});
    }
}

/* The stream has the gradient of the unit's output where it does not begin. */
static void look_at_results(const struct looking *l)
{
    const zero_call *call = l->call;
    const int number = l->i->unit;
    const zero_unit *unit = &model_of(l)->units[number];
    zero_unit_sizes sizes = sizes_of(l, number);
    bool is_last = number == model_of(l)->n_units - 1;
    if (l->i->op != ZERO_OP_BACKWARD) {
        l->look(l, &(struct result){ZERO_ORIGIN_OUTPUT, unit->activations, call->out,
                                    sizes.out, 0});
        return;
    }
    for (int k = 0; k < unit->n_groups; k++) {
        zero_range all = {0, model_of(l)->groups[unit->groups[k]].n_params};
        look_at_tensors(l, unit->groups[k], all, ZERO_FP32, call->grad[k],
                        call->accumulate[k]);
    }
    l->look(l, &(struct result){ZERO_ORIGIN_LOSS, ZERO_FP32, call->row_loss, sizes.row_loss,
                                0});
    if (number > 0)
        l->look(l, &(struct result){ZERO_ORIGIN_STREAM, unit->activations, call->stream,
                                    sizes_of(l, number - 1).out, is_last ? 0 : sizes.out});
}

/* ---- numbers that are not finite ---- */

/* Squares of floats cannot overflow a double: the sum is finite exactly if all of x is. */
static void look_for_infinite(const struct looking *l, const struct result *result)
{
    zero_runner *r = l->r;
    double sum, *found = &sum, *where = &sum;
    if (!result->x || result->what == ZERO_ORIGIN_STREAM) return;
    if (r->link.memory) { /* NORM comes later */
        where = zero_runner_buffer(r, r->schedule->squares);
        found = zero_runner_buffer(r, r->schedule->squares_host);
    }
    r->backend->sum_squares(&r->math, result->type, result->n, result->x, where);
    if (r->link.memory) zero_link_fetch_now(&r->link, found, where, sizeof sum);
    if (!isfinite(*found)) note(l, result->what, 0);
}

void zero_origin_look(zero_runner *r, const zero_instruction *i, const zero_call *call,
                      zero_origin *first)
{
    look_at_results(&(struct looking){r, i, call, first, look_for_infinite, NULL});
}

void zero_origin_look_at_joint(zero_runner *r, const zero_instruction *i,
                               const zero_unit_part *part, const zero_call *call,
                               zero_origin *first)
{
    int what = i->op == ZERO_OP_BACKWARD ? ZERO_ORIGIN_JOINT : ZERO_ORIGIN_OUTPUT;
    if (part->join != ZERO_JOIN_NONE)
        look_for_infinite(&(struct looking){.r = r, .i = i, .first = first},
                          &(struct result){what, ZERO_FP32, call->joint, part->count, 0});
}

/* A gradient that was finite in the backward pass may be too large for 16 bits, or its
 * sum. */
void zero_origin_look_at_sum(zero_runner *r, const zero_instruction *i, zero_type type,
                             void *x, zero_origin *first)
{
    struct looking l = {.r = r, .i = i, .first = first, .look = look_for_infinite};
    look_at_tensors(&l, i->group, i->range, type, x, false);
}

/* ---- telling ---- */

#define RANK_TEXT 64

static void describe(const zero_plan_input *plan, const zero_origin *o, int number,
                     char text[ZERO_ORIGIN_TEXT])
{
    const zero_model *model = plan->model;
    const size_t size = ZERO_ORIGIN_TEXT;
    char rank[RANK_TEXT];
    /* "rank 5", or with tensor parallelism "rank 5 (d 1, p 1)". */
    if (model->share.ranks == 1)
        snprintf(rank, RANK_TEXT, "rank %d", number);
    else
        snprintf(rank, RANK_TEXT, "rank %d (d %d, p %d)", number,
                 number / model->share.ranks, number % model->share.ranks);
    if (number < 0)
        snprintf(text, size, "every rank's gradients are finite, but not their sum");
    else if (o->tensor == ZERO_ORIGIN_LOSS)
        snprintf(text, size, "it begins in the losses of %s, on %s, microbatch %d",
                 model->units[o->unit].name, rank, o->microbatch);
    else if (o->tensor < 0)
        snprintf(text, size, "it begins in the %s pass of %s, on %s, microbatch %d",
                 o->tensor == ZERO_ORIGIN_JOINT ? "backward" : "forward",
                 model->units[o->unit].name, rank, o->microbatch);
    else if (o->unit < 0)
        snprintf(text, size,
                 "it begins where the gradient of %s is rounded to %s or added, on %s, "
                 "microbatch %d",
                 model->tensors[o->tensor].name, zero_type_name(plan->type), rank,
                 o->microbatch);
    else
        snprintf(text, size,
                 "it begins in the gradient of %s, in the backward pass of %s, on %s, "
                 "microbatch %d",
                 model->tensors[o->tensor].name, model->units[o->unit].name, rank,
                 o->microbatch);
}

zero_status zero_origin_describe(zero_comm *comm, const zero_plan_input *plan,
                                 const zero_origin *mine, char text[ZERO_ORIGIN_TEXT])
{
    zero_origin first;
    int rank;
    ZERO_FREED double *all = NULL;
    ZERO_TRY(zero_agree(comm, zero_new(&all, 4 * comm->size, "numbers of all ranks")));
    /* The earliest origin of all ranks', and its rank; -1: no rank has one. */
    const double own[] = {mine->at, mine->unit, mine->tensor, mine->microbatch};
    ZERO_TRY(zero_comm_all_gather_doubles(comm, 4, own, all));
    rank = -1;
    for (int r = 0; r < comm->size; r++) {
        const double *of = all + 4 * r;
        if (of[0] < 0.0 || (rank >= 0 && (int)of[0] >= first.at)) continue;
        first = (zero_origin){.at = (int)of[0],
                              .unit = (int)of[1],
                              .tensor = (int)of[2],
                              .microbatch = (int)of[3]};
        rank = r;
    }
    describe(plan, &first, rank, text);
    return ZERO_OK;
}

/* ---- numbers left undefined ---- */

static void fill_piece(void *arg, void *piece, size_t bytes)
{
    const zero_type *type = arg;
    zero_mark_fill_type(*type, piece, (int64_t)(bytes / zero_type_size(*type)));
}

/* A failure is kept for the vote of the step: the other ranks continue until then. */
static void mark(const struct looking *l, const struct result *result)
{
    zero_type type = result->type;
    int64_t n = result->n - result->kept;
    if (result->x && n > 0)
        zero_link_keep(&l->r->link,
                       zero_overwrite(l->r, zero_type_to(type, result->x, result->kept),
                                      (size_t)n * zero_type_size(type), fill_piece, &type));
}

/* Memory of n floats that has activations; sums among them are undefined with their mark,
 * too. */
static void mark_room(const struct looking *l, float *x, int64_t n)
{
    const zero_type type = model_of(l)->units[l->i->unit].activations;
    mark(l, &(struct result){.type = type, .x = x, .n = type == ZERO_FP32 ? n : 2 * n});
}

void zero_undefined_before(zero_runner *r, const zero_instruction *i, const zero_call *call)
{
    struct looking l = {r, i, call, NULL, mark, NULL};
    zero_unit_sizes sizes = sizes_of(&l, i->unit);
    bool is_back = i->op == ZERO_OP_BACKWARD;
    look_at_results(&l);
    if (!is_back) mark_room(&l, call->saved, sizes.saved);
    mark_room(&l, call->work, is_back ? sizes.backward_work : sizes.forward_work);
}

struct finding {
    zero_type type;
    int64_t passed, found; /* elements; -1: no mark yet */
};

static void find_in_piece(void *arg, const void *piece, size_t bytes)
{
    struct finding *f = arg;
    int64_t n = (int64_t)(bytes / zero_type_size(f->type));
    int64_t at = zero_mark_find_type(f->type, piece, n);
    if (f->found < 0 && at >= 0) f->found = f->passed + at;
    f->passed += n;
}

static void find(const struct looking *l, const struct result *result)
{
    struct finding f = {.type = result->type, .found = -1};
    if (!result->x || result->n <= 0 || l->first->at >= 0) return;
    zero_link_keep(&l->r->link,
                   zero_inspect(l->r, result->x,
                                (size_t)result->n * zero_type_size(result->type),
                                find_in_piece, &f));
    if (f.found >= 0) note(l, result->what, f.found);
}

void zero_undefined_after(zero_runner *r, const zero_instruction *i, const zero_call *call,
                          zero_origin *first)
{
    look_at_results(&(struct looking){r, i, call, first, find, NULL});
}

zero_status zero_undefined_tell(const zero_model *model, const zero_origin *first)
{
    if (first->at < 0) return ZERO_OK;
    const char *unit = model->units[first->unit].name;
    switch (first->tensor) {
    case ZERO_ORIGIN_OUTPUT:
        return zero_fail(
            ZERO_ERR_INVALID,
            "unit '%s' leaves element %" PRId64
            " of its output undefined: a forward call sets as many as sizes() says",
            unit, first->element);
    case ZERO_ORIGIN_STREAM:
        return zero_fail(
            ZERO_ERR_INVALID,
            "unit '%s' leaves element %" PRId64
            " of the gradient of its input undefined: a backward call sets stream to d(in)",
            unit, first->element);
    case ZERO_ORIGIN_LOSS:
        return zero_fail(ZERO_ERR_INVALID,
                         "unit '%s' leaves the loss of position %" PRId64
                         " undefined: the last unit's backward call sets row_loss",
                         unit, first->element);
    default:
        return zero_fail(
            ZERO_ERR_INVALID,
            "unit '%s' leaves element %" PRId64
            " of the gradient of '%s' undefined: a backward call sets every element of a "
            "gradient, and adds only where call->accumulate is true",
            unit, first->element, model->tensors[first->tensor].name);
    }
}

/* ---- results computed twice ---- */

void zero_twice_before(zero_runner *r, const zero_instruction *i, const zero_call *call,
                       bool back)
{
    const zero_schedule *s = r->schedule;
    const zero_unit *unit = &s->model->units[i->unit];
    const struct looking l = {.r = r, .call = call};
    const zero_unit_sizes sizes = sizes_of(&l, i->unit);
    float *before = zero_runner_buffer(r, i->before);
    for (int k = 0; before && k <= unit->n_groups; k++) {
        bool is_stream = k == unit->n_groups;
        if (is_stream ? i->unit == s->model->n_units - 1 : !i->accumulate[k]) continue;
        float *x = is_stream ? call->stream : call->grad[k];
        int64_t n = is_stream ? zero_unit_out_room(unit, &sizes)
                              : s->groups[unit->groups[k]].partition.padded;
        r->backend->round(&r->math, ZERO_FP32, n, back ? before : x, back ? x : before);
        before += n;
    }
}

struct hashing {
    uint64_t *next;
    bool compares;
    int64_t passed, differs; /* pieces; -1: none differs yet */
};

static void hash_piece(void *arg, const void *piece, size_t bytes)
{
    struct hashing *h = arg;
    for (size_t at = 0; at < bytes; at += ZERO_TWICE_PIECE) {
        size_t n = zero_min_size(ZERO_TWICE_PIECE, bytes - at);
        uint64_t hash = XXH3_64bits((const char *)piece + at, n);
        if (h->compares && h->differs < 0 && *h->next != hash) h->differs = h->passed;
        *h->next++ = hash;
        h->passed++;
    }
}

static void hash(const struct looking *l, const struct result *result)
{
    const size_t size = zero_type_size(result->type);
    const int64_t in_piece = (int64_t)(ZERO_TWICE_PIECE / size);
    struct hashing h = {.next = *l->hashes, .compares = l->first != NULL, .differs = -1};
    if (!result->x || result->n <= 0) return;
    zero_link_keep(&l->r->link,
                   zero_inspect(l->r, result->x, (size_t)result->n * size, hash_piece, &h));
    *l->hashes = h.next;
    if (h.differs < 0 || l->first->at >= 0) return;
    note(l, result->what, h.differs * in_piece);
    l->first->end = zero_min(l->first->element + in_piece, result->n);
}

void zero_twice_hash(zero_runner *r, const zero_instruction *i, const zero_call *call,
                     zero_origin *first)
{
    uint64_t *hashes = zero_runner_buffer(r, i->hashes);
    const struct looking l = {r, i, call, first, hash, &hashes};
    look_at_results(&l);
    if (i->op != ZERO_OP_BACKWARD)
        hash(&l, &(struct result){ZERO_ORIGIN_SAVED, ZERO_FP32, call->saved,
                                  sizes_of(&l, i->unit).saved, 0});
    assert((size_t)((char *)hashes - (char *)zero_runner_buffer(r, i->hashes)) <=
           r->schedule->buffers[i->hashes].bytes);
}

zero_status zero_twice_tell(const zero_runner *r, int64_t step, const zero_origin *first)
{
    static const char *const words[] = {[-ZERO_ORIGIN_OUTPUT] = "output",
                                        [-ZERO_ORIGIN_LOSS] = "losses",
                                        [-ZERO_ORIGIN_STREAM] = "gradient of the input",
                                        [-ZERO_ORIGIN_SAVED] = "activations for backward"};
    const zero_model *model = r->schedule->model;
    char host[64] = "";
    if (first->at < 0) return ZERO_OK;
    gethostname(host, sizeof host - 1);
    const zero_instruction *i = &r->schedule->programs[ZERO_PROGRAM_STEP].code[first->at];
    bool is_tensor = first->tensor >= 0;
    return zero_fail(
        ZERO_ERR_CORRUPTED,
        "step %" PRId64 ": rank %d computed %s of %s, microbatch %d, twice from the same "
        "inputs: the %s%s, elements %" PRId64 " to %" PRId64
        ", differs. Memory or a CPU is faulty on %s, where rank %d runs: resume from the "
        "newest checkpoint on other hardware",
        step + 1, r->comm->rank, zero_op_name(i->op), model->units[first->unit].name,
        first->microbatch, is_tensor ? "gradient of " : words[-first->tensor],
        is_tensor ? model->tensors[first->tensor].name : "", first->element, first->end - 1,
        host, r->comm->rank);
}
