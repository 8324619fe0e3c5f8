/* All bytes and messages of a job's programs are simulated, and nobody waits for ever: random
 * plans, and groups of every part of a family. */
#include "support/random_plan.h"
#include "support/simulate_job.h"

#include "base/exact.h"
#include "base/number.h"
#include "base/tree.h"
#include "lists/small.h"
#include "support/share.h"

enum { STEPS = 3 };

static int rounds_of(int n)
{
    int k = 0;
    while ((1 << k) < n) k++;
    return k;
}

/* ---- what is planned ---- */

typedef struct {
    int64_t messages, bytes;
} sums;

/* A rank of a job with these ranks in all, T of them in a TP group, in log2 rounds. */
static void add_agreements(sums *sum, const zero_schedule *s, const zero_instruction *i,
                           int all, int tp)
{
    int n = i->op == ZERO_OP_LOSS ? all / tp : all;
    int64_t squares = tp > 1 ? ZERO_EXACT_WORDS * (int64_t)sizeof(int64_t)
                             : s->input.model->n_groups * (int64_t)sizeof(zero_tree_span);
    if (i->op == ZERO_OP_LOSS) { /* each round as much as is known, all of it in the end */
        sum->messages += rounds_of(n);
        sum->bytes += (n - 1) * (i->microbatch + 1) * (int64_t)sizeof(double);
    }
    if (i->op == ZERO_OP_VERIFY) {
        sum->messages += rounds_of(n);
        sum->bytes += rounds_of(n) * 2 * n * (int64_t)sizeof(uint64_t);
    }
    if (i->op == ZERO_OP_OVERFLOW) {
        sum->messages += 2 * rounds_of(n);
        sum->bytes += rounds_of(n) * (squares + ZERO_VOTE_WORDS * (int64_t)sizeof(int64_t));
    }
}

/* A step of one rank. */
static sums planned(const zero_schedule *s, int all, int tp)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    sums sum = {0, 0};
    for (int at = 0; at < p->length; at++) {
        zero_traffic t = zero_instruction_traffic(s, &p->code[at]);
        zero_volume v = zero_traffic_total(&t);
        sum.messages += v.messages_sent;
        sum.bytes += v.bytes_sent;
        add_agreements(&sum, s, &p->code[at], all, tp);
    }
    return sum;
}

/* ---- laws ---- */

static void check_sums(const zero_simulated *r, const sums *all, bool has_reads,
                       uint64_t trial)
{
    bool is_equal = has_reads ? r->messages >= STEPS * all->messages
                              : r->messages == STEPS * all->messages;
    if (!is_equal || r->bytes != STEPS * all->bytes)
        fail_msg("trial %d: simulated %lld messages, %lld bytes; planned %lld, %lld",
                 (int)trial, (long long)r->messages, (long long)r->bytes,
                 (long long)(STEPS * all->messages), (long long)(STEPS * all->bytes));
}

/* Ranks at random speeds, looks at random times, so that ranks meet in random order. */
static void disturb(zero_simulate_input *in, uint64_t *random, int ranks)
{
    in->steps = STEPS;
    in->poll = made_draw(random, 2) * 1e-6;
    in->memory_bandwidth = made_draw(random, 2) ? INFINITY : 1e10;
    in->machine.flops = 1e9;
    in->machine.node_bandwidth =
        1e10 + made_draw(random, 2) * 1e11; /* INFINITY skips reads */
    in->machine.disk_read = in->machine.disk_write = made_draw(random, 3) * 1e9;
    in->n_slow = made_draw(random, 3);
    for (int k = 0; k < in->n_slow; k++)
        in->slow[k] = (zero_slow_rank){.rank = made_draw(random, ranks),
                                       .factor = 0.1 + made_draw(random, 30) / 10.0};
}

static void check_plan(zero_plan_input input, int nodes, uint64_t *random, uint64_t trial)
{
    schedule_job plans;
    simulate_job job;
    sums all = {0, 0};
    job_open(&plans, input, nodes);
    for (int r = 0; r < plans.n_ranks; r++) {
        sums one = planned(&plans.s[r], plans.n_ranks, 1);
        all.messages += one.messages;
        all.bytes += one.bytes;
    }
    simulate_open(&job, input, nodes);
    disturb(&job.input, random, plans.n_ranks);
    zero_simulated r = simulate_run(&job);
    check_sums(&r, &all, input.collectives != ZERO_ALGORITHM_P2P, trial);
    simulate_close(&job);
    job_close(&plans);
}

