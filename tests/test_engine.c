/* Training runs as a whole: what must not change their bits, and what must. */
#include "engine_test.h"

#include <unistd.h>

#include "train/learning_rate.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define STEPS        3

static test_setup with_accumulation(int M)
{
    test_setup setup = test_standard;
    setup.accumulation = M;
    return setup;
}

/* ---- one model on all ranks ---- */

/* Whether an array is the same on all ranks of the job, bit for bit. */
static bool same_everywhere(const float *x, int64_t n)
{
    size_t bytes = (size_t)n * sizeof *x;
    float *first = malloc(bytes);
    assert_non_null(first);
    memcpy(first, x, bytes);
    MPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    bool same = memcmp(first, x, bytes) == 0;
    free(first);
    return same;
}

static bool is_zero(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0.0f) return false;
    return true;
}

static void check_group(const test_run *run, int g)
{
    zero_group_arrays a = zero_engine_group(&run->engine, g);
    const zero_partition *p = &run->engine.schedule.groups[g].partition;
    const float *arrays[] = {a.param, a.momentum, a.variance, a.grad};
    for (size_t k = 0; k < COUNT(arrays); k++) {
        int64_t n = p->n_params, padding = zero_partition_padded(p) - n;
        assert_all(same_everywhere(arrays[k], n));
        assert_all(!is_zero(arrays[k], n));
        assert_all(is_zero(arrays[k] + n, padding));
    }
}

static void all_ranks_hold_the_same_bits_and_padding_stays_zero(void **state)
{
    (void)state;
    for (int M = 1; M <= 2; M++) {
        test_setup setup = with_accumulation(M);
        test_run run;
        setup.shape.dropout = 0.1f;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, STEPS);
        for (int g = 0; g < run.model.n_groups; g++) check_group(&run, g);
        test_run_close(&run);
    }
}

static void losses_and_norms_are_the_same_on_all_ranks(void **state)
{
    (void)state;
    test_run run;
    test_run_open(&run, &test_standard, test_size);
    test_run_steps(&run, 0, 1);
    double mine[] = {run.last.loss, run.last.grad_norm, 0.0}, first[3];
    zero_source source = test_words(&run);
    assert_all(zero_engine_evaluate(&run.engine, &source, &mine[2]) == ZERO_OK);
    memcpy(first, mine, sizeof first);
    MPI_Bcast(first, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    assert_all(memcmp(first, mine, sizeof first) == 0);
    test_run_close(&run);
}

/* ---- what does not change the bits ---- */

static void the_digest_does_not_depend_on_the_bucket_size(void **state)
{
    (void)state;
    static const int64_t buckets[] = {512, 777, 5000, 1 << 20, 1 << 30};
    for (int M = 1; M <= 2; M++) {
        test_setup setup = with_accumulation(M);
        test_digest want = test_digest_after(&setup, test_size, STEPS);
        for (size_t i = 0; i < COUNT(buckets); i++) {
            setup.bucket = buckets[i];
            assert_all(test_same(test_digest_after(&setup, test_size, STEPS), want));
        }
    }
}

static void late_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                        void *targets)
{
    zero_rng rng = {
        .purpose = ZERO_RNG_TEST, .seed = 1, .step = (uint64_t)step, .sample = (uint64_t)i};
    usleep((useconds_t)(zero_rng_bits(&rng, (uint64_t)test_rank) % 8000));
    test_sample(arg, step, i, T, inputs, targets);
}

/* Through memory, through messages, or both; `mpi` alone adds in an order of its own. */
static void the_digest_does_not_depend_on_the_collectives(void **state)
{
    (void)state;
    for (int M = 1; M <= 2; M++) {
        test_setup setup = test_standard;
        setup.accumulation = M;
        test_digest want = test_digest_after(&setup, test_size, STEPS);
        for (int a = 0; a < ZERO_ALGORITHMS; a++)
            for (int nodes = 1; nodes <= test_size; nodes++) {
                if (a == ZERO_ALGORITHM_MPI || (a == ZERO_ALGORITHM_SHM && nodes > 1))
                    continue;
                setup.collectives = (zero_algorithm)a;
                setup.fake_nodes = nodes;
                assert_all(test_same(test_digest_after(&setup, test_size, STEPS), want));
            }
    }
}

