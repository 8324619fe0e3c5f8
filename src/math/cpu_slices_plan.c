/* cpu_slices_plan.c - how a product in slices fits the scratch. */

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

/* Numbers along k of packed slices, each of whole blocks; of one block if there is no
 * group. */
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

/* Puts the cheapest plan with groups of p->group into *best, if it is cheaper. */
static void try_group(zero_slices_plan *p, const zero_packed_kernels *kernels,
                      const zero_gemm *g, int slices, zero_slices_plan *best)
{
    p->packed = packed_numbers(p, kernels->depth, slices);
    p->buffers = buffers_of(p->group, slices) + (g->c_type != ZERO_FP32);
    for (int64_t cuts = 1; cuts == 1 || (p->buffers && p->width > kernels->cols);
         cuts *= 2) {
        p->width = zero_block_len(g->n, zero_divide_up(g->n, cuts), kernels->cols);
        if (!fill_scratch(p, kernels, g)) continue;
        /* Numbers packed, and those of sums that are added in passes of their own. */
        const double m = (double)g->m, n = (double)g->n, k = (double)(p->slice * slices);
        const double times_b = (double)zero_divide_up(g->m, p->block_m);
        const double times_a = (double)zero_divide_up(g->n, p->width);
        const double arrays = (double)zero_divide_up(slices, zero_max(p->group, 1));
        p->cost = times_b * k * n + times_a * m * k + (arrays + p->buffers) * m * n;
        if (best->packed == 0 || p->cost < best->cost) *best = *p;
    }
}

/* The cheapest plan for a subtree of slices; adds: to what is in c, so they are one
 * group. */
static zero_slices_plan choose(const zero_packed_kernels *kernels, const zero_gemm *g,
                               int slices, bool adds)
{
    zero_slices_plan best = {.cost = INFINITY}, p = {.slice = g->k / g->slices};
    p.step = zero_block_len(p.slice, kernels->block_k, kernels->depth);
    int whole = 1; /* a group of all slices */
    while (whole < slices) whole *= 2;
    for (p.group = whole; p.group > 0; p.group /= 2) {
        if (p.group <= MOST_GROUP) try_group(&p, kernels, g, slices, &best);
        if (adds || (best.group == whole && best.block_m >= g->m)) return best;
    }
    try_group(&p, kernels, g, slices, &best);
    return best;
}

static double least_cost(const zero_packed_kernels *kernels, const zero_gemm *g, int count)
{
    zero_slices_plan plan;
    const int left = zero_slices_split(kernels, g, count, &plan);
    return plan.cost + (left > 0 ? least_cost(kernels, g, left) : 0.0);
}

int zero_slices_split(const zero_packed_kernels *kernels, const zero_gemm *g, int count,
                      zero_slices_plan *plan)
{
    *plan = choose(kernels, g, count, false);
    if (g->c_type != ZERO_FP32)
        return 0; /* rounded, c holds no sum of some of the slices */
    if (count == 1 || (plan->group >= count && plan->block_m >= g->m)) return 0;
    const int left = (int)zero_tree_left(count);
    const zero_slices_plan last = choose(kernels, g, count - left, true);
    if (last.cost >= plan->cost || last.cost + least_cost(kernels, g, left) >= plan->cost)
        return 0;
    *plan = last;
    return left;
}
