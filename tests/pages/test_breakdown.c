

#include "support/test.h"

#include "pages/breakdown.h"

enum { A, B, C, RANKS };

/* Two steps of three ranks. Rank 2 is the last to begin the first collective, ranks 0 and 1 share
 * the second, and nobody shares the third. */
static zero_traced_span spans[RANKS][3] = {
    {{.begin = 0, .end = 60, .kind = ZERO_TRACED_COMPUTE, .step = 4},
     {.begin = 70, .end = 100, .kind = ZERO_TRACED_COMMUNICATION, .step = 4},
     {.begin = 100, .end = 150, .kind = ZERO_TRACED_COMPUTE, .step = 5}},
    {{.begin = 0, .end = 100, .kind = ZERO_TRACED_OTHER, .step = 4},
     {.begin = 100, .end = 130, .kind = ZERO_TRACED_DISK, .step = 5},
     {.begin = 140, .end = 150, .kind = ZERO_TRACED_COMPUTE, .step = 5}},
    {{.begin = 5, .end = 100, .kind = ZERO_TRACED_COMPUTE, .step = 4}},
};
static zero_traced_flight flights[RANKS][3] = {
    {{.begin = 10, .end = 90, .name = "gather", .step = 4, .sequence = 1},
     {.begin = 40, .end = 95, .name = "reduce", .step = 4, .sequence = 2},
     {.begin = 110, .end = 120, .name = "gather", .step = 5, .sequence = 1}},
    {{.begin = 20, .end = 90, .name = "gather", .step = 4, .sequence = 1},
     {.begin = 30, .end = 95, .name = "reduce", .step = 4, .sequence = 2}},
    {{.begin = 50, .end = 91, .name = "gather", .step = 4, .sequence = 1}},
};
static zero_traced_rank ranks[RANKS] = {
    {.rank = 0, .spans = spans[A], .n_spans = 3, .flights = flights[A], .n_flights = 3},
    {.rank = 1, .spans = spans[B], .n_spans = 3, .flights = flights[B], .n_flights = 2},
    {.rank = 7, .spans = spans[C], .n_spans = 1, .flights = flights[C], .n_flights = 1},
};
static const zero_traced trace = {
    .path = "t.json", .world = 8, .nodes = 1, .ranks = ranks, .n_ranks = RANKS};

static zero_breakdown breakdown(void)
{
    zero_breakdown b;
    assert_ok(zero_breakdown_of(&trace, &b));
    return b;
}

TEST(kinds_and_idle_add_up_to_each_step)
{
    zero_breakdown b = breakdown();
    assert_int_equal(b.n_steps, 5);
    for (int64_t i = 0; i < b.n_steps; i++) {
        int64_t sum = b.steps[i].idle;
        for (int k = 0; k < ZERO_TRACED_KINDS; k++) sum += b.steps[i].of_kind[k];
        assert_int_equal(sum, b.steps[i].total);
    }
    zero_breakdown_destroy(&b);
}

TEST(steps_are_in_order_of_steps_and_ranks)
{
    static const int64_t wanted[][2] = {{4, 0}, {4, 1}, {4, 7}, {5, 0}, {5, 1}};
    zero_breakdown b = breakdown();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(b.steps[i].step, wanted[i][0]);
        assert_int_equal(b.steps[i].rank, wanted[i][1]);
    }
    assert_int_equal(b.steps[0].total, 100);
    assert_int_equal(b.steps[0].idle, 10);
    assert_int_equal(b.steps[0].of_kind[ZERO_TRACED_COMMUNICATION], 30);
    assert_int_equal(b.steps[4].idle, 10);
    assert_int_equal(b.steps[4].of_kind[ZERO_TRACED_DISK], 30);
    assert_int_equal(b.sums[0].total, 150);
    assert_int_equal(b.sums[0].of_kind[ZERO_TRACED_COMPUTE], 110);
    zero_breakdown_destroy(&b);
}

