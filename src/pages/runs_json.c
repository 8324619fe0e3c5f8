/* Runs as JSON: everything that a report shows. */
#include <math.h>
#include <stddef.h>

#include "pages/notes.h"
#include "pages/runs.h"
#include "report/json_put.h"
#include "train/metrics.h"

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* ---- steps: a list per key, which plots want ---- */

static const struct {
    const char *key;
    size_t offset;
} columns[] = {
    {"loss", offsetof(zero_record_step, loss)},
    {"val_loss", offsetof(zero_record_step, val_loss)},
    {"lr", offsetof(zero_record_step, lr)},
    {"grad_norm", offsetof(zero_record_step, grad_norm)},
    {"loss_scale", offsetof(zero_record_step, loss_scale)},
    {"tokens", offsetof(zero_record_step, tokens)},
    {"step_seconds", offsetof(zero_record_step, seconds)},
    {"exposed_seconds", offsetof(zero_record_step, exposed)},
    {"tokens_per_second", offsetof(zero_record_step, tokens_per_second)},
    {"elapsed", offsetof(zero_record_step, elapsed)},
};

static json_t *describe_steps(const zero_record *r)
{
    json_t *steps = json_object(), *numbers = json_array(), *skipped = json_array();
    for (int64_t i = 0; i < r->n_steps; i++) {
        json_array_append_new(numbers, json_integer(r->steps[i].step));
        if (r->steps[i].skipped)
            json_array_append_new(skipped, json_integer(r->steps[i].step));
    }
    json_object_set_new(steps, "step", numbers);
    json_object_set_new(steps, "skipped", skipped);
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        json_t *list = json_array();
        for (int64_t i = 0; i < r->n_steps; i++) {
            const char *step = (const char *)&r->steps[i];
            json_array_append_new(list, real(*(const double *)(step + columns[c].offset)));
        }
        json_object_set_new(steps, columns[c].key, list);
    }
    return steps;
}

/* ---- figures ---- */

static json_t *describe_figures(const zero_figures *f)
{
    json_t *all = json_object();
    for (int i = 0; i < ZERO_SIX_FIGURES; i++)
        json_object_set_new(all, zero_six_figures[i].key,
                            real(zero_six_figures_value(f, i)));
    for (int i = 0; i < ZERO_FOUR_NUMBERS; i++)
        json_object_set_new(all, zero_four_numbers[i].key,
                            real(zero_four_numbers_value(f, i)));
    put_whole(all, "step", f->step);
    put_whole(all, "val_step", f->val_step);
    json_object_set_new(all, "step_seconds_lower_quartile", real(f->step_time.lower));
    json_object_set_new(all, "step_seconds_upper_quartile", real(f->step_time.upper));
    put_whole(all, "steps_that_count", f->step_time.n);
    put_whole(all, "planned_peak_bytes", f->planned_peak);
    json_object_set_new(all, "of_all_ranks", json_boolean(f->of_all_ranks));
    return all;
}

/* ---- ledgers ---- */

static json_t *describe_classes(const zero_record_class *classes, int n)
{
    json_t *all = json_array();
    for (int i = 0; i < n; i++) {
        const zero_record_class *c = &classes[i];
        json_array_append_new(all, json_pack("{s:s, s:I, s:I, s:b}", "class", c->name,
                                             "planned_bytes", (json_int_t)c->planned,
                                             "measured_bytes", (json_int_t)c->measured,
                                             "equal", c->planned == c->measured));
    }
    return all;
}

static json_t *describe_file(const zero_record *r)
{
    json_t *all = json_array();
    for (int i = 0; i < r->n_moved; i++) {
        const zero_record_moved *m = &r->moved[i];
        json_array_append_new(all, json_pack("{s:s, s:I, s:I, s:I, s:I}", "class", m->name,
                                             "planned_bytes_read",
                                             (json_int_t)m->planned_read, "bytes_read",
                                             (json_int_t)m->read, "planned_bytes_written",
                                             (json_int_t)m->planned_written,
                                             "bytes_written", (json_int_t)m->written));
    }
    return all;
}

