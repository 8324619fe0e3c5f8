#include "report/paper_fig6.h"

#include <inttypes.h>

#include "base/fail.h"
#include "report/json_put.h"

#define N_M   16
#define N_D   25
#define BATCH 16
#define TITLE "ZeRO paper, figure 6 and table 7: the largest model of C1 to C5"
#define SHAPE(l, h, a) \
    { \
        .layers = (l), .hidden = (h), .heads = (a), .seq = 1024, .vocab = 50257 \
    }

static const struct {
    const char *printed;
    double paper;
    zero_gpt2_shape shape;
    const char *why;
} cells[ZERO_PAPER_CONFIGS] = {
    {"40B", 40e9, SHAPE(50, 8192, 32),
     "what the framework keeps; the fit takes this number"},
    {"60B", 60e9, SHAPE(132, 6144, 64),
     "132 x 6144 was not the limit by the paper's own formulas"},
    {"50B", 50e9, SHAPE(62, 8192, 32), "what the framework keeps, as much as in C1"},
    {"140B", 140e9, SHAPE(175, 8192, 64),
     "what the framework keeps, a little less than in C1"},
    {"150B", 150e9, SHAPE(187, 8192, 64),
     "what the framework keeps, a little more than in C1"},
};

/* ---- the numbers ---- */

static int64_t count_with(zero_gpt2_shape shape, int64_t layers)
{
    shape.layers = layers;
    return zero_gpt2_count(&shape);
}

static zero_paper_setup setup_of(int i)
{
    return zero_paper_setup_of(zero_paper_config_at(i), &cells[i].shape, N_M, N_D, BATCH);
}

/* The part of the device that the paper's size leaves. */
static double spare_of(int i)
{
    zero_paper_setup setup = setup_of(i);
    return ZERO_PAPER_DEVICE - zero_paper_memory_of(&setup).all;
}

zero_status zero_paper_fig6_row(int i, zero_paper_largest *row)
{
    zero_paper_setup setup = setup_of(i);
    zero_paper_largest r = {.config = zero_paper_config_at(i),
                            .printed = cells[i].printed,
                            .paper = cells[i].paper,
                            .setup = setup,
                            .memory = zero_paper_memory_of(&setup),
                            .spare = spare_of(i),
                            .has_plan = zero_paper_has_plan(&setup),
                            .why = cells[i].why};
    r.layers = zero_paper_most_layers(&setup, ZERO_PAPER_DEVICE);
    r.psi = count_with(setup.shape, r.layers);
    r.fitted_psi = count_with(
        setup.shape, zero_paper_most_layers(&setup, ZERO_PAPER_DEVICE - spare_of(0)));
    if (r.has_plan)
        ZERO_TRY(zero_paper_plan_fit(&setup, (size_t)ZERO_PAPER_DEVICE, &r.plan));
    *row = r;
    return ZERO_OK;
}

/* ---- for a terminal ---- */

static void print_largest(const zero_paper_largest *row, FILE *out)
{
    const zero_gpt2_shape *s = &row->setup.shape;
    fprintf(
        out, "  %-3s %-28s %4" PRId64 " x %4" PRId64 " %6s %7.1fB %6" PRId64 " %+6.0f %%",
        row->config->name, row->config->parts, s->layers, s->hidden, row->printed,
        (double)row->psi / 1e9, row->layers, 100.0 * ((double)row->psi / row->paper - 1.0));
    fprintf(out, " %7.1fB", (double)row->fitted_psi / 1e9);
    if (row->has_plan)
        fprintf(out, " %7.1fB\n", (double)row->plan.n_params / 1e9);
    else
        fprintf(out, " %8s\n", "-");
}

static void print_memory(const zero_paper_largest *row, FILE *out)
{
    const zero_paper_memory *m = &row->memory;
    fprintf(out, "  %-3s %8.2f %12.2f %12.2f %8.2f %8.2f %8.2f %8.2f\n", row->config->name,
            m->states / 1e9, m->checkpoints / 1e9, m->activations / 1e9, m->logits / 1e9,
            m->buffers / 1e9, m->all / 1e9, row->spare / 1e9);
}

