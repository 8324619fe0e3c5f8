#define TEST_HAS_MAIN
#include "comm/comm.h"

#include <unistd.h>

#include "base/fail.h"
#include "comm/kinds.h"
#include "comm/launch.h"
#include "lists/small.h"
#include "support/span_oracle.h"
#include "support/test_world.h"

TEST(a_group_knows_its_place)
{
    assert_all(world.rank == test_rank && world.size == test_size);
    assert_all(zero_launch_rank_hint() == test_rank);
    int same = MPI_IDENT;
    MPI_Comm_compare(world.mpi, MPI_COMM_WORLD, &same);
    assert_all(same == MPI_CONGRUENT);
}

TEST(agreement_is_ok_if_all_are_well)
{
    all_ok(zero_agree(&world, ZERO_OK));
}

/* Fails on the ranks in `failing` (a bit each), with a code and a text that depend on the rank. */
static zero_status fail_on(unsigned failing)
{
    if (!(failing >> test_rank & 1)) return ZERO_OK;
    return zero_fail(test_rank % 2 ? ZERO_ERR_IO : ZERO_ERR_NOMEM, "disk %d is full",
                     test_rank);
}

TEST(the_lowest_failing_rank_speaks_for_all)
{
    for (unsigned failing = 1; failing < 1u << test_size; failing++) {
        zero_status st = zero_agree(&world, fail_on(failing));
        int first = 0;
        while (!(failing >> first & 1)) first++;
        assert_all(st == (first % 2 ? ZERO_ERR_IO : ZERO_ERR_NOMEM));

        char expected[64];
        snprintf(expected, sizeof expected, "rank %d: disk %d is full", first, first);
        bool is_shared = failing == (1u << test_size) - 1;
        const char *text = is_shared ? strchr(expected, ':') + 2 : expected;
        assert_all(strcmp(zero_last_error(), text) == 0);
        assert_all(strncmp(zero_last_error_place(), "test_comm.c:", 12) == 0);
    }
}

TEST(a_verdict_keeps_its_rank_when_agreed_upon_again)
{
    int last = test_size - 1;
    zero_status st = zero_agree(&world, fail_on(1u << last));
    char expected[64];
    snprintf(expected, sizeof expected, "rank %d: disk %d is full", last, last);
    const char *text = test_size == 1 ? strchr(expected, ':') + 2 : expected;
    for (int still = 1; still <= test_size; still++) { /* ranks that still know of it */
        zero_status again = zero_agree(&world, test_rank < still ? st : ZERO_OK);
        assert_all(again == st && strcmp(zero_last_error(), text) == 0);
    }
}

/* A path may begin like a verdict. */
TEST(a_text_that_begins_with_a_rank_is_not_a_verdict)
{
    if (test_size == 1) return;
    int last = test_size - 1;
    zero_status st = ZERO_OK;
    if (test_rank == last) st = zero_fail(ZERO_ERR_IO, "rank 3: x.txt: no such file");
    assert_all(zero_agree(&world, st) == ZERO_ERR_IO);
    char expected[64];
    snprintf(expected, sizeof expected, "rank %d: rank 3: x.txt: no such file", last);
    assert_all(strcmp(zero_last_error(), expected) == 0);
    assert_all(strncmp(zero_last_error_place(), "test_comm.c:", 12) == 0);
}

TEST(any_is_true_if_one_rank_says_so)
{
    bool any = true;
    assert_all(zero_comm_any(&world, false, &any) == ZERO_OK && !any);
    for (int r = 0; r < test_size; r++)
        assert_all(zero_comm_any(&world, r == test_rank, &any) == ZERO_OK && any);
}

TEST(the_most_is_exact_for_all_integers)
{
    int64_t most = 0;
    for (int r = 0; r < test_size; r++) {
        int64_t mine = test_rank == r ? INT64_MAX - r : INT64_MIN + test_rank;
        assert_all(zero_comm_most(&world, mine, &most) == ZERO_OK && most == INT64_MAX - r);
    }
    assert_all(zero_comm_most(&world, -7 - test_rank, &most) == ZERO_OK && most == -7);
}

/* Every bit is set on one rank. */
static uint64_t bits_of(int rank, int64_t i)
{
    return oracle_bits(1, 0, i) % (uint64_t)test_size == (uint64_t)rank
               ? (uint64_t)1 << i % 64
               : 0;
}

