/* Texts with a cache of keys and values: several beside each other, token by token, have the logits of
 * whole texts, and a text does not depend on its company. */
#include "support/generate_test.h"

#include "base/number.h"
#include "fake/fake.h"
#include "state/run_memory.h"

enum { TEXTS = 3 };

static const int64_t lengths[TEXTS] = {1, 7, 4}; /* and T = 12 */

static test_setup texts_of(int64_t texts, int stage)
{
    test_setup setup = test_standard;
    setup.plan.stage = stage;
    setup.plan.texts = texts;
    setup.plan.forward_only = true;
    return setup;
}

static test_setup with_types(test_setup setup, zero_type type, zero_type activations)
{
    setup.plan.type = type;
    setup.plan.activations = activations;
    return setup;
}

static test_setup on_device(test_setup setup)
{
    setup.backend = &zero_backend_fake;
    setup.plan.device = 1;
    return setup;
}

/* The tokens of a program pass through memory of the host. */
static bool tokens_fit(const zero_schedule *s)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_TOKEN];
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        if (i->op == ZERO_OP_LOAD && s->input.device)
            return s->buffers[i->tokens].bytes <= s->buffers[i->host].bytes;
    }
    return !s->input.device;
}

static void open_with_cache(test_run *run, const test_setup *setup)
{
    test_run_open(run, setup, test_size);
    assert_all(zero_schedule_has_cache(&run->engine.schedule) == (setup->plan.texts > 0));
    assert_all(tokens_fit(&run->engine.schedule));
}

static int32_t word(int64_t text, int64_t at)
{
    return (int32_t)((5 * text + 7 * at * at + 3 * at) % 50);
}

/* The logits after `length` tokens of a text, of which the cache then has all. */
static void whole_logits(test_run *run, int64_t text, int64_t length, float *logits)
{
    int32_t words[16];
    zero_run_output out;
    for (int64_t i = 0; i < length; i++) words[i] = word(text, i);
    const zero_run_input in = {.program = ZERO_PROGRAM_GENERATE,
                               .prompt = words,
                               .T = length,
                               .text = text,
                               .loss_scale = 1.0};
    all_ok(zero_runner_run(&run->engine.runner, &in, &out));
    memcpy(logits, out.logits, 50 * sizeof *logits);
}

static double relative_error(const float *got, const float *want)
{
    double error = 0.0, size = 0.0;
    for (int i = 0; i < 50; i++) {
        error = fmax(error, fabs((double)got[i] - (double)want[i]));
        size = fmax(size, fabs((double)want[i]));
    }
    return error / size;
}

/* The tokens after `made` others of all texts that are shorter than T; returns the largest error. */
static double error_of_tokens(test_run *run, int64_t made, float want[TEXTS][12][50])
{
    const int64_t T = run->engine.schedule.input.seq;
    int32_t last[TEXTS] = {0};
    int64_t past[TEXTS] = {0};
    double error = 0.0;
    for (int64_t t = 0; t < TEXTS; t++)
        if (lengths[t] + made < T) last[t] = word(t, past[t] = lengths[t] + made);
    const zero_run_input in = {
        .program = ZERO_PROGRAM_TOKEN, .prompt = last, .past = past, .loss_scale = 1.0};
    zero_run_output out;
    all_ok(zero_runner_run(&run->engine.runner, &in, &out));
    for (int64_t t = 0; t < TEXTS; t++)
        if (lengths[t] + made < T)
            error = fmax(error, relative_error(out.logits + 50 * t, want[t][past[t]]));
    return error;
}

/* Texts of different lengths, token by token until each has T. */
static double error_of_texts(const test_setup *setup)
{
    static float got[TEXTS][50], want[TEXTS][12][50];
    test_run run;
    double error = 0.0;
    open_with_cache(&run, setup);
    const int64_t T = run.engine.schedule.input.seq;
    for (int64_t t = 0; t < TEXTS; t++)
        for (int64_t at = lengths[t]; at < T; at++)
            whole_logits(&run, t, at + 1, want[t][at]);
    for (int64_t t = 0; t < TEXTS; t++) whole_logits(&run, t, lengths[t], got[t]);
    for (int64_t made = 0; lengths[0] + made < T; made++)
        error = fmax(error, error_of_tokens(&run, made, want));
    test_run_close(&run);
    return error;
}

