/* zero generate: text from a trained model. Every rank holds the model or its part of it, and no
 * training state; all compute the same text, and rank 0 prints it. */
#include "cli/generate_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/type.h"
#include "checkpoint/list.h"
#include "checkpoint/load.h"
#include "checkpoint/model.h"
#include "cli/machine.h"
#include "cli/prompts.h"
#include "comm/divide.h"
#include "comm/launch.h"
#include "comm/watch.h"
#include "report/print_text.h"
#include "train/activations.h"
#include "train/config.h"

typedef struct {
    zero_generate_options options;
    zero_deadline deadline; /* of starting and ending MPI */
    zero_comm world;
    char path[ZERO_STORAGE_PATH]; /* of the checkpoint */
    zero_checkpoint checkpoint;
    zero_model model;       /* the whole one */
    zero_model made;        /* the rank's part, if that is another one */
    const zero_model *part; /* what the rank has of the model */
    const zero_backend *backend;
    zero_device_place place;
    zero_thread_choice threads;
    zero_binding binding;
    zero_tokenizer tokenizer; /* zeroed if the checkpoint has none */
    zero_engine engine;
    char *lines; /* [bytes] of --prompts; owned */
    size_t bytes;
    zero_prompts prompts;
} job;

static bool speaks_tokens(const job *j)
{
    return j->options.prompt_tokens || !j->checkpoint.manifest.has_tokenizer;
}

/* ---- start-up ---- */

/* Ranks with different options would generate different texts, or deadlock. */
static zero_status compare_arguments(job *j, int argc, char **argv)
{
    uint64_t mine = 0;
    for (int i = 0; i < argc; i++)
        mine = XXH3_64bits_withSeed(argv[i], strlen(argv[i]) + 1, mine);
    uint64_t first = mine;
    ZERO_TRY(zero_comm_broadcast(&j->world, 0, &first, sizeof first));
    if (mine == first) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "options differ from rank 0's: start all ranks with one command line");
}

/* Before helpers start. */
static zero_status form_groups(job *j)
{
    const zero_tp *tp = &j->options.tp;
    ZERO_TRY(zero_tp_check_ranks(tp, j->world.size));
    ZERO_TRY(zero_tp_check_nodes(tp, &j->world.layout));
    return zero_comm_divide(&j->world, (int)tp->ranks, 0);
}

static zero_status start(job *j, int argc, char **argv)
{
    double watchdog = j->options.watchdog;
    bool is_given = zero_options_is_set(&j->options.given, "watchdog");
    ZERO_TRY(zero_launch_limit(&j->deadline, watchdog, is_given));
    zero_deadline_begin(&j->deadline, "starting MPI");
    ZERO_TRY(zero_launch_start(NULL, NULL));
    zero_deadline_begin(&j->deadline, "making the group of all ranks");
    ZERO_TRY(zero_comm_world(&j->world));
    zero_deadline_begin(&j->deadline, "comparing the options of all ranks");
    ZERO_TRY(zero_agree(&j->world, compare_arguments(j, argc, argv)));
    zero_deadline_begin(&j->deadline, "dividing the ranks into groups");
    ZERO_TRY(form_groups(j));
    zero_deadline_begin(&j->deadline, "starting the watchdog");
    ZERO_TRY(zero_watch_start(&j->world, watchdog));
    zero_deadline_end(&j->deadline);
    zero_deadline_set_limit(&j->deadline, watchdog);
    j->world.deadline = &j->deadline;
    return ZERO_OK;
}

/* ---- the model ---- */

/* Rank 0 decides which checkpoint is the newest: a run may be saving the next. */
static zero_status open_checkpoint(job *j)
{
    zero_status st = ZERO_OK;
    if (zero_comm_is_root(&j->world))
        st = zero_checkpoint_find(j->options.checkpoint, j->path, sizeof j->path);
    ZERO_TRY(zero_agree(&j->world, st));
    ZERO_TRY(zero_comm_broadcast(&j->world, 0, j->path, sizeof j->path));
    return zero_checkpoint_open_all(&j->world, j->path, &j->checkpoint);
}

