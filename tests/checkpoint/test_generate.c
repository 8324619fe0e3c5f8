/* Text from a model in training, and from an engine that only generates. */
#include "support/generate_test.h"

#include "base/fail.h"

TEST(generated_text_is_the_same_on_all_ranks_and_of_known_ids)
{
    static const int64_t prompts[] = {1, 5, 12, 13, 30}; /* T = 12 */
    test_run run;
    test_run_open(&run, &test_standard, test_size);
    for (size_t i = 0; i < COUNT(prompts); i++) {
        int32_t text[64], first[64];
        zero_sampling how = {.step = 1, .seed = 2, .temperature = 3.0, .known = 9};
        generate(&run, &how, prompts[i], text);
        for (int64_t k = 0; k < prompts[i]; k++) assert_all(text[k] == 7 * k % 50);
        for (int64_t k = prompts[i]; k < prompts[i] + GENERATED; k++)
            assert_all(text[k] >= 0 && text[k] < 9);
        memcpy(first, text, sizeof first);
        MPI_Bcast(first, 64, MPI_INT32_T, 0, MPI_COMM_WORLD);
        assert_all(memcmp(first, text, (size_t)(prompts[i] + GENERATED) * 4) == 0);
    }
    test_run_close(&run);
}

TEST(generated_text_depends_on_seed_and_step_only)
{
    const size_t bytes = (1 + GENERATED) * sizeof(int32_t);
    int32_t text[64], again[64], other_seed[64], other_step[64];
    zero_sampling how = {.step = 1, .seed = 2, .temperature = 1.0, .known = 50};
    test_run run;
    test_run_open(&run, &test_standard, test_size);
    generate(&run, &how, 1, text);
    generate(&run, &how, 1, again);
    how.seed++;
    generate(&run, &how, 1, other_seed);
    how.seed--;
    how.step++;
    generate(&run, &how, 1, other_step);
    assert_all(memcmp(text, again, bytes) == 0);
    assert_all(memcmp(text, other_seed, bytes) != 0);
    assert_all(memcmp(text, other_step, bytes) != 0);
    test_run_close(&run);
}

/* The model sees the last T tokens; earlier ones cannot matter. */
TEST(only_the_last_T_tokens_of_a_prompt_matter)
{
    int32_t a[64], b[64];
    zero_sampling how = {.temperature = 1.0, .known = 50};
    test_run run;
    test_run_open(&run, &test_standard, test_size);
    for (int i = 0; i < 20; i++) a[i] = b[i] = i;
    for (int i = 0; i < 8; i++) b[i] = 49 - i;
    all_ok(test_generate_text(&run.engine, &how, 20, GENERATED, a));
    all_ok(test_generate_text(&run.engine, &how, 20, GENERATED, b));
    assert_all(memcmp(a + 20, b + 20, GENERATED * sizeof *a) == 0);
    test_run_close(&run);
}

static void next_number(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                        void *targets)
{
    const test_setup *setup = arg;
    for (int64_t t = 0; t < T; t++) {
        ((int32_t *)inputs)[t] = (int32_t)((step + i + t) % setup->shape.vocab);
        ((int32_t *)targets)[t] = (int32_t)((step + i + t + 1) % setup->shape.vocab);
    }
}

TEST(a_model_that_learned_to_count_counts)
{
    test_setup setup = test_standard;
    setup.lr = 1e-2;
    setup.shape.vocab = 10;
    setup.plan.micro_batch = 4;
    test_run run;
    test_run_open(&run, &setup, test_size);
    zero_source source = {.sample = next_number, .arg = &run.setup};
    test_run_steps_on(&run, &source, 0, 80);
    int32_t text[64] = {3, 4, 5};
    zero_sampling how = {.temperature = 0.1, .known = 10};
    all_ok(test_generate_text(&run.engine, &how, 3, GENERATED, text));
    for (int i = 0; i < 3 + GENERATED; i++) assert_all(text[i] == (3 + i) % 10);
    test_run_close(&run);
}

/* ---- engines that only generate ---- */

/* The tensors of a model in training, whole on every rank, gathered by our own messages. */
static zero_status fill_from(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    float **tensors = arg;
    memcpy(out, tensors[tensor] + begin, (size_t)(end - begin) * sizeof *out);
    return ZERO_OK;
}

/* This rank's elements, zeros elsewhere: the sum over the ranks is the whole tensor. */
static void read_own(test_run *run, int g, float *out)
{
    zero_engine *e = &run->engine;
    zero_state_block own = test_states(e, g);
    bool is_piece = e->schedule.groups[g].optimizer_held == ZERO_HOLD_PIECE;
    memset(out, 0, (size_t)run->model.groups[g].n_params * sizeof *out);
    if (is_piece || test_rank == 0)
        memcpy(out + own.range.begin, own.master,
               (size_t)zero_range_len(own.range) * sizeof *out);
}

