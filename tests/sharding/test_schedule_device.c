/* Plans with a device: bytes there and on the host by hand-made formulas, and what it changes. */
#include "base/number.h"
#include "math/backend.h"
#include "nn/shape.h"
#include "sharding/checks.h"
#include "sharding/offload.h"
#include "sharding/schedule_device.h"
#include "sharding/update.h"
#include "support/planned.h"
#include "support/schedule_laws.h"

static size_t aligned(size_t bytes)
{
    return (bytes + ZERO_MEMORY_ALIGN - 1) / ZERO_MEMORY_ALIGN * ZERO_MEMORY_ALIGN;
}

/* ---- by hand ---- */

enum { RANKS = 8, C = 1600, LAYERS = 48, V = 50257, T = 1024 };

static const int64_t block = 12 * C * C + 13 * C, embedding = V * C + T * C, norm = 2 * C;

/* The shard of a group of n parameters: a multiple of 64. */
static int64_t shard(int64_t n)
{
    return ((n + RANKS - 1) / RANKS + 63) / 64 * 64;
}

static int64_t shards(void)
{
    return shard(embedding) + LAYERS * shard(block) + shard(norm);
}

/* The smallest chunks of 64 elements come from 7 other ranks: whole ones that fit the bucket. */
static size_t reduce_staging(void)
{
    return (size_t)((1 << 20) / (7 * 64) * (7 * 64)) * 2;
}

/* gpt2-xl in bf16, stage 3, 8 ranks on 8 nodes, one sequence each. */
static zero_plan_input xl(const zero_model *model)
{
    zero_plan_input input = zero_plan_input_standard(model, RANKS, 0);
    input.stage = 3;
    input.type = ZERO_BF16;
    input.device = 1;
    return input;
}