static json_t *describe_traffic(const zero_record *r)
{
    json_t *all = json_array();
    for (int i = 0; i < r->n_traffic; i++) {
        const zero_record_traffic *t = &r->traffic[i];
        json_t *entry = json_pack(
            "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "collective",
            t->name, "planned_bytes_sent", (json_int_t)t->planned_sent, "bytes_sent",
            (json_int_t)t->sent, "planned_bytes_received", (json_int_t)t->planned_received,
            "bytes_received", (json_int_t)t->received, "planned_messages_sent",
            (json_int_t)t->planned_messages, "messages_sent", (json_int_t)t->messages,
            "bytes_sent_inside_nodes", (json_int_t)t->sent_inside,
            "bytes_sent_across_nodes", (json_int_t)t->sent_across, "seconds",
            real(t->seconds), "exposed_seconds", real(t->exposed), "hidden_share",
            real(zero_traffic_hidden(t)));
        put_whole(entry, "all_bytes_sent", t->all_sent);
        json_object_set_new(entry, "equal", json_boolean(t->planned_sent == t->sent));
        json_array_append_new(all, entry);
    }
    return all;
}

static json_t *describe_profile(const zero_record *r)
{
    json_t *all = json_array();
    for (int i = 0; i < r->n_profile; i++) {
        const zero_record_profile *p = &r->profile[i];
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "op", p->op, "unit",
                           p->unit, "count", (json_int_t)p->count, "seconds",
                           real(p->seconds), "exchange_seconds", real(p->exchange),
                           "least_seconds", real(p->least), "most_seconds", real(p->most)));
    }
    return all;
}

/* The last line of the file, as it is: what this version does not know is there, too. */
static void put_final(json_t *run, const zero_record *r)
{
    json_object_set_new(run, "memory", describe_classes(r->classes, r->n_classes));
    if (r->n_host > 0)
        json_object_set_new(run, "host_memory", describe_classes(r->host, r->n_host));
    if (r->n_moved > 0) json_object_set_new(run, "file", describe_file(r));
    json_object_set_new(run, "communication", describe_traffic(r));
    json_object_set_new(run, "profile", describe_profile(r));
    json_object_set(run, "final", r->file.final);
}

/* ---- a run ---- */

static json_t *describe_notes(const zero_record *r)
{
    char notes[ZERO_NOTES_MOST][ZERO_NOTE_BYTES];
    json_t *all = json_array();
    for (int i = 0, n = zero_notes_of(r, notes); i < n; i++)
        json_array_append_new(all, json_string(notes[i]));
    return all;
}

static json_t *describe_run(const zero_record *r, const zero_figures *f)
{
    json_t *run = json_object();
    json_object_set_new(run, "path", zero_metrics_text(r->path));
    json_object_set_new(run, "ended", json_boolean(r->ended));
    json_object_set_new(run, "cut", json_boolean(r->cut));
    put_whole(run, "lost_lines", r->lost_lines);
    json_object_set_new(run, "notes", describe_notes(r));
    json_object_set_new(run, "figures", describe_figures(f));
    json_object_set_new(run, "steps", describe_steps(r));
    if (r->has_run) json_object_set(run, "run", r->file.run);
    if (r->ended) put_final(run, r);
    return run;
}

/* ---- differences ---- */

static json_t *describe_setting(const zero_setting *s, int n)
{
    json_t *values = json_array();
    for (int r = 0; r < n; r++)
        json_array_append_new(values, zero_metrics_text(s->values[r]));
    return json_pack("{s:o, s:o}", "name", zero_metrics_text(s->name), "values", values);
}

static json_t *describe_settings(const zero_runs *runs)
{
    zero_settings settings;
    if (zero_settings_compare(&settings, runs->records, runs->n) != ZERO_OK) return NULL;
    json_t *all = json_array();
    for (int64_t i = 0; i < settings.n; i++)
        json_array_append_new(all, describe_setting(&settings.settings[i], runs->n));
    zero_settings_destroy(&settings);
    return all;
}

json_t *zero_runs_describe(const zero_runs *runs)
{
    json_t *all = json_array(), *object = json_object();
    json_t *settings = describe_settings(runs);
    for (int r = 0; r < runs->n; r++)
        json_array_append_new(all, describe_run(&runs->records[r], &runs->figures[r]));
    json_object_set_new(object, "runs", all);
    if (settings && json_object_set_new(object, "settings", settings) == 0) return object;
    json_decref(object);
    return NULL;
}