static void the_digest_does_not_depend_on_who_is_late(void **state)
{
    (void)state;
    test_setup setup = with_accumulation(2);
    setup.bucket = 777;
    test_digest want = test_digest_after(&setup, test_size, STEPS);
    test_run run;
    test_run_open(&run, &setup, test_size);
    zero_source late = {.sample = late_sample, .arg = &run.setup};
    test_run_steps_on(&run, &late, 0, STEPS);
    assert_all(test_same(test_run_digest(&run), want));
    test_run_close(&run);
}

static void two_engines_in_one_process_do_not_disturb_each_other(void **state)
{
    (void)state;
    test_setup first = test_standard, second = with_accumulation(2);
    second.shape.layers = 1;
    second.shape.dropout = 0.2f;
    second.seed = 99;
    test_digest want_first = test_digest_after(&first, test_size, STEPS);
    test_digest want_second = test_digest_after(&second, test_size, STEPS);
    assert_all(!test_same(want_first, want_second));

    test_run a, b;
    test_run_open(&a, &first, test_size);
    test_run_open(&b, &second, test_size);
    for (int step = 0; step < STEPS; step++) {
        test_run_steps(&a, step, 1);
        test_run_steps(&b, step, 1);
    }
    assert_all(test_same(test_run_digest(&a), want_first));
    test_run_close(&a);
    assert_all(test_same(test_run_digest(&b), want_second));
    test_run_close(&b);
}

static void evaluating_and_generating_do_not_change_the_training(void **state)
{
    (void)state;
    test_run run;
    test_run_open(&run, &test_standard, test_size);
    zero_source source = test_words(&run);
    zero_sampling how = {.temperature = 1.0, .known = run.model.vocab};
    for (int step = 0; step < STEPS; step++) {
        double loss;
        int32_t text[4] = {1};
        test_run_steps(&run, step, 1);
        assert_all(zero_engine_evaluate(&run.engine, &source, &loss) == ZERO_OK);
        assert_all(zero_engine_generate(&run.engine, &how, 1, 3, text) == ZERO_OK);
    }
    assert_all(test_same(test_run_digest(&run),
                         test_digest_after(&test_standard, test_size, STEPS)));
    test_run_close(&run);
}

/* Sums of two and of three leaves have only one order, and the first two and the last two of
 * four are neighbours: then ranks and microbatches walk the same tree. */
static void microbatches_here_or_on_other_ranks_give_the_same_bits(void **state)
{
    (void)state;
    static const struct {
        int ranks, M, others, other_M;
    } pairs[] = {{2, 1, 1, 2}, {3, 1, 1, 3}, {4, 1, 2, 2}};
    for (size_t i = 0; i < COUNT(pairs); i++) {
        if (pairs[i].ranks > test_size) continue;
        test_setup one = with_accumulation(pairs[i].M);
        test_setup other = with_accumulation(pairs[i].other_M);
        one.shape.dropout = other.shape.dropout = 0.1f;
        assert_all(test_same(test_digest_after(&one, pairs[i].ranks, STEPS),
                             test_digest_after(&other, pairs[i].others, STEPS)));
    }
}

/* ---- how the global batch is cut ---- */

#define GLOBAL_BATCH 12

typedef struct {
    double loss[STEPS], norm[STEPS], evaluated;
} trajectory;

static trajectory train(const test_setup *setup, int n_ranks)
{
    trajectory t = {.evaluated = 0.0};
    test_run run;
    test_run_open(&run, setup, n_ranks);
    zero_source source = test_words(&run);
    zero_status st = ZERO_OK;
    if (test_run_member(&run))
        st = zero_engine_evaluate(&run.engine, &source, &t.evaluated);
    assert_all(st == ZERO_OK);
    for (int step = 0; step < STEPS; step++) {
        test_run_steps(&run, step, 1);
        t.loss[step] = run.last.loss;
        t.norm[step] = run.last.grad_norm;
    }
    test_run_close(&run);
    MPI_Bcast(&t, (int)sizeof t, MPI_BYTE, 0, MPI_COMM_WORLD);
    return t;
}

