/* zero generate: text from a trained model. Every rank holds the model or its part of it,
 * and no training state; all compute the same text, and rank 0 prints it. */
#include "cli/generate_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/fail.h"
#include "base/legible.h"
#include "base/number.h"
#include "base/type.h"
#include "cli/importing.h"
#include "cli/machine.h"
#include "cli/notes.h"
#include "cli/prompts.h"
#include "cli/trained.h"
#include "comm/divide.h"
#include "comm/launch.h"
#include "comm/watch.h"
#include "math/device.h"
#include "report/print_text.h"
#include "train/activations.h"
#include "train/config.h"
#include "train/metrics.h"

typedef struct {
    zero_generate_options options;
    const zero_options *given;
    zero_deadline deadline; /* of starting and ending MPI */
    zero_comm world;
    zero_trained from;
    zero_model made;        /* the rank's part, if that is another one */
    const zero_model *part; /* what the rank has of the model */
    const zero_backend *backend;
    zero_device_place place;
    zero_thread_choice threads;
    zero_binding binding;
    zero_engine engine;
    char *lines; /* [bytes] of --prompts; owned */
    size_t bytes;
    zero_prompts prompts;
} job;

static bool speaks_tokens(const job *j)
{
    return j->options.prompt_tokens || !j->from.has_tokenizer;
}

/* ---- start-up ---- */

/* Ranks with different options would generate different texts, or deadlock. */
static zero_status compare_arguments(job *j)
{
    char **argv = j->given->argv;
    uint64_t mine = 0;
    bool same;
    for (int i = 0; i < j->given->argc; i++)
        mine = XXH3_64bits_withSeed(argv[i], strlen(argv[i]) + 1, mine);
    ZERO_TRY(zero_comm_compare_with_root(&j->world, mine, &same));
    if (same) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "options differ from rank 0's: start all ranks with one command line");
}

/* ---- the model ---- */

static zero_type type_of(const job *j)
{
    zero_type type = ZERO_FP32;
    if (!j->options.dtype) return j->from.type;
    (void)zero_type_find(j->options.dtype, &type); /* an option's name is valid */
    return type;
}

static zero_plan_input plan_of(job *j, zero_algorithm collectives)
{
    const char *why;
    zero_plan_input in = zero_plan_input_standard(j->part, 1, 0);
    in = zero_engine_place(in, j->part, &j->world);
    in.stage = (int)j->options.stage;
    in.type = type_of(j);
    in.forward_only = true;
    in.texts = zero_min(j->prompts.n, j->options.batch);
    in.threads = j->threads.n;
    in.collectives = collectives;
    in.device = j->backend->memory != NULL;
    in.ipc =
        in.device && j->backend->memory->sharing && zero_plan_can_reach_devices(&in, &why);
    return in;
}

/* Chooses this rank's threads and their cores, and finds the memory that it may need. */
static zero_status read_machine(job *j, size_t *limit)
{
    zero_topology topology;
    const int node_ranks = zero_layout_local_size(&j->world.layout, j->world.rank);
    ZERO_TRY(zero_machine_take(j->options.threads, j->world.layout.local_of[j->world.rank],
                               node_ranks, &topology, &j->threads, &j->binding));
    *limit = j->options.memory_limit >= 0
                 ? (size_t)j->options.memory_limit
                 : zero_machine_room(node_ranks, zero_metrics_resident_peak());
    return ZERO_OK;
}

static zero_status open_engine(job *j)
{
    const char *why;
    size_t limit = 0;
    zero_weights weights = zero_trained_weights(&j->from);
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
    ZERO_TRY(zero_engine_init(&j->engine, &spec, &j->world));
    return zero_trained_check(&j->from, &j->world);
}

/* ---- the prompts ---- */

