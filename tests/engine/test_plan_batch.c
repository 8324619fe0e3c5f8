/* The largest micro batch that fits, held against trying every one. */

#include "support/test.h"

#include "base/fail.h"
#include "nn/share.h"
#include "plan/plan.h"
#include "plan/plan_batch.h"
#include "support/planned.h"
#include "support/within.h"

#define MOST 50 /* sequences that are tried */

/* Its layouts leave gaps: in stage 2 with recompute 45 sequences need less than 44. */
static const zero_shape shape = {
    .layers = 3, .hidden = 32, .heads = 2, .seq = 17, .vocab = 2000};

/* A model with more states than activations. */
static const zero_shape large = {
    .layers = 5, .hidden = 64, .heads = 4, .seq = 64, .vocab = 5000};

/* Every stage, with and without recompute: in fp32 with whole models, in bf16 with TP groups of
 * two and states in a file. */
#define CASES (4 * 2 * 2)
typedef struct {
    zero_model whole, part;
    zero_plan_input input;
} plan_case;

static void open_case(const zero_shape *of, int k, plan_case *c)
{
    bool is_shared = k / 8;
    int ranks = is_shared ? 2 : 1;
    zero_share share = {.ranks = ranks, .slices = ranks};
    c->whole = built(of);
    assert_ok(zero_model_share(&c->whole, share, &c->part));
    c->input = zero_plan_input_standard(&c->part, 4, 0);
    c->input.stage = k % 4;
    c->input.recompute = k / 4 % 2;
    c->input.type = is_shared ? ZERO_BF16 : ZERO_FP32;
    if (is_shared) c->input.offload = ZERO_OFFLOAD_LAZY;
}

static void close_case(plan_case *c)
{
    zero_model_destroy(&c->part);
    zero_model_destroy(&c->whole);
}

static size_t needed_with(zero_plan_input in, int64_t micro_batch, int accumulation)
{
    zero_plan_ledger l;
    in.micro_batch = micro_batch;
    in.accumulation = accumulation;
    assert_ok(zero_plan_measure(&in, &l));
    return zero_plan_scarce(&in, &l);
}

/* ---- any micro batch ---- */

static void check_any(const zero_plan_input *in, const size_t needed[MOST + 1],
                      size_t bytes)
{
    const zero_plan_room room = {.bytes = bytes};
    int64_t largest = 0;
    zero_plan_batch b;
    for (int64_t k = 1; k <= MOST; k++)
        if (needed[k] <= bytes) largest = k;
    assert_ok(zero_plan_fit_batch(in, 0, &room, &b));
    assert_int_equal(b.micro_batch, largest);
    assert_true(b.needed == needed[largest > 0 ? largest : 1]);
    if (largest == 0) return;
    assert_int_equal(b.next, largest + 1);
    if (largest < MOST) assert_true(b.next_needed == needed[largest + 1]);
    assert_true(b.next_needed > bytes);
}

TEST(the_next_larger_batch_never_fits)
{
    for (int k = 0; k < CASES; k++) {
        plan_case c;
        size_t needed[MOST + 1];
        open_case(&shape, k, &c);
        for (int64_t b = 1; b <= MOST; b++) needed[b] = needed_with(c.input, b, 1);
        for (int64_t b = 1; b < MOST; b += b < 40 ? 7 : 1) {
            check_any(&c.input, needed, needed[b]);
            if (b < 40) check_any(&c.input, needed, needed[b] - 1);
        }
        close_case(&c);
    }
}

/* The bytes of the host's process do not count there, but those of the device's library do. */
TEST(a_device_has_room_for_itself_alone)
{
    zero_plan_batch b, with_context;
    zero_model model = built(&shape);
    zero_plan_input in = zero_plan_input_standard(&model, 4, 0);
    in.device = 1;
    size_t bytes = needed_with(in, 9, 1);
    assert_ok(zero_plan_fit_batch(&in, 0, &(zero_plan_room){.bytes = bytes}, &b));
    assert_true(b.micro_batch == 9 && b.needed == bytes);
    zero_plan_room room = {.bytes = bytes + 1000, .context = 1000};
    assert_ok(zero_plan_fit_batch(&in, 0, &room, &with_context));
    assert_true(with_context.micro_batch == 9 && with_context.needed == bytes + 1000);
    zero_model_destroy(&model);
}

