/* zero generate: text from a trained model. Every rank holds the model or its part of it,
 * and no training state; all compute the same text, and rank 0 prints it. */

#include "base/hash.h"

#include "base/legible.h"
#include "checkpoint/list.h"
#include "checkpoint/load.h"
#include "checkpoint/model.h"
#include "cli/prompts.h"
#include "cli/session.h"
#include "data/tokenizer_find.h"
#include "report/print_text.h"

typedef struct {
    zero_generate_options options;
    zero_session s;
    /* The checkpoint that was found, or the model as the user named it. */
    char path[ZERO_STORAGE_PATH + ZERO_CHECKPOINT_NAME];
    bool is_imported; /* it is no checkpoint */
    zero_checkpoint checkpoint;
    zero_hugging_face_found found;
    zero_hugging_face file;
    zero_type type; /* it was trained in, or is read as */
    json_t *kept;   /* zero_hugging_face_keep()'s; owned; NULL: nothing */
    zero_tokenizer tokenizer;
    bool has_tokenizer;
    char *lines; /* [bytes] of --prompts; owned */
    size_t bytes;
    zero_prompts prompts;
} job;

static bool speaks_tokens(const job *j)
{
    return j->options.prompt_tokens || !j->has_tokenizer;
}

/* ---- the model ---- */

static zero_type type_of(const job *j)
{
    zero_type type = ZERO_FP32;
    if (!j->options.dtype) return j->type;
    (void)zero_type_find(j->options.dtype, &type); /* an option's name is valid */
    return type;
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
    ZERO_FORMAT_IF(!same,
                   "%s: its tokenizer makes other tokens of the prompt than rank 0's: "
                   "every node needs the same files",
                   j->path);
    return ZERO_OK;
}

static zero_status prepare(job *j)
{
    /* Describes it and reads its tokenizer, if it has one and texts are spoken: that of
     * an imported model may be of a kind that is not read. */
    const zero_manifest *m = &j->checkpoint.manifest;
    if (j->is_imported) {
        char path[ZERO_STORAGE_PATH];
        j->type = ZERO_FP32;
        j->has_tokenizer =
            !j->options.prompt_tokens && zero_tokenizer_beside(j->found.folder, path);
        if (j->has_tokenizer) ZERO_TRY(zero_tokenizer_open(path, &j->tokenizer));
    } else {
        j->type = m->loss_scale.type;
        j->has_tokenizer = m->has_tokenizer;
        if (m->kept) j->kept = json_incref(m->kept);
        ZERO_TRY(zero_checkpoint_describe(&j->checkpoint, &j->s.model));
        if (j->has_tokenizer)
            ZERO_TRY(zero_checkpoint_tokenizer(&j->checkpoint, &j->tokenizer));
    }
    ZERO_FORMAT_IF(j->has_tokenizer && j->tokenizer.vocab > j->s.model.vocab,
                   "%s: its tokenizer has %d tokens, its model only %" PRId64, j->path,
                   j->tokenizer.vocab, j->s.model.vocab);
    const char *around = j->tokenizer.around;
    if (j->has_tokenizer && around[0] && zero_comm_is_root(&j->s.world))
        fprintf(
            stderr,
            "zero: note: the tokenizer puts tokens around a text (%s); prompts get none\n",
            ZERO_SHOWN(around));
    const zero_tp *tp = &j->s.config.tp;
    zero_type activations;
    ZERO_TRY(zero_activations_choose(j->s.config.activations, type_of(j),
                                     j->s.config.device, &activations));
    ZERO_TRY(zero_model_activate(&j->s.model, activations));
    zero_model_chunk_logits(&j->s.model, zero_device_logits(j->s.config.device));
    ZERO_TRY(zero_tp_check(tp, j->s.model.shape));
    ZERO_TRY(zero_tp_cut(tp, &j->s.model, j->s.world.rank, &j->s.made, &j->s.part));
    const zero_prompts_reader reader = {.options = &j->options,
                                        .path = j->path,
                                        .tokenizer =
                                            j->has_tokenizer ? &j->tokenizer : NULL,
                                        .vocab = j->s.model.vocab};
    return zero_prompts_take(&reader, j->lines, j->bytes, &j->prompts);
}