/* Nodes may have tokenizers of their own. */
static zero_status compare_prompts(job *j)
{
    uint64_t mine = 0;
    bool same;
    for (int64_t i = 0; i < j->prompts.n; i++) {
        const zero_text *t = &j->prompts.texts[i];
        mine = XXH3_64bits_withSeed(t->tokens, (size_t)t->n_known * sizeof *t->tokens,
                                    mine ^ (uint64_t)t->n_known);
    }
    ZERO_TRY(zero_comm_compare_with_root(&j->world, mine, &same));
    if (same) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: its tokenizer makes other tokens of the prompt than rank 0's: "
                     "every node needs the same files",
                     j->from.path);
}

static zero_status prepare(job *j)
{
    ZERO_TRY(zero_trained_read(&j->from, !j->options.prompt_tokens));
    const char *around = j->from.tokenizer.around;
    if (j->from.has_tokenizer && around[0] && zero_comm_is_root(&j->world))
        fprintf(
            stderr,
            "zero: note: the tokenizer puts tokens around a text (%s); prompts get none\n",
            ZERO_SHOWN(around));
    const zero_tp *tp = &j->options.tp;
    zero_type activations;
    ZERO_TRY(zero_activations_choose(j->options.activations, type_of(j), j->options.device,
                                     &activations));
    ZERO_TRY(zero_model_activate(&j->from.model, activations));
    zero_model_chunk_logits(&j->from.model, zero_device_logits(j->options.device));
    ZERO_TRY(zero_tp_check(tp, j->from.model.shape));
    ZERO_TRY(zero_tp_cut(tp, &j->from.model, j->world.rank, &j->made, &j->part));
    const zero_prompts_reader reader = {
        .options = &j->options,
        .path = j->from.path,
        .tokenizer = j->from.has_tokenizer ? &j->from.tokenizer : NULL,
        .vocab = j->from.model.vocab};
    return zero_prompts_take(&reader, j->lines, j->bytes, &j->prompts);
}

static void close_model(job *j)
{
    zero_engine_destroy(&j->engine);
    zero_model_destroy(&j->made);
    zero_prompts_destroy(&j->prompts);
    zero_binding_close(&j->binding);
}

static zero_status use_model(void *arg)
{
    job *j = arg;
    zero_status st = zero_agree(&j->world, prepare(j));
    if (st == ZERO_OK) st = zero_agree(&j->world, compare_prompts(j));
    if (st == ZERO_OK) st = open_engine(j);
    zero_failure failure = zero_failure_keep(st);
    if (st != ZERO_OK) close_model(j);
    return zero_failure_restore(&failure);
}

/* ---- the text ---- */

