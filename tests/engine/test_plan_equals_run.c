/* Plan equals run: bytes and messages of collectives, and memory class by class, for random
 * models and random settings, of which some share their units in TP groups.
 *
 *     test_plan_equals_run [COUNT SEED] */
#include "base/fail.h"
#include "engine/plan.h"
#include "sharding/checks.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"
#include "support/engine_test.h"
#include "support/hand_model.h"

enum { NODES = 3, DEGREES = 4 };

typedef struct {
    zero_comm comm[NODES][DEGREES]; /* the same ranks, on 1, 2 and 3 nodes, in TP groups */
    int64_t count;
    uint64_t seed;
} job;

/* The source of random numbers. */
typedef struct {
    zero_rng rng;
    uint64_t next;
} dice;

static int64_t roll(dice *d, int64_t n)
{
    return hand_draw(&d->rng, &d->next, n);
}

/* ---- what is run ---- */

static void draw_gpt2(dice *d, int slices, zero_model *model)
{
    int64_t heads = slices * (1 + roll(d, 2));
    zero_gpt2_shape shape = {.layers = 1 + roll(d, 3),
                             .heads = heads,
                             .hidden = heads * (1 + roll(d, 12)),
                             .seq = 1 + roll(d, 10),
                             .vocab = slices + roll(d, 50)};
    assert_int_equal(zero_gpt2_describe(&shape, model), ZERO_OK);
}

/* This rank's part of a model in `slices` slices, if these are more than one. */
static void draw_part(zero_comm *comm, int slices, const zero_model *model,
                      zero_model *part)
{
    const zero_comm *tp = zero_comm_tp(comm);
    zero_share share = {tp ? tp->size : 1, tp ? tp->rank : 0, slices};
    assert_int_equal(zero_model_share(model, share, part), ZERO_OK);
}

static bool is_power_of_two(int64_t n)
{
    return (n & (n - 1)) == 0;
}

/* Random settings on these ranks and nodes. */
static zero_plan_input draw_plan(dice *d, const zero_model *model, zero_comm *comm)
{
    const zero_comm *data = zero_comm_data(comm);
    zero_plan_input plan = {
        .stage = (int)roll(d, 4),
        .type = (zero_type)roll(d, 3),
        .partition = (zero_partition_scheme)roll(d, 2),
        .micro_batch = 1 + roll(d, 3),
        .accumulation = 1 + (int)roll(d, 4),
        .recompute = roll(d, 2) == 0,
        .prefetch = roll(d, 5),
        .persist = roll(d, 2) * roll(d, 2000),
        .serial = roll(d, 3) == 0,
        .forward_only = roll(d, 4) == 0,
        .check_replicas = (int)roll(d, 3),
        .check_memory = (int)roll(d, 2),
        .collectives = (zero_algorithm)roll(d, ZERO_ALGORITHMS),
        .bucket = 1 << 20,
    };
    if (comm->layout.n_nodes > 1 && plan.collectives == ZERO_ALGORITHM_SHM)
        plan.collectives = ZERO_ALGORITHM_HIER;
    bool may = is_power_of_two(data->size) && is_power_of_two(plan.accumulation);
    plan.reproducible = may && plan.collectives != ZERO_ALGORITHM_MPI && roll(d, 2) == 0;
    plan = test_plan(&plan, model, comm);
    int64_t more = roll(d, 1000);
    if (roll(d, 3) > 0) plan.bucket = test_least_bucket(plan) + more;
    return plan;
}

static void blank_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                         void *targets)
{
    const zero_model *model = arg;
    (void)step;
    (void)i;
    memset(inputs, 0, (size_t)T * model->input_bytes);
    memset(targets, 0, (size_t)T * model->target_bytes);
}

/* Small messages of a family of groups. */
static zero_traffic control_of(zero_comm *comm)
{
    const zero_comm *data = zero_comm_data(comm), *tp = zero_comm_tp(comm);
    zero_traffic sum = comm->traffic[ZERO_CONTROL];
    if (data != comm) zero_traffic_add(&sum, 1, &data->traffic[ZERO_CONTROL]);
    if (tp) zero_traffic_add(&sum, 1, &tp->traffic[ZERO_CONTROL]);
    return sum;
}

/* Step 1 sends the small messages that were planned; `before` is what was sent before it. */
static void expect_control(const zero_engine *e, zero_traffic before)
{
    zero_traffic planned = zero_schedule_control_traffic(&e->schedule, ZERO_PROGRAM_STEP);
    zero_traffic compare = zero_schedule_compare_traffic(&e->schedule);
    if (e->schedule.input.check_replicas == 1) zero_traffic_add(&planned, 1, &compare);
    zero_traffic sent = control_of(e->runner.comm);
    zero_traffic_add(&sent, -1, &before);
    assert_all(memcmp(&planned, &sent, sizeof planned) == 0);
}

