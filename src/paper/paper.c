#include "paper/paper.h"

#include "facts/form.h"
#include "nn/share.h"
#include "paper/runs.h"
#include "plan/plan.h"
#include "report/json_put.h"
#include "sharding/formula.h"
#include "sharding/stages.h"

extern const zero_embedded zero_paper_forms[];

static int64_t whole(const json_t *row, const char *key)
{
    return zero_get_whole(row, key);
}

/* Members of a cell, worked out of a run. */
static void put(json_t *cell, const json_t *run, const char *spec)
{
    json_object_update_new(cell, zero_facts_pick(&(zero_scope){.node = run}, spec));
}

static void put_if_known(json_t *cell, const json_t *run, const char *key)
{
    json_t *value = json_object_get(run, key);
    if (value) json_object_set(cell, key, value);
}

/* ---- tables 1 and 2, figure 1: model states by stage ---- */

/* Halves upwards: 41.25 is printed as 41.3, 1.875 as 1.88. */
static double round_up(double x)
{
    return floor(x + 0.5);
}

zero_paper_cell zero_paper_compare(const char *printed, double exact, int model_parallel)
{
    char *suffix;
    double number = strtod(printed, &suffix), unit = *suffix == 'T' ? 1e12 : 1e9;
    zero_paper_cell cell = {.printed = round(number * unit), .unit = unit};
    cell.off = cell.printed / exact - 1.0;

    /* Both are compared as whole numbers, in units of the last printed digit. */
    const char *point = strchr(printed, '.');
    double shift = pow(10.0, point ? (double)strspn(point + 1, "0123456789") : 0.0);
    double ours = exact / unit * shift, theirs = round(number * shift),
           parts = model_parallel;
    cell.agreement = theirs == round_up(ours)                   ? "rounded"
                     : theirs == round_up(ours / parts) * parts ? "scaled"
                     : theirs == floor(ours)                    ? "truncated"
                                                                : "differs";
    return cell;
}

static zero_status add_states(const json_t *data, json_t *tree)
{
    json_t *cells = json_array(), *row, *printed, *worst = json_object();
    json_t *counts =
        json_pack("{si si si si}", "rounded", 0, "scaled", 0, "truncated", 0, "differs", 0);
    bool has_bytes = zero_same_text(zero_get_string(data, "unit"), "bytes");
    int64_t last_psi = -1;
    size_t i, stage;
    json_array_foreach(json_object_get(data, "rows"), i, row)
        json_array_foreach(json_object_get(row, "printed"), stage, printed)
    {
        if (json_is_null(printed)) continue;
        int64_t psi = whole(row, "psi");
        int n = (int)whole(row, "ranks"), parts = (int)whole(row, "model_parallel");
        /* Bytes of model states per rank; in a row without psi, the parameters whose states
         * fit a V100. */
        double exact = psi > 0
                           ? zero_formula_state_bytes(psi, n, (int)stage, ZERO_FP16) / parts
                           : (double)zero_formula_largest_model(ZERO_PAPER_DEVICE, n,
                                                                (int)stage, ZERO_FP16) *
                                 parts;
        zero_paper_cell c = zero_paper_compare(json_string_value(printed), exact, parts);
        json_t *cell = json_object();
        if (psi > 0) put(cell, row, "psi");
        put(cell, row, "ranks; model_parallel");
        zero_put_members(cell, "{si sf sf sO sf ss}", "stage", (int)stage, "ours", exact,
                         "paper", c.printed, "printed", printed, "off", c.off, "agreement",
                         c.agreement);
        if (psi > 0) put(cell, row, "model");
        zero_put_members(cell, "{ss ss sf sb}", "stage_name",
                         zero_stage_at((int)stage)->name, "counts_in",
                         has_bytes        ? "GB"
                         : c.unit == 1e12 ? "T"
                                          : "B",
                         "scale", c.unit, "begins_model", last_psi >= 0 && psi != last_psi);
        last_psi = psi;
        json_array_append_new(cells, cell);
        zero_put_whole(counts, c.agreement, whole(counts, c.agreement) + 1);
        double off = zero_get_number(worst, c.agreement);
        zero_put_real(worst, c.agreement, fmax(off, fabs(c.off)));
    }
    zero_put_members(tree, "{so so so}", "cells", cells, "counts", counts, "worst", worst);
    return ZERO_OK;
}