static float **copy_weights(test_run *run)
{
    const zero_model *model = &run->model;
    float **tensors = calloc((size_t)model->n_tensors, sizeof *tensors);
    for (int g = 0; g < model->n_groups; g++) {
        const zero_group *group = &model->groups[g];
        int n = (int)group->n_params;
        float *mine = malloc((size_t)n * sizeof *mine);
        float *all = malloc((size_t)n * sizeof *all);
        assert_true(tensors && mine && all);
        read_own(run, g, mine);
        MPI_Allreduce(mine, all, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        free(mine);
        for (int i = 0; i < group->n_tensors; i++)
            tensors[group->first_tensor + i] =
                all + model->tensors[group->first_tensor + i].offset;
    }
    return tensors;
}

static void free_weights(const zero_model *model, float **tensors)
{
    for (int g = 0; g < model->n_groups; g++) free(tensors[model->groups[g].first_tensor]);
    free(tensors);
}

/* The engine has neither gradients nor optimizer states. */
static void check_generates_the_same(const test_run *trained, const zero_weights *weights,
                                     int stage, const int32_t *text, double loss)
{
    const size_t bytes = (5 + GENERATED) * sizeof(int32_t);
    zero_sampling how = {.seed = 3, .temperature = 1.0, .top_k = 20, .known = 50};
    test_run run = {.setup = trained->setup, .comm = trained->comm};
    run.setup.plan.stage = stage;
    run.setup.plan.forward_only = true;
    test_run_begin(&run);
    all_ok(zero_engine_set_weights(&run.engine, weights));
    int32_t again[64];
    double same;
    zero_source source = test_words(&run);
    generate(&run, &how, 5, again);
    assert_all(memcmp(text, again, bytes) == 0);
    all_ok(zero_engine_evaluate(&run.engine, &source, &same));
    assert_all(same == loss);
    zero_state_block state = test_states(&run.engine, 1);
    assert_all(!state.part[1] && !state.part[2]);
    assert_all((state.master == NULL) == (run.setup.plan.type != ZERO_FP32));
    run.comm = &run.own; /* the other one's stays open */
    test_run_close(&run);
}

TEST(what_only_generates_gives_what_the_trained_model_gives)
{
    for (int type = ZERO_FP32; type <= ZERO_FP16; type++) {
        test_setup setup = test_standard;
        setup.plan.type = (zero_type)type;
        setup.plan.stage = 1 + type;
        test_run run;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, 2);
        int32_t text[64];
        double loss;
        zero_source source = test_words(&run);
        zero_sampling how = {.seed = 3, .temperature = 1.0, .top_k = 20, .known = 50};
        generate(&run, &how, 5, text);
        all_ok(zero_engine_evaluate(&run.engine, &source, &loss));
        float **tensors = copy_weights(&run);
        zero_weights weights = {.fill = fill_from, .arg = tensors};
        for (int stage = 0; stage <= 3; stage++)
            check_generates_the_same(&run, &weights, stage, text, loss);
        free_weights(&run.model, tensors);
        test_run_close(&run);
    }
}

TEST(what_only_generates_takes_parameters_alone)
{
    for (int stage = 0; stage <= 3; stage += 3) {
        test_setup setup = test_standard;
        setup.plan.stage = stage;
        setup.plan.forward_only = true;
        test_run run;
        test_run_open(&run, &setup, test_size);
        const zero_schedule *s = &run.engine.schedule;
        size_t padded = 0, states = 0;
        for (int g = 0; g < run.model.n_groups; g++)
            padded += (size_t)s->groups[g].partition.padded;
        for (int i = 0; i < s->n_buffers; i++)
            if (s->buffers[i].program == ZERO_PROGRAM_ALL && i != s->scratch &&
                s->buffers[i].class != ZERO_CLASS_BUCKETS)
                states += s->buffers[i].bytes;
        assert_all(states == 4 * padded / (size_t)(stage == 3 ? test_size : 1));
        test_run_close(&run);
    }
}

static zero_status refuse(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    memset(out, 0, (size_t)(end - begin) * sizeof *out);
    if (test_rank != *(const int *)arg || tensor < 4) return ZERO_OK;
    return zero_fail(ZERO_ERR_IO, "tensor %d is nowhere to be found", tensor);
}

TEST(a_rank_without_its_weights_is_heard_by_all)
{
    int last = test_size - 1;
    zero_weights weights = {.fill = refuse, .arg = &last};
    test_run run;
    test_run_open(&run, &test_standard, test_size);
    all_fail(zero_engine_set_weights(&run.engine, &weights), ZERO_ERR_IO,
             "tensor 4 is nowhere to be found");
    test_run_close(&run);
}

/* One NaN in the weights makes every logit NaN. */
static zero_status spoil(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    (void)arg;
    for (int64_t i = begin; i < end; i++)
        out[i - begin] = tensor == 5 && i == 3 ? NAN : 0.01f * (float)(i % 7);
    return ZERO_OK;
}

TEST(logits_that_are_not_finite_are_an_error)
{
    int32_t text[2] = {1};
    zero_weights weights = {.fill = spoil};
    zero_sampling how = {.temperature = 0.0, .known = 50};
    test_run run;
    test_run_open(&run, &test_standard, test_size);
    all_ok(zero_engine_set_weights(&run.engine, &weights));
    assert_all(test_generate_text(&run.engine, &how, 1, 1, text) == ZERO_ERR_DIVERGED);
    test_run_close(&run);
}
