#include "support/shadow.h"

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

int64_t *shadow_updated_of(const shadow *w, int g, int p)
{
    int n = shadow_pieces(w);
    return &w->updated[((int64_t)w->rank * shadow_groups(w) + g) * n + p];
}

/* ---- instructions ---- */

typedef void (*action)(shadow *w);
static const action of_each_rank[ZERO_OP_KINDS] = {
    [ZERO_OP_LOAD] = shadow_load,
    [ZERO_OP_FORWARD] = shadow_forward,
    [ZERO_OP_RECOMPUTE] = shadow_forward,
    [ZERO_OP_BACKWARD] = shadow_backward,
    [ZERO_OP_JOIN] = shadow_join,
    [ZERO_OP_JOIN_WAIT] = shadow_join_wait,
    [ZERO_OP_KEEP] = shadow_keep,
    [ZERO_OP_COLLECT] = shadow_collect,
    [ZERO_OP_COLLECT_WAIT] = shadow_collect_wait,
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
    [ZERO_OP_FETCH_GRAD] = shadow_fetch_grad,
    [ZERO_OP_PUBLISH] = shadow_publish,
    [ZERO_OP_DELAY] = shadow_delay,
    [ZERO_OP_FETCH_PARAM] = shadow_fetch_param,
    [ZERO_OP_FETCH_PARAM_WAIT] = shadow_fetch_param_wait,
    [ZERO_OP_SAVE] = shadow_save,
    [ZERO_OP_SAVE_WAIT] = shadow_save_wait,
    [ZERO_OP_RESTORE] = shadow_restore,
    [ZERO_OP_RESTORE_WAIT] = shadow_restore_wait,
};
static const action of_all[ZERO_OP_KINDS] = {
    [ZERO_OP_GATHER] = shadow_gather,
    [ZERO_OP_GATHER_WAIT] = shadow_gather_wait,
    [ZERO_OP_REDUCE] = shadow_reduce,
    [ZERO_OP_REDUCE_WAIT] = shadow_reduce_wait,
    [ZERO_OP_ALL_REDUCE] = shadow_all_reduce,
    [ZERO_OP_ALL_REDUCE_WAIT] = shadow_all_reduce_wait,
};
/* States in a slower tier. Of a file ranks may hold different numbers of blocks. */
static const action of_stream[ZERO_OP_KINDS] = {
    [ZERO_OP_FETCH] = shadow_fetch,           [ZERO_OP_FETCH_WAIT] = shadow_fetch_wait,
    [ZERO_OP_UPDATE] = shadow_update,         [ZERO_OP_STORE] = shadow_store,
    [ZERO_OP_STORE_WAIT] = shadow_store_wait, [ZERO_OP_STORE_PARAM] = shadow_store_param,
};

static bool is_of_stream(const zero_instruction *i)
{
    bool is_of_tier =
        i->file != ZERO_NO_BUFFER || i->on_host || i->op == ZERO_OP_STORE_PARAM;
    return of_stream[i->op] && is_of_tier;
}

static const zero_program *program_of(const shadow *w)
{
    return &shadow_plan(w)->programs[w->program];
}

/* ---- the stream, of w->rank ---- */

/* The stream's instructions whose `after` the walk has passed, in their order. */
static void run_ahead(shadow *w)
{
    const zero_program *p = program_of(w);
    int *ahead = &w->ahead[w->rank], walk = w->walk[w->rank];
    for (; *ahead < p->length; ++*ahead) {
        const zero_instruction *i = &p->code[*ahead];
        if (!is_of_stream(i)) continue;
        if (i->after >= walk) break;
        w->at[w->rank] = *ahead;
        of_stream[i->op](w);
    }
    w->at[w->rank] = walk;
}

static void step_walk(shadow *w)
{
    int *walk = &w->walk[w->rank];
    w->at[w->rank] = ++*walk;
    if (w->ahead[w->rank] < *walk) w->ahead[w->rank] = *walk;
    if (w->hurried >> w->rank & 1) run_ahead(w);
}

/* Up to the next instruction that is not of the stream. */
static void walk_stream(shadow *w)
{
    const zero_program *p = program_of(w);
    while (w->walk[w->rank] < p->length && is_of_stream(shadow_now(w))) {
        if (w->ahead[w->rank] <= w->walk[w->rank]) of_stream[shadow_now(w)->op](w);
        step_walk(w);
    }
}

/* ---- programs ---- */

