/* Extents of all ranks tile every tensor, whatever the model, the scheme and the number of ranks.
 * Parameters take no memory here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/table.h"
#include "support/tree_oracle.h"

enum { MAX_TENSORS = 12, MAX_RANKS = 9 };

static int64_t draw(uint64_t *random, int64_t n)
{
    *random = oracle_mix(*random);
    return (int64_t)(*random >> 33) % n;
}

/* Lengths next to the borders: a granule, an extent, several extents. */
static int64_t draw_length(uint64_t *random)
{
    static const int64_t marks[] = {
        1, 64, 128, ZERO_EXTENT_MAX, 2 * ZERO_EXTENT_MAX, 5 * ZERO_EXTENT_MAX};
    int64_t length = marks[draw(random, 6)] + draw(random, 5) - 2;
    return length > 0 ? length : 1 + draw(random, 4000);
}

static int draw_tensors(uint64_t *random, zero_tensor tensors[MAX_TENSORS])
{
    int n = 1 + (int)draw(random, MAX_TENSORS), group = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0) group += (int)draw(random, 2);
        tensors[i] = (zero_tensor){.rows = 1, .cols = draw_length(random), .group = group};
        if (draw(random, 3) == 0) tensors[i].rows = 1 + draw(random, 7);
        snprintf(tensors[i].name, sizeof tensors[i].name, "t.%d", i);
    }
    return n;
}

/* ---- one rank's list ---- */

static int64_t place(const zero_extent *x)
{
    return ((int64_t)x->tensor << 40) + (x->begin / ZERO_EXTENT_MAX) * ZERO_STATES +
           (int64_t)x->part;
}

/* An extent is within its block, its tensor and the rank's shard, and after the previous one. */
static void check_extent(const zero_state_table *t, int rank, const zero_extent *x,
                         const zero_extent *before)
{
    const zero_tensor *of = &t->tensors[x->tensor];
    zero_range range = zero_extent_range(t, x);
    zero_range own = zero_partition_shard(&t->partitions[of->group], rank);
    assert_true(x->begin >= 0 && x->begin < x->end && x->end <= of->rows * of->cols);
    assert_true(x->begin / ZERO_EXTENT_MAX == (x->end - 1) / ZERO_EXTENT_MAX);
    assert_true(range.begin >= own.begin && range.end <= own.end);
    assert_true(!before || place(before) < place(x));
}

static int64_t owned(const zero_state_table *t, int rank)
{
    int64_t sum = 0;
    for (int g = 0; g < t->n_groups; g++)
        sum += zero_range_len(zero_partition_shard(&t->partitions[g], rank));
    return sum;
}

/* Ranks own ascending pieces, so each extent begins where the last of its kind ended. */
static void check_rank(const zero_state_table *t, int rank,
                       int64_t next[MAX_TENSORS][ZERO_STATES])
{
    zero_extent *list;
    int n;
    int64_t sum = 0;
    assert_int_equal(zero_state_table_extents(t, rank, &list, &n), ZERO_OK);
    assert_true((n == 0) == (list == NULL));
    for (int i = 0; i < n; i++) {
        const zero_extent *x = &list[i];
        check_extent(t, rank, x, i > 0 ? x - 1 : NULL);
        assert_int_equal(x->begin, next[x->tensor][x->part]);
        next[x->tensor][x->part] = x->end;
        sum += x->end - x->begin;
    }
    assert_int_equal(sum, ZERO_STATES * owned(t, rank));
    free(list);
}

static void check_tiling(const zero_state_table *t)
{
    int64_t next[MAX_TENSORS][ZERO_STATES] = {{0}};
    for (int rank = 0; rank < t->n_ranks; rank++) check_rank(t, rank, next);
    for (int i = 0; i < t->n_tensors; i++)
        for (int part = 0; part < ZERO_STATES; part++)
            assert_int_equal(next[i][part], t->tensors[i].rows * t->tensors[i].cols);
}

static void extents_of_all_ranks_tile_every_tensor_once(void **state)
{
    (void)state;
    uint64_t random = 20;
    for (int round = 0; round < 400; round++) {
        zero_tensor tensors[MAX_TENSORS];
        int n = draw_tensors(&random, tensors);
        for (int n_ranks = 1; n_ranks <= MAX_RANKS; n_ranks++)
            for (int scheme = ZERO_PARTITION_SLICE; scheme <= ZERO_PARTITION_OWNER;
                 scheme++) {
                zero_state_table t;
                assert_int_equal(zero_state_table_init(&t, n, tensors,
                                                       (zero_partition_scheme)scheme,
                                                       n_ranks),
                                 ZERO_OK);
                check_tiling(&t);
                zero_state_table_destroy(&t);
            }
    }
}

/* ---- names ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Appends the names of a rank's extents. */
static void add_names(const zero_state_table *t, int rank, char (*names)[ZERO_EXTENT_NAME],
                      int most, int *n)
{
    zero_extent *list;
    int more;
    assert_int_equal(zero_state_table_extents(t, rank, &list, &more), ZERO_OK);
    assert_true(*n + more <= most);
    for (int i = 0; i < more; i++) zero_extent_name(t, &list[i], names[(*n)++]);
    free(list);
}

