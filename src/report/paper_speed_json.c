#include "report/paper_speed_json.h"

#include <math.h>
#include <string.h>

#include "report/json_put.h"

#define TERA      1e12
#define MOST_RUNS 16

/* ---- the runs ---- */

static void put_setup(json_t *cell, const zero_paper_setup *setup)
{
    put_whole(cell, "psi", zero_gpt2_count(&setup->shape));
    put_whole(cell, "layers", setup->shape.layers);
    put_whole(cell, "hidden", setup->shape.hidden);
    put_whole(cell, "heads", setup->shape.heads);
    put_whole(cell, "devices", zero_paper_devices(setup));
    put_whole(cell, "model_parallel", setup->model_parallel);
    put_whole(cell, "batch", setup->batch);
    put_whole(cell, "stage", setup->stage);
    put_real(cell, "bytes", zero_paper_memory_of(setup).all);
}

static void put_time(json_t *cell, const zero_throughput *t)
{
    json_t *seconds = json_object();
    put_real(seconds, "step", t->step);
    put_real(seconds, "compute", t->compute);
    put_real(seconds, "tensor", t->tensor);
    put_real(seconds, "data", t->data);
    put_real(seconds, "data_links", t->data_all);
    put_real(seconds, "host", t->host);
    put_real(seconds, "update", t->update);
    json_object_set_new(cell, "seconds", seconds);
}

/* A cell without a rate is one that does not fit: `paper` and, if ours does not either, `ours` are
 * null. */
static json_t *cell_json(const zero_paper_run *run, const zero_machine_file *m)
{
    json_t *cell = json_object();
    zero_throughput t = zero_paper_time(run, m);
    bool fits = zero_paper_memory_of(&run->setup).all <= m->memory;
    put_text(cell, "model", run->size);
    put_text(cell, "system", run->system);
    put_setup(cell, &run->setup);
    json_object_set_new(cell, "ours",
                        run->paper != 0.0 || fits ? json_real(t.rate) : json_null());
    json_object_set_new(cell, "paper",
                        run->paper > 0.0 ? json_real(run->paper * TERA) : json_null());
    if (run->paper > 0.0) put_real(cell, "ratio", t.rate / TERA / run->paper);
    put_time(cell, &t);
    if (run->note) put_text(cell, "note", run->note);
    return cell;
}

static json_t *machine_json(const zero_machine_file *m)
{
    json_t *machine = json_object();
    put_text(machine, "name", m->name);
    put_text(machine, "about", m->about);
    put_text(machine, "source", m->source);
    put_text(machine, "date", m->date);
    put_text(machine, "fit", m->fit);
    return machine;
}

/* ---- counterfactuals ---- */

