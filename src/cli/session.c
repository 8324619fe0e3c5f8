#include "cli/session.h"

#include "base/clock.h"
#include "base/memory_limit.h"
#include "cli/overwriting.h"
#include "cli/requests.h"
#include "cli/tracing.h"
#include "cli/words.h"
#include "comm/check.h"
#include "comm/divide.h"
#include "comm/launch.h"
#include "comm/thread.h"
#include "comm/watch.h"
#include "comm/wire.h"
#include "math/backends.h"
#include "report/advice.h"
#include "report/plan_facts.h"
#include "sharding/compile.h"

static zero_status pretend_nodes(zero_session *s)
{
    if (s->config.fake_nodes == 0) return ZERO_OK;
    ZERO_TRY(zero_comm_pretend_blocks(&s->world, (int)s->config.fake_nodes));
    s->fake_nodes = s->world.layout.n_nodes > s->n_hosts;
    return ZERO_OK;
}

/* True if the ranks of the job are divided into groups. */
static bool has_groups(const zero_config *c)
{
    return c->tp.ranks > 1 || c->plan.shard_ranks > 0 || zero_plan_stages(&c->plan) > 1;
}

/* True if the run's weights are those of --init-from. */
static bool imports(const zero_session *s)
{
    return s->config.init_from && !s->saving.resumed.is_there;
}

/* A failure may be of an option that the user did not give. */
static zero_status name_source(const zero_session *s, zero_status st)
{
    const zero_resumed *r = &s->saving.resumed;
    if ((st != ZERO_ERR_INVALID && st != ZERO_ERR_IO) || !r->taken[0]) return st;
    return zero_fail(st, "%s; options that were not given are those of %s",
                     zero_last_error(), r->path);
}

/* Imported weights decide the shape, and by it what the preset decides. What rank 0 writes
 * is compared with what is read before anything is written. */
static zero_status complete(zero_session *s)
{
    if (zero_comm_is_root(&s->world)) ZERO_TRY(zero_overwriting_check(&s->config, NULL));
    bool has_model = zero_options_is_set(s->given, "model");
    if (zero_config_resumes(&s->config)) {
        ZERO_TRY(zero_config_check(&s->config));
        ZERO_TRY(
            zero_options_check("places", zero_options_typed(zero_run_options, &s->config)));
    }
    if (imports(s)) ZERO_TRY(zero_importing_open(&s->config, has_model, &s->importing));
    return zero_config_complete(&s->config, s->world.size);
}

/* A tokenizer that was learnt lies in the checkpoint: from other data another one would be
 * learnt. */
static zero_status open_data(zero_session *s)
{
    const zero_config *c = &s->config;
    if (s->own) return ZERO_OK;
    bool has_model = imports(s) || s->saving.resumed.is_there;
    bool is_chosen =
        !s->saving.resumed.is_there || zero_options_is_set(s->given, "tokenizer");
    zero_shape shape;
    ZERO_TRY(zero_config_shape(c, has_model ? s->importing.shape.vocab : 0, &shape));
    zero_corpus_source from = {.data = c->data,
                               .validation = c->val_data,
                               .tokenizer = is_chosen ? c->tokenizer : NULL,
                               .imported = has_model ? s->importing.tokenizer : NULL,
                               .imported_from = imports(s) ? c->init_from : NULL,
                               .seed = (uint64_t)c->seed,
                               .vocab = shape.vocab,
                               .threads = (int)c->plan.threads,
                               .token_bytes = (int)c->token_bytes};
    if (zero_comm_is_root(&s->world)) from.listener = zero_notes_listener();
    return zero_dataset_open(&s->dataset, &s->world, &from,
                             c->memory_limit == 0 ? 0 : s->node_ranks);
}

static zero_status open_model(zero_session *s)
{
    const zero_config *c = &s->config;
    const zero_corpus *corpus = &s->dataset.corpus;
    zero_shape shape;
    if (zero_options_is_set(s->given, "tokenizer"))
        ZERO_TRY(zero_importing_compare(&s->importing, c, corpus));
    ZERO_TRY(zero_config_shape(c, corpus->vocab, &shape));
    ZERO_TRY(zero_tp_check(&c->tp, &shape));
    ZERO_TRY(zero_model_build(&shape, &s->model));
    if (s->own) ZERO_TRY(s->own->take(s->own->arg, &s->model));
    ZERO_TRY(zero_model_activate(&s->model, zero_config_activations(c)));
    zero_model_chunk_logits(&s->model, zero_device_logits(c->device));
    ZERO_TRY(zero_tp_cut(&c->tp, &s->model, s->world.rank, &s->made, &s->part));
    if (s->own) return ZERO_OK;
    ZERO_TRY(zero_loader_init(&s->loader, corpus, shape.seq, c->global_batch,
                              (uint64_t)c->seed, c->shuffle));
    s->loader.eval_random = c->eval_random;
    return ZERO_OK;
}