static bool close_to(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

/* The oracle computes each sample by itself: only the order of the sum of losses differs. */
static void losses_do_not_depend_on_how_the_global_batch_is_cut(void **state)
{
    (void)state;
    test_setup setup = test_standard;
    setup.backend = &zero_backend_naive;
    setup.shape.dropout = 0.1f; /* masks belong to samples, not to ranks */
    setup.micro_batch = GLOBAL_BATCH;
    trajectory want = train(&setup, 1);
    for (int n = 1; n <= test_size; n++)
        for (int M = 1; M <= GLOBAL_BATCH / n; M++) {
            if (GLOBAL_BATCH % (n * M) != 0) continue;
            setup.accumulation = M;
            setup.micro_batch = GLOBAL_BATCH / (n * M);
            trajectory got = train(&setup, n);
            assert_all(close_to(got.loss[0], want.loss[0], 1e-13));
            assert_all(close_to(got.evaluated, want.evaluated, 1e-13));
            for (int step = 0; step < STEPS; step++) {
                assert_all(close_to(got.loss[step], want.loss[step], 1e-5));
                assert_all(close_to(got.norm[step], want.norm[step], 1e-5));
            }
        }
}

/* What a rank asked its source for: step and sample, in order. */
struct log {
    int64_t step[64], sample[64];
    int n;
};

static void logged_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                          void *targets)
{
    struct log *log = *(struct log *const *)arg;
    assert_true(log->n < 64);
    log->step[log->n] = step;
    log->sample[log->n++] = i;
    memset(inputs, 0, (size_t)T * sizeof(int32_t));
    memset(targets, 0, (size_t)T * sizeof(int32_t));
}

static void a_rank_reads_neighbouring_microbatches_in_order(void **state)
{
    (void)state;
    test_setup setup = with_accumulation(3);
    struct log log = {.n = 0}, *where = &log;
    zero_source source = {.sample = logged_sample, .arg = &where};
    test_run run;
    test_run_open(&run, &setup, test_size);
    test_run_steps_on(&run, &source, 7, 1);
    assert_int_equal(log.n, 6);
    for (int k = 0; k < log.n; k++)
        assert_true(log.step[k] == 7 && log.sample[k] == 6 * test_rank + k);
    test_run_close(&run);
}

static void an_evaluation_reads_every_sample_of_step_0_once(void **state)
{
    (void)state;
    test_setup setup = with_accumulation(3);
    struct log log = {.n = 0}, *where = &log;
    zero_source source = {.sample = logged_sample, .arg = &where};
    test_run run;
    double loss;
    test_run_open(&run, &setup, test_size);
    assert_all(zero_engine_evaluate(&run.engine, &source, &loss) == ZERO_OK);
    int total = 2 * 3 * 2 * test_size, reads[2 * 3 * 2 * 16] = {0};
    assert_true(test_size <= 16);
    for (int k = 0; k < log.n; k++) {
        assert_true(log.step[k] == 0 && log.sample[k] < total);
        reads[log.sample[k]]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, reads, total, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < total; i++) assert_all(reads[i] == 1);
    test_run_close(&run);
}

/* ---- communication ---- */

static void check_ledger(const test_setup *setup)
{
    test_run run;
    double loss;
    int32_t text[3] = {0};
    zero_sampling how = {.temperature = 1.0, .known = 50};
    test_run_open(&run, setup, test_size);
    test_run_steps(&run, 0, STEPS);
    zero_source source = test_words(&run);
    assert_all(zero_engine_evaluate(&run.engine, &source, &loss) == ZERO_OK);
    assert_all(zero_engine_generate(&run.engine, &how, 1, 2, text) == ZERO_OK);

    const zero_op ops[] = {ZERO_OP_REDUCE, ZERO_OP_GATHER};
    const zero_collective_kind kinds[] = {ZERO_REDUCE_SCATTER, ZERO_ALL_GATHER};
    assert_all(run.engine.adam_steps == STEPS);
    for (int k = 0; k < 2; k++) {
        zero_traffic step = zero_schedule_traffic(&run.engine.schedule, ops[k]);
        zero_traffic planned = {0};
        zero_traffic_add(&planned, STEPS, &step);
        assert_all(memcmp(&planned, &run.comm.traffic[kinds[k]], sizeof planned) == 0);
        assert_all((zero_traffic_total(&planned).bytes_sent > 0) == (test_size > 1));
    }
    test_run_close(&run);
}

