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
#include "cli/session.h"
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
    zero_session s; /* but for the model, which is from.model */
    zero_trained from;
    char *lines; /* [bytes] of --prompts; owned */
    size_t bytes;
    zero_prompts prompts;
} job;

static bool speaks_tokens(const job *j)
{
    return j->options.prompt_tokens || !j->from.has_tokenizer;
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
    zero_plan_input in = zero_plan_input_standard(j->s.part, 1, 0);
    in = zero_engine_place(in, j->s.part, &j->s.world);
    in.stage = (int)j->options.stage;
    in.type = type_of(j);
    in.forward_only = true;
    in.texts = zero_min(j->prompts.n, j->options.batch);
    in.threads = j->s.config.plan.threads;
    in.collectives = collectives;
    in.device = j->s.backend->memory != NULL;
    in.ipc = in.device && j->s.backend->memory->sharing &&
             zero_plan_can_reach_devices(&in, &why);
    return in;
}

static zero_status open_engine(job *j)
{
    const char *why;
    zero_weights weights = zero_trained_weights(&j->from);
    zero_engine_spec spec = {
        .plan = plan_of(j, zero_algorithm_choose(&j->s.world.layout, &why)),
        .backend = j->s.backend,
        .device = j->s.place.device,
        .device_limit = j->s.place.room,
        .weights = &weights,
        .eval_batches = 1,
        .may_use_p2p = true,
        .may_stage = true,
        .memory_limit = zero_session_room(&j->s)};
    ZERO_TRY(zero_engine_init(&j->s.engine, &spec, &j->s.world));
    return zero_trained_check(&j->from, &j->s.world);
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
    ZERO_TRY(zero_comm_compare_with_root(&j->s.world, mine, &same));
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
    if (j->from.has_tokenizer && around[0] && zero_comm_is_root(&j->s.world))
        fprintf(
            stderr,
            "zero: note: the tokenizer puts tokens around a text (%s); prompts get none\n",
            ZERO_SHOWN(around));
    const zero_tp *tp = &j->s.config.tp;
    zero_type activations;
    ZERO_TRY(zero_activations_choose(j->s.config.activations, type_of(j),
                                     j->s.config.device, &activations));
    ZERO_TRY(zero_model_activate(&j->from.model, activations));
    zero_model_chunk_logits(&j->from.model, zero_device_logits(j->s.config.device));
    ZERO_TRY(zero_tp_check(tp, j->from.model.shape));
    ZERO_TRY(zero_tp_cut(tp, &j->from.model, j->s.world.rank, &j->s.made, &j->s.part));
    const zero_prompts_reader reader = {
        .options = &j->options,
        .path = j->from.path,
        .tokenizer = j->from.has_tokenizer ? &j->from.tokenizer : NULL,
        .vocab = j->from.model.vocab};
    return zero_prompts_take(&reader, j->lines, j->bytes, &j->prompts);
}

static void close_model(job *j)
{
    zero_engine_destroy(&j->s.engine);
    zero_model_destroy(&j->s.made);
    zero_prompts_destroy(&j->prompts);
}

static zero_status use_model(void *arg)
{
    job *j = arg;
    zero_status st = zero_agree(&j->s.world, prepare(j));
    if (st == ZERO_OK) st = zero_agree(&j->s.world, compare_prompts(j));
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

static zero_status run_job(job *j)
{
    const zero_trained_user user = {j->options.checkpoint, use_model, j};
    const zero_backend *backend;
    uint64_t words = 0;
    for (int i = 0; i < j->s.given->argc; i++)
        words = XXH3_64bits_withSeed(j->s.given->argv[i], strlen(j->s.given->argv[i]) + 1,
                                     words);
    ZERO_TRY(zero_machine_device(j->s.config.device, &backend));
    ZERO_TRY(zero_session_start(&j->s, words, ""));
    ZERO_TRY(zero_session_take_machine(&j->s));
    ZERO_TRY(zero_prompts_read(&j->s.world, j->options.prompts, &j->lines, &j->bytes));
    ZERO_TRY(zero_trained_open(&j->s.world, &user, &j->from));
    const zero_generate_options *o = &j->options;
    if (zero_comm_is_root(&j->s.world))
        zero_notes_show(j->s.given, zero_generate_table.rows, o, 0,
                        json_pack("{s:i}", "ranks", j->s.world.size));
    zero_sampling how = {.seed = o->seed,
                         .temperature = o->temperature,
                         .top_k = o->top_k,
                         .top_p = o->top_p,
                         .known = speaks_tokens(j) ? j->from.model.vocab
                                                   : j->from.tokenizer.vocab};
    bool is_root = zero_comm_is_root(&j->s.world);
    const zero_tokenizer *tok = j->from.has_tokenizer ? &j->from.tokenizer : NULL;
    if (!o->ignore_end)
        ZERO_TRY(zero_importing_find_ends(&j->s.world, j->from.kept, tok,
                                          j->from.model.shape, &how.ends));
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
    ZERO_TRY(zero_engine_generate_texts(&j->s.engine, &how, o->tokens, p->texts, p->n));
    ZERO_TRY(zero_agree(&j->s.world, is_root ? print_all(j) : ZERO_OK));
    zero_prompts_destroy(&j->prompts);
    zero_trained_close(&j->from);
    free(j->lines);
    return zero_session_close(&j->s);
}

static zero_status run(void *options, const zero_options *given)
{
    const zero_generate_options *o = options;
    job j = {.options = *o, .s = {.config = o->config, .given = given}};
    zero_status st = run_job(&j);
    zero_deadline_close(&j.s.deadline); /* its thread looks into this frame */
    return st;
}

const zero_command zero_command_generate = {
    .name = "zero generate",
    .summary = "generate text from a checkpoint, or a model of Hugging Face's",
    .usage = "zero generate MODEL [options]\n"
             "mpirun -n RANKS zero generate MODEL [options]",
    .about = "Continues a prompt with the model of a checkpoint: a directory "
             "step-00000100, or a directory of them, of which the newest is taken. Or with "
             "a model of Hugging Face's: its folder, with config.json and the tokenizer, "
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