/* Walks every program at least once. */
static zero_status walk_everything(zero_engine *e, const zero_model *model)
{
    const zero_source source = {.sample = blank_sample, .arg = model};
    const zero_sampling how = {.temperature = 1.0, .known = model->vocab};
    zero_step_input in = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
    zero_run_output out;
    int32_t text[4] = {0};
    double loss;
    bool trains = !e->spec.plan.forward_only;
    zero_traffic control = control_of(e->runner.comm);
    if (trains) ZERO_TRY(zero_engine_step(e, &source, &in, &out));
    if (trains) expect_control(e, control);
    ZERO_TRY(zero_engine_publish(e));
    in.step = 1;
    if (trains) ZERO_TRY(zero_engine_step(e, &source, &in, &out));
    ZERO_TRY(zero_engine_generate(e, &how, 1, 3, text));
    return zero_engine_evaluate(e, &source, &loss);
}

/* ---- the ledgers ---- */

static zero_traffic moved_by(zero_comm *comm, zero_op op)
{
    const zero_comm *data = zero_comm_data(comm), *tp = zero_comm_tp(comm);
    const zero_collective_kind *kinds =
        op == ZERO_OP_REDUCE ? zero_reduce_kinds : zero_gather_kinds;
    zero_traffic sum = {0};
    for (int k = 0; op == ZERO_OP_JOIN && tp && k < ZERO_COLLECTIVE_KINDS; k++)
        zero_traffic_add(&sum, 1, &tp->traffic[k]);
    if (op == ZERO_OP_JOIN) return sum;
    sum = data->traffic[kinds[0]];
    zero_traffic_add(&sum, 1, &data->traffic[kinds[1]]);
    return sum;
}

static bool check_traffic(const zero_engine *e, zero_op op, zero_traffic before,
                          zero_traffic after)
{
    zero_traffic planned = zero_engine_planned_traffic(e, op);
    zero_traffic_add(&after, -1, &before);
    return memcmp(&planned, &after, sizeof planned) == 0;
}

static bool check_control(const zero_engine *e)
{
    zero_traffic planned = zero_engine_planned_control(e);
    zero_traffic measured = zero_engine_measured_control(e);
    return memcmp(&planned, &measured, sizeof planned) == 0;
}

static bool check_memory(const zero_engine *e)
{
    const zero_schedule *s = &e->schedule;
    zero_peak planned, measured;
    assert_int_equal(zero_runner_memory(&e->runner, &planned, &measured), ZERO_OK);
    return memcmp(&planned, &measured, sizeof planned) == 0 &&
           measured.bytes == s->peak_bytes &&
           memcmp(measured.of_class, s->class_peak, sizeof s->class_peak) == 0;
}

static void describe(const zero_plan_input *p, int64_t number, const char *what)
{
    print_error("run %d on %d ranks in TP groups of %d, %d nodes: %s: stage %d, %s, %s, "
                "%s, M %d, bucket %d, "
                "prefetch %d, persist %d, recompute %d, reproducible %d, no overlap %d, "
                "forward only %d, %d units\n",
                (int)number, p->n_ranks * p->model->share.ranks, p->model->share.ranks,
                p->layout->n_nodes, what, p->stage, zero_type_name(p->type),
                zero_partition_scheme_name(p->partition),
                zero_algorithm_name(p->collectives), p->accumulation, (int)p->bucket,
                (int)p->prefetch, (int)p->persist, p->recompute, p->reproducible, p->serial,
                p->forward_only, p->model->n_units);
}

static void expect(bool ok, const zero_plan_input *plan, int64_t number, const char *what)
{
    if (!ok) describe(plan, number, what);
    assert_all(ok);
}

static void check_run(zero_comm *comm, const zero_plan_input *plan, int64_t number)
{
    zero_engine e;
    zero_engine_spec spec = {
        .plan = *plan, .backend = &zero_backend_cpu, .seed = number, .eval_batches = 1};
    zero_traffic reduced = moved_by(comm, ZERO_OP_REDUCE);
    zero_traffic gathered = moved_by(comm, ZERO_OP_GATHER);
    zero_traffic joined = moved_by(comm, ZERO_OP_JOIN);
    zero_status st = zero_engine_init(&e, &spec, comm);
    if (st == ZERO_OK) st = walk_everything(&e, plan->model);
    expect(st == ZERO_OK, plan, number, st == ZERO_OK ? "" : zero_last_error());
    expect(check_traffic(&e, ZERO_OP_REDUCE, reduced, moved_by(comm, ZERO_OP_REDUCE)), plan,
           number, "reductions move something else");
    expect(check_traffic(&e, ZERO_OP_GATHER, gathered, moved_by(comm, ZERO_OP_GATHER)),
           plan, number, "gathers move something else");
    expect(check_traffic(&e, ZERO_OP_JOIN, joined, moved_by(comm, ZERO_OP_JOIN)), plan,
           number, "joins move something else");
    expect(check_control(&e), plan, number, "programs send other small messages");
    expect(check_memory(&e), plan, number, "memory is used otherwise");
    zero_engine_destroy(&e);
}

