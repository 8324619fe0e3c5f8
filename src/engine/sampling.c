#include "engine/sampling.h"

#include "base/elementary.h"

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

/* The largest logits: all of a rank above `least`, and the first `ties` of that rank. */
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

/* The known logits, the largest of them, and how they become weights. */
struct draw {
    const float *logits;
    int64_t n;
    double most, temperature;
};

static double weight_of(const struct draw *d, int64_t i)
{
    return zero_exp(((double)d->logits[i] - d->most) / d->temperature);
}

/* Grows with the choice, or stays: rounding is monotone, and the order is that of ids. */
static double mass_of(const struct draw *d, struct choice left)
{
    double sum = 0.0;
    for (int64_t i = 0; i < d->n; i++)
        if (is_chosen(&left, d->logits[i])) sum += weight_of(d, i);
    return sum;
}

/* The nucleus: of the chosen, the fewest of the largest that have this mass. Bisects the
 * ranks, then how many of the last one are needed. */
static struct choice narrow(const struct draw *d, struct choice chosen, double mass)
{
    uint32_t least = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit > 0; bit >>= 1) {
        uint32_t rank = least | bit;
        if (rank <= chosen.least || mass_of(d, (struct choice){rank, d->n}) >= mass)
            least = rank;
    }
    int64_t none = 0, enough = chosen.ties;
    if (least > chosen.least)
        enough =
            count_from(d->logits, d->n, least) - count_from(d->logits, d->n, least + 1);
    while (enough - none > 1) {
        int64_t middle = none + (enough - none) / 2;
        bool is_enough = mass_of(d, (struct choice){least, middle}) >= mass;
        *(is_enough ? &enough : &none) = middle;
    }
    return (struct choice){least, enough};
}

bool zero_sampling_ends(const zero_sampling *how, int32_t token)
{
    for (int i = 0; i < how->ends.n; i++)
        if (how->ends.id[i] == token) return true;
    return false;
}

int32_t zero_sampling_draw(const zero_sampling *how, const float *logits, double uniform)
{
    int64_t n = how->known;
    int32_t best = 0, last;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(logits[i])) return -1;
        if (logits[i] > logits[best]) best = (int32_t)i;
    }
    last = best;
    if (how->temperature == 0.0) return best;
    const struct draw d = {logits, n, (double)logits[best], how->temperature};
    struct choice chosen = choose(logits, n, how->top_k);
    double sum = mass_of(&d, chosen);
    if (how->top_p > 0.0 && how->top_p < 1.0) {
        chosen = narrow(&d, chosen, how->top_p * sum);
        sum = mass_of(&d, chosen);
    }
    double rest = uniform * sum;
    for (int64_t i = 0; i < n; i++) {
        if (!is_chosen(&chosen, logits[i])) continue;
        last = (int32_t)i;
        rest -= weight_of(&d, i);
        if (rest < 0.0) break;
    }
    return last;
}
