/* zero/optimizer.h: two collectives on the program's own memory.
 *
 * Collectives need N equal pieces, and the program's arrays have no padding. So there are
 * two parts: SHARDS, cut in place into N shards of whole granules, and the REST, less than
 * a granule per rank, which goes through a padded copy. */
#include "zero/optimizer.h"
#include "base/hash.h"

#include "base/arena.h"
#include "comm/collective.h"
#include "comm/comm.h"
#include "comm/fields.h"
#include "comm/sentence.h"
#include "math/backends.h"
#include "sharding/update.h"

enum { SHARDS, REST, PARTS };

struct part {
    int64_t begin;  /* of all ranks' pieces, in the flat space */
    int64_t stride; /* of one rank's piece; elements */
    zero_range own; /* this rank's piece without padding, in the flat space */
    float *master, *state[ZERO_MOST_STATES]; /* [stride] */
    char *params, *grads;                    /* the rest: the padded copies, [N][stride] */
    zero_collective collectives[2];          /* reduces; gathers */
    void *staging;
};

struct zero_optimizer {
    zero_optimizer_spec spec;
    int rule;             /* of math/rules.h */
    zero_range *no_decay; /* owned */
    zero_comm *comm;      /* kept from ending */
    const zero_backend *backend;
    zero_math math;
    struct part parts[PARTS];
    zero_arena arena;
    int64_t updates;
};

/* ---- the spec ---- */

static zero_status check_spec(const zero_optimizer_spec *s, const void *params,
                              zero_optimizer **optimizer)
{
    ZERO_INVALID_IF(
        !s || !optimizer,
        "zero_optimizer_open() with NULL: expected a spec and a place for the optimizer");
    ZERO_INVALID_IF(!params, "params is NULL: expected the array of %" PRId64 " parameters",
                    s->n_params);
    ZERO_INVALID_IF(s->n_params < 1 || s->n_params > INT64_C(1) << 56,
                    "n_params %" PRId64 ": expected 1 to 2^56", s->n_params);
    ZERO_INVALID_IF(s->updates < 0 || s->updates > INT64_C(1) << 62,
                    "updates %" PRId64 ": expected 0 to 2^62", s->updates);
    ZERO_INVALID_IF(s->type != ZERO_FP32 && s->type != ZERO_BF16 && s->type != ZERO_FP16,
                    "type %d: expected one of zero_type", (int)s->type);
    int64_t reached = 0;
    ZERO_INVALID_IF(s->n_no_decay < 0 || (s->n_no_decay > 0 && !s->no_decay),
                    "n_no_decay %d without spans", s->n_no_decay);
    for (int i = 0; i < s->n_no_decay; i++) {
        zero_range span = s->no_decay[i];
        ZERO_INVALID_IF(span.begin < reached || span.end < span.begin ||
                            span.end > s->n_params,
                        "no_decay[%d] is [%" PRId64 ", %" PRId64
                        "): expected spans in order, without overlap, within 0 to %" PRId64,
                        i, span.begin, span.end, s->n_params);
        reached = span.end;
    }
    return ZERO_OK;
}

static zero_status find_algorithm(const zero_optimizer_spec *s, zero_algorithm *algorithm)
{
    const char *name = s->collectives ? s->collectives : "p2p";
    if (!zero_algorithm_find(name, algorithm)) {
        zero_sentence usable = {.used = 0};
        for (int a = 0; a < ZERO_ALGORITHMS; a++)
            if (!zero_algorithm_get((zero_algorithm)a)->works_in_window)
                zero_sentence_add(&usable, " %s", zero_algorithm_name_at(a));
        return zero_fail(ZERO_ERR_INVALID, "collectives '%s': expected one of%s", name,
                         usable.chars);
    }
    ZERO_FAIL_IF(zero_algorithm_get(*algorithm)->works_in_window, ZERO_ERR_UNSUPPORTED,
                 "collectives '%s' read neighbours' memory, and these arrays are the "
                 "program's own: take 'p2p'",
                 name);
    return ZERO_OK;
}

