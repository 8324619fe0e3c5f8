#include "paper/runs.h"

#include "facts/facts.h"
#include "report/json_put.h"
#include "sharding/formula.h"

#define MOST       (INT64_C(1) << 20)
#define MOST_RATES 64      /* of a figure; tables of the paper have up to 24 rows */
#define ONE_NODE   65536.0 /* devices: more than any run has */

extern const zero_embedded zero_paper_files[], zero_paper_formulas[];

json_t *zero_paper_data(const char *name)
{
    const char *text = zero_embedded_text(zero_paper_files, name);
    return text ? json_loads(text, 0, NULL) : NULL;
}

static int whole(const json_t *row, const char *key)
{
    return (int)zero_get_whole(row, key);
}

static json_t *pick(const json_t *run, const char *spec)
{
    return zero_facts_pick(&(zero_scope){.node = run}, spec);
}

/* ---- a run ---- */

/* Lines "NAME = EXPRESSION" become members of the tree; "#" begins a comment. */
static void work_out(json_t *tree, const char *formulas)
{
    for (const char *line = formulas, *end; *line; line = end + (*end == '\n')) {
        zero_fact fact;
        const char *x = line + strcspn(line, "=\n");
        char name[40];
        end = line + strcspn(line, "\n");
        if (*line == '#' || *x != '=') continue;
        zero_print(name, "%.*s", (int)strcspn(line, " "), line);
        zero_status st =
            zero_fact_of(x + 1, (size_t)(end - x - 1), &(zero_scope){.node = tree}, &fact);
        if (st == ZERO_OK && fact.kind == ZERO_FACT_NUMBER)
            zero_put_real(tree, name, fact.number);
    }
}

zero_shape zero_paper_shape(const json_t *row)
{
    return (zero_shape){.layers = whole(row, "layers"),
                        .hidden = whole(row, "hidden"),
                        .heads = whole(row, "heads"),
                        .seq = json_object_get(row, "seq") ? whole(row, "seq") : 1024,
                        .vocab =
                            json_object_get(row, "vocab") ? whole(row, "vocab") : 50257};
}

json_t *zero_paper_run(const json_t *row, const zero_machine_file *m)
{
    json_t *run = json_pack("{sb}", "recomputes", 1);
    zero_shape shape = zero_paper_shape(row);
    int64_t psi = zero_shape_count(&shape);
    int ranks = whole(row, "ranks");
    zero_put_whole(run, "seq", shape.seq);
    zero_put_whole(run, "vocab", shape.vocab);
    json_object_update(run, (json_t *)row);
    zero_put_whole(run, "psi", psi);
    zero_put_whole(run, "devices", ranks * whole(row, "model_parallel"));
    zero_put_real(run, "state_bytes",
                  zero_formula_state_bytes(psi, ranks, whole(row, "stage"), ZERO_FP16));
    work_out(run, zero_embedded_text(zero_paper_formulas, "memory"));
    if (!m) return run;
    zero_put_real(
        run, "flop_rate",
        zero_machine_products(m, ZERO_FP16, &shape, zero_fact_number(run, "positions")));
    json_object_set_new(run, "machine",
                        json_pack("{sf sf sf sf s{sf sf} s{sf sf}}", "devices", m->devices,
                                  "memory", m->memory, "memory_bandwidth",
                                  m->memory_bandwidth, "host", m->host, "inside", "latency",
                                  m->inside.latency, "bandwidth", m->inside.bandwidth,
                                  "between", "latency", m->between.latency, "bandwidth",
                                  m->between.bandwidth));
    work_out(run, zero_embedded_text(zero_paper_formulas, "time"));
    return run;
}

/* A number of the run that a row becomes, which is released. */
static double number_of(json_t *row, const char *key, const zero_machine_file *m)
{
    json_t *run = zero_paper_run(row, m);
    double number = zero_fact_number(run, key);
    json_decref(run);
    json_decref(row);
    return number;
}

json_t *zero_paper_with(const json_t *row, const char *key, int64_t number)
{
    json_t *other = json_copy((json_t *)row);
    zero_put_whole(other, key, number);
    return other;
}

