/* Several runs: the figures and the settings in which they differ. The first one is the baseline. */
#include "pages/page_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "pages/cell.h"
#include "pages/escape.h"
#include "pages/page_html.h"
#include "pages/settings.h"

/* Figures in the order of zero_six_figures. */
enum { LOSS_FIGURE, VALIDATION, SPEED, STEP, MEMORY, WAITED };

/* Beside the first run's value; shares and losses are compared by eye. */
static void cell(int i, double value, double first, FILE *out)
{
    char text[ZERO_HTML_TEXT], both[2 * ZERO_HTML_TEXT];
    if (i == SPEED)
        zero_html_number(value, text);
    else
        zero_cell_figure(i, value, text);
    bool has_change = (i == SPEED || i == STEP || i == MEMORY) && isfinite(value) &&
                      isfinite(first) && first > 0.0 && value != first;
    if (has_change)
        snprintf(both, sizeof both, "%s (%+.1f %%)", text, 100.0 * (value / first - 1.0));
    else
        snprintf(both, sizeof both, "%s", text);
    zero_html_cell(both, out);
}

static void write_figures(const zero_page *page, FILE *out)
{
    for (int i = 0; i < ZERO_SIX_FIGURES; i++) {
        double first = zero_six_figures_value(&page->figures[0], i);
        zero_html_row(zero_six_figures[i].name, out);
        for (int run = 0; run < page->n_records; run++)
            cell(i, zero_six_figures_value(&page->figures[run], i), first, out);
        zero_html_row_end(out);
    }
    for (int i = 0; i < ZERO_FOUR_NUMBERS; i++) {
        zero_html_row(zero_four_numbers[i].name, out);
        for (int run = 0; run < page->n_records; run++) {
            char text[ZERO_HTML_TEXT];
            zero_cell_share(zero_four_numbers_value(&page->figures[run], i), text);
            zero_html_cell(text, out);
        }
        zero_html_row_end(out);
    }
}

/* Equal digests are equal bits of all parameters and moments. */
static void write_digests(const zero_page *page, FILE *out)
{
    const char *first = page->records[0].digest;
    zero_html_row("digest", out);
    for (int run = 0; run < page->n_records; run++) {
        const char *digest = page->records[run].digest;
        char text[ZERO_HTML_TEXT];
        snprintf(text, sizeof text, "%.8s...", digest);
        zero_html_cell(!digest[0]                                          ? "-"
                       : run > 0 && first[0] && strcmp(digest, first) == 0 ? "equal"
                                                                           : text,
                       out);
    }
    zero_html_row_end(out);
}

static void write_settings(const zero_settings *settings, FILE *out)
{
    for (int64_t k = 0; k < settings->n; k++) {
        zero_html_row(settings->settings[k].name, out);
        for (int run = 0; run < settings->n_runs; run++)
            zero_html_cell(settings->settings[k].values[run], out);
        zero_html_row_end(out);
    }
}

/* `heads` has room for a column more than there are runs. */
static zero_status write_tables(const zero_page *page, const char **heads, FILE *out)
{
    zero_settings settings = {0};
    for (int run = 0; run < page->n_records; run++)
        heads[run + 1] = page->records[run].path;
    heads[0] = "Figure";
    zero_html_table("Figures; in brackets the change from the first run", heads,
                    page->n_records + 1, out);
    write_figures(page, out);
    write_digests(page, out);
    zero_html_table_end(out);
    ZERO_TRY(zero_settings_compare(&settings, page->records, page->n_records));
    heads[0] = "Setting";
    if (settings.n > 0) {
        fputs("<div class=\"words\">\n", out);
        zero_html_table("Settings in which they differ", heads, page->n_records + 1, out);
        write_settings(&settings, out);
        zero_html_table_end(out);
        fputs("</div>\n", out);
    } else {
        zero_html_missing("No setting differs: the runs were started alike.", out);
    }
    zero_settings_destroy(&settings);
    return ZERO_OK;
}

zero_status zero_page_compare(const zero_page *page, FILE *out)
{
    const char **heads = malloc((size_t)(page->n_records + 1) * sizeof *heads);
    if (!heads) return zero_fail(ZERO_ERR_NOMEM, "no memory to compare runs");
    zero_html_section("Side by side", NULL, out);
    zero_status st = write_tables(page, heads, out);
    zero_html_section_end(out);
    free(heads);
    return st;
}
