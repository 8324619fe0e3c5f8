/* A bit of a 16-bit parameter that flips anywhere in a training step, with default options. A flip that
 * a step could see is found by the vote of the next step, or by the digest after the last one, with
 * its rank, tensor and element. One that is not found has changed nothing. A copy on another node is
 * compared in a share of the steps: there a bit that is stuck is found within the bound. */
#include "support/bit_flips.h"
#include "support/faulty_unit.h"

#include "fake/fake.h"
#include "sharding/checks.h"
#include "state/inspect.h"

enum { STEPS = 4, UNITS = 4, CALLS = 2 * UNITS * STEPS };

/* A bit of one rank's parameters, which flips before the n-th call of a unit on that rank. */
typedef struct {
    const test_run *run;
    spot at;
    int64_t call;
    bool is_stuck; /* from then on it has the other value at each call */
    int64_t calls; /* so far */
    uint16_t value;
    zero_unit units[UNITS]; /* as they were */
} fault;

static void come_to_call(fault *f)
{
    const uint16_t bit = (uint16_t)(1 << f->at.bit);
    int64_t n = f->calls++;
    if (test_rank != f->at.rank || n < f->call) return;
    uint16_t *x = held_at(f->run, &f->at, ZERO_ARRAY_PARAMETERS);
    if (n == f->call) f->value = (uint16_t) ~*x & bit;
    if (n == f->call || f->is_stuck) *x = (uint16_t)((*x & ~bit) | f->value);
}

static fault *fault_of(const zero_unit *u)
{
    return (fault *)(uintptr_t)u->shape;
}

static int index_of(const zero_unit *u)
{
    return (int)(u - fault_of(u)->run->model.units);
}

static void flipping_forward(const zero_unit *u, const zero_call *c)
{
    const zero_unit *sound = &fault_of(u)->units[index_of(u)];
    if (c->training) come_to_call(fault_of(u));
    sound->forward(sound, c);
}

static void flipping_backward(const zero_unit *u, const zero_call *c)
{
    const zero_unit *sound = &fault_of(u)->units[index_of(u)];
    come_to_call(fault_of(u));
    sound->backward(sound, c);
}

static zero_unit_sizes flipping_sizes(const zero_unit *u, int64_t B, int64_t T)
{
    const zero_unit *sound = &fault_of(u)->units[index_of(u)];
    return sound->sizes(sound, B, T);
}

static void plant(test_run *run, fault *f)
{
    f->run = run;
    assert_int_equal(run->model.n_units, UNITS);
    for (int i = 0; i < UNITS; i++) {
        zero_unit *u = &run->model.units[i];
        f->units[i] = *u;
        u->shape = f;
        u->sizes = flipping_sizes;
        u->forward = flipping_forward;
        u->backward = flipping_backward;
    }
}

static void remove_from(test_run *run, const fault *f)
{
    memcpy(run->model.units, f->units, sizeof f->units);
}

static test_setup setup_of(int stage, zero_type type, int fake_nodes)
{
    test_setup setup = test_standard;
    const char *why;
    zero_comm comm;
    setup.plan.stage = stage;
    setup.plan.type = type;
    setup.plan.check_replicas = ZERO_PLAN_REPLICAS;
    setup.fake_nodes = fake_nodes;
    test_split(test_size, fake_nodes, &comm);
    setup.plan.collectives = zero_algorithm_choose(&comm.layout, &why);
    zero_comm_destroy(&comm);
    return setup;
}

/* Any tensor, element and bit; any moment after the first step. */
static fault draw_fault(const test_run *run)
{
    fault f = {.run = run, .at = {.rank = (int)draw(test_size), .bit = (int)draw(16)}};
    f.at.tensor = (int)draw(run->model.n_tensors);
    const zero_tensor *t = tensor_of(run, &f.at);
    f.at.element = draw(t->rows * t->cols);
    f.call = 2 * UNITS + draw(CALLS - 2 * UNITS);
    return f;
}

/* Who finds it, in a place that is the rank's own or its node's. */
static void expect_message(const fault *f, const char *rank)
{
    char said[200];
    snprintf(said, sizeof said,
             "%s other bits than its masters, rounded, in the "
             "parameters of %s, element %d.",
             rank, tensor_of(f->run, &f->at)->name, (int)f->at.element);
    all_told(said);
}

/* Returns the step, from 0, in which the run ends; STEPS: in its digest; -1: not at all. */
static int run_to_the_end(test_run *run, test_digest *digest)
{
    zero_status st = ZERO_OK;
    int at = 0;
    for (; st == ZERO_OK && at < STEPS; at++) st = test_step(run, at);
    if (st == ZERO_OK) at++, st = zero_engine_digest(&run->engine, digest->hex);
    assert_all(st == ZERO_OK || st == ZERO_ERR_CORRUPTED);
    return st == ZERO_OK ? -1 : at - 1;
}

/* On one node all parameters are their owners'; at stage 0 each rank's are its own. Returns the step
 * that ended the run, after the one of the flip; -1: none did. */
static int flip_and_run(const test_setup *setup, const test_digest *sound, int bit)
{
    test_run run;
    test_digest digest = {""};
    char rank[32];
    test_run_open(&run, setup, test_size);
    fault f = draw_fault(&run);
    if (bit >= 0) f.at.bit = bit;
    plant(&run, &f);
    int end = run_to_the_end(&run, &digest), flipped = (int)(f.call / (2 * UNITS));
    if (end >= 0) {
        snprintf(rank, sizeof rank, "rank %d found",
                 setup->plan.stage == 0 ? f.at.rank : shard_of(&run, &f.at));
        expect_message(&f, rank);
        assert_all(end == flipped + 1 || (end == flipped && run.last.overflow));
    } else {
        assert_all(test_same(digest, *sound));
    }
    remove_from(&run, &f);
    test_run_close(&run);
    return end < 0 ? -1 : end - flipped;
}

