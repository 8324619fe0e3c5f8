/* Visits of states: which elements they hand out, and what a visitor writes. */
#include "support/engine_test.h"

#include "base/range.h"

static bool is_same_range(zero_range a, zero_range b)
{
    return a.begin == b.begin && a.end == b.end;
}

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

/* ---- reading ---- */

/* Blocks that are to tile a range. */
struct seen {
    zero_range range;
    int64_t next;   /* the element that comes next */
    int64_t first;  /* held by this rank */
    float *copy[3]; /* [length of the range] */
};

static zero_status see(void *arg, const zero_state_block *block)
{
    struct seen *s = arg;
    const float *arrays[] = {block->part[0], block->part[1], block->part[2]};
    int64_t len = zero_range_len(block->range), at = block->range.begin - s->range.begin;
    assert_true(block->range.begin == s->next && len > 0);
    assert_true(block->range.end == s->range.end ||
                (block->range.end - s->first) % ZERO_OFFLOAD_BLOCK == 0);
    for (int a = 0; a < 3; a++)
        memcpy(s->copy[a] + at, arrays[a], (size_t)len * sizeof *arrays[a]);
    s->next = block->range.end;
    return ZERO_OK;
}

static void check_range(test_run *run, int group, zero_range range)
{
    size_t bytes = (size_t)zero_range_len(range) * sizeof(float);
    struct seen s = {
        range, range.begin, zero_states_held(&run->engine.schedule, group).begin, {0}};
    float *room = malloc(3 * bytes + 1);
    zero_state_block view;
    for (int a = 0; a < 3; a++) s.copy[a] = malloc(bytes + 1);
    assert_true(zero_states_visit(&run->engine.runner, group, range, ZERO_VISIT_READ, see,
                                  &s) == ZERO_OK);
    assert_true(s.next == range.end);
    assert_true(zero_states_view(&run->engine.runner, group, range, room, &view) ==
                ZERO_OK);
    assert_true(is_same_range(view.range, range));
    assert_memory_equal(view.master, s.copy[0], bytes);
    assert_memory_equal(view.part[1], s.copy[1], bytes);
    assert_memory_equal(view.part[2], s.copy[2], bytes);
    for (int a = 0; a < 3; a++) free(s.copy[a]);
    free(room);
}

/* All, the ends, and single elements. */
static void check_ranges(test_run *run)
{
    for (int g = 0; g < run->model.n_groups; g++) {
        zero_range held = zero_states_held(&run->engine.schedule, g);
        int64_t n = zero_range_len(held);
        if (n == 0) continue;
        check_range(run, g, held);
        check_range(run, g, (zero_range){held.begin, held.begin + 1});
        check_range(run, g, (zero_range){held.end - 1, held.end});
        check_range(run, g, (zero_range){held.begin + n / 3, held.end - n / 3});
    }
}

TEST(a_visit_hands_out_each_element_of_its_range_once_and_in_order)
{
    on_all(check_ranges);
}

/* ---- what is held ---- */

/* Stage 0 holds whole groups on each rank, the others hold each element once. */
static void check_held(test_run *run)
{
    for (int g = 0; g < run->model.n_groups; g++) {
        zero_range held = zero_states_held(&run->engine.schedule, g);
        int64_t sum = zero_range_len(held), n = run->model.groups[g].n_params;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        assert_all(sum == (run->setup.plan.stage == 0 ? n * test_size : n));
    }
}

TEST(ranks_hold_all_or_their_pieces)
{
    on_all(check_held);
}

/* ---- writing ---- */

static zero_status negate(void *arg, const zero_state_block *block)
{
    (void)arg;
    for (int64_t i = 0; i < zero_range_len(block->range); i++)
        block->master[i] = -block->master[i];
    return ZERO_OK;
}

static void negate_all(test_run *run)
{
    for (int g = 0; g < run->model.n_groups; g++)
        assert_true(zero_states_visit(&run->engine.runner, g,
                                      zero_states_held(&run->engine.schedule, g),
                                      ZERO_VISIT_CHANGE, negate, NULL) == ZERO_OK);
    all_ok(zero_engine_publish(&run->engine));
}

static void check_writing(test_run *run)
{
    test_digest before = test_run_digest(run);
    negate_all(run);
    assert_all(!test_same(before, test_run_digest(run)));
    negate_all(run);
    assert_all(test_same(before, test_run_digest(run)));
}

TEST(what_a_visitor_writes_stays)
{
    on_all(check_writing);
}

/* ---- ends ---- */

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
/* ---- read beside a step ---- */

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
