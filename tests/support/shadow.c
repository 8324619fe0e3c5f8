#include "support/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "support/shadow_ops.h"

int64_t *shadow_index_of(const shadow *w, int rank, int microbatch)
{
    return &w->index[(int64_t)rank * shadow_plan(w)->input.accumulation + microbatch];
}

bool *shadow_loss_of(const shadow *w, int rank, int microbatch)
{
    return &w->has_loss[(int64_t)rank * shadow_plan(w)->input.accumulation + microbatch];
}

void shadow_next_rank(shadow *w, int rank)
{
    w->rank = rank % w->job->n_ranks;
}

/* ---- programs ---- */

typedef void (*action)(shadow *w);
static const action of_each_rank[ZERO_OP_KINDS] = {
    [ZERO_OP_LOAD] = shadow_load,
    [ZERO_OP_FORWARD] = shadow_forward,
    [ZERO_OP_RECOMPUTE] = shadow_forward,
    [ZERO_OP_BACKWARD] = shadow_backward,
    [ZERO_OP_RELEASE] = shadow_let_go,
    [ZERO_OP_ROUND] = shadow_round,
    [ZERO_OP_ACCUMULATE] = shadow_accumulate,
    [ZERO_OP_LOSS] = shadow_loss,
    [ZERO_OP_NORM] = shadow_norm,
    [ZERO_OP_OVERFLOW] = shadow_overflow,
    [ZERO_OP_VERIFY] = shadow_check,
    [ZERO_OP_COMPARE] = shadow_check,
    [ZERO_OP_UPDATE] = shadow_update,
    [ZERO_OP_RECORD] = shadow_record,
};
static const action of_all[ZERO_OP_KINDS] = {
    [ZERO_OP_GATHER] = shadow_gather,
    [ZERO_OP_GATHER_WAIT] = shadow_gather_wait,
    [ZERO_OP_REDUCE] = shadow_reduce,
    [ZERO_OP_REDUCE_WAIT] = shadow_reduce_wait,
};

/* All ranks do the same; otherwise a collective would never end. */
static void execute(shadow *w)
{
    const zero_instruction *first = &w->job->s[0].programs[w->program].code[w->at];
    for (w->rank = w->job->n_ranks - 1; w->rank > 0; w->rank--)
        shadow_expect(w, shadow_now(w)->op == first->op &&
                             shadow_now(w)->group == first->group &&
                             shadow_now(w)->unit == first->unit &&
                             shadow_now(w)->microbatch == first->microbatch);
    if (of_all[first->op]) {
        of_all[first->op](w);
        return;
    }
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r))
        of_each_rank[first->op](w);
}

static void start(shadow *w, zero_program_kind program)
{
    size_t all = (size_t)w->job->n_ranks * (size_t)w->job->s[0].input.accumulation;
    size_t groups = (size_t)shadow_groups(w) * sizeof(int);
    w->program = program;
    w->at = 0;
    w->losses = w->norms = w->overflows = 0;
    memset(w->reduces, 0, groups);
    memset(w->gathers, 0, groups);
    memset(w->updates, 0, groups);
    memset(w->index, -1, all * sizeof *w->index);
    memset(w->has_loss, 0, all * sizeof *w->has_loss);
    shadow_memory_forget(w);
    if (program == ZERO_PROGRAM_STEP) truth_compute(&w->truth, w->step);
}

/* Reductions end in their program, and no gather is lost. */
static void finish(shadow *w)
{
    int M = w->job->s[0].input.accumulation;
    const zero_stage *stage = zero_stage_at(w->job->s[0].input.stage);
    bool once = stage->gradients == ZERO_HOLD_WHOLE;
    bool is_step = w->program == ZERO_PROGRAM_STEP;
    for (int g = 0; g < shadow_groups(w); g++) {
        shadow_expect(w, !w->reduce[g].is_under_way);
        shadow_expect(w, w->updates[g] == is_step);
        shadow_expect(w, w->reduces[g] == (is_step ? once ? 1 : M : 0));
        bool is_end =
            w->program == ZERO_PROGRAM_PROLOGUE || w->program == ZERO_PROGRAM_EPILOGUE;
        if (is_end) shadow_expect(w, !w->gather[g].is_under_way);
    }
    shadow_expect(w, w->losses == (is_step || w->program == ZERO_PROGRAM_EVALUATE));
    shadow_expect(w, w->overflows == is_step);
    w->step += is_step;
}