static zero_status prepare_engine(job *j)
{
    ZERO_TRY(zero_agree(&j->s.world, prepare(j)));
    ZERO_TRY(zero_agree(&j->s.world, compare_prompts(j)));
    const char *why;
    zero_weights weights = j->is_imported ? zero_hugging_face_weights(&j->file)
                                          : zero_checkpoint_weights(&j->checkpoint);
    zero_plan_input in = zero_plan_input_standard(j->s.part, 1, 0);
    in = zero_engine_place(in, j->s.part, &j->s.world);
    in.stage = (int)j->options.stage;
    in.type = type_of(j);
    in.forward_only = true;
    in.texts = zero_min(j->prompts.n, j->options.batch);
    in.threads = j->s.config.plan.threads;
    in.collectives = zero_algorithm_choose(&j->s.world.layout, &why);
    in.device = j->s.backend->memory != NULL;
    in.ipc = in.device && j->s.backend->memory->sharing &&
             zero_plan_can_reach_devices(&in, &why);
    zero_engine_spec spec = {.plan = in,
                             .backend = j->s.backend,
                             .device = j->s.place.device,
                             .device_limit = j->s.place.room,
                             .weights = &weights,
                             .eval_batches = 1,
                             .may_use_p2p = true,
                             .may_stage = true,
                             .memory_limit = zero_session_room(&j->s)};
    ZERO_TRY(zero_engine_init(&j->s.engine, &spec, &j->s.world));
    return j->is_imported ? zero_importing_check_weights(&j->s.world, &j->file) : ZERO_OK;
}

/* After a failure the model is dropped, so that another one can be read. */
static zero_status use_checkpoint(void *arg, ZERO_UNUSED zero_checkpoint *c,
                                  const char *found)
{
    job *j = arg;
    zero_print(j->path, "%s", found);
    zero_failure failure = zero_failure_keep(prepare_engine(j));
    if (failure.status == ZERO_OK) return ZERO_OK;
    zero_engine_destroy(&j->s.engine);
    zero_model_destroy(&j->s.made);
    zero_model_destroy(&j->s.model);
    zero_prompts_destroy(&j->prompts);
    zero_tokenizer_destroy(&j->tokenizer);
    json_decref(j->kept);
    j->kept = NULL;
    return zero_failure_restore(&failure);
}

/* ---- opening ---- */

static zero_status find(job *j)
{
    const char *path = j->options.checkpoint;
    zero_failure failure =
        zero_failure_keep(zero_checkpoint_find(path, j->path, sizeof j->path));
    if (failure.status == ZERO_OK) return ZERO_OK;
    if (zero_hugging_face_find(path, &j->found) != ZERO_OK)
        return zero_failure_restore(&failure);
    /* True if there are weights or a config.json. Weights in a format that is not read
     * count, too, so that a message names the format. */
    char config[ZERO_STORAGE_FILE_PATH];
    zero_hugging_face_beside(&j->found, ZERO_HUGGING_FACE_CONFIG, config);
    ZERO_FAIL_IF(!j->found.weights[0] && zero_path_look(config) == ZERO_PATH_OF_NOTHING,
                 failure.status, "%s, or " ZERO_HUGGING_FACE_MODEL, failure.text);
    j->is_imported = true;
    zero_print(j->path, "%s", path);
    return ZERO_OK;
}

static zero_status open_imported(job *j, zero_shape *shape)
{
    ZERO_TRY(zero_hugging_face_find(j->path, &j->found));
    ZERO_TRY(zero_hugging_face_find_shape(j->path, shape));
    ZERO_FORMAT_IF(
        shape->heads == 0,
        "%s: the number of heads is not known: expected a " ZERO_HUGGING_FACE_CONFIG
        " beside the weights that says it (n_head)",
        j->path);
    ZERO_TRY(zero_model_build(shape, &j->s.model));
    ZERO_TRY(zero_hugging_face_open(j->path, &j->s.model, &j->file));
    return zero_hugging_face_keep(&j->found, true, &j->kept);
}

/* Opens what is at the path, a checkpoint before anything else; of several the newest. Rank
 * 0 decides which: a run may be saving the next, or have removed it. */
