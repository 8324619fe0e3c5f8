/* The rounds in which spans travel, for all ranks of groups of many sizes, without MPI. */

#include "support/test.h"

#include "lists/small.h"

#define MOST 260

/* A rank has the values of ranks begin .. end - 1. */
typedef struct {
    int begin, end;
} row;

static row join(row mine, row theirs)
{
    const row *lower = mine.begin < theirs.begin ? &mine : &theirs;
    const row *upper = lower == &mine ? &theirs : &mine;
    assert_int_equal(lower->end, upper->begin);
    return (row){lower->begin, upper->end};
}

static void walk_round(int size, int k, const row *before, row *after, zero_traffic *sum)
{
    for (int r = 0; r < size; r++) {
        zero_small_round mine = zero_small_round_of(size, r, k), theirs;
        after[r] = before[r];
        if (!mine.sends && !mine.receives) continue;
        assert_true(mine.partner >= 0 && mine.partner < size && mine.partner != r);
        theirs = zero_small_round_of(size, mine.partner, k);
        assert_int_equal(theirs.partner, r);
        assert_true(mine.sends == theirs.receives && mine.receives == theirs.sends);
        if (mine.receives)
            after[r] = mine.is_result ? before[mine.partner]
                                      : join(before[r], before[mine.partner]);
        sum[r].messages_sent[ZERO_INSIDE] += mine.sends;
        sum[r].messages_received[ZERO_INSIDE] += mine.receives;
    }
}

static void check_rounds(int size)
{
    static row has[2][MOST];
    zero_traffic sum[MOST];
    zero_layout layout;
    memset(sum, 0, sizeof sum);
    for (int r = 0; r < size; r++) has[0][r] = (row){r, r + 1};
    int rounds = zero_small_rounds(size);
    for (int k = 0; k < rounds; k++) walk_round(size, k, has[k % 2], has[(k + 1) % 2], sum);
    assert_ok(zero_layout_init_blocks(&layout, size, 1));
    for (int r = 0; r < size; r++) {
        zero_traffic planned = {0};
        assert_int_equal(has[rounds % 2][r].begin, 0);
        assert_int_equal(has[rounds % 2][r].end, size);
        zero_small_add_merged(&planned, &layout, r, ZERO_SMALL_SPANS, 0);
        assert_memory_equal(&planned, &sum[r], sizeof planned);
    }
    zero_layout_destroy(&layout);
}

TEST(each_rank_ends_with_the_row_of_all_ranks)
{
    for (int size = 1; size <= MOST; size++) check_rounds(size);
}

/* log2 N rounds, and two more unless N is a power of two. */
TEST(a_rank_sends_few_messages)
{
    zero_layout layout;
    static const struct {
        int size, rank, sent;
    } cases[] = {{1, 0, 0}, {2, 1, 1}, {6, 0, 3}, {6, 1, 1}, {6, 5, 2}, {1024, 77, 10}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        zero_traffic t = {0};
        assert_ok(zero_layout_init_blocks(&layout, cases[i].size, 1));
        zero_small_add_merged(&t, &layout, cases[i].rank, 3, 100);
        assert_int_equal(zero_traffic_total(&t).messages_sent, cases[i].sent);
        assert_int_equal(zero_traffic_total(&t).bytes_sent, 300 * cases[i].sent);
        zero_layout_destroy(&layout);
    }
}