/* The logits are those of the whole; in 16 bits products of whole texts round more than those of tokens. */
TEST(tokens_have_the_logits_of_whole_texts)
{
    for (int stage = 0; stage <= 3; stage += 3) {
        const test_setup fp32 = texts_of(TEXTS, stage),
                         bf16 = with_types(fp32, ZERO_BF16, ZERO_BF16),
                         fp16 = with_types(fp32, ZERO_FP16, ZERO_FP16);
        assert_all(error_of_texts(&fp32) < 1e-6);
        assert_all(error_of_texts(&bf16) < 2e-2);
        assert_all(error_of_texts(&fp16) < 2e-3);
    }
}

TEST(tokens_have_the_logits_of_whole_texts_in_all_architectures)
{
    for (size_t i = 0; i < sizeof test_others / sizeof *test_others; i++) {
        test_setup fp32 = texts_of(TEXTS, 3);
        fp32.shape = test_others[i];
        const test_setup bf16 = with_types(fp32, ZERO_BF16, ZERO_BF16);
        assert_all(error_of_texts(&fp32) < 1e-6);
        assert_all(error_of_texts(&bf16) < 3e-2);
    }
}

static const zero_sampling sampling = {
    .step = 1, .seed = 2, .temperature = 1.0, .known = 50};

static void generate_texts(test_run *run, int64_t n, int32_t texts[][64])
{
    zero_text all[5];
    for (int64_t t = 0; t < n; t++) {
        all[t] = (zero_text){.n_known = lengths[t % TEXTS] + t, .tokens = texts[t]};
        for (int64_t i = 0; i < all[t].n_known; i++) texts[t][i] = word(t, i);
    }
    all_ok(zero_engine_generate_texts(&run->engine, &sampling, GENERATED, all, n));
}

/* The first n texts, as many at a time as the plan has, with a cache; or without one if that is 0. */
static void generate_beside(const test_setup *setup, int64_t n, int32_t texts[][64])
{
    test_run run;
    memset(texts, 0, (size_t)n * sizeof *texts);
    open_with_cache(&run, setup);
    generate_texts(&run, n, texts);
    test_run_close(&run);
}

/* Five texts, past the length that the model knows; bit for bit. */
TEST(texts_beside_each_other_are_the_same_as_alone)
{
    static int32_t alone[5][64], together[5][64];
    const test_setup one = texts_of(1, 0);
    generate_beside(&one, 5, alone);
    for (int stage = 0; stage <= 3; stage++) {
        const test_setup several = texts_of(TEXTS, stage);
        generate_beside(&several, 5, together);
        assert_all(memcmp(alone, together, sizeof alone) == 0);
    }
}

/* Each text is the beginning of what it would be without an end, up to the first word that ends it;
 * with a cache and without, past the length that the model knows. A prompt may have such words. */
TEST(texts_end_with_the_first_token_that_ends_them)
{
    static int32_t endless[5][64], ended[5][64];
    for (int64_t texts = 0; texts <= TEXTS; texts += TEXTS) {
        const test_setup setup = texts_of(texts, texts > 0 ? 3 : 0);
        int n_ended = 0;
        test_run run;
        zero_text all[5];
        generate_beside(&setup, 5, endless);
        /* The first word of a prompt, and the last ones that two texts have. */
        const int64_t end = lengths[0] + GENERATED - 1,
                      end_of_3 = lengths[3 % TEXTS] + 3 + GENERATED - 1;
        unsigned met = 0;
        zero_sampling how = sampling;
        how.ends = (zero_ends){{endless[1][0], endless[0][end], endless[3][end_of_3]}, 3};
        open_with_cache(&run, &setup);
        for (int64_t t = 0; t < 5; t++) {
            all[t] = (zero_text){.n_known = lengths[t % TEXTS] + t, .tokens = ended[t]};
            memcpy(ended[t], endless[t], (size_t)all[t].n_known * sizeof **ended);
        }
        all_ok(zero_engine_generate_texts(&run.engine, &how, GENERATED, all, 5));
        for (int64_t t = 0; t < 5; t++) {
            const int32_t *drawn = endless[t] + all[t].n_known;
            int64_t n = 0;
            while (n < GENERATED && drawn[n] != how.ends.id[0] &&
                   drawn[n] != how.ends.id[1] && drawn[n] != how.ends.id[2])
                n++;
            const int64_t length = all[t].n_known + zero_min(n + 1, GENERATED);
            n_ended += n < GENERATED;
            for (int k = 0; k < 3 && n < GENERATED; k++)
                met |= drawn[n] == how.ends.id[k] ? 1U << k : 0;
            assert_all(all[t].has_ended == (n < GENERATED));
            assert_all(all[t].n_known + all[t].n_drawn == length);
            assert_all(memcmp(ended[t], endless[t], (size_t)length * 4) == 0);
        }
        assert_all(n_ended >= 2 && met > 1); /* not only by the first of them */
        test_run_close(&run);
    }
}