/* Bytes grow with the number, so the largest that fits is found by halving. */
int64_t zero_paper_most(const json_t *row, const char *key, double bytes)
{
    int64_t fits = 0, beyond = MOST + 1;
    while (beyond - fits > 1) {
        int64_t n = fits + (beyond - fits) / 2;
        bool is_within = number_of(zero_paper_with(row, key, n), "all", NULL) <= bytes;
        *(is_within ? &fits : &beyond) = n;
    }
    return fits;
}

/* Turing-NLG and a trillion: the row on the same devices with another degree of model
 * parallelism and another stage, and the most samples that fit then; batch 0: not even one
 * does. Stage 0 is Megatron's, without overlap. */
static json_t *zero_paper_cut_among(const json_t *row, int model_parallel, int stage,
                                    const zero_machine_file *machine)
{
    json_t *cut = zero_paper_with(row, "model_parallel", model_parallel);
    int devices = whole(row, "model_parallel") * whole(row, "ranks");
    zero_put_whole(cut, "ranks", devices / model_parallel);
    zero_put_whole(cut, "stage", stage);
    zero_put_flag(cut, "overlaps", stage > 0);
    zero_put_whole(cut, "batch", zero_paper_most(cut, "batch", machine->memory));
    return cut;
}

/* ---- counterfactuals ---- */

/* Pairs of runs, and Megatron's if all its devices were on one node, so that no link is
 * shared and model parallelism never leaves it; and one replica of it alone, without data
 * parallelism: the paper's text has its 40B on two nodes. */
static json_t *figure_2(const json_t *rows, const json_t *data, const zero_machine_file *m,
                        json_t *tree)
{
    json_t *all = json_array();
    zero_machine_file one = *m, slow = *m;
    one.devices = ONE_NODE;
    one.host *= ONE_NODE / m->devices;
    for (size_t i = 0; i + 1 < json_array_size(rows); i += 2) {
        const json_t *megatron = json_array_get(rows, i + 1);
        json_t *alone = zero_paper_with(megatron, "ranks", 1);
        json_t *pair =
            json_pack("{so so so so}", "zero", zero_paper_run(json_array_get(rows, i), m),
                      "megatron", zero_paper_run(megatron, m), "inside",
                      zero_paper_run(megatron, &one), "alone", zero_paper_run(alone, m));
        json_t *row =
            pick(pair, "model = zero/model; speed_up = zero/rate / megatron/rate; paper = "
                       "zero/speed_up; megatron_on_one_node = inside/rate; megatron_alone "
                       "= alone/rate");
        if (json_object_get(megatron, "paper_alone"))
            json_object_update_new(row, pick(megatron, "paper_alone"));
        json_object_update_new(row,
                               pick(pair, "megatron_parallel = megatron/model_parallel; "
                                          "zero = zero/rate; megatron = "
                                          "megatron/rate"));
        json_array_append_new(all, row);
        json_decref(alone);
        json_decref(pair);
    }
    /* The link that gives one of them, alone, the paper's rate. */
    const json_t *link = json_object_get(data, "slow_link");
    json_t *alone = json_array_get(rows, (size_t)whole(link, "alone")),
           *other = json_array_get(rows, (size_t)whole(link, "other"));
    slow.between.bandwidth = zero_fact_number(link, "bandwidth");
    json_object_set_new(
        tree, "slow_link",
        json_pack("{sf sf sf sf}", "bandwidth", slow.between.bandwidth, "at_40b_alone",
                  number_of(zero_paper_with(alone, "ranks", 1), "rate", &slow), "at_60b",
                  number_of(json_incref(other), "rate", &slow), "paper_at_60b",
                  zero_fact_number(other, "paper * 1e12")));
    return all;
}

/* The batches: the paper's; the most samples that take what the first run takes in the
 * paper; that fill a device, with nothing else in its memory; the first run's for all,
 * which is the counterfactual. */
