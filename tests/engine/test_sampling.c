/* The token that a uniform number chooses. */

#include "support/test.h"

#include "base/elementary.h"
#include "base/rng.h"
#include "engine/sampling.h"

enum { V = 300, DRAWS = 20000 };

static void fill(float logits[V], uint64_t seed)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST, .seed = seed};
    zero_rng_normal(&rng, 0, V, logits);
    /* Many are equal, some are -0. */
    for (int i = 0; i < V; i++) logits[i] = roundf(4.0f * logits[i]) / 4.0f;
}

/* The number of ids before i: those with larger logits, and lower ids with equal ones. */
static int place_of(const float *logits, int n, int i)
{
    int before = 0;
    for (int k = 0; k < n; k++)
        before += logits[k] > logits[i] || (logits[k] == logits[i] && k < i);
    return before;
}

TEST(temperature_0_takes_the_first_of_the_largest)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        float logits[V];
        fill(logits, seed);
        zero_sampling how = {.known = V, .top_k = (int64_t)(seed % 3)};
        int32_t chosen = zero_sampling_draw(&how, logits, 0.999);
        assert_int_equal(place_of(logits, V, chosen), 0);
    }
}

/* The sum over the first k places, in the order of ids. */
static double sum_of_places(const zero_sampling *how, const float *logits, int64_t k)
{
    int n = (int)how->known;
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        if (place_of(logits, n, i) < k) sum += exp((double)logits[i] / how->temperature);
    return sum;
}

/* The definition, as plainly as possible: the set by places, then the sum up to the number. */
static int32_t oracle(const zero_sampling *how, const float *logits, double uniform)
{
    int n = (int)how->known, last = -1;
    int64_t k = how->top_k == 0 ? n : how->top_k, nucleus = 1;
    double sum = sum_of_places(how, logits, k), at = 0.0;
    while (how->top_p > 0.0 && how->top_p < 1.0 && nucleus < k &&
           sum_of_places(how, logits, nucleus) < how->top_p * sum)
        nucleus++;
    if (how->top_p > 0.0 && how->top_p < 1.0) {
        k = nucleus;
        sum = sum_of_places(how, logits, k);
    }
    for (int i = 0; i < n; i++) {
        if (place_of(logits, n, i) >= k) continue;
        last = i;
        at += exp((double)logits[i] / how->temperature);
        if (at > uniform * sum) break;
    }
    return last;
}

TEST(any_k_and_temperature_draw_by_the_definition)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST, .seed = 99};
    const int64_t ks[] = {0, 1, 2, 3, 7, 40, 49, 50, 51, V, V + 1, INT64_C(1) << 40};
    const double temperatures[] = {0.3, 1.0, 5.0};
    for (uint64_t i = 0; i < 360; i++) {
        float logits[V];
        fill(logits, i / 12);
        zero_sampling how = {.known = i % 5 == 0 ? 50 : V,
                             .top_k = ks[i % 12],
                             .temperature = temperatures[i % 3]};
        double uniform = zero_rng_uniform(&rng, i);
        assert_int_equal(zero_sampling_draw(&how, logits, uniform),
                         oracle(&how, logits, uniform));
    }
}

TEST(any_p_draws_from_the_nucleus_by_the_definition)
{
    enum { FEW = 60 }; /* the oracle takes the cube of it */
    zero_rng rng = {.purpose = ZERO_RNG_TEST, .seed = 98};
    const double ps[] = {1e-6, 0.03, 0.2, 0.5, 0.77, 0.9, 0.999, 1.0, 0.0};
    const int64_t ks[] = {0, 1, 5, 20, FEW};
    for (uint64_t i = 0; i < 450; i++) {
        float logits[V];
        fill(logits, i / 9);
        zero_sampling how = {.known = FEW,
                             .top_k = ks[i % 5],
                             .top_p = ps[i % 9],
                             .temperature = i % 2 == 0 ? 0.4 : 3.0};
        double uniform = i % 7 == 0 ? 0.999999 : zero_rng_uniform(&rng, i);
        assert_int_equal(zero_sampling_draw(&how, logits, uniform),
                         oracle(&how, logits, uniform));
    }
}