static void every_step_moves_the_planned_bytes_and_nothing_else_does(void **state)
{
    (void)state;
    for (int a = 0; a < ZERO_ALGORITHMS; a++) {
        test_setup setup = test_standard;
        setup.collectives = (zero_algorithm)a;
        setup.fake_nodes = a == ZERO_ALGORITHM_HIER && test_size > 2 ? 2 : 1;
        check_ledger(&setup);
    }
}

/* ---- dropout ---- */

static void dropout_repeats_itself_and_acts_in_training_only(void **state)
{
    (void)state;
    test_setup plain = test_standard, dropped = test_standard, other = test_standard;
    dropped.shape.dropout = other.shape.dropout = 0.2f;
    other.shape.seed++;
    test_digest want = test_digest_after(&dropped, test_size, STEPS);
    assert_all(test_same(test_digest_after(&dropped, test_size, STEPS), want));
    assert_all(!test_same(test_digest_after(&plain, test_size, STEPS), want));
    assert_all(!test_same(test_digest_after(&other, test_size, STEPS), want));

    trajectory without = train(&plain, test_size), with = train(&dropped, test_size);
    assert_all(with.evaluated == without.evaluated);
    assert_all(with.loss[0] != without.loss[0]);
}

/* ---- gradients that are not finite ---- */

/* A parameter that every sample reads: the last group's first, a gain of the final norm. */
static float *a_parameter(const test_run *run)
{
    return zero_engine_group(&run->engine, run->model.n_groups - 1).param;
}

static void step_that_diverges(test_run *run, int step)
{
    zero_source source = test_words(run);
    zero_step_input in = test_step_input(run, step);
    zero_run_output out;
    zero_status st = zero_engine_step(&run->engine, &source, &in, &out);
    assert_all(st == ZERO_ERR_DIVERGED);
    assert_all(out.overflow && strstr(zero_last_error(), "not finite"));
}

static void a_gradient_that_is_not_finite_stops_all_ranks_and_changes_nothing(void **state)
{
    (void)state;
    const float planted[] = {NAN, INFINITY, 3e38f};
    test_digest want = test_digest_after(&test_standard, test_size, 2 * STEPS);
    test_run run;
    test_run_open(&run, &test_standard, test_size);
    test_run_steps(&run, 0, STEPS);
    for (size_t i = 0; i < COUNT(planted); i++) {
        test_digest before = test_run_digest(&run);
        int culprit = (int)i % test_size;
        float kept = *a_parameter(&run);
        if (test_rank == culprit) *a_parameter(&run) = planted[i];
        step_that_diverges(&run, STEPS);
        if (test_rank == culprit) {
            assert_memory_equal(a_parameter(&run), &planted[i], sizeof planted[i]);
            *a_parameter(&run) = kept;
        }
        assert_all(run.engine.adam_steps == STEPS);
        assert_all(test_same(test_run_digest(&run), before));
    }
    /* With the parameter as it was, the run goes on as if nothing had happened. */
    test_run_steps(&run, STEPS, STEPS);
    assert_all(test_same(test_run_digest(&run), want));
    test_run_close(&run);
}

/* ---- the update ---- */

static double momentum_norm(const test_run *run)
{
    double squares = 0.0;
    for (int g = 0; g < run->model.n_groups; g++) {
        const float *m = zero_engine_group(&run->engine, g).momentum;
        for (int64_t i = 0; i < run->model.groups[g].n_params; i++)
            squares += (double)m[i] * (double)m[i];
    }
    return sqrt(squares);
}

/* After the first step the momentum is (1 - beta1) times the clipped gradient. */
static void clipping_bounds_the_global_norm_and_spares_smaller_gradients(void **state)
{
    (void)state;
    const double clips[] = {0.0, 1e-3, 1e6};
    for (size_t i = 0; i < COUNT(clips); i++) {
        test_setup setup = test_standard;
        setup.clip = clips[i];
        test_run run;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, 1);
        bool acts = clips[i] > 0.0 && clips[i] < run.last.grad_norm;
        double want = acts ? clips[i] : run.last.grad_norm;
        /* The 1e-6 that guards the division is a thousandth of the smallest clip. */
        assert_all(run.last.grad_norm > 0.1);
        assert_all(close_to(momentum_norm(&run), 0.1 * want, 1e-5));
        test_run_close(&run);
    }
}