/* In stage 3 texts are more than the tokens and targets of a microbatch. */
TEST(a_device_keeps_what_the_cpu_keeps)
{
    enum { MANY = 60 };
    static int32_t here[5][64], there[5][64];
    for (int stage = 0; stage <= 3; stage++) {
        const zero_type type = stage % 2 == 0 ? ZERO_FP32 : ZERO_BF16;
        const test_setup cpu = with_types(texts_of(TEXTS, stage), type, type);
        test_setup device = on_device(cpu);
        device.plan.texts = stage == 3 ? MANY : TEXTS;
        generate_beside(&cpu, 5, here);
        generate_beside(&device, 5, there);
        assert_all(memcmp(here, there, sizeof here) == 0);
    }
}

/* Bytes of the cache, planned and measured. */
static size_t cache_bytes(const test_setup *setup)
{
    static int32_t texts[TEXTS][64];
    zero_peak planned, measured;
    test_run run;
    open_with_cache(&run, setup);
    generate_texts(&run, TEXTS, texts);
    all_ok(zero_runner_memory(&run.engine.runner, &planned, &measured));
    assert_all(memcmp(&planned, &measured, sizeof planned) == 0);
    test_run_close(&run);
    return measured.of_class[ZERO_CLASS_CACHE];
}

/* Keys and values take half the bytes; queries and scores beside them stay fp32. */
TEST(activations_of_16_bits_halve_the_cache)
{
    const zero_shape *shape = &test_standard.shape;
    const int64_t kept = shape->layers * TEXTS * 2 * shape->seq * shape->hidden;
    for (int device = 0; device < 2; device++) {
        test_setup wide = with_types(texts_of(TEXTS, 1), ZERO_BF16, ZERO_FP32);
        if (device) wide = on_device(wide);
        const test_setup half = with_types(wide, ZERO_BF16, ZERO_BF16);
        assert_all(cache_bytes(&wide) - cache_bytes(&half) == (size_t)(2 * kept));
    }
}

/* They would differ where two words are equally likely but for the last bits. */
TEST(a_text_is_the_same_without_a_cache)
{
    static int32_t with[2][64], without[2][64];
    const test_setup cached = texts_of(2, 0), whole = texts_of(0, 0);
    generate_beside(&cached, 2, with);
    generate_beside(&whole, 2, without);
    assert_all(memcmp(with, without, sizeof with) == 0);
}

/* A run's steps are the same, and need the same memory. */
TEST(the_cache_of_a_run_takes_no_memory_from_its_steps)
{
    test_setup setup = test_standard;
    setup.plan.micro_batch = 8;
    for (int texts = 0; texts <= 1; texts++) {
        static size_t peak;
        test_run run;
        setup.plan.texts = texts;
        test_run_open(&run, &setup, test_size);
        const zero_schedule *s = &run.engine.schedule;
        if (texts == 0) peak = s->peak_bytes;
        assert_all(zero_schedule_has_cache(s) == (texts > 0));
        assert_all((s->class_peak[ZERO_CLASS_CACHE] > 0) == (texts > 0));
        assert_all(s->peak_bytes == peak && s->peak_program == ZERO_PROGRAM_STEP);
        test_run_close(&run);
    }
}

/* Where outputs alone are kept, of one sequence, texts would need more. */
TEST(a_run_whose_steps_need_less_has_no_cache)
{
    test_setup setup = test_standard;
    setup.plan.micro_batch = 1;
    setup.plan.recompute = true;
    setup.plan.texts = 1;
    test_run run;
    int32_t text[64];
    test_run_open(&run, &setup, test_size);
    assert_all(!zero_schedule_has_cache(&run.engine.schedule));
    generate(&run, &sampling, 1, text);
    test_run_close(&run);
}