static zero_status read_tokenizer(job *j)
{
    if (!j->checkpoint.manifest.has_tokenizer) return ZERO_OK;
    ZERO_TRY(zero_checkpoint_tokenizer(&j->checkpoint, &j->tokenizer));
    if (j->tokenizer.vocab <= j->model.vocab) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: its tokenizer has %" PRId32 " tokens, its model only %" PRId64,
                     j->path, j->tokenizer.vocab, j->model.vocab);
}

static zero_type type_of(const job *j)
{
    zero_type type = ZERO_FP32;
    if (!j->options.dtype) return j->checkpoint.manifest.loss_scale.type;
    (void)zero_type_find(j->options.dtype, &type); /* an option's name is valid */
    return type;
}

static zero_plan_input plan_of(job *j, zero_algorithm collectives)
{
    const zero_comm *data = zero_comm_data(&j->world), *tp = zero_comm_tp(&j->world);
    const char *why;
    zero_plan_input in = zero_plan_input_standard(j->part, data->size, data->rank);
    in.stage = (int)j->options.stage;
    in.type = type_of(j);
    in.forward_only = true;
    in.texts = zero_min(j->prompts.n, j->options.batch);
    in.threads = j->threads.n;
    in.collectives = collectives;
    in.device = j->backend->memory != NULL;
    in.layout = &data->layout;
    in.tp_layout = tp ? &tp->layout : NULL;
    in.world_layout = &j->world.layout;
    in.ipc =
        in.device && j->backend->memory->sharing && zero_plan_can_reach_devices(&in, &why);
    return in;
}

/* Chooses this rank's threads and their cores, and finds the memory that it may need. */
static zero_status read_machine(job *j, size_t *limit)
{
    zero_topology topology;
    const zero_layout *layout = &j->world.layout;
    const int node_ranks = zero_layout_local_size(layout, j->world.rank);
    ZERO_TRY(zero_machine_read(j->options.threads, &topology, &j->threads));
    if (j->threads.n > 1)
        ZERO_TRY(zero_machine_bind((int)j->threads.n, layout->local_of[j->world.rank],
                                   node_ranks, &topology, &j->binding));
    *limit = j->options.memory_limit >= 0 ? (size_t)j->options.memory_limit
                                          : zero_machine_room(&topology, node_ranks);
    return ZERO_OK;
}

static zero_status open_engine(job *j)
{
    const char *why;
    size_t limit = 0;
    zero_weights weights = zero_checkpoint_weights(&j->checkpoint);
    ZERO_TRY(zero_agree(&j->world, read_machine(j, &limit)));
    zero_engine_spec spec = {.plan =
                                 plan_of(j, zero_algorithm_choose(&j->world.layout, &why)),
                             .backend = j->backend,
                             .device = j->place.device,
                             .device_limit = j->place.room,
                             .weights = &weights,
                             .eval_batches = 1,
                             .may_use_p2p = true,
                             .may_stage = true,
                             .memory_limit = limit};
    return zero_engine_init(&j->engine, &spec, &j->world);
}

/* ---- the prompts ---- */

static zero_status take_prompts(job *j)
{
    const zero_prompts_reader reader = {
        .options = &j->options,
        .path = j->path,
        .tokenizer = j->checkpoint.manifest.has_tokenizer ? &j->tokenizer : NULL,
        .vocab = j->model.vocab};
    return zero_prompts_take(&reader, j->lines, j->bytes, &j->prompts);
}

static zero_status cut(job *j)
{
    const zero_tp *tp = &j->options.tp;
    zero_type activations;
    ZERO_TRY(zero_activations_choose(j->options.activations, type_of(j), j->options.device,
                                     &activations));
    ZERO_TRY(zero_model_activate(&j->model, activations));
    if (j->checkpoint.manifest.has_gpt2)
        ZERO_TRY(zero_tp_check(tp, &j->checkpoint.manifest.gpt2));
    return zero_tp_cut(tp, &j->model, j->world.rank, &j->made, &j->part);
}

static zero_status prepare(job *j)
{
    ZERO_TRY(zero_checkpoint_describe(&j->checkpoint, &j->model));
    ZERO_TRY(cut(j));
    ZERO_TRY(read_tokenizer(j));
    return take_prompts(j);
}

