/* The cutting of groups: the same laws in both schemes, at any length and any number of ranks. */

#include "support/test.h"

#include "base/rng.h"
#include "sharding/partition.h"

static const int64_t lengths[] = {
    0,   1,   63,   64,   65,        127,       128,
    129, 576, 1000, 4097, 124439808, 774030080, INT64_C(1) << 61};
static const int worlds[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 100, 1023, 65536};

#define N_GROUPS 3

/* Three groups, whose lengths are rotated; every scheme and number of ranks. */
static void for_all(void (*check)(const zero_partition *parts))
{
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t k = 0; k < COUNT(worlds); k++)
            for (int scheme = 0; scheme < 2; scheme++) {
                int64_t n[N_GROUPS];
                zero_partition parts[N_GROUPS];
                for (size_t g = 0; g < N_GROUPS; g++)
                    n[g] = lengths[(i + 5 * g) % COUNT(lengths)];
                assert_ok(zero_partition_cut((zero_partition_scheme)scheme, worlds[k], 1,
                                             N_GROUPS, n, parts));
                for (int g = 0; g < N_GROUPS; g++)
                    assert_true(parts[g].n_params == n[g] &&
                                parts[g].n_ranks == worlds[k] &&
                                parts[g].scheme == (zero_partition_scheme)scheme);
                check(parts);
            }
}

/* ---- pieces ---- */

static void check_tiling(const zero_partition *parts)
{
    for (int g = 0; g < N_GROUPS; g++) {
        int64_t at = 0, shards = 0;
        for (int rank = 0; rank < parts[g].n_ranks; rank++) {
            zero_range piece = zero_partition_piece(&parts[g], rank);
            zero_range shard = zero_partition_shard(&parts[g], rank);
            assert_true(piece.begin == at && piece.begin <= piece.end);
            assert_true(shard.begin == shards && shard.begin <= shard.end);
            assert_true(zero_range_len(piece) <= parts[g].shard_len);
            at = piece.end;
            shards = shard.end;
        }
        assert_true(at == parts[g].padded && shards == parts[g].n_params);
    }
}

TEST(pieces_tile_the_padded_group_and_shards_the_parameters)
{
    for_all(check_tiling);
}

/* A shard is a piece without its padding, which is at the end. */
static void check_shards(const zero_partition *parts)
{
    for (int g = 0; g < N_GROUPS; g++)
        for (int rank = 0; rank < parts[g].n_ranks; rank++) {
            zero_range piece = zero_partition_piece(&parts[g], rank);
            zero_range shard = zero_partition_shard(&parts[g], rank);
            assert_true(piece.begin % ZERO_SHARD_GRANULE == 0);
            assert_true(piece.end % ZERO_SHARD_GRANULE == 0);
            if (zero_range_len(shard) > 0) assert_true(shard.begin == piece.begin);
            assert_true(shard.end == piece.end || shard.end == parts[g].n_params);
        }
}

TEST(pieces_are_whole_granules)
{
    for_all(check_shards);
}

/* One granule less per rank, or with `owner` per group, would be too small. */
static void check_padding(const zero_partition *parts)
{
    for (int g = 0; g < N_GROUPS; g++) {
        bool slice = parts[g].scheme == ZERO_PARTITION_SLICE;
        int64_t padding = parts[g].padded - parts[g].n_params;
        assert_true(padding >= 0);
        assert_true(padding < (int64_t)ZERO_SHARD_GRANULE * (slice ? parts[g].n_ranks : 1));
    }
}

TEST(no_padding_is_wasted)
{
    for_all(check_padding);
}

/* slice: every rank owns as much of a group as any other. */
static void check_balance(const zero_partition *parts)
{
    if (parts[0].scheme != ZERO_PARTITION_SLICE) return;
    for (int g = 0; g < N_GROUPS; g++)
        for (int rank = 0; rank < parts[g].n_ranks; rank++)
            assert_true(zero_range_len(zero_partition_piece(&parts[g], rank)) ==
                        parts[g].shard_len);
}

TEST(slices_are_equal)
{
    for_all(check_balance);
}

/* ---- owners ---- */