static zero_status print(const job *j, const zero_text *t)
{
    bool hides_end = !speaks_tokens(j) && t->has_ended;
    int64_t n = t->n_known + t->n_drawn - hides_end;
    if (!speaks_tokens(j))
        ZERO_TRY(
            zero_print_tokens(&j->from.tokenizer, t->tokens, n, j->options.raw, stdout));
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

static zero_status close_all(job *j)
{
    close_model(j);
    zero_trained_close(&j->from);
    free(j->lines);
    fflush(stdout); /* a deadline does not; main() reports a failure */
    return zero_launch_leave(&j->world);
}

static zero_status run_job(job *j)
{
    ZERO_TRY(zero_machine_device(j->options.device, &j->backend));
    if (!j->backend) j->backend = &zero_backend_cpu;
    const zero_trained_user user = {j->options.checkpoint, use_model, j};
    double watchdog = j->options.watchdog;
    bool is_given = zero_options_is_set(j->given, "watchdog");
    ZERO_TRY(zero_launch_limit(&j->deadline, watchdog, is_given));
    zero_deadline_begin(&j->deadline, "starting MPI");
    ZERO_TRY(zero_launch_start(NULL, NULL));
    zero_deadline_begin(&j->deadline, "making the group of all ranks");
    ZERO_TRY(zero_comm_world(&j->world));
    zero_deadline_begin(&j->deadline, "comparing the options of all ranks");
    ZERO_TRY(zero_agree(&j->world, compare_arguments(j)));
    zero_deadline_begin(&j->deadline, "dividing the ranks into groups");
    /* Before helpers start. */
    const zero_tp *tp = &j->options.tp;
    ZERO_TRY(zero_tp_check_ranks(tp, j->world.size));
    ZERO_TRY(zero_tp_check_nodes(tp, &j->world.layout));
    ZERO_TRY(zero_comm_divide(&j->world, (int)tp->ranks, 0));
    zero_deadline_begin(&j->deadline, "starting the watchdog");
    ZERO_TRY(zero_watch_start(&j->world, watchdog));
    zero_deadline_end(&j->deadline);
    zero_deadline_set_limit(&j->deadline, watchdog);
    j->world.deadline = &j->deadline;
    ZERO_TRY(zero_machine_place(j->options.device, &j->world, &j->place));
    ZERO_TRY(zero_prompts_read(&j->world, j->options.prompts, &j->lines, &j->bytes));
    ZERO_TRY(zero_trained_open(&j->world, &user, &j->from));
    const zero_generate_options *o = &j->options;
    if (zero_comm_is_root(&j->world))
        zero_notes_show(j->given, zero_generate_table.rows, o, 0,
                        json_pack("{s:i}", "ranks", j->world.size));
    zero_sampling how = {.seed = o->seed,
                         .temperature = o->temperature,
                         .top_k = o->top_k,
                         .top_p = o->top_p,
                         .known = speaks_tokens(j) ? j->from.model.vocab
                                                   : j->from.tokenizer.vocab};
    bool is_root = zero_comm_is_root(&j->world);
    const zero_tokenizer *tok = j->from.has_tokenizer ? &j->from.tokenizer : NULL;
    if (!o->ignore_end)
        ZERO_TRY(zero_importing_find_ends(&j->world, j->from.kept, tok, j->from.model.vocab,
                                          &how.ends));
    const zero_prompts *p = &j->prompts;
    for (int64_t i = 0; is_root && i < p->n; i++) {
        const zero_text *t = &p->texts[i];
        if (t->n_known > j->from.model.seq) {
            fprintf(stderr,
                    "zero: warning: the prompt has %" PRId64
                    " tokens, and the model sees the last %" PRId64 " of them\n",
                    t->n_known, j->from.model.seq);
        }
    }
    if (is_root && p->first_empty > 0)
        fprintf(stderr,
                "zero: note: --prompts %s: line %" PRId64
                " is empty: such texts begin as without --prompt\n",
                ZERO_SHOWN(o->prompts), p->first_empty);
    ZERO_TRY(zero_engine_generate_texts(&j->engine, &how, o->tokens, p->texts, p->n));
    ZERO_TRY(zero_agree(&j->world, is_root ? print_all(j) : ZERO_OK));
    return close_all(j);
}

static zero_status run(void *options, const zero_options *given)
{
    job j = {.options = *(const zero_generate_options *)options, .given = given};
    zero_status st = run_job(&j);
    zero_deadline_close(&j.deadline); /* its thread looks into this frame */
    return st;
}

const zero_command zero_command_generate = {
    .name = "zero generate",
    .summary = "generate text from a checkpoint, or a model of Hugging Face's",
    .usage = "zero generate MODEL [options]\n"
             "mpirun -n RANKS zero generate MODEL [options]",
    .about = "Continues a prompt with the model of a checkpoint: a directory "
             "step-00000100, or a directory of them, of which the newest is taken. Or with "
             "a GPT-2 of Hugging Face's: its folder, with config.json and the tokenizer, "
             "or its model.safetensors. The text depends on model, prompt and options "
             "alone, not on the number of ranks, nor on texts beside it.",
    .example = "zero generate runs/a --prompt 'Once upon a time' --tokens 100",
    .exits = ZERO_EXIT_OTHER | ZERO_EXIT_ENVIRONMENT | ZERO_EXIT_DATA | ZERO_EXIT_WATCHDOG,
    .tables = &zero_generate_table,
    .n_tables = 1,
    .operand = "MODEL",
    .size = sizeof(zero_generate_options),
    .check = zero_generate_options_check,
    .run = run,
};