static json_t *figure_3(const json_t *rows, ZERO_UNUSED const json_t *data,
                        const zero_machine_file *m, ZERO_UNUSED json_t *tree)
{
    static const char *const names[] = {"paper", "first_memory", "all_memory", "fixed"};
    json_t *kinds = json_array(), *first = json_array_get(rows, 0), *row;
    const double rooms[] = {0.0, number_of(json_incref(first), "all", m), m->memory};
    for (size_t k = 0, i; k < 4; k++) {
        json_t *list = json_array();
        double rate = 0.0; /* of the first */
        json_array_foreach(rows, i, row)
        {
            int64_t batch = k == 0   ? whole(row, "batch")
                            : k == 3 ? whole(first, "batch")
                                     : zero_paper_most(row, "batch", rooms[k]);
            json_t *other = zero_paper_with(row, "batch", batch),
                   *run = zero_paper_run(other, m);
            if (i == 0) rate = zero_fact_number(run, "rate");
            zero_put_real(run, "first", rate);
            json_array_append_new(
                list,
                pick(run, "devices; batch; rate; total = rate * devices; times_linear "
                          "= rate / first; paper_total = or(total, 0) * 1e12; "
                          "paper_linear = or(linear, 0) * 1e12"));
            json_decref(other);
            json_decref(run);
        }
        zero_put_item(kinds, "{ss so}", "batches", names[k], "runs", list);
    }
    return kinds;
}

/* Whole states on every device, with the same batch; and the largest model of the width
 * that fits one sample that way. */
static json_t *figure_4(const json_t *rows, ZERO_UNUSED const json_t *data,
                        const zero_machine_file *m, ZERO_UNUSED json_t *tree)
{
    json_t *all = json_array(), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        json_t *same = zero_paper_with(row, "stage", 0),
               *one = zero_paper_with(same, "batch", 1);
        zero_put_whole(one, "layers", zero_paper_most(one, "layers", m->memory));
        zero_put_item(all, "{sO sf sf}", "model", json_object_get(row, "model"),
                      "bytes_without_zero", number_of(same, "all", NULL),
                      "largest_without_zero", number_of(one, "psi", NULL));
    }
    return all;
}

/* Each run with the batch of the first one of its size. */
static json_t *figure_8(const json_t *rows, ZERO_UNUSED const json_t *data,
                        const zero_machine_file *m, ZERO_UNUSED json_t *tree)
{
    json_t *all = json_array(), *row, *first = json_array_get(rows, 0);
    size_t i;
    json_array_foreach(rows, i, row)
    {
        if (!json_equal(json_object_get(first, "model"), json_object_get(row, "model")))
            first = row;
        double rate =
            number_of(zero_paper_with(row, "batch", whole(first, "batch")), "rate", m);
        json_t *cell = pick(row, "model; system");
        zero_put_real(cell, "with_first_batch", rate);
        zero_put_flag(cell, "begins_model", first == row);
        json_array_append_new(all, cell);
    }
    return all;
}

#define MOST_PARTS 16 /* of a model on a node */

/* The run cut among other numbers of ranks, and other stages. `lines` are those of the cuts
 * on a node, and of that among as many ranks as there are heads, with one cut per stage. */