/* All ranks do the same; otherwise a collective would never end. */
static void execute(shadow *w)
{
    const zero_instruction *first = &w->job->s[0].programs[w->program].code[w->at[0]];
    for (w->rank = w->job->n_ranks - 1; w->rank > 0; w->rank--)
        shadow_expect(w, shadow_now(w)->op == first->op &&
                             shadow_now(w)->group == first->group &&
                             shadow_now(w)->unit == first->unit &&
                             shadow_now(w)->part == first->part &&
                             shadow_now(w)->microbatch == first->microbatch);
    if (of_all[first->op]) {
        of_all[first->op](w);
        return;
    }
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r))
        of_each_rank[first->op](w);
}

/* The update that this program makes: in a lazy plan that of the last step. If it is delayed, this
 * step does not see it. */
static void prepare_update(shadow *w)
{
    bool is_delayed = w->job->s[0].input.offload == ZERO_OFFLOAD_DELAYED;
    bool is_lazy = w->job->s[0].input.offload == ZERO_OFFLOAD_LAZY || is_delayed;
    bool is_step = w->program == ZERO_PROGRAM_STEP;
    bool updates = is_step || w->program == ZERO_PROGRAM_EPILOGUE;
    w->is_due = is_lazy ? updates && w->is_pending : is_step;
    if (is_lazy && w->is_due) truth_prepare(&w->truth);
    w->truth.reads_new = is_lazy && w->is_due && !is_delayed;
    if (is_step) truth_compute(&w->truth, w->step);
    if (!is_lazy && w->is_due) truth_prepare(&w->truth);
    if (is_lazy && updates) w->is_pending = is_step;
}

static void start(shadow *w, zero_program_kind program)
{
    size_t all = (size_t)w->job->n_ranks * (size_t)w->job->s[0].input.accumulation;
    size_t ranks = (size_t)w->job->n_ranks, groups = (size_t)shadow_groups(w);
    w->program = program;
    memset(w->at, 0, sizeof w->at);
    memset(w->walk, 0, sizeof w->walk);
    memset(w->ahead, 0, sizeof w->ahead);
    w->losses = w->overflows = 0;
    memset(w->reduces, 0, groups * sizeof *w->reduces);
    memset(w->norms, 0, groups * sizeof *w->norms);
    memset(w->all_reduces, 0, groups * sizeof *w->all_reduces);
    memset(w->gathers, 0, groups * sizeof *w->gathers);
    memset(w->updated, 0, (size_t)w->truth.n * ranks * sizeof *w->updated);
    memset(w->index, -1, all * sizeof *w->index);
    memset(w->has_loss, 0, all * sizeof *w->has_loss);
    shadow_memory_forget(w);
    prepare_update(w);
}

/* Reductions end in their program, and no gather is lost. */
static void finish(shadow *w)
{
    int M = w->job->s[0].input.accumulation;
    const zero_stage *stage = zero_stage_at(w->job->s[0].input.stage);
    bool once = stage->gradients == ZERO_HOLD_WHOLE;
    bool is_step = w->program == ZERO_PROGRAM_STEP;
    bool has_replicas = shadow_pieces(w) < w->job->n_ranks;
    for (int g = 0; g < shadow_groups(w); g++) {
        shadow_expect(w, !w->reduce[g].is_under_way && !w->all_reduce[g].is_under_way);
        shadow_expect(w, w->reduces[g] == (is_step ? once ? 1 : M : 0));
        shadow_expect(w, w->all_reduces[g] == (has_replicas ? w->reduces[g] : 0));
        bool is_end =
            w->program == ZERO_PROGRAM_PROLOGUE || w->program == ZERO_PROGRAM_EPILOGUE;
        if (is_end) shadow_expect(w, !w->gather[g].is_under_way);
    }
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) {
        shadow_check_updates(w);
        shadow_file_finish(w);
        shadow_expect(w, w->joining[r].begun.join < 0);
        shadow_expect(w, w->collecting[r].begun.join < 0);
    }
    shadow_expect(w, w->losses == (is_step || w->program == ZERO_PROGRAM_EVALUATE));
    shadow_expect(w, w->overflows == is_step);
    if (w->is_due) truth_commit(&w->truth);
    w->step += is_step;
}

static void for_each_rank(shadow *w, action act)
{
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) act(w);
}

/* True if all ranks are at the end of the program. */
static bool has_ended(shadow *w)
{
    int n = 0;
    for (int r = 0; r < w->job->n_ranks; r++)
        n += w->walk[r] == w->job->s[r].programs[w->program].length;
    shadow_expect(w, n == 0 || n == w->job->n_ranks);
    return n > 0;
}

