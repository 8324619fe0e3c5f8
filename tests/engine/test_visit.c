/* Visits of states: how they end, and that UPDATE waits for them. What they hand out and write, digests,
 * checkpoints and the library show. */
#include "support/engine_test.h"

#include "base/range.h"

static test_setup setup_of(int stage, zero_type type, zero_partition_scheme partition)
{
    test_setup setup = test_standard;
    setup.plan.stage = stage;
    setup.plan.type = type;
    setup.plan.partition = partition;
    return setup;
}

typedef void check_run(test_run *run);

/* The check on trained models of all stages and partitions, in both widths. */
static void on_all(check_run *check)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int p = 0; p < ZERO_PARTITION_SCHEMES; p++) {
            zero_type type = (stage + p) % 2 == 0 ? ZERO_FP32 : ZERO_BF16;
            test_setup setup = setup_of(stage, type, (zero_partition_scheme)p);
            test_run run;
            test_run_open(&run, &setup, test_size);
            test_run_steps(&run, 0, 2);
            all_ok(zero_engine_settle(&run.engine));
            check(&run);
            test_run_close(&run);
        }
}

static zero_status refuse(void *arg, const zero_state_block *block)
{
    int *calls = arg;
    (void)block;
    ++*calls;
    return zero_fail(ZERO_ERR_FORMAT, "call %d is refused", *calls);
}

static void check_refusal(test_run *run)
{
    for (int g = 0; g < run->model.n_groups; g++) {
        zero_range held = zero_states_held(&run->engine.schedule, g);
        zero_range none = {held.begin, held.begin};
        int calls = 0;
        assert_true(zero_states_visit(&run->engine.runner, g, none, ZERO_VISIT_READ, refuse,
                                      &calls) == ZERO_OK);
        assert_int_equal(calls, 0);
        zero_status want = zero_range_is_empty(held) ? ZERO_OK : ZERO_ERR_FORMAT;
        assert_true(zero_states_visit(&run->engine.runner, g, held, ZERO_VISIT_READ, refuse,
                                      &calls) == want);
        assert_int_equal(calls, !zero_range_is_empty(held));
    }
}

TEST(an_empty_range_is_not_visited_and_a_failure_ends_a_visit)
{
    on_all(check_refusal);
}

/* Reads nothing, but has yet to read a group until it was asked about it so often. */
struct slow_reader {
    test_run *run;
    uint64_t *before; /* [n_groups] hashes of states */
    int *asked;       /* [n_groups] */
    bool has_changed;
};
#define ASKED 20

static uint64_t hash_states(test_run *run, int group)
{
    zero_runner *r = &run->engine.runner;
    zero_range held = zero_states_held(&run->engine.schedule, group);
    zero_state_block block;
    uint64_t hash = 0;
    assert_ok(zero_states_view_beside(r, group, held, NULL, &block));
    for (int p = 0; p < ZERO_STATES; p++)
        for (int64_t i = 0; i < zero_range_len(held); i++) {
            uint32_t bits;
            memcpy(&bits, &block.part[p][i], sizeof bits);
            hash = (hash ^ bits) * UINT64_C(0x100000001b3);
        }
    return hash;
}

static bool reads_slowly(const void *arg, int group)
{
    struct slow_reader *s = (struct slow_reader *)(uintptr_t)arg;
    if (s->asked[group] <= ASKED && s->before[group] != hash_states(s->run, group))
        s->has_changed = true;
    return ++s->asked[group] > ASKED;
}

static void check_waits(test_run *run)
{
    int n = run->model.n_groups;
    uint64_t before[16];
    int asked[16] = {0};
    struct slow_reader s = {.run = run, .before = before, .asked = asked};
    assert_true(n <= 16);
    for (int g = 0; g < n; g++) before[g] = hash_states(run, g);
    run->engine.runner.reader = (zero_states_reader){reads_slowly, &s};
    test_run_steps(run, 2, 1);
    all_ok(zero_engine_settle(&run->engine));
    run->engine.runner.reader = (zero_states_reader){0};
    for (int g = 0; g < n; g++) {
        zero_range held = zero_states_held(&run->engine.schedule, g);
        assert_all(asked[g] > ASKED || zero_range_is_empty(held));
        assert_all(zero_range_is_empty(held) || before[g] != hash_states(run, g));
    }
    assert_all(!s.has_changed && run->engine.runner.profile.held > 0.0);
}

TEST(an_update_waits_until_what_it_changes_was_read)
{
    on_all(check_waits);
}
