/* The watchdog's text: which rank is suspected, given where all ranks are. */

#include "support/test.h"

#include "comm/operation.h"
#include "comm/verdict.h"

#define MOST 8 /* ranks */

typedef struct {
    zero_standing all[MOST];
    zero_division divided;
    zero_sentence text;
} job;

/* The rank has begun as many operations as the test says, by zero_family_part, and waits for the last
 * one of a part. */
static void stand_in(job *j, int rank, zero_family_part part,
                     const int begun[ZERO_FAMILY_PARTS])
{
    zero_member member = zero_member_of(part, &j->divided, rank);
    if (part != ZERO_WHOLE) member.first = -1;
    zero_standing at = {.state = ZERO_WATCH_WAITING,
                        .sequence = begun[part] - 1,
                        .kind = part == ZERO_WHOLE ? ZERO_OPERATION_VOTE : ZERO_ALL_GATHER,
                        .unit = part == ZERO_WHOLE ? ZERO_NO_UNIT : 10 * (int)part,
                        .work = 17,
                        .member = member,
                        .seconds = 3.0};
    for (int p = 0; p < ZERO_FAMILY_PARTS; p++) at.reached += at.begun[p] = begun[p];
    j->all[rank] = at;
}

/* Without shard groups. */
static void stand(job *j, int rank, zero_family_part part, int in_all, int in_tp,
                  int in_data)
{
    stand_in(j, rank, part, (int[ZERO_FAMILY_PARTS]){in_all, in_tp, in_data});
}

/* Without TP groups. */
static void stand_hybrid(job *j, int rank, zero_family_part part, int in_all, int in_shard,
                         int in_replicas)
{
    stand_in(j, rank, part, (int[ZERO_FAMILY_PARTS]){in_all, 0, 0, in_shard, in_replicas});
}

static void judge(job *j)
{
    int class_of[MOST];
    zero_stalled_job all = {.all = j->all,
                            .size = j->divided.size,
                            .work = "step",
                            .stalled = 2.5,
                            .class_of = class_of};
    for (int p = ZERO_TP_GROUP; p < ZERO_FAMILY_PARTS; p++)
        if (zero_division_has(&j->divided, (zero_family_part)p))
            all.parts[all.n_parts++] = zero_member_of((zero_family_part)p, &j->divided, 0);
    j->text = (zero_sentence){.used = 0};
    zero_verdict_write(&all, &j->text);
}

static void expect(const job *j, const char *suspects, const char *state)
{
    char start[256];
    snprintf(start, sizeof start,
             "no progress for 2.5 s, longer than %s allows; %s. State: ",
             j->all[0].n_groups > 0 ? "the watchdog" : "--watchdog", suspects);
    bool right = strncmp(j->text.chars, start, strlen(start)) == 0 &&
                 strstr(j->text.chars, state) != NULL;
    if (!right) print_error("expected: %s%s\nfound: %s\n", start, state, j->text.chars);
    assert_true(right);
}

TEST(a_rank_that_skips_a_join_is_named)
{
    job j = {.divided = {4, 2, 2, 1}};
    stand(&j, 0, ZERO_DATA_GROUP, 0, 4, 4);
    stand(&j, 1, ZERO_WHOLE, 1, 4, 4);
    stand(&j, 2, ZERO_TP_GROUP, 0, 4, 3);
    stand(&j, 3, ZERO_WHOLE, 1, 3, 4);
    judge(&j);
    expect(
        &j, "rank 3 left out an operation",
        "rank 2: in step 17, waiting for all-gather 3 of JOIN 10 in the TP group of ranks "
        "2-3 (3 s)");
    expect(&j, "rank 3 left out an operation",
           "rank 0: in step 17, waiting for all-gather 3 of group 20 in the ZeRO group of "
           "ranks 0,2 (3 s)");
}