static void check_owners(const zero_partition *parts)
{
    for (int g = 0; g < N_GROUPS; g++) {
        zero_range owners = zero_partition_owners(&parts[g]);
        assert_true(owners.begin >= 0 && owners.end <= parts[g].n_ranks);
        for (int rank = 0; rank < parts[g].n_ranks; rank++) {
            bool owns = zero_range_len(zero_partition_piece(&parts[g], rank)) > 0;
            assert_true(owns == (rank >= owners.begin && rank < owners.end));
        }
    }
}

TEST(owners_are_those_that_have_a_piece)
{
    for_all(check_owners);
}

/* owner: a rank's pieces of all groups form one part of the model's flat space, rank after
 * rank; all but the last ones are as long as possible. */
static void check_whole(const zero_partition *parts)
{
    if (parts[0].scheme != ZERO_PARTITION_OWNER) return;
    int64_t all = 0, left;
    for (int g = 0; g < N_GROUPS; g++) {
        assert_true(parts[g].first == all && parts[g].shard_len == parts[0].shard_len);
        all += parts[g].padded;
    }
    left = all;
    for (int rank = 0; rank < parts[0].n_ranks; rank++) {
        int64_t mine = 0;
        for (int g = 0; g < N_GROUPS; g++)
            mine += zero_range_len(zero_partition_piece(&parts[g], rank));
        assert_true(mine == (left < parts[0].shard_len ? left : parts[0].shard_len));
        left -= mine;
    }
    assert_true(left == 0);
    /* The longest part is the mean, rounded up to a granule. */
    assert_true((parts[0].shard_len - ZERO_SHARD_GRANULE) * parts[0].n_ranks < all ||
                parts[0].shard_len == 0);
}

TEST(owners_cut_the_whole_model_once)
{
    for_all(check_whole);
}

TEST(ranks_beyond_a_small_group_own_nothing)
{
    static const int64_t n_params = 100;
    for (int scheme = 0; scheme < 2; scheme++) {
        zero_partition part;
        assert_ok(
            zero_partition_cut((zero_partition_scheme)scheme, 9, 1, 1, &n_params, &part));
        assert_true(part.shard_len == ZERO_SHARD_GRANULE);
        assert_true(zero_partition_shard(&part, 1).end == 100);
        for (int rank = 2; rank < 9; rank++) {
            zero_range r = zero_partition_shard(&part, rank);
            assert_true(r.begin == 100 && r.end == 100);
        }
    }
}

/* ---- refusals ---- */

TEST(nonsense_is_refused_with_its_numbers)
{
    static const struct {
        int64_t n_params[2];
        int n_ranks;
        const char *number;
    } bad[] = {{{0, -1}, 1, "-1"},
               {{5, INT64_MIN}, 4, "-9223372036854775808"},
               {{(INT64_C(1) << 62) + 1, 0}, 2, "4611686018427387905"},
               {{INT64_C(1) << 61, (INT64_C(1) << 61) + 1}, 2, "2305843009213693953"},
               {{10, 10}, 0, "0 shards"},
               {{10, 10}, -3, "-3"}};
    for (size_t i = 0; i < COUNT(bad); i++)
        for (int scheme = 0; scheme < 2; scheme++) {
            zero_partition parts[2];
            assert_fails(zero_partition_cut((zero_partition_scheme)scheme, bad[i].n_ranks,
                                            1, 2, bad[i].n_params, parts),
                         ZERO_ERR_INVALID, bad[i].number);
        }
}

/* A shard is K neighbouring shards of the cut among all ranks, padding included. */
TEST(shards_of_replicas_are_neighbouring_shards_of_all)
{
    static const int64_t n_params[] = {0, 1, 64, 65, 4096, 5000, 123457};
    enum { GROUPS = COUNT(n_params) };
    for (int R = 1; R <= 5; R++)
        for (int K = 1; K <= 5; K++) {
            zero_partition all[GROUPS], shards[GROUPS];
            assert_ok(
                zero_partition_cut(ZERO_PARTITION_SLICE, R * K, 1, GROUPS, n_params, all));
            assert_ok(
                zero_partition_cut(ZERO_PARTITION_SLICE, R, K, GROUPS, n_params, shards));
            for (int g = 0; g < GROUPS; g++) {
                assert_true(shards[g].padded == all[g].padded);
                assert_int_equal(shards[g].n_ranks, R);
                for (int j = 0; j < R; j++) {
                    zero_range piece = zero_partition_piece(&shards[g], j);
                    assert_true(piece.begin == zero_partition_piece(&all[g], j * K).begin);
                    assert_true(piece.end ==
                                zero_partition_piece(&all[g], j * K + K - 1).end);
                }
            }
        }
}