TEST(flips_are_found_in_their_step_or_have_no_effect)
{
    enum { EACH = 5 };
    int found = 0;
    for (zero_type type = ZERO_BF16; type <= ZERO_FP16; type++)
        for (int stage = 0; stage < 4; stage++) {
            test_setup setup = setup_of(stage, type, 0);
            test_digest sound = test_digest_after(&setup, test_size, STEPS);
            for (int n = 0; n < EACH; n++) found += flip_and_run(&setup, &sound, -1) >= 0;
        }
    print_message("%d flips in %d steps: %d found, %d without effect\n", 8 * EACH,
                  8 * EACH * STEPS, found, 8 * EACH - found);
    assert_all(found >= 4 * EACH); /* nearly all */
}

/* The step has no UPDATE then, which would find it. */
TEST(a_flip_that_makes_a_step_overflow_is_found_in_it)
{
    int found = 0;
    for (int stage = 0; stage < 4; stage++) {
        test_setup setup = setup_of(stage, ZERO_FP16, 0);
        test_digest sound = test_digest_after(&setup, test_size, STEPS);
        for (int n = 0; n < 3; n++) found += flip_and_run(&setup, &sound, 14) == 0;
    }
    print_message("%d of 12 steps overflowed\n", found);
    assert_all(found > 0);
}

/* ---- copies that are compared in turns ---- */

/* A node's copy of parameters that another node owns. */
static void check_stuck(int stage, int64_t accumulation)
{
    test_setup setup = setup_of(stage, ZERO_BF16, 2);
    test_run run;
    zero_status st = ZERO_OK;
    int64_t at = 0;
    setup.plan.check_replicas = 5;
    setup.lr = 1e-7;
    setup.plan.accumulation = (int)accumulation;
    test_run_open(&run, &setup, test_size);
    const int *node_of = run.comm->layout.node_of;
    all_ok(zero_engine_settle(&run.engine));
    fault f = draw_fault(&run);
    while (node_of[shard_of(&run, &f.at)] == node_of[f.at.rank] ||
           *(uint16_t *)held_at(&run, &f.at, ZERO_ARRAY_PARAMETERS) == 0)
        f = draw_fault(&run);
    f.at.bit = 15; /* a sign, which no update changes */
    f.is_stuck = true;
    f.call = 0;
    plant(&run, &f);
    int period = zero_compare_period(&run.engine.schedule, ZERO_COPIES_OF_NODES, true);
    while (at < 2 * period && (st = test_step(&run, at)) == ZERO_OK) at++;
    assert_all(st == ZERO_ERR_CORRUPTED && at < period);
    all_told(tensor_of(&run, &f.at)->name);
    remove_from(&run, &f);
    test_run_close(&run);
}

TEST(a_stuck_bit_in_a_copy_is_found_within_the_bound)
{
    if (test_size < 3) return; /* two nodes, one with several ranks */
    for (int n = 0; n < 6; n++) check_stuck(1 + n % 2, 1);
    check_stuck(1, 16); /* so many tokens that all is compared in each step */
}

/* ---- a device ---- */

static void take_piece(void *arg, const void *piece, size_t bytes)
{
    memcpy(arg, piece, bytes);
}

static void flip_piece(void *arg, void *piece, size_t bytes)
{
    uint16_t flipped = *(uint16_t *)arg ^ 0x100;
    memcpy(piece, &flipped, bytes);
}

/* The first element of a group, on its owner. */
static void flip_on_device(test_run *run, int group)
{
    uint16_t now = 0;
    const zero_group_state *g = &run->engine.schedule.groups[group];
    if (zero_partition_owner_of(&g->partition, 0) != test_rank) return;
    void *first = zero_runner_element(&run->engine.runner, g->param, 0);
    zero_status st = zero_inspect(&run->engine.runner, first, 2, take_piece, &now);
    assert_ok(st);
    st = zero_overwrite(&run->engine.runner, first, 2, flip_piece, &now);
    assert_ok(st);
}

/* A group has its turn once in N steps; UPDATE looks at it in the device's memory. The next step tells,
 * or the check after the last one. */
static void check_on_device(int group, int step, bool is_last)
{
    enum { N = 3 };
    test_setup setup = setup_of(3, ZERO_BF16, 0);
    test_run run;
    setup.backend = &zero_backend_fake;
    setup.plan.device = 1;
    setup.plan.collectives = ZERO_ALGORITHM_P2P;
    setup.plan.check_replicas = N;
    test_run_open(&run, &setup, test_size);
    test_run_steps(&run, 0, step);
    all_ok(zero_engine_settle(&run.engine));
    flip_on_device(&run, group);
    all_ok(test_step(&run, step));
    bool is_due = (step + group) % N == 0;
    const zero_tensor *t = &run.model.tensors[run.model.groups[group].first_tensor];
    zero_status st = is_last ? zero_engine_check(&run.engine) : test_step(&run, step + 1);
    assert_all(st == (is_due ? ZERO_ERR_CORRUPTED : ZERO_OK));
    bool is_named =
        strstr(zero_last_error(), t->name) && strstr(zero_last_error(), "element 0.");
    assert_all(!is_due || is_named);
    test_run_close(&run);
}

TEST(on_a_device_groups_have_turns)
{
    for (int group = 0; group < UNITS; group++)
        for (int step = 1; step < 4; step++) check_on_device(group, step, group % 2 == 0);
}
