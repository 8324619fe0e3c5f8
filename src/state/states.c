#include "state/states.h"

#include "state/host_copies.h"
#include "state/inspect.h"

#define WEIGHTS_AT_ONCE ((int64_t)1 << 20) /* floats; a checkpoint reads such blocks */

/* ---- filling ---- */

struct filling {
    const zero_plan_input *plan;
    const zero_weights *weights;
    int group;
    /* Without masters: */
    float *chunk;
    int64_t at; /* the next element */
    zero_status status;
};

static zero_status fill_block(void *arg, const zero_state_block *block)
{
    const struct filling *f = arg;
    return zero_weights_fill(f->weights, f->plan->model, f->group, block->range,
                             block->master);
}

/* Writes the next elements, rounded, whose bytes fill a piece. */
static void fill_piece(void *arg, void *piece, size_t bytes)
{
    struct filling *f = arg;
    size_t size = zero_type_size(f->plan->type);
    for (int64_t left = (int64_t)(bytes / size); left > 0 && f->status == ZERO_OK;) {
        int64_t n = zero_min(left, WEIGHTS_AT_ONCE);
        f->status = zero_weights_fill(f->weights, f->plan->model, f->group,
                                      (zero_range){f->at, f->at + n}, f->chunk);
        zero_convert(ZERO_FP32, f->plan->type, n, f->chunk, piece);
        piece = (char *)piece + (size_t)n * size;
        f->at += n;
        left -= n;
    }
}

zero_status zero_states_fill(zero_runner *r, const zero_weights *weights)
{
    const zero_plan_input *plan = &r->schedule->input;
    bool has_masters = plan->type == ZERO_FP32 || !plan->forward_only;
    struct filling f = {.plan = plan, .weights = weights};
    if (!has_masters) f.chunk = malloc(WEIGHTS_AT_ONCE * sizeof *f.chunk);
    f.status = zero_allocated(has_masters || f.chunk,
                              "no memory to round %" PRId64 " weights", WEIGHTS_AT_ONCE);
    for (f.group = 0; f.status == ZERO_OK && f.group < plan->model->n_groups; f.group++) {
        zero_range own = zero_states_held(r->schedule, f.group);
        void *param = zero_runner_element(r, r->schedule->groups[f.group].param, own.begin);
        f.at = own.begin;
        zero_status st =
            has_masters
                ? zero_states_visit(r, f.group, own, ZERO_VISIT_CHANGE, fill_block, &f)
                : zero_overwrite(r, param, zero_range_bytes(own, plan->type), fill_piece,
                                 &f);
        if (st != ZERO_OK) f.status = st;
    }
    free(f.chunk);
    return f.status;
}

/* ---- rounding ---- */

struct rounding {
    zero_runner *r;
    int param; /* the buffer */
};

static zero_status round_block(void *arg, const zero_state_block *block)
{
    const struct rounding *to = arg;
    zero_runner *r = to->r;
    const zero_type type = r->schedule->input.type;
    const int64_t n = zero_range_len(block->range);
    void *param = zero_runner_element(r, to->param, block->range.begin);
    if (zero_plan_updates_beside(&r->schedule->input)) { /* the host rounds, and copies */
        zero_convert(ZERO_FP32, type, n, block->master, param);
        return ZERO_OK;
    }
    r->backend->round(&r->math, type, n, block->master, param);
    return r->backend->sync(&r->math); /* the next block may lie where this one does */
}

zero_status zero_states_round(zero_runner *r)
{
    for (int g = 0; g < r->schedule->model->n_groups; g++) {
        const zero_schedule *s = r->schedule;
        const zero_group_state *state = &s->groups[g];
        const zero_range held = zero_states_held(s, g);
        const zero_type type = s->input.type;
        const bool is_beside = zero_plan_updates_beside(&s->input);
        struct rounding to = {r, is_beside ? state->host_param : state->param};
        void *param = zero_runner_element(r, state->param, held.begin);
        if (state->late_param != ZERO_NO_BUFFER && type == ZERO_FP32)
            /* A delayed update works on a copy of the masters. */
            memcpy(zero_runner_element(r, state->late_param, held.begin), param,
                   zero_range_bytes(held, ZERO_FP32));
        if (!state->is_here) continue;
        if (is_beside) {
            zero_host_await(r, g);
            if (state->host_param != state->master)
                ZERO_TRY(zero_states_visit(r, g, held, ZERO_VISIT_READ, round_block, &to));
            zero_host_store(r, g, 0);
            continue;
        }
        bool is_master = type == ZERO_FP32 || s->input.forward_only;
        if (is_master || zero_offload_has_parameters(s, g)) continue;
        if (!r->link.memory)
            ZERO_TRY(zero_states_visit(r, g, held, ZERO_VISIT_READ, round_block, &to));
        else /* on a device masters and parameters lie beside each other */
            r->backend->round(&r->math, type, zero_range_len(held),
                              zero_runner_element(r, state->master, held.begin), param);
    }
    return ZERO_OK;
}

/* ---- hashing ---- */

static zero_status read_states(void *arg, int group, zero_range range,
                               zero_state_visitor *visit, void *visit_arg)
{
    return zero_states_visit(arg, group, range, ZERO_VISIT_READ, visit, visit_arg);
}

static int first_of(void *arg, int group)
{
    const zero_schedule *s = ((const zero_runner *)arg)->schedule;
    return s->groups[group].stage * s->input.n_ranks;
}

zero_status zero_states_digest_begin(zero_runner *r, const zero_digest_source *source,
                                     zero_digest_work **work)
{
    const zero_schedule *s = r->schedule;
    int n = s->model->n_groups;
    ZERO_FREED const zero_partition **partitions = NULL;
    ZERO_TRY(zero_agree(r->comm, zero_new(&partitions, n, "groups")));
    for (int g = 0; g < n; g++) partitions[g] = &s->groups[g].partition;
    zero_digest_source of = *source;
    of.optimizer = s->input.optimizer;
    return zero_digest_begin(s->model, r->comm, partitions, &of, work);
}

zero_status zero_states_digest(zero_runner *r, char hex[33])
{
    zero_digest_work *work;
    ZERO_TRY(zero_states_digest_begin(
        r, &(zero_digest_source){.read = read_states, .arg = r, .first = first_of}, &work));
    zero_digest_hash(work);
    return zero_digest_end(work, hex);
}
