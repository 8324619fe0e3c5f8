#include "report/paper_memory.h"

#include <assert.h>

#include "sharding/formula.h"

#define HALF         2.0 /* bytes of a 16-bit value */
#define FLOAT        4.0
#define BUCKET       5e8 /* elements */
#define MOST         (INT64_C(1) << 20)
#define OS           1
#define OS_G         2
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const zero_paper_config configs[ZERO_PAPER_CONFIGS] = {
    {"C1", "P_os, C_B + M_D", OS, ZERO_PAPER_KEEP_WHOLE},
    {"C2", "P_os, C_B + M_D + P_a", OS, ZERO_PAPER_KEEP_PIECE},
    {"C3", "P_os+g, C_B + M_D", OS_G, ZERO_PAPER_KEEP_WHOLE},
    {"C4", "P_os+g, C_B + M_D + P_a", OS_G, ZERO_PAPER_KEEP_PIECE},
    {"C5", "P_os+g, C_B + M_D + P_a+cpu", OS_G, ZERO_PAPER_KEEP_IN_CPU},
};

const zero_paper_config *zero_paper_config_at(int i)
{
    assert(i >= 0 && i < COUNT(configs));
    return &configs[i];
}

zero_paper_setup zero_paper_setup_of(const zero_paper_config *config,
                                     const zero_gpt2_shape *shape, int model_parallel,
                                     int n_ranks, int64_t batch)
{
    return (zero_paper_setup){.shape = *shape,
                              .model_parallel = model_parallel,
                              .n_ranks = n_ranks,
                              .batch = batch,
                              .stage = config->stage,
                              .checkpoints = true,
                              .keep = config->keep};
}

/* b s: the positions that a replica computes at a time. */
static double positions(const zero_paper_setup *setup)
{
    return (double)setup->batch * (double)setup->shape.seq;
}

static double checkpoint_bytes(const zero_paper_setup *setup)
{
    const zero_gpt2_shape *shape = &setup->shape;
    double whole = HALF * positions(setup) * (double)shape->hidden * (double)shape->layers;
    if (!setup->checkpoints || setup->keep == ZERO_PAPER_KEEP_IN_CPU) return 0.0;
    return setup->keep == ZERO_PAPER_KEEP_PIECE ? whole / setup->model_parallel : whole;
}

/* Table 2 of Korthikanti et al., tensor parallelism alone. */
static double activation_bytes(const zero_paper_setup *setup)
{
    const zero_gpt2_shape *shape = &setup->shape;
    double h = (double)shape->hidden, t = setup->model_parallel;
    double attention = 5.0 * (double)shape->heads * (double)shape->seq / (h * t);
    double block = positions(setup) * h * (10.0 + 24.0 / t + attention);
    return setup->checkpoints ? block : block * (double)shape->layers;
}

static double buffer_bytes(const zero_paper_setup *setup)
{
    if (!setup->fused_buffer) return HALF * BUCKET;
    return FLOAT * (double)zero_gpt2_count(&setup->shape) / setup->model_parallel;
}

zero_paper_memory zero_paper_memory_of(const zero_paper_setup *setup)
{
    int64_t psi = zero_gpt2_count(&setup->shape);
    double t = setup->model_parallel, words = (double)setup->shape.vocab / t;
    zero_paper_memory m = {
        .states =
            zero_formula_state_bytes(psi, setup->n_ranks, setup->stage, ZERO_FP16) / t,
        .checkpoints = checkpoint_bytes(setup),
        .activations = activation_bytes(setup),
        .logits = (HALF + FLOAT) * positions(setup) * words,
        .buffers = buffer_bytes(setup)};
    m.all = m.states + m.checkpoints + m.activations + m.logits + m.buffers;
    return m;
}

/* ---- what fits ---- */

static zero_paper_setup with_batch(const zero_paper_setup *setup, int64_t batch)
{
    zero_paper_setup s = *setup;
    s.batch = batch;
    return s;
}

static zero_paper_setup with_layers(const zero_paper_setup *setup, int64_t layers)
{
    zero_paper_setup s = *setup;
    s.shape.layers = layers;
    return s;
}

/* Bytes grow with both numbers, so the largest that fits is found by halving. */
static int64_t largest(zero_paper_setup (*with)(const zero_paper_setup *setup, int64_t n),
                       const zero_paper_setup *setup, double bytes)
{
    int64_t fits = 0, beyond = MOST + 1;
    while (beyond - fits > 1) {
        int64_t middle = fits + (beyond - fits) / 2;
        zero_paper_setup s = with(setup, middle);
        if (zero_paper_memory_of(&s).all <= bytes)
            fits = middle;
        else
            beyond = middle;
    }
    return fits;
}

int64_t zero_paper_largest_batch(const zero_paper_setup *setup, double bytes)
{
    return largest(with_batch, setup, bytes);
}

int64_t zero_paper_most_layers(const zero_paper_setup *setup, double bytes)
{
    return largest(with_layers, setup, bytes);
}