static json_t *fig2_json(const zero_paper_figure *figure, const zero_machine_file *m)
{
    json_t *rows = json_array();
    for (int i = 0; i + 1 < figure->n; i += 2) {
        const zero_paper_run *zero = &figure->runs[i], *megatron = zero + 1;
        json_t *row = json_object();
        put_text(row, "model", zero->size);
        put_real(row, "speed_up",
                 zero_paper_time(zero, m).rate / zero_paper_time(megatron, m).rate);
        put_real(row, "paper", zero->speed_up);
        put_real(row, "megatron_on_one_node", zero_paper_time_inside(megatron, m).rate);
        put_real(row, "megatron_alone", zero_paper_time_alone(megatron, m).rate);
        if (strcmp(zero->size, "40B") == 0)
            put_real(row, "paper_alone", ZERO_PAPER_40B_ALONE * TERA);
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *scaling_json(const zero_paper_figure *figure, const zero_paper_scaling *s,
                            const char *batches)
{
    json_t *rows = json_array(), *object = json_object();
    for (int i = 0; i < figure->n; i++) {
        json_t *row = json_object();
        put_whole(row, "devices", s[i].devices);
        put_whole(row, "batch", s[i].batch);
        put_real(row, "rate", s[i].rate);
        put_real(row, "total", s[i].total);
        put_real(row, "times_linear", s[i].times_linear);
        put_real(row, "paper_total", figure->runs[i].total * TERA);
        put_real(row, "paper_linear", figure->runs[i].linear * TERA);
        json_array_append_new(rows, row);
    }
    put_text(object, "batches", batches);
    json_object_set_new(object, "runs", rows);
    return object;
}

static json_t *fig3_json(const zero_paper_figure *figure, const zero_machine_file *m)
{
    static const char *const names[ZERO_PAPER_BATCHES] = {"paper", "first_memory",
                                                          "all_memory", "fixed"};
    json_t *kinds = json_array();
    for (int k = 0; k < ZERO_PAPER_BATCHES; k++) {
        zero_paper_scaling s[MOST_RUNS];
        zero_paper_scale(figure, (zero_paper_batch)k, m, s);
        json_array_append_new(kinds, scaling_json(figure, s, names[k]));
    }
    return kinds;
}

static json_t *fig4_json(const zero_paper_figure *figure, const zero_machine_file *m)
{
    json_t *rows = json_array();
    for (int i = 0; i < figure->n; i++) {
        zero_paper_setup whole = zero_paper_without_zero(&figure->runs[i]);
        json_t *row = json_object();
        put_text(row, "model", figure->runs[i].size);
        put_real(row, "bytes_without_zero", zero_paper_memory_of(&whole).all);
        put_real(row, "largest_without_zero",
                 zero_paper_largest_without_zero(&figure->runs[i], m));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *fig8_json(const zero_paper_figure *figure, const zero_machine_file *m)
{
    json_t *rows = json_array();
    for (int i = 0; i < figure->n; i++) {
        json_t *row = json_object();
        put_text(row, "model", figure->runs[i].size);
        put_text(row, "system", figure->runs[i].system);
        put_real(row, "with_first_batch", zero_paper_time_first_batch(figure, i, m).rate);
        json_array_append_new(rows, row);
    }
    return rows;
}

/* The run cut among other numbers of ranks, and other stages. */
static json_t *cuts_json(const zero_paper_run *run, const zero_machine_file *m)
{
    json_t *cuts = json_array();
    for (int parts = 1; parts <= (int)run->setup.shape.heads; parts *= 2)
        for (int stage = 0; stage <= 3 && run->setup.shape.heads % parts == 0; stage++) {
            zero_paper_run cut = zero_paper_cut_among(run, parts, stage, m);
            json_t *row = json_object();
            put_whole(row, "model_parallel", parts);
            put_whole(row, "stage", stage);
            put_whole(row, "batch", cut.setup.batch);
            if (cut.setup.batch > 0) put_real(row, "rate", zero_paper_time(&cut, m).rate);
            json_array_append_new(cuts, row);
        }
    return cuts;
}

static json_t *turing_json(const zero_paper_figure *figure, const zero_machine_file *m)
{
    return cuts_json(&figure->runs[0], m);
}

static json_t *trillion_json(const zero_paper_figure *figure, const zero_machine_file *m)
{
    zero_paper_estimates e = zero_paper_estimate(&figure->runs[0], m);
    json_t *object = json_object();
    put_real(object, "state_bytes", e.states);
    put_real(object, "paper_state_bytes", e.paper_states);
    put_real(object, "days", e.days);
    put_real(object, "paper_days", e.paper_days);
    put_real(object, "days_for_tokens", e.days_for_tokens);
    json_object_set_new(object, "cuts", cuts_json(&figure->runs[0], m));
    return object;
}

static json_t *more_json(const zero_paper_figure *figure, const zero_machine_file *m)
{
    static const struct {
        const char *name;
        json_t *(*make)(const zero_paper_figure *, const zero_machine_file *);
    } more[] = {{"fig2", fig2_json},         {"fig3", fig3_json},
                {"fig4", fig4_json},         {"fig8", fig8_json},
                {"turing-nlg", turing_json}, {"trillion", trillion_json}};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        if (strcmp(figure->name, more[i].name) == 0) return more[i].make(figure, m);
    return json_null();
}

zero_status zero_paper_print_speed_json(const zero_paper_figure *figure,
                                        const zero_machine_file *m, FILE *out)
{
    json_t *object = json_object(), *cells = json_array(), *counts = json_object();
    zero_paper_closeness c = zero_paper_compare_runs(figure, m);
    put_text(object, "table", figure->name);
    put_text(object, "title", figure->title);
    put_text(object, "unit", "flop/s of a device");
    put_text(object, "numbers", figure->numbers);
    json_object_set_new(object, "machine", machine_json(m));
    for (int i = 0; i < figure->n; i++)
        json_array_append_new(cells, cell_json(&figure->runs[i], m));
    json_object_set_new(object, "cells", cells);
    put_whole(counts, "rates", c.cells);
    put_whole(counts, "near", c.near);
    json_object_set_new(object, "counts", counts);
    put_real(object, "typically_off", expm1(c.typical)); /* 0.25: a factor of 1.25 */
    json_object_set_new(object, "counterfactual", more_json(figure, m));
    return zero_json_print(object, JSON_INDENT(2), out);
}
