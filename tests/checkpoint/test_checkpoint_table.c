/* Extents of all ranks tile every tensor, whatever the model, the scheme and the groups of ranks.
 * Parameters take no memory here. */

#include "support/test.h"

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

/* Some tensors can be cut in up to 32 slices; of these some have three parts. */
static void draw_cut(uint64_t *random, zero_tensor *t)
{
    t->cut = (zero_cut)draw(random, 3);
    t->cut_parts = (int)draw(random, 2) * 3;
    if (t->cut == ZERO_CUT_ROWS) t->rows = 32 + draw(random, 100);
    if (t->cut == ZERO_CUT_COLS) t->cols = 15120 * (1 + draw(random, 70));
}

static int draw_tensors(uint64_t *random, zero_tensor tensors[MAX_TENSORS])
{
    int n = 1 + (int)draw(random, MAX_TENSORS), group = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0) group += (int)draw(random, 2);
        tensors[i] = (zero_tensor){.rows = 1, .cols = draw_length(random), .group = group};
        if (draw(random, 3) == 0) tensors[i].rows = 1 + draw(random, 7);
        draw_cut(random, &tensors[i]);
        snprintf(tensors[i].name, sizeof tensors[i].name, "t.%d", i);
    }
    return n;
}

/* ---- one rank's list ---- */

static int64_t place(const zero_extent *x, int64_t most)
{
    return ((int64_t)x->tensor << 40) + (x->begin / most) * ZERO_STATES + (int64_t)x->part;
}

/* An extent is within its block, its tensor and the rank's shard, and after the previous one. */
static void check_extent(const zero_state_table *t, const zero_state_local *local, int d,
                         const zero_extent *x, const zero_extent *before)
{
    const zero_tensor *of = &local->tensors[x->tensor];
    int64_t most = zero_extent_most(t);
    zero_range range = zero_extent_range(local, x);
    zero_range own = zero_partition_shard(&local->partitions[of->group], d);
    assert_true(x->begin >= 0 && x->begin < x->end && x->end <= of->rows * of->cols);
    assert_true(x->begin / most == (x->end - 1) / most);
    assert_true(range.begin >= own.begin && range.end <= own.end);
    assert_true(!before || place(before, most) < place(x, most));
    assert_true(local->p == 0 || of->cut != ZERO_CUT_NONE);
}

/* The runs of an extent are where the table says that these elements of the whole tensor are. */
static void check_runs(const zero_state_table *t, const zero_state_local *local, int d,
                       const zero_extent *x)
{
    const zero_tensor *of = &local->tensors[x->tensor];
    for (int64_t at = x->begin; at < x->end;) {
        zero_stretch run = zero_share_run(of, at, x->end);
        int64_t last = run.whole + run.n - 1;
        assert_int_equal(zero_state_holder(t, x->tensor, run.whole), local->p);
        assert_int_equal(zero_state_holder(t, x->tensor, last), local->p);
        zero_state_place first = zero_state_find(local, x->tensor, run.whole, last + 1);
        assert_true(first.d == d && first.run.local == at && first.run.n == run.n);
        at += run.n;
    }
}

static int64_t owned(const zero_state_table *t, const zero_state_local *local, int d)
{
    int64_t sum = 0;
    for (int i = 0; i < t->n_tensors; i++)
        sum += zero_range_len(zero_state_in_shard(local, i, d));
    return sum;
}

/* Ranks own ascending pieces, so each extent begins where the last of its kind ended. */
static void check_rank(const zero_state_table *t, const zero_state_local *local, int d,
                       int64_t next[MAX_TENSORS][ZERO_STATES])
{
    zero_extent *list;
    int n;
    int64_t sum = 0;
    assert_ok(zero_state_table_extents(t, local, d, &list, &n));
    assert_true((n == 0) == (list == NULL));
    for (int i = 0; i < n; i++) {
        const zero_extent *x = &list[i];
        check_extent(t, local, d, x, i > 0 ? x - 1 : NULL);
        if (x->part == ZERO_STATE_MASTER) check_runs(t, local, d, x);
        assert_int_equal(x->begin, next[x->tensor][x->part]);
        next[x->tensor][x->part] = x->end;
        sum += x->end - x->begin;
    }
    assert_int_equal(sum, ZERO_STATES * owned(t, local, d));
    free(list);
}

static void check_tiling(const zero_state_table *t)
{
    int64_t elements[MAX_TENSORS] = {0};
    for (int p = 0; p < t->layout.tp; p++) {
        int64_t next[MAX_TENSORS][ZERO_STATES] = {{0}};
        zero_state_local local;
        assert_ok(zero_state_local_init(&local, t, p));
        uint64_t held[MAX_RANKS] = {0};
        assert_ok(zero_state_add_elements(t, &local, held));
        for (int d = 0; d < t->layout.n_ranks / t->layout.tp; d++) {
            check_rank(t, &local, d, next);
            assert_int_equal(held[d], owned(t, &local, d));
        }
        for (int i = 0; i < t->n_tensors; i++) elements[i] += next[i][(ZERO_STATES - 1)];
        zero_state_local_destroy(&local);
    }
    for (int i = 0; i < t->n_tensors; i++)
        assert_int_equal(elements[i], t->tensors[i].rows * t->tensors[i].cols);
}