TEST(all_traffic_is_simulated)
{
    for (uint64_t trial = 0; trial < 1000; trial += TEST_SHARE(5)) {
        uint64_t random = trial;
        int nodes;
        zero_model model = made_random(&random);
        zero_plan_input input = random_plan(&model, &random, &nodes);
        random_plan_on_cpu(&input);
        if (input.collectives == ZERO_ALGORITHM_MPI) input.collectives = ZERO_ALGORITHM_P2P;
        check_plan(input, nodes, &random, trial);
        zero_model_destroy(&model);
    }
}

/* Optimizer states, parameters and activations in a file; `owner` deals blocks unevenly. */
TEST(so_it_is_beside_a_file)
{
    zero_model model = simulate_gpt2(2, 256);
    for (uint64_t trial = 0; trial < 96; trial += TEST_SHARE(5)) {
        uint64_t random = trial;
        zero_plan_input input =
            zero_plan_input_standard(&model, 1 + made_draw(&random, 6), 0);
        input.stage = (int)(trial % 4);
        input.offload = (zero_offload)(ZERO_OFFLOAD_END + trial / 4 % 3);
        input.partition = (zero_partition_scheme)(trial / 12 % 2);
        input.recompute = trial / 24 % 2;
        input.offload_activations = input.recompute;
        input.offload_parameters = input.stage == 3 && made_draw(&random, 2);
        input.offload_depth = 1 + made_draw(&random, 4);
        input.serial = made_draw(&random, 4) == 0;
        input.accumulation = 1 + made_draw(&random, 2);
        if (input.offload == ZERO_OFFLOAD_BACKWARD) input.accumulation = 1;
        check_plan(input, input.n_ranks, &random, trial);
    }
    zero_model_destroy(&model);
}

/* Each stage has a program of its own, and equal ranks. */
TEST(so_it_is_in_pipelines)
{
    zero_model model = simulate_gpt2(4, 64);
    for (uint64_t trial = 0; trial < 64; trial += TEST_SHARE(5)) {
        uint64_t random = trial;
        const int P = 2 + made_draw(&random, 3), N = 1 + made_draw(&random, 3);
        zero_plan_input input = zero_plan_input_standard(&model, N, 0);
        input.pp = P;
        input.pp_schedule = (zero_pipeline_kind)made_draw(&random, ZERO_PIPELINE_KINDS);
        input.stage = made_draw(&random, 2);
        input.check_replicas = 0;
        input.recompute = made_draw(&random, 2);
        input.accumulation = 1 + made_draw(&random, 5);
        input.type = made_draw(&random, 2) ? ZERO_BF16 : ZERO_FP32;
        simulate_job job;
        sums all = {0, 0};
        simulate_open(&job, input, N);
        disturb(&job.input, &random, N * P);
        for (input.pp_stage = 0; input.pp_stage < P; input.pp_stage++) {
            zero_schedule s = compiled(&input);
            const sums one = planned(&s, N * P, 1);
            all.messages += N * one.messages;
            all.bytes += N * one.bytes;
            zero_schedule_destroy(&s);
        }
        const zero_simulated r = simulate_run(&job);
        check_sums(&r, &all, false, trial);
        simulate_close(&job);
    }
    zero_model_destroy(&model);
}

/* Replicas, and TP groups with a part of the model each. */
TEST(so_it_is_in_groups_of_every_kind)
{
    zero_model whole = simulate_gpt2(2, 64);
    for (uint64_t trial = 0; trial < 64; trial += TEST_SHARE(5)) {
        uint64_t random = trial;
        int tp = 1 << (trial % 3), R = 1 << (trial / 3 % 3),
            N = R * (1 + made_draw(&random, 3));
        zero_model model = whole;
        if (tp > 1) assert_ok(zero_model_share(&whole, (zero_share){tp, 0, tp}, &model));
        simulate_job job;
        zero_plan_input input = zero_plan_input_standard(&model, N, 0);
        input.stage = made_draw(&random, 4);
        input.shard_ranks = R;
        input.recompute = made_draw(&random, 2);
        input.partition_activations = input.recompute && tp > 1 && made_draw(&random, 2);
        input.accumulation = 1 + made_draw(&random, 2);
        input.collectives =
            made_draw(&random, 2) ? ZERO_ALGORITHM_P2P : ZERO_ALGORITHM_HIER;
        simulate_open(&job, input, input.collectives == ZERO_ALGORITHM_HIER ? N / R : N);
        disturb(&job.input, &random, N * tp);
        sums all = planned(&job.s, N * tp, tp); /* of rank 0, like all others */
        all.messages *= N * tp;
        all.bytes *= N * tp;
        zero_simulated r = simulate_run(&job);
        check_sums(&r, &all, input.collectives != ZERO_ALGORITHM_P2P, trial);
        simulate_close(&job);
        if (tp > 1) zero_model_destroy(&model);
    }
    zero_model_destroy(&whole);
}
