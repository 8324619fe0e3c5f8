#include "pages/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

/* ---- words ---- */

const zero_figure_words zero_six_figures[ZERO_SIX_FIGURES] = {
    {"loss", "loss", "nats per token, of the last step"},
    {"val_loss", "validation loss", "nats per token, the last that was measured"},
    {"tokens_per_second", "tokens per second",
     "median of the steps without the first ones, all ranks together"},
    {"step_seconds", "step", "median of the same steps"},
    {"peak_bytes", "memory",
     "bytes of rank 0 at the peak of the run, measured; planned before step 1"},
    {"waited", "waited for others",
     "share of the step in which ranks wait for collectives on data"},
};

const zero_figure_words zero_four_numbers[ZERO_FOUR_NUMBERS] = {
    {"compute", "compute",
     "arithmetic of units, gradients, norms and updates, without polls of collectives; "
     "share of the step"},
    {"exposed", "exposed",
     "waits for collectives on data that computing did not hide; share of the step"},
    {"imbalance", "imbalance", "most / mean - 1 of the ranks' seconds of arithmetic"},
    {"overlap", "overlap",
     "share of the time that collectives on data are in flight in which a rank does "
     "something else than wait for them; with evaluations and samples"},
};

double zero_six_figures_value(const zero_figures *f, int i)
{
    const double values[ZERO_SIX_FIGURES] = {f->loss,
                                             f->val_loss,
                                             f->tokens_per_second,
                                             f->step_time.median,
                                             f->measured_peak > 0 ? (double)f->measured_peak
                                                                  : NAN,
                                             f->waited};
    return values[i];
}

double zero_four_numbers_value(const zero_figures *f, int i)
{
    const double values[ZERO_FOUR_NUMBERS] = {f->compute, f->exposed, f->imbalance,
                                              f->overlap};
    return values[i];
}

double zero_traffic_hidden(const zero_record_traffic *traffic)
{
    bool moved = traffic->sent > 0 || traffic->received > 0;
    return moved && traffic->seconds > 0.0 ? 1.0 - traffic->exposed / traffic->seconds
                                           : NAN;
}

/* ---- of the steps ---- */

static void take_losses(const zero_record *r, zero_figures *f)
{
    const zero_record_step *last = &r->steps[r->n_steps - 1];
    f->loss = last->loss;
    f->step = last->step;
    for (int64_t i = 0; i < r->n_steps; i++)
        if (r->steps[i].has_val_loss) {
            f->val_loss = r->steps[i].val_loss;
            f->val_step = r->steps[i].step;
        }
}

/* The steps of a short run all count, as in the run's own summary. */
static int64_t left_out(int64_t n)
{
    return n > ZERO_STEP_TIMES_FIRST ? ZERO_STEP_TIMES_FIRST : 0;
}

/* `room` has room for all steps. Times that are unknown do not count. */
static zero_step_time median_of(const zero_record *r, bool of_rates, double *room)
{
    int64_t n = 0;
    for (int64_t i = left_out(r->n_steps); i < r->n_steps; i++) {
        double value = of_rates ? r->steps[i].tokens_per_second : r->steps[i].seconds;
        if (isfinite(value)) room[n++] = value;
    }
    if (n == 0) return (zero_step_time){.median = NAN, .lower = NAN, .upper = NAN};
    zero_step_time time = zero_step_times_of(room, n, 0);
    time.first = left_out(r->n_steps);
    return time;
}

/* Rank 0's waits, of all steps that say it. */
static double exposed_of_steps(const zero_record *r)
{
    double exposed = 0.0, seconds = 0.0;
    for (int64_t i = 0; i < r->n_steps; i++) {
        const zero_record_step *s = &r->steps[i];
        if (!isfinite(s->exposed) || !isfinite(s->seconds)) continue;
        exposed += s->exposed;
        seconds += s->seconds;
    }
    return seconds > 0.0 ? exposed / seconds : NAN;
}

/* ---- of the last line ---- */

static double mean_of(const zero_record *r, zero_record_spent spent)
{
    return r->rank_seconds[spent].mean;
}

static double share(double part, double whole)
{
    return whole > 0.0 ? part / whole : NAN;
}

static void take_ranks(const zero_record *r, zero_figures *f)
{
    const zero_record_seconds *compute = &r->rank_seconds[ZERO_SPENT_COMPUTE];
    double step = mean_of(r, ZERO_SPENT_STEP);
    f->of_all_ranks = true;
    f->compute = share(compute->mean, step);
    f->exposed = share(mean_of(r, ZERO_SPENT_EXPOSED), step);
    f->imbalance = compute->mean > 0.0 ? compute->most / compute->mean - 1.0 : NAN;
    f->overlap =
        1.0 - share(mean_of(r, ZERO_SPENT_AWAITED), mean_of(r, ZERO_SPENT_IN_FLIGHT));
}

static bool is_arithmetic(const char *op)
{
    static const char *const names[] = {"FORWARD",    "RECOMPUTE", "BACKWARD", "ROUND",
                                        "ACCUMULATE", "NORM",      "UPDATE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(op, names[i]) == 0) return true;
    return false;
}

/* A file without seconds by rank has those of rank 0 alone, so imbalance is unknown. */
static void take_profile(const zero_record *r, zero_figures *f)
{
    double compute = 0.0, all = 0.0, in_flight = 0.0, awaited = 0.0;
    for (int i = 0; i < r->n_profile; i++) {
        const zero_record_profile *p = &r->profile[i];
        if (p->unit[0]) continue;
        all += p->seconds;
        if (is_arithmetic(p->op)) compute += p->seconds - p->exchange;
    }
    for (int i = 0; i < r->n_traffic; i++) {
        if (strcmp(r->traffic[i].name, "control") == 0) continue;
        in_flight += r->traffic[i].seconds;
        awaited += r->traffic[i].exposed;
    }
    f->compute = share(compute, all);
    f->overlap = 1.0 - share(awaited, in_flight);
}

zero_status zero_figures_of(const zero_record *record, zero_figures *figures)
{
    zero_figures f = {.val_loss = NAN, .compute = NAN, .imbalance = NAN, .overlap = NAN};
    double *room = malloc((size_t)record->n_steps * sizeof *room);
    if (!room)
        return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for %" PRId64 " steps",
                         record->path, record->n_steps);
    take_losses(record, &f);
    f.step_time = median_of(record, false, room);
    f.tokens_per_second = median_of(record, true, room).median;
    free(room);
    f.planned_peak = record->planned_peak;
    f.measured_peak = record->measured_peak;
    f.exposed = exposed_of_steps(record);
    if (record->has_rank_seconds)
        take_ranks(record, &f);
    else if (record->ended)
        take_profile(record, &f);
    f.waited = f.exposed;
    if (record->has_run && record->ranks == 1)
        f.overlap = NAN; /* nothing was to be hidden */
    *figures = f;
    return ZERO_OK;
}
