/* golden_export DIR: writes DIR/gpt2.json and DIR/gpt2.f32, the input of tests/golden/golden.py.
 *
 * Gains and biases are moved away from their initial 1 and 0, where a forgotten one would
 * not show. */
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "golden/golden.h"

static void die(const char *what)
{
    fprintf(stderr, "golden_export: %s\n", what);
    exit(1);
}

static void perturb(const zero_model *model, int group, float *params)
{
    const zero_group *g = &model->groups[group];
    for (int i = g->first_tensor; i < g->first_tensor + g->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        zero_rng rng = {.seed = 7, .purpose = ZERO_RNG_TEST, .tensor = (uint64_t)i};
        float noise[256];
        if (t->decays || t->cols > 256) continue;
        zero_rng_normal(&rng, 0, t->cols, noise);
        for (int64_t k = 0; k < t->cols; k++) params[t->offset + k] += 0.1f * noise[k];
    }
}

static void write_weights(const zero_model *model, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) die(path);
    for (int g = 0; g < model->n_groups; g++) {
        int64_t n = model->groups[g].n_params;
        float *params = malloc((size_t)n * sizeof *params);
        if (!params) die("no memory");
        zero_model_init_params(model, g, 1337, 0, n, params);
        perturb(model, g, params);
        if (fwrite(params, sizeof *params, (size_t)n, file) != (size_t)n) die(path);
        free(params);
    }
    if (fclose(file) != 0) die(path);
}

static json_t *tokens(void)
{
    json_t *steps = json_array();
    zero_rng rng = {.seed = 11, .purpose = ZERO_RNG_TEST};
    uint64_t n = 0;
    for (int s = 0; s < GOLDEN_STEPS; s++) {
        json_t *batch = json_array();
        for (int b = 0; b < GOLDEN_BATCH; b++) {
            json_t *window = json_array();
            for (int64_t t = 0; t <= golden_shape.seq; t++)
                json_array_append_new(
                    window, json_integer((json_int_t)(zero_rng_bits(&rng, n++) %
                                                      (uint64_t)golden_shape.vocab)));
            json_array_append_new(batch, window);
        }
        json_array_append_new(steps, batch);
    }
    return steps;
}

static json_t *tensor_table(const zero_model *model)
{
    json_t *table = json_array();
    for (int i = 0; i < model->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        json_array_append_new(table, json_pack("[s, I, I, b]", t->name, (json_int_t)t->rows,
                                               (json_int_t)t->cols, (int)t->decays));
    }
    return table;
}

int main(int argc, char **argv)
{
    if (argc != 2) die("usage: golden_export DIR");
    zero_model model;
    if (zero_model_build(&golden_shape, &model) != ZERO_OK) die(zero_last_error());
    char path[4096];
    snprintf(path, sizeof path, "%s/gpt2.f32", argv[1]);
    write_weights(&model, path);
    json_t *all = json_pack(
        "{s:I, s:I, s:o, s:o, s:{s:f, s:f, s:f, s:f, s:f, s:f}}", "heads",
        (json_int_t)golden_shape.heads, "layers", (json_int_t)golden_shape.layers,
        "tensors", tensor_table(&model), "tokens", tokens(), "adamw", "lr", golden_adamw.lr,
        "beta1", golden_adamw.beta1, "beta2", golden_adamw.beta2, "eps", golden_adamw.eps,
        "weight_decay", golden_adamw.weight_decay, "clip", golden_adamw.clip);
    snprintf(path, sizeof path, "%s/gpt2.json", argv[1]);
    if (!all || json_dump_file(all, path, JSON_COMPACT) != 0) die(path);
    json_decref(all);
    zero_model_destroy(&model);
    return 0;
}
