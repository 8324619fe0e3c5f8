/* ranks.cu - the sum over ranks along the tree of base/tree.h, with the CPU's bits: additions alone, in
 * fp32, rounded once. The terms may lie in other devices, or in other processes' memory of this one.
 *
 * Terms are added as a binary counter counts: a sum of 2^l terms waits at level l for its neighbour.
 * What is left at the end is added from the right, which is the tree of any number of terms. */
#include "gpu/device_code.h"

#define LEVELS 7 /* 64 terms */

/* At most: links to neighbours and to the host are busy with a few blocks, and the multiprocessors are
 * the backward pass', which runs beside. NCCL takes 8 to 32. */
#define FEW_BLOCKS 32

static_assert(ZERO_MEMORY_TERMS < 1 << LEVELS, "a level for each bit of a number of terms");

template <zero_type type, zero_type result> struct adding_ranks {
    zero_cuda_terms terms;
    void *out;

    template <int W> static __device__ void add(floats<W> &right, const floats<W> &left)
    {
        for (int k = 0; k < W; k++) right.at[k] = left.at[k] + right.at[k];
    }

    template <int W> __device__ void at(int64_t i) const
    {
        floats<W> waiting[LEVELS] = {}, sum = {};
        for (int t = 0; t < terms.n; t++) {
            bool carries = true;
            sum = load<type, W>(terms.at[t], i);
            UNROLL for (int l = 0; l < LEVELS; l++)
            {
                if (carries && (t >> l & 1) != 0) {
                    add(sum, waiting[l]);
                } else if (carries) {
                    waiting[l] = sum;
                    carries = false;
                }
            }
        }
        bool has_sum = false;
        UNROLL for (int l = 0; l < LEVELS; l++)
        {
            if ((terms.n >> l & 1) == 0) continue;
            if (has_sum) {
                add(sum, waiting[l]);
            } else {
                sum = waiting[l];
                has_sum = true;
            }
        }
        store<result, W>(sum, out, i);
    }
};

template <zero_type type, zero_type result>
static void launch(cudaStream_t stream, const zero_cuda_terms *terms, int64_t len,
                   void *out)
{
    bool together = aligned(result, out);
    for (int t = 0; t < terms->n; t++) together = together && aligned(type, terms->at[t]);
    launch_elements(stream, len, together, adding_ranks<type, result>{*terms, out},
                    FEW_BLOCKS);
}

void zero_cuda_sum_ranks(cudaStream_t stream, const zero_cuda_terms *terms, zero_type type,
                         int64_t len, zero_type result, void *out)
{
    for_type(type, [&](auto of) {
        constexpr zero_type each = decltype(of)::value;
        if (result == each)
            launch<each, each>(stream, terms, len, out);
        else
            launch<each, ZERO_FP32>(stream, terms, len, out);
    });
}