static void print_bytes(const zero_paper_largest rows[ZERO_PAPER_CONFIGS], FILE *out)
{
    fprintf(out, "\n  %-3s %8s %12s %12s %8s %8s %8s %8s  (GB, paper's size)\n", "",
            "states", "checkpoints", "activations", "logits", "buffers", "all", "left");
    for (int i = 0; i < ZERO_PAPER_CONFIGS; i++) print_memory(&rows[i], out);
    fputc('\n', out);
    for (int i = 0; i < ZERO_PAPER_CONFIGS; i++)
        fprintf(out, "  %-3s %5.2f GB left: %s\n", rows[i].config->name,
                rows[i].spare / 1e9, rows[i].why);
}

static void print_meaning(double kept_back, FILE *out)
{
    fprintf(
        out,
        "\nours: states and activations by formula, without what a framework keeps. They "
        "rank as in the paper.\n"
        "fit: the same with %.2f GB kept back, which C1 leaves; one number, a fit of "
        "ours.\n"
        "plan: zero's own, by messages, with --tp 16 --recompute, P_a as "
        "--partition-activations; its\n"
        "      activations are fp32. None for P_a+cpu: states would go to the file, too.\n"
        "M_D: a static layout has no fragments, so no number here has a part for it.\n",
        kept_back / 1e9);
}

static void print_rows(const zero_paper_largest rows[ZERO_PAPER_CONFIGS], FILE *out)
{
    fprintf(out,
            TITLE "\n%d devices of %.0f GB, MP %d, N_d %d, batch %d per replica\n\n"
                  "  %-32s %11s %6s %8s %6s %8s %8s %8s\n",
            N_M * N_D, ZERO_PAPER_DEVICE / 1e9, N_M, N_D, BATCH, "", "L x h", "paper",
            "ours", "layers", "off", "fit", "plan");
    for (int i = 0; i < ZERO_PAPER_CONFIGS; i++) print_largest(&rows[i], out);
    print_bytes(rows, out);
    print_meaning(rows[0].spare, out);
}

/* ---- as JSON ---- */

static json_t *memory_json(const zero_paper_memory *m)
{
    json_t *object = json_object();
    put_real(object, "states", m->states);
    put_real(object, "checkpoints", m->checkpoints);
    put_real(object, "activations", m->activations);
    put_real(object, "logits", m->logits);
    put_real(object, "buffers", m->buffers);
    put_real(object, "all", m->all);
    return object;
}

static json_t *row_json(const zero_paper_largest *row)
{
    json_t *object = json_object();
    put_text(object, "configuration", row->config->name);
    put_text(object, "parts", row->config->parts);
    put_whole(object, "stage", row->config->stage);
    put_whole(object, "paper_layers", row->setup.shape.layers);
    put_whole(object, "hidden", row->setup.shape.hidden);
    put_whole(object, "heads", row->setup.shape.heads);
    put_real(object, "paper", row->paper);
    put_text(object, "printed", row->printed);
    put_whole(object, "ours", row->psi);
    put_whole(object, "layers", row->layers);
    put_real(object, "off", (double)row->psi / row->paper - 1.0);
    put_whole(object, "fit", row->fitted_psi);
    json_object_set_new(object, "bytes_at_paper_size", memory_json(&row->memory));
    put_real(object, "left", row->spare);
    if (row->has_plan) {
        put_whole(object, "plan", row->plan.n_params);
        put_whole(object, "plan_layers", row->plan.layers);
    }
    put_text(object, "why", row->why);
    return object;
}

static zero_status print_json(const zero_paper_largest rows[ZERO_PAPER_CONFIGS], FILE *out)
{
    json_t *object = json_object(), *cells_of = json_array();
    put_text(object, "table", "fig6");
    put_text(object, "title", TITLE);
    put_text(object, "unit", "parameters");
    put_whole(object, "devices", N_M * N_D);
    put_real(object, "device_bytes", ZERO_PAPER_DEVICE);
    put_real(object, "fit_keeps_back", rows[0].spare);
    for (int i = 0; i < ZERO_PAPER_CONFIGS; i++)
        json_array_append_new(cells_of, row_json(&rows[i]));
    json_object_set_new(object, "cells", cells_of);
    return zero_json_print(object, JSON_INDENT(2), out);
}

zero_status zero_paper_show_fig6(bool json, FILE *out)
{
    zero_paper_largest rows[ZERO_PAPER_CONFIGS];
    for (int i = 0; i < ZERO_PAPER_CONFIGS; i++) ZERO_TRY(zero_paper_fig6_row(i, &rows[i]));
    if (json) return print_json(rows, out);
    print_rows(rows, out);
    return ZERO_OK;
}