/* The parts of a spec that must be equal on all ranks. */
struct compared {
    int64_t n_params, updates;
    const char *type, *collectives;
    const char *no_decay, *params; /* their hashes, as text */
    int optimizer;
};

static const zero_field compared_fields[] = {
    ZERO_FIELD(struct compared, n_params),
    ZERO_FIELD(struct compared, type),
    ZERO_FIELD(struct compared, no_decay),
    ZERO_FIELD(struct compared, collectives),
    ZERO_FIELD(struct compared, updates),
    ZERO_FIELD(struct compared, params),
    {"optimizer", ZERO_FIELD_INT, offsetof(struct compared, optimizer), zero_rule_name_at}};

typedef char hash_text[24];

static const char *write_hash(const void *data, size_t bytes, hash_text text)
{
    uint64_t hash = bytes > 0 ? XXH3_64bits(data, bytes) : 0;
    snprintf(text, sizeof(hash_text), "hash %016" PRIx64, hash);
    return text;
}

/* ---- open and close ---- */

/* Bytes of n elements of the arrays. */
static size_t bytes_of(const zero_optimizer *o, int64_t n)
{
    return (size_t)n * zero_type_size(o->spec.type);
}

/* The next `bytes` of the arena, from *at on; NULL while it is only being measured. */
static void *take(const zero_optimizer *o, size_t bytes, size_t *at)
{
    void *place = o->arena.base ? o->arena.base + *at : NULL;
    *at += zero_round_up_size(bytes, 64);
    return place;
}

static size_t lay_out(zero_optimizer *o)
{
    size_t at = 0;
    for (int i = 0; i < PARTS; i++) {
        struct part *p = &o->parts[i];
        size_t states = (size_t)p->stride * sizeof(float);
        for (int k = 0; k < zero_rule_most_states(o->rule); k++)
            p->state[k] = take(o, states, &at);
        if (o->spec.type != ZERO_FP32) p->master = take(o, states, &at);
        size_t staging[2];
        for (int k = 0; k < 2; k++)
            staging[k] =
                zero_collective_staging(&p->collectives[k].steps.spec, &o->comm->layout);
        p->staging = take(o, zero_max_size(staging[0], staging[1]), &at);
    }
    struct part *rest = &o->parts[REST];
    rest->params = take(o, bytes_of(o, rest->stride * o->comm->size), &at);
    rest->grads = take(o, bytes_of(o, rest->stride * o->comm->size), &at);
    return at;
}

static zero_status create(const zero_optimizer_spec *spec, zero_comm *comm,
                          zero_algorithm algorithm, int rule, const void *params,
                          zero_optimizer **out)
{
    ZERO_TRY(zero_new(out, 1, "an optimizer"));
    zero_optimizer *o = *out;
    *o = (zero_optimizer){
        .spec = *spec, .rule = rule, .comm = comm, .updates = spec->updates};
    zero_comm_keep(comm);
    const int64_t ranks = o->comm->size, n = o->spec.n_params;
    struct part *p = o->parts;
    p[SHARDS].stride = n / (ranks * ZERO_TREE_BLOCK) * ZERO_TREE_BLOCK;
    p[REST].begin = p[SHARDS].stride * ranks;
    p[REST].stride = p[REST].begin < n ? ZERO_TREE_BLOCK : 0;
    for (int i = 0; i < PARTS; i++) {
        int64_t begin = p[i].begin + p[i].stride * o->comm->rank;
        p[i].own = (zero_range){zero_min(begin, n), zero_min(begin + p[i].stride, n)};
    }
    ZERO_TRY(zero_backend_find("cpu", &o->backend));
    ZERO_TRY(o->backend->open(&o->math));
    size_t bytes = (size_t)o->spec.n_no_decay * sizeof *o->no_decay;
    ZERO_TRY(zero_new(&o->no_decay, o->spec.n_no_decay, "spans"));
    if (bytes > 0) memcpy(o->no_decay, o->spec.no_decay, bytes);
    for (int i = 0; i < PARTS; i++) {
        struct part *part = &o->parts[i];
        zero_collective_spec what = {.kind = ZERO_REDUCE_SCATTER,
                                     .algorithm = algorithm,
                                     .type = o->spec.type,
                                     .result = o->spec.type,
                                     .count = part->stride,
                                     .stride = part->stride,
                                     .unit = i};
        ZERO_TRY(zero_collective_init(&part->collectives[0], o->comm, &what));
        what.kind = ZERO_ALL_GATHER;
        ZERO_TRY(zero_collective_init(&part->collectives[1], o->comm, &what));
    }
    ZERO_TRY(zero_arena_init(&o->arena, lay_out(o)));
    lay_out(o);
    for (int i = 0; i < PARTS && o->spec.type != ZERO_FP32; i++)
        zero_convert(o->spec.type, ZERO_FP32, zero_range_len(p[i].own),
                     (const char *)params + bytes_of(o, p[i].own.begin), p[i].master);
    return ZERO_OK;
}

