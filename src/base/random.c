#include "zero/random.h"

#include "base/rng.h"

static zero_rng open_stream(const zero_random *stream)
{
    return (zero_rng){.seed = (uint64_t)stream->seed,
                      .purpose = ZERO_RNG_OWN,
                      .step = (uint64_t)stream->step,
                      .sample = (uint64_t)stream->sample,
                      .tensor = (uint64_t)stream->number};
}

void zero_random_uniform(const zero_random *stream, int64_t first, int64_t n, float *out)
{
    if (!stream || !out) return;
    const zero_rng rng = open_stream(stream);
    for (int64_t k = 0; k < n; k++) /* the upper 24 bits are a float exactly */
        out[k] = (float)(zero_rng_bits(&rng, (uint64_t)(first + k)) >> 40) * 0x1p-24f;
}

void zero_random_normal(const zero_random *stream, int64_t first, int64_t n, float *out)
{
    if (!stream || !out) return;
    const zero_rng rng = open_stream(stream);
    zero_rng_normal(&rng, (uint64_t)first, n, out);
}
