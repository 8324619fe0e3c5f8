#include "report/paper_fig7.h"

#include <assert.h>

#include "base/fail.h"
#include "report/json_put.h"

#define N_M    16
#define N_D    25
#define NO_BAR "no bar: more is alive than fits"
#define TITLE \
    "ZeRO paper, figure 7 and table 8: the most memory that PyTorch's allocator held"
#define SHAPE(l, h, a) \
    { \
        .layers = (l), .hidden = (h), .heads = (a), .seq = 1024, .vocab = 50257 \
    }

static const struct {
    const char *name;
    zero_gpt2_shape shape;
    int64_t batch;
} models[] = {{"40B", SHAPE(50, 8192, 32), 16}, {"100B", SHAPE(125, 8192, 64), 32}};

static const struct {
    double paper;
    const char *why;
} bars[ZERO_PAPER_CACHED] = {
    {29.7e9, "28 of 32 GB are alive: there is little room to keep more"},
    {24.1e9, "half of the device is free: freed blocks are kept"},
    {25.5e9, "23 GB are alive: less room to keep more than in C2"},
    {19.8e9, "two thirds of the device are free: freed blocks are kept"},
    {19.8e9, "C4's bar: the 0.8 GB that P_a+cpu frees are kept, too"},
    {0.0, NO_BAR},
    {0.0, NO_BAR},
    {0.0, NO_BAR},
    {29.6e9, "26 GB are alive: little room to keep more, as in C1"},
    {26.6e9, "4.2 GB less are alive than in C4, 3.0 GB less are held"},
};

zero_status zero_paper_fig7_cell(int i, zero_paper_held *cell)
{
    assert(i >= 0 && i < ZERO_PAPER_CACHED);
    int m = i / ZERO_PAPER_CONFIGS;
    const zero_paper_config *config = zero_paper_config_at(i % ZERO_PAPER_CONFIGS);
    zero_paper_setup setup =
        zero_paper_setup_of(config, &models[m].shape, N_M, N_D, models[m].batch);
    zero_paper_held c = {.config = config,
                         .model = models[m].name,
                         .paper = bars[i].paper,
                         .setup = setup,
                         .memory = zero_paper_memory_of(&setup),
                         .has_plan = zero_paper_has_plan(&setup),
                         .why = bars[i].why};
    if (c.has_plan) ZERO_TRY(zero_paper_plan_needed(&setup, &c.plan));
    *cell = c;
    return ZERO_OK;
}

/* ---- for a terminal ---- */

static void print_cell(const zero_paper_held *c, FILE *out)
{
    fprintf(out, "  %-5s %-3s", c->model, c->config->name);
    if (c->paper > 0)
        fprintf(out, " %6.1f %6.1f %+6.1f", c->paper / 1e9, c->memory.all / 1e9,
                (c->paper - c->memory.all) / 1e9);
    else
        fprintf(out, " %6s %6.1f %6s", "-", c->memory.all / 1e9, "");
    if (c->has_plan)
        fprintf(out, " %6.1f", (double)c->plan / 1e9);
    else
        fprintf(out, " %6s", "-");
    fprintf(out, "  %s\n", c->why);
}

static void print_cells(const zero_paper_held cells[ZERO_PAPER_CACHED], FILE *out)
{
    fprintf(out,
            TITLE "\n%d devices of %.0f GB, MP %d, N_d %d; 40B: 50 x 8192, batch 16; 100B: "
                  "125 x 8192, batch 32\n\n  %-5s %-3s %6s %6s %6s %6s  (GB)\n",
            N_M * N_D, ZERO_PAPER_DEVICE / 1e9, N_M, N_D, "", "", "paper", "ours", "more",
            "plan");
    for (int i = 0; i < ZERO_PAPER_CACHED; i++) print_cell(&cells[i], out);
    fputs(
        "\npaper: read off the bars, to about 0.3 GB. ours: what is alive, by formula. "
        "more: what "
        "the\n      allocator keeps above that: the paper does not say how much, the "
        "reasons are "
        "ours.\n"
        "plan: zero's own, by messages, with --tp 16 --recompute, P_a as "
        "--partition-activations; its\n"
        "      activations are fp32. None for P_a+cpu: states would go to the file, too.\n"
        "M_D: it saves what is kept in fragments. A static layout has none, so no number "
        "here has a "
        "part\n     for it.\n",
        out);
}

/* ---- as JSON ---- */

static json_t *cell_json(const zero_paper_held *c)
{
    json_t *object = json_object();
    put_text(object, "model", c->model);
    put_text(object, "configuration", c->config->name);
    put_text(object, "parts", c->config->parts);
    put_whole(object, "stage", c->config->stage);
    put_whole(object, "batch", c->setup.batch);
    if (c->paper > 0) put_real(object, "paper", c->paper);
    put_real(object, "ours", c->memory.all);
    if (c->paper > 0) put_real(object, "more", c->paper - c->memory.all);
    json_object_set_new(object, "fits", json_boolean(c->memory.all <= ZERO_PAPER_DEVICE));
    if (c->has_plan) put_whole(object, "plan", (int64_t)c->plan);
    put_text(object, "why", c->why);
    return object;
}

static zero_status print_json(const zero_paper_held cells[ZERO_PAPER_CACHED], FILE *out)
{
    json_t *object = json_object(), *array = json_array();
    put_text(object, "table", "fig7");
    put_text(object, "title", TITLE);
    put_text(object, "unit", "bytes");
    put_whole(object, "devices", N_M * N_D);
    put_real(object, "device_bytes", ZERO_PAPER_DEVICE);
    for (int i = 0; i < ZERO_PAPER_CACHED; i++)
        json_array_append_new(array, cell_json(&cells[i]));
    json_object_set_new(object, "cells", array);
    return zero_json_print(object, JSON_INDENT(2), out);
}

zero_status zero_paper_show_fig7(bool json, FILE *out)
{
    zero_paper_held cells[ZERO_PAPER_CACHED];
    for (int i = 0; i < ZERO_PAPER_CACHED; i++)
        ZERO_TRY(zero_paper_fig7_cell(i, &cells[i]));
    if (json) return print_json(cells, out);
    print_cells(cells, out);
    return ZERO_OK;
}
