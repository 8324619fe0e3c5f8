#include "sharding/formula.h"

#include <assert.h>
#include <math.h>

#define MOMENTS 8.0 /* bytes: momentum and variance in fp32 */
#define MASTER  4.0 /* bytes: the fp32 parameter behind a 16-bit one */

static double bytes_per_parameter(int n_ranks, int stage, zero_type type)
{
    assert(n_ranks >= 1 && stage >= 0 && stage <= 3);
    double size = (double)zero_type_size(type); /* of a parameter, and of its gradient */
    double optimizer = type == ZERO_FP32 ? MOMENTS : MOMENTS + MASTER;
    double shared = 0.0;
    if (stage >= 1) shared += optimizer;
    if (stage >= 2) shared += size;
    if (stage >= 3) shared += size;
    return 2.0 * size + optimizer - shared + shared / n_ranks;
}

double zero_formula_parameter_bytes(int64_t psi, int n_ranks, int stage, zero_type type)
{
    assert(psi >= 0 && n_ranks >= 1 && stage >= 0 && stage <= 3);
    return (double)psi * (double)zero_type_size(type) / (stage == 3 ? n_ranks : 1);
}

double zero_formula_state_bytes(int64_t psi, int n_ranks, int stage, zero_type type)
{
    assert(psi >= 0);
    return (double)psi * bytes_per_parameter(n_ranks, stage, type);
}

int64_t zero_formula_largest_model(double bytes, int n_ranks, int stage, zero_type type)
{
    assert(bytes >= 0.0);
    const double most = ldexp(1.0, 62);
    double psi = floor(bytes / bytes_per_parameter(n_ranks, stage, type));
    return (int64_t)fmin(psi, most);
}

double zero_formula_volume(int64_t psi, int n_ranks, int stage, int64_t microbatches)
{
    assert(psi >= 0 && n_ranks >= 1 && stage >= 0 && stage <= 3 && microbatches >= 1);
    double M = (double)microbatches, times = 2.0;
    if (stage == 2) times = M + 1.0;
    if (stage == 3) times = 3.0 * M;
    return times * (double)psi * (n_ranks - 1) / n_ranks;
}
