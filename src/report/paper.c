#include "report/paper.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "report/json_put.h"
#include "report/paper_fig6.h"
#include "report/paper_fig7.h"
#include "report/paper_speed.h"
#include "report/paper_table.h"
#include "sharding/stages.h"

/* Totals over a table, by kind of agreement. */
typedef struct {
    int cells;
    int count[ZERO_PAPER_AGREEMENTS];
    double worst[ZERO_PAPER_AGREEMENTS]; /* the largest |off| */
} zero_paper_summary;

/* One cell of a row, counted; false if the paper has none there. */
static bool look_at(const zero_paper_row *row, int stage, zero_paper_summary *sum,
                    zero_paper_cell *cell)
{
    if (!row->printed[stage]) return false;
    *cell = zero_paper_compare(row->printed[stage], zero_paper_exact(row, stage),
                               row->model_parallel);
    sum->cells++;
    sum->count[cell->agreement]++;
    sum->worst[cell->agreement] = fmax(sum->worst[cell->agreement], fabs(cell->off));
    return true;
}

static const char *unit_name(const zero_paper_table *table, const zero_paper_cell *cell)
{
    if (table->unit[0]) return table->unit;
    return cell->unit == 1e12 ? "T" : "B";
}

/* ---- for a terminal ---- */

static void print_cell(const zero_paper_table *table, const zero_paper_row *row, int stage,
                       const zero_paper_cell *cell, FILE *out)
{
    fprintf(out, "  %-8s %5d %4d   %d %-9s %16.12g %-2s %9s   %+6.2f %%   %s\n",
            row->model ? row->model : "largest", row->n_ranks, row->model_parallel, stage,
            zero_stage_at(stage)->name, cell->exact / cell->unit, unit_name(table, cell),
            row->printed[stage], 100.0 * cell->off,
            zero_paper_agreement_name(cell->agreement));
}

static bool model_changes(const zero_paper_table *table, int row)
{
    return row > 0 && table->rows[row].psi != table->rows[row - 1].psi;
}

static void print_cells(const zero_paper_table *table, zero_paper_summary *sum, FILE *out)
{
    fprintf(out, "%s\n\n  %-8s %5s %4s   %-11s %16s    %9s   %8s   %s\n", table->title,
            "Psi", "N_d", "MP", "stage", "ours", "paper", "off", "agreement");
    for (int i = 0; i < table->n_rows; i++) {
        const zero_paper_row *row = &table->rows[i];
        if (model_changes(table, i)) fputc('\n', out);
        for (int stage = 0; stage < ZERO_PAPER_STAGES; stage++) {
            zero_paper_cell cell;
            if (!look_at(row, stage, sum, &cell)) continue;
            print_cell(table, row, stage, &cell, out);
        }
    }
}

/* Explains only the kinds of agreement that occur. */
static void print_meaning(const zero_paper_summary *sum, FILE *out)
{
    static const char *const meaning[] = {
        "equal in the digits that the paper prints, halves upwards",
        "the paper rounds its value for MP = 1, then multiplies by MP, and\n"
        "             the rounding error with it",
        "the paper cuts digits off; rounding would give one more in the\n"
        "             last place",
        "none of these: the formula or the printed number is wrong",
    };
    fputc('\n', out);
    for (int a = 0; a < ZERO_PAPER_AGREEMENTS; a++) {
        if (sum->count[a] == 0) continue;
        fprintf(out, "  %-10s %s; off by at most %.2f %%\n",
                zero_paper_agreement_name((zero_paper_agreement)a), meaning[a],
                100.0 * sum->worst[a]);
    }
    fputs("\nN_d: ranks among which states are shared; MP: ranks that share each replica; "
          "GB: 1e9 bytes.\n",
          out);
}

static void print_counts(const zero_paper_summary *sum, FILE *out)
{
    fprintf(out, "%d cells:", sum->cells);
    for (int a = 0; a < ZERO_PAPER_DIFFERS; a++)
        if (sum->count[a] > 0)
            fprintf(out, " %d %s,", sum->count[a],
                    zero_paper_agreement_name((zero_paper_agreement)a));
    fprintf(out, " %d differ\n", sum->count[ZERO_PAPER_DIFFERS]);
}

static void print_table(const zero_paper_table *table, FILE *out)
{
    zero_paper_summary sum = {0};
    print_cells(table, &sum, out);
    print_meaning(&sum, out);
    print_counts(&sum, out);
}

/* ---- as JSON ---- */

static json_t *cell_json(const zero_paper_row *row, int stage, const zero_paper_cell *cell)
{
    json_t *object = json_object();
    if (row->psi > 0) json_object_set_new(object, "psi", json_integer(row->psi));
    json_object_set_new(object, "ranks", json_integer(row->n_ranks));
    json_object_set_new(object, "model_parallel", json_integer(row->model_parallel));
    json_object_set_new(object, "stage", json_integer(stage));
    json_object_set_new(object, "ours", json_real(cell->exact));
    json_object_set_new(object, "paper", json_real(cell->printed));
    json_object_set_new(object, "printed", json_string(row->printed[stage]));
    json_object_set_new(object, "off", json_real(cell->off));
    json_object_set_new(object, "agreement",
                        json_string(zero_paper_agreement_name(cell->agreement)));
    return object;
}

static json_t *cells_json(const zero_paper_table *table, zero_paper_summary *sum)
{
    json_t *cells = json_array();
    for (int i = 0; i < table->n_rows; i++) {
        const zero_paper_row *row = &table->rows[i];
        for (int stage = 0; stage < ZERO_PAPER_STAGES; stage++) {
            zero_paper_cell cell;
            if (!look_at(row, stage, sum, &cell)) continue;
            json_array_append_new(cells, cell_json(row, stage, &cell));
        }
    }
    return cells;
}

static zero_status print_json(const zero_paper_table *table, FILE *out)
{
    zero_paper_summary sum = {0};
    json_t *object = json_object(), *counts = json_object();
    json_object_set_new(object, "table", json_string(table->name));
    json_object_set_new(object, "title", json_string(table->title));
    json_object_set_new(object, "unit",
                        json_string(table->unit[0] ? "bytes" : "parameters"));
    json_object_set_new(object, "cells", cells_json(table, &sum));
    for (int a = 0; a < ZERO_PAPER_AGREEMENTS; a++)
        json_object_set_new(counts, zero_paper_agreement_name((zero_paper_agreement)a),
                            json_integer(sum.count[a]));
    json_object_set_new(object, "counts", counts);
    return zero_json_print(object, JSON_INDENT(2), out);
}

/* Figures that are not a table of stages. */
static const struct {
    const char *name;
    zero_status (*show)(bool json, FILE *out);
} figures[] = {{"fig6", zero_paper_show_fig6}, {"fig7", zero_paper_show_fig7}};

zero_status zero_paper_show(const char *name, bool json, FILE *out)
{
    const zero_paper_table *table;
    char figure[64];
    size_t whole = strlen("figure");
    if (strncmp(name, "figure", whole) == 0) { /* figure2 is fig2 */
        snprintf(figure, sizeof figure, "fig%.40s", name + whole);
        name = figure;
    }
    const zero_paper_figure *speeds = zero_paper_figure_find(name);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        if (strcmp(figures[i].name, name) == 0) return figures[i].show(json, out);
    if (speeds) return zero_paper_show_speed(speeds, json, out);
    ZERO_TRY(zero_paper_find(name, &table));
    if (json) return print_json(table, out);
    print_table(table, out);
    return ZERO_OK;
}