TEST(words_become_the_or_of_all_ranks_words)
{
    static const int64_t sizes[] = {0, 1, 63, 1200000}; /* the last one is sent in pieces */
    for (int s = 0; s < 4; s++) {
        int64_t n = sizes[s], wrong = 0;
        uint64_t *words = malloc((size_t)(n + 1) * sizeof *words);
        assert_non_null(words);
        for (int64_t i = 0; i < n; i++) words[i] = bits_of(test_rank, i) | 1;
        words[n] = 42;
        all_ok(zero_comm_or(&world, n, words));
        for (int64_t i = 0; i < n; i++) wrong += words[i] != ((uint64_t)1 << i % 64 | 1);
        assert_all(wrong == 0 && words[n] == 42);
        free(words);
    }
}

/* ---- spans ---- */

#define MOST_BLOCKS 40

/* The first block of rank r's part of tree i: anywhere, so that some parts are empty. */
static int64_t cut(int i, int r, int64_t blocks)
{
    int64_t at = 0;
    if (r == test_size) return blocks;
    for (int q = 1; q <= r; q++)
        at += (int64_t)(oracle_bits(2, i, q) % (uint64_t)(blocks - at + 1)) / (1 + i % 3);
    return at;
}

static int64_t elements_of_tree(int i)
{
    return (int64_t)(oracle_bits(3, 0, i) % (MOST_BLOCKS * ZERO_TREE_BLOCK + 1));
}

static zero_tree_span part(int i, const float *x)
{
    int64_t n = elements_of_tree(i), blocks = zero_tree_blocks(n);
    return span_of(n, x + i % 7, cut(i, test_rank, blocks), cut(i, test_rank + 1, blocks));
}

static int64_t count_wrong_sums(int n, const zero_tree_span *spans, const float *x)
{
    int64_t wrong = 0;
    for (int i = 0; i < n; i++) {
        double sum = zero_tree_sum_squares(ZERO_FP32, elements_of_tree(i), x + i % 7),
               found = -1.0;
        if (zero_tree_span_is_whole(&spans[i])) found = zero_tree_span_sum(&spans[i]);
        wrong += memcmp(&sum, &found, sizeof sum) != 0;
    }
    return wrong;
}

TEST(merged_spans_have_the_bits_of_the_whole_sum_on_all_ranks)
{
    static const int sizes[] = {0, 1, 10, 6000}; /* the last one is sent in pieces */
    float x[MOST_BLOCKS * ZERO_TREE_BLOCK + 7];
    for (int i = 0; i < MOST_BLOCKS * ZERO_TREE_BLOCK + 7; i++) x[i] = span_value(i);
    for (int s = 0; s < 4; s++) {
        int n = sizes[s];
        zero_tree_span *spans = malloc((size_t)(n + 1) * sizeof *spans);
        assert_non_null(spans);
        for (int i = 0; i < n; i++) spans[i] = part(i, x);
        all_ok(zero_comm_merge_spans(&world, n, spans));
        assert_all(count_wrong_sums(n, spans, x) == 0);
        free(spans);
    }
}

TEST(spans_with_a_gap_between_ranks_are_refused_everywhere)
{
    if (test_size == 1) return;
    for (int late = 1; late < test_size; late++) {
        zero_tree_span spans[3];
        for (int i = 0; i < 3; i++) {
            int64_t first = test_rank + (i == 1 && test_rank >= late);
            spans[i] = (zero_tree_span){.blocks = 100, .first = first};
            zero_tree_span_append(&spans[i], 1, 1.0);
        }
        all_fail(zero_comm_merge_spans(&world, 3, spans), ZERO_ERR_INVALID, "span 1 of 3");
        char block[32];
        snprintf(block, sizeof block, "at block %d,", late + 1);
        all_told(block);
    }
}

TEST(spans_of_different_trees_are_refused_everywhere)
{
    if (test_size == 1) return;
    zero_tree_span span = {.blocks = 100 + (test_rank == test_size - 1)};
    all_fail(zero_comm_merge_spans(&world, 1, &span), ZERO_ERR_INVALID,
             "not of 100 blocks");
}

TEST(doubles_arrive_in_rank_order)
{
    double mine[3] = {test_rank, 1e300 * test_rank, -0.5}, all[3 * 64];
    assert_true(test_size <= 64);
    all_ok(zero_comm_all_gather_doubles(&world, 3, mine, all));
    int wrong = 0;
    for (int r = 0; r < test_size; r++)
        wrong += all[3 * r] != r || all[3 * r + 1] != 1e300 * r || all[3 * r + 2] != -0.5;
    assert_all(wrong == 0);
}

