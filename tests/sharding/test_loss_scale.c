/* Dynamic loss scaling: the documented sequence step by step, then laws over random ones. */

#include "support/test.h"

#include "base/rng.h"
#include "sharding/loss_scale.h"
#include "support/within.h"

static void step(zero_loss_scale *s, bool overflow, float next)
{
    assert_ok(zero_loss_scale_update(s, overflow));
    assert_true(s->scale == next);
}

static void clean(zero_loss_scale *s, int n, float scale)
{
    for (int i = 0; i < n; i++) step(s, false, scale);
}

static void refused_without_a_change(zero_loss_scale *s)
{
    zero_loss_scale before = *s;
    assert_int_equal(zero_loss_scale_update(s, true), ZERO_ERR_DIVERGED);
    assert_true(s->scale == before.scale && s->clean_steps == before.clean_steps);
    assert_true(s->type == before.type && s->hysteresis == before.hysteresis);
}

/* The table in loss_scale.h. */
TEST(the_documented_sequence_is_walked)
{
    zero_loss_scale s = zero_loss_scale_init(ZERO_FP16);
    assert_true(s.scale == 65536.0f);
    step(&s, true, 65536.0f);
    step(&s, true, 32768.0f);
    step(&s, true, 16384.0f);
    clean(&s, 999, 16384.0f);
    step(&s, false, 32768.0f);
    step(&s, false, 32768.0f);
    step(&s, true, 32768.0f);
    step(&s, true, 16384.0f);
}

TEST(an_overflow_starts_the_count_of_clean_steps_again)
{
    zero_loss_scale s = zero_loss_scale_init(ZERO_FP16);
    clean(&s, 999, 65536.0f);
    step(&s, true, 65536.0f); /* forgiven, but no clean step */
    clean(&s, 999, 65536.0f);
    step(&s, false, 131072.0f);
}

TEST(clean_steps_without_growth_do_not_refill_what_is_forgiven)
{
    zero_loss_scale s = zero_loss_scale_init(ZERO_FP16);
    step(&s, true, 65536.0f);
    clean(&s, 999, 65536.0f);
    step(&s, true, 32768.0f);
}

TEST(an_overflow_at_the_smallest_scale_ends_the_run)
{
    zero_loss_scale s = zero_loss_scale_init(ZERO_FP16);
    step(&s, true, 65536.0f);
    for (float next = 32768.0f; next >= 1.0f; next /= 2.0f) step(&s, true, next);
    refused_without_a_change(&s);
    const char *const parts[] = {"fp16", "to 1, the smallest", "--lr"};
    for (int i = 0; i < 3; i++) assert_told(parts[i]);
}

/* Once grown from 1 to 2, one overflow is forgiven, one halves, and the third is too many. */
TEST(the_way_back_from_the_smallest_scale_is_open)
{
    zero_loss_scale s = zero_loss_scale_init(ZERO_FP16);
    step(&s, true, 65536.0f);
    for (float next = 32768.0f; next >= 1.0f; next /= 2.0f) step(&s, true, next);
    clean(&s, 999, 1.0f);
    step(&s, false, 2.0f);
    step(&s, true, 2.0f);
    step(&s, true, 1.0f);
    refused_without_a_change(&s);
}

TEST(gradients_of_only_zeros_do_not_take_the_scale_to_infinity)
{
    zero_loss_scale s = zero_loss_scale_init(ZERO_FP16);
    for (int i = 0; i < 200 * ZERO_LOSS_SCALE_WINDOW; i++)
        assert_ok(zero_loss_scale_update(&s, false));
    assert_true(s.scale == ldexpf(1.0f, 32));
    step(&s, true, ldexpf(1.0f, 32));
    step(&s, true, ldexpf(1.0f, 31));
}

TEST(wider_types_are_not_scaled)
{
    const zero_type types[] = {ZERO_FP32, ZERO_BF16};
    for (int i = 0; i < 2; i++) {
        zero_loss_scale s = zero_loss_scale_init(types[i]);
        assert_true(s.scale == 1.0f);
        clean(&s, 3 * ZERO_LOSS_SCALE_WINDOW, 1.0f);
        refused_without_a_change(&s);
        assert_told(zero_type_name(types[i]));
    }
}

/* Laws that hold after any step. */
static void check_laws(const zero_loss_scale *was, const zero_loss_scale *is, bool overflow)
{
    int exponent;
    assert_true(frexpf(is->scale, &exponent) == 0.5f); /* a power of two */
    assert_true(is->scale >= 1.0f && is->scale <= ldexpf(1.0f, 32));
    assert_true(is->clean_steps >= 0 && is->clean_steps < ZERO_LOSS_SCALE_WINDOW);
    assert_within(is->hysteresis, 1, ZERO_LOSS_SCALE_HYSTERESIS);
    if (overflow) {
        bool is_halved = is->scale == was->scale / 2.0f;
        bool is_forgiven = is->scale == was->scale && is->hysteresis < was->hysteresis;
        assert_true((is_halved || is_forgiven) && is->clean_steps == 0);
    } else {
        bool grows = was->clean_steps == ZERO_LOSS_SCALE_WINDOW - 1;
        assert_true(is->scale ==
                    (grows ? fminf(2.0f * was->scale, 4294967296.0f) : was->scale));
    }
}

TEST(laws_hold_under_any_order_of_overflows)
{
    const double rates[] = {0.0001, 0.0007, 0.002, 0.02, 0.5};
    for (int r = 0; r < 5; r++) {
        zero_rng rng = {.seed = 7, .purpose = ZERO_RNG_TEST, .sample = (uint64_t)r};
        zero_loss_scale s = zero_loss_scale_init(ZERO_FP16);
        for (uint64_t i = 0; i < 100000; i++) {
            bool overflow = zero_rng_uniform(&rng, i) < rates[r];
            zero_loss_scale was = s;
            if (zero_loss_scale_update(&s, overflow) == ZERO_OK) {
                check_laws(&was, &s, overflow);
                continue;
            }
            assert_true(overflow && was.scale == 1.0f && s.scale == 1.0f);
            s = zero_loss_scale_init(ZERO_FP16); /* a new run */
        }
    }
}
