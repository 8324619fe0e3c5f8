#include "report/paper_speed.h"

#include <math.h>
#include <string.h>

#include "sharding/formula.h"

#define TERA     1e12
#define TRILLION INT64_C(1000000000000)
#define ONE_NODE 65536.0 /* devices: more than any run has */

zero_paper_closeness zero_paper_compare_runs(const zero_paper_figure *figure,
                                             const zero_machine_file *machine)
{
    zero_paper_closeness c = {0};
    double squares = 0.0;
    for (int i = 0; i < figure->n; i++) {
        const zero_paper_run *run = &figure->runs[i];
        if (run->paper <= 0.0) continue;
        double ratio = zero_paper_time(run, machine).rate / TERA / run->paper;
        c.cells++;
        c.near += fabs(ratio - 1.0) <= ZERO_PAPER_NEAR;
        squares += log(ratio) * log(ratio);
    }
    if (c.cells > 0) c.typical = sqrt(squares / c.cells);
    return c;
}

zero_throughput zero_paper_time(const zero_paper_run *run, const zero_machine_file *machine)
{
    return zero_throughput_of(&run->setup, run->overlaps, machine);
}

zero_throughput zero_paper_time_inside(const zero_paper_run *run,
                                       const zero_machine_file *machine)
{
    zero_machine_file m = *machine;
    m.devices = ONE_NODE;
    m.host *= ONE_NODE / machine->devices;
    return zero_throughput_of(&run->setup, run->overlaps, &m);
}

zero_throughput zero_paper_time_alone(const zero_paper_run *run,
                                      const zero_machine_file *machine)
{
    zero_paper_setup setup = run->setup;
    setup.n_ranks = 1;
    return zero_throughput_of(&setup, run->overlaps, machine);
}

/* ---- figure 3 ---- */

static int64_t batch_of(const zero_paper_figure *figure, int i, zero_paper_batch kind,
                        const zero_machine_file *machine)
{
    const zero_paper_setup *setup = &figure->runs[i].setup;
    switch (kind) {
    case ZERO_PAPER_OWN_BATCH:
    case ZERO_PAPER_BATCHES: break;
    case ZERO_PAPER_LEFT_BATCH:
        return zero_paper_largest_batch(setup,
                                        zero_paper_memory_of(&figure->runs[0].setup).all);
    case ZERO_PAPER_FULL_BATCH: return zero_paper_largest_batch(setup, machine->memory);
    case ZERO_PAPER_FIXED_BATCH: return figure->runs[0].setup.batch;
    }
    return setup->batch;
}

void zero_paper_scale(const zero_paper_figure *figure, zero_paper_batch kind,
                      const zero_machine_file *machine, zero_paper_scaling *scaling)
{
    for (int i = 0; i < figure->n; i++) {
        zero_paper_run run = figure->runs[i];
        zero_paper_scaling *s = &scaling[i];
        run.setup.batch = batch_of(figure, i, kind, machine);
        *s = (zero_paper_scaling){.devices = zero_paper_devices(&run.setup),
                                  .batch = run.setup.batch,
                                  .rate = zero_paper_time(&run, machine).rate};
        s->total = s->rate * s->devices;
        s->times_linear = s->rate / scaling[0].rate;
    }
}

/* ---- figure 4 ---- */

zero_paper_setup zero_paper_without_zero(const zero_paper_run *run)
{
    zero_paper_setup setup = run->setup;
    setup.stage = 0;
    return setup;
}

double zero_paper_largest_without_zero(const zero_paper_run *run,
                                       const zero_machine_file *machine)
{
    zero_paper_setup setup = zero_paper_without_zero(run);
    setup.batch = 1;
    setup.shape.layers = zero_paper_most_layers(&setup, machine->memory);
    return (double)zero_gpt2_count(&setup.shape);
}

/* ---- figure 8 ---- */

zero_throughput zero_paper_time_first_batch(const zero_paper_figure *figure, int i,
                                            const zero_machine_file *machine)
{
    zero_paper_run run = figure->runs[i];
    int first = 0;
    while (strcmp(figure->runs[first].size, run.size) != 0) first++;
    run.setup.batch = figure->runs[first].setup.batch;
    return zero_paper_time(&run, machine);
}

/* ---- Turing-NLG and a trillion parameters ---- */

zero_paper_run zero_paper_cut_among(const zero_paper_run *run, int model_parallel,
                                    int stage, const zero_machine_file *machine)
{
    zero_paper_run cut = *run;
    cut.setup.n_ranks = zero_paper_devices(&run->setup) / model_parallel;
    cut.setup.model_parallel = model_parallel;
    cut.setup.stage = stage;
    cut.setup.batch = zero_paper_largest_batch(&cut.setup, machine->memory);
    cut.overlaps = stage > 0;
    return cut;
}

zero_paper_estimates zero_paper_estimate(const zero_paper_run *run,
                                         const zero_machine_file *machine)
{
    const double hours = 24.0, minutes = 60.0, tokens = 300e3 * 512 * 1024;
    double of_step =
        (double)run->setup.batch * run->setup.n_ranks * (double)run->setup.shape.seq;
    double seconds = tokens / of_step * zero_paper_time(run, machine).step;
    return (zero_paper_estimates){
        .states = zero_formula_state_bytes(TRILLION, zero_paper_devices(&run->setup), 3,
                                           ZERO_FP16),
        .paper_states = 16e9,
        .days = 3000.0 * 67.0 / minutes / hours,
        .paper_days = 140.0,
        .days_for_tokens = seconds / 60.0 / minutes / hours};
}