/* ---- a given global batch ---- */

static void check_given(const zero_plan_input *in, int64_t sequences, size_t bytes)
{
    const zero_plan_room room = {.bytes = bytes};
    zero_plan_batch b;
    int64_t largest = 0, next = 0;
    for (int64_t k = 1; k <= sequences; k++) {
        int64_t parts = sequences / k;
        if (sequences % k != 0) continue;
        if (in->reproducible && (parts & (parts - 1)) != 0) continue;
        bool fits = needed_with(*in, k, (int)parts) <= bytes;
        if (fits)
            largest = k, next = 0;
        else if (next == 0)
            next = k;
    }
    assert_ok(zero_plan_fit_batch(in, sequences, &room, &b));
    assert_int_equal(b.micro_batch, largest);
    if (largest == 0) {
        assert_true(b.needed > bytes);
        return;
    }
    assert_int_equal(b.micro_batch * b.accumulation, sequences);
    assert_true(b.needed == needed_with(*in, largest, b.accumulation));
    assert_int_equal(b.next, next);
    if (next > 0) assert_true(b.next_needed > bytes);
}

TEST(a_given_batch_is_cut_into_the_largest_parts)
{
    for (int k = 0; k < 16; k++) {
        plan_case c;
        open_case(&shape, k % 8, &c);
        c.input.reproducible = k >= 8;
        for (int64_t b = 1; b <= 24; b *= 3) {
            size_t bytes = needed_with(c.input, b, 1);
            check_given(&c.input, 24, bytes);
            check_given(&c.input, 24, bytes - 1);
        }
        close_case(&c);
    }
}

/* ---- the ends ---- */

TEST(what_no_plan_can_have_ends_the_search)
{
    plan_case c;
    zero_plan_batch b;
    open_case(&shape, 0, &c);
    zero_plan_room room = {.bytes = SIZE_MAX / 4};
    assert_ok(zero_plan_fit_batch(&c.input, 0, &room, &b));
    assert_int_equal(b.micro_batch, (1 << 24) / 17); /* 2^24 tokens */
    assert_int_equal(b.next, 0);
    c.input.stage = 7;
    assert_fails(zero_plan_fit_batch(&c.input, 0, &room, &b), ZERO_ERR_INVALID, "stage 7");
    close_case(&c);
}

/* Super-linear scaling: states in pieces leave more to each rank of many. */
TEST(more_ranks_have_a_larger_batch_each)
{
    plan_case c;
    int64_t last = 0;
    open_case(&large, 2 + 4, &c);
    c.input.bucket = 1 << 14;
    zero_plan_room room = {.bytes = needed_with(c.input, 4, 1)};
    for (int ranks = 4; ranks <= 64; ranks *= 4) {
        zero_plan_batch b;
        c.input.n_ranks = ranks;
        if (zero_plan_fit_batch(&c.input, 0, &room, &b) != ZERO_OK)
            fail_msg("%d ranks: %s", ranks, zero_last_error());
        assert_true(b.micro_batch > last);
        last = b.micro_batch;
    }
    close_case(&c);
}

TEST(without_shards_more_ranks_gain_nothing)
{
    plan_case c;
    zero_plan_batch b;
    open_case(&large, 0 + 4, &c);
    zero_plan_room room = {.bytes = needed_with(c.input, 4, 1)};
    c.input.n_ranks = 64;
    assert_ok(zero_plan_fit_batch(&c.input, 0, &room, &b));
    assert_within(b.micro_batch, 3, 4);
    close_case(&c);
}
