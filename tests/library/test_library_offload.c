/* Trainers whose optimizer states lie in a scratch file. */
#include "support/library_test.h"

#define DIR   "." /* the build tree, on a disk */
#define STEPS 4

/* The results of a run that a caller sees. The digest says most. */
typedef struct {
    double loss[STEPS], evaluated, computed;
    float first;
    char digest[33];
} outcome;

static void read_first(zero_trainer *t, const zero_model *model, float *first)
{
    const zero_tensor *tensor = &model->tensors[0];
    float *values = malloc((size_t)(tensor->rows * tensor->cols) * sizeof *values);
    all_ok(values && zero_trainer_read(t, tensor->name, values));
    *first = values[0];
    free(values);
}

/* Steps, and between them all calls that read or write states. */
static outcome train(const zero_trainer_spec *spec, double clip, zero_comm *comm)
{
    outcome o = {.first = 0.0f};
    zero_trainer *t = open_trainer(spec, comm);
    zero_step_result result;
    for (int64_t step = 0; step < STEPS; step++) {
        zero_step_input in = tied_input;
        in.step = step;
        in.clip = clip;
        if (zero_trainer_step(t, &tied_source, &in, &result) != ZERO_OK)
            fail_msg("stage %d, %s, step %d: %s", spec->stage,
                     spec->offload_when ? spec->offload_when : "resident", (int)step,
                     zero_last_error());
        o.loss[step] = result.loss;
        if (step == 0) read_first(t, spec->model, &o.first);
        if (step == 1) {
            const float value = 0.5f;
            all_ok(zero_trainer_write(t, spec->model->tensors[0].name, 1, 2, &value));
        }
        if (step == 2) {
            all_ok(zero_trainer_compute(t, &tied_source, 9, &result));
            o.computed = result.loss;
            all_ok(zero_trainer_evaluate(t, &tied_source, &o.evaluated));
        }
    }
    all_ok(zero_trainer_digest(t, o.digest));
    zero_trainer_close(&t);
    return o;
}

static void assert_equal(const outcome *a, const outcome *b)
{
    assert_string_equal(a->digest, b->digest);
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_true(a->first == b->first && a->evaluated == b->evaluated &&
                a->computed == b->computed);
}

TEST(a_file_changes_no_bit)
{
    static const char *const places[] = {"lazy", "end", "backward"};
    zero_comm *comm = open_world();
    zero_model model;
    describe_tied(&model);
    for (int stage = 0; stage <= 3; stage++)
        for (int type = ZERO_FP32; type <= ZERO_BF16; type++)
            for (size_t k = 0; k < COUNT(places); k++) {
                double clip = k == 2 ? 0.0 : 1.0;
                zero_trainer_spec spec = tied_spec(&model);
                spec.stage = stage;
                spec.type = (zero_type)type;
                outcome resident = train(&spec, clip, comm);
                spec.offload = DIR;
                spec.offload_when = places[k];
                spec.offload_parameters = stage == 3;
                spec.offload_depth = (int)k + 1;
                outcome offloaded = train(&spec, clip, comm);
                assert_equal(&resident, &offloaded);
            }
    zero_model_destroy(&model);
    zero_comm_close(&comm);
}

/* ---- delayed ---- */

static double loss_after(zero_trainer *t, int64_t step)
{
    zero_step_result result;
    take_step(t, step, &result);
    return result.loss;
}

/* Steps 1 and 2 see the first parameters, step 3 those that the gradient of step 1 made. */
TEST(a_delayed_gradient_is_seen_two_steps_later)
{
    zero_comm *comm = open_world();
    zero_model model;
    zero_step_result at_first, after_one;
    describe_tied(&model);
    for (int stage = 0; stage <= 3; stage++) {
        zero_trainer_spec spec = tied_spec(&model);
        spec.stage = stage;
        zero_trainer *oracle = open_trainer(&spec, comm);
        all_ok(zero_trainer_compute(oracle, &tied_source, 1, &at_first));
        double first = loss_after(oracle, 0);
        all_ok(zero_trainer_compute(oracle, &tied_source, 2, &after_one));
        zero_trainer_close(&oracle);

        spec.offload = DIR;
        spec.delayed_update = 1;
        zero_trainer *t = open_trainer(&spec, comm);
        assert_true(loss_after(t, 0) == first);
        assert_true(loss_after(t, 1) == at_first.loss);
        assert_true(loss_after(t, 2) == after_one.loss);
        zero_trainer_close(&t);
    }
    zero_model_destroy(&model);
    zero_comm_close(&comm);
}

/* ---- misuse ---- */

TEST(wrong_specs_are_refused)
{
    zero_comm *comm = open_world();
    zero_model model;
    zero_trainer *t = NULL;
    describe_tied(&model);
    zero_trainer_spec wrong[] = {
        {.offload = DIR, .offload_when = "never"},
        {.offload_when = "lazy"},
        {.offload_activations = true},
        {.offload = DIR, .offload_activations = true},
        {.offload = DIR, .offload_parameters = true, .stage = 2},
        {.offload = DIR, .offload_depth = 65},
        {.offload = DIR, .offload_when = "end", .delayed_update = 1},
        {.offload = DIR, .delayed_update = -1},
        {.offload = DIR, .offload_when = "backward", .type = ZERO_FP16},
    };
    const char *told[] = {"end, lazy, backward", "offload",   "--offload DIR",
                          "--recompute",         "--stage 3", "1 to 64",
                          "give one of them",    "1 or more", "fp16"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        wrong[i].model = &model;
        zero_status st = zero_trainer_open(&wrong[i], comm, &t);
        refused(st, told[i]);
    }
    zero_model_destroy(&model);
    zero_comm_close(&comm);
}

/* With "backward" updates are made before the step's vote: a refusal must come first. */
TEST(a_refused_step_updates_nothing)
{
    zero_comm *comm = open_world();
    zero_model model;
    zero_step_result result;
    char before[33], after[33];
    describe_tied(&model);
    zero_trainer_spec spec = tied_spec(&model);
    spec.offload = DIR;
    spec.offload_when = "backward";
    zero_trainer *t = open_trainer(&spec, comm);
    zero_step_input in = tied_input, clipped = tied_input;
    in.clip = 0.0;
    all_ok(zero_trainer_step(t, &tied_source, &in, &result));
    all_ok(zero_trainer_digest(t, before));
    bool is_last = test_rank == test_size - 1;
    zero_status st = zero_trainer_step(t, &tied_source, is_last ? &clipped : &in, &result);
    refused(st, "backward");
    all_ok(zero_trainer_digest(t, after));
    assert_string_equal(before, after);
    zero_trainer_close(&t);
    zero_model_destroy(&model);
    zero_comm_close(&comm);
}
