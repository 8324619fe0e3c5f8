#include "paper/memory.h"

#include "sharding/formula.h"

#define HALF   2.0 /* bytes of a 16-bit value */
#define FLOAT  4.0
#define BUCKET 5e8 /* elements */
#define MOST   (INT64_C(1) << 20)

/* b s: the positions that a replica computes at a time. */
static double positions(const zero_paper_setup *setup)
{
    return (double)setup->batch * (double)setup->shape.seq;
}

static double checkpoint_bytes(const zero_paper_setup *setup)
{
    const zero_shape *shape = &setup->shape;
    double whole = HALF * positions(setup) * (double)shape->hidden * (double)shape->layers;
    if (!setup->checkpoints || setup->keep == ZERO_PAPER_KEEP_IN_CPU) return 0.0;
    return setup->keep == ZERO_PAPER_KEEP_PIECE ? whole / setup->model_parallel : whole;
}

/* Table 2 of Korthikanti et al., tensor parallelism alone. */
static double activation_bytes(const zero_paper_setup *setup)
{
    const zero_shape *shape = &setup->shape;
    double h = (double)shape->hidden, t = setup->model_parallel;
    double attention = 5.0 * (double)shape->heads * (double)shape->seq / (h * t);
    double block = positions(setup) * h * (10.0 + 24.0 / t + attention);
    return setup->checkpoints ? block : block * (double)shape->layers;
}

static double buffer_bytes(const zero_paper_setup *setup)
{
    if (!setup->fused_buffer) return HALF * BUCKET;
    return FLOAT * (double)zero_shape_count(&setup->shape) / setup->model_parallel;
}

zero_paper_memory zero_paper_memory_of(const zero_paper_setup *setup)
{
    int64_t psi = zero_shape_count(&setup->shape);
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

/* Bytes grow with *n, a number of the setup, so the largest that fits is found by
 * halving. */
static int64_t largest(const zero_paper_setup *setup, int64_t *n, double bytes)
{
    int64_t fits = 0, beyond = MOST + 1;
    while (beyond - fits > 1) {
        *n = fits + (beyond - fits) / 2;
        if (zero_paper_memory_of(setup).all <= bytes)
            fits = *n;
        else
            beyond = *n;
    }
    return fits;
}

int64_t zero_paper_largest_batch(const zero_paper_setup *setup, double bytes)
{
    zero_paper_setup s = *setup;
    return largest(&s, &s.batch, bytes);
}

int64_t zero_paper_most_layers(const zero_paper_setup *setup, double bytes)
{
    zero_paper_setup s = *setup;
    return largest(&s, &s.shape.layers, bytes);
}
