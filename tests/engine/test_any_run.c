/* Any plan of any model does in a run what it says, and changes no bit.
 *
 * Models, ranks and settings are drawn at random: architectures and models that compute next to
 * nothing, TP groups, shard groups, nodes, a device, files. Bytes and messages of collectives, from
 * rank to rank, memory class by class, and transfers of files are those planned. Losses, norms,
 * evaluations, texts and the digest of the states are those of the plainest run: as few ranks as
 * have the same sums, each with whole units in memory, and nothing in flight.
 *
 *     test_any_run [COUNT SEED] */
#define TEST_HAS_MAIN
#include "base/fail.h"
#include "comm/check.h"
#include "engine/file_ledger.h"
#include "fake/fake.h"
#include "plan/plan.h"
#include "sharding/checks.h"
#include "sharding/compile.h"
#include "sharding/offload.h"
#include "sharding/schedule_exchange.h"
#include "support/job_place.h"
#include "support/peers_test.h"
#include "support/planned.h"
#include "support/random_run.h"
#include "support/same_bits.h"

enum { NODES = 3, DEGREES = 4, SHARDS = 3, WORDS = 3, RANKS = 8, PROBE = 7 };

typedef struct {
    /* The same ranks, on 1, 2 and 3 nodes, in TP groups, in shard groups of all, 1 and 2 */
    zero_comm comm[NODES][DEGREES][SHARDS];
    zero_comm first[RANKS + 1]; /* the first n ranks */
    /* The same in pipelines of 1 to 4 stages (one stage: none), in TP groups of 1 and 2, in shard
     * groups of all and 1 */
    zero_comm piped[DEGREES][2][2];
    test_rounds rounds;
} job;

/* ---- the ledgers ---- */

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
    assert_true(memcmp(&planned, &sent, sizeof planned) == 0);
}

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
    if (op == ZERO_OP_SEND) return moved_in(zero_comm_pipe(comm));
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
    {ZERO_OP_SEND, "stages send something else"},
};
enum { LINES = COUNT(ledger) };