TEST(a_rank_that_skips_an_operation_of_its_zero_group_is_named)
{
    job j = {.divided = {6, 2, 3, 1}};
    for (int r = 0; r < 6; r++) stand(&j, r, ZERO_WHOLE, 1, 4, 4);
    stand(&j, 1, ZERO_DATA_GROUP, 0, 4, 4);
    stand(&j, 3, ZERO_DATA_GROUP, 0, 4, 4);
    stand(&j, 5, ZERO_WHOLE, 1, 4, 3);
    judge(&j);
    expect(
        &j, "rank 5 left out an operation",
        "ranks 1,3: in step 17, waiting for all-gather 3 of group 20 in the ZeRO group of "
        "ranks 1,3,5 (3 s)");
}

TEST(only_ranks_that_wait_for_no_other_are_behind)
{
    job j = {.divided = {6, 3, 2, 1}};
    for (int r = 0; r < 6; r++) stand(&j, r, ZERO_TP_GROUP, 1, 4, 4);
    for (int r = 0; r < 2; r++) stand(&j, r, ZERO_DATA_GROUP, 1, 4, 5);
    stand(&j, 2, ZERO_TP_GROUP, 1, 4, 4);
    stand(&j, 5, ZERO_TP_GROUP, 1, 3, 4);
    j.all[5].state = ZERO_WATCH_COMPUTING;
    judge(&j);
    expect(&j, "rank 5 is behind",
           "ranks 0-1: in step 17, waiting for all-gather 4 of group 20 "
           "in their ZeRO groups (3 s)");
    expect(&j, "rank 5 is behind",
           "ranks 2-4: in step 17, waiting for all-gather 3 of JOIN 10 "
           "in their TP groups (3 s)");
    j.all[5] = (zero_standing){.state = ZERO_WATCH_SILENT};
    judge(&j);
    expect(&j, "rank 5 does not answer", "rank 5: no answer");
}

/* Part 0 alone may compare or write something: no rank has left out an operation then. */
TEST(zero_groups_may_begin_more_than_others)
{
    job j = {.divided = {4, 2, 2, 1}};
    stand(&j, 0, ZERO_WHOLE, 2, 4, 9);
    stand(&j, 1, ZERO_WHOLE, 3, 4, 4);
    stand(&j, 2, ZERO_WHOLE, 2, 4, 9);
    stand(&j, 3, ZERO_WHOLE, 3, 4, 4);
    judge(&j);
    assert_null(strstr(j.text.chars, "left out"));
}

/* ---- shard groups and replica groups ---- */

/* Rank 7 goes on to the sum over replicas, which adds what it has, and to a vote. */
TEST(a_rank_that_skips_a_reduction_is_named)
{
    job j = {.divided = {8, 1, 2, 1}};
    for (int r = 0; r < 6; r += 2) stand_hybrid(&j, r, ZERO_REPLICA_GROUP, 0, 4, 4);
    for (int r = 1; r < 6; r += 2) stand_hybrid(&j, r, ZERO_WHOLE, 1, 4, 4);
    stand_hybrid(&j, 6, ZERO_SHARD_GROUP, 0, 4, 3);
    stand_hybrid(&j, 7, ZERO_WHOLE, 1, 3, 4);
    judge(&j);
    expect(&j, "rank 7 left out an operation",
           "ranks 0,2,4: in step 17, waiting for all-gather 3 of group 40 in the replica "
           "group of ranks 0,2,4,6 (3 s)");
    expect(&j, "rank 7 left out an operation",
           "rank 6: in step 17, waiting for all-gather 3 of group 30 in the shard group of "
           "ranks 6-7 (3 s)");
}

TEST(a_rank_that_skips_a_sum_over_replicas_is_named)
{
    job j = {.divided = {6, 1, 2, 1}};
    for (int r = 0; r < 6; r += 2) stand_hybrid(&j, r, ZERO_WHOLE, 1, 4, 4);
    for (int r = 1; r < 4; r += 2) stand_hybrid(&j, r, ZERO_REPLICA_GROUP, 0, 4, 4);
    stand_hybrid(&j, 5, ZERO_WHOLE, 1, 4, 3);
    judge(&j);
    expect(&j, "rank 5 left out an operation",
           "ranks 1,3: in step 17, waiting for all-gather 3 of group 40 in the replica "
           "group of ranks 1,3,5 (3 s)");
}

