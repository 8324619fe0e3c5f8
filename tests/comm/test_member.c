/* Where the groups of a family stand: laws of every division, the nodes, and the names. */

#include "support/test.h"

#include "lists/member.h"

#define MOST 24 /* ranks */

/* Calls `law` for every division of 1 to MOST ranks. */
static void for_all(void (*law)(const zero_division *d))
{
    for (int size = 1; size <= MOST; size++)
        for (int tp = 1; tp <= size; tp++)
            for (int pp = 1; size % tp == 0 && pp <= size / tp; pp++)
                for (int shard = 1; size / tp % pp == 0 && shard <= size / tp / pp; shard++)
                    if (size / tp / pp % shard == 0)
                        law(&(zero_division){
                            .size = size, .tp = tp, .shard = shard, .pp = pp});
}

static void check_tiling(const zero_division *d, zero_family_part part)
{
    int seen[MOST] = {0};
    for (int r = 0; r < d->size; r++) {
        zero_member m = zero_member_of(part, d, r);
        int at = -1;
        for (int i = 0; i < m.size; i++) {
            int its = zero_member_rank(&m, i);
            assert_true(its >= 0 && its < d->size);
            if (its == r) at = i;
            zero_member theirs = zero_member_of(part, d, its);
            assert_memory_equal(&theirs, &m, sizeof m);
            theirs = zero_member_beside(&m, its);
            assert_memory_equal(&theirs, &m, sizeof m);
        }
        assert_true(at >= 0);
        seen[r] += at == 0;
    }
    int groups = 0;
    for (int r = 0; r < d->size; r++) groups += seen[r];
    zero_member any = zero_member_of(part, d, 0);
    assert_int_equal(groups * any.size, d->size);
}

static void check_tilings(const zero_division *d)
{
    for (int p = ZERO_TP_GROUP; p < ZERO_FAMILY_PARTS; p++)
        if (zero_division_has(d, (zero_family_part)p)) check_tiling(d, (zero_family_part)p);
}

TEST(the_groups_of_each_part_tile_the_whole)
{
    for_all(check_tilings);
}

/* Rank (s * N + k * R + j) * T + p is rank p, k * R + j, j, k and s of its groups. */
static void check_places(const zero_division *d)
{
    const int tp = d->tp, shard = d->shard, n = d->size / tp / d->pp;
    for (int r = 0; r < d->size; r++) {
        int p = r % tp, j = r / tp % shard, k = r / tp % n / shard;
        zero_member t = zero_member_of(ZERO_TP_GROUP, d, r);
        zero_member z = zero_member_of(ZERO_DATA_GROUP, d, r);
        zero_member s = zero_member_of(ZERO_SHARD_GROUP, d, r);
        zero_member c = zero_member_of(ZERO_REPLICA_GROUP, d, r);
        assert_true(t.size == tp && z.size == n && s.size == shard && c.size == n / shard);
        assert_int_equal(zero_member_rank(&t, p), r);
        assert_int_equal(zero_member_rank(&z, k * shard + j), r);
        assert_int_equal(zero_member_rank(&s, j), r);
        assert_int_equal(zero_member_rank(&c, k), r);
        zero_member stages = zero_member_of(ZERO_PIPE_GROUP, d, r);
        assert_int_equal(stages.size, d->pp);
        assert_int_equal(zero_member_rank(&stages, r / tp / n), r);
    }
}

TEST(a_rank_has_the_place_that_the_picture_says)
{
    for_all(check_places);
}

static void check_parts(const zero_division *d)
{
    bool has_tp = d->tp > 1, is_hybrid = d->shard < d->size / d->tp / d->pp;
    assert_int_equal(zero_division_has(d, ZERO_TP_GROUP), has_tp);
    assert_int_equal(zero_division_has(d, ZERO_DATA_GROUP), has_tp || d->pp > 1);
    assert_int_equal(zero_division_has(d, ZERO_PIPE_GROUP), d->pp > 1);
    assert_int_equal(zero_division_has(d, ZERO_SHARD_GROUP), is_hybrid);
    assert_int_equal(zero_division_has(d, ZERO_REPLICA_GROUP), is_hybrid);
    assert_true(zero_division_has(d, ZERO_WHOLE));
}

TEST(only_parts_that_differ_from_others_exist)
{
    for_all(check_parts);
}

TEST(the_whole_is_zeroed)
{
    const zero_member zeroed = {0};
    zero_division d = {.size = 8, .tp = 2, .shard = 2};
    zero_member whole = zero_member_of(ZERO_WHOLE, &d, 5);
    assert_memory_equal(&whole, &zeroed, sizeof whole);
    whole = zero_member_beside(&whole, 5);
    assert_memory_equal(&whole, &zeroed, sizeof whole);
    assert_int_equal(zero_member_rank(&whole, 5), 5);
}

