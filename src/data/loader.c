#include "data/loader.h"

#include "base/rng.h"

__extension__ typedef unsigned __int128 wide; /* j*T passes 2^63 in a long run */

static int64_t n_validation(const zero_corpus *corpus)
{
    return corpus->n_tokens - corpus->n_train;
}

static zero_status check_split(const zero_corpus *corpus, const char *name, int64_t n,
                               int64_t T)
{
    if (n > T) return ZERO_OK;
    ZERO_INVALID_IF(corpus->has_validation,
                    "the %s data have %" PRId64 " tokens, but one sample of --seq %" PRId64
                    " needs %" PRId64 ": give more data or a smaller --seq",
                    name, n, T, T + 1);
    return zero_fail(
        ZERO_ERR_INVALID,
        "the %s split has %" PRId64 " tokens, but one sample of --seq %" PRId64
        " needs %" PRId64
        " (a tenth of the data is for validation): give more data, at least %" PRId64
        " tokens in all, or a smaller --seq",
        name, n, T, T + 1, 10 * (T + 1));
}

zero_status zero_loader_init(zero_loader *loader, const zero_corpus *corpus, int64_t T,
                             int64_t B, uint64_t seed, bool shuffle)
{
    ZERO_INVALID_IF(
        T < 1 || T > INT32_MAX || B < 1,
        "samples of %" PRId64 " tokens, %" PRId64
        " per global batch: expected at least one of each (and at most %d tokens)",
        T, B, INT32_MAX);
    ZERO_TRY(check_split(corpus, "training", corpus->n_train, T));
    ZERO_TRY(check_split(corpus, "validation", n_validation(corpus), T));
    *loader =
        (zero_loader){.corpus = corpus, .T = T, .B = B, .seed = seed, .shuffle = shuffle};
    return ZERO_OK;
}

/* A Feistel network is a bijection for any round function. Cycle walking keeps it one: each
 * cycle that starts below W returns below W. */
static uint64_t permute(uint64_t seed, uint64_t epoch, uint64_t W, uint64_t x)
{
    unsigned half = 1;
    while (2 * half < 64 && (UINT64_C(1) << (2 * half)) < W) half++;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = x >> half, right = x & mask;
        for (uint64_t round = 0; round < 4; round++) {
            zero_rng rng = {seed, ZERO_RNG_ORDER, epoch, 0, round};
            uint64_t mixed = left ^ (zero_rng_bits(&rng, right) & mask);
            left = right;
            right = mixed;
        }
        x = left << half | right;
    } while (x >= W);
    return x;
}

void zero_loader_resume(zero_loader *loader, int64_t step, int64_t samples)
{
    loader->moved = samples - step * loader->B;
}

int64_t zero_loader_used(const zero_loader *loader, int64_t step)
{
    return step * loader->B + loader->moved;
}

int64_t zero_loader_train_start(const zero_loader *loader, int64_t step, int64_t i)
{
    assert(step >= 0 && i >= 0);
    uint64_t T = (uint64_t)loader->T, n = (uint64_t)loader->corpus->n_train;
    uint64_t j = (uint64_t)zero_loader_used(loader, step) + (uint64_t)i;
    if (!loader->shuffle) return (int64_t)((wide)j * T % (n - T));
    uint64_t W = (n - 1) / T;
    return (int64_t)(T * permute(loader->seed, j / W, W, j % W));
}

int64_t zero_loader_validation_start(const zero_loader *loader, int64_t i)
{
    assert(i >= 0);
    uint64_t T = (uint64_t)loader->T, n = (uint64_t)n_validation(loader->corpus);
    uint64_t at = (uint64_t)((wide)(uint64_t)i * T % (n - T));
    if (loader->eval_random) {
        zero_rng rng = {loader->seed, ZERO_RNG_EVAL, 0, (uint64_t)i, 0};
        at = (uint64_t)((wide)zero_rng_bits(&rng, 0) * (n - T) >> 64);
    }
    return loader->corpus->n_train + (int64_t)at;
}

static void read_window(const zero_loader *loader, int64_t start, int32_t *inputs,
                        int32_t *targets)
{
    zero_corpus_read(loader->corpus, start, loader->T, inputs);
    zero_corpus_read(loader->corpus, start + 1, loader->T, targets);
}

void zero_loader_train_sample(const void *loader, int64_t step, int64_t i,
                              ZERO_UNUSED int64_t T, void *inputs, void *targets)
{
    read_window(loader, zero_loader_train_start(loader, step, i), inputs, targets);
}

void zero_loader_validation_sample(const void *loader, ZERO_UNUSED int64_t step, int64_t i,
                                   ZERO_UNUSED int64_t T, void *inputs, void *targets)
{
    read_window(loader, zero_loader_validation_start(loader, i), inputs, targets);
}