static bool check_traffic(const zero_engine *e, zero_op op, zero_traffic before,
                          zero_traffic after)
{
    zero_traffic planned = zero_engine_planned_traffic(e, op), measured, more;
    zero_duration duration;
    zero_engine_measured_traffic(e, op, &measured, &duration);
    /* Also COLLECTs, or RECEIVEs. The engine counts both from its own start. */
    if (op == ZERO_OP_JOIN || op == ZERO_OP_SEND) {
        const zero_op also = op == ZERO_OP_JOIN ? ZERO_OP_COLLECT : ZERO_OP_RECEIVE;
        zero_traffic collected = zero_engine_planned_traffic(e, also);
        zero_engine_measured_traffic(e, also, &more, &duration);
        if (memcmp(&collected, &more, sizeof more) != 0) return false;
        zero_traffic_add(&planned, 1, &collected);
        zero_traffic_add(&measured, 1, &more);
        zero_traffic_add(&measured, 1, &before);
    }
    bool is_known = memcmp(&measured, &after, sizeof measured) == 0;
    zero_traffic_add(&after, -1, &before);
    return is_known && memcmp(&planned, &after, sizeof planned) == 0;
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

/* Pages of the file in the page cache would be memory that no plan knows of. */
static bool check_file(const zero_engine *e)
{
    const zero_scratch *scratch = e->runner.tier.scratch;
    zero_file_ledger l = zero_runner_file_ledger(&e->runner);
    if (!scratch) return true;
    const zero_scratch_file *file = zero_scratch_get_file(scratch);
    return zero_file_ledger_is_as_planned(&l) &&
           memcmp(l.planned_bytes, l.measured_bytes, sizeof l.planned_bytes) == 0 &&
           disk_place_cached_pages(file->fd, file->bytes) == 0;
}

/* ---- runs ---- */

typedef struct {
    double loss[TEST_STEPS], norm[TEST_STEPS], computed, evaluated[2];
    int32_t text[1 + WORDS];
    bool has_cache;
    int64_t skipped;
    char digest[33];
} outcome;

/* One step; `skips`: its gradient overflows. */
static zero_status step(zero_engine *e, const drawn *w, int64_t number, bool skips,
                        outcome *out)
{
    const zero_source source = {.sample = draw_sample, .arg = &w->whole};
    const zero_step_input in = {.step = number,
                                .lr = 1e-2,
                                .beta1 = 0.9,
                                .beta2 = 0.95,
                                .eps = 1e-8,
                                .weight_decay = 0.1,
                                .clip = w->clip};
    zero_run_output last;
    const zero_traffic control = control_of(e->runner.comm);
    if (skips) e->loss_scale.scale = 0x1p60f;
    if (number == PROBE) {
        ZERO_TRY(zero_engine_compute(e, &source, &in, &last));
        out->computed = last.grad_norm;
        return ZERO_OK;
    }
    ZERO_TRY(zero_engine_step(e, &source, &in, &last));
    if (number == 0 && w->plan.offload == ZERO_OFFLOAD_OFF)
        expect_control(e, control, last.overflow);
    if (skips) e->loss_scale.scale = 1.0f;
    out->loss[number] = last.loss;
    out->norm[number] = last.grad_norm;
    return ZERO_OK;
}

/* Walks every program at least once. Evaluations, a gradient and texts stand between steps: each needs
 * the states of the step before. */
static zero_status walk_everything(zero_engine *e, const drawn *w, outcome *out)
{
    const zero_source source = {.sample = draw_sample, .arg = &w->whole};
    const zero_sampling how = {.temperature = 1.0, .known = w->whole.vocab};
    if (!w->plan.forward_only) {
        ZERO_TRY(step(e, w, 0, false, out));
        ZERO_TRY(zero_engine_evaluate(e, &source, &out->evaluated[0]));
        ZERO_TRY(step(e, w, 1, w->skips, out));
        ZERO_TRY(step(e, w, PROBE, false, out));
        ZERO_TRY(zero_engine_publish(e));
        ZERO_TRY(step(e, w, 2, false, out));
        out->skipped = e->skipped;
    }
    ZERO_TRY(test_generate_text(e, &how, 1, WORDS, out->text));
    out->has_cache = zero_schedule_has_cache(&e->schedule);
    ZERO_TRY(zero_engine_evaluate(e, &source, &out->evaluated[1]));
    return w->plan.forward_only ? ZERO_OK : zero_engine_settle(e);
}

static void expect(bool ok, const drawn *w, const char *what)
{
    test_setup setup = {.plan = w->plan, .tp = w->plan.model->share.ranks};
    setup.slices = w->slices;
    setup.fake_nodes = w->plan.layout->n_nodes;
    if (!ok) {
        print_error("run %d, %d units: %s: ", (int)w->number, w->whole.n_units, what);
        test_tell(&setup);
    }
    assert_all(ok);
}

static outcome run(zero_comm *comm, const drawn *w)
{
    zero_engine e;
    zero_engine_spec spec = {.plan = w->plan,
                             .backend = w->backend,
                             .seed = w->number,
                             .eval_batches = 1,
                             .directory = test_place};
    zero_traffic before[LINES];
    outcome out;
    memset(&out, 0, sizeof out);
    for (int k = 0; k < LINES; k++) before[k] = moved_by(comm, ledger[k].op);
    zero_peer_bytes peers = peers_of(comm);
    zero_status st = zero_engine_init(&e, &spec, comm);
    if (st == ZERO_OK) st = walk_everything(&e, w, &out);
    if (st != ZERO_OK) fail_msg("run %d: %s", (int)w->number, zero_last_error());
    const char *wrong = NULL;
    for (int k = 0; k < LINES; k++)
        if (!check_traffic(&e, ledger[k].op, before[k], moved_by(comm, ledger[k].op)))
            wrong = ledger[k].failure;
    if (!check_peers(&e, &peers)) wrong = "other bytes from rank to rank";
    if (!check_rows(&e)) wrong = "rows of ranks do not add up";
    if (!test_control_is_planned(&e)) wrong = "programs send other small messages";
    if (!check_memory(&e)) wrong = "memory is used otherwise";
    if (!check_file(&e)) wrong = "the file is used otherwise";
    if (wrong) fail_msg("run %d: %s", (int)w->number, wrong);
    if (!w->plan.forward_only) assert_ok(zero_engine_digest(&e, out.digest));
    zero_engine_destroy(&e);
    return out;
}

/* The plainest run with the same sums: one rank, if sums are along one tree, else one for each that
 * has data of its own. Gradients that wait for the next step are others. */
static outcome run_plainly(job *j, const drawn *w)
{
    drawn one = *w;
    const zero_plan_input *plan = &w->plan;
    int ranks = plan->reproducible ? 1 : plan->n_ranks;
    bool is_tree = plan->reproducible || plan->accumulation == 1;
    bool is_delayed = plan->offload == ZERO_OFFLOAD_DELAYED;
    zero_model model = {0};
    zero_comm *comm = &j->first[ranks];
    outcome out;
    memset(&out, 0, sizeof out);
    if (w->backend == &zero_backend_fake) one.backend = &zero_backend_cpu;
    if (comm->size > 0) {
        const zero_model *of = part_of(&w->whole, (zero_share){1, 0, w->slices}, &model);
        zero_plan_input plain = {.stage = is_tree || plan->stage < 2 ? 0 : 2,
                                 .type = plan->type,
                                 .activations = plan->activations,
                                 .micro_batch = plan->micro_batch,
                                 .accumulation =
                                     plan->accumulation * (plan->n_ranks / ranks),
                                 .reproducible = plan->reproducible,
                                 .serial = true,
                                 .bucket = 1 << 20,
                                 .texts = plan->texts,
                                 .forward_only = plan->forward_only,
                                 .offload = is_delayed ? plan->offload : ZERO_OFFLOAD_OFF,
                                 .delayed_from = plan->delayed_from,
                                 .offload_depth = 1,
                                 .collectives = ZERO_ALGORITHM_P2P};
        one.plan = zero_engine_place(plain, of, comm);
        out = run(comm, &one);
        zero_model_destroy(&model);
    }
    MPI_Bcast(&out, (int)sizeof out, MPI_BYTE, 0, MPI_COMM_WORLD);
    return out;
}

/* Words that are equally likely but for the last bits would differ with a cache. */
static bool are_same(outcome *got, outcome *want)
{
    if (got->has_cache != want->has_cache) {
        memset(got->text, 0, sizeof got->text);
        memset(want->text, 0, sizeof want->text);
        want->has_cache = got->has_cache;
    }
    return memcmp(got, want, sizeof *want) == 0;
}

/* MPI adds in an order of its own. */
static void check(job *j, zero_comm *comm, const drawn *w)
{
    outcome got = run(comm, w);
    if (w->plan.collectives == ZERO_ALGORITHM_MPI && test_size > 1) return;
    outcome want = run_plainly(j, w);
    bool ok = are_same(&got, &want);
    for (int s = 0; s < TEST_STEPS && !ok && test_rank == 0; s++)
        print_error("step %d: loss %.17g, norm %.17g; expected %.17g, %.17g\n", s,
                    got.loss[s], got.norm[s], want.loss[s], want.norm[s]);
    expect(ok, w, "not as plain");
}

/* ---- all of it ---- */

/* Ranks in TP groups of `tp`, and half of the time in shard groups. If the ranks cannot be divided
 * so, they are not divided. */
static zero_comm *draw_groups(dice *d, zero_comm nodes[DEGREES][SHARDS], int64_t tp)
{
    zero_comm *comm = &nodes[tp - 1][roll(d, 2) * roll(d, SHARDS)];
    if (comm->size == 0) comm = &nodes[tp - 1][0];
    return comm->size == 0 ? &nodes[0][0] : comm;
}

/* Some check what their collectives begin; those on a device have queues in any order. */
TEST(every_run_does_what_was_planned_and_has_the_bits_of_the_plainest)
{
    job *j = *state;
    for (int64_t i = 0; i < j->rounds.count; i++) {
        dice d = {.rng = {.purpose = ZERO_RNG_TEST,
                          .seed = j->rounds.seed,
                          .sample = (uint64_t)i}};
        drawn w = {.number = i};
        zero_model part = {0};
        const int64_t large = 5 * ZERO_OFFLOAD_BLOCK; /* several blocks of a file */
        char order[32];
        bool is_shared = i % 4 == 2; /* perhaps by one rank alone */
        int64_t k = roll(&d, NODES), degree = is_shared ? 1 + roll(&d, DEGREES) : 1;
        zero_comm *comm = draw_groups(&d, j->comm[k], degree);
        const zero_comm *tp = zero_comm_tp(comm);
        w.slices = is_shared ? (tp ? tp->size : 1) << roll(&d, 3) : 1;
        if (i % 2 == 0)
            draw_shape(&d, w.slices, (zero_type)(i / 2 % 3), &w.whole);
        else
            hand_model(&d.rng, &d.next, i % 16 == 9 ? large : 3000, &w.whole);
        zero_share share = {tp ? tp->size : 1, tp ? tp->rank : 0, w.slices};
        draw_plan(&d, part_of(&w.whole, share, &part), comm, &w);
        snprintf(order, sizeof order, "%" PRId64, i % 3 == 0 ? 0 : i);
        assert_int_equal(setenv("ZERO_FAKE_ORDER", order, 1), 0);
        if (i % 16 == 5) all_ok(zero_check_start(comm));
        check(j, comm, &w);
        if (i % 16 == 5) all_ok(zero_check_stop(comm));
        zero_model_destroy(&part);
        zero_model_destroy(&w.whole);
    }
}

TEST(every_pipeline_does_what_was_planned_and_has_the_bits_of_the_plainest)
{
    job *j = *state;
    for (int64_t i = 0; i < j->rounds.count / 4; i++) {
        dice d = {.rng = {j->rounds.seed + 1, ZERO_RNG_TEST, 0, (uint64_t)i, 0}};
        drawn w = {.number = i};
        zero_model part = {0};
        zero_comm *comm = &j->piped[1 + roll(&d, DEGREES - 1)][roll(&d, 2)][roll(&d, 2)];
        const zero_comm *tp = zero_comm_tp(comm);
        const int T = tp ? tp->size : 1;
        w.slices = T << roll(&d, 2);
        draw_shape(&d, w.slices, (zero_type)(i % 3), &w.whole);
        if (comm->size > 0 && zero_comm_pipe(comm)->size <= w.whole.n_units - 2) {
            const zero_share share = {T, tp ? tp->rank : 0, w.slices};
            draw_plan(&d, part_of(&w.whole, share, &part), comm, &w);
            draw_stages(&d, &w);
            check(j, comm, &w);
        }
        zero_model_destroy(&part);
        zero_model_destroy(&w.whole);
    }
}

static size_t needed_in_stage(zero_plan_input plan, int stage)
{
    plan.stage = stage;
    zero_schedule s = compiled(&plan);
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
    outcome out = {0}; /* its text begins with token 0 */
    all_ok(walk_everything(&e, &(drawn){.plan = spec.plan, .whole = model}, &out));
    zero_engine_destroy(&e);
    zero_model_destroy(&model);
}

/* ---- groups ---- */

static void open_group(job *j, int k, int tp, int shard)
{
    static const int shard_ranks[SHARDS] = {0, 1, 2};
    int n = test_size / tp, shards = shard_ranks[shard];
    zero_comm *comm = &j->comm[k][tp - 1][shard];
    if (test_size % tp != 0 || (shards > 0 && (n % shards != 0 || n == shards))) return;
    test_split(test_size, k < test_size ? k + 1 : 1, comm);
    all_ok(zero_comm_divide(comm, tp, shards, 1));
}

/* Sizes that do not divide the ranks have no group. */
static void open_groups(job *j)
{
    for (int k = 0; k < NODES; k++)
        for (int tp = 1; tp <= DEGREES; tp++)
            for (int shard = 0; shard < SHARDS; shard++) open_group(j, k, tp, shard);
    for (int n = 1; n <= test_size; n++) test_split(n, 1, &j->first[n]);
    for (int P = 2; P <= DEGREES; P++)
        for (int T = 1; T <= 2; T++)
            for (int shard = 0; shard < 2; shard++) {
                zero_comm *comm = &j->piped[P - 1][T - 1][shard];
                if (test_size % (P * T) > 0 || (shard > 0 && test_size == P * T)) continue;
                test_split(test_size, P % 2 + 1, comm);
                all_ok(zero_comm_divide(comm, T, shard, P));
            }
}

static void close_groups(job *j)
{
    for (int k = 0; k < NODES * DEGREES * SHARDS; k++)
        zero_comm_destroy(&j->comm[0][0][0] + k);
    for (int n = 1; n <= test_size; n++) zero_comm_destroy(&j->first[n]);
    for (int k = 0; k < DEGREES * 4; k++) zero_comm_destroy(&j->piped[0][0][0] + k);
}

int main(int argc, char **argv)
{
    job j = {.rounds = test_rounds_of(argc, argv, 80)};
    around.begin(&argc, &argv);
    around.state = &j;
    open_groups(&j);
    int failed = run_here(NULL, NULL);
    close_groups(&j);
    return around.end(failed);
}