TEST(a_broadcast_reaches_all_from_any_root)
{
    for (int root = 0; root < test_size; root++) {
        char data[1000];
        memset(data, test_rank, sizeof data);
        all_ok(zero_comm_broadcast(&world, root, data, sizeof data - 1));
        assert_all(data[0] == root && data[998] == root && data[999] == test_rank);
    }
    all_ok(zero_comm_broadcast(&world, 0, NULL, 0));
}

TEST(each_rank_learns_whether_it_has_the_root_s_word)
{
    bool same;
    for (int odd = 0; odd < test_size; odd++) { /* if it is the root, it alone is like it */
        uint64_t mine = test_rank == odd ? 1 : UINT64_MAX;
        all_ok(zero_comm_compare_with_root(&world, mine, &same));
        assert_all(same == ((test_rank == odd) == (odd == 0)));
    }
    assert_all(zero_comm_compare_with_root(&world, 7, &same) == ZERO_OK && same);
}

/* Declares that rank 0 is alone on its node; if there are several real nodes, that every rank
 * is. */
static zero_status declare_nodes(zero_comm *comm)
{
    int ids[64];
    for (int r = 0; r < comm->size; r++) ids[r] = comm->layout.n_nodes > 1 ? r : r > 0;
    return zero_comm_pretend_nodes(comm, ids);
}

TEST(control_traffic_is_counted_once_per_other_rank)
{
    zero_comm comm;
    double mine[5] = {0}, all[5 * 64];
    char data[100] = {0};
    all_ok(zero_comm_world(&comm));
    all_ok(declare_nodes(&comm));
    memset(comm.traffic, 0, sizeof comm.traffic); /* drops that of declaring nodes */
    all_ok(zero_comm_all_gather_doubles(&comm, 5, mine, all));
    all_ok(zero_comm_broadcast(&comm, 0, data, sizeof data));
    int64_t most;
    uint64_t words[3] = {0};
    all_ok(zero_comm_most(&comm, 1, &most));
    all_ok(zero_comm_or(&comm, 3, words));
    const int64_t bytes = 40 + 8 + 24; /* in 3 messages */
    const zero_traffic *t = &comm.traffic[ZERO_CONTROL];
    zero_volume v = zero_traffic_total(t);
    int64_t others = test_size - 1,
            neighbours = zero_layout_local_size(&comm.layout, test_rank) - 1;
    assert_all(v.bytes_sent == bytes * others + (test_rank == 0 ? 100 * others : 0));
    assert_all(v.bytes_received == bytes * others + (test_rank == 0 ? 0 : 100));
    assert_all(v.messages_sent == 3 * others + (test_rank == 0 ? others : 0));
    assert_all(v.messages_received == 3 * others + (test_rank == 0 ? 0 : 1));
    assert_all(t->bytes_sent[ZERO_INSIDE] == bytes * neighbours); /* rank 0 has none */
    assert_all(t->messages_received[ZERO_INSIDE] == 3 * neighbours);
    zero_comm_destroy(&comm);
}

/* Ranks 0, 2, 4, ... say the same, but for one. */
TEST(ranks_that_say_the_same_are_of_one_kind)
{
    zero_comm comm;
    zero_kind *kinds;
    int n;
    all_ok(zero_comm_world(&comm));
    const char *mine = test_rank == 3 ? "none" : test_rank % 2 ? "avx2" : "avx512";
    all_ok(zero_comm_kinds(&comm, mine, &kinds, &n));
    assert_all(n == (test_size > 3 ? 3 : test_size > 1 ? 2 : 1));
    assert_all(strcmp(kinds[0].text, "avx512") == 0);
    assert_all(strcmp(kinds[0].ranks.chars, test_size > 4   ? "ranks 0,2,4"
                                            : test_size > 2 ? "ranks 0,2"
                                                            : "rank 0") == 0 ||
               test_size > 6);
    assert_all(n < 2 || strcmp(kinds[1].text, "avx2") == 0);
    assert_all(n < 3 || (strcmp(kinds[2].text, "none") == 0 &&
                         strcmp(kinds[2].ranks.chars, "rank 3") == 0));
    free(kinds);
    zero_comm_destroy(&comm);
}

