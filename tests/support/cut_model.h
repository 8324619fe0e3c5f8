/* cut_model.h - a model whose tensors are cut in all ways, and the part of it that a rank has.
 * Its units compute nothing. */
#pragma once

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "nn/share.h"

enum { CUT_TENSORS = 11, CUT_GROUPS = 3 };

/* Names are not in the order of memory. Lengths are around those of digest blocks; the rows of "z"
 * are dealt unevenly. */
static const struct {
    const char *name;
    int group;
    int64_t rows, cols;
    zero_cut cut;
    int parts;
} cut_tensors[CUT_TENSORS] = {
    {"z", 0, 1003, 96, ZERO_CUT_ROWS, 0},     {"k", 0, 33, 96, ZERO_CUT_NONE, 0},
    {"h.gain", 1, 1, 96, ZERO_CUT_NONE, 0},   {"h.qkv", 1, 300, 288, ZERO_CUT_COLS, 3},
    {"h.qkv.b", 1, 1, 288, ZERO_CUT_COLS, 3}, {"h.proj", 1, 96, 733, ZERO_CUT_ROWS, 0},
    {"h.bias", 1, 1, 733, ZERO_CUT_NONE, 0},  {"a.fc", 1, 689, 384, ZERO_CUT_COLS, 1},
    {"a.fc.b", 1, 1, 384, ZERO_CUT_COLS, 1},  {"b.table", 2, 3, 65537, ZERO_CUT_NONE, 0},
    {"b.col", 2, 96, 1, ZERO_CUT_ROWS, 0},
};

static inline zero_unit_sizes cut_model_sizes(const zero_unit *unit, int64_t B, int64_t T)
{
    (void)unit;
    return (zero_unit_sizes){.out = B * T, .row_loss = B * T};
}

static inline void cut_model_compute(const zero_unit *unit, const zero_call *call)
{
    (void)unit;
    (void)call;
}

static inline zero_unit_part cut_model_part(const zero_unit *unit, zero_pass pass,
                                            int64_t B, int64_t T, int64_t index)
{
    (void)unit;
    (void)pass;
    (void)B;
    (void)T;
    (void)index;
    return (zero_unit_part){.is_last = true};
}

/* `times`: as many rows of "a.fc". */
static inline zero_status cut_model_describe_long(int64_t times, zero_model *whole)
{
    static const char *const groups[CUT_GROUPS] = {"first", "second", "third"};
    zero_tensor tensors[CUT_TENSORS] = {0};
    zero_unit unit = {.name = "unit",
                      .part = cut_model_part,
                      .sizes = cut_model_sizes,
                      .forward = cut_model_compute,
                      .backward = cut_model_compute};
    zero_unit units[2] = {unit, unit};
    for (int i = 0; i < CUT_TENSORS; i++) {
        zero_tensor *t = &tensors[i];
        snprintf(t->name, sizeof t->name, "%s", cut_tensors[i].name);
        t->rows = cut_tensors[i].rows * (strcmp(t->name, "a.fc") == 0 ? times : 1);
        t->cols = cut_tensors[i].cols;
        t->group = cut_tensors[i].group;
        t->cut = cut_tensors[i].cut;
        t->cut_parts = cut_tensors[i].parts;
    }
    snprintf(units[1].name, sizeof units[1].name, "last");
    units[0].n_groups = 2;
    units[0].groups[1] = 1;
    units[1].n_groups = 1;
    units[1].groups[0] = 2;
    return zero_model_describe(&(zero_model_tables){.n_tensors = CUT_TENSORS,
                                                    .n_groups = CUT_GROUPS,
                                                    .n_units = 2,
                                                    .tensors = tensors,
                                                    .groups = groups,
                                                    .units = units,
                                                    .seq = 8,
                                                    .input_bytes = 4},
                               whole);
}

static inline zero_status cut_model_describe(zero_model *whole)
{
    return cut_model_describe_long(1, whole);
}
