/* Collectives in flight, as a simulation tells them: each of the program once on each rank, on all ranks
 * of its group at once, with the bytes that the plan counts. */
#include "support/planned.h"
#include "support/simulate_job.h"

#include "base/fail.h"
#include "lists/algorithm.h"

#define RANKS 12 /* at most */
#define CALLS 64

typedef struct {
    double begin, end; /* the last begin and the first end of a call's members */
    int members, size;
} meeting;

typedef struct {
    int steps, ranks, tp, shard;
    int64_t sent[RANKS], n[RANKS];                     /* of those begun in the last step */
    meeting calls[2][ZERO_FAMILY_PARTS][RANKS][CALLS]; /* by step, part, first member */
    bool is_slice;
} reader;

static void meet(meeting *m, const zero_simulated_flight *f)
{
    m->begin = m->members == 0 ? f->begin : fmax(m->begin, f->begin);
    m->end = m->members == 0 ? f->end : fmin(m->end, f->end);
    m->size = f->layout->size;
    m->members++;
}

/* A group by its lowest rank: members are ranks in order. */
static int group_of(const reader *r, const zero_simulated_flight *f)
{
    int d = f->rank / r->tp, p = f->rank % r->tp, R = r->shard;
    if (f->part == ZERO_TP_GROUP) return f->rank - p;
    return (f->part == ZERO_REPLICA_GROUP ? d % R : d - d % R) * r->tp + p;
}

static void read_flight(void *arg, const zero_simulated_flight *f)
{
    reader *r = arg;
    zero_traffic traffic;
    assert_in_range(f->rank, 0, r->ranks - 1);
    assert_in_range(f->step, r->steps - 2, r->steps - 1);
    assert_true(f->end >= f->begin && f->end >= 0.0 && f->call < CALLS);
    meet(&r->calls[f->step - (r->steps - 2)][f->part][group_of(r, f)][f->call], f);
    if (f->step < r->steps - 1) return;
    assert_true(f->begin >= 0.0);
    assert_ok(zero_collective_traffic(f->spec, f->layout, f->member, &traffic));
    r->sent[f->rank] += zero_traffic_total(&traffic).bytes_sent;
    r->n[f->rank]++;
}

/* Counts for one rank in a step. */
static int64_t planned_bytes(const zero_schedule *s)
{
    static const zero_op ops[] = {ZERO_OP_REDUCE, ZERO_OP_GATHER, ZERO_OP_ALL_REDUCE,
                                  ZERO_OP_JOIN, ZERO_OP_COLLECT};
    int64_t bytes = 0;
    for (size_t k = 0; k < COUNT(ops); k++) {
        zero_traffic t = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, ops[k]);
        bytes += zero_traffic_total(&t).bytes_sent;
    }
    return bytes;
}

static void check_meetings(const reader *r)
{
    for (int step = 0; step < 2; step++)
        for (int part = 0; part < ZERO_FAMILY_PARTS; part++)
            for (int first = 0; first < RANKS; first++)
                for (int call = 0; call < CALLS; call++) {
                    const meeting *m = &r->calls[step][part][first][call];
                    if (m->members == 0) continue;
                    if (step == 1) assert_int_equal(m->members, m->size);
                    if (r->is_slice) assert_true(m->begin <= m->end);
                }
}

static void check(zero_plan_input in, int nodes)
{
    simulate_job job;
    reader *r = calloc(1, sizeof *r);
    assert_non_null(r);
    simulate_open(&job, in, nodes);
    int tp = in.model->share.ranks > 0 ? in.model->share.ranks : 1;
    *r =
        (reader){.steps = 3, .ranks = in.n_ranks * tp, .tp = tp, .shard = job.s.shard.size};
    r->is_slice = in.partition == ZERO_PARTITION_SLICE;
    job.input.steps = r->steps;
    job.input.flight = read_flight;
    job.input.arg = r;
    job.input.poll = 1e-5;
    job.input.n_slow = 1;
    job.input.slow[0] = (zero_slow_rank){.rank = r->ranks - 1, .factor = 0.7};
    (void)simulate_run(&job);
    check_meetings(r);
    int64_t sum = 0, all = 0;
    for (int rank = 0; rank < in.n_ranks; rank++) {
        zero_plan_input other = in;
        other.rank = rank;
        other.layout = &job.layout;
        zero_schedule s = compiled(&other);
        for (int p = 0; p < tp; p++) {
            assert_true(r->sent[rank * tp + p] == planned_bytes(&s));
            sum += r->n[rank * tp + p];
        }
        all += planned_bytes(&s);
        zero_schedule_destroy(&s);
    }
    assert_true(sum == r->n[0] * r->ranks);
    if (in.n_ranks > 1) assert_true(all > 0 && r->n[0] > 0);
    simulate_close(&job);
    free(r);
}

TEST(flights_are_those_of_the_plan)
{
    zero_model model = simulate_gpt2(2, 64);
    for (int stage = 0; stage < 4; stage++)
        for (int ranks = 1; ranks <= 4; ranks++) {
            zero_plan_input in = zero_plan_input_standard(&model, ranks, 0);
            in.stage = stage;
            check(in, ranks);
            in.accumulation = 2;
            check(in, ranks);
            in.collectives = ZERO_ALGORITHM_HIER;
            if (ranks % 2 == 0) check(in, 2);
            in.partition = ZERO_PARTITION_OWNER;
            in.collectives = ZERO_ALGORITHM_P2P;
            check(in, ranks);
        }
    zero_model_destroy(&model);
}

TEST(so_they_are_in_groups)
{
    zero_model whole = simulate_gpt2(2, 64), model;
    assert_ok(zero_model_share(&whole, (zero_share){2, 0, 2}, &model));
    for (int stage = 0; stage < 4; stage++) {
        zero_plan_input in = zero_plan_input_standard(&model, 3, 0);
        in.stage = stage;
        check(in, 3);
        in.n_ranks = 6;
        in.shard_ranks = 2;
        in.recompute = true;
        in.partition_activations = 1;
        check(in, 6);
    }
    zero_model_destroy(&model);
    zero_model_destroy(&whole);
}