static zero_engine_spec engine_spec(zero_session *s, zero_algorithm collectives)
{
    const zero_config *c = &s->config;
    size_t context = zero_config_context(c), room = (size_t)c->device_memory;
    zero_plan_input plan = zero_engine_place(c->plan, s->part, &s->world);
    plan.collectives = collectives;
    zero_config_plan(c, &plan);
    return (zero_engine_spec){
        .plan = plan,
        .backend = s->backend,
        .device = s->place.device,
        .bits = c->bits,
        .seed = c->seed,
        .eval_batches = c->eval_batches,
        .may_use_p2p = s->why_collectives != NULL,
        .may_stage = zero_config_chooses_exchange(c),
        .directory = zero_config_directory(c),
        .device_limit = room == 0        ? s->place.room
                        : room > context ? room - context
                                         : 1,
        .memory_limit = zero_session_room(s),
    };
}

static zero_status find_backend(const zero_config *c, const zero_backend **backend)
{
    const zero_backend *device;
    ZERO_TRY(zero_machine_device(c->device, &device));
    ZERO_TRY(zero_backend_find(c->backend, backend));
    if (device) *backend = device;
    return ZERO_OK;
}

size_t zero_session_room(const zero_session *s)
{
    if (s->config.memory_limit >= 0) return (size_t)s->config.memory_limit;
    /* The rank's share of what is free on the machine now, and what the process has taken
     * of that which a plan counts. */
    return zero_memory_available() / (size_t)s->node_ranks + s->taken;
}

zero_status zero_session_take_machine(zero_session *s)
{
    ZERO_TRY(find_backend(&s->config, &s->backend));
    ZERO_TRY(zero_agree(&s->world,
                        zero_machine_take(s->world.layout.local_of[s->world.rank],
                                          s->node_ranks, &s->config.plan.threads,
                                          &s->topology, &s->threads_from, &s->binding)));
    s->taken = zero_metrics_resident_peak();
    return zero_machine_place(s->config.device, &s->world, &s->place);
}

static zero_status prepare(zero_session *s)
{
    ZERO_TRY(open_model(s));
    if (imports(s))
        ZERO_TRY(zero_hugging_face_open(s->config.init_from, &s->model, &s->initial));
    const zero_config *c = &s->config;
    bool is_root = zero_comm_is_root(&s->world);
    if (is_root && !s->saving.resumed.is_there)
        ZERO_TRY(zero_importing_keep(&s->importing, c, &s->dataset.corpus, s->model.shape));
    /* It leaves a file that exists as it is. */
    return zero_metrics_open(&s->metrics, is_root ? c->metrics : NULL,
                             zero_config_resumes(c));
}

zero_status zero_session_await(zero_session *s, const char *option, const char *path,
                               zero_lock_taker *take)
{
    char place[ZERO_STORAGE_FILE_PATH];
    zero_print(place, "%s %s", option, path);
    zero_lock_wish wish = {.take = take,
                           .arg = s,
                           .place = place,
                           .deed = "writes it",
                           .option = option,
                           .patience = ZERO_LOCK_PATIENCE,
                           .listener = zero_notes_listener()};
    return zero_await_lock(&s->world, &wish);
}

/* Two runs would empty the file for each other, and mix their lines. */
static zero_status lock_metrics(void *arg, zero_lock *lock,
                                ZERO_UNUSED char holder[ZERO_STORAGE_HOLDER_TEXT])
{
    const zero_metrics *m = &((zero_session *)arg)->metrics;
    *lock = ZERO_LOCK_TAKEN;
    return m->file.is_open ? zero_lock_take(m->file.fd, m->path, lock) : ZERO_OK;
}

/* Ranks must not train on different data under one name. */
static zero_status compare_data(zero_session *s)
{
    bool same;
    const char *validation = s->config.val_data;
    if (s->own) return ZERO_OK;
    ZERO_TRY(zero_comm_compare_with_root(
        &s->world, zero_corpus_fingerprint(&s->dataset.corpus), &same));
    ZERO_FORMAT_IF(!same,
                   "--data %s%s%s%s differs from rank 0's, or its tokenizer does: every "
                   "node needs the same files",
                   s->config.data, validation ? ", or --val-data " : "",
                   validation ? validation : "", validation ? "," : "");
    return ZERO_OK;
}

/* The bound decides alone where it can: it is quick for any model. */
static bool is_too_large(const zero_plan_input *plan, bool of_device, size_t limit)
{
    zero_plan_ledger l;
    zero_plan_bound least;
    if (limit == 0 || zero_plan_least(plan, &least) != ZERO_OK) return false;
    if ((of_device ? least.device_bytes : least.bytes) > limit) return true;
    if (zero_plan_measure(plan, &l) != ZERO_OK) return false;
    return (of_device ? l.device_needed : l.needed) > limit;
}

