/* A plan beside plans without one part each: every line is such a plan, measured. */

#include "support/planned.h"
#include "support/test.h"

#include "base/fail.h"
#include "base/number.h"
#include "nn/shape.h"
#include "nn/share.h"
#include "plan/ablation.h"
#include "sharding/compile.h"

static const zero_shape shape = {
    .layers = 4, .hidden = 64, .heads = 4, .seq = 64, .vocab = 3000};

typedef struct {
    zero_model whole, part;
    zero_plan_input input;
} plan_case;

static void open_case(int tp, plan_case *c)
{
    zero_share share = {.ranks = tp, .slices = tp};
    c->whole = built(&shape);
    assert_ok(zero_model_share(&c->whole, share, &c->part));
    c->input = zero_plan_input_standard(&c->part, 4, 0);
    c->input.micro_batch = 4;
    c->input.bucket = 1 << 14;
}

static void close_case(plan_case *c)
{
    zero_model_destroy(&c->part);
    zero_model_destroy(&c->whole);
}

static size_t needed(const zero_plan_input *in)
{
    zero_plan_ledger l;
    assert_ok(zero_plan_measure(in, &l));
    return zero_plan_scarce(in, &l);
}

/* Buckets hold the largest group at once. */
static void check_bucket(const zero_schedule *s, const zero_ablation_line *line)
{
    int64_t largest = 0;
    char bucket[64];
    for (int g = 0; g < s->input.model->n_groups; g++)
        largest = zero_max(largest, s->groups[g].partition.padded);
    snprintf(bucket, sizeof bucket, "--bucket %lld", (long long)largest);
    if (line->is_used) assert_string_equal(line->instead, bucket);
}

static zero_ablation ablate(const zero_plan_input *in)
{
    zero_ablation a;
    zero_schedule s = compiled(in);
    assert_ok(zero_plan_ablate(&s, &a));
    assert_true(a.alive == s.peak_bytes && a.arena >= a.alive);
    check_bucket(&s, &a.of[ZERO_ABLATE_BUCKET]);
    if (!in->device) assert_true(a.needed == a.arena + zero_plan_process(&s));
    zero_schedule_destroy(&s);
    return a;
}

static void assert_line(const zero_ablation *a, zero_ablated part, size_t bytes)
{
    const zero_ablation_line *line = &a->of[part];
    assert_true(line->is_used && line->is_possible);
    assert_true(line->needed == bytes);
    assert_true(strlen(line->instead) > 0);
    assert_true(line->by_formula == (part == ZERO_ABLATE_CONSTANT_BUFFERS));
}

static void check_case(const plan_case *c)
{
    zero_plan_input without = c->input;
    zero_ablation a = ablate(&c->input);
    assert_true(a.needed == needed(&c->input));
    without.recompute = false;
    assert_line(&a, ZERO_ABLATE_RECOMPUTE, needed(&without));
    assert_true(a.of[ZERO_ABLATE_RECOMPUTE].needed > a.needed);

    without = c->input;
    without.bucket = 1 << 30;
    assert_line(&a, ZERO_ABLATE_BUCKET, needed(&without));
    assert_line(&a, ZERO_ABLATE_CONSTANT_BUFFERS,
                a.needed + 4 * (size_t)c->input.model->n_params);

    without = c->input;
    without.stage--;
    if (without.stage < 0)
        assert_false(a.of[ZERO_ABLATE_STAGE].is_used);
    else
        assert_line(&a, ZERO_ABLATE_STAGE, needed(&without));
}

TEST(each_line_is_a_plan_without_that_part)
{
    for (int k = 0; k < 4 * 2 * 2; k++) {
        plan_case c;
        open_case(1 + k / 8, &c);
        c.input.stage = k % 4;
        c.input.type = k / 4 % 2 ? ZERO_BF16 : ZERO_FP32;
        c.input.recompute = true;
        check_case(&c);
        close_case(&c);
    }
}

/* Beside a device its bytes count, and those of the host do not. */
TEST(with_a_device_its_bytes_count)
{
    plan_case c;
    open_case(1, &c);
    c.input.recompute = true;
    c.input.stage = 2;
    c.input.device = 1;
    check_case(&c);
    close_case(&c);
}

TEST(a_part_that_is_not_used_has_no_bytes)
{
    plan_case c;
    open_case(1, &c);
    c.input.bucket = 1 << 30;
    zero_ablation a = ablate(&c.input);
    assert_false(a.of[ZERO_ABLATE_RECOMPUTE].is_used);
    assert_false(a.of[ZERO_ABLATE_PARTITION].is_used);
    assert_false(a.of[ZERO_ABLATE_STAGE].is_used);
    assert_false(a.of[ZERO_ABLATE_BUCKET].is_used);
    close_case(&c);
}

/* A file has what --recompute keeps, and pieces that stage 3 alone has. */
TEST(what_needs_the_part_goes_with_it)
{
    plan_case c;
    open_case(1, &c);
    c.input.recompute = true;
    c.input.stage = 3;
    c.input.offload = ZERO_OFFLOAD_LAZY;
    c.input.offload_activations = c.input.offload_parameters = 1;
    zero_ablation a = ablate(&c.input);
    zero_plan_input without = c.input;
    without.recompute = false;
    without.offload_activations = 0;
    assert_line(&a, ZERO_ABLATE_RECOMPUTE, needed(&without));
    without = c.input;
    without.stage = 2;
    without.offload_parameters = 0;
    assert_line(&a, ZERO_ABLATE_STAGE, needed(&without));
    close_case(&c);
}

/* P_a divides what --recompute keeps; a node gathers what stage 3 alone has in pieces. */
TEST(p_a_and_node_parameters_go_with_what_they_need)
{
    plan_case c;
    zero_layout whole;
    open_case(2, &c);
    assert_ok(zero_layout_init(&whole, 4, (const int[]){0, 0, 1, 1}));
    c.input.layout = &whole;
    c.input.collectives = ZERO_ALGORITHM_HIER;
    c.input.stage = 3;
    c.input.recompute = true;
    c.input.partition_activations = c.input.node_parameters = 1;
    zero_ablation a = ablate(&c.input);
    zero_plan_input without = c.input;
    without.partition_activations = 0;
    assert_line(&a, ZERO_ABLATE_PARTITION, needed(&without));
    assert_true(a.of[ZERO_ABLATE_PARTITION].needed > a.needed);
    without.recompute = false;
    assert_line(&a, ZERO_ABLATE_RECOMPUTE, needed(&without));
    without = c.input;
    without.stage = 2;
    without.node_parameters = 0;
    assert_line(&a, ZERO_ABLATE_STAGE, needed(&without));
    zero_layout_destroy(&whole);
    close_case(&c);
}