static zero_status open_all(job *j, int argc, char **argv)
{
    ZERO_TRY(start(j, argc, argv));
    ZERO_TRY(zero_machine_place(j->options.device, &j->world, &j->place));
    ZERO_TRY(open_checkpoint(j));
    ZERO_TRY(zero_prompts_read(&j->world, j->options.prompts, &j->lines, &j->bytes));
    ZERO_TRY(zero_agree(&j->world, prepare(j)));
    return open_engine(j);
}

/* ---- the text ---- */

static void warn_of_long_prompt(const job *j, const zero_text *t)
{
    if (t->n_known <= j->model.seq) return;
    fprintf(stderr,
            "zero: warning: the prompt has %" PRId64
            " tokens, and the model sees the last %" PRId64 " of them\n",
            t->n_known, j->model.seq);
}

static zero_status print(const job *j, const zero_text *t)
{
    int64_t n = t->n_known + j->options.tokens;
    if (!speaks_tokens(j))
        ZERO_TRY(zero_print_tokens(&j->tokenizer, t->tokens, n, j->options.raw, stdout));
    for (int64_t i = 0; speaks_tokens(j) && i < n; i++)
        printf("%s%" PRId32, i > 0 ? "," : "", t->tokens[i]);
    putchar('\n');
    return ZERO_OK;
}

/* Texts may have several lines: an empty one stands between them. */
static zero_status print_all(const job *j)
{
    for (int64_t i = 0; i < j->prompts.n; i++) {
        if (i > 0) putchar('\n');
        ZERO_TRY(print(j, &j->prompts.texts[i]));
    }
    return ZERO_OK;
}

static zero_status write_text(job *j)
{
    const zero_generate_options *o = &j->options;
    zero_sampling how = {.seed = o->seed,
                         .temperature = o->temperature,
                         .top_k = o->top_k,
                         .known = speaks_tokens(j) ? j->model.vocab : j->tokenizer.vocab};
    bool is_root = zero_comm_is_root(&j->world);
    const zero_prompts *p = &j->prompts;
    for (int64_t i = 0; is_root && i < p->n; i++) warn_of_long_prompt(j, &p->texts[i]);
    ZERO_TRY(zero_engine_generate_texts(&j->engine, &how, o->tokens, p->texts, p->n));
    return zero_agree(&j->world, is_root ? print_all(j) : ZERO_OK);
}

static zero_status close_all(job *j)
{
    zero_engine_destroy(&j->engine);
    zero_model_destroy(&j->made);
    zero_model_destroy(&j->model);
    zero_tokenizer_destroy(&j->tokenizer);
    zero_checkpoint_close(&j->checkpoint);
    zero_prompts_destroy(&j->prompts);
    zero_binding_close(&j->binding);
    free(j->lines);
    zero_generate_options_destroy(&j->options);
    fflush(stdout); /* a deadline does not; main() reports a failure */
    return zero_launch_leave(&j->world);
}

static zero_status run_job(job *j, int argc, char **argv)
{
    ZERO_TRY(zero_generate_options_parse(&j->options, argc, argv));
    ZERO_TRY(zero_machine_device(j->options.device, &j->backend));
    if (!j->backend) j->backend = &zero_backend_cpu;
    ZERO_TRY(open_all(j, argc, argv));
    ZERO_TRY(write_text(j));
    return close_all(j);
}

static zero_status run(int argc, char **argv)
{
    job j = {0};
    zero_status st = run_job(&j, argc, argv);
    zero_deadline_close(&j.deadline); /* its thread looks into this frame */
    return st;
}

const zero_command zero_command_generate = {
    .name = "zero generate",
    .summary = "generate text from a checkpoint",
    .usage = "zero generate CHECKPOINT [options]\n"
             "mpirun -n RANKS zero generate CHECKPOINT [options]",
    .about =
        "Continues a prompt with the model of a checkpoint: a directory step-00000100, or "
        "a directory of them, of which the newest is taken. The text depends on model, "
        "prompt and options alone, not on the number of ranks, nor on texts beside it.",
    .example = "zero generate runs/a --prompt 'Once upon a time' --tokens 100",
    .exits = ZERO_EXIT_OTHER | ZERO_EXIT_ENVIRONMENT | ZERO_EXIT_DATA | ZERO_EXIT_WATCHDOG,
    .tables = &zero_generate_table,
    .n_tables = 1,
    .operand = "CHECKPOINT",
    .size = sizeof(zero_generate_options),
    .run = run,
};