zero_status zero_optimizer_open(const zero_optimizer_spec *spec, zero_comm *comm,
                                const void *params, zero_optimizer **optimizer)
{
    zero_algorithm algorithm = ZERO_ALGORITHM_P2P;
    int rule;
    ZERO_AT_END(zero_optimizer_close) zero_optimizer *o = NULL;
    ZERO_TRY(zero_comm_check(comm));
    zero_status st = check_spec(spec, params, optimizer);
    if (st == ZERO_OK) st = find_algorithm(spec, &algorithm);
    if (st == ZERO_OK) st = zero_rule_read(spec->optimizer, &rule);
    if (st == ZERO_OK && zero_rule_at(rule)->moves_matrices)
        st = zero_fail(
            ZERO_ERR_UNSUPPORTED,
            "optimizer '%s' moves whole matrices, and flat arrays do not say where "
            "these are: use zero/train.h",
            spec->optimizer);
    ZERO_TRY(zero_agree(comm, st));
    /* A difference that nobody sees would make each rank's parameters its own for ever:
     * the first step gathers them from their owners, whatever the others began with. */
    hash_text of_params, of_spans;
    size_t spans = (size_t)spec->n_no_decay * sizeof *spec->no_decay;
    size_t bytes = (size_t)spec->n_params * zero_type_size(spec->type);
    const struct compared mine = {.n_params = spec->n_params,
                                  .updates = spec->updates,
                                  .type = zero_type_name(spec->type),
                                  .collectives = zero_algorithm_name(algorithm),
                                  .optimizer = rule,
                                  .no_decay = write_hash(spec->no_decay, spans, of_spans),
                                  .params = write_hash(params, bytes, of_params)};
    ZERO_TRY(zero_compare_fields(comm, "the spec", ZERO_COUNT(compared_fields),
                                 compared_fields, &mine));
    ZERO_TRY(zero_agree(comm, create(spec, comm, algorithm, rule, params, &o)));
    ZERO_GIVE(optimizer, o);
    return ZERO_OK;
}

void zero_optimizer_close(zero_optimizer **optimizer)
{
    if (!optimizer || !*optimizer) return;
    zero_comm *comm = (*optimizer)->comm;
    zero_optimizer *o = *optimizer;
    for (int i = 0; i < 2 * PARTS; i++)
        zero_collective_destroy(&o->parts[i / 2].collectives[i % 2]);
    zero_arena_destroy(&o->arena);
    free(o->no_decay);
    free(o);
    *optimizer = NULL;
    zero_comm_release(comm);
}

/* ---- state ---- */

void zero_optimizer_parts(const zero_optimizer *o, zero_optimizer_part parts[2])
{
    for (int i = 0; parts && i < PARTS; i++) {
        const struct part *p = o ? &o->parts[i] : &(struct part){0};
        parts[i] = (zero_optimizer_part){.span = p->own,
                                         .master = p->master,
                                         .momentum = p->state[0],
                                         .variance = p->state[1]};
    }
}

int64_t zero_optimizer_count(const zero_optimizer *o)
{
    return o ? o->updates : -1;
}

/* ---- parts of a step ---- */