static void no_two_extents_have_one_name(void **state)
{
    (void)state;
    enum { MOST = 4000 };
    static char names[MOST][ZERO_EXTENT_NAME];
    uint64_t random = 7;
    for (int round = 0; round < 50; round++) {
        zero_tensor tensors[MAX_TENSORS];
        zero_state_table t;
        int n = draw_tensors(&random, tensors), n_names = 0;
        /* Names may look like those of extents themselves. */
        if (n > 1) snprintf(tensors[1].name, sizeof tensors[1].name, "t.0[0:64].master");
        assert_int_equal(zero_state_table_init(&t, n, tensors, ZERO_PARTITION_SLICE,
                                               1 + round % MAX_RANKS),
                         ZERO_OK);
        for (int r = 0; r < t.n_ranks; r++) add_names(&t, r, names, MOST, &n_names);
        zero_state_table_destroy(&t);
        qsort(names, (size_t)n_names, sizeof *names, by_name);
        for (int i = 1; i < n_names; i++) assert_string_not_equal(names[i - 1], names[i]);
    }
}

static void an_extent_of_the_longest_name_and_tensor_has_its_name_whole(void **state)
{
    (void)state;
    zero_tensor tensor = {.rows = 1, .cols = INT64_C(1) << 62};
    zero_state_table t;
    char name[ZERO_EXTENT_NAME], expected[2 * ZERO_EXTENT_NAME];
    memset(tensor.name, 'n', sizeof tensor.name - 1);
    assert_int_equal(zero_state_table_init(&t, 1, &tensor, ZERO_PARTITION_SLICE, 1),
                     ZERO_OK);
    zero_extent x = {0, ZERO_STATE_VARIANCE, tensor.cols - 1, tensor.cols};
    zero_extent_name(&t, &x, name);
    snprintf(expected, sizeof expected,
             "%s[4611686018427387903:4611686018427387904].variance", tensor.name);
    assert_string_equal(name, expected);
    zero_state_table_destroy(&t);
}

/* ---- refusals ---- */

static void refuses(int n, const zero_tensor *tensors, int n_ranks, const char *text)
{
    zero_state_table t = {.n_tensors = -7};
    assert_int_equal(zero_state_table_init(&t, n, tensors, ZERO_PARTITION_SLICE, n_ranks),
                     ZERO_ERR_FORMAT);
    if (!strstr(zero_last_error(), text))
        fail_msg("expected '%s' in: %s", text, zero_last_error());
    assert_int_equal(t.n_tensors, -7);
}

static void what_is_no_table_is_refused_with_the_tensor_named(void **state)
{
    (void)state;
    const zero_tensor a = {.name = "a", .rows = 2, .cols = 3};
    const int64_t wide = INT64_C(1) << 61;
    refuses(0, &a, 1, "0 tensors");
    refuses(1, &a, 0, "on 0 ranks");
    refuses(1, &a, ZERO_SHARDS_MOST + 1, "1 to 1048576 ranks");
    refuses(1, &(zero_tensor){.rows = 1, .cols = 1}, 1, "has no name");
    refuses(2, (zero_tensor[]){a, a}, 1, "two tensors are called 'a'");
    refuses(1, &(zero_tensor){.name = "a", .cols = 1}, 1, "'a' has 0 rows");
    refuses(1, &(zero_tensor){.name = "a", .rows = 1, .cols = -1}, 1, "-1 columns");
    refuses(1, &(zero_tensor){.name = "a", .rows = wide, .cols = 3}, 1, "2^62");
    refuses(1, &(zero_tensor){.name = "a", .rows = wide, .cols = INT64_MAX}, 1, "2^62");
    refuses(3,
            (zero_tensor[]){{.name = "a", .rows = 1, .cols = wide},
                            {.name = "b", .rows = 1, .cols = wide},
                            {.name = "c", .rows = 1, .cols = 1}},
            1, "'c' has");
    refuses(1, &(zero_tensor){.name = "a", .rows = 1, .cols = 1, .group = 1}, 1, "group 1");
    refuses(1, &(zero_tensor){.name = "a", .rows = 1, .cols = 1, .group = -1}, 1,
            "group -1");
    refuses(2, (zero_tensor[]){a, {.name = "b", .rows = 1, .cols = 1, .group = 2}}, 1,
            "'b' is in group 2");
}

static void extents_without_number_are_refused_and_not_walked(void **state)
{
    (void)state;
    zero_tensor tensor = {.name = "a", .rows = 1, .cols = INT64_C(1) << 62};
    zero_state_table t;
    zero_extent *list;
    int n;
    assert_int_equal(zero_state_table_init(&t, 1, &tensor, ZERO_PARTITION_SLICE, 1),
                     ZERO_OK);
    assert_int_equal(zero_state_table_extents(&t, 0, &list, &n), ZERO_ERR_NOMEM);
    zero_state_table_destroy(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extents_of_all_ranks_tile_every_tensor_once),
        cmocka_unit_test(no_two_extents_have_one_name),
        cmocka_unit_test(an_extent_of_the_longest_name_and_tensor_has_its_name_whole),
        cmocka_unit_test(what_is_no_table_is_refused_with_the_tensor_named),
        cmocka_unit_test(extents_without_number_are_refused_and_not_walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
