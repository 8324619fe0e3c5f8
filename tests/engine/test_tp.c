/* Tensor parallelism: with S slices every number of ranks that shares a model has the same bits.
 *
 * (test_any_run.c shows it for any plan and architecture.) A launch has one world size, so groups
 * of its first ranks train one after the other. */
#include "support/gpt2_test.h"
#include "support/same_bits.h"

enum { GLOBAL_BATCH = 8 }; /* microbatches */

static const zero_shape shape = {.layers = 2,
                                 .hidden = 32,
                                 .heads = 8,
                                 .seq = 8,
                                 .vocab = 30,
                                 .dropout = 0.1f,
                                 .seed = 5};

/* The program's ways that must not matter, by number. */
static test_setup setup_of(int n_ranks, int tp, int variant)
{
    const test_route route = test_routes[variant % 3];
    test_setup setup = test_standard;
    setup.shape = shape;
    setup.clip = 0.05;
    setup.eval_batches = 1;
    setup.tp = tp;
    setup.slices = 8;
    setup.fake_nodes = n_ranks > 1 ? route.nodes : 1;
    setup.plan = (zero_plan_input){
        .stage = variant % ZERO_STAGE_COUNT,
        .micro_batch = 1,
        .accumulation = GLOBAL_BATCH / (n_ranks / tp),
        .reproducible = true,
        .partition = (zero_partition_scheme)(variant / 2 % 2),
        .collectives = route.algorithm,
        .bucket = variant % 2 == 0 ? 1 << 20 : 2048,
        .serial = variant % 4 == 1,
        .recompute = variant % 4 >= 2,
        .partition_activations = tp > 1 && variant % 4 >= 2 && variant / 4 % 2 == 0,
        .prefetch = variant % 3,
        .persist = 100,
        .check_replicas = 1,
    };
    return setup;
}

/* ---- any shape ---- */

/* clang-format off */
#define SHAPE(l, c, h, v) \
    {.layers = (l), .hidden = (c), .heads = (h), .seq = 10, .vocab = (v), .dropout = 0.1f, .seed = 9}
#define OTHER(of, c, h, k, d, f, v) \
    {.kind = &zero_architectures[of], .layers = 1, .hidden = (c), .heads = (h), .kv_heads = (k), \
     .head_size = (d), .inner = (f), .seq = 10, .vocab = (v), .dropout = 0.1f, .seed = 9}

/* Slices of words that are few, odd, or of different lengths; rows of the head in two chunks; sums
 * longer than a block of the packed kernels; q, k and v that are not equally long. */
static const struct {
    zero_shape shape;
    int slices;
    int64_t micro_batch;
} edges[] = {{SHAPE(2, 64, 8, 17), 8, 2},
             {SHAPE(1, 48, 12, 257), 4, 2},
             {SHAPE(1, 64, 8, 257), 8, 26},
             {SHAPE(1, 64, 8, 5003), 8, 2},
             {SHAPE(1, 512, 4, 100), 4, 4},
             {OTHER(ZERO_LLAMA, 48, 8, 4, 6, 64, 17), 4, 2},
             {OTHER(ZERO_QWEN2, 64, 8, 8, 8, 160, 257), 8, 2},
             {OTHER(ZERO_QWEN3, 48, 8, 4, 12, 72, 257), 4, 2},
             {OTHER(ZERO_NEOX, 64, 8, 8, 8, 160, 257), 8, 2}};
/* clang-format on */

/* Largest relative difference of losses, and of the first gradient. */
static double difference(const test_outcome *a, const test_outcome *b)
{
    double most = fabs(a->norm[0] / b->norm[0] - 1.0);
    for (int s = 0; s < TEST_STEPS; s++)
        most = fmax(most, fabs(a->loss[s] / b->loss[s] - 1.0));
    return fmax(most, fabs(a->evaluated / b->evaluated - 1.0));
}

static test_setup edge_of(size_t k, int tp, int variant, zero_type type, zero_type rows)
{
    test_setup setup = setup_of(tp, tp, variant);
    setup.shape = edges[k].shape;
    setup.slices = edges[k].slices;
    setup.backend = k == 0 ? &zero_backend_naive : &zero_backend_cpu;
    setup.plan.micro_batch = edges[k].micro_batch;
    setup.plan.accumulation = 1;
    setup.plan.type = type;
    setup.plan.activations = rows;
    return setup;
}

