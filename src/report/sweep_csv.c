#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "report/sweep_file.h"

/* A field that is being written. */
typedef struct {
    const zero_sweep *sweep;
    const zero_sweep_point *point;
    zero_bytes *out;
} field;

/* ---- values ---- */

static zero_status put_text(const field *f, const char *text)
{
    return zero_bytes_append(f->out, text, strlen(text));
}

static zero_status put_real(const field *f, double value)
{
    char text[32];
    if (!isfinite(value)) return ZERO_OK;
    snprintf(text, sizeof text, "%.9g", value);
    return put_text(f, text);
}

static zero_status put_whole(const field *f, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return put_text(f, text);
}

static zero_status append_quoted(const char *text, zero_bytes *out)
{
    ZERO_TRY(zero_bytes_append(out, "\"", 1));
    for (; *text; text++) {
        ZERO_TRY(zero_bytes_append(out, text, 1));
        if (*text == '"') ZERO_TRY(zero_bytes_append(out, "\"", 1));
    }
    return zero_bytes_append(out, "\"", 1);
}

zero_status zero_sweep_write_field(const char *text, zero_bytes *out)
{
    if (strpbrk(text, ",\"\r\n")) return append_quoted(text, out);
    return zero_bytes_append(out, text, strlen(text));
}

/* Texts of a list, with blanks between them. */
static zero_status put_list(const field *f, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (i > 0) ZERO_TRY(put_text(f, " "));
        ZERO_TRY(put_text(f, text ? text : ""));
    }
    return ZERO_OK;
}

/* A member of what the run was. */
static zero_status put_member(const field *f, const char *key)
{
    const json_t *value = json_object_get(f->point->run, key);
    if (json_is_integer(value)) return put_whole(f, json_integer_value(value));
    if (json_is_string(value))
        return zero_sweep_write_field(json_string_value(value), f->out);
    return put_list(f, value);
}

static bool is_measured(const field *f)
{
    return f->point->state == ZERO_SWEEP_MEASURED;
}

/* ---- columns ---- */

#define PUT(name)     static zero_status put_##name(const field *f)
#define MEASURED(put) return is_measured(f) ? (put) : ZERO_OK

/* clang-format off */
PUT(scaling)      { return put_text(f, f->sweep->is_strong ? "strong" : "weak"); }
PUT(stage)        { return put_whole(f, f->point->stage); }
PUT(ranks)        { return put_whole(f, f->point->ranks); }
PUT(state)        { return put_text(f, zero_sweep_state_name(f->point->state)); }
PUT(nodes)        { MEASURED(put_whole(f, f->point->nodes)); }
PUT(fake_nodes)   { MEASURED(put_text(f, f->point->fake_nodes ? "true" : "false")); }
PUT(tokens)       { MEASURED(put_whole(f, f->point->tokens)); }
PUT(rank_tokens)  { MEASURED(put_real(f, (double)f->point->tokens / f->point->ranks)); }
PUT(steps)        { MEASURED(put_whole(f, f->point->time.n)); }
PUT(median)       { MEASURED(put_real(f, f->point->time.median)); }
PUT(lower)        { MEASURED(put_real(f, f->point->time.lower)); }
PUT(upper)        { MEASURED(put_real(f, f->point->time.upper)); }
PUT(rate)         { MEASURED(put_real(f, zero_sweep_tokens_per_second(f->point))); }
PUT(rank_rate)    { MEASURED(put_real(f, zero_sweep_tokens_per_second(f->point) / f->point->ranks)); }
PUT(efficiency)   { MEASURED(put_real(f, f->point->efficiency)); }
PUT(base)         { MEASURED(put_whole(f, f->point->base)); }
PUT(exposed)      { MEASURED(put_real(f, f->point->exposed)); }
PUT(planned)      { return put_real(f, f->point->planned.step); }
PUT(planned_exposed) { return put_real(f, f->point->planned.exposed); }
PUT(simulated)    { return put_real(f, f->point->simulated.step); }
PUT(simulated_exposed) { return put_real(f, f->point->simulated.exposed); }
PUT(started)      { return put_text(f, f->point->started); }
PUT(load_1)       { return put_real(f, f->point->load[0] < 0.0 ? NAN : f->point->load[0]); }
PUT(load_5)       { return put_real(f, f->point->load[1] < 0.0 ? NAN : f->point->load[1]); }
PUT(load_15)      { return put_real(f, f->point->load[2] < 0.0 ? NAN : f->point->load[2]); }
PUT(hosts)        { return put_member(f, "hosts"); }
PUT(cpu)          { return put_member(f, "cpu"); }
PUT(cores)        { MEASURED(put_real(f, f->point->cores)); }
PUT(collectives)  { return put_member(f, "collectives"); }
PUT(mpi)          { return put_member(f, "mpi"); }
PUT(commit)       { return put_member(f, "commit"); }
PUT(command)      { return put_member(f, "command"); }

static const struct {
    const char *name;
    zero_status (*put)(const field *f);
} columns[] = {
    {"scaling", put_scaling}, {"stage", put_stage}, {"ranks", put_ranks}, {"state", put_state},
    {"nodes", put_nodes}, {"fake_nodes", put_fake_nodes},
    {"tokens_per_rank", put_rank_tokens}, {"tokens", put_tokens}, {"steps", put_steps},
    {"step_seconds", put_median}, {"lower_quartile", put_lower}, {"upper_quartile", put_upper},
    {"tokens_per_second", put_rate}, {"tokens_per_rank_and_second", put_rank_rate},
    {"efficiency", put_efficiency}, {"efficiency_to_ranks", put_base},
    {"exposed_share", put_exposed},
    {"planned_seconds", put_planned}, {"planned_exposed_share", put_planned_exposed},
    {"simulated_seconds", put_simulated}, {"simulated_exposed_share", put_simulated_exposed},
    {"started", put_started}, {"load_1", put_load_1}, {"load_5", put_load_5}, {"load_15", put_load_15},
    {"hosts", put_hosts}, {"cpu", put_cpu}, {"cores_per_rank", put_cores}, {"collectives", put_collectives},
    {"mpi", put_mpi}, {"commit", put_commit}, {"command", put_command},
};
/* clang-format on */

#define N_COLUMNS (sizeof columns / sizeof columns[0])

static zero_status write_names(zero_bytes *out)
{
    for (size_t c = 0; c < N_COLUMNS; c++) {
        if (c > 0) ZERO_TRY(zero_bytes_append(out, ",", 1));
        ZERO_TRY(zero_bytes_append(out, columns[c].name, strlen(columns[c].name)));
    }
    return zero_bytes_append(out, "\n", 1);
}

static zero_status write_row(const field *f)
{
    for (size_t c = 0; c < N_COLUMNS; c++) {
        if (c > 0) ZERO_TRY(put_text(f, ","));
        ZERO_TRY(columns[c].put(f));
    }
    return put_text(f, "\n");
}

zero_status zero_sweep_write_csv(const zero_sweep *sweep, zero_bytes *out)
{
    ZERO_TRY(write_names(out));
    for (int i = 0; i < sweep->n; i++) {
        field f = {sweep, &sweep->points[i], out};
        ZERO_TRY(write_row(&f));
    }
    return ZERO_OK;
}
