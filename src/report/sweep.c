#include "report/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "io/json_input.h"

#define MOST_RANKS INT64_C(2147483647)

/* ---- points ---- */

static const zero_sweep_model no_model = {.step = NAN, .exposed = NAN};

static zero_sweep_point make_point(int stage, int ranks)
{
    zero_sweep_point p = {.stage = stage,
                          .ranks = ranks,
                          .load = {-1.0, -1.0, -1.0},
                          .planned = no_model,
                          .simulated = no_model};
    snprintf(p.name, sizeof p.name, "stage%d-ranks%d", stage, ranks);
    return p;
}

zero_status zero_sweep_init(zero_sweep *sweep, const int *stages, int n_stages,
                            const int *ranks, int n_ranks)
{
    size_t n = (size_t)n_stages * (size_t)n_ranks;
    zero_sweep_point *points = calloc(n, sizeof *points);
    if (!points) return zero_fail(ZERO_ERR_NOMEM, "no memory for %zu points", n);
    *sweep = (zero_sweep){.points = points};
    for (int s = 0; s < n_stages; s++)
        for (int r = 0; r < n_ranks; r++)
            points[sweep->n++] = make_point(stages[s], ranks[r]);
    return ZERO_OK;
}

void zero_sweep_destroy(zero_sweep *sweep)
{
    for (int i = 0; i < sweep->n; i++) json_decref(sweep->points[i].run);
    free(sweep->points);
    *sweep = (zero_sweep){0};
}

int zero_sweep_count(const zero_sweep *sweep, zero_sweep_state state)
{
    int n = 0;
    for (int i = 0; i < sweep->n; i++) n += sweep->points[i].state == state;
    return n;
}

const char *zero_sweep_state_name(zero_sweep_state state)
{
    static const char *const names[] = {"missing", "failed", "measured"};
    return names[state];
}

/* ---- a measurement ---- */

static zero_status read_step(const char *path, const json_t *step, double *seconds,
                             double *exposed, int64_t *tokens)
{
    ZERO_TRY(zero_json_real(path, step, "step_seconds", seconds));
    *exposed = NAN; /* on a device, whose times are read after the last step */
    if (!json_is_null(json_object_get(step, "exposed_seconds")))
        ZERO_TRY(zero_json_real(path, step, "exposed_seconds", exposed));
    return zero_json_whole(path, step, "tokens", 1, INT64_MAX, tokens);
}

/* Times of all steps, and of each the share that was exposed. */
static zero_status read_steps(const zero_metrics_file *file, double *seconds,
                              double *shares, int64_t *tokens)
{
    for (int64_t i = 0; i < file->n; i++) {
        json_t *step;
        ZERO_TRY(zero_metrics_step_at(file, i, &step));
        zero_status st = read_step(file->path, step, &seconds[i], &shares[i], tokens);
        json_decref(step);
        ZERO_TRY(st);
        shares[i] = seconds[i] > 0.0 ? shares[i] / seconds[i] : 0.0;
    }
    return ZERO_OK;
}

static zero_status measure_steps(zero_sweep_point *p, const zero_metrics_file *file,
                                 int64_t warm_up)
{
    double *seconds = malloc(2 * (size_t)file->n * sizeof *seconds);
    if (!seconds)
        return zero_fail(ZERO_ERR_NOMEM, "%s: no memory for %" PRId64 " steps", file->path,
                         file->n);
    double *shares = seconds + file->n;
    zero_status st = read_steps(file, seconds, shares, &p->tokens);
    if (st == ZERO_OK) {
        p->time = zero_step_times_of(seconds, file->n, warm_up);
        p->exposed = zero_step_times_of(shares, file->n, warm_up).median;
    }
    free(seconds);
    return st;
}

static zero_status measure_nodes(zero_sweep_point *p, const zero_metrics_file *file)
{
    const json_t *nodes;
    int64_t count;
    ZERO_TRY(zero_json_object(file->path, file->run, "nodes", &nodes));
    ZERO_TRY(zero_json_whole(file->path, nodes, "count", 1, MOST_RANKS, &count));
    ZERO_TRY(zero_json_flag(file->path, nodes, "fake", &p->fake_nodes));
    p->nodes = (int)count;
    return ZERO_OK;
}

/* Ranks that are bound have no more cores than that; ranks that are not share the machine's. */
static void measure_cores(zero_sweep_point *p, const zero_metrics_file *file)
{
    json_int_t own = json_integer_value(json_object_get(file->run, "cores"));
    json_int_t all = json_integer_value(json_object_get(file->run, "node_cores"));
    size_t machines = json_array_size(json_object_get(file->run, "hosts"));
    double share = (double)all * (double)machines / p->ranks;
    p->cores = share < (double)own ? share : (double)own;
}

static zero_status check_whole(const zero_sweep_point *p, const zero_metrics_file *file,
                               int64_t steps)
{
    int64_t ranks;
    if (!file->run || !file->final || file->n != steps)
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: expected a run of %" PRId64 " steps with its last line, found "
            "%" PRId64 " steps and %s",
            file->path, steps, file->n, file->final ? "a last line" : "no last line");
    ZERO_TRY(zero_json_whole(file->path, file->run, "ranks", 1, MOST_RANKS, &ranks));
    if (ranks == p->ranks) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT, "%s: expected a run of %d ranks, found %" PRId64,
                     file->path, p->ranks, ranks);
}

zero_status zero_sweep_measure(zero_sweep_point *point, const zero_metrics_file *file,
                               int64_t steps, int64_t warm_up)
{
    zero_sweep_point p = *point;
    ZERO_TRY(check_whole(&p, file, steps));
    ZERO_TRY(measure_steps(&p, file, warm_up));
    ZERO_TRY(measure_nodes(&p, file));
    measure_cores(&p, file);
    p.run = json_incref(file->run);
    p.state = ZERO_SWEEP_MEASURED;
    json_decref(point->run);
    *point = p;
    return ZERO_OK;
}

/* ---- what follows from it ---- */

double zero_sweep_efficiency(bool is_strong, double t1, int n1, double t, int n)
{
    double weak = t1 / t;
    return is_strong ? weak * (double)n1 / (double)n : weak;
}

double zero_sweep_tokens_per_second(const zero_sweep_point *point)
{
    return (double)point->tokens / point->time.median;
}

/* Points of a stage are in order of their ranks. */
static const zero_sweep_point *find_base(const zero_sweep *sweep, int stage)
{
    for (int i = 0; i < sweep->n; i++) {
        const zero_sweep_point *p = &sweep->points[i];
        if (p->stage == stage && p->state == ZERO_SWEEP_MEASURED) return p;
    }
    return NULL;
}

void zero_sweep_compare(zero_sweep *sweep)
{
    for (int i = 0; i < sweep->n; i++) {
        zero_sweep_point *p = &sweep->points[i];
        const zero_sweep_point *base = find_base(sweep, p->stage);
        if (p->state != ZERO_SWEEP_MEASURED) continue;
        p->base = base->ranks;
        p->efficiency = zero_sweep_efficiency(sweep->is_strong, base->time.median,
                                              base->ranks, p->time.median, p->ranks);
    }
}
