/* cpu_slices_plan.c - how a product in slices fits the scratch. */
#include <math.h>

#include "base/tree.h"
#include "math/cpu_slices.h"
#include "math/slices.h"

#define MOST_GROUP 32 /* slices: its tree of tiles is on the stack */

/* Buffers that the tree over `count` slices needs beside its array. */
static int buffers_of(int group, int count)
{
    if (count <= zero_max(group, 1)) return 0;
    int left = (int)zero_tree_left(count), right = count - left;
    int of_left = buffers_of(group, left);
    if (right <= group) return of_left;
    return (int)zero_max(of_left, 1 + buffers_of(group, right));
}

/* Numbers along k of packed slices, each of whole blocks; of one block if there is no group. */
static int64_t packed_numbers(const zero_slices_plan *p, int64_t depth, int slices)
{
    if (p->group == 0) return zero_round_up(p->step, depth);
    return zero_round_up(p->slice, depth) * zero_min(p->group, slices);
}

static int64_t fit(int64_t room, int64_t of_one, int64_t granule)
{
    return room / of_one / granule * granule;
}

/* False if not even one tile fits. */
static bool fill_scratch(zero_slices_plan *p, const zero_packed_kernels *kernels,
                         const zero_gemm *g)
{
    const int64_t all = zero_math_scratch() * (int64_t)sizeof(float) - ZERO_SLICES_LINE;
    const int64_t lane = p->packed * (int64_t)zero_type_size(kernels->type);
    const int64_t most_n = zero_max(fit(all / 4, lane, kernels->cols), kernels->cols);
    p->block_n =
        zero_block_len(p->width, zero_min(most_n, kernels->block_n), kernels->cols);
    const int64_t rest = all - p->block_n * lane;
    const int64_t row = lane + p->buffers * p->width * (int64_t)sizeof(float);
    const int64_t most_m = zero_min(fit(rest, row, kernels->rows), kernels->block_m);
    if (most_m < kernels->rows) return false;
    p->block_m = zero_block_len(g->m, most_m, kernels->rows);
    return true;
}

/* Numbers packed, and those of sums that are added in passes of their own. */
static double cost_of(const zero_slices_plan *p, const zero_gemm *g)
{
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    const double times_b = (double)zero_divide_up(g->m, p->block_m);
    const double times_a = (double)zero_divide_up(g->n, p->width);
    const double arrays = g->slices / (double)zero_max(p->group, 1);
    return times_b * k * n + times_a * m * k + (arrays + p->buffers) * m * n;
}

zero_slices_plan zero_slices_choose(const zero_packed_kernels *kernels, const zero_gemm *g)
{
    zero_slices_plan best = {0};
    double least = INFINITY;
    const int64_t slice = g->k / g->slices;
    const int64_t step = zero_block_len(slice, kernels->block_k, kernels->depth);
    for (int group = 0; group <= MOST_GROUP; group = group ? 2 * group : 1) {
        zero_slices_plan p = {.group = group, .slice = slice, .step = step};
        p.packed = packed_numbers(&p, kernels->depth, g->slices);
        p.buffers = buffers_of(group, g->slices);
        for (int64_t cuts = 1; cuts == 1 || (p.buffers && p.width > kernels->cols);
             cuts *= 2) {
            p.width = zero_block_len(g->n, zero_divide_up(g->n, cuts), kernels->cols);
            if (!fill_scratch(&p, kernels, g) || cost_of(&p, g) >= least) continue;
            least = cost_of(&p, g);
            best = p;
        }
        if (group >= g->slices) break;
    }
    return best;
}