/* ---- figures 6 and 7: memory of devices ---- */

zero_status zero_paper_plan(const json_t *row, size_t most, zero_plan_fitted *fitted)
{
    zero_shape given = zero_paper_shape(row), shape = given;
    int parts = (int)whole(row, "model_parallel");
    const char *keep = zero_get_string(row, "keep");
    zero_model model, part;
    if (most > 0) shape.layers = 1; /* of the model only share and chunk are read */
    ZERO_TRY(zero_model_build(&shape, &model));
    zero_status st =
        zero_model_share(&model, (zero_share){.ranks = parts, .slices = parts}, &part);
    if (st == ZERO_OK) {
        zero_plan_input in = zero_plan_input_standard(&part, (int)whole(row, "ranks"), 0);
        zero_plan_ledger ledger;
        in.stage = (int)whole(row, "stage");
        in.type = ZERO_FP16;
        in.micro_batch = whole(row, "batch");
        in.recompute = true;
        in.partition_activations = zero_same_text(keep, "piece");
        in.collectives = ZERO_ALGORITHM_P2P;
        if (most > 0) {
            st = zero_plan_fit(&given, &in, &(zero_plan_room){.bytes = most}, fitted);
        } else {
            st = zero_plan_measure(&in, &ledger);
            if (st == ZERO_OK) *fitted = (zero_plan_fitted){.needed = ledger.needed};
        }
        zero_model_destroy(&part);
    }
    zero_model_destroy(&model);
    return st;
}

/* P_a+cpu is not planned. */
static bool is_planned(const json_t *row)
{
    return !zero_same_text(zero_get_string(row, "keep"), "cpu");
}

/* Figure 6: the deepest model of the paper's width that fits. `left`: what the paper's size
 * leaves of the device; `fit`: with what C1 leaves kept back, which is a fit of ours. */
static zero_status add_largest(const json_t *data, json_t *tree)
{
    json_t *cells = json_array(), *row;
    double kept_back = 0.0;
    size_t i;
    json_object_set_new(tree, "cells", cells);
    json_array_foreach(json_object_get(data, "rows"), i, row)
    {
        json_t *cell = json_object(), *run = zero_paper_run(row, NULL);
        zero_plan_fitted plan = {0};
        if (i == 0) kept_back = ZERO_PAPER_DEVICE - zero_fact_number(run, "all");
        const double rooms[] = {ZERO_PAPER_DEVICE, ZERO_PAPER_DEVICE - kept_back};
        static const char *const names[] = {"with", "fitted"};
        for (int k = 0; k < 2; k++) {
            int64_t layers = zero_paper_most(row, "layers", rooms[k]);
            json_t *deep = zero_paper_with(row, "layers", layers);
            json_object_set_new(run, names[k], zero_paper_run(deep, NULL));
            json_decref(deep);
        }
        json_array_append_new(cells, cell);
        put(cell, run,
            "configuration; parts; stage; paper_layers = layers; hidden; heads; paper; "
            "printed; ours = with/psi; layers = with/layers; off = with/psi / paper - 1; "
            "fit = fitted/psi");
        json_object_set_new(
            cell, "bytes_at_paper_size",
            zero_facts_pick(&(zero_scope){.node = run},
                            "states; checkpoints; activations; logits; buffers; all"));
        zero_put_real(cell, "left", ZERO_PAPER_DEVICE - zero_fact_number(run, "all"));
        json_decref(run);
        if (is_planned(row)) {
            ZERO_TRY(zero_paper_plan(row, (size_t)ZERO_PAPER_DEVICE, &plan));
            zero_put_whole(cell, "plan", plan.n_params);
            zero_put_whole(cell, "plan_layers", plan.layers);
        }
        put(cell, row, "why");
    }
    zero_put_real(tree, "fit_keeps_back", kept_back);
    return ZERO_OK;
}

