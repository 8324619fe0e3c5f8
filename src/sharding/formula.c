#include "sharding/formula.h"

#include "base/fail.h"
#include "sharding/stages.h"

#define ADAM  2.0 /* states: momentum and variance */
#define STATE 4.0 /* bytes of one in fp32; of the master of a 16-bit parameter, too */

static double shared(zero_holding what, double bytes)
{
    return what == ZERO_HOLD_PIECE ? bytes : 0.0;
}

static double bytes_per_parameter(int n_ranks, int stage, zero_type type, double states)
{
    assert(n_ranks >= 1);
    const zero_stage *s = zero_stage_at(stage);
    double size = (double)zero_type_size(type); /* of a parameter, and of its gradient */
    double optimizer = STATE * (type == ZERO_FP32 ? states : states + 1.0);
    double all = 2.0 * size + optimizer;
    double cut = shared(s->parameters, size) + shared(s->gradients, size) +
                 shared(s->optimizer, optimizer);
    return all - cut + cut / n_ranks;
}

double zero_formula_parameter_bytes(int64_t psi, int n_ranks, int stage, zero_type type)
{
    assert(psi >= 0 && n_ranks >= 1);
    bool is_cut = zero_stage_at(stage)->parameters == ZERO_HOLD_PIECE;
    return (double)psi * (double)zero_type_size(type) / (is_cut ? n_ranks : 1);
}

double zero_formula_bytes_of(int64_t psi, int n_ranks, int stage, zero_type type,
                             double states)
{
    assert(psi >= 0);
    return (double)psi * bytes_per_parameter(n_ranks, stage, type, states);
}

double zero_formula_state_bytes(int64_t psi, int n_ranks, int stage, zero_type type)
{
    return zero_formula_bytes_of(psi, n_ranks, stage, type, ADAM);
}

int64_t zero_formula_largest_model(double bytes, int n_ranks, int stage, zero_type type)
{
    assert(bytes >= 0.0);
    const double most = ldexp(1.0, 62);
    double psi = floor(bytes / bytes_per_parameter(n_ranks, stage, type, ADAM));
    return (int64_t)fmin(psi, most);
}

double zero_formula_reductions(int stage, int64_t microbatches)
{
    bool is_cut = zero_stage_at(stage)->gradients == ZERO_HOLD_PIECE;
    return is_cut ? (double)microbatches : 1.0;
}

/* Parameters in pieces are gathered for each forward and each backward; others once, after
 * the update. Stage 0 gathers the sum of gradients instead. */
double zero_formula_gathers(int stage, int64_t microbatches)
{
    bool is_cut = zero_stage_at(stage)->parameters == ZERO_HOLD_PIECE;
    return is_cut ? 2.0 * (double)microbatches : 1.0;
}

double zero_formula_volume(int64_t psi, int n_ranks, int stage, int64_t microbatches)
{
    assert(psi >= 0 && n_ranks >= 1 && microbatches >= 1);
    double times = zero_formula_reductions(stage, microbatches) +
                   zero_formula_gathers(stage, microbatches);
    return times * (double)psi * (n_ranks - 1) / n_ranks;
}

double zero_formula_exchanged(int64_t psi, int n_ranks)
{
    assert(psi >= 0 && n_ranks >= 1);
    return (double)psi * (n_ranks - 1) / n_ranks;
}

double zero_formula_all_reduced(int64_t psi, int shard_ranks, int replicas)
{
    assert(shard_ranks >= 1);
    return 2.0 * zero_formula_exchanged(psi, replicas) / shard_ranks;
}

int zero_formula_tp_sums(bool again)
{
    return again ? 5 : 4;
}

int zero_formula_tp_sums_of_paper(bool again)
{
    return again ? 6 : 4;
}

/* A reduce-scatter, and an all-gather. */
double zero_formula_tp_volume(int64_t elements, int64_t sums, int n_ranks)
{
    assert(elements >= 0 && sums >= 0 && n_ranks >= 1);
    return 2.0 * (double)sums * (double)elements * (n_ranks - 1) / n_ranks;
}

double zero_formula_tp_gathered(int64_t elements, int n_ranks)
{
    assert(elements >= 0 && n_ranks >= 1);
    return (double)elements * (n_ranks - 1);
}