TEST(merged_spans_count_as_planned)
{
    enum { SPANS = 150 }; /* in three pieces */
    zero_comm comm;
    zero_traffic planned = {0};
    zero_tree_span *spans = calloc(SPANS, sizeof *spans);
    assert_non_null(spans);
    all_ok(zero_comm_world(&comm));
    all_ok(declare_nodes(&comm));
    memset(comm.traffic, 0, sizeof comm.traffic);
    all_ok(zero_comm_merge_spans(&comm, SPANS, spans));
    zero_small_add_merged(&planned, &comm.layout, test_rank, SPANS, sizeof *spans);
    assert_all(memcmp(&planned, &comm.traffic[ZERO_CONTROL], sizeof planned) == 0);
    all_ok(zero_comm_merge_spans(&comm, 0, spans));
    zero_comm_destroy(&comm);
    free(spans);
}

TEST(nodes_are_declared_but_not_joined)
{
    zero_comm comm;
    int ids[64];
    all_ok(zero_comm_world(&comm));
    all_ok(declare_nodes(&comm));
    int n_nodes = comm.layout.n_nodes;
    for (int r = 0; r < test_size; r++) ids[r] = 7; /* joins ranks of two nodes */
    zero_status st = zero_comm_pretend_nodes(&comm, ids);
    assert_all(st == (n_nodes > 1 ? ZERO_ERR_INVALID : ZERO_OK));
    assert_all(comm.layout.n_nodes == n_nodes);
    zero_comm_destroy(&comm);
}

TEST(a_split_groups_equal_colors_in_key_order)
{
    zero_comm half;
    int color = test_rank % 2, members = (test_size + 1 - color) / 2;
    all_ok(zero_comm_split(&world, color, -test_rank, &half));
    assert_all(half.size == members && half.rank == members - 1 - test_rank / 2);
    all_ok(zero_agree(&half, ZERO_OK));
    zero_comm_destroy(&half);
    assert_all(half.size == 0);
}

TEST(a_group_from_another_communicator_is_our_own)
{
    MPI_Comm theirs;
    zero_comm ours;
    int64_t most;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank == 0, -test_rank, &theirs); /* upside down */
    all_ok(zero_comm_from(theirs, &ours));
    MPI_Comm_free(&theirs);
    assert_all(ours.size == (test_rank == 0 ? 1 : test_size - 1));
    assert_all(ours.rank == (test_rank == 0 ? 0 : test_size - 1 - test_rank));
    all_ok(zero_comm_most(&ours, test_rank, &most));
    assert_all(most == (test_rank == 0 ? 0 : test_size - 1));
    zero_comm_destroy(&ours);
}

TEST(null_and_intercommunicators_are_refused)
{
    zero_comm ours = {.rank = 42};
    assert_all(zero_comm_from(MPI_COMM_NULL, &ours) == ZERO_ERR_INVALID);
    if (test_size == 1) return;
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank == 0, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, test_rank == 0, 0, &both);
    assert_all(zero_comm_from(both, &ours) == ZERO_ERR_INVALID && ours.rank == 42);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

TEST(a_negative_color_is_in_no_group)
{
    zero_comm first;
    all_ok(zero_comm_split(&world, test_rank == 0 ? 7 : -1, 0, &first));
    assert_all(first.size == (test_rank == 0));
    zero_comm_destroy(&first);
}

/* Launchers tell nodes by their host names, of which one machine may have several. */
TEST(ranks_of_one_host_are_one_node)
{
    enum { LENGTH = 256, RANKS = 64 };
    char mine[LENGTH] = "", all[RANKS * LENGTH];
    assert_true(test_size <= RANKS);
    gethostname(mine, LENGTH - 1);
    MPI_Allgather(mine, LENGTH, MPI_CHAR, all, LENGTH, MPI_CHAR, MPI_COMM_WORLD);
    int size = 0, rank = 0;
    for (int r = 0; r < test_size; r++) {
        bool is_here = strcmp(all + r * LENGTH, mine) == 0;
        size += is_here;
        rank += is_here && r < test_rank;
    }

    assert_all(zero_layout_local_size(&world.layout, test_rank) == size);
    assert_all(world.layout.local_of[test_rank] == rank);
}

TEST(a_zeroed_group_can_be_destroyed)
{
    zero_comm none = {0};
    zero_comm_destroy(&none);
    zero_comm_destroy(&none);
}

TEST(an_error_of_mpi_becomes_a_message_with_its_text)
{
    char byte = 0;
    all_fail(zero_comm_broadcast(&world, test_size, &byte, 1), ZERO_ERR_MPI, "MPI_Ibcast");
    all_told("root");
}

int main(int argc, char **argv)
{
    if (zero_launch_start(&argc, &argv) != ZERO_OK) return 1;
    test_begin(&argc, &argv);
    return test_end(run_here(set_up, tear_down));
}