static void every_run_moves_and_uses_what_was_planned(void **state)
{
    job *j = *state;
    for (int64_t i = 0; i < j->count; i++) {
        dice d = {
            .rng = {.purpose = ZERO_RNG_TEST, .seed = j->seed, .sample = (uint64_t)i}};
        zero_model model, part = {0};
        zero_comm *nodes = j->comm[roll(&d, NODES)], *comm = &nodes[0];
        int slices = 1;
        if (i % 4 == 2) { /* shared, perhaps by one rank alone */
            comm = &nodes[roll(&d, DEGREES)];
            if (comm->size == 0) comm = &nodes[0];
            const zero_comm *tp = zero_comm_tp(comm);
            slices = (tp ? tp->size : 1) << roll(&d, 3);
        }
        if (i % 2 == 0)
            draw_gpt2(&d, slices, &model);
        else
            hand_model(&d.rng, &d.next, &model);
        if (slices > 1) draw_part(comm, slices, &model, &part);
        zero_plan_input plan = draw_plan(&d, slices > 1 ? &part : &model, comm);
        check_run(comm, &plan, i);
        zero_model_destroy(&part);
        zero_model_destroy(&model);
    }
}

static size_t needed_in_stage(zero_plan_input plan, int stage)
{
    zero_schedule s;
    plan.stage = stage;
    assert_int_equal(zero_schedule_compile(&s, &plan), ZERO_OK);
    size_t needed = zero_plan_needed(&s);
    zero_schedule_destroy(&s);
    return needed;
}

/* A model of many layers, so that what stage 2 shards outweighs a group's gradient in flight. */
static void between_the_needs_of_two_stages_only_the_higher_one_trains(void **state)
{
    job *j = *state;
    zero_comm *comm = &j->comm[0][0];
    zero_model model;
    zero_gpt2_shape shape = {
        .layers = 20, .hidden = 32, .heads = 2, .seq = 8, .vocab = 40, .seed = 5};
    if (comm->size < 3) return; /* two ranks gain less than a gradient in flight costs */
    assert_all(zero_gpt2_describe(&shape, &model) == ZERO_OK);
    zero_plan_input plan = {.model = &model,
                            .micro_batch = 1,
                            .seq = 8,
                            .accumulation = 1,
                            .n_ranks = comm->size,
                            .rank = comm->rank,
                            .layout = &comm->layout,
                            .bucket = 1 << 20};
    size_t more = needed_in_stage(plan, 1), less = needed_in_stage(plan, 2);
    assert_all(less < more);
    zero_engine_spec spec = {.plan = plan,
                             .backend = &zero_backend_cpu,
                             .eval_batches = 1,
                             .memory_limit = less + (more - less) / 2};
    zero_engine e;
    spec.plan.stage = 1;
    assert_all(zero_engine_init(&e, &spec, comm) == ZERO_ERR_NOMEM);
    assert_all(strstr(zero_last_error(), "are available") != NULL);
    spec.plan.stage = 2;
    assert_all(zero_engine_init(&e, &spec, comm) == ZERO_OK);
    assert_all(walk_everything(&e, &model) == ZERO_OK);
    zero_engine_destroy(&e);
    zero_model_destroy(&model);
}

/* Degrees that do not divide the ranks have no group. */
static void open_groups(job *j)
{
    for (int k = 0; k < NODES; k++)
        for (int tp = 1; tp <= DEGREES; tp++) {
            if (test_size % tp != 0) continue;
            zero_comm *comm = &j->comm[k][tp - 1];
            test_split(test_size, k < test_size ? k + 1 : 1, comm);
            assert_all(zero_comm_divide(comm, tp) == ZERO_OK);
        }
}

int main(int argc, char **argv)
{
    job j = {.count = 200, .seed = 1};
    test_begin(&argc, &argv);
    if (argc == 3) {
        j.count = strtoll(argv[1], NULL, 10);
        j.seed = strtoull(argv[2], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_run_moves_and_uses_what_was_planned, &j),
        cmocka_unit_test_prestate(
            between_the_needs_of_two_stages_only_the_higher_one_trains, &j)};
    open_groups(&j);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int k = 0; k < NODES * DEGREES; k++) zero_comm_destroy(&j.comm[0][0] + k);
    return test_end(failed);
}