/* Sums in slices are near those in one piece, and the same on any ranks. */
static void check_edge(size_t k, zero_type type, zero_type rows, double tolerance)
{
    test_setup one = edge_of(k, 1, 0, type, rows);
    const test_outcome want = test_train(&one, 1);
    one.slices = 1;
    const test_outcome whole = test_train(&one, 1);
    if (k > 0 && type == ZERO_FP32) assert_all(!test_same(want.digest, whole.digest));
    if (difference(&want, &whole) >= tolerance)
        print_error("shape %d: %g\n", (int)k, difference(&want, &whole));
    assert_all(difference(&want, &whole) < tolerance);
    for (int tp = 2; tp <= test_size && edges[k].slices % tp == 0; tp *= 2) {
        test_setup setup = edge_of(k, tp, (int)k + tp, type, rows);
        test_expect_same(&setup, tp, &want);
    }
}

TEST(any_shape_can_be_shared)
{
    for (size_t k = 0; k < COUNT(edges); k++) {
        check_edge(k, ZERO_FP32, ZERO_FP32, 1e-5);
        check_edge(k, ZERO_BF16, ZERO_FP32, 3e-2);
        check_edge(k, k % 2 ? ZERO_BF16 : ZERO_FP16, k % 2 ? ZERO_BF16 : ZERO_FP16, 3e-2);
    }
}

/* ---- what is not finite ---- */

static zero_status set_nan(void *arg, const zero_state_block *block)
{
    (void)arg;
    block->master[0] = NAN;
    return ZERO_OK;
}

/* Elements that this rank owns of a matrix of the unit that is cut. */
static zero_range owned_weights(test_run *run, const zero_unit *u)
{
    zero_range held = zero_states_held(&run->engine.schedule, u->groups[0]);
    for (int t = 0; t < ZERO_BLOCK_TENSORS; t++) {
        const zero_tensor *tensor = &u->tensors[0][t];
        zero_range range = zero_range_overlap(zero_range_of_tensor(tensor), held);
        bool is_cut = !zero_tensor_is_replicated(tensor) && tensor->decays;
        if (is_cut && !zero_range_is_empty(range)) return range;
    }
    fail_msg("no matrix of %s", u->name);
    return held;
}

static void spoil(test_run *run, int unit, int culprit)
{
    zero_engine *e = &run->engine;
    const zero_unit *u = &run->part.units[unit];
    zero_range range = owned_weights(run, u);
    zero_status st = ZERO_OK;
    range.end = range.begin + 1;
    if (test_rank == culprit)
        st = zero_states_visit(&e->runner, u->groups[0], range, ZERO_VISIT_CHANGE, set_nan,
                               NULL);
    all_ok(st);
    all_ok(zero_engine_publish(e));
}

/* All ranks of a TP group get it in the next JOIN, but only one of them had it before. */
TEST(a_weight_that_is_not_finite_is_told_with_its_place)
{
    for (zero_type type = ZERO_FP32; type <= ZERO_BF16; type++)
        for (int culprit = 0; culprit < test_size; culprit += 3) {
            char place[64];
            test_run run;
            test_setup setup = setup_of(test_size, 2, 3 + 4 * culprit);
            setup.plan.type = type;
            setup.plan.partition =
                ZERO_PARTITION_SLICE; /* each rank owns some of each group */
            test_run_open(&run, &setup, test_size);
            test_run_steps(&run, 0, 1);
            spoil(&run, 2, culprit);
            zero_source source = test_words(&run);
            zero_step_input in = test_step_input(&run, 1);
            zero_status st = zero_engine_step(&run.engine, &source, &in, &run.last);
            assert_all(st == ZERO_ERR_DIVERGED);
            snprintf(place, sizeof place, "(d 0, p %d)", culprit % 2);
            all_told(place);
            all_told("forward pass of block 1");
            test_run_close(&run);
        }
}