/* Prints the refused plan, if it compiles at once. */
static void show_refused(const zero_session *s, const zero_plan_input *plan)
{
    zero_schedule schedule;
    zero_plan_ledger ledger;
    zero_plan_bound least;
    if (zero_plan_least(plan, &least) != ZERO_OK) return;
    if (least.instructions > ZERO_PLAN_QUICK) return;
    if (zero_schedule_compile(&schedule, plan) != ZERO_OK) return;
    zero_plan_add_up(&schedule, &ledger);
    fprintf(stderr, "refused: the plan of stage %d for rank 0 of %d\n", plan->stage,
            s->world.size);
    zero_status st =
        zero_plan_show_memory(&schedule, &ledger, zero_config_context(&s->config), stderr);
    if (st == ZERO_OK) fputc('\n', stderr);
    zero_schedule_destroy(&schedule);
}

/* Without --message the links between nodes decide; pretended ones are none. */
static zero_status choose_message(zero_session *s, zero_plan_input *plan)
{
    if (zero_options_is_set(s->given, "message") || s->fake_nodes ||
        zero_algorithm_get(plan->collectives)->posts_mpi_collectives)
        return ZERO_OK;
    ZERO_TRY(zero_wire_try(&s->world));
    plan->message = zero_wire_message(&s->world.wire);
    return ZERO_OK;
}

zero_status zero_session_build(zero_session *s)
{
    ZERO_TRY(zero_agree(&s->world, name_source(s, complete(s))));
    if (imports(s))
        ZERO_TRY(zero_importing_compare_shapes(&s->world, s->config.init_from,
                                               &s->importing.shape));
    ZERO_TRY(zero_session_take_machine(s));
    /* Before the first window, and after devices: those are the real nodes'. */
    if (!has_groups(&s->config)) ZERO_TRY(pretend_nodes(s));
    ZERO_TRY(name_source(s, open_data(s)));
    ZERO_TRY(zero_agree(&s->world, prepare(s)));
    /* --metrics may be given to rank 0 alone; the others wait with it. */
    ZERO_TRY(zero_session_await(s, "--metrics", s->metrics.path ? s->metrics.path : "none",
                                lock_metrics));
    ZERO_TRY(zero_agree(&s->world, compare_data(s)));
    zero_algorithm collectives;
    if (zero_same_text(s->config.collectives, "auto"))
        collectives = zero_algorithm_choose(&s->world.layout, &s->why_collectives);
    else
        ZERO_INVALID_IF(!zero_algorithm_find(s->config.collectives, &collectives),
                        "--collectives %s: no such algorithm", s->config.collectives);
    zero_engine_spec spec = engine_spec(s, collectives);
    ZERO_TRY(choose_message(s, &spec.plan));
    zero_weights weights = zero_hugging_face_weights(&s->initial);
    if (imports(s)) spec.weights = &weights;
    spec.awaits_states = s->saving.resumed.is_there || s->own;
    zero_status st = zero_engine_init(&s->engine, &spec, &s->world);
    if (st == ZERO_ERR_NOMEM) {
        zero_failure refusal = zero_failure_keep(ZERO_ERR_NOMEM);
        int64_t most;
        zero_plan_input plan = spec.plan;
        bool is_auto = spec.may_use_p2p;
        /* The node with the least memory decides. A table helps only if the plan was too
         * large, not if the system had less memory than it said. */
        ZERO_TRY(zero_comm_most(&s->world, -(int64_t)spec.memory_limit, &most));
        const size_t limit = (size_t)-most;
        bool of_device = is_too_large(&plan, true, spec.device_limit);
        /* If this plan fits, the one refused was the p2p plan that auto falls back to. */
        if (is_auto && !of_device && !is_too_large(&plan, false, limit)) {
            plan.collectives = ZERO_ALGORITHM_P2P;
            plan.ipc = 0;
            is_auto = false;
        }
        zero_advice_room room = {of_device ? spec.device_limit : limit, of_device, limit};
        if (zero_comm_is_root(&s->world) && is_too_large(&plan, of_device, room.limit)) {
            show_refused(s, &plan);
            zero_advice_show(&plan, is_auto, room, stderr);
        }
        return zero_failure_restore(&refusal);
    }
    if (st == ZERO_OK && imports(s))
        st = zero_importing_check_weights(&s->world, &s->initial);
    zero_hugging_face_close(&s->initial);
    return st;
}

/* Mistakes are found before MPI starts, as far as a checkpoint does not decide. */
static zero_status check(const zero_config *c)
{
    const zero_backend *backend;
    ZERO_TRY(zero_config_resumes(c) ? zero_config_check_given(c) : zero_config_check(c));
    ZERO_TRY(zero_tracing_check(c));
    return find_backend(c, &backend);
}