void shadow_walk(shadow *w, zero_program_kind program)
{
    start(w, program);
    for (int r = 1; r < w->job->n_ranks; r++)
        assert_int_equal(w->job->s[r].programs[program].length,
                         w->job->s[0].programs[program].length);
    for (; w->at < w->job->s[0].programs[program].length; w->at++) execute(w);
    finish(w);
}

/* ---- begin and end ---- */

static void initialize_piece(shadow *w, int g, int p)
{
    const zero_group_state *state = &shadow_plan(w)->groups[g];
    const shadow_truth *t = &w->truth;
    int64_t at = (int64_t)g * w->job->n_ranks + p;
    if (state->master != ZERO_NO_BUFFER)
        shadow_write_piece(w, g, state->master, p, t->master[at]);
    shadow_write_piece(w, g, state->momentum, p, t->momentum[at]);
    shadow_write_piece(w, g, state->variance, p, t->variance[at]);
    shadow_write_piece(w, g, state->param, p, t->param[at]);
}

static void initialize(shadow *w)
{
    bool is_all = zero_stage_at(shadow_plan(w)->input.stage)->optimizer == ZERO_HOLD_WHOLE;
    for (int g = 0; g < shadow_groups(w); g++)
        for (int p = 0; p < w->job->n_ranks; p++)
            if (!shadow_is_empty(w, g, p) && (is_all || p == w->rank))
                initialize_piece(w, g, p);
}

static shadow_exchange *new_exchanges(const shadow *w)
{
    shadow_exchange *x = calloc((size_t)shadow_groups(w), sizeof *x);
    assert_non_null(x);
    for (int g = 0; g < shadow_groups(w); g++) {
        x[g].value = calloc((size_t)w->job->n_ranks, sizeof *x[g].value);
        assert_non_null(x[g].value);
    }
    return x;
}

void shadow_open(shadow *w, const schedule_job *job)
{
    size_t all = (size_t)job->n_ranks * (size_t)job->s[0].input.accumulation;
    *w = (shadow){.job = job, .program = ZERO_PROGRAM_PROLOGUE};
    shadow_memory_open(w);
    truth_open(&w->truth, &job->s[0]);
    w->reduce = new_exchanges(w);
    w->gather = new_exchanges(w);
    w->index = calloc(all, sizeof *w->index);
    w->has_loss = calloc(all, sizeof *w->has_loss);
    w->reduces = calloc(3 * (size_t)shadow_groups(w), sizeof *w->reduces);
    assert_true(w->index && w->has_loss && w->reduces);
    w->gathers = w->reduces + shadow_groups(w);
    w->updates = w->gathers + shadow_groups(w);
    for (int r = 0; r < job->n_ranks; r++, shadow_next_rank(w, r)) initialize(w);
}

static void destroy_exchanges(const shadow *w, shadow_exchange *x)
{
    for (int g = 0; g < shadow_groups(w); g++) free(x[g].value);
    free(x);
}

void shadow_close(shadow *w)
{
    destroy_exchanges(w, w->reduce);
    destroy_exchanges(w, w->gather);
    free(w->reduces);
    free(w->has_loss);
    free(w->index);
    truth_close(&w->truth);
    shadow_memory_close(w);
}

void shadow_live(const schedule_job *job)
{
    static const zero_program_kind life[] = {
        ZERO_PROGRAM_PROLOGUE, ZERO_PROGRAM_STEP,     ZERO_PROGRAM_STEP,
        ZERO_PROGRAM_EVALUATE, ZERO_PROGRAM_EVALUATE, ZERO_PROGRAM_STEP,
        ZERO_PROGRAM_GENERATE, ZERO_PROGRAM_STEP,     ZERO_PROGRAM_EPILOGUE};
    shadow w;
    shadow_open(&w, job);
    for (size_t k = 0; k < sizeof life / sizeof life[0]; k++) shadow_walk(&w, life[k]);
    shadow_close(&w);
}