/* Figure 7: what is alive by the formulas; the rest of the paper's number is what its
 * allocator keeps. */
static zero_status add_held(const json_t *data, json_t *tree)
{
    static const char *const first[] = {"model", "configuration", "parts",
                                        "stage", "batch",         "paper"};
    json_t *cells = json_array(), *row;
    size_t i;
    json_object_set_new(tree, "cells", cells);
    json_array_foreach(json_object_get(data, "rows"), i, row)
    {
        json_t *cell = json_object(), *run = zero_paper_run(row, NULL);
        zero_plan_fitted plan = {0};
        json_array_append_new(cells, cell);
        for (int k = 0; k < ZERO_COUNT(first); k++) put_if_known(cell, row, first[k]);
        put(cell, run, "ours = all");
        if (json_object_get(row, "paper")) put(cell, run, "more = paper - all");
        put(cell, run, "fits? = all <= 32e9");
        json_decref(run);
        if (is_planned(row)) {
            ZERO_TRY(zero_paper_plan(row, 0, &plan));
            zero_put_whole(cell, "plan", (int64_t)plan.needed);
        }
        put(cell, row, "why");
    }
    return ZERO_OK;
}

/* ---- the runs beside a model of time ---- */

static zero_status add_speed(const json_t *data, json_t *tree)
{
    zero_machine_file machine;
    ZERO_TRY(zero_machine_file_find(ZERO_PAPER_MACHINE, &machine));
    json_object_update_new(tree, zero_paper_speed(data, &machine));
    return ZERO_OK;
}

static const struct {
    const char *kind; /* of a file of data/, and the name of its form */
    zero_status (*add)(const json_t *data, json_t *tree);
} kinds[] = {{"states", add_states},
             {"largest", add_largest},
             {"held", add_held},
             {"speed", add_speed}};

/* Also the kind, which the form is named after. */
static zero_status facts_of(const char *name, json_t **facts, const char **kind)
{
    static const char *const heads[] = {"table", "title", "unit", "devices",
                                        "device_bytes"};
    char figure[64];
    size_t n = strlen("figure");
    if (strncmp(name, "figure", n) == 0) { /* figure2 is fig2 */
        zero_print(figure, "fig%.40s", name + n);
        name = figure;
    }
    json_t *data = zero_paper_data(name);
    ZERO_INVALID_IF(!data,
                    "--paper %s: expected table1, table2, fig1, fig6 or fig7, whose "
                    "numbers follow from formulas, or fig2, fig3, fig4, fig8, "
                    "turing-nlg or trillion, which stand beside a model of time",
                    name);
    zero_status st = ZERO_OK;
    *facts = json_object();
    for (int k = 0; k < ZERO_COUNT(heads); k++) put_if_known(*facts, data, heads[k]);
    for (int k = 0; k < ZERO_COUNT(kinds); k++)
        if (zero_same_text(kinds[k].kind, zero_get_string(data, "kind"))) {
            *kind = kinds[k].kind;
            st = kinds[k].add(data, *facts);
        }
    json_decref(data);
    if (st != ZERO_OK) json_decref(*facts);
    return st;
}

zero_status zero_paper_facts(const char *name, json_t **facts)
{
    const char *kind;
    return facts_of(name, facts, &kind);
}

zero_status zero_paper_show(const char *name, bool json, FILE *out)
{
    json_t *facts;
    const char *kind = NULL;
    ZERO_TRY(facts_of(name, &facts, &kind));
    if (json) return zero_json_print(facts, JSON_INDENT(2), out);
    zero_status st = zero_form_print(zero_embedded_text(zero_paper_forms, "paper"), kind,
                                     facts, NULL, out);
    json_decref(facts);
    return st;
}