static json_t *cuts(const json_t *rows, ZERO_UNUSED const json_t *data,
                    const zero_machine_file *m, json_t *tree)
{
    const json_t *run = json_array_get(rows, 0);
    json_t *all = json_array(), *lines = json_array();
    int heads = whole(run, "heads");
    int devices = whole(run, "model_parallel") * whole(run, "ranks");
    for (int parts = 1; parts <= heads; parts *= 2) {
        if (heads % parts != 0) continue;
        json_t *line = json_array();
        for (int stage = 0; stage <= 3; stage++) {
            json_t *cut = zero_paper_cut_among(run, parts, stage, m);
            json_t *row = pick(cut, "model_parallel; stage; batch");
            bool fits = whole(cut, "batch") > 0;
            double rate = number_of(cut, "rate", m);
            if (fits) zero_put_real(row, "rate", rate);
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
static json_t *trillion(const json_t *rows, const json_t *data, const zero_machine_file *m,
                        json_t *tree)
{
    json_t *run = zero_paper_run(json_array_get(rows, 0), m);
    const double day = 24.0 * 60.0 * 60.0, tokens = 300e3 * 512 * 1024;
    double seconds = tokens / zero_fact_number(run, "batch * ranks * seq") *
                     zero_fact_number(run, "step");
    double states = zero_formula_state_bytes(INT64_C(1000000000000), whole(run, "devices"),
                                             3, ZERO_FP16);
    json_decref(run);
    return json_pack("{sf sf sf sf sf so}", "state_bytes", states, "paper_state_bytes",
                     16e9, "days", 3000.0 * 67.0 / 60.0 / 24.0, "paper_days", 140.0,
                     "days_for_tokens", seconds / day, "cuts", cuts(rows, data, m, tree));
}

/* ---- a figure ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return zero_order(x, y);
}

/* How far ours are off in the cells that have a ratio. typically_off: 0.25 is a factor of 1.25. */
static json_t *judged(const json_t *cells)
{
    double offs[MOST_RATES], squares = 0.0, worst = 0.0;
    int n = 0, near = 0;
    const json_t *cell, *farthest = NULL;
    size_t i;
    json_array_foreach(cells, i, cell)
    {
        const double ratio = zero_fact_number(cell, "ratio"), off = fabs(log(ratio));
        if (isnan(ratio)) continue;
        assert(n < MOST_RATES);
        offs[n++] = fabs(ratio - 1.0);
        near += fabs(ratio - 1.0) <= ZERO_PAPER_NEAR;
        squares += off * off;
        if (off > worst) worst = off, farthest = cell;
    }
    json_t *tree = json_pack("{s{si si} sf}", "counts", "rates", n, "near", near,
                             "typically_off", n > 0 ? expm1(sqrt(squares / n)) : 0.0);
    if (n == 0) return tree;
    zero_sort(offs, n, by_size);
    zero_put_real(tree, "median_off", (offs[n / 2] + offs[(n - 1) / 2]) / 2.0);
    json_object_set(tree, "worst", (json_t *)farthest);
    return tree;
}

json_t *zero_paper_speed(const json_t *data, const zero_machine_file *m)
{
    static const struct {
        const char *name;
        json_t *(*make)(const json_t *rows, const json_t *data, const zero_machine_file *,
                        json_t *tree);
    } more[] = {{"fig2", figure_2}, {"fig3", figure_3},   {"fig4", figure_4},
                {"fig8", figure_8}, {"turing-nlg", cuts}, {"trillion", trillion}};
    const json_t *rows = json_object_get(data, "runs");
    json_t *cells = json_array(), *row, *made;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        json_t *run = zero_paper_run(row, m);
        /* A run without a rate does not fit: `paper` and, if ours does not fit either,
         * `ours` are null. */
        json_t *cell =
            pick(run, "model; system; psi; layers; hidden; heads; devices; "
                      "model_parallel; batch; stage; bytes = all; ours = or(paper, "
                      "0) != 0 || fits ? rate : unknown; paper = or(paper, 0) > 0 ? "
                      "or(paper, 0) * 1e12 : unknown");
        json_t *shown = json_object_get(run, "ratio"), *note = json_object_get(run, "note");
        if (shown) json_object_set(cell, "ratio", shown);
        json_object_set_new(
            cell, "seconds",
            pick(run, "step; compute; tensor; data; data_links; host; update"));
        if (note) json_object_set(cell, "note", note);
        json_object_update_new(cell,
                               pick(run, "fits? = fits; paper_fits? = or(paper, 0) != 0"));
        json_array_append_new(cells, cell);
        json_decref(run);
    }
    json_t *tree = pick(data, "table; title; unit; numbers; role");
    made = json_pack("{s{ss ss ss ss ss sf} so}", "machine", "name", m->name, "about",
                     m->about, "source", m->source, "date", m->date, "fit", m->fit,
                     "memory", m->memory, "cells", cells);
    json_object_update_new(tree, made);
    json_object_update_new(tree, judged(cells));
    for (int k = 0; k < ZERO_COUNT(more); k++)
        if (zero_same_text(more[k].name, zero_get_string(data, "table")))
            json_object_set_new(tree, "counterfactual", more[k].make(rows, data, m, tree));
    return tree;
}
