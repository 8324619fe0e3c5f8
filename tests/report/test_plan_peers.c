/* Bytes from rank to rank, as a plan has them: rows and columns are the ranks' ledgers. */

#include "support/test.h"

#include "lists/peers.h"
#include "report/json_put.h"
#include "report/plan_facts.h"
#include "support/plan_request.h"

static const char *const algorithms[] = {"p2p", "hier", "mpi"};
enum { ALGORITHMS = 3 };

static void make(zero_plan_report *report, const zero_plan_request *asked)
{
    assert_ok(zero_plan_report_make(report, asked));
}

static zero_volume ledger_of(const zero_plan_stage *stage)
{
    const zero_plan_ledger *l = &stage->ledger;
    zero_traffic sum = l->reduce.traffic;
    zero_traffic_add(&sum, 1, &l->all_reduce.traffic);
    zero_traffic_add(&sum, 1, &l->gather.traffic);
    zero_traffic_add(&sum, 1, &l->join.traffic);
    zero_traffic_add(&sum, 1, &l->collect.traffic);
    return zero_traffic_total(&sum);
}

/* The plan of each rank knows its own row and column only by its ledger. */
static void assert_ledgers(zero_plan_request asked)
{
    int n = asked.n_ranks;
    asked.peers = true;
    for (int rank = 0; rank < n; rank++) {
        zero_plan_report r;
        asked.rank = rank;
        make(&r, &asked);
        for (int k = 0; k < r.n; k++) {
            zero_volume ledger = ledger_of(&r.stages[k]);
            const int64_t *cells = r.stages[k].peers;
            int64_t row = 0, column = 0;
            for (int i = 0; i < n; i++) {
                row += cells[rank * n + i];
                column += cells[i * n + rank];
            }
            assert_int_equal(cells[rank * n + rank], 0);
            assert_int_equal(row, ledger.bytes_sent);
            assert_int_equal(column, ledger.bytes_received);
        }
        zero_plan_report_destroy(&r);
    }
}

TEST(rows_and_columns_are_the_ledgers_of_all_ranks)
{
    static const int ranks[] = {1, 3, 4, 6};
    for (size_t i = 0; i < COUNT(ranks); i++)
        for (int nodes = 1; nodes <= ranks[i] && nodes <= 3; nodes++)
            for (int a = 0; a < ALGORITHMS; a++) {
                zero_plan_request asked = plan_request("tiny", ranks[i]);
                asked.config.global_batch = 2 * ranks[i];
                asked.config.plan.micro_batch = 1;
                asked.config.fake_nodes = nodes;
                asked.config.collectives = nodes == 1 && a == 1 ? "shm" : algorithms[a];
                assert_ledgers(asked);
                asked.config.plan.partition = ZERO_PARTITION_OWNER;
                assert_ledgers(asked);
            }
}

TEST(shared_models_and_replicas_add_up_too)
{
    zero_plan_request asked = plan_request("tiny", 4);
    asked.config.fake_nodes = 2;
    asked.config.plan.shard_ranks = 2;
    assert_ledgers(asked);
    asked = plan_request("tiny", 8);
    asked.config.fake_nodes = 2;
    asked.config.tp.ranks = 2;
    asked.config.plan.shard_ranks = 2;
    asked.config.plan.recompute = asked.config.plan.partition_activations = true;
    assert_ledgers(asked);
}

TEST(with_pairwise_rounds_all_pairs_are_equal)
{
    zero_plan_request asked = plan_request("tiny", 5);
    zero_plan_report r;
    asked.peers = true;
    asked.config.global_batch = 5;
    asked.config.collectives = "p2p";
    make(&r, &asked);
    for (int k = 0; k < r.n; k++)
        for (int from = 0; from < 5; from++)
            for (int to = 0; to < 5; to++)
                assert_int_equal(r.stages[k].peers[from * 5 + to],
                                 from == to ? 0 : r.stages[k].peers[1]);
    assert_true(r.stages[3].peers[1] > r.stages[0].peers[1]);
    zero_plan_report_destroy(&r);
}

TEST(matrices_fit_a_terminal)
{
    static const int ranks[] = {1, 2, 6, 7, 12, 33, 64};
    for (size_t i = 0; i < COUNT(ranks); i++)
        for (int nodes = 1; nodes <= 4 && nodes <= ranks[i]; nodes++) {
            zero_plan_request asked = plan_request("gpt2-xl", ranks[i]);
            zero_plan_report r;
            char *text;
            size_t size;
            FILE *out = open_memstream(&text, &size);
            asked.peers = true;
            asked.config.fake_nodes = nodes;
            asked.config.global_batch = ranks[i];
            make(&r, &asked);
            assert_ok(zero_report_print("peers", zero_plan_facts(&r), out));
            assert_int_equal(fclose(out), 0);
            for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
                assert_true(strcspn(line, "\n") <= 80);
            free(text);
            zero_plan_report_destroy(&r);
        }
}

TEST(more_ranks_are_refused)
{
    zero_plan_request asked = plan_request("tiny", ZERO_MOST_PEERS + 1);
    zero_plan_report r;
    asked.peers = true;
    asked.config.global_batch = asked.n_ranks;
    assert_fails(zero_plan_report_make(&r, &asked), ZERO_ERR_INVALID, "up to 64 ranks");
}
