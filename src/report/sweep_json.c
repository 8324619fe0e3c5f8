#include <math.h>
#include <stdio.h>

#include "report/json_put.h"
#include "report/sweep_file.h"
#include "train/metrics.h"

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *describe_load(const zero_sweep_point *p)
{
    json_t *load = json_array();
    for (int i = 0; i < 3; i++) json_array_append_new(load, real(p->load[i]));
    return load;
}

static json_t *describe_model(const zero_sweep_model *m)
{
    if (!isfinite(m->step)) return json_null();
    return json_pack("{s:o, s:o}", "step_seconds", real(m->step), "exposed_share",
                     real(m->exposed));
}

static void put_measurement(json_t *object, const zero_sweep_point *p)
{
    double rate = zero_sweep_tokens_per_second(p);
    json_t *time = json_pack("{s:o, s:o, s:o, s:I}", "median", real(p->time.median),
                             "lower_quartile", real(p->time.lower), "upper_quartile",
                             real(p->time.upper), "steps", (json_int_t)p->time.n);
    json_object_set_new(object, "step_seconds", time);
    put_whole(object, "tokens", p->tokens);
    put_real(object, "tokens_per_rank", (double)p->tokens / p->ranks);
    put_real(object, "tokens_per_second", rate);
    put_real(object, "tokens_per_rank_and_second", rate / p->ranks);
    put_real(object, "efficiency", p->efficiency);
    put_whole(object, "efficiency_to_ranks", p->base);
    json_object_set_new(object, "exposed_share", real(p->exposed));
    put_real(object, "cores_per_rank", p->cores);
    json_object_set_new(
        object, "nodes",
        json_pack("{s:i, s:b}", "count", p->nodes, "fake", (int)p->fake_nodes));
}

static json_t *describe_point(const zero_sweep_point *p)
{
    char path[ZERO_SWEEP_NAME + 16];
    json_t *object = json_object();
    put_whole(object, "stage", p->stage);
    put_whole(object, "ranks", p->ranks);
    put_text(object, "state", zero_sweep_state_name(p->state));
    if (p->state == ZERO_SWEEP_FAILED)
        json_object_set_new(object, "why", zero_metrics_text(p->why));
    snprintf(path, sizeof path, "points/%s.jsonl", p->name);
    put_text(object, "metrics", path);
    if (p->started[0]) {
        put_text(object, "started", p->started);
        if (p->load[0] >= 0.0) json_object_set_new(object, "load", describe_load(p));
    }
    if (p->state == ZERO_SWEEP_MEASURED) put_measurement(object, p);
    json_object_set_new(object, "planned", describe_model(&p->planned));
    json_object_set_new(object, "simulated", describe_model(&p->simulated));
    if (p->run) json_object_set(object, "run", p->run);
    return object;
}

static json_t *describe_points(const zero_sweep *sweep)
{
    json_t *points = json_array();
    for (int i = 0; i < sweep->n; i++)
        json_array_append_new(points, describe_point(&sweep->points[i]));
    return points;
}

json_t *zero_sweep_describe(const zero_sweep *sweep)
{
    json_t *study = json_object();
    put_whole(study, "study", ZERO_SWEEP_FORMAT);
    put_text(study, "version", sweep->version);
    put_text(study, "commit", sweep->commit);
    put_text(study, "scaling", sweep->is_strong ? "strong" : "weak");
    put_whole(study, "steps", sweep->steps);
    put_whole(study, "warm_up", sweep->warm_up);
    json_object_set_new(study, "launch",
                        sweep->launch ? zero_metrics_text(sweep->launch) : json_null());
    json_object_set_new(study, "options", json_deep_copy(sweep->options));
    json_object_set_new(study, "machine",
                        sweep->machine ? json_deep_copy(sweep->machine) : json_null());
    json_t *points = describe_points(sweep);
    if (json_object_set_new(study, "points", points) == 0) return study;
    json_decref(study);
    return NULL;
}

void zero_sweep_recall(zero_sweep_point *point, const json_t *described)
{
    const char *started = json_string_value(json_object_get(described, "started"));
    const json_t *load = json_object_get(described, "load");
    if (started) snprintf(point->started, sizeof point->started, "%s", started);
    for (int i = 0; i < 3; i++) {
        const json_t *value = json_array_get(load, (size_t)i);
        if (json_is_number(value)) point->load[i] = json_number_value(value);
    }
}