/* The places of an array's parts: the shards in place, the rest in its padded copy. */
struct place {
    char *all[PARTS]; /* [N][stride] */
    char *own[PARTS]; /* [stride] */
};

static struct place find(const zero_optimizer *o, char *array, char *copy)
{
    const struct part *rest = &o->parts[REST];
    struct place place = {.all = {array, copy}};
    /* The padding of the copy starts as zeros, and sums of zeros stay zeros. */
    memcpy(copy, array + bytes_of(o, rest->begin),
           bytes_of(o, o->spec.n_params - rest->begin));
    for (int i = 0; i < PARTS; i++)
        place.own[i] = place.all[i] + bytes_of(o, o->parts[i].stride * o->comm->rank);
    return place;
}

/* Reduces all ranks' parts to their owners, or gathers them. */
static zero_status exchange(zero_optimizer *o, const struct place *at, bool gathers)
{
    for (int i = 0; i < PARTS; i++)
        ZERO_TRY(zero_collective_begin(
            &o->parts[i].collectives[gathers], gathers ? at->own[i] : at->all[i],
            gathers ? at->all[i] : at->own[i], o->parts[i].staging));
    for (int i = 0; i < PARTS; i++)
        ZERO_TRY(zero_collective_wait(&o->parts[i].collectives[gathers]));
    return ZERO_OK;
}

/* Updates elements `span` of part i. */
static void update_span(zero_optimizer *o, int i, zero_range span, const zero_adamw *h,
                        const struct place *params, const struct place *grads)
{
    const struct part *p = &o->parts[i];
    int64_t at = span.begin - p->own.begin, n = zero_range_len(span);
    char *param = params->own[i] + bytes_of(o, at);
    bool is_master = o->spec.type == ZERO_FP32;
    if (n <= 0) return;
    zero_rule_update(
        o->rule, o->backend, &o->math, h,
        &(zero_adamw_arrays){.n = n,
                             .type = o->spec.type,
                             .grad = grads->own[i] + bytes_of(o, at),
                             .master = is_master ? (float *)(void *)param : p->master + at,
                             .m = p->state[0] + at,
                             .v = p->state[1] ? p->state[1] + at : NULL,
                             .param = is_master ? NULL : param});
}

/* ---- the arguments of a step ---- */

/* The numbers of a step that must be equal on all ranks. */
static const zero_field input_fields[] = {
    ZERO_FIELD(zero_optimizer_input, lr),           ZERO_FIELD(zero_optimizer_input, beta1),
    ZERO_FIELD(zero_optimizer_input, beta2),        ZERO_FIELD(zero_optimizer_input, eps),
    ZERO_FIELD(zero_optimizer_input, weight_decay), ZERO_FIELD(zero_optimizer_input, clip),
    ZERO_FIELD(zero_optimizer_input, divisor),
};
_Static_assert(sizeof(zero_optimizer_input) == 8 * ZERO_COUNT(input_fields),
               "a row for each");

static zero_status check_arrays(const zero_optimizer *o, const char *params,
                                const char *grads)
{
    size_t bytes = bytes_of(o, o->spec.n_params);
    ZERO_INVALID_IF(!params || !grads,
                    "an optimizer step without its array of %s: the pointer is NULL",
                    params ? "gradients" : "parameters");
    uintptr_t p = (uintptr_t)params, g = (uintptr_t)grads;
    ZERO_INVALID_IF(
        !(p + bytes <= g || g + bytes <= p),
        "the arrays of parameters and of gradients overlap: expected %zu bytes for each",
        bytes);
    return ZERO_OK;
}

static zero_status check_input(const zero_optimizer_input *in, zero_adamw *h)
{
    ZERO_INVALID_IF(!in, "the step's input is NULL: expected its learning rate and so on");
    ZERO_INVALID_IF(!(in->divisor > 0.0) || !isfinite(in->divisor),
                    "an optimizer step with divisor %g: expected more than 0, finite",
                    in->divisor);
    *h = zero_update_adamw(in->lr, in->beta1, in->beta2, in->eps, in->weight_decay);
    return zero_update_check(h, in->clip);
}