static zero_state_table table_of(int n, const zero_tensor *tensors,
                                 zero_partition_scheme scheme, int n_ranks, int tp)
{
    zero_state_table t;
    zero_state_layout layout = {scheme, n_ranks, tp, tp > 1 ? 2 * tp : 1, 0, 1, NULL};
    zero_status st = zero_state_table_init(&t, n, tensors, &layout);
    if (st != ZERO_OK) print_error("%s\n", zero_last_error());
    assert_ok(st);
    return t;
}

TEST(extents_of_all_ranks_tile_every_tensor_once)
{
    uint64_t random = 20;
    for (int round = 0; round < 200; round++) {
        zero_tensor tensors[MAX_TENSORS];
        int n = draw_tensors(&random, tensors);
        for (int n_ranks = 1; n_ranks <= MAX_RANKS; n_ranks++) {
            zero_partition_scheme scheme = (zero_partition_scheme)draw(&random, 2);
            int tp = 1 + (int)draw(&random, n_ranks);
            zero_state_table t = table_of(n, tensors, scheme, n_ranks, 1);
            check_tiling(&t);
            zero_state_table_destroy(&t);
            if (tp == 1 || n_ranks % tp != 0) continue;
            t = table_of(n, tensors, scheme, n_ranks, tp);
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
    zero_state_local local;
    int more, p = rank % t->layout.tp;
    assert_ok(zero_state_local_init(&local, t, p));
    assert_ok(zero_state_table_extents(t, &local, rank / t->layout.tp, &list, &more));
    assert_true(*n + more <= most);
    for (int i = 0; i < more; i++) zero_extent_name(t, p, &list[i], names[(*n)++]);
    free(list);
    zero_state_local_destroy(&local);
}

TEST(no_two_extents_have_one_name)
{
    enum { MOST = 8000 };
    static char names[MOST][ZERO_EXTENT_NAME];
    uint64_t random = 7;
    for (int round = 0; round < 50; round++) {
        zero_tensor tensors[MAX_TENSORS];
        int n = draw_tensors(&random, tensors), n_names = 0,
            n_ranks = 1 + round % MAX_RANKS;
        /* Names may look like those of extents themselves. */
        if (n > 1) snprintf(tensors[1].name, sizeof tensors[1].name, "t.0[0:64].master");
        int tp = n_ranks % 2 == 0 ? 2 : n_ranks % 3 == 0 ? 3 : 1;
        zero_state_table t = table_of(n, tensors, ZERO_PARTITION_SLICE, n_ranks, tp);
        for (int r = 0; r < n_ranks; r++) add_names(&t, r, names, MOST, &n_names);
        zero_state_table_destroy(&t);
        qsort(names, (size_t)n_names, sizeof *names, by_name);
        for (int i = 1; i < n_names; i++) assert_string_not_equal(names[i - 1], names[i]);
    }
}

TEST(an_extent_of_the_longest_name_and_tensor_has_its_name_whole)
{
    zero_tensor tensor = {.rows = 1, .cols = INT64_C(1) << 62, .cut = ZERO_CUT_COLS};
    char name[ZERO_EXTENT_NAME], expected[2 * ZERO_EXTENT_NAME];
    memset(tensor.name, 'n', sizeof tensor.name - 1);
    zero_state_layout shared = {
        ZERO_PARTITION_SLICE, ZERO_TP_MOST, ZERO_TP_MOST, ZERO_TP_MOST, 0, 1, NULL};
    zero_state_table t = table_of(1, &tensor, ZERO_PARTITION_SLICE, 1, 1), cut;
    assert_ok(zero_state_table_init(&cut, 1, &tensor, &shared));
    zero_extent x = {0, (ZERO_STATES - 1), tensor.cols - 1, tensor.cols};
    zero_extent_name(&t, 0, &x, name);
    snprintf(expected, sizeof expected,
             "%s[4611686018427387903:4611686018427387904].variance", tensor.name);
    assert_string_equal(name, expected);
    zero_extent_name(&cut, ZERO_TP_MOST - 1, &x, name);
    snprintf(expected, sizeof expected,
             "%s@4095/4096[4611686018427387903:4611686018427387904].variance", tensor.name);
    assert_string_equal(name, expected);
    zero_state_table_destroy(&cut);
    zero_state_table_destroy(&t);
}

/* ---- refusals ---- */

static void refuses_layout(int n, const zero_tensor *tensors,
                           const zero_state_layout *layout, const char *text)
{
    zero_state_table t = {.n_tensors = -7};
    assert_fails(zero_state_table_init(&t, n, tensors, layout), ZERO_ERR_FORMAT, text);
    assert_int_equal(t.n_tensors, -7);
}

static void refuses(int n, const zero_tensor *tensors, int n_ranks, const char *text)
{
    zero_state_layout layout = {ZERO_PARTITION_SLICE, n_ranks, 1, 1, 0, 1, NULL};
    refuses_layout(n, tensors, &layout, text);
}

static void refuses_groups(int n_ranks, int tp, int slices, const char *text)
{
    const zero_tensor a = {.name = "a", .rows = 4096, .cols = 3};
    zero_state_layout layout = {ZERO_PARTITION_SLICE, n_ranks, tp, slices, 0, 1, NULL};
    refuses_layout(1, &a, &layout, text);
}

static void refuses_cut(zero_tensor tensor, const char *text)
{
    zero_state_layout layout = {ZERO_PARTITION_SLICE, 8, 2, 4, 0, 1, NULL};
    refuses_layout(1, &tensor, &layout, text);
}

TEST(groups_and_cuts_that_cannot_be_are_refused)
{
    const int64_t far = INT64_C(1) << 51;
    refuses_groups(8, 0, 1, "TP groups of 0 ranks");
    refuses_groups(8, -2, 4, "TP groups of -2 ranks");
    refuses_groups(8, 3, 3, "TP groups of 3 ranks, of 8 ranks");
    refuses_groups(8, 4, 2, "with 2 slices");
    refuses_groups(6, 2, 6, "with 6 slices");
    refuses_groups(4, 2, 0, "with 0 slices");
    refuses_groups(4, 2, 2 * ZERO_TP_MOST, "up to 4096");
    refuses_cut((zero_tensor){.name = "a@1/2", .rows = 1, .cols = 4}, "an '@'");
    refuses_cut((zero_tensor){.name = "a", .rows = 3, .cols = 4, .cut = ZERO_CUT_ROWS},
                "'a' [3, 4] cannot be cut by rows");
    refuses_cut((zero_tensor){.name = "a", .rows = far, .cols = 1, .cut = ZERO_CUT_ROWS},
                "cannot be cut by rows");
    refuses_cut((zero_tensor){.name = "a", .rows = 3, .cols = 6, .cut = ZERO_CUT_COLS},
                "'a' [3, 6] cannot be cut by columns of 1 parts into 4 slices");
    refuses_cut((zero_tensor){"a", 3, 16, .cut = ZERO_CUT_COLS, .cut_parts = 3},
                "of 3 parts");
    refuses_cut((zero_tensor){"a", 3, 16, .cut = ZERO_CUT_COLS, .cut_parts = 8},
                "of 8 parts");
    refuses_cut((zero_tensor){"a", 3, 16, .cut = ZERO_CUT_COLS, .cut_parts = -4},
                "columns");
}

TEST(what_is_no_table_is_refused_with_the_tensor_named)
{
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

TEST(extents_without_number_are_refused_and_not_walked)
{
    zero_tensor tensor = {.name = "a", .rows = 1, .cols = INT64_C(1) << 62};
    zero_state_table t = table_of(1, &tensor, ZERO_PARTITION_SLICE, 1, 1);
    zero_state_local local;
    zero_extent *list;
    int n;
    assert_ok(zero_state_local_init(&local, &t, 0));
    assert_int_equal(zero_state_table_extents(&t, &local, 0, &list, &n), ZERO_ERR_NOMEM);
    zero_state_local_destroy(&local);
    zero_state_table_destroy(&t);
}

/* Numbers that are possible alone, and together would cost a reader hours. */
TEST(work_without_limit_is_refused)
{
    enum { MANY = 257 };
    zero_tensor tensors[MANY];
    for (int i = 0; i < MANY; i++) {
        tensors[i] = (zero_tensor){.rows = 1, .cols = 1, .group = i};
        snprintf(tensors[i].name, sizeof tensors[i].name, "t.%d", i);
    }
    refuses(MANY, tensors, ZERO_SHARDS_MOST, "257 tensors on 1048576 ranks");
    zero_state_table t =
        table_of(MANY - 1, tensors, ZERO_PARTITION_SLICE, ZERO_SHARDS_MOST, 1);
    zero_state_table_destroy(&t);
    const int n = (int)(ZERO_PARTS_MOST / ZERO_TP_MOST) + 1;
    zero_tensor *more = calloc((size_t)n, sizeof *more);
    zero_state_layout layout = {
        ZERO_PARTITION_SLICE, ZERO_TP_MOST, ZERO_TP_MOST, ZERO_TP_MOST, 0, 1, NULL};
    assert_fails(zero_state_table_init(&t, n, more, &layout), ZERO_ERR_FORMAT,
                 "and 4194304 in a TP group");
    free(more);
}