zero_status zero_session_start(zero_session *s, uint64_t fingerprint, const char *files)
{
    const zero_config *c = &s->config;
    bool same, is_given = zero_options_is_set(s->given, "watchdog");
    ZERO_TRY(zero_launch_limit(&s->deadline, c->watchdog, is_given));
    zero_deadline_begin(&s->deadline, "starting MPI");
    if (c->progress_thread > 0.0)
        ZERO_TRY(zero_launch_start_threaded(NULL, NULL));
    else
        ZERO_TRY(zero_launch_start(NULL, NULL));
    zero_deadline_begin(&s->deadline, "making the group of all ranks");
    ZERO_TRY(zero_comm_world(&s->world));
    zero_deadline_begin(&s->deadline, "comparing the options of all ranks");
    /* Ranks started with different options would silently make different runs, or
     * deadlock. */
    zero_status st = zero_comm_compare_with_root(&s->world, fingerprint, &same);
    if (st == ZERO_OK && !same)
        st = zero_fail(
            ZERO_ERR_INVALID,
            "options differ from rank 0's: start all ranks with one command line%s", files);
    ZERO_TRY(zero_agree(&s->world, st));
    s->node_ranks = zero_layout_local_size(&s->world.layout, s->world.rank);
    s->n_hosts = s->world.layout.n_nodes;
    zero_deadline_begin(&s->deadline, "finding the machines of all ranks");
    ZERO_TRY(zero_comm_hosts(&s->world, &s->hosts));
    zero_deadline_begin(&s->deadline, "dividing the ranks into groups");
    /* Nodes are pretended before that, and helpers start after it. */
    if (has_groups(c)) {
        ZERO_TRY(zero_tp_check_ranks(&c->tp, s->world.size));
        ZERO_TRY(zero_config_check_shard_ranks(c, s->world.size));
        ZERO_TRY(pretend_nodes(s));
        ZERO_TRY(zero_tp_check_nodes(&c->tp, &s->world.layout));
        ZERO_TRY(zero_comm_divide(&s->world, zero_tp_ranks(&c->tp),
                                  (int)c->plan.shard_ranks, zero_plan_stages(&c->plan)));
    }
    zero_deadline_begin(&s->deadline, "starting the watchdog");
    /* Every wait is watched from here on. */
    ZERO_TRY(zero_watch_start(&s->world, c->watchdog));
    if (c->check && zero_same_text(c->check, "collectives"))
        ZERO_TRY(zero_check_start(&s->world));
    if (c->progress_thread != 0.0)
        ZERO_TRY(zero_agree(&s->world,
                            zero_progress_start(&s->world, 1e-3 * c->progress_thread)));
    zero_deadline_end(&s->deadline);
    zero_deadline_set_limit(&s->deadline, c->watchdog);
    s->world.deadline = &s->deadline;
    return ZERO_OK;
}

zero_status zero_session_open(zero_session *s)
{
    const zero_config *c = &s->config;
    /* Before the configuration is completed. */
    zero_facts *f = &s->facts;
    zero_bytes text = {0};
    struct timespec now;
    struct tm utc;
    *f = (zero_facts){.start = zero_clock_seconds()};
    clock_gettime(CLOCK_REALTIME, &now);
    f->run = INT64_C(1000000000) * now.tv_sec + now.tv_nsec;
    if (gmtime_r(&now.tv_sec, &utc))
        strftime(f->started, sizeof f->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    zero_status st =
        zero_words_command(zero_command_train.name, s->given->argc, s->given->argv, &text);
    f->command = (char *)text.bytes;
    if (st == ZERO_OK) f->options = zero_run_options_chosen(s->given, c);
    if (st == ZERO_OK && !f->options)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for the options");
    if (st != ZERO_OK) return st;
    ZERO_TRY(check(c));
    /* Before MPI starts: its threads inherit the signal mask, and the launcher forwards
     * signals. */
    zero_requests_expect(c->checkpoint != NULL);
    zero_progress_view_open(&s->progress, c);
    ZERO_TRY(
        zero_session_start(s, zero_run_options_fingerprint(c), " and one --config file"));
    return zero_comm_broadcast(&s->world, 0, &s->facts.run, sizeof s->facts.run);
}

zero_status zero_session_close(zero_session *s)
{
    zero_metrics_close(&s->metrics);
    zero_engine_destroy(&s->engine);
    zero_binding_close(&s->binding);
    zero_model_destroy(&s->made);
    zero_model_destroy(&s->model);
    zero_dataset_close(&s->dataset);
    zero_importing_close(&s->importing);
    fflush(stdout); /* a deadline does not; main() reports a failure */
    free(s->hosts);
    json_decref(s->saving.resumed.options);
    json_decref(s->facts.options);
    free(s->facts.command);
    return zero_launch_leave(&s->world);
}