/* One reduction tells whether all ranks were called rightly, and alike. */
static zero_status agree_on(zero_optimizer *o, zero_status mine,
                            const zero_optimizer_input *in)
{
    const uint64_t positive = UINT64_MAX >> 1;
    uint64_t hash = mine == ZERO_OK ? XXH3_64bits(in, sizeof *in) : 0;
    int64_t failed;
    bool same;
    ZERO_TRY(zero_comm_vote(o->comm, mine != ZERO_OK, (int64_t)(hash & positive), &failed,
                            &same));
    if (failed) return zero_agree(o->comm, mine);
    if (same) return ZERO_OK;
    ZERO_TRY(zero_compare_fields(o->comm, "the step", ZERO_COUNT(input_fields),
                                 input_fields, in));
    return zero_fail(
        ZERO_ERR_INVALID,
        "ranks were given different steps, although their numbers read the same");
}

/* ---- the step ---- */

static zero_status step(zero_optimizer *o, void *params, void *grads,
                        const zero_optimizer_input *in, zero_adamw *hyper,
                        zero_optimizer_result *out)
{
    const struct part *rest = &o->parts[REST];
    struct place p = find(o, params, rest->params), g = find(o, grads, rest->grads);
    ZERO_TRY(exchange(o, &g, false));
    /* Squares of floats cannot overflow a double, so the sum is finite if and only if
     * the gradient is. */
    zero_tree_span spans[PARTS];
    for (int i = 0; i < PARTS; i++) {
        spans[i] = zero_gradient_squares(o->backend, &o->math, o->spec.type,
                                         o->spec.n_params, o->parts[i].own, g.own[i]);
    }
    ZERO_TRY(zero_comm_merge_spans(o->comm, PARTS, spans));
    zero_tree_span_merge(&spans[SHARDS], &spans[REST]);
    double squares = zero_tree_span_sum(&spans[SHARDS]);
    out->grad_norm = sqrt(squares) / in->divisor;
    ZERO_TRY(zero_comm_any(o->comm, !isfinite(squares), &out->overflow));
    hyper->step = o->updates + 1;
    hyper->grad_scale = zero_update_grad_scale(out->grad_norm, in->clip, in->divisor);
    if (!out->overflow) {
        for (int i = 0; i < PARTS; i++) {
            zero_range left = o->parts[i].own;
            zero_adamw plain = *hyper;
            plain.weight_decay = 0.0f;
            for (int k = 0; k < o->spec.n_no_decay; k++) {
                zero_range span = zero_range_overlap(o->no_decay[k], left);
                if (zero_range_is_empty(span)) continue;
                update_span(o, i, (zero_range){left.begin, span.begin}, hyper, &p, &g);
                update_span(o, i, span, &plain, &p, &g);
                left.begin = span.end;
            }
            update_span(o, i, left, hyper, &p, &g);
        }
        ZERO_TRY(o->backend->sync(&o->math));
        ZERO_TRY(exchange(o, &p, true));
    }
    o->updates += !out->overflow;
    memcpy((char *)params + bytes_of(o, rest->begin), rest->params,
           bytes_of(o, o->spec.n_params - rest->begin));
    return ZERO_OK;
}

zero_status zero_optimizer_step(zero_optimizer *o, void *params, void *grads,
                                const zero_optimizer_input *in,
                                zero_optimizer_result *result)
{
    zero_adamw hyper;
    zero_optimizer_result out;
    ZERO_INVALID_IF(!o, "the optimizer is NULL: open one with zero_optimizer_open()");
    ZERO_TRY(zero_comm_check(o->comm));
    zero_status st = check_arrays(o, params, grads);
    if (st == ZERO_OK) st = check_input(in, &hyper);
    if (st == ZERO_OK && !result)
        st = zero_fail(ZERO_ERR_INVALID, "the place for the result is NULL");
    ZERO_TRY(agree_on(o, st, in));
    ZERO_TRY(step(o, params, grads, in, &hyper, &out));
    *result = out;
    return ZERO_OK;
}
