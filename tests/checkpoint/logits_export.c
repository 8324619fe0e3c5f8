/* logits_export export|import DIR TOKENS FILE: for tests/hugging_face.py, which compares.
 *
 *     export   a GPT-2 of random weights goes to the new directory DIR, from an engine
 *     import   the GPT-2 in DIR goes to an engine
 *
 * FILE gets its logits after each of the tokens (as in 3,1,4): fp32, [tokens, V], in the
 * machine's byte order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "checkpoint/hugging_face.h"
#include "comm/launch.h"
#include "engine/engine.h"

#define TOKENS_MOST 256

static const zero_shape random_shape = {
    .layers = 3, .hidden = 48, .heads = 4, .seq = 40, .vocab = 211};

static void check(zero_status st)
{
    if (st == ZERO_OK) return;
    fprintf(stderr, "logits_export: %s\n", zero_last_error());
    exit(1);
}

/* ---- weights ---- */

/* Gains and biases are moved away from their initial 1 and 0, where a forgotten one would
 * not show. */
static zero_status fill_random(void *arg, int tensor, int64_t begin, int64_t end,
                               float *out)
{
    zero_drawn_weights drawn = {.model = arg, .seed = 1337};
    zero_weights weights = zero_weights_drawn(&drawn);
    zero_rng rng = {.seed = 7, .purpose = ZERO_RNG_TEST, .tensor = (uint64_t)tensor};
    ZERO_TRY(weights.fill(weights.arg, tensor, begin, end, out));
    for (int64_t i = begin; i < end; i++) {
        float noise;
        zero_rng_normal(&rng, (uint64_t)i, 1, &noise);
        if (!drawn.model->tensors[tensor].decays) out[i - begin] += 0.1f * noise;
    }
    return ZERO_OK;
}

struct place {
    int64_t begin;
    float *values;
};

static zero_status copy_masters(void *arg, const zero_state_block *block)
{
    const struct place *to = arg;
    memcpy(to->values + (block->range.begin - to->begin), block->master,
           (size_t)(block->range.end - block->range.begin) * sizeof *to->values);
    return ZERO_OK;
}

/* The plan of an engine on one rank. */
static zero_status fill_from_engine(void *arg, int tensor, int64_t begin, int64_t end,
                                    float *out)
{
    zero_engine *e = arg;
    const zero_tensor *t = &e->schedule.input.model->tensors[tensor];
    zero_range range = {t->offset + begin, t->offset + end};
    return zero_states_visit(&e->runner, t->group, range, ZERO_VISIT_READ, copy_masters,
                             &(struct place){range.begin, out});
}

/* ---- logits ---- */

static void open_engine(zero_engine *e, const zero_model *model,
                        const zero_weights *weights, zero_comm *comm)
{
    const zero_plan_input plan = {
        .micro_batch = 1, .accumulation = 1, .bucket = 1 << 20, .forward_only = true};
    zero_engine_spec spec = {.plan = zero_engine_place(plan, model, comm),
                             .backend = &zero_backend_cpu,
                             .eval_batches = 1,
                             .weights = weights};
    check(zero_engine_init(e, &spec, comm));
}

static void write_logits(zero_engine *e, int n, const int32_t *tokens, const char *path)
{
    size_t vocab = (size_t)e->schedule.input.model->vocab;
    FILE *file = fopen(path, "wb");
    bool written = file != NULL;
    for (int T = 1; written && T <= n; T++) {
        zero_run_input in = {
            .program = ZERO_PROGRAM_GENERATE, .prompt = tokens, .T = T, .loss_scale = 1.0};
        zero_run_output out;
        check(zero_runner_run(&e->runner, &in, &out));
        written = fwrite(out.logits, sizeof *out.logits, vocab, file) == vocab;
    }
    if (!written || fclose(file) != 0)
        check(zero_fail(ZERO_ERR_IO, "%s: not written", path));
}

static int read_tokens(char *text, int32_t tokens[TOKENS_MOST])
{
    int n = 0;
    for (char *word = strtok(text, ","); word && n < TOKENS_MOST; word = strtok(NULL, ","))
        tokens[n++] = atoi(word);
    return n;
}

/* ---- both ways ---- */

static zero_shape read_shape(const char *dir)
{
    char path[4096];
    zero_bytes text = {0};
    zero_shape shape;
    snprintf(path, sizeof path, "%s/%s", dir, ZERO_HUGGING_FACE_CONFIG);
    check(zero_bytes_read(&text, path));
    check(zero_hugging_face_read_config(path, &text, &shape));
    zero_bytes_destroy(&text);
    return shape;
}

static void import_from(const char *dir, zero_engine *e, zero_model *model, zero_comm *comm)
{
    zero_shape shape = read_shape(dir);
    zero_hugging_face file;
    check(zero_model_build(&shape, model));
    check(zero_hugging_face_open(dir, model, &file));
    zero_weights weights = zero_hugging_face_weights(&file);
    open_engine(e, model, &weights, comm);
    zero_hugging_face_close(&file);
}

static void export_to(const char *dir, zero_engine *e, zero_model *model, zero_comm *comm)
{
    check(zero_model_build(&random_shape, model));
    open_engine(e, model, &(zero_weights){.fill = fill_random, .arg = model}, comm);
    zero_weights weights = {.fill = fill_from_engine, .arg = e};
    check(zero_hugging_face_write(
        dir, &(zero_hugging_face_export){model, &weights, NULL, NULL, 0, ZERO_FP32}));
}

int main(int argc, char **argv)
{
    int32_t tokens[TOKENS_MOST];
    zero_comm world;
    zero_model model;
    zero_engine engine;
    if (argc != 5) check(zero_fail(ZERO_ERR_INVALID, "export|import DIR TOKENS FILE"));
    check(zero_launch_start(NULL, NULL));
    check(zero_comm_world(&world));
    int n = read_tokens(argv[3], tokens);
    if (strcmp(argv[1], "export") == 0)
        export_to(argv[2], &engine, &model, &world);
    else
        import_from(argv[2], &engine, &model, &world);
    write_logits(&engine, n, tokens, argv[4]);
    zero_engine_destroy(&engine);
    zero_model_destroy(&model);
    zero_comm_destroy(&world);
    check(zero_launch_stop());
    return 0;
}
