#include "course/machine.h"

#include "comm/divide.h"
#include "comm/local.h"
#include "course/narrate.h"
#include "data/loader.h"
#include "engine/engine.h"
#include "engine/tell.h"
#include "math/device.h"
#include "train/learning_rate.h"

typedef struct {
    zero_lesson_machine *machine;
    int number;
    zero_comm comm;
    zero_model made;        /* this rank's part, if that is another one */
    const zero_model *part; /* of the model */
    zero_engine engine;
    zero_told *told; /* owned */
    zero_step_input input;
    zero_run_output output;
    char digest[33];
    zero_failure failure; /* of the last job */
} member;

/* Work that all ranks do at the same time, each in its thread. */
typedef zero_status job(member *rank);

typedef struct {
    member *rank;
    job *work;
    pthread_t thread;
} task;

struct zero_lesson_machine {
    zero_lesson_shown shown;
    int n_ranks;
    zero_loader loader;
    member *ranks;    /* [n_ranks] */
    bool has_comms;   /* the groups of all ranks are open */
    bool has_engines; /* all engines are open */
    bool has_failed;
    int64_t step; /* completed */
};

/* ---- threads ---- */

static void *execute(void *arg)
{
    task *t = arg;
    zero_status st = t->work(t->rank);
    t->rank->failure = zero_failure_keep(st);
    if (st != ZERO_OK) zero_local_abandon(&t->rank->comm);
    return NULL;
}

/* The first failure; a rank that only waited for a failed one knows less than that one. */
static zero_status find_failure(const zero_lesson_machine *m)
{
    const zero_failure *found = NULL;
    for (int r = 0; r < m->n_ranks; r++) {
        const zero_failure *f = &m->ranks[r].failure;
        if (f->status == ZERO_OK) continue;
        if (!found || found->status == ZERO_ERR_STALLED) found = f;
    }
    return found ? zero_failure_restore(found) : ZERO_OK;
}

static zero_status run_all(zero_lesson_machine *m, job *work)
{
    task tasks[ZERO_TOLD_RANKS];
    int begun = 0;
    for (; begun < m->n_ranks; begun++) {
        tasks[begun] = (task){.rank = &m->ranks[begun], .work = work};
        if (pthread_create(&tasks[begun].thread, NULL, execute, &tasks[begun]) != 0) break;
    }
    if (begun < m->n_ranks) zero_local_abandon(&m->ranks[0].comm);
    for (int r = 0; r < begun; r++) pthread_join(tasks[r].thread, NULL);
    zero_status st =
        begun == m->n_ranks
            ? find_failure(m)
            : zero_fail(ZERO_ERR_ENV,
                        "the system refuses thread %d of %d, one for each rank", begun + 1,
                        m->n_ranks);
    m->has_failed = m->has_failed || st != ZERO_OK;
    return st;
}

/* ---- opening ---- */

static zero_status open_data(zero_lesson_machine *m)
{
    const zero_config *c = &m->shown.config;
    zero_corpus *corpus = &m->shown.corpus;
    zero_model *model = &m->shown.model;
    zero_shape shape;
    ZERO_TRY(zero_config_shape(c, 0, &shape));
    zero_corpus_source from = {.data = c->data,
                               .validation = c->val_data,
                               .tokenizer = c->tokenizer,
                               .seed = (uint64_t)c->seed,
                               .vocab = shape.vocab,
                               .token_bytes = (int)c->token_bytes};
    ZERO_TRY(zero_corpus_open(&from, corpus));
    ZERO_TRY(zero_config_shape(c, corpus->vocab, &shape));
    ZERO_TRY(zero_tp_check(&c->tp, &shape));
    ZERO_TRY(zero_model_build(&shape, model));
    ZERO_TRY(zero_model_activate(model, zero_config_activations(c)));
    zero_model_chunk_logits(model, zero_device_logits(c->device));
    ZERO_TRY(zero_narrate_check(model, m->n_ranks));
    return zero_loader_init(&m->loader, corpus, shape.seq, c->global_batch,
                            (uint64_t)c->seed, c->shuffle);
}

