/* Ranks per node on the same cores: every row is the plan of its ranks, and their sums obey the formulas. */

#include "support/test.h"

#include "facts/facts.h"
#include "report/plan_facts.h"
#include "support/plan_request.h"

static const int choices[] = {1, 2, 3, 6};
enum { CHOICES = 4 };

/* Each node has 6 ranks of 2 threads, and 12 sequences. */
static zero_plan_request ask(int nodes, int stage, const char *collectives)
{
    zero_plan_request asked = plan_request("tiny", 6 * nodes);
    asked.all_stages = false;
    asked.config.plan.stage = stage;
    asked.config.plan.type = ZERO_FP32;
    asked.config.collectives = collectives;
    asked.config.fake_nodes = nodes;
    asked.config.plan.threads = 2;
    asked.config.plan.micro_batch = 2;
    asked.config.global_batch = 12 * nodes;
    return asked;
}

static void make(const zero_plan_request *asked, zero_plan_report *r)
{
    assert_ok(zero_plan_report_make(r, asked));
}

static const json_t *row_of(const json_t *table, size_t i)
{
    return json_array_get(json_object_get(table, "per_node"), i);
}

static int64_t whole(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

/* Messages of node 0 are reduces and gathers of the padded model, (N-1)/N of it each. */
TEST(messages_are_those_of_the_formula)
{
    for (int nodes = 1; nodes <= 3; nodes++)
        for (int stage = 0; stage <= 2; stage++) {
            zero_plan_report r;
            json_t *table;
            const zero_plan_request asked = ask(nodes, stage, "p2p");
            make(&asked, &r);
            assert_ok(zero_plan_nodes_make(&r, CHOICES, choices, &table));
            assert_int_equal(zero_fact_number(table, "count(per_node)"), 1 + CHOICES);
            for (size_t i = 0; i < 1 + CHOICES; i++) {
                const json_t *row = row_of(table, i);
                const int64_t n = whole(row, "ranks_per_node"), N = n * nodes;
                zero_plan_report one;
                zero_plan_request alone = ask(nodes, stage, "p2p");
                alone.n_ranks = (int)N;
                alone.config.plan.threads = (int)whole(row, "threads");
                alone.config.plan.micro_batch = whole(row, "micro_batch");
                make(&alone, &one);
                const int64_t padded = one.stages[0].ledger.padded;
                assert_null(json_object_get(row, "not_possible"));
                assert_int_equal(n * whole(row, "threads"), 12);
                assert_int_equal(n * whole(row, "micro_batch"), 12);
                assert_int_equal(whole(row, "bytes_sent_to_nodes") +
                                     whole(row, "bytes_sent_within"),
                                 n * 2 * 4 * (padded / N) * (N - 1));
                /* A rank has N - n of the N - 1 others on other nodes. */
                assert_int_equal(whole(row, "bytes_sent_to_nodes"),
                                 n * 2 * 4 * (padded / N) * (N - n));
                zero_plan_report_destroy(&one);
            }
            json_decref(table);
            zero_plan_report_destroy(&r);
        }
}

/* One rank per node has no neighbours, so its row is its own plan's ledger and time. */
TEST(one_rank_per_node_is_the_plan_of_that_many_ranks)
{
    for (int stage = 0; stage <= 3; stage++) {
        zero_plan_report r, one;
        json_t *table;
        zero_plan_request asked = ask(3, stage, "auto");
        asked.has_time = asked.has_network = true;
        asked.machine =
            (zero_plan_machine){.latency = 1e-6, .bandwidth = 1e9, .flops = 1e9};
        make(&asked, &r);
        assert_ok(zero_plan_nodes_make(&r, 1, choices, &table));
        asked.n_ranks = 3;
        asked.config.plan.threads = 12;
        asked.config.plan.micro_batch = 12;
        asked.machine.bandwidth = 6e9; /* of six ranks that shared a link */
        asked.machine.flops = 6e9;
        make(&asked, &one);
        const json_t *row = row_of(table, 1);
        assert_int_equal(whole(row, "needed"), one.stages[0].ledger.needed);
        assert_int_equal(whole(row, "bytes_sent_within"), 0);
        assert_true(zero_fact_number(row, "step_seconds") == one.stages[0].time.step);
        assert_true(zero_fact_number(table, "per_node/0/step_seconds") ==
                    r.stages[0].time.step);
        assert_true(whole(row, "needed") < whole(row_of(table, 0), "needed"));
        json_decref(table);
        zero_plan_report_destroy(&one);
        zero_plan_report_destroy(&r);
    }
}

TEST(what_cannot_be_compared_is_said)
{
    const int four = 4, twelve = 12;
    zero_plan_report r;
    json_t *table;
    zero_plan_request asked = ask(2, 1, "auto");
    make(&asked, &r);
    const int five = 5;
    assert_fails(zero_plan_nodes_make(&r, 1, &five, &table), ZERO_ERR_INVALID,
                 "a node has 12 cores");
    assert_ok(zero_plan_nodes_make(&r, 1, &four, &table));
    assert_int_equal(whole(row_of(table, 1), "micro_batch"), 3);
    json_decref(table);
    zero_plan_report_destroy(&r);
    asked.config.plan.micro_batch = 1;
    asked.config.global_batch = 12;
    make(&asked, &r);
    assert_ok(zero_plan_nodes_make(&r, 1, &twelve, &table));
    const char *why = json_string_value(json_object_get(row_of(table, 1), "not_possible"));
    assert_true(why && strstr(why, "cannot share a node's 6 sequences"));
    json_decref(table);
    zero_plan_report_destroy(&r);
    asked.n_ranks = 9; /* 5 and 4 on two nodes */
    asked.config.global_batch = 9;
    make(&asked, &r);
    assert_fails(zero_plan_nodes_make(&r, 1, choices, &table), ZERO_ERR_INVALID,
                 "9 ranks on 2 nodes");
    zero_plan_report_destroy(&r);
}

/* The least and the most of each scheme of partition are those of the ranks' own plans. */
TEST(partitions_are_bounded_over_all_ranks)
{
    for (int k = 0; k < ZERO_PARTITION_SCHEMES; k++) {
        zero_plan_report r;
        zero_plan_request asked = ask(1, 2, "p2p");
        asked.n_ranks = 4;
        asked.config.plan.micro_batch = 1;
        int64_t least = INT64_MAX, most = 0, sent = 0;
        make(&asked, &r);
        for (int rank = 0; rank < 4; rank++) {
            zero_plan_input in = r.stages[0].schedule.input;
            zero_plan_ledger l;
            in.rank = rank;
            in.partition = (zero_partition_scheme)k;
            in.bucket = zero_config_bucket(&r.config, &in);
            assert_ok(zero_plan_measure(&in, &l));
            const int64_t needed = (int64_t)zero_plan_scarce(&in, &l);
            const zero_plan_exchange data = zero_plan_data_of(&l);
            least = needed < least ? needed : least;
            most = needed > most ? needed : most;
            sent = zero_traffic_sent(&data.traffic) > sent
                       ? zero_traffic_sent(&data.traffic)
                       : sent;
        }
        const json_t *of =
            json_object_get(json_object_get(r.stages[0].facts, "partitions"),
                            zero_partition_scheme_name((zero_partition_scheme)k));
        assert_int_equal(zero_fact_number(of, "ranks_looked_at"), 4);
        assert_int_equal(zero_fact_number(of, "needed/least"), least);
        assert_int_equal(zero_fact_number(of, "needed/most"), most);
        assert_int_equal(zero_fact_number(of, "bytes_sent/most"), sent);
        assert_true(k == ZERO_PARTITION_SLICE || least < most);
        zero_plan_report_destroy(&r);
    }
}