/* In each step: TP group, shard group, replica group, ZeRO group, all ranks. */
TEST(a_rank_of_four_groups_that_skips_a_reduction_is_named)
{
    job j = {.divided = {8, 2, 2, 1}};
    const int done[ZERO_FAMILY_PARTS] = {1, 4, 4, 4, 4},
              skips[ZERO_FAMILY_PARTS] = {0, 4, 4, 3, 4},
              waits[ZERO_FAMILY_PARTS] = {0, 4, 3, 4, 3};
    for (int r = 0; r < 8; r += 2) stand_in(&j, r, ZERO_WHOLE, done);
    stand_in(&j, 1, ZERO_REPLICA_GROUP, (int[ZERO_FAMILY_PARTS]){0, 4, 3, 4, 4});
    stand_in(&j, 3, ZERO_DATA_GROUP, (int[ZERO_FAMILY_PARTS]){0, 4, 4, 4, 4});
    stand_in(&j, 5, ZERO_SHARD_GROUP, waits);
    stand_in(&j, 7, ZERO_DATA_GROUP, skips);
    judge(&j);
    expect(&j, "rank 7 left out an operation",
           "rank 5: in step 17, waiting for all-gather 3 of group 30 in the shard group of "
           "ranks 5,7 (3 s)");
    expect(&j, "rank 7 left out an operation",
           "rank 1: in step 17, waiting for all-gather 3 of group 40 in the replica group "
           "of ranks 1,5 (3 s)");
}

TEST(a_late_rank_of_a_replica_group_is_behind)
{
    job j = {.divided = {6, 1, 2, 1}};
    for (int r = 0; r < 6; r += 2) stand_hybrid(&j, r, ZERO_SHARD_GROUP, 0, 5, 4);
    for (int r = 1; r < 6; r += 2) stand_hybrid(&j, r, ZERO_REPLICA_GROUP, 0, 4, 4);
    stand_hybrid(&j, 3, ZERO_REPLICA_GROUP, 0, 4, 3);
    j.all[3].state = ZERO_WATCH_COMPUTING;
    judge(&j);
    expect(&j, "rank 3 is behind",
           "ranks 0,2,4: in step 17, waiting for all-gather 4 of group 30 in their shard "
           "groups (3 s)");
}

/* Replica 0 alone writes a checkpoint: no rank has left out an operation then. */
TEST(shard_groups_may_begin_more_than_others)
{
    job j = {.divided = {8, 2, 2, 1}};
    for (int r = 0; r < 8; r++)
        stand_in(&j, r, ZERO_WHOLE,
                 r < 4 ? (int[ZERO_FAMILY_PARTS]){2, 4, 4, 9, 4}
                       : (int[ZERO_FAMILY_PARTS]){3, 4, 4, 4, 4});
    judge(&j);
    assert_null(strstr(j.text.chars, "left out"));
}

TEST(a_group_that_was_never_divided_reads_as_ever)
{
    job j = {.divided = {4, 1, 4, 1}};
    for (int r = 0; r < 4; r++) {
        stand(&j, r, ZERO_WHOLE, 7, 0, 0);
        j.all[r].unit = 3;
        j.all[r].kind = ZERO_REDUCE_SCATTER;
    }
    stand(&j, 1, ZERO_WHOLE, 7, 0, 0);
    judge(&j);
    expect(&j, "rank 1 is elsewhere",
           "ranks 0,2-3: in step 17, waiting for reduce-scatter 6 of "
           "group 3 (3 s); rank 1: in step 17, waiting for vote 6");
    j.all[2].reached = 5;
    judge(&j);
    expect(&j, "rank 1 is elsewhere, rank 2 is behind", "ranks 0,3: in step 17");
}

/* ---- works: groups of the program's choice ---- */

/* The rank has begun so many operations of two of its groups. It waits for operation `number` of
 * the first, which it has then begun, or, with a number below 0, computes. */