/* On the thread of each rank. */
static zero_status open_rank(member *rank)
{
    zero_lesson_machine *m = rank->machine;
    const zero_config *c = &m->shown.config;
    ZERO_TRY(zero_comm_divide(&rank->comm, zero_tp_ranks(&c->tp), 0, 1));
    ZERO_TRY(zero_agree(&rank->comm, zero_tp_cut(&c->tp, &m->shown.model, rank->number,
                                                 &rank->made, &rank->part)));
    zero_plan_input plan = zero_engine_place(c->plan, rank->part, &rank->comm);
    plan.collectives = ZERO_ALGORITHM_P2P;
    zero_config_plan(c, &plan);
    zero_engine_spec spec = {.plan = plan,
                             .backend = &zero_backend_naive,
                             .seed = c->seed,
                             .eval_batches = c->eval_batches,
                             .directory = zero_config_directory(c)};
    return zero_engine_init(&rank->engine, &spec, &rank->comm);
}

static int program_length(const member *rank)
{
    return rank->engine.schedule.programs[ZERO_PROGRAM_STEP].length;
}

zero_status zero_lesson_open(const zero_config *config, int n_ranks,
                             zero_lesson_machine **machine)
{
    ZERO_INVALID_IF(n_ranks < 1 || n_ranks > ZERO_TOLD_RANKS,
                    "a lesson with %d ranks: expected 1 to %d", n_ranks, ZERO_TOLD_RANKS);
    ZERO_AT_END(zero_lesson_close) zero_lesson_machine *m = NULL;
    ZERO_TRY(zero_new(&m, 1, "a lesson"));
    m->shown.config = *config;
    m->n_ranks = n_ranks;
    ZERO_TRY(zero_config_check(&m->shown.config));
    const bool is_p2p = zero_same_text(m->shown.config.collectives, "auto") ||
                        zero_same_text(m->shown.config.collectives, "p2p");
    const struct {
        bool is_refused;
        const char *option, *instead;
    } rows[] = {
        {zero_config_has_device(&m->shown.config), "device", "on the CPU"},
        {m->shown.config.init_from, "init-from", "from random weights"},
        {m->shown.config.checkpoint, "checkpoint", "from the first step"},
        {m->shown.config.plan.shard_ranks > 0, "shard-ranks", "without replicas"},
        {m->shown.config.fake_nodes > 0, "fake-nodes", "each on a node of its own"},
        {m->shown.config.plan.node_parameters, "node-parameters",
         "each on a node of its own"},
        {m->shown.config.progress_thread > 0.0, "progress-thread", "one thread each"},
        {!is_p2p, "collectives", "which exchange messages (p2p)"},
    };
    for (int k = 0; k < ZERO_COUNT(rows); k++)
        ZERO_FAIL_IF(rows[k].is_refused, ZERO_ERR_UNSUPPORTED,
                     "--%s: a lesson runs all ranks in one process, %s; leave it out, or "
                     "start a real run with mpirun -n RANKS zero train",
                     rows[k].option, rows[k].instead);
    ZERO_TRY(zero_config_complete(&m->shown.config, m->n_ranks));
    ZERO_TRY(open_data(m));
    zero_comm comms[ZERO_TOLD_RANKS] = {0};
    m->ranks = calloc((size_t)m->n_ranks, sizeof *m->ranks);
    ZERO_FAIL_IF(!m->ranks, ZERO_ERR_NOMEM, "no memory for %d ranks", m->n_ranks);
    ZERO_TRY(zero_local_open(m->n_ranks, comms));
    m->has_comms = true;
    for (int r = 0; r < m->n_ranks; r++)
        m->ranks[r] = (member){.machine = m, .number = r, .comm = comms[r]};
    ZERO_TRY(run_all(m, open_rank));
    m->has_engines = true;
    /* Ranks of a model that is cut unevenly may have programs of different lengths. */
    int longest = 0;
    for (int r = 0; r < m->n_ranks; r++)
        if (program_length(&m->ranks[r]) > longest) longest = program_length(&m->ranks[r]);
    m->shown.tale = (zero_tale){.n_ranks = m->n_ranks, .length = longest};
    m->shown.tale.list =
        calloc((size_t)m->n_ranks * (size_t)longest, sizeof *m->shown.tale.list);
    ZERO_FAIL_IF(!m->shown.tale.list, ZERO_ERR_NOMEM,
                 "no memory for %d instructions of %d ranks", longest, m->n_ranks);
    for (int r = 0; r < m->n_ranks; r++) {
        zero_engine *e = &m->ranks[r].engine;
        ZERO_TRY(zero_tell_open(&e->schedule, &m->ranks[r].told));
        e->runner.told = m->ranks[r].told;
    }
    ZERO_GIVE(machine, m);
    return ZERO_OK;
}