TEST(a_part_has_the_nodes_of_its_ranks)
{
    const int ids[8] = {0, 0, 0, 0, 1, 1, 1, 1}, nodes[6] = {2, 1, 2, 1, 2, 1};
    zero_division d = {.size = 8, .tp = 2, .shard = 2};
    zero_layout whole, layout;
    assert_ok(zero_layout_init(&whole, 8, ids));
    for (int p = ZERO_WHOLE; p < ZERO_FAMILY_PARTS; p++) {
        zero_member m = zero_member_of((zero_family_part)p, &d, 6);
        assert_ok(zero_member_layout(&m, &whole, &layout));
        assert_int_equal(layout.size, p == ZERO_WHOLE ? 8 : m.size);
        assert_int_equal(layout.n_nodes, nodes[p]);
        zero_layout_destroy(&layout);
    }
    zero_layout_destroy(&whole);
}

static void named(zero_family_part part, zero_division d, int rank, const char *expected)
{
    char text[ZERO_MEMBER_TEXT];
    zero_member m = zero_member_of(part, &d, rank);
    zero_member_name(&m, text);
    assert_string_equal(text, expected);
}

TEST(groups_are_named_by_the_ranks_of_the_whole)
{
    const zero_division hybrid = {8, 1, 4, 1}, tp = {6, 2, 3, 1}, both = {8, 2, 2, 1};
    named(ZERO_WHOLE, both, 5, "");
    named(ZERO_TP_GROUP, tp, 2, " in the TP group of ranks 2-3");
    named(ZERO_DATA_GROUP, tp, 2, " in the ZeRO group of ranks 0,2,4");
    named(ZERO_DATA_GROUP, (zero_division){4, 4, 1, 1}, 2, " in the ZeRO group of rank 2");
    named(ZERO_SHARD_GROUP, hybrid, 2, " in the shard group of ranks 0-3");
    named(ZERO_REPLICA_GROUP, hybrid, 5, " in the replica group of ranks 1,5");
    named(ZERO_SHARD_GROUP, both, 7, " in the shard group of ranks 5,7");
    named(ZERO_SHARD_GROUP, (zero_division){4, 1, 1, 1}, 3,
          " in the shard group of rank 3");
    named(ZERO_PIPE_GROUP, (zero_division){6, 1, 2, 3}, 3,
          " in the pipeline group of ranks 1,3,5");
    named(ZERO_DATA_GROUP, (zero_division){6, 1, 2, 3}, 3,
          " in the ZeRO group of ranks 2-3");
    named(ZERO_REPLICA_GROUP, (zero_division){20, 2, 2, 1}, 6,
          " in the replica group of ranks 2,6,...,18");
}

TEST(several_groups_of_a_part_are_named_together)
{
    static const char *const expected[ZERO_FAMILY_PARTS] = {"",
                                                            " in their TP groups",
                                                            " in their ZeRO groups",
                                                            " in their shard groups",
                                                            " in their replica groups",
                                                            " in their pipeline groups"};
    zero_division d = {.size = 8, .tp = 2, .shard = 2};
    for (int p = ZERO_TP_GROUP; p < ZERO_FAMILY_PARTS; p++) {
        char text[ZERO_MEMBER_TEXT];
        zero_member m = zero_member_of((zero_family_part)p, &d, 3);
        m.first = -1;
        zero_member_name(&m, text);
        assert_string_equal(text, expected[p]);
    }
}

/* The sizes of shard groups, listed by hand. */
TEST(only_subtrees_and_all_ranks_can_shard)
{
    static const struct {
        int n;
        const char *choices;
    } known[] = {{1, "1"},
                 {2, "1, 2"},
                 {3, "1, 3"},
                 {6, "1, 2, 6"},
                 {8, "1, 2, 4, 8"},
                 {12, "1, 2, 4, 12"},
                 {400, "1, 2, 4, 8, 16, 400"}};
    for (size_t i = 0; i < COUNT(known); i++) {
        char text[ZERO_SHARD_TEXT], found[ZERO_SHARD_TEXT] = "";
        zero_list_shards(known[i].n, text);
        assert_string_equal(text, known[i].choices);
        for (int R = -2; R <= 2 * known[i].n; R++)
            if (zero_can_shard(known[i].n, R))
                snprintf(found + strlen(found), sizeof found - strlen(found), "%s%d",
                         found[0] ? ", " : "", R);
        assert_string_equal(found, known[i].choices);
    }
}
