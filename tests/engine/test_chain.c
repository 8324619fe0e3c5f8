/* A chain is two collectives, of which the second needs the result of the first. A poll or the wait
 * begins it, and all ranks get the sum. */
#include "support/test_world.h"

#include "base/fail.h"
#include "comm/check.h"
#include "engine/walk.h"

enum { PART = 64, ROUNDS = 5 };

typedef struct {
    zero_runner runner; /* of which the wait takes the status of polls */
    zero_collective ops[2];
    zero_runner_exchange chain;
    zero_chained flight;
    float *numbers; /* [size][PART] */
    void *staging;
} sum_job;

static zero_collective_spec spec_of(zero_collective_kind kind)
{
    return (zero_collective_spec){.kind = kind,
                                  .algorithm = ZERO_ALGORITHM_P2P,
                                  .type = ZERO_FP32,
                                  .result = ZERO_FP32,
                                  .count = PART,
                                  .stride = PART};
}

static void *aligned(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
    assert_non_null(memory);
    return memory;
}

static void open_job(sum_job *j)
{
    static const zero_collective_kind kinds[] = {ZERO_REDUCE_SCATTER, ZERO_ALL_GATHER};
    size_t staging = 0;
    *j = (sum_job){.runner.comm = &world, .chain.ops = j->ops};
    for (int k = 0; k < 2; k++) {
        zero_collective_spec spec = spec_of(kinds[k]);
        size_t bytes = zero_collective_staging(&spec, &world.layout);
        staging = bytes > staging ? bytes : staging;
        all_ok(zero_collective_init(&j->chain.ops[k], &world, &spec));
        j->chain.n++;
    }
    j->numbers = aligned((size_t)(PART * test_size) * sizeof *j->numbers);
    j->staging = aligned(staging);
}

static void close_job(sum_job *j)
{
    for (int k = 0; k < j->chain.n; k++) zero_collective_destroy(&j->chain.ops[k]);
    free(j->numbers);
    free(j->staging);
}

static void begin(sum_job *j, int round)
{
    for (int i = 0; i < PART * test_size; i++)
        j->numbers[i] = (float)(i + round) * (float)(1 + test_rank);
    j->flight = (zero_chained){.chain = &j->chain,
                               .own = (char *)(j->numbers + PART * test_rank),
                               .whole = (char *)j->numbers,
                               .staging = j->staging};
    all_ok(zero_chain_begin(&j->flight, j->numbers));
}

static void expect_sums(const sum_job *j, int round)
{
    float ranks = (float)(test_size * (test_size + 1) / 2);
    bool right = j->flight.chain == NULL;
    for (int i = 0; i < PART * test_size; i++)
        right = right && j->numbers[i] == (float)(i + round) * ranks;
    assert_all(right);
}

TEST(polls_begin_the_second_collective)
{
    sum_job j;
    open_job(&j);
    for (int round = 0; round < ROUNDS; round++) {
        begin(&j, round);
        assert_all(j.flight.begun == 1);
        while (j.flight.begun < 2) {
            assert_true(zero_collective_poll(&world) == ZERO_OK);
            assert_true(zero_chain_continue(&j.flight) == ZERO_OK);
        }
        all_ok(zero_chain_wait(&j.runner, &j.flight));
        expect_sums(&j, round);
    }
    close_job(&j);
}

/* Ranks that poll and ranks that do not begin the same collectives. */
TEST(the_wait_begins_it_else)
{
    sum_job j;
    open_job(&j);
    for (int round = 0; round < ROUNDS; round++) {
        begin(&j, round);
        for (int poll = 0; test_rank % 2 == round % 2 && poll < 100; poll++)
            assert_true(zero_chain_continue(&j.flight) == ZERO_OK);
        all_ok(zero_chain_wait(&j.runner, &j.flight));
        expect_sums(&j, round);
    }
    close_job(&j);
}

/* With a check ranks begin collectives where their programs say. */
TEST(with_a_check_only_the_wait_begins_it)
{
    sum_job j;
    open_job(&j);
    all_ok(zero_check_start(&world));
    begin(&j, 0);
    bool done = false;
    while (!done) assert_true(zero_collective_progress(&j.chain.ops[0], &done) == ZERO_OK);
    all_ok(zero_chain_continue(&j.flight));
    assert_all(j.flight.begun == 1);
    all_ok(zero_chain_wait(&j.runner, &j.flight));
    expect_sums(&j, 0);
    all_ok(zero_check_stop(&world));
    close_job(&j);
}
