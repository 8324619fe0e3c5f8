/* None of our code takes memory after set-up: the linker sends our objects' calls here. Shared
 * libraries (MPI, BLAS) are not counted. */
#include "support/engine_test.h"

#include <sys/mman.h>

static int calls; /* of all functions below */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **p, size_t alignment, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file,
                  off_t offset);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **p, size_t alignment, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file,
                  off_t offset);

void *__wrap_malloc(size_t bytes)
{
    calls++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    calls++;
    return __real_calloc(n, bytes);
}

void *__wrap_realloc(void *p, size_t bytes)
{
    calls++;
    return __real_realloc(p, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    calls++;
    return __real_aligned_alloc(alignment, bytes);
}

int __wrap_posix_memalign(void **p, size_t alignment, size_t bytes)
{
    calls++;
    return __real_posix_memalign(p, alignment, bytes);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    calls++;
    return __real_mmap(at, bytes, protection, flags, file, offset);
}

static void check_walks(const test_setup *setup)
{
    test_run run;
    zero_trace trace; /* recording takes nothing either */
    zero_trace_window window = {1, INT64_MAX};
    test_run_open(&run, setup, test_size);
    all_ok(zero_trace_init(&trace, &run.engine.schedule, &window));
    zero_engine_record(&run.engine, &trace);
    zero_source source = test_words(&run);
    zero_sampling how = {.temperature = 1.0, .known = run.model.vocab};
    int32_t text[8] = {1};
    double loss;

    calls = 0;
    zero_trace_step_begin(&trace, 1, 0.0);
    test_run_steps(&run, 0, 2);
    zero_trace_step_end(&trace, 1.0);
    assert_all(calls == 0);
    all_ok(zero_engine_evaluate(&run.engine, &source, &loss));
    assert_all(calls == 0);
    all_ok(test_generate_text(&run.engine, &how, 1, 7, text));
    assert_all(calls == 0);
    zero_engine_record(&run.engine, NULL);
    zero_trace_destroy(&trace);
    test_run_close(&run);
}

TEST(steps_evaluation_and_generation_allocate_nothing)
{
    static const zero_algorithm algorithms[] = {ZERO_ALGORITHM_P2P, ZERO_ALGORITHM_SHM,
                                                ZERO_ALGORITHM_HIER, ZERO_ALGORITHM_P2P};
    test_setup setup = test_standard;
    setup.plan.accumulation = 2;
    setup.plan.check_replicas = setup.plan.check_compute = 1;
    setup.plan.check_memory = true;
    setup.shape.dropout = 0.1f;
    setup.shape.seq = 140; /* two blocks of attention rows, two chunks of the head */
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        zero_algorithm collectives = algorithms[stage % 4];
        setup.plan.stage = stage;
        setup.plan.type = (zero_type)(stage % 3);
        setup.plan.recompute = stage > 1;
        setup.plan.collectives = collectives;
        setup.fake_nodes = collectives == ZERO_ALGORITHM_SHM ? 1 : test_size;
        setup.backend = &zero_backend_cpu;
        check_walks(&setup);
        setup.backend = &zero_backend_naive;
        setup.plan.partition = ZERO_PARTITION_OWNER;
        check_walks(&setup);
        setup.plan.partition = ZERO_PARTITION_SLICE;
        setup.plan.shard_ranks = 1; /* on two ranks: each is a replica */
        check_walks(&setup);
        setup.plan.shard_ranks = 0;
    }
}

static void greedy_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                          void *targets)
{
    void *volatile kept = malloc(1);
    free(kept);
    test_sample(arg, step, i, T, inputs, targets);
}

TEST(an_allocation_inside_a_step_would_be_seen)
{
    test_run run;
    test_run_open(&run, &test_standard, test_size);
    zero_source greedy = {.sample = greedy_sample, .arg = &run.setup};
    calls = 0;
    test_run_steps_on(&run, &greedy, 0, 1);
    assert_all(calls == test_standard.plan.micro_batch);
    test_run_close(&run);
}

/* The library's own objects are watched too, not only this file. */
TEST(the_librarys_allocations_are_seen)
{
    test_run run;
    calls = 0;
    test_run_open(&run, &test_standard, test_size);
    int of_set_up = calls;
    test_run_digest(&run);
    assert_all(of_set_up > 10 && calls > of_set_up);
    test_run_close(&run);
}
