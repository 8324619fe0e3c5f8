#include "paper/runs.h"

#include <math.h>
#include <string.h>

#include "base/embedded.h"
#include "base/type.h"
#include "nn/shape.h"
#include "sharding/formula.h"

#define TERA     1e12
#define ONE_NODE 65536.0 /* devices: more than any run has */

extern const zero_embedded zero_paper_files[];

json_t *zero_paper_data(const char *name)
{
    const char *text = zero_embedded_text(zero_paper_files, name);
    return text ? json_loads(text, 0, NULL) : NULL;
}

static int64_t whole(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

static double real(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static const char *text(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

zero_paper_setup zero_paper_setup_of(const json_t *row)
{
    static const char *const kept[] = {"whole", "piece", "cpu"};
    zero_paper_setup s = {.shape = {.layers = whole(row, "layers"),
                                    .hidden = whole(row, "hidden"),
                                    .heads = whole(row, "heads"),
                                    .seq = 1024,
                                    .vocab = 50257},
                          .model_parallel = (int)whole(row, "model_parallel"),
                          .n_ranks = (int)whole(row, "ranks"),
                          .batch = whole(row, "batch"),
                          .stage = (int)whole(row, "stage"),
                          .checkpoints = true};
    for (int k = ZERO_PAPER_KEEP_WHOLE; k <= ZERO_PAPER_KEEP_IN_CPU; k++)
        if (strcmp(text(row, "keep"), kept[k]) == 0) s.keep = (zero_paper_keep)k;
    return s;
}

int zero_paper_runs(const json_t *data, zero_paper_run runs[ZERO_PAPER_RUNS])
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(data, "runs"), i, row) runs[i] =
        (zero_paper_run){.size = text(row, "model"),
                         .system = text(row, "system"),
                         .setup = zero_paper_setup_of(row),
                         .overlaps = json_is_true(json_object_get(row, "overlaps")),
                         .paper = real(row, "paper"),
                         .speed_up = real(row, "speed_up"),
                         .total = real(row, "total"),
                         .linear = real(row, "linear"),
                         .note = text(row, "note")};
    return (int)i;
}

int zero_paper_devices(const zero_paper_setup *setup)
{
    return setup->model_parallel * setup->n_ranks;
}

/* ---- the model of time ---- */

zero_throughput zero_paper_time(const zero_paper_run *run, const zero_machine_file *m)
{
    return zero_throughput_of(&run->setup, run->overlaps, m);
}

static double rate_of(const zero_paper_run *run, const zero_machine_file *m)
{
    return zero_paper_time(run, m).rate;
}

zero_throughput zero_paper_time_inside(const zero_paper_run *run,
                                       const zero_machine_file *machine)
{
    zero_machine_file m = *machine;
    m.devices = ONE_NODE;
    m.host *= ONE_NODE / machine->devices;
    return zero_paper_time(run, &m);
}

zero_throughput zero_paper_time_alone(const zero_paper_run *run,
                                      const zero_machine_file *machine)
{
    zero_paper_run alone = *run;
    alone.setup.n_ranks = 1;
    return zero_paper_time(&alone, machine);
}

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

/* ---- cells ---- */

/* A run without a rate does not fit: `paper` and, if ours does not fit either, `ours` are
 * null. */
static json_t *cell_of(const zero_paper_run *run, const zero_machine_file *m)
{
    const zero_paper_setup *s = &run->setup;
    zero_throughput t = zero_paper_time(run, m);
    double bytes = zero_paper_memory_of(s).all;
    bool fits = bytes <= m->memory;
    json_t *cell = json_pack(
        "{ss ss sI sI sI sI si si sI si sf so so}", "model", run->size, "system",
        run->system, "psi", (json_int_t)zero_shape_count(&s->shape), "layers",
        (json_int_t)s->shape.layers, "hidden", (json_int_t)s->shape.hidden, "heads",
        (json_int_t)s->shape.heads, "devices", zero_paper_devices(s), "model_parallel",
        s->model_parallel, "batch", (json_int_t)s->batch, "stage", s->stage, "bytes", bytes,
        "ours", run->paper != 0.0 || fits ? json_real(t.rate) : json_null(), "paper",
        run->paper > 0.0 ? json_real(run->paper * TERA) : json_null());
    if (run->paper > 0.0)
        json_object_set_new(cell, "ratio", json_real(t.rate / TERA / run->paper));
    json_object_set_new(cell, "seconds",
                        json_pack("{sf sf sf sf sf sf sf}", "step", t.step, "compute",
                                  t.compute, "tensor", t.tensor, "data", t.data,
                                  "data_links", t.data_all, "host", t.host, "update",
                                  t.update));
    if (run->note) json_object_set_new(cell, "note", json_string(run->note));
    json_object_set_new(cell, "fits", json_boolean(fits));
    json_object_set_new(cell, "paper_fits", json_boolean(run->paper != 0.0));
    return cell;
}

/* ---- counterfactuals ---- */

#define AT_40B    4
#define AT_60B    6
#define ALONE     5.0 /* Tflop/s of a device, "about": Megatron's 40B on two nodes */
#define SLOW_LINK 7e9 /* that gives 40B on two nodes the paper's rate */

static json_t *figure_2(const zero_paper_run *runs, int n, const zero_machine_file *m,
                        json_t *tree)
{
    json_t *rows = json_array();
    for (int i = 0; i + 1 < n; i += 2) {
        const zero_paper_run *zero = &runs[i], *megatron = zero + 1;
        json_t *row =
            json_pack("{ss sf sf sf sf}", "model", zero->size, "speed_up",
                      rate_of(zero, m) / rate_of(megatron, m), "paper", zero->speed_up,
                      "megatron_on_one_node", zero_paper_time_inside(megatron, m).rate,
                      "megatron_alone", zero_paper_time_alone(megatron, m).rate);
        if (i == AT_40B) json_object_set_new(row, "paper_alone", json_real(ALONE * TERA));
        json_object_set_new(row, "megatron_parallel",
                            json_integer(megatron->setup.model_parallel));
        json_object_set_new(row, "zero", json_real(rate_of(zero, m)));
        json_object_set_new(row, "megatron", json_real(rate_of(megatron, m)));
        json_array_append_new(rows, row);
    }
    zero_machine_file slow = *m;
    slow.between.bandwidth = SLOW_LINK;
    json_object_set_new(tree, "slow_link",
                        json_pack("{sf sf sf sf}", "bandwidth", SLOW_LINK, "at_40b_alone",
                                  zero_paper_time_alone(&runs[AT_40B + 1], &slow).rate,
                                  "at_60b", rate_of(&runs[AT_60B + 1], &slow),
                                  "paper_at_60b", runs[AT_60B + 1].paper * TERA));
    return rows;
}

/* What fills the memory of a device in figure 3. */
static int64_t batch_of(const zero_paper_run *runs, int i, int kind,
                        const zero_machine_file *m)
{
    const zero_paper_setup *setup = &runs[i].setup;
    double first = zero_paper_memory_of(&runs[0].setup).all;
    if (kind == 1) return zero_paper_largest_batch(setup, first);
    if (kind == 2) return zero_paper_largest_batch(setup, m->memory);
    return kind == 3 ? runs[0].setup.batch : setup->batch;
}

/* The batches: the paper's; the most samples that take what the first run takes in the
 * paper; that fill a device, with nothing else in its memory; the first run's for all,
 * which is the counterfactual. */
static json_t *figure_3(const zero_paper_run *runs, int n, const zero_machine_file *m,
                        json_t *tree)
{
    static const char *const names[] = {"paper", "first_memory", "all_memory", "fixed"};
    json_t *kinds = json_array();
    (void)tree;
    for (int k = 0; k < 4; k++) {
        json_t *rows = json_array();
        double first = 0.0;
        for (int i = 0; i < n; i++) {
            zero_paper_run run = runs[i];
            int devices = zero_paper_devices(&run.setup);
            run.setup.batch = batch_of(runs, i, k, m);
            double rate = rate_of(&run, m);
            if (i == 0) first = rate;
            json_array_append_new(
                rows, json_pack("{si sI sf sf sf sf sf}", "devices", devices, "batch",
                                (json_int_t)run.setup.batch, "rate", rate, "total",
                                rate * devices, "times_linear", rate / first, "paper_total",
                                run.total * TERA, "paper_linear", run.linear * TERA));
        }
        json_array_append_new(kinds,
                              json_pack("{ss so}", "batches", names[k], "runs", rows));
    }
    return kinds;
}

/* Whole states on every device, with the same batch; and the largest model of the width
 * that fits one sample that way. */
static json_t *figure_4(const zero_paper_run *runs, int n, const zero_machine_file *m,
                        json_t *tree)
{
    json_t *rows = json_array();
    (void)tree;
    for (int i = 0; i < n; i++) {
        zero_paper_setup whole = runs[i].setup, largest;
        whole.stage = 0;
        largest = whole;
        largest.batch = 1;
        largest.shape.layers = zero_paper_most_layers(&largest, m->memory);
        json_array_append_new(
            rows, json_pack("{ss sf sf}", "model", runs[i].size, "bytes_without_zero",
                            zero_paper_memory_of(&whole).all, "largest_without_zero",
                            (double)zero_shape_count(&largest.shape)));
    }
    return rows;
}

/* Each run with the batch of the first one of its size. */
static json_t *figure_8(const zero_paper_run *runs, int n, const zero_machine_file *m,
                        json_t *tree)
{
    json_t *rows = json_array();
    (void)tree;
    for (int i = 0, first = 0; i < n; i++) {
        zero_paper_run run = runs[i];
        if (strcmp(runs[first].size, run.size) != 0) first = i;
        run.setup.batch = runs[first].setup.batch;
        json_array_append_new(rows,
                              json_pack("{ss ss sf sb}", "model", run.size, "system",
                                        run.system, "with_first_batch", rate_of(&run, m),
                                        "begins_model", first == i));
    }
    return rows;
}

#define MOST_PARTS 16 /* of a model on a node */

/* The run cut among other numbers of ranks, and other stages. `lines` are those of the cuts
 * on a node, and of that among as many ranks as there are heads, with one cut per stage. */
static json_t *cuts(const zero_paper_run *runs, int n, const zero_machine_file *m,
                    json_t *tree)
{
    json_t *all = json_array(), *lines = json_array();
    int heads = (int)runs[0].setup.shape.heads,
        devices = zero_paper_devices(&runs[0].setup);
    (void)n;
    for (int parts = 1; parts <= heads; parts *= 2) {
        if (heads % parts != 0) continue;
        json_t *line = json_array();
        for (int stage = 0; stage <= 3; stage++) {
            zero_paper_run cut = zero_paper_cut_among(&runs[0], parts, stage, m);
            json_t *row = json_pack("{si si sI}", "model_parallel", parts, "stage", stage,
                                    "batch", (json_int_t)cut.setup.batch);
            if (cut.setup.batch > 0)
                json_object_set_new(row, "rate", json_real(rate_of(&cut, m)));
            json_array_append(line, row);
            json_array_append_new(all, row);
        }
        if (parts <= MOST_PARTS || (parts == heads && devices % heads == 0))
            json_array_append(lines, line);
        json_decref(line);
    }
    json_object_set_new(tree, "lines", lines);
    return all;
}

/* The paper's estimates: model states of a device, P_os+g+p without model parallelism; 3000
 * times the 67 minutes of BERT-Large; and, ours alone, 300 000 steps of 512 x 1024
 * tokens. */
static json_t *trillion(const zero_paper_run *runs, int n, const zero_machine_file *m,
                        json_t *tree)
{
    const zero_paper_setup *s = &runs[0].setup;
    const double day = 24.0 * 60.0 * 60.0, tokens = 300e3 * 512 * 1024;
    double of_step = (double)s->batch * s->n_ranks * (double)s->shape.seq;
    double seconds = tokens / of_step * zero_paper_time(&runs[0], m).step;
    double states = zero_formula_state_bytes(INT64_C(1000000000000), zero_paper_devices(s),
                                             3, ZERO_FP16);
    return json_pack("{sf sf sf sf sf so}", "state_bytes", states, "paper_state_bytes",
                     16e9, "days", 3000.0 * 67.0 / 60.0 / 24.0, "paper_days", 140.0,
                     "days_for_tokens", seconds / day, "cuts", cuts(runs, n, m, tree));
}

/* ---- a figure ---- */

json_t *zero_paper_speed(const json_t *data, const zero_machine_file *m)
{
    static const struct {
        const char *name;
        json_t *(*make)(const zero_paper_run *, int, const zero_machine_file *,
                        json_t *tree);
    } more[] = {{"fig2", figure_2}, {"fig3", figure_3},   {"fig4", figure_4},
                {"fig8", figure_8}, {"turing-nlg", cuts}, {"trillion", trillion}};
    zero_paper_run runs[ZERO_PAPER_RUNS];
    int n = zero_paper_runs(data, runs), rates = 0, near = 0;
    json_t *cells = json_array();
    double squares = 0.0;
    for (int i = 0; i < n; i++) {
        json_array_append_new(cells, cell_of(&runs[i], m));
        if (runs[i].paper <= 0.0) continue;
        double ratio = rate_of(&runs[i], m) / TERA / runs[i].paper;
        rates++;
        near += fabs(ratio - 1.0) <= ZERO_PAPER_NEAR;
        squares += log(ratio) * log(ratio);
    }
    json_t *tree = json_pack(
        "{sO sO sO sO s{ss ss ss ss ss sf} so s{si si} sf}", "table",
        json_object_get(data, "table"), "title", json_object_get(data, "title"), "unit",
        json_object_get(data, "unit"), "numbers", json_object_get(data, "numbers"),
        "machine", "name", m->name, "about", m->about, "source", m->source, "date", m->date,
        "fit", m->fit, "memory", m->memory, "cells", cells, "counts", "rates", rates,
        "near", near, "typically_off", /* 0.25: a factor of 1.25 */
        rates > 0 ? expm1(sqrt(squares / rates)) : 0.0);
    for (size_t k = 0; k < sizeof more / sizeof more[0]; k++)
        if (strcmp(more[k].name, text(data, "table")) == 0)
            json_object_set_new(tree, "counterfactual", more[k].make(runs, n, m, tree));
    return tree;
}