static void stand_among(job *j, int rank, int64_t number, const char *first, int in_first,
                        const char *second, int in_second)
{
    zero_standing at = {.state = number < 0 ? ZERO_WATCH_COMPUTING : ZERO_WATCH_WAITING,
                        .sequence = number < 0 ? in_first - 1 : number,
                        .kind = ZERO_ALL_REDUCE,
                        .unit = ZERO_NO_UNIT,
                        .work = -1,
                        .count = 100,
                        .seconds = 3.0,
                        .n_groups = 2};
    snprintf(at.group, sizeof at.group, "%s", first);
    at.groups[0] = (zero_group_count){zero_operation_group_hash(first), (uint32_t)in_first};
    at.groups[1] =
        (zero_group_count){zero_operation_group_hash(second), (uint32_t)in_second};
    j->all[rank] = at;
}

/* A mesh of 2 x 2: all others wait for rank 3, or for one that does. */
TEST(the_rank_that_waits_for_nobody_is_behind)
{
    job j = {.divided = {4, 1, 4, 1}};
    stand_among(&j, 0, 7, "shard 0", 8, "replicas 0", 7);
    stand_among(&j, 1, 6, "replicas 1", 7, "shard 0", 7);
    stand_among(&j, 2, 7, "shard 1", 8, "replicas 0", 7);
    stand_among(&j, 3, -1, "shard 1", 7, "replicas 1", 6);
    snprintf(j.all[3].place, sizeof j.all[3].place, "load_batch, train.py:57");
    judge(&j);
    expect(&j, "rank 3 is behind",
           "rank 3: computing after all-reduce 6 of 100 fp32 in group 'shard 1' (3 s), at "
           "load_batch, train.py:57");
    expect(&j, "rank 3 is behind",
           "rank 1: waiting for all-reduce 6 of 100 fp32 in group 'replicas 1'");
    j.all[3] = (zero_standing){.state = ZERO_WATCH_SILENT};
    judge(&j);
    expect(&j, "rank 3 does not answer", "rank 3: no answer");
}

/* Nobody is behind in numbers; of two ranks the higher one is named. */
TEST(a_rank_in_another_operation_than_most_is_elsewhere)
{
    job j = {.divided = {3, 1, 3, 1}};
    for (int r = 0; r < 3; r++) stand_among(&j, r, 4, "world", 5, "mesh", 0);
    j.all[1].count = 50;
    judge(&j);
    expect(&j, "rank 1 is elsewhere", "rank 1: waiting for all-reduce 4 of 50 fp32");
    j.divided = (zero_division){2, 1, 2, 1};
    judge(&j);
    expect(&j, "rank 1 is elsewhere", "rank 0: waiting for all-reduce 4 of 100 fp32");
}

TEST(ranks_that_wait_in_a_circle_are_named)
{
    job j = {.divided = {3, 1, 3, 1}};
    stand_among(&j, 0, 2, "a", 3, "b", 5);
    stand_among(&j, 1, 5, "b", 6, "a", 2);
    stand_among(&j, 2, 1, "c", 2, "d", 0);
    judge(&j);
    expect(&j,
           "rank 0 waits while others wait for it, rank 1 waits while others wait for it",
           "in group 'a'");
}

/* Ranks that are not in a group are not awaited there. */
TEST(a_rank_that_computes_while_others_open_a_group_is_behind)
{
    job j = {.divided = {3, 1, 3, 1}};
    for (int r = 0; r < 3; r++) stand_among(&j, r, r == 1 ? -1 : 0, "mesh", 0, "world", 2);
    for (int r = 0; r < 3; r += 2) j.all[r].kind = ZERO_OPERATION_OPENING;
    judge(&j);
    expect(&j, "rank 1 is behind", "ranks 0,2: waiting for opening");
    for (int r = 0; r < 3; r++) stand_among(&j, r, r == 1 ? -1 : 3, "pair", 4, "world", 2);
    j.all[1].groups[0].name = zero_operation_group_hash("another");
    judge(&j);
    expect(&j, "no rank is behind, so a message is missing", "ranks 0,2: waiting for");
}
