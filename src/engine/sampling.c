#include "engine/sampling.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Orders finite floats as numbers do; -0 and 0 are equal. */
static uint32_t rank_of(float x)
{
    uint32_t bits;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static int64_t count_from(const float *logits, int64_t n, uint32_t least)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += rank_of(logits[i]) >= least;
    return count;
}

/* The k largest logits: all of a rank above `least`, and the first `ties` of that rank. */
struct choice {
    uint32_t least;
    int64_t ties;
};

/* Bisects the ranks in 32 passes: sorting would need an allocation. */
static struct choice choose(const float *logits, int64_t n, int64_t k)
{
    uint32_t least = 0;
    if (k <= 0 || k >= n) return (struct choice){0, n};
    for (uint32_t bit = UINT32_C(1) << 31; bit > 0; bit >>= 1)
        if (count_from(logits, n, least | bit) >= k) least |= bit;
    return (struct choice){least, k - count_from(logits, n, least + 1)};
}

/* True if the next logit, in the order of ids, is among the chosen. */
static bool is_chosen(struct choice *left, float logit)
{
    uint32_t rank = rank_of(logit);
    if (rank != left->least) return rank > left->least;
    return left->ties-- > 0;
}

static bool are_finite(const float *logits, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(logits[i])) return false;
    return true;
}

static int32_t largest(const float *logits, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return (int32_t)best;
}

int32_t zero_sampling_draw(const zero_sampling *how, const float *logits, double uniform)
{
    int64_t n = how->known;
    if (!are_finite(logits, n)) return -1;
    int32_t best = largest(logits, n), last = best;
    if (how->temperature == 0.0) return best;
    const struct choice chosen = choose(logits, n, how->top_k);
    double most = (double)logits[best], sum = 0.0;
    struct choice left = chosen;
    for (int64_t i = 0; i < n; i++)
        if (is_chosen(&left, logits[i]))
            sum += exp(((double)logits[i] - most) / how->temperature);
    double rest = uniform * sum;
    left = chosen;
    for (int64_t i = 0; i < n; i++) {
        if (!is_chosen(&left, logits[i])) continue;
        last = (int32_t)i;
        rest -= exp(((double)logits[i] - most) / how->temperature);
        if (rest < 0.0) break;
    }
    return last;
}