TEST(the_last_rank_of_a_collective_is_named_with_its_delay)
{
    zero_breakdown b = breakdown();
    assert_int_equal(b.n_collectives, 3);
    const zero_breakdown_collective *c = b.collectives;
    assert_int_equal(c[0].n_ranks, 3);
    assert_int_equal(c[0].last, 7);
    assert_int_equal(c[0].delay, 30);
    assert_int_equal(c[0].spread, 40);
    assert_int_equal(c[0].duration, 81);
    assert_int_equal(c[1].n_ranks, 2);
    assert_int_equal(c[1].last, 0);
    assert_int_equal(c[1].delay, 10);
    assert_int_equal(c[2].n_ranks, 1);
    assert_int_equal(c[2].delay, 0);
    zero_breakdown_destroy(&b);
}

/* Two TP groups take the same steps: their collectives have one sequence and one name. */
TEST(groups_count_for_themselves)
{
    static zero_traced_flight of[4] = {
        {.begin = 10, .end = 30, .name = "reduce", .step = 1, .sequence = 2, .first = 0},
        {.begin = 12, .end = 30, .name = "reduce", .step = 1, .sequence = 2, .first = 0},
        {.begin = 50, .end = 70, .name = "reduce", .step = 1, .sequence = 2, .first = 2},
        {.begin = 57, .end = 70, .name = "reduce", .step = 1, .sequence = 2, .first = 2},
    };
    zero_traced_rank four[4];
    for (int r = 0; r < 4; r++)
        four[r] = (zero_traced_rank){.rank = r, .flights = &of[r], .n_flights = 1};
    const zero_traced two_groups = {
        .path = "t.json", .world = 4, .nodes = 1, .ranks = four, .n_ranks = 4};
    zero_breakdown b;
    assert_ok(zero_breakdown_of(&two_groups, &b));
    assert_int_equal(b.n_collectives, 2);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(b.collectives[k].first, 2 * k);
        assert_int_equal(b.collectives[k].n_ranks, 2);
        assert_int_equal(b.collectives[k].last, 2 * k + 1);
        assert_int_equal(b.collectives[k].delay, k == 0 ? 2 : 7);
    }
    assert_int_equal(b.late[0].last, 0);
    assert_int_equal(b.late[1].delay, 2);
    assert_int_equal(b.late[3].delay, 7);
    zero_breakdown_destroy(&b);
}

/* Times in a file may be any up to 10^9 s, and there may be many. */
TEST(sums_of_delays_do_not_overflow)
{
    enum { MANY = 20 };
    (void)state;
    const int64_t late = INT64_C(1000000000000000000);
    zero_traced_flight early[MANY], last[MANY];
    for (int k = 0; k < MANY; k++) {
        early[k] = (zero_traced_flight){.name = "reduce", .step = 1, .sequence = k};
        last[k] = early[k];
        last[k].begin = last[k].end = late;
    }
    zero_traced_rank two[2] = {{.rank = 0, .flights = early, .n_flights = MANY},
                               {.rank = 1, .flights = last, .n_flights = MANY}};
    const zero_traced far = {
        .path = "t.json", .world = 2, .nodes = 1, .ranks = two, .n_ranks = 2};
    zero_breakdown b;
    assert_ok(zero_breakdown_of(&far, &b));
    assert_true(b.late[1].delay == INT64_MAX);
    zero_breakdown_destroy(&b);
}

TEST(delays_are_added_up_for_each_rank)
{
    static const int64_t wanted[RANKS][3] = {{2, 1, 10}, {2, 0, 0}, {1, 1, 30}};
    zero_breakdown b = breakdown();
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(b.late[r].joined, wanted[r][0]);
        assert_int_equal(b.late[r].last, wanted[r][1]);
        assert_int_equal(b.late[r].delay, wanted[r][2]);
    }
    zero_breakdown_destroy(&b);
}