void shadow_walk(shadow *w, zero_program_kind program)
{
    start(w, program);
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r))
        if (w->hurried >> r & 1) run_ahead(w);
    for_each_rank(w, walk_stream);
    while (!has_ended(w)) {
        execute(w);
        for_each_rank(w, step_walk);
        for_each_rank(w, walk_stream);
    }
    finish(w);
}

/* ---- begin and end ---- */

static void initialize_piece(shadow *w, int g, int p)
{
    const zero_group_state *state = &shadow_plan(w)->groups[g];
    const shadow_truth *t = &w->truth;
    int64_t at = (int64_t)g * shadow_pieces(w) + p;
    if (state->master != ZERO_NO_BUFFER)
        shadow_write_piece(w, g, state->master, p, t->master[at]);
    if (state->momentum != ZERO_NO_BUFFER) {
        shadow_write_piece(w, g, state->momentum, p, t->momentum[at]);
        shadow_write_piece(w, g, state->variance, p, t->variance[at]);
    }
    if (state->param != ZERO_NO_BUFFER)
        shadow_write_piece(w, g, state->param, p, t->param[at]);
    if (state->late_param != ZERO_NO_BUFFER)
        shadow_write_piece(w, g, state->late_param, p, t->param[at]);
}

static void initialize(shadow *w)
{
    bool is_all = zero_stage_at(shadow_plan(w)->input.stage)->optimizer == ZERO_HOLD_WHOLE;
    for (int g = 0; g < shadow_groups(w); g++)
        for (int p = 0; p < shadow_pieces(w); p++)
            if (!shadow_is_empty(w, g, p) && (is_all || p == shadow_own(w)))
                initialize_piece(w, g, p);
    shadow_file_open(w);
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
    for (int r = 0; r < JOB_RANKS; r++)
        w->joining[r].begun.join = w->collecting[r].begun.join = -1;
    shadow_memory_open(w);
    truth_open(&w->truth, &job->s[0]);
    w->reduce = new_exchanges(w);
    w->gather = new_exchanges(w);
    w->all_reduce = new_exchanges(w);
    w->index = calloc(all, sizeof *w->index);
    w->has_loss = calloc(all, sizeof *w->has_loss);
    w->reduces = calloc(4 * (size_t)shadow_groups(w), sizeof *w->reduces);
    w->gathers = w->reduces + shadow_groups(w);
    w->all_reduces = w->gathers + shadow_groups(w);
    w->norms = w->all_reduces + shadow_groups(w);
    w->updated = calloc((size_t)(w->truth.n * job->n_ranks), sizeof *w->updated);
    assert_true(w->index && w->has_loss && w->reduces && w->updated);
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
    destroy_exchanges(w, w->all_reduce);
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) shadow_file_close(w);
    free(w->reduces);
    free(w->updated);
    free(w->has_loss);
    free(w->index);
    truth_close(&w->truth);
    shadow_memory_close(w);
}

/* The engine makes a lazy update before a program that needs it and makes none itself. */
static void settle(shadow *w, zero_program_kind next)
{
    bool needs_it = next == ZERO_PROGRAM_EVALUATE || zero_program_generates(next);
    bool is_lazy = w->job->s[0].input.offload == ZERO_OFFLOAD_LAZY;
    if (needs_it && is_lazy && w->is_pending) shadow_walk(w, ZERO_PROGRAM_EPILOGUE);
}

void shadow_live(const schedule_job *job, unsigned hurried)
{
    static const zero_program_kind life[] = {
        ZERO_PROGRAM_PROLOGUE, ZERO_PROGRAM_STEP,     ZERO_PROGRAM_STEP,
        ZERO_PROGRAM_EVALUATE, ZERO_PROGRAM_EVALUATE, ZERO_PROGRAM_STEP,
        ZERO_PROGRAM_GENERATE, ZERO_PROGRAM_TOKEN,    ZERO_PROGRAM_TOKEN,
        ZERO_PROGRAM_STEP,     ZERO_PROGRAM_EPILOGUE};
    shadow w;
    shadow_open(&w, job);
    w.hurried = hurried;
    for (size_t k = 0; k < COUNT(life); k++) {
        if (job->s[0].programs[life[k]].length == 0 && life[k] == ZERO_PROGRAM_TOKEN)
            continue; /* there is no cache */
        settle(&w, life[k]);
        shadow_walk(&w, life[k]);
    }
    shadow_close(&w);
}
