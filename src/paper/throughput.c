#include "paper/throughput.h"

#include <math.h>

#define HALF 2.0 /* bytes of an element */
#define UPDATE_BYTES \
    28.0 /* Adam in mixed precision: master, two moments read and written, g, p */

/* ---- flops ---- */

double zero_throughput_flops(const zero_paper_setup *setup)
{
    const zero_shape *s = &setup->shape;
    double h = (double)s->hidden, positions = (double)setup->batch * (double)s->seq;
    double pass =
        24.0 * positions * (double)s->layers * h * h * (1.0 + (double)s->seq / (6.0 * h));
    double logits = 6.0 * positions * h * (double)s->vocab;
    return (setup->checkpoints ? 4.0 : 3.0) * pass + logits;
}

/* ---- messages ---- */

/* Megatron's f and g: two sums in each pass over a block, each 2 (T - 1) messages of b s h
 * / T. */
static double tensor_seconds(const zero_paper_setup *setup, const zero_machine_file *m)
{
    const zero_shape *s = &setup->shape;
    double T = setup->model_parallel;
    const zero_machine_link *link = T > m->devices ? &m->between : &m->inside;
    double rounds = (setup->checkpoints ? 6.0 : 4.0) * 2.0;
    if (setup->checkpoints && setup->keep != ZERO_PAPER_KEEP_WHOLE) rounds += 1.0;
    double piece = HALF * (double)setup->batch * (double)s->seq * (double)s->hidden / T;
    double messages = rounds * (T - 1.0) * (double)s->layers;
    return messages * (link->latency + piece / link->bandwidth);
}

/* One reduce-scatter or all-gather of all parameters. */
static double exchange_seconds(const zero_paper_setup *setup, const zero_machine_file *m)
{
    double T = setup->model_parallel, N = setup->n_ranks;
    double bytes = HALF * (double)zero_shape_count(&setup->shape) / T * (N - 1.0) / N;
    if (T * N <= m->devices) return bytes / m->inside.bandwidth;
    return bytes * fmin(T, m->devices) / m->between.bandwidth;
}

static double host_seconds(const zero_paper_setup *setup, const zero_machine_file *m)
{
    const zero_shape *s = &setup->shape;
    double T = setup->model_parallel, devices = fmin(m->devices, T * setup->n_ranks);
    if (!setup->checkpoints || setup->keep != ZERO_PAPER_KEEP_IN_CPU) return 0.0;
    double kept = HALF * (double)setup->batch * (double)s->seq * (double)s->hidden *
                  (double)s->layers / T;
    return 2.0 * kept * devices / m->host;
}

/* ---- a step ---- */

zero_throughput zero_throughput_of(const zero_paper_setup *setup, bool overlaps,
                                   const zero_machine_file *m)
{
    const zero_shape *s = &setup->shape;
    double T = setup->model_parallel, tokens = (double)setup->batch * (double)s->seq;
    double owned = (double)zero_shape_count(s) / T;
    if (setup->stage > 0) owned /= setup->n_ranks;
    zero_throughput t = {.flops = zero_throughput_flops(setup) / T,
                         .tensor = tensor_seconds(setup, m),
                         .host = host_seconds(setup, m),
                         .update = UPDATE_BYTES * owned / m->memory_bandwidth};
    t.compute = t.flops / zero_machine_products(m, ZERO_FP16, s, tokens);
    /* Fills in `data` and `data_all`. */
    double exchange = exchange_seconds(setup, m);
    bool gathers_twice = setup->stage == 3,
         gathers_late = setup->stage == 1 || setup->stage == 2;
    double forward = (t.compute + t.tensor) / (setup->checkpoints ? 4.0 : 3.0);
    double backward = t.compute + t.tensor - forward;
    t.data_all = (gathers_twice ? 3.0 : 2.0) * exchange;
    if (!overlaps)
        t.data = t.data_all;
    else if (gathers_late)
        t.data = fmax(0.0, exchange - backward) + exchange;
    else
        t.data = fmax(0.0, 2.0 * exchange - backward) +
                 (gathers_twice ? fmax(0.0, exchange - forward) : 0.0);
    t.step = t.compute + t.tensor + t.data + t.host + t.update;
    t.rate = t.flops / t.step;
    return t;
}
