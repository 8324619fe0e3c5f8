#include "cli/deepspeed_batch.h"

#include <inttypes.h>

#include "base/fail.h"

typedef zero_deepspeed_input input;

/* 0 stands for a number that is not given. */
typedef struct {
    int64_t global, micro, accumulation, n_ranks;
} batches;

static zero_status put(const input *in, int64_t global, int64_t micro)
{
    if (global > 0) ZERO_TRY(zero_deepspeed_put(in, "global-batch", json_integer(global)));
    if (micro > 0) ZERO_TRY(zero_deepspeed_put(in, "micro-batch", json_integer(micro)));
    return ZERO_OK;
}

static const char *ranks_of(const input *in)
{
    return in->tp > 1 ? "ranks / autotp_size" : "ranks";
}

static zero_status contradict(const input *in, const batches *b)
{
    return zero_fail(ZERO_ERR_INVALID,
                     "%s: train_batch_size %" PRId64
                     " is not micro batches x gradient_accumulation_steps x %s, with "
                     "%" PRId64 ", %" PRId64 " and %" PRId64 " (0: not given)",
                     in->path, b->global, ranks_of(in), b->micro, b->accumulation,
                     b->n_ranks);
}

static zero_status need_ranks(const input *in, const batches *b)
{
    return zero_fail(ZERO_ERR_INVALID,
                     "%s: with gradient_accumulation_steps %" PRId64
                     " and one batch size the other follows from the number of ranks: give "
                     "--ranks N",
                     in->path, b->accumulation);
}

/* global / (a b), or 0 if that is not a whole number. */
static int64_t divide(int64_t global, int64_t a, int64_t b)
{
    if (a > global || b > global / a) return 0;
    return global % (a * b) == 0 ? global / (a * b) : 0;
}

static int64_t at_least_1(int64_t n)
{
    return n > 0 ? n : 1;
}

/* All three keys are given. */
static zero_status take_all(const input *in, const batches *b)
{
    int64_t ranks = divide(b->global, b->micro, b->accumulation);
    if (ranks == 0 || (b->n_ranks > 0 && ranks != b->n_ranks)) return contradict(in, b);
    ZERO_TRY(put(in, b->global, b->micro));
    if (b->n_ranks > 0) return ZERO_OK;
    return zero_deepspeed_note(in, "gradient_accumulation_steps",
                               "it is %" PRId64 " on %" PRId64
                               " %s; zero works it out from both batches and the ranks",
                               b->accumulation, ranks, ranks_of(in));
}

static zero_status take_global(const input *in, const batches *b)
{
    if (b->accumulation <= 1) {
        if (divide(b->global, at_least_1(b->n_ranks), 1) == 0) return contradict(in, b);
        return put(in, b->global, 0);
    }
    if (b->n_ranks == 0) return need_ranks(in, b);
    int64_t micro = divide(b->global, b->accumulation, b->n_ranks);
    return micro == 0 ? contradict(in, b) : put(in, b->global, micro);
}

static zero_status take_micro(const input *in, const batches *b)
{
    const int64_t most = INT32_MAX;
    if (b->accumulation <= 1) return put(in, 0, b->micro);
    if (b->n_ranks == 0) return need_ranks(in, b);
    if (b->micro > most / b->accumulation / b->n_ranks)
        return zero_fail(ZERO_ERR_INVALID,
                         "%s: %" PRId64 " x %" PRId64 " x %" PRId64
                         " sequences are more than %" PRId64 " per step",
                         in->path, b->micro, b->accumulation, b->n_ranks, most);
    return put(in, b->micro * b->accumulation * b->n_ranks, b->micro);
}

static zero_status take_none(const input *in, const batches *b)
{
    if (b->accumulation > 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "%s: gradient_accumulation_steps %" PRId64
                         " needs train_batch_size or train_micro_batch_size_per_gpu, as in "
                         "DeepSpeed",
                         in->path, b->accumulation);
    return zero_deepspeed_note(in, "train_batch_size",
                               "neither batch is given: zero takes its preset's; give "
                               "--global-batch");
}

zero_status zero_deepspeed_take_batches(const input *in)
{
    batches b = {.n_ranks = in->n_ranks};
    ZERO_TRY(zero_deepspeed_whole(in, "train_batch_size", 1, &b.global));
    ZERO_TRY(zero_deepspeed_whole(in, "train_micro_batch_size_per_gpu", 1, &b.micro));
    ZERO_TRY(zero_deepspeed_whole(in, "gradient_accumulation_steps", 1, &b.accumulation));
    if (b.global > 0 && b.micro > 0 && b.accumulation > 0) return take_all(in, &b);
    if (b.global > 0 && b.micro > 0) {
        if (divide(b.global, b.micro, at_least_1(b.n_ranks)) == 0)
            return contradict(in, &b);
        return put(in, b.global, b.micro);
    }
    if (b.global > 0) return take_global(in, &b);
    return b.micro > 0 ? take_micro(in, &b) : take_none(in, &b);
}
