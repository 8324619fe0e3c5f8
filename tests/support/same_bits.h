/* same_bits.h - runs that must have the bits of another one. Collective over the job. */
#pragma once

#include "support/engine_test.h"

/* Ways of messages: over how many nodes the ranks are spread. */
typedef struct {
    zero_algorithm algorithm;
    int nodes;
} test_route;

static const test_route test_routes[] = {{ZERO_ALGORITHM_P2P, 1},
                                         {ZERO_ALGORITHM_SHM, 1},
                                         {ZERO_ALGORITHM_HIER, 2},
                                         {ZERO_ALGORITHM_HIER, 3}};

/* What the first n ranks get from a fresh run. */
static inline test_outcome test_train(const test_setup *setup, int n)
{
    test_run run;
    test_run_open(&run, setup, n);
    test_outcome out = test_run_outcome(&run);
    test_run_close(&run);
    return out;
}

/* Says which run has other bits, and in what. */
static inline void test_tell(const test_setup *setup)
{
    const zero_plan_input *p = &setup->plan;
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {{"nodes", setup->fake_nodes},
                {"tp", setup->tp},
                {"slices", setup->slices},
                {"stage", p->stage},
                {"shard_ranks", p->shard_ranks},
                {"M", p->accumulation},
                {"reproducible", p->reproducible},
                {"partition", p->partition},
                {"bucket", p->bucket},
                {"serial", p->serial},
                {"prefetch", p->prefetch},
                {"persist", p->persist},
                {"message", p->message},
                {"threads", p->threads},
                {"recompute", p->recompute},
                {"pieces", p->partition_activations},
                {"check_memory", p->check_memory},
                {"check_replicas", p->check_replicas},
                {"device", p->device},
                {"host", p->offload_host},
                {"depth", p->offload_depth},
                {"parameters", p->offload_parameters},
                {"activations", p->offload_activations},
                {"in the node", p->node_parameters}};
    const char *order = getenv("ZERO_FAKE_ORDER");
    print_error("%d ranks, %s, activations %s, %s, offload %s, order %s", test_size,
                zero_type_name(p->type), zero_type_name(p->activations),
                zero_algorithm_name(p->collectives), zero_offload_name(p->offload),
                order ? order : "none");
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].value) print_error(", %s %" PRId64, rows[i].name, rows[i].value);
    print_error(": other bits\n");
}

static inline void test_expect(const test_setup *setup, bool is_same)
{
    if (!is_same && test_rank == 0) test_tell(setup);
    assert_all(is_same);
}

static inline void test_expect_outcome(const test_setup *setup, const test_outcome *got,
                                       const test_outcome *want)
{
    bool is_same = test_same_outcome(got, want);
    for (int s = 0; s < TEST_STEPS && !is_same && test_rank == 0; s++)
        print_error("step %d: loss %.17g, norm %.17g; expected %.17g, %.17g\n", s,
                    got->loss[s], got->norm[s], want->loss[s], want->norm[s]);
    test_expect(setup, is_same);
}

/* The first n ranks get what others got. */
static inline void test_expect_same(const test_setup *setup, int n,
                                    const test_outcome *want)
{
    test_outcome got = test_train(setup, n);
    test_expect_outcome(setup, &got, want);
}
