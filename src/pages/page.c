#include "pages/page.h"

#include <string.h>

#include "base/fail.h"
#include "base/legible.h"
#include "pages/escape.h"
#include "pages/forms.h"
#include "pages/page_parts.h"
#include "pages/page_style.h"

/* ---- shared by the pictures ---- */

zero_status zero_page_form(const char *file, const char *section, json_t *tree, FILE *out)
{
    if (!tree) return zero_fail(ZERO_ERR_NOMEM, "no memory for the page");
    zero_status st = zero_print_form(file, section, tree, zero_escape, out);
    json_decref(tree);
    return st;
}

const char *zero_page_unit(double bytes, double *unit)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int k = 0;
    for (*unit = 1.0; k < 6 && bytes >= 1024.0 * *unit; k++) *unit *= 1024.0;
    return names[k];
}

/* ---- the page ---- */

/* What a run has by itself, after its curves. */
static zero_status write_details(const zero_page *page, int run, FILE *out)
{
    json_t *tree = page->runs[run].tree;
    const json_t *program = zero_fact_at(tree, "more/program"),
                 *peers = zero_fact_at(tree, "final/peers");
    ZERO_TRY(zero_page_form("run", "page_numbers", json_incref(tree), out));
    if (run == 0 && page->trace)
        ZERO_TRY(zero_page_timeline(page->trace, out));
    else if (run == 0)
        ZERO_TRY(zero_page_form("page", "no_trace", json_incref(tree), out));
    ZERO_TRY(zero_page_form("page", "memory", json_incref(tree), out));
    if (program) ZERO_TRY(zero_page_stairs(program, out));
    ZERO_TRY(zero_page_form("run", "page_memory", json_incref(tree), out));
    ZERO_TRY(zero_page_form("page", "peers", json_incref(tree), out));
    if (peers)
        ZERO_TRY(zero_page_form("picture", "matrix", json_incref((json_t *)peers), out));
    fputs("</section>\n", out);
    return zero_page_form("run", "page_collectives", json_incref(tree), out);
}

zero_status zero_page_print(const zero_page *page, FILE *out)
{
    const char *name = page->trace ? page->trace->path : "";
    if (page->n_studies > 0)
        name = json_string_value(zero_fact_at(page->studies[0], "more/path"));
    if (page->n_runs > 0)
        name = json_string_value(zero_fact_at(page->runs[0].tree, "more/name"));
    json_t *title = json_pack("{s:s, s:i}", "name", ZERO_SHOWN(name), "more",
                              page->n_runs + page->n_studies - 1);
    ZERO_TRY(zero_page_form("page", "begin", json_incref(title), out));
    for (int k = 0; zero_page_style[k]; k++) fprintf(out, "%s\n", zero_page_style[k]);
    ZERO_TRY(zero_page_form("page", "title", title, out));
    if (page->n_runs == 1)
        ZERO_TRY(zero_page_form("run", "page_head", json_incref(page->runs[0].tree), out));
    if (page->n_runs > 0) ZERO_TRY(zero_page_curves(page, out));
    if (page->n_runs == 1) ZERO_TRY(write_details(page, 0, out));
    if (page->n_runs > 1) {
        /* Several runs: first in what they differ, then each by itself. */
        json_t *compared = zero_runs_compare(page->runs, 1, page->n_runs);
        json_object_set_new(compared, "settings",
                            zero_runs_settings(page->runs, page->n_runs));
        ZERO_TRY(zero_page_form("run", "page_compare", compared, out));
        for (int run = 0; run < page->n_runs; run++) {
            fputs("<div class=\"run\"><h1>", out);
            zero_escape(zero_run_path(&page->runs[run]), out);
            fputs("</h1>\n", out);
            ZERO_TRY(
                zero_page_form("run", "page_head", json_incref(page->runs[run].tree), out));
            ZERO_TRY(write_details(page, run, out));
            fputs("</div>\n", out);
        }
    }
    if (page->n_runs == 0 && page->trace) ZERO_TRY(zero_page_timeline(page->trace, out));
    for (int k = 0; k < page->n_studies; k++)
        ZERO_TRY(zero_page_study(page->studies[k], out));
    return zero_page_form("page", "end", json_object(), out);
}
