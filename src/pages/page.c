#include "pages/page.h"

#include "base/legible.h"
#include "pages/escape.h"
#include "pages/forms.h"
#include "pages/page_parts.h"
#include "pages/page_style.h"

/* ---- shared by the pictures ---- */

zero_status zero_page_form(const char *section, json_t *tree, FILE *out)
{
    ZERO_FAIL_IF(!tree, ZERO_ERR_NOMEM, "no memory for the page");
    zero_status st = zero_print_form("page", section, tree, zero_escape, out);
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

/* A member of the page; without memory there is none. */
static bool put(json_t *tree, const char *key, json_t *part)
{
    return part && json_object_set_new(tree, key, part) == 0;
}

static json_t *page_facts(const zero_page *page)
{
    const char *name = page->trace ? page->trace->path : "";
    json_t *runs = json_array(), *studies = json_array();
    if (page->n_studies > 0)
        name = json_string_value(zero_fact_at(page->studies[0], "more/path"));
    if (page->n_runs > 0)
        name = json_string_value(zero_fact_at(page->runs[0].tree, "more/name"));
    json_t *tree =
        json_pack("{s:s, s:i, s:o, s:o}", "title", ZERO_SHOWN(name), "others",
                  page->n_runs + page->n_studies - 1, "runs", runs, "studies", studies);
    bool is_whole = tree != NULL;
    for (int k = 0; k < page->n_runs && is_whole; k++) {
        const json_t *program = zero_fact_at(page->runs[k].tree, "more/program");
        json_t *run = json_copy(page->runs[k].tree);
        if (program) is_whole = put(run, "stairs", zero_page_stairs(program));
        is_whole = json_array_append_new(runs, run) == 0 && is_whole;
    }
    if (is_whole && page->n_runs > 0)
        is_whole = put(tree, "curves", zero_page_curves(page));
    if (is_whole && page->n_runs > 1) /* in what they differ */
        is_whole = put(tree, "settings", zero_runs_settings(page->runs, page->n_runs));
    if (is_whole && page->trace)
        is_whole = put(tree, "timeline", zero_page_timeline(page->trace));
    if (is_whole && page->n_studies > 1)
        is_whole =
            put(tree, "together", zero_page_together(page->studies, page->n_studies));
    for (int k = 0; k < page->n_studies && is_whole; k++)
        is_whole = json_array_append_new(studies, zero_page_study(page->studies[k])) == 0;
    if (is_whole) return tree;
    json_decref(tree);
    return NULL;
}

zero_status zero_page_print(const zero_page *page, FILE *out)
{
    json_t *facts = page_facts(page);
    ZERO_TRY(zero_page_form("begin", json_incref(facts), out));
    for (int k = 0; zero_page_style[k]; k++) fprintf(out, "%s\n", zero_page_style[k]);
    return zero_page_form("page", facts, out);
}