static zero_status open_model(job *j)
{
    zero_comm *world = &j->s.world;
    zero_shape shape;
    ZERO_TRY(zero_agree(world, zero_comm_is_root(world) ? find(j) : ZERO_OK));
    ZERO_TRY(zero_comm_broadcast(world, 0, j->path, sizeof j->path));
    ZERO_TRY(zero_comm_broadcast(world, 0, &j->is_imported, sizeof j->is_imported));
    if (!j->is_imported) {
        zero_checkpoint_user whose = {j->options.checkpoint, use_checkpoint, j};
        return zero_checkpoint_use(world, &whose, &j->checkpoint);
    }
    ZERO_TRY(zero_agree_after_files(world, open_imported(j, &shape)));
    ZERO_TRY(zero_importing_compare_shapes(world, j->path, &shape));
    return prepare_engine(j);
}

/* ---- the text ---- */

/* Texts may have several lines: an empty one stands between them. */
static zero_status print_all(const job *j)
{
    bool in_words = !speaks_tokens(j);
    for (int64_t i = 0; i < j->prompts.n; i++) {
        const zero_text *t = &j->prompts.texts[i];
        int64_t n = t->n_known + t->n_drawn - (in_words && t->has_ended);
        if (i > 0) putchar('\n');
        if (in_words)
            ZERO_TRY(
                zero_print_tokens(&j->tokenizer, t->tokens, n, j->options.raw, stdout));
        for (int64_t k = 0; !in_words && k < n; k++)
            printf("%s%d", k > 0 ? "," : "", t->tokens[k]);
        putchar('\n');
    }
    return ZERO_OK;
}

static zero_status run_job(job *j)
{
    const zero_backend *backend;
    uint64_t words = 0;
    for (int i = 0; i < j->s.given->argc; i++)
        words = XXH3_64bits_withSeed(j->s.given->argv[i], strlen(j->s.given->argv[i]) + 1,
                                     words);
    ZERO_TRY(zero_machine_device(j->s.config.device, &backend));
    ZERO_TRY(zero_session_start(&j->s, words, ""));
    ZERO_TRY(zero_session_take_machine(&j->s));
    ZERO_TRY(zero_prompts_read(&j->s.world, j->options.prompts, &j->lines, &j->bytes));
    ZERO_TRY(open_model(j));
    const zero_generate_options *o = &j->options;
    if (zero_comm_is_root(&j->s.world))
        zero_notes_show(j->s.given, zero_generate_table.rows, o, 0,
                        json_pack("{s:i}", "ranks", j->s.world.size));
    zero_sampling how = {.seed = o->seed,
                         .temperature = o->temperature,
                         .top_k = o->top_k,
                         .top_p = o->top_p,
                         .known = speaks_tokens(j) ? j->s.model.vocab : j->tokenizer.vocab};
    bool is_root = zero_comm_is_root(&j->s.world);
    const zero_tokenizer *tok = j->has_tokenizer ? &j->tokenizer : NULL;
    if (!o->ignore_end)
        ZERO_TRY(zero_importing_find_ends(&j->s.world, j->kept, tok, j->s.model.shape,
                                          &how.ends));
    const zero_prompts *p = &j->prompts;
    for (int64_t i = 0; is_root && i < p->n; i++) {
        const zero_text *t = &p->texts[i];
        if (t->n_known > j->s.model.seq)
            fprintf(stderr,
                    "zero: warning: the prompt has %" PRId64
                    " tokens, and the model sees the last %" PRId64 " of them\n",
                    t->n_known, j->s.model.seq);
    }
    if (is_root && p->first_empty > 0)
        fprintf(stderr,
                "zero: note: --prompts %s: line %" PRId64
                " is empty: such texts begin as without --prompt\n",
                ZERO_SHOWN(o->prompts), p->first_empty);
    ZERO_TRY(zero_engine_generate_texts(&j->s.engine, &how, o->tokens, p->texts, p->n));
    ZERO_TRY(zero_agree(&j->s.world, is_root ? print_all(j) : ZERO_OK));
    zero_prompts_destroy(&j->prompts);
    zero_tokenizer_destroy(&j->tokenizer);
    json_decref(j->kept);
    zero_checkpoint_close(&j->checkpoint);
    zero_hugging_face_close(&j->file);
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
#include "cli/options/generate.command"
    .tables = &zero_generate_table,
    .n_tables = 1,
    .size = sizeof(zero_generate_options),
    .check = zero_generate_options_check,
    .run = run,
};
