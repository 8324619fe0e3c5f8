/* Runs as text: one in full, several side by side. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/legible.h"
#include "pages/cell.h"
#include "pages/runs.h"

#define BESIDE 2 /* runs beside the first one that 80 columns hold */

/* "A" to "Z", then "AA", "AB"... */
static const char *letter(int i, char text[4])
{
    if (i < 26)
        snprintf(text, 4, "%c", 'A' + i);
    else
        snprintf(text, 4, "%c%c", 'A' + i / 26 - 1, 'A' + i % 26);
    return text;
}

/* ---- figures ---- */

typedef double value_of(const zero_figures *f, int i);

static void print_ratio(double value, double base, FILE *out)
{
    double ratio = base != 0.0 ? value / base : NAN;
    if (isfinite(ratio))
        fprintf(out, "%8.3f", ratio);
    else
        fprintf(out, "%8s", "-");
}

typedef struct {
    const zero_figure_words *words;
    int n;
    value_of *value;
    bool are_shares; /* all of them */
} group;

static void print_row(const zero_runs *runs, const group *g, int i, int first, int end,
                      FILE *out)
{
    char text[ZERO_CELL];
    double base = g->value(&runs->figures[0], i);
    fprintf(out, "  %-18s", g->words[i].name);
    for (int r = 0; r < end; r = r == 0 ? first : r + 1) {
        double value = g->value(&runs->figures[r], i);
        if (g->are_shares)
            zero_cell_share(value, text);
        else
            zero_cell_figure(i, value, text);
        fprintf(out, "%14s", text);
        if (r > 0) print_ratio(value, base, out);
    }
    fputc('\n', out);
}

static void print_names(int first, int end, FILE *out)
{
    char name[4], ratio[16];
    fprintf(out, "\n  %-18s", "");
    for (int r = 0; r < end; r = r == 0 ? first : r + 1) {
        letter(r, name);
        snprintf(ratio, sizeof ratio, "%s/A", name);
        fprintf(out, "%14s", name);
        if (r > 0) fprintf(out, "%8s", ratio);
    }
    fputc('\n', out);
}

static void print_figures(const zero_runs *runs, FILE *out)
{
    const group six = {zero_six_figures, ZERO_SIX_FIGURES, zero_six_figures_value, false};
    const group four = {zero_four_numbers, ZERO_FOUR_NUMBERS, zero_four_numbers_value,
                        true};
    for (int first = 1; first < runs->n; first += BESIDE) {
        int end = first + BESIDE < runs->n ? first + BESIDE : runs->n;
        print_names(first, end, out);
        for (int i = 0; i < six.n; i++) print_row(runs, &six, i, first, end, out);
        for (int i = 0; i < four.n; i++) print_row(runs, &four, i, first, end, out);
    }
}

/* ---- settings ---- */

/* Runs that have what the first one has are left out. */
static void print_setting(const zero_setting *s, int n, FILE *out)
{
    char name[4];
    fprintf(out, "  %s: A %s", ZERO_SHOWN(s->name), ZERO_SHOWN(s->values[0]));
    for (int r = 1; r < n; r++)
        if (strcmp(s->values[r], s->values[0]) != 0)
            fprintf(out, " | %s %s", letter(r, name), ZERO_SHOWN(s->values[r]));
    fputc('\n', out);
}

static zero_status print_settings(const zero_runs *runs, FILE *out)
{
    zero_settings settings;
    ZERO_TRY(zero_settings_compare(&settings, runs->records, runs->n));
    fprintf(out, "\n%s\n",
            settings.n > 0 ? "settings that differ" : "the settings are equal");
    for (int64_t i = 0; i < settings.n; i++)
        print_setting(&settings.settings[i], runs->n, out);
    zero_settings_destroy(&settings);
    return ZERO_OK;
}

/* ---- results ---- */

/* Two runs that have ended with one digest have the same model. */
static void print_digests(const zero_runs *runs, FILE *out)
{
    char name[4];
    const zero_record *base = &runs->records[0];
    if (!base->ended) return;
    for (int r = 1; r < runs->n; r++)
        if (runs->records[r].ended)
            fprintf(
                out, "%s digests of %s and A: %s\n", r == 1 ? "\n " : " ", letter(r, name),
                strcmp(base->digest, runs->records[r].digest) == 0 ? "equal" : "DIFFERS");
}

zero_status zero_runs_print(const zero_runs *runs, FILE *out)
{
    char name[4];
    if (runs->n == 1) {
        zero_run_print(&runs->records[0], &runs->figures[0], out);
        return ZERO_OK;
    }
    for (int r = 0; r < runs->n; r++) {
        fprintf(out, "%s  ", letter(r, name));
        zero_run_print_head(&runs->records[r], out);
        zero_run_print_equality(&runs->records[r], out);
    }
    print_figures(runs, out);
    print_digests(runs, out);
    return print_settings(runs, out);
}