/* ---- closing ---- */

static zero_status settle(member *rank)
{
    return zero_engine_settle(&rank->engine);
}

void zero_lesson_close(zero_lesson_machine **machine)
{
    zero_lesson_machine *m = *machine;
    *machine = NULL;
    if (!m) return;
    zero_failure why = zero_failure_keep(ZERO_ERR_INVALID);
    if (m->has_engines && !m->has_failed) (void)!run_all(m, settle);
    for (int r = 0; m->ranks && r < m->n_ranks; r++) {
        /* Messages in flight must not outlive their buffers. After a failure nobody takes
         * them any more. */
        member *rank = &m->ranks[r];
        rank->engine.in_flight = false;
        zero_engine_destroy(&rank->engine);
        free(rank->told);
        zero_model_destroy(&rank->made);
    }
    for (int r = 0; m->has_comms && r < m->n_ranks; r++)
        zero_comm_destroy(&m->ranks[r].comm);
    (void)!zero_failure_restore(&why); /* the message that the caller will show */
    free(m->shown.tale.list);
    free(m->ranks);
    zero_model_destroy(&m->shown.model);
    zero_corpus_close(&m->shown.corpus);
    free(m);
}

/* ---- steps ---- */

static zero_status take_step(member *rank)
{
    const zero_lesson_machine *m = rank->machine;
    zero_source source = {.sample = zero_loader_train_sample, .arg = &m->loader};
    rank->input =
        zero_config_step_input(&m->shown.config, m->step, rank->engine.adam_steps);
    return zero_engine_step(&rank->engine, &source, &rank->input, &rank->output);
}

static zero_status check_state(const zero_lesson_machine *m)
{
    ZERO_INVALID_IF(m->has_failed,
                    "the lesson has failed in step %" PRId64 ": begin it again",
                    m->step + 1);
    return ZERO_OK;
}

zero_status zero_lesson_walk(zero_lesson_machine *m, zero_lesson_step *result)
{
    ZERO_TRY(check_state(m));
    ZERO_INVALID_IF(m->step >= m->shown.config.steps,
                    "step %" PRId64 " of a run of %" PRId64 ": give more --steps",
                    m->step + 1, m->shown.config.steps);
    double scale = (double)m->ranks[0].engine.loss_scale.scale;
    ZERO_TRY(run_all(m, take_step));
    for (int r = 0; r < m->n_ranks; r++)
        zero_tale_take(&m->shown.tale, r, m->ranks[r].told, program_length(&m->ranks[r]));
    const member *rank = &m->ranks[0];
    *result = (zero_lesson_step){.step = ++m->step,
                                 .loss = rank->output.loss,
                                 .grad_norm = rank->output.grad_norm,
                                 .loss_scale = scale,
                                 .lr = rank->input.lr,
                                 .skipped = rank->output.overflow};
    return ZERO_OK;
}

static zero_status take_digest(member *rank)
{
    return zero_engine_digest(&rank->engine, rank->digest);
}

zero_status zero_lesson_digest(zero_lesson_machine *m, char hex[33])
{
    ZERO_TRY(check_state(m));
    ZERO_TRY(run_all(m, take_digest));
    memcpy(hex, m->ranks[0].digest, sizeof m->ranks[0].digest);
    return ZERO_OK;
}

/* ---- what it is made of ---- */

const zero_lesson_shown *zero_lesson_show(const zero_lesson_machine *m)
{
    return &m->shown;
}

const zero_schedule *zero_lesson_schedule(const zero_lesson_machine *m, int rank)
{
    return &m->ranks[rank].engine.schedule;
}