/* Of four equal logits the first two have half of the probability, and the third has more. */
TEST(lower_ids_come_first_into_the_nucleus)
{
    const float logits[6] = {-5.0f, 1.0f, 1.0f, -9.0f, 1.0f, 1.0f};
    zero_sampling how = {.known = 6, .top_k = 4, .top_p = 0.5, .temperature = 0.7};
    assert_int_equal(zero_sampling_draw(&how, logits, 0.0), 1);
    assert_int_equal(zero_sampling_draw(&how, logits, 0.999), 2);
    how.top_p = nextafter(0.5, 1.0);
    assert_int_equal(zero_sampling_draw(&how, logits, 0.999), 4);
    how.top_k = 3;
    how.top_p = 0.25;
    assert_int_equal(zero_sampling_draw(&how, logits, 0.999), 1);
}

/* A share that the first token reaches exactly needs no second one. */
TEST(a_share_that_is_reached_is_enough)
{
    int n_exact = 0;
    for (int i = 1; i < 50; i++) {
        const float logits[2] = {2.0f, 2.0f - 0.03f * (float)i};
        const double sum = 1.0 + zero_exp((double)logits[1] - (double)logits[0]);
        zero_sampling how = {.known = 2, .top_p = 1.0 / sum, .temperature = 1.0};
        if (how.top_p * sum != 1.0) continue;
        n_exact++;
        assert_int_equal(zero_sampling_draw(&how, logits, 0.999), 0);
        how.top_p = nextafter(how.top_p, 1.0);
        if (how.top_p * sum > 1.0)
            assert_int_equal(zero_sampling_draw(&how, logits, 0.999), 1);
    }
    assert_true(n_exact > 10);
}

TEST(draws_come_as_often_as_their_probability_says)
{
    const float logits[4] = {logf(1.0f), logf(4.0f), logf(2.0f), logf(3.0f)};
    const double expected[4] = {0.0, 4.0 / 9.0, 2.0 / 9.0, 3.0 / 9.0};
    zero_rng rng = {.purpose = ZERO_RNG_TEST, .seed = 7};
    zero_sampling how = {.known = 4, .top_k = 3, .temperature = 1.0};
    int count[4] = {0};
    for (uint64_t i = 0; i < DRAWS; i++)
        count[zero_sampling_draw(&how, logits, zero_rng_uniform(&rng, i))]++;
    for (int i = 0; i < 4; i++)
        assert_true(fabs((double)count[i] / DRAWS - expected[i]) < 0.015);
    assert_int_equal(count[0], 0);
}

TEST(logits_that_are_not_finite_choose_nothing)
{
    const float wrong[] = {NAN, INFINITY, -INFINITY};
    for (int w = 0; w < 3; w++) {
        float logits[V];
        fill(logits, 1);
        zero_sampling how = {.known = V - 1, .temperature = w};
        logits[V - 1] = wrong[w]; /* never drawn, so it does not matter */
        assert_true(zero_sampling_draw(&how, logits, 0.5) >= 0);
        logits[17] = wrong[w];
        assert_int_equal(zero_sampling_draw(&how, logits, 0.5), -1);
    }
}

/* Temperatures at which exp() of the difference is 0 for all others, or 1 for all. */
TEST(extreme_temperatures_are_numbers_like_others)
{
    float logits[V];
    fill(logits, 3);
    logits[100] = 3e38f;
    logits[200] = -3e38f;
    zero_sampling how = {.known = V, .temperature = 1e-300};
    assert_int_equal(zero_sampling_draw(&how, logits, 0.999), 100);
    how.temperature = 1e300;
    assert_int_equal(zero_sampling_draw(&how, logits, 0.5), V / 2);
}
