/* Text that a model in training generates. */
#include "engine_test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define GENERATED 30

static void generate(test_run *run, const zero_sampling *how, int64_t n_known,
                     int32_t text[64])
{
    for (int64_t i = 0; i < n_known; i++) text[i] = (int32_t)(7 * i % 50);
    assert_all(zero_engine_generate(&run->engine, how, n_known, GENERATED, text) ==
               ZERO_OK);
}

static void generated_text_is_the_same_on_all_ranks_and_of_known_ids(void **state)
{
    (void)state;
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

static void generated_text_depends_on_seed_and_step_only(void **state)
{
    (void)state;
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

/* The model sees the last T tokens: what lies before them cannot matter. */
static void only_the_last_T_tokens_of_a_prompt_matter(void **state)
{
    (void)state;
    int32_t a[64], b[64];
    zero_sampling how = {.temperature = 1.0, .known = 50};
    test_run run;
    test_run_open(&run, &test_standard, test_size);
    for (int i = 0; i < 20; i++) a[i] = b[i] = i;
    for (int i = 0; i < 8; i++) b[i] = 49 - i;
    assert_all(zero_engine_generate(&run.engine, &how, 20, GENERATED, a) == ZERO_OK);
    assert_all(zero_engine_generate(&run.engine, &how, 20, GENERATED, b) == ZERO_OK);
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

static void a_model_that_learned_to_count_counts(void **state)
{
    (void)state;
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
    assert_all(zero_engine_generate(&run.engine, &how, 3, GENERATED, text) == ZERO_OK);
    for (int i = 0; i < 3 + GENERATED; i++) assert_all(text[i] == (3 + i) % 10);
    test_run_close(&run);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_text_is_the_same_on_all_ranks_and_of_known_ids),
        cmocka_unit_test(generated_text_depends_on_seed_and_step_only),
        cmocka_unit_test(only_the_last_T_tokens_of_a_prompt_matter),
        cmocka_unit_test(a_model_that_learned_to_count_counts),
    };
    test_begin(&argc, &argv);
    return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
