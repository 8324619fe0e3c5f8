/* How a group's flat space is cut: the same laws at any length and any number of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "sharding/partition.h"

static const int64_t lengths[] = {
    0,   1,   63,   64,   65,        127,       128,
    129, 576, 1000, 4097, 124439808, 774030080, INT64_C(1) << 62};
static const int worlds[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 100, 1023, 65536};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void for_all(void (*check)(const zero_partition *part))
{
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t k = 0; k < COUNT(worlds); k++) {
            zero_partition part;
            assert_int_equal(zero_partition_init(&part, lengths[i], worlds[k]), ZERO_OK);
            assert_true(part.n_params == lengths[i] && part.n_ranks == worlds[k]);
            check(&part);
        }
}

static void check_tiling(const zero_partition *part)
{
    int64_t at = 0;
    for (int rank = 0; rank < part->n_ranks; rank++) {
        zero_range r = zero_partition_shard(part, rank);
        assert_true(r.begin == at && r.begin <= r.end);
        assert_true(r.end - r.begin <= part->shard_len);
        if (r.begin < r.end) assert_true(r.begin == part->shard_len * rank);
        at = r.end;
    }
    assert_true(at == part->n_params);
}

static void shards_tile_the_group(void **state)
{
    (void)state;
    for_all(check_tiling);
}

static void check_granules(const zero_partition *part)
{
    int64_t padded = zero_partition_padded(part);
    assert_true(part->shard_len % ZERO_SHARD_GRANULE == 0);
    assert_true(padded == part->shard_len * part->n_ranks);
    assert_true(padded >= part->n_params);
    /* One granule less per rank would not hold the group. */
    assert_true(padded - part->n_params < (int64_t)ZERO_SHARD_GRANULE * part->n_ranks);
}

static void shards_are_whole_granules_and_none_is_wasted(void **state)
{
    (void)state;
    for_all(check_granules);
}

static void ranks_beyond_a_small_group_own_nothing(void **state)
{
    (void)state;
    zero_partition part;
    assert_int_equal(zero_partition_init(&part, 100, 9), ZERO_OK);
    assert_true(part.shard_len == ZERO_SHARD_GRANULE);
    assert_true(zero_partition_shard(&part, 1).end == 100);
    for (int rank = 2; rank < 9; rank++) {
        zero_range r = zero_partition_shard(&part, rank);
        assert_true(r.begin == 100 && r.end == 100);
    }
}

static void nonsense_is_refused_with_its_numbers_and_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        int64_t n_params;
        int n_ranks;
        const char *number;
    } bad[] = {{-1, 1, "-1"},
               {INT64_MIN, 4, "-9223372036854775808"},
               {(INT64_C(1) << 62) + 1, 2, "4611686018427387905"},
               {10, 0, "0 shards"},
               {10, -3, "-3"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        zero_partition part = {.n_params = 1, .shard_len = 2, .n_ranks = 3};
        assert_int_equal(zero_partition_init(&part, bad[i].n_params, bad[i].n_ranks),
                         ZERO_ERR_INVALID);
        assert_non_null(strstr(zero_last_error(), bad[i].number));
        assert_true(part.n_params == 1 && part.shard_len == 2 && part.n_ranks == 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_tile_the_group),
        cmocka_unit_test(shards_are_whole_granules_and_none_is_wasted),
        cmocka_unit_test(ranks_beyond_a_small_group_own_nothing),
        cmocka_unit_test(nonsense_is_refused_with_its_numbers_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