/* Adam's first step is lr * g / |g|, whatever the gradient; gains do not decay. */
static void the_first_step_is_as_long_as_the_learning_rate(void **state)
{
    (void)state;
    const double rates[] = {0.0, 1e-3, 1e-2};
    for (size_t i = 0; i < COUNT(rates); i++) {
        test_setup setup = test_standard;
        setup.lr = rates[i];
        test_run run;
        test_run_open(&run, &setup, test_size);
        double before = (double)*a_parameter(&run);
        test_run_steps(&run, 0, 1);
        double moved = fabs((double)*a_parameter(&run) - before);
        assert_all(close_to(moved, rates[i], 1e-3));
        test_run_close(&run);
    }
}

static const float *tensor_of(const test_run *run, const zero_tensor *t)
{
    return zero_engine_group(&run->engine, t->group).param + t->offset;
}

/* AdamW: the decay takes lr * weight_decay of the old weight, and changes nothing else. */
static void weight_decay_shrinks_matrices_and_spares_vectors(void **state)
{
    (void)state;
    test_setup setup = test_standard;
    test_run start, without, with;
    setup.lr = 1e-2;
    setup.weight_decay = 0.0;
    test_run_open(&start, &setup, test_size);
    test_run_open(&without, &setup, test_size);
    setup.weight_decay = 0.5;
    test_run_open(&with, &setup, test_size);
    test_run_steps(&without, 0, 1);
    test_run_steps(&with, 0, 1);
    for (int i = 0; i < start.model.n_tensors; i++) {
        const zero_tensor *t = &start.model.tensors[i];
        const float *old = tensor_of(&start, t), *a = tensor_of(&without, t),
                    *b = tensor_of(&with, t);
        double share = t->rows > 1 ? 1e-2 * 0.5 : 0.0, error = 0.0;
        for (int64_t k = 0; k < t->rows * t->cols; k++)
            error = fmax(error, fabs((double)a[k] - (double)b[k] - share * (double)old[k]));
        assert_all(error < 3e-8); /* what rounding leaves; the shares are up to 4e-4 */
    }
    test_run_close(&start);
    test_run_close(&without);
    test_run_close(&with);
}

static void the_same_sample(const void *arg, int64_t step, int64_t i, int64_t T,
                            void *inputs, void *targets)
{
    (void)step;
    test_sample(arg, 0, i, T, inputs, targets);
    *(int32_t *)inputs = (int32_t)i; /* each sequence can be told by its beginning */
}

static void a_repeated_batch_is_learned_by_heart(void **state)
{
    (void)state;
    test_setup setup = test_standard;
    setup.lr = 1e-2;
    setup.shape.seq = 8;
    test_run run;
    test_run_open(&run, &setup, test_size);
    zero_source source = {.sample = the_same_sample, .arg = &run.setup};
    test_run_steps_on(&run, &source, 0, 1);
    assert_all(run.last.loss > 3.0); /* about log 50 = 3.9 */
    test_run_steps_on(&run, &source, 1, 119);
    assert_all(run.last.loss < 0.1);
    test_run_close(&run);
}

/* ---- generation ---- */

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
    setup.micro_batch = 4;
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

/* ---- set-up ---- */

static void a_stage_that_is_not_built_is_refused_by_all_ranks(void **state)
{
    (void)state;
    zero_comm world;
    zero_model model;
    zero_engine e;
    assert_all(zero_comm_world(&world) == ZERO_OK);
    assert_all(zero_gpt2_describe(&test_standard.shape, &model) == ZERO_OK);
    zero_engine_spec spec = {.plan = {.model = &model,
                                      .stage = 2,
                                      .n_ranks = test_size,
                                      .micro_batch = 1,
                                      .seq = 12,
                                      .accumulation = 1,
                                      .bucket = 1000},
                             .backend = &zero_backend_cpu,
                             .eval_batches = 1};
    assert_all(zero_engine_init(&e, &spec, &world) == ZERO_ERR_UNSUPPORTED);
    assert_all(strstr(zero_last_error(), "--stage 2") != NULL);
    zero_engine_destroy(&e);
    zero_model_destroy(&model);
    zero_comm_destroy(&world);
}