TEST(states_of_a_device_are_the_paper_s)
{
    zero_model model = built_preset("gpt2-xl");
    zero_plan_input input = xl(&model);
    zero_schedule s = compiled(&input);
    size_t held = (size_t)shards();
    assert_true(s.class_peak[ZERO_CLASS_PARAMETERS] == 2 * held);
    assert_true(s.class_peak[ZERO_CLASS_GRADIENTS] == 2 * held);
    assert_true(s.class_peak[ZERO_CLASS_OPTIMIZER] == 12 * held);
    assert_true(s.class_peak[ZERO_CLASS_BUCKETS] == 0);
    assert_true(s.window_bytes == 0);
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

TEST(the_host_has_staging_and_the_other_sides_of_copies)
{
    zero_model model = built_preset("gpt2-xl");
    zero_plan_input input = xl(&model);
    zero_schedule s = compiled(&input);
    size_t tokens = 2 * T * sizeof(int32_t), rows = T * sizeof(float), squares;
    size_t chunks = 2 * 3 * (size_t)ZERO_OFFLOAD_BLOCK * sizeof(float);
    size_t mirror = (size_t)(RANKS * shard(embedding)) * 2 + reduce_staging();
    /* Two words and a class of each rank, and a block of rounded masters. */
    size_t check = RANKS * 16 + 64 + 2 * ZERO_CHECK_BLOCK;
    squares = 8; /* UPDATE's word */
    for (int g = 0; g < model.n_groups; g++)
        squares += 8 * (size_t)zero_gradient_pieces(
                           zero_partition_shard(&s.groups[g].partition, 0));
    assert_true(s.host_class_peak[ZERO_CLASS_DATA] == tokens);
    assert_true(s.host_class_peak[ZERO_CLASS_WORKSPACE] == chunks + squares + check);
    assert_true(s.host_class_peak[ZERO_CLASS_BUCKETS] == mirror);
    assert_true(s.host_class_peak[ZERO_CLASS_LOGITS] == V * sizeof(float));
    assert_true(s.host_peak_bytes == chunks + squares + check + tokens + rows + mirror);
    assert_true(s.host_bytes == chunks + aligned(squares) + aligned(check) + tokens + rows +
                                    aligned(mirror));
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* The states of this rank's shards move; what is copied of them stays on the device, too. */
TEST(states_beside_a_device_cost_16_bytes_there)
{
    zero_model model = built_preset("gpt2-xl");
    zero_plan_input input = xl(&model);
    zero_schedule plain = compiled(&input);
    input.offload_host = 1;
    input.offload = ZERO_OFFLOAD_LAZY;
    zero_schedule s = compiled(&input);
    size_t mine = (size_t)shards();
    zero_copied_bytes step = zero_schedule_copies(&s, ZERO_PROGRAM_STEP);
    assert_true(s.host_class_peak[ZERO_CLASS_OPTIMIZER] == 12 * mine);
    assert_true(s.host_class_peak[ZERO_CLASS_IN_FLIGHT] == 2 * mine);
    assert_true(s.host_class_peak[ZERO_CLASS_GATHERED] == 2 * mine);
    assert_true(s.class_peak[ZERO_CLASS_OPTIMIZER] == 0);
    assert_true(s.class_peak[ZERO_CLASS_PARAMETERS] == 2 * mine);
    assert_true(plain.own_bytes - s.own_bytes >= 12 * mine);
    assert_true(step.gradients <= 2 * mine &&
                step.gradients >= 2 * mine - 128 * (LAYERS + 2));
    assert_true(step.parameters == step.gradients && step.squares == 0);
    zero_schedule_destroy(&plain);
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* A group's gradient is fetched whole and its piece stored; its parameters are gathered twice, and
 * three times the embedding's are not: it stays from forward to backward. */
TEST(a_step_copies_what_its_collectives_move)
{
    zero_model model = built_preset("gpt2-xl");
    zero_plan_input input = xl(&model);
    zero_schedule s = compiled(&input);
    zero_traffic reduced = zero_schedule_traffic(&s, ZERO_PROGRAM_STEP, ZERO_OP_REDUCE);
    zero_traffic gathered = zero_schedule_traffic(&s, ZERO_PROGRAM_STEP, ZERO_OP_GATHER);
    zero_copied_bytes step = zero_schedule_copies(&s, ZERO_PROGRAM_STEP);
    int64_t uses = 2 * LAYERS * shard(block) + 2 * shard(embedding) + shard(norm);
    assert_int_equal(reduced.bytes_fetched, 2 * RANKS * shards());
    assert_int_equal(reduced.bytes_stored, 2 * shards());
    assert_int_equal(gathered.bytes_fetched, 2 * uses);
    assert_int_equal(gathered.bytes_stored, 2 * RANKS * uses);
    assert_int_equal(step.tokens, 2 * T * sizeof(int32_t));
    assert_int_equal(step.row_losses, T * sizeof(float));
    assert_int_equal(step.squares, s.buffers[s.squares].bytes);
    assert_int_equal(zero_schedule_copies(&s, ZERO_PROGRAM_GENERATE).logits,
                     V * sizeof(float));
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* ---- against the plan without one ---- */

static bool is_changed(int cls)
{
    return cls == ZERO_CLASS_BUCKETS || cls == ZERO_CLASS_WORKSPACE ||
           cls == ZERO_CLASS_LOGITS;
}

/* Nothing of the model is shared, so that the device has what a rank with messages has. */
static void check_classes(zero_plan_input input)
{
    zero_plan_input alone = input;
    alone.device = 0;
    alone.collectives = ZERO_ALGORITHM_P2P;
    input.device = 1;
    zero_schedule with = compiled(&input), without = compiled(&alone);
    for (int c = 0; c < ZERO_CLASSES; c++)
        if (!is_changed(c) && with.class_peak[c] != without.class_peak[c])
            fail_msg("stage %d, %s: %zu bytes on the device, %zu without one", input.stage,
                     zero_class_name((zero_class)c), with.class_peak[c],
                     without.class_peak[c]);
    size_t squares = with.buffers[with.squares].bytes;
    assert_true(with.class_peak[ZERO_CLASS_WORKSPACE] ==
                without.class_peak[ZERO_CLASS_WORKSPACE] + squares);
    assert_true(without.host_peak_bytes == 0 && without.host_bytes == 0);
    zero_schedule_destroy(&with);
    zero_schedule_destroy(&without);
}

TEST(the_device_holds_what_a_rank_by_itself_holds)
{
    zero_model model = built_preset("gpt2");
    zero_layout one_node;
    assert_ok(zero_layout_init_blocks(&one_node, 4, 1));
    for (int bits = 0; bits < 64; bits++) {
        zero_plan_input input = job_input(&model, bits & 3, 4);
        input.bucket = 1 << 20;
        input.type = bits & 4 ? ZERO_BF16 : ZERO_FP32;
        input.accumulation = bits & 8 ? 3 : 1;
        input.partition = bits & 16 ? ZERO_PARTITION_OWNER : ZERO_PARTITION_SLICE;
        input.collectives = bits & 32 ? ZERO_ALGORITHM_SHM : ZERO_ALGORITHM_P2P;
        input.layout = &one_node;
        check_classes(input);
    }
    zero_layout_destroy(&one_node);
    zero_model_destroy(&model);
}

/* ---- programs ---- */

static const zero_instruction *first_of(const zero_schedule *s, zero_program_kind kind,
                                        zero_op op)
{
    const zero_program *p = &s->programs[kind];
    for (int at = 0; at < p->length; at++)
        if (p->code[at].op == op) return &p->code[at];
    fail_msg("no %s in %s", zero_op_name(op), zero_program_name(kind));
    return NULL;
}

TEST(generating_loads_the_prompt)
{
    zero_model model = built_preset("gpt2");
    zero_plan_input input = job_input(&model, 1, 2);
    input.bucket = 1 << 20;
    for (int device = 0; device <= 1; device++) {
        input.device = device;
        zero_schedule s = compiled(&input);
        const zero_program *p = &s.programs[ZERO_PROGRAM_GENERATE];
        bool loads = p->code[0].op == ZERO_OP_LOAD;
        assert_int_equal(loads, input.device);
        if (loads) assert_int_equal(p->code[0].host, s.first_tokens);
        zero_schedule_destroy(&s);
    }
    zero_model_destroy(&model);
}

/* Slots alternate, and a row of losses waits for LOSS per microbatch. */
TEST(microbatches_take_turns)
{
    zero_model model = built_preset("gpt2");
    zero_plan_input input = job_input(&model, 2, 2);
    input.bucket = 1 << 20;
    input.accumulation = 5;
    input.device = 1;
    zero_schedule s = compiled(&input);
    const zero_program *p = &s.programs[ZERO_PROGRAM_STEP];
    const zero_instruction *loss = first_of(&s, ZERO_PROGRAM_STEP, ZERO_OP_LOSS);
    for (int at = 0; at < p->length; at++)
        if (p->code[at].op == ZERO_OP_LOAD)
            assert_int_equal(p->code[at].host, s.first_tokens + p->code[at].microbatch % 2);
    assert_int_equal(s.buffers[loss->host].bytes, 5 * s.buffers[loss->row_loss].bytes);
    assert_int_equal(s.buffers[loss->host].space, ZERO_SPACE_HOST);
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* A third tier: the host has gradients and rounded parameters of its shards, and slots. */
TEST(states_in_a_file_leave_the_host)
{
    zero_model model = built_preset("gpt2-xl");
    zero_plan_input input = xl(&model);
    input.offload = ZERO_OFFLOAD_LAZY;
    input.offload_depth = 2;
    size_t mine = (size_t)shards(), slot = 12 * (size_t)ZERO_OFFLOAD_BLOCK;
    zero_schedule s = compiled(&input);
    assert_true(s.host_class_peak[ZERO_CLASS_OPTIMIZER] == 0);
    assert_true(s.class_peak[ZERO_CLASS_OPTIMIZER] == 0);
    assert_true(s.host_class_peak[ZERO_CLASS_SLOTS] == 2 * slot);
    assert_true(s.host_class_peak[ZERO_CLASS_IN_FLIGHT] == 2 * mine);
    assert_true(s.host_class_peak[ZERO_CLASS_GATHERED] == 2 * mine);
    assert_true(zero_offload_bytes(&s, ZERO_CLASS_OPTIMIZER) ==
                12 * mine + zero_offload_padding(&s));
    zero_schedule_destroy(&s);
    input.offload = ZERO_OFFLOAD_DELAYED; /* the last gradient waits */
    input.delayed_from = 1;
    s = compiled(&input);
    assert_true(s.host_class_peak[ZERO_CLASS_IN_FLIGHT] == 4 * mine);
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* ---- squares ---- */

/* The halves of zero_gradient_squares() make its span, and write as many sums as they say. */
static void check_halves(const float *x, int64_t n_params, zero_range range)
{
    double sums[ZERO_TREE_SPAN_TERMS + 1];
    const zero_backend *naive = &zero_backend_naive;
    const zero_math math = {0};
    int64_t n = zero_gradient_pieces(range);
    assert_true(n <= ZERO_TREE_SPAN_TERMS);
    sums[n] = -1.0;
    zero_tree_span whole =
        zero_gradient_squares(naive, &math, ZERO_FP32, n_params, range, x);
    zero_gradient_sums(naive, &math, ZERO_FP32, range, x, sums);
    zero_tree_span span = zero_gradient_span(n_params, range, sums);
    assert_true(sums[n] == -1.0 && span.n <= n);
    assert_true(span.n == whole.n && span.blocks == whole.blocks &&
                span.first == whole.first && span.count == whole.count);
    assert_memory_equal(span.term, whole.term, (size_t)span.n * sizeof *span.term);
}

TEST(squares_in_two_halves_are_the_same)
{
    enum { N = 64 * 37 + 5 };
    float x[N];
    for (int i = 0; i < N; i++) x[i] = (float)(i % 17) - 7.5f;
    for (int64_t begin = 0; begin <= N; begin += 64)
        for (int64_t end = begin; end <= N; end += 64)
            check_halves(x + begin, N, (zero_range){begin, end});
    check_halves(x, N, (zero_range){0, N});
    assert_int_equal(zero_gradient_pieces((zero_range){0, 0}), 0);
    assert_int_equal(zero_gradient_pieces((zero_range){0, 64 * 8}), 1);
    assert_int_equal(zero_gradient_pieces((zero_range){64, 64 * 8}), 3);
}
