

#include <math.h>

#include "support/laws.h"

#include "base/fail.h"
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
static zero_traced_span flights[RANKS][3] = {
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

static json_t *breakdown_of(const zero_traced *of)
{
    json_t *b;
    assert_ok(zero_breakdown_of(of, &b));
    return b;
}

TEST(kinds_and_idle_add_up_to_each_step)
{
    json_t *b = breakdown_of(&trace);
    LAWS(b, "count(steps) == 5",
         "all(steps, abs(step_seconds - compute_seconds - communication_seconds - "
         "disk_seconds - other_seconds - idle_seconds) < 0.5e-9)");
    json_decref(b);
}

TEST(steps_are_in_order_of_steps_and_ranks)
{
    json_t *b = breakdown_of(&trace);
    LAWS(b, "steps/0/step == 4 && steps/0/rank == 0",
         "steps/1/step == 4 && steps/1/rank == 1", "steps/2/step == 4 && steps/2/rank == 7",
         "steps/3/step == 5 && steps/3/rank == 0", "steps/4/step == 5 && steps/4/rank == 1",
         "round(1e9 * steps/0/step_seconds) == 100",
         "round(1e9 * steps/0/idle_seconds) == 10",
         "round(1e9 * steps/0/communication_seconds) == 30",
         "round(1e9 * steps/4/idle_seconds) == 10",
         "round(1e9 * steps/4/disk_seconds) == 30",
         "round(1e9 * sums/0/step_seconds) == 150",
         "round(1e9 * sums/0/compute_seconds) == 110");
    json_decref(b);
}

TEST(the_last_rank_of_a_collective_is_named_with_its_delay)
{
    json_t *b = breakdown_of(&trace);
    LAWS(b, "count(collectives) == 3",
         "collectives/0/ranks == 3 && collectives/0/last_rank == 7",
         "round(1e9 * collectives/0/delay_seconds) == 30",
         "round(1e9 * collectives/0/spread_seconds) == 40",
         "round(1e9 * collectives/0/seconds) == 81",
         "collectives/1/ranks == 2 && collectives/1/last_rank == 0",
         "round(1e9 * collectives/1/delay_seconds) == 10",
         "collectives/2/ranks == 1 && collectives/2/delay_seconds == 0");
    json_decref(b);
}

/* Two TP groups take the same steps: their collectives have one sequence and one name. */
TEST(groups_count_for_themselves)
{
    static zero_traced_span of[4] = {
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
    json_t *b = breakdown_of(&two_groups);
    LAWS(b, "count(collectives) == 2",
         "all(collectives, first_rank == 2 * index && ranks == 2 && last_rank == 2 * index "
         "+ 1)",
         "round(1e9 * collectives/0/delay_seconds) == 2",
         "round(1e9 * collectives/1/delay_seconds) == 7", "late/0/began_last == 0",
         "round(1e9 * late/1/delay_seconds) == 2", "round(1e9 * late/3/delay_seconds) == 7",
         "round(1e9 * latest/0/delay_seconds) == 7");
    json_decref(b);
}

/* Times in a file may be any up to 10^9 s, and there may be many. */
TEST(sums_of_delays_do_not_overflow)
{
    enum { MANY = 20 };
    const int64_t late = INT64_C(1000000000000000000);
    zero_traced_span early[MANY], last[MANY];
    for (int k = 0; k < MANY; k++) {
        early[k] = (zero_traced_span){.name = "reduce", .step = 1, .sequence = k};
        last[k] = early[k];
        last[k].begin = last[k].end = late;
    }
    zero_traced_rank two[2] = {{.rank = 0, .flights = early, .n_flights = MANY},
                               {.rank = 1, .flights = last, .n_flights = MANY}};
    const zero_traced far = {
        .path = "t.json", .world = 2, .nodes = 1, .ranks = two, .n_ranks = 2};
    json_t *b = breakdown_of(&far);
    assert_true(zero_fact_number(b, "late/1/delay_seconds") == 1e-9 * (double)INT64_MAX);
    json_decref(b);
}

TEST(delays_are_added_up_for_each_rank)
{
    json_t *b = breakdown_of(&trace);
    LAWS(b, "count(late) == 3", "late/0/collectives == 2 && late/0/began_last == 1",
         "late/1/collectives == 2 && late/1/began_last == 0",
         "late/2/collectives == 1 && late/2/began_last == 1",
         "round(1e9 * late/0/delay_seconds) == 10",
         "round(1e9 * late/1/delay_seconds) == 0",
         "round(1e9 * late/2/delay_seconds) == 30");
    json_decref(b);
}