/* ---- the learning rate ---- */

static void the_learning_rate_rises_evenly_and_falls_to_its_least(void **state)
{
    (void)state;
    const zero_learning_rate lr = {.peak = 4.0, .least = 0.5, .warmup = 10, .steps = 110};
    for (int64_t s = 0; s < 10; s++)
        assert_true(close_to(zero_learning_rate_at(&lr, s), 0.4 * (double)(s + 1), 1e-14));
    assert_true(zero_learning_rate_at(&lr, 10) == 4.0);
    for (int64_t s = 11; s < 110; s++) {
        double mirror = zero_learning_rate_at(&lr, 119 - s);
        assert_true(zero_learning_rate_at(&lr, s) < zero_learning_rate_at(&lr, s - 1));
        /* Half a cosine is point-symmetric about its middle. */
        assert_true(close_to(zero_learning_rate_at(&lr, s) + mirror, 4.5, 1e-14));
    }
    assert_true(zero_learning_rate_at(&lr, 109) == 0.5);
}

static void short_schedules_stay_between_least_and_peak(void **state)
{
    (void)state;
    for (int64_t steps = 1; steps <= 5; steps++)
        for (int64_t warmup = 0; warmup <= steps; warmup++) {
            zero_learning_rate lr = {3.0, 1.0, warmup, steps};
            double most = 0.0;
            for (int64_t s = 0; s < steps; s++) {
                double rate = zero_learning_rate_at(&lr, s);
                assert_true(rate > 0.0 && rate <= 3.0);
                assert_true(s < warmup || rate >= 1.0);
                most = fmax(most, rate);
            }
            assert_true(most == 3.0);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_hold_the_same_bits_and_padding_stays_zero),
        cmocka_unit_test(losses_and_norms_are_the_same_on_all_ranks),
        cmocka_unit_test(the_digest_does_not_depend_on_the_bucket_size),
        cmocka_unit_test(the_digest_does_not_depend_on_the_collectives),
        cmocka_unit_test(the_digest_does_not_depend_on_who_is_late),
        cmocka_unit_test(two_engines_in_one_process_do_not_disturb_each_other),
        cmocka_unit_test(evaluating_and_generating_do_not_change_the_training),
        cmocka_unit_test(microbatches_here_or_on_other_ranks_give_the_same_bits),
        cmocka_unit_test(losses_do_not_depend_on_how_the_global_batch_is_cut),
        cmocka_unit_test(a_rank_reads_neighbouring_microbatches_in_order),
        cmocka_unit_test(an_evaluation_reads_every_sample_of_step_0_once),
        cmocka_unit_test(every_step_moves_the_planned_bytes_and_nothing_else_does),
        cmocka_unit_test(dropout_repeats_itself_and_acts_in_training_only),
        cmocka_unit_test(a_gradient_that_is_not_finite_stops_all_ranks_and_changes_nothing),
        cmocka_unit_test(clipping_bounds_the_global_norm_and_spares_smaller_gradients),
        cmocka_unit_test(the_first_step_is_as_long_as_the_learning_rate),
        cmocka_unit_test(weight_decay_shrinks_matrices_and_spares_vectors),
        cmocka_unit_test(a_repeated_batch_is_learned_by_heart),
        cmocka_unit_test(generated_text_is_the_same_on_all_ranks_and_of_known_ids),
        cmocka_unit_test(generated_text_depends_on_seed_and_step_only),
        cmocka_unit_test(only_the_last_T_tokens_of_a_prompt_matter),
        cmocka_unit_test(a_model_that_learned_to_count_counts),
        cmocka_unit_test(a_stage_that_is_not_built_is_refused_by_all_ranks),
        cmocka_unit_test(the_learning_rate_rises_evenly_and_falls_to_its_least),
        cmocka_unit_test(short_schedules_stay_between_least_and_peak),
    };
    test_begin(&argc, &argv);
    return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