/* ---- whole matrices ---- */

enum { ATOMS = 400 };

/* The longest part of the best cut into neighbours: atoms end where a cut may be. */
static int64_t best_by_search(const int64_t *atoms, int n, int n_ranks)
{
    int64_t best[ATOMS + 1]; /* [atoms done] with the ranks so far */
    for (int i = 0; i <= n; i++) best[i] = i == 0 ? 0 : INT64_MAX;
    for (int r = 0; r < n_ranks; r++)
        for (int i = n; i >= 0; i--) {
            int64_t sum = 0;
            for (int from = i; from > 0;) {
                sum += atoms[--from];
                if (best[from] < INT64_MAX)
                    best[i] = zero_min(best[i], zero_max(best[from], sum));
            }
        }
    return best[n];
}

/* Groups of two matrices, a vector and a table, of sizes that no granule divides. */
TEST(cuts_spare_matrices_and_no_other_cut_has_a_shorter_longest_part)
{
    int muon;
    assert_true(zero_rule_find("muon", &muon));
    for (int seed = 0; seed < 60; seed++)
        for (int n_ranks = 1; n_ranks <= 9; n_ranks++) {
            zero_rng rng = {.seed = (uint64_t)seed, .purpose = ZERO_RNG_TEST};
            zero_tensor tensors[4 * 3];
            zero_partition parts[3];
            int64_t n_params[3] = {0}, atoms[ATOMS], *cuts, all = 0;
            int n_atoms = 0;
            for (int i = 0; i < 12; i++) {
                const int64_t word = (int64_t)(zero_rng_bits(&rng, (uint64_t)i) >> 40);
                tensors[i] = (zero_tensor){.rows = i % 4 == 2 ? 1 : 1 + word % 31,
                                           .cols = 1 + word / 31 % 29,
                                           .group = i / 4,
                                           .offset = n_params[i / 4],
                                           .is_hidden = i % 4 == 1 || i % 4 == 3};
                n_params[i / 4] += tensors[i].rows * tensors[i].cols;
            }
            assert_ok(
                zero_partition_cut(ZERO_PARTITION_OWNER, n_ranks, 1, 3, n_params, parts));
            assert_ok(zero_partition_keep_whole(muon, 12, tensors, 3, parts, &cuts));
            int64_t longest = 0;
            check_tiling(parts);
            for (int r = 0; r < n_ranks; r++)
                longest = zero_max(longest, cuts[r + 1] - cuts[r]);
            for (int i = 0; i < 12; i++) {
                const zero_tensor *t = &tensors[i];
                int64_t last = t->offset + t->rows * t->cols - 1;
                const zero_partition *p = &parts[t->group];
                if (t->is_hidden)
                    assert_int_equal(zero_partition_owner_of(p, t->offset),
                                     zero_partition_owner_of(p, last));
            }
            /* Atoms: granules, and runs of granules that matrices join. */
            for (int g = 0; g < 3; g++)
                for (int64_t at = 0; at < parts[g].padded; at += ZERO_SHARD_GRANULE) {
                    bool joins = false;
                    for (int i = 4 * g; i < 4 * g + 4; i++) {
                        int64_t first = tensors[i].offset;
                        int64_t end = first + tensors[i].rows * tensors[i].cols;
                        joins = joins || (tensors[i].is_hidden && first < at && at < end);
                    }
                    if (joins)
                        atoms[n_atoms - 1] += ZERO_SHARD_GRANULE;
                    else
                        atoms[n_atoms++] = ZERO_SHARD_GRANULE;
                    all += ZERO_SHARD_GRANULE;
                }
            assert_int_equal(longest, best_by_search(atoms, n_atoms, n_ranks));
            assert_int_equal(cuts[n_ranks], all);
            free(cuts);
        }
}
