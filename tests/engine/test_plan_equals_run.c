/* Plan equals run: bytes and messages of collectives, and memory class by class, for random
 * models and random settings, of which some share their units in TP groups, and some shard over
 * fewer ranks than there are.
 *
 *     test_plan_equals_run [COUNT SEED] */
#define TEST_HAS_MAIN
#include "base/fail.h"
#include "plan/plan.h"
#include "sharding/checks.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"
#include "support/engine_test.h"
#include "support/hand_model.h"
#include "support/peers_test.h"

enum { NODES = 3, DEGREES = 4, SHARDS = 3 };

typedef struct {
    /* The same ranks, on 1, 2 and 3 nodes, in TP groups, in shard groups of all, 1 and 2 */
    zero_comm comm[NODES][DEGREES][SHARDS];
    test_rounds rounds;
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

/* A GPT-2 in half of the cases. */
static void draw_shape(dice *d, int slices, zero_type activations, zero_model *model)
{
    int64_t heads = slices * (1 + roll(d, 2));
    zero_shape shape = {.layers = 1 + roll(d, 3),
                        .heads = heads,
                        .hidden = heads * (1 + roll(d, 12)),
                        .seq = 1 + roll(d, 10),
                        .vocab = slices + roll(d, 50)};
    const int64_t kind = roll(d, 2 * ZERO_ARCHITECTURES);
    if (kind > ZERO_GPT2 && kind < ZERO_ARCHITECTURES) {
        shape.kind = &zero_architectures[kind];
        if (shape.kind->has & ZERO_HAS_HEADS) {
            shape.kv_heads = heads;
            shape.heads *= 1 + roll(d, 3);
            shape.head_size = 2 * (1 + roll(d, 5));
        } else {
            shape.hidden = 8 * heads * (1 + roll(d, 3));
            shape.rotary = roll(d, 2) == 0 ? 1.0 : 0.5;
        }
        shape.inner = slices * (1 + roll(d, 12));
        shape.tied = roll(d, 2) == 0;
    }
    assert_ok(zero_model_build(&shape, model));
    assert_ok(zero_model_activate(model, activations));
}

/* This rank's part of a model in `slices` slices, if these are more than one. */
static void draw_part(zero_comm *comm, int slices, const zero_model *model,
                      zero_model *part)
{
    const zero_comm *tp = zero_comm_tp(comm);
    zero_share share = {tp ? tp->size : 1, tp ? tp->rank : 0, slices};
    assert_ok(zero_model_share(model, share, part));
}

static bool is_power_of_two(int64_t n)
{
    return (n & (n - 1)) == 0;
}

/* True if `size` neighbours lie on nodes in the same way wherever they begin, as the windows of shard
 * groups need. */
static bool are_even(const zero_layout *layout, int size)
{
    const int *node_of = layout->node_of;
    bool even = true;
    for (int r = size; r < layout->size; r++)
        for (int q = r / size * size; q < r; q++)
            even = even &&
                   (node_of[q] == node_of[r]) == (node_of[q % size] == node_of[r % size]);
    return even;
}

static zero_algorithm draw_algorithm(dice *d, zero_comm *comm)
{
    zero_algorithm algorithm = (zero_algorithm)roll(d, ZERO_ALGORITHMS);
    int shared = zero_comm_shard(comm)->size * (comm->size / zero_comm_data(comm)->size);
    bool in_window = algorithm == ZERO_ALGORITHM_SHM || algorithm == ZERO_ALGORITHM_HIER;
    if (in_window && !are_even(&comm->layout, shared)) return ZERO_ALGORITHM_P2P;
    return in_window && comm->layout.n_nodes > 1 ? ZERO_ALGORITHM_HIER : algorithm;
}

/* True if parameters of stage 3 can wait in node memory for their next use. */
static bool has_node_memory(const zero_plan_input *plan, const zero_comm *shard)
{
    return plan->stage == 3 && plan->partition == ZERO_PARTITION_SLICE &&
           zero_algorithm_needs_window(plan->collectives, &shard->layout);
}

/* Neighbours in a TP group may lie otherwise on nodes in their ZeRO groups, and need other buckets. */
static int64_t common_least_bucket(zero_plan_input plan)
{
    int64_t least = test_least_bucket(plan), most;
    MPI_Allreduce(&least, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

/* Random settings on these ranks and nodes. */
static zero_plan_input draw_plan(dice *d, const zero_model *model, zero_comm *comm)
{
    const zero_comm *data = zero_comm_data(comm), *shard = zero_comm_shard(comm);
    const zero_type activations = zero_model_activations(model),
                    any = (zero_type)roll(d, 3);
    zero_plan_input plan = {
        .stage = (int)roll(d, 4),
        .type = activations == ZERO_FP32 ? any : activations,
        .activations = activations,
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
        .texts = roll(d, 3),
        .collectives = draw_algorithm(d, comm),
        .bucket = 1 << 20,
        .shard_ranks = shard == data ? 0 : shard->size,
    };
    if (plan.shard_ranks > 0) plan.partition = ZERO_PARTITION_SLICE;
    plan.node_parameters = has_node_memory(&plan, shard) && roll(d, 2) == 0;
    if (plan.collectives != ZERO_ALGORITHM_MPI && roll(d, 3) == 0)
        plan.message = ZERO_LEAST_MESSAGE + roll(d, 3000);
    bool may = is_power_of_two(data->size) && is_power_of_two(plan.accumulation);
    plan.reproducible = may && plan.collectives != ZERO_ALGORITHM_MPI && roll(d, 2) == 0;
    plan = zero_engine_place(plan, model, comm);
    int64_t more = roll(d, 1000);
    if (roll(d, 3) > 0) plan.bucket = common_least_bucket(plan) + more;
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
    const zero_comm *data = zero_comm_data(comm), *shard = zero_comm_shard(comm);
    const zero_comm *replicas = zero_comm_replicas(comm), *tp = zero_comm_tp(comm);
    zero_traffic sum = comm->traffic[ZERO_CONTROL];
    if (data != comm) zero_traffic_add(&sum, 1, &data->traffic[ZERO_CONTROL]);
    if (shard != data) zero_traffic_add(&sum, 1, &shard->traffic[ZERO_CONTROL]);
    if (replicas) zero_traffic_add(&sum, 1, &replicas->traffic[ZERO_CONTROL]);
    if (tp) zero_traffic_add(&sum, 1, &tp->traffic[ZERO_CONTROL]);
    return sum;
}

/* Step 1 sends the small messages that were planned; `before` is what was sent before it. A step that
 * overflows always compares. */
static void expect_control(const zero_engine *e, zero_traffic before, bool overflow)
{
    zero_traffic planned = zero_schedule_control_traffic(&e->schedule, ZERO_PROGRAM_STEP);
    zero_traffic compare = zero_schedule_compare_traffic(&e->schedule);
    if (overflow || zero_is_compared(&e->schedule)) zero_traffic_add(&planned, 1, &compare);
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
    if (trains) expect_control(e, control, out.overflow);
    ZERO_TRY(zero_engine_publish(e));
    in.step = 1;
    if (trains) ZERO_TRY(zero_engine_step(e, &source, &in, &out));
    ZERO_TRY(test_generate_text(e, &how, 1, 3, text));
    return zero_engine_evaluate(e, &source, &loss);
}

/* ---- the ledgers ---- */

/* All that a group moves; NULL: nothing. */
static zero_traffic moved_in(const zero_comm *group)
{
    zero_traffic sum = {0};
    for (int k = 0; group && k < ZERO_COLLECTIVE_KINDS; k++)
        zero_traffic_add(&sum, 1, &group->traffic[k]);
    return sum;
}

static zero_traffic moved_by(zero_comm *comm, zero_op op)
{
    const zero_comm *shard = zero_comm_shard(comm);
    const zero_collective_kind *kinds =
        op == ZERO_OP_REDUCE ? zero_reduce_kinds : zero_gather_kinds;
    if (op == ZERO_OP_JOIN) return moved_in(zero_comm_tp(comm));
    if (op == ZERO_OP_ALL_REDUCE) return moved_in(zero_comm_replicas(comm));
    zero_traffic sum = shard->traffic[kinds[0]];
    zero_traffic_add(&sum, 1, &shard->traffic[kinds[1]]);
    return sum;
}

/* The lines of the ledger, and the message if one moves something else. */
static const struct {
    zero_op op;
    const char *failure;
} ledger[] = {
    {ZERO_OP_REDUCE, "reductions move something else"},
    {ZERO_OP_ALL_REDUCE, "reductions over replicas move something else"},
    {ZERO_OP_GATHER, "gathers move something else"},
    {ZERO_OP_JOIN, "joins move something else"},
};
enum { LINES = COUNT(ledger) };

static bool check_traffic(const zero_engine *e, zero_op op, zero_traffic before,
                          zero_traffic after)
{
    zero_traffic planned = zero_engine_planned_traffic(e, op), measured, more;
    zero_duration duration;
    zero_engine_measured_traffic(e, op, &measured, &duration);
    /* A TP group has COLLECTs, too. The engine counts both from its own start. */
    if (op == ZERO_OP_JOIN) {
        zero_traffic collected = zero_engine_planned_traffic(e, ZERO_OP_COLLECT);
        zero_engine_measured_traffic(e, ZERO_OP_COLLECT, &more, &duration);
        zero_traffic_add(&planned, 1, &collected);
        zero_traffic_add(&measured, 1, &more);
        zero_traffic_add(&measured, 1, &before);
    }
    bool is_known = memcmp(&measured, &after, sizeof measured) == 0;
    zero_traffic_add(&after, -1, &before);
    return is_known && memcmp(&planned, &after, sizeof planned) == 0;
}

/* COLLECTs alone move what was planned for them. */
static bool check_collects(const zero_engine *e)
{
    zero_traffic planned = zero_engine_planned_traffic(e, ZERO_OP_COLLECT), moved;
    zero_duration spent;
    zero_engine_measured_traffic(e, ZERO_OP_COLLECT, &moved, &spent);
    return memcmp(&planned, &moved, sizeof planned) == 0;
}

static bool check_control(const zero_engine *e)
{
    zero_traffic planned = zero_engine_planned_control(e);
    zero_traffic measured = e->runner.control;
    return memcmp(&planned, &measured, sizeof planned) == 0;
}

static bool check_memory(const zero_engine *e)
{
    const zero_schedule *s = &e->schedule;
    zero_peak planned, measured;
    assert_ok(zero_runner_memory(&e->runner, &planned, &measured));
    return memcmp(&planned, &measured, sizeof planned) == 0 &&
           measured.bytes == s->peak_bytes &&
           memcmp(measured.of_class, s->class_peak, sizeof s->class_peak) == 0;
}

static void describe(const zero_plan_input *p, int64_t number, const char *what)
{
    print_error("run %d on %d ranks in TP groups of %d, %d nodes: %s: shards over %d, "
                "stage %d, %s, %s, "
                "%s, M %d, bucket %d, "
                "prefetch %d, persist %d, recompute %d, in pieces %d, reproducible %d, no "
                "overlap %d, "
                "forward only %d, %d units\n",
                (int)number, p->n_ranks * p->model->share.ranks, p->model->share.ranks,
                p->layout->n_nodes, what, p->shard_ranks, p->stage, zero_type_name(p->type),
                zero_partition_scheme_name(p->partition),
                zero_algorithm_name(p->collectives), p->accumulation, (int)p->bucket,
                (int)p->prefetch, (int)p->persist, p->recompute,
                (int)p->partition_activations, p->reproducible, p->serial, p->forward_only,
                p->model->n_units);
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
    zero_traffic before[LINES];
    for (int k = 0; k < LINES; k++) before[k] = moved_by(comm, ledger[k].op);
    zero_peer_bytes peers = peers_of(comm);
    zero_status st = zero_engine_init(&e, &spec, comm);
    if (st == ZERO_OK) st = walk_everything(&e, plan->model);
    expect(st == ZERO_OK, plan, number, st == ZERO_OK ? "" : zero_last_error());
    for (int k = 0; k < LINES; k++)
        expect(check_traffic(&e, ledger[k].op, before[k], moved_by(comm, ledger[k].op)),
               plan, number, ledger[k].failure);
    expect(check_collects(&e), plan, number, "COLLECTs move something else");
    expect(check_peers(&e, &peers), plan, number, "other bytes from rank to rank");
    expect(check_rows(&e), plan, number, "rows of ranks do not add up");
    expect(check_control(&e), plan, number, "programs send other small messages");
    expect(check_memory(&e), plan, number, "memory is used otherwise");
    zero_engine_destroy(&e);
}

/* Ranks in TP groups of `tp`, and half of the time in shard groups. If the ranks cannot be divided
 * so, they are not divided. */
static zero_comm *draw_groups(dice *d, zero_comm nodes[DEGREES][SHARDS], int64_t tp)
{
    zero_comm *comm = &nodes[tp - 1][roll(d, 2) * roll(d, SHARDS)];
    if (comm->size == 0) comm = &nodes[tp - 1][0];
    return comm->size == 0 ? &nodes[0][0] : comm;
}

/* True if the ranks of a TP group can keep equal pieces of a block's input. */
static bool can_be_cut(const zero_plan_input *plan)
{
    const zero_unit *unit = &plan->model->units[0];
    int64_t out = unit->sizes(unit, plan->micro_batch, plan->seq).out;
    return plan->model->share.ranks > 1 &&
           zero_unit_room(unit, out) % plan->model->share.ranks == 0;
}

TEST(every_run_moves_and_uses_what_was_planned)
{
    job *j = *state;
    for (int64_t i = 0; i < j->rounds.count; i++) {
        dice d = {.rng = {.purpose = ZERO_RNG_TEST,
                          .seed = j->rounds.seed,
                          .sample = (uint64_t)i}};
        zero_model model, part = {0};
        bool is_shared = i % 4 == 2; /* perhaps by one rank alone */
        int64_t k = roll(&d, NODES), degree = is_shared ? 1 + roll(&d, DEGREES) : 1;
        zero_comm *comm = draw_groups(&d, j->comm[k], degree);
        const zero_comm *tp = zero_comm_tp(comm);
        int slices = is_shared ? (tp ? tp->size : 1) << roll(&d, 3) : 1;
        if (i % 2 == 0)
            draw_shape(&d, slices, (zero_type)(i / 2 % 3), &model);
        else
            hand_model(&d.rng, &d.next, &model);
        if (slices > 1) draw_part(comm, slices, &model, &part);
        zero_plan_input plan = draw_plan(&d, slices > 1 ? &part : &model, comm);
        plan.partition_activations = plan.recompute && i % 8 == 2 && can_be_cut(&plan);
        check_run(comm, &plan, i);
        zero_model_destroy(&part);
        zero_model_destroy(&model);
    }
}

/* Six ranks on two nodes: a TP group of two lies in one node, the next one in both. */
TEST(tp_groups_that_lie_otherwise_on_nodes_send_what_was_planned)
{
    job *j = *state;
    zero_comm *comm = &j->comm[1][1][0];
    dice d = {.rng = {.purpose = ZERO_RNG_TEST, .seed = j->rounds.seed}};
    zero_model model, part;
    if (comm->size != 6) return;
    draw_shape(&d, 2, ZERO_FP32, &model);
    draw_part(comm, 2, &model, &part);
    for (int stage = 0; stage <= 3; stage++) {
        zero_plan_input plan = {.stage = stage,
                                .micro_batch = 1,
                                .accumulation = 2,
                                .check_replicas = 1,
                                .collectives = ZERO_ALGORITHM_P2P,
                                .bucket = 1 << 20};
        plan = zero_engine_place(plan, &part, comm);
        check_run(comm, &plan, stage);
    }
    zero_model_destroy(&part);
    zero_model_destroy(&model);
}

static size_t needed_in_stage(zero_plan_input plan, int stage)
{
    zero_schedule s;
    plan.stage = stage;
    assert_ok(zero_schedule_compile(&s, &plan));
    size_t needed = zero_plan_needed(&s);
    zero_schedule_destroy(&s);
    return needed;
}

/* A model of many layers, so that what stage 2 shards outweighs a group's gradient in flight. */
TEST(between_the_needs_of_two_stages_only_the_higher_one_trains)
{
    job *j = *state;
    zero_comm *comm = &j->comm[0][0][0];
    zero_model model;
    zero_shape shape = {
        .layers = 20, .hidden = 32, .heads = 2, .seq = 8, .vocab = 40, .seed = 5};
    if (comm->size < 3) return; /* two ranks gain less than a gradient in flight costs */
    all_ok(zero_model_build(&shape, &model));
    zero_plan_input plan = zero_engine_place(
        (zero_plan_input){.micro_batch = 1, .accumulation = 1, .bucket = 1 << 20}, &model,
        comm);
    size_t more = needed_in_stage(plan, 1), less = needed_in_stage(plan, 2);
    assert_all(less < more);
    zero_engine_spec spec = {.plan = plan,
                             .backend = &zero_backend_cpu,
                             .eval_batches = 1,
                             .memory_limit = less + (more - less) / 2};
    zero_engine e;
    spec.plan.stage = 1;
    all_fail(zero_engine_init(&e, &spec, comm), ZERO_ERR_NOMEM, "are available");
    spec.plan.stage = 2;
    all_ok(zero_engine_init(&e, &spec, comm));
    all_ok(walk_everything(&e, &model));
    zero_engine_destroy(&e);
    zero_model_destroy(&model);
}

static void open_group(job *j, int k, int tp, int shard)
{
    static const int shard_ranks[SHARDS] = {0, 1, 2};
    int n = test_size / tp, shards = shard_ranks[shard];
    zero_comm *comm = &j->comm[k][tp - 1][shard];
    if (test_size % tp != 0 || (shards > 0 && (n % shards != 0 || n == shards))) return;
    test_split(test_size, k < test_size ? k + 1 : 1, comm);
    all_ok(zero_comm_divide(comm, tp, shards));
}

/* Sizes that do not divide the ranks have no group. */
static void open_groups(job *j)
{
    for (int k = 0; k < NODES; k++)
        for (int tp = 1; tp <= DEGREES; tp++)
            for (int shard = 0; shard < SHARDS; shard++) open_group(j, k, tp, shard);
}

static void close_groups(job *j)
{
    for (int k = 0; k < NODES * DEGREES * SHARDS; k++)
        zero_comm_destroy(&j->comm[0][0][0] + k);
}

int main(int argc, char **argv)
{
    job j = {.rounds = test_rounds_of(argc, argv, 200)};
    test_begin(&argc, &argv);
    around.state = &j;
    open_groups(&j);
    int failed = run_here(NULL, NULL);
    close_groups(&j);
    return test_end(failed);
}
