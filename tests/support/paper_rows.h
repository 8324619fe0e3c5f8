/* paper_rows.h - the runs of the paper's throughput figures, typed a second time. CMocka's header comes
 * before this one. */
#pragma once

#include <string.h>

#include "report/paper_speed.h"

#define TERA         1e12
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Tables 5, 6, 9, 10 and figures 2, 3, 4, 8; Turing-NLG and a trillion parameters, of the text. */
typedef struct {
    const char *figure, *size, *system;
    int devices, parts, layers, hidden, heads, batch, total;
    double paper; /* Tflop/s; 0: out of memory; -1: none */
} row;

/* clang-format off */
static const row rows[] = {
    {"fig2", "1.5B", "ZeRO", 400, 1, 48, 1600, 16, 24, 9600, 30.3},
    {"fig2", "1.5B", "Megatron", 400, 2, 48, 1600, 16, 16, 3200, 26.4},
    {"fig2", "8B", "ZeRO", 400, 4, 72, 3072, 24, 64, 6400, 36.9},
    {"fig2", "8B", "Megatron", 400, 8, 72, 3072, 24, 8, 400, 23.2},
    {"fig2", "40B", "ZeRO", 400, 4, 88, 6144, 32, 12, 1200, 35.9},
    {"fig2", "40B", "Megatron", 384, 32, 88, 6144, 64, 4, 48, 5.0},
    {"fig2", "60B", "ZeRO", 400, 16, 132, 6144, 32, 64, 1600, 36.5},
    {"fig2", "60B", "Megatron", 384, 64, 132, 6144, 64, 4, 24, 6.4},
    {"fig2", "80B", "ZeRO", 400, 16, 100, 8192, 64, 32, 800, 37.6},
    {"fig2", "80B", "Megatron", 384, 128, 100, 8192, 128, 4, 12, 5.2},
    {"fig2", "100B", "ZeRO", 400, 16, 125, 8192, 64, 32, 800, 38.7},
    {"fig2", "100B", "Megatron", 384, 128, 125, 8192, 128, 2, 6, 3.8},
    {"fig2", "120B", "ZeRO", 400, 16, 150, 8192, 64, 24, 600, 28.1},
    {"fig2", "120B", "Megatron", 384, 128, 150, 8192, 128, 2, 6, 3.8},
    {"fig2", "140B", "ZeRO", 400, 16, 175, 8192, 64, 16, 400, 26.9},
    {"fig2", "140B", "Megatron", 384, 128, 175, 8192, 128, 2, 6, 3.9},
    {"fig2", "170B", "ZeRO", 400, 16, 212, 8192, 64, 12, 300, 20.9},
    {"fig2", "170B", "Megatron", 256, 256, 212, 8192, 256, 2, 2, 2.2},
    {"fig3", "60B", "ZeRO", 64, 16, 75, 8192, 32, 16, 64, 25.7},
    {"fig3", "60B", "ZeRO", 128, 16, 75, 8192, 32, 48, 384, 37.5},
    {"fig3", "60B", "ZeRO", 256, 16, 75, 8192, 32, 48, 768, 39.0},
    {"fig3", "60B", "ZeRO", 400, 16, 75, 8192, 32, 64, 1600, 36.6},
    {"fig4", "1.16B", "DDP", 128, 1, 24, 1920, 16, 8, 1024, 39.3},
    {"fig4", "1.38B", "DDP", 128, 1, 40, 1536, 16, 1, 128, 18.1},
    {"fig4", "1.5B", "ZeRO", 128, 1, 34, 1920, 16, 24, 3072, 40.3},
    {"fig4", "2.5B", "ZeRO", 128, 1, 54, 1920, 16, 24, 3072, 41.9},
    {"fig4", "4B", "ZeRO", 128, 1, 64, 2304, 24, 16, 2048, 43.5},
    {"fig4", "6B", "ZeRO", 128, 1, 52, 3072, 24, 12, 1536, 47.0},
    {"fig4", "8B", "ZeRO", 128, 1, 72, 3072, 24, 8, 1024, 47.0},
    {"fig4", "10B", "ZeRO", 128, 1, 50, 4096, 32, 6, 768, 41.1},
    {"fig4", "11B", "ZeRO", 128, 1, 54, 4096, 32, 4, 512, 35.7},
    {"fig4", "12B", "ZeRO", 128, 1, 58, 4096, 32, 4, 512, 32.9},
    {"fig4", "13B", "ZeRO", 128, 1, 62, 4096, 32, 2, 256, 21.2},
    {"fig8", "60B", "C1", 128, 16, 75, 8192, 64, 2, 16, 11.8},
    {"fig8", "60B", "C2", 128, 16, 75, 8192, 64, 4, 32, 12.2},
    {"fig8", "60B", "C3", 128, 16, 75, 8192, 64, 8, 64, 16.9},
    {"fig8", "60B", "C4", 128, 16, 75, 8192, 64, 32, 256, 35.1},
    {"fig8", "60B", "C5", 128, 16, 75, 8192, 64, 32, 256, 31.9},
    {"fig8", "170B", "C1", 400, 16, 212, 8192, 64, 12, 300, 0},
    {"fig8", "170B", "C2", 400, 16, 212, 8192, 64, 12, 300, 0},
    {"fig8", "170B", "C3", 400, 16, 212, 8192, 64, 12, 300, 0},
    {"fig8", "170B", "C4", 400, 16, 212, 8192, 64, 12, 300, 0},
    {"fig8", "170B", "C5", 400, 16, 212, 8192, 64, 12, 300, 20.9},
    {"turing-nlg", "17B", "ZeRO", 256, 4, 78, 4256, 28, 8, 512, 41.4},
    {"trillion", "1T", "ZeRO", 1024, 16, 128, 25600, 256, 16, 1024, -1},
};
/* clang-format on */

static const char *const names[] = {"fig2", "fig3",       "fig4",
                                    "fig8", "turing-nlg", "trillion"};

static inline zero_machine_file dgx2(void)
{
    zero_machine_file m;
    assert_int_equal(zero_machine_file_find(ZERO_PAPER_MACHINE, &m), ZERO_OK);
    return m;
}

static inline const zero_paper_figure *figure_of(const char *name)
{
    const zero_paper_figure *figure = zero_paper_figure_find(name);
    assert_non_null(figure);
    return figure;
}

/* Run k of a figure is the k-th of its rows. */
static inline const zero_paper_run *run_of(int i)
{
    const zero_paper_figure *figure = figure_of(rows[i].figure);
    int k = 0;
    while (i - k > 0 && strcmp(rows[i - k - 1].figure, rows[i].figure) == 0) k++;
    assert_true(k < figure->n);
    return &figure->runs[k];
}
