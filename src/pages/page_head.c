/* The head of a run: what it is, what to beware of, and its figures. */
#include "pages/page_parts.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "pages/cell.h"
#include "pages/escape.h"
#include "pages/notes.h"
#include "pages/page_html.h"
#include "report/text.h"

const char *zero_page_name(const zero_record *record)
{
    const char *slash = strrchr(record->path, '/');
    return slash && slash[1] ? slash + 1 : record->path;
}

/* ---- facts ---- */

static void fact(const char *name, const char *value, FILE *out)
{
    if (!value || !value[0]) return;
    fprintf(out, "<dt>%s</dt><dd>", name);
    zero_escape(value, out);
    fputs("</dd>\n", out);
}

static const char *text_of(const zero_record *r, const char *key)
{
    return json_string_value(json_object_get(r->file.run, key));
}

static void write_hosts(const zero_record *r, FILE *out)
{
    const json_t *hosts = json_object_get(r->file.run, "hosts");
    size_t n = json_array_size(hosts);
    if (n == 0) return;
    fputs("<dt>machine</dt><dd>", out);
    for (size_t i = 0; i < n && i < 8; i++) {
        const char *name = json_string_value(json_array_get(hosts, i));
        if (i > 0) fputs(", ", out);
        zero_escape(name ? name : "?", out);
    }
    if (n > 8) fprintf(out, " and %zu more", n - 8);
    const char *cpu = text_of(r, "cpu");
    if (cpu) zero_escape_format(out, ": %s", cpu);
    const json_t *cores = json_object_get(r->file.run, "node_cores");
    if (json_is_integer(cores))
        fprintf(out, ", %" JSON_INTEGER_FORMAT " cores of rank 0's node",
                json_integer_value(cores));
    fputs("</dd>\n", out);
}

static void write_model(const zero_record *r, FILE *out)
{
    static const char *const keys[] = {"layers", "hidden", "heads", "seq", "vocab"};
    const json_t *model = json_object_get(r->file.run, "model");
    if (!json_is_object(model)) return;
    char count[ZERO_HTML_TEXT];
    fputs("<dt>model</dt><dd>", out);
    zero_escape(r->model, out);
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        fprintf(out, "%s%s %" JSON_INTEGER_FORMAT, k ? ", " : ": ", keys[k],
                json_integer_value(json_object_get(model, keys[k])));
    zero_html_number(json_number_value(json_object_get(model, "parameters")), count);
    fprintf(out, "; %s parameters</dd>\n", count);
}

static void write_version(const zero_record *r, FILE *out)
{
    char text[256];
    const char *version = text_of(r, "version"), *commit = text_of(r, "commit");
    if (!version && !commit) return;
    snprintf(text, sizeof text, "%s%s%s", version ? version : "", commit ? ", commit " : "",
             commit ? commit : "");
    fact("version", text, out);
}

void zero_page_facts(const zero_record *r, FILE *out)
{
    fputs("<dl class=\"facts\">\n", out);
    const char *command = text_of(r, "command");
    if (command) {
        fputs("<dt>command</dt><dd><code>", out);
        zero_escape(command, out);
        fputs("</code></dd>\n", out);
    }
    write_model(r, out);
    fact("data", text_of(r, "data"), out);
    write_hosts(r, out);
    fact("arithmetic", text_of(r, "arithmetic"), out);
    fact("collectives", r->collectives, out);
    fact("MPI", text_of(r, "mpi"), out);
    fact("started", r->started, out);
    write_version(r, out);
    fact("digest", r->digest, out);
    fputs("</dl>\n", out);
}

/* ---- notes ---- */

/* A sentence; its beginning up to a colon is strong. */
static void write_note(const char *note, FILE *out)
{
    const char *colon = strstr(note, ": ");
    fputs(colon ? "<p class=\"note\"><b>" : "<p class=\"note\">", out);
    zero_escape_format(out, "%c%.*s", toupper((unsigned char)note[0]),
                       colon ? (int)(colon - note) : (int)strlen(note) - 1, note + 1);
    if (colon) fputs("</b>", out);
    if (colon) zero_escape(colon + 1, out);
    fputs(".</p>\n", out);
}

static void write_notes(const zero_record *r, FILE *out)
{
    char notes[ZERO_NOTES_MOST][ZERO_NOTE_BYTES];
    int n = zero_notes_of(r, notes);
    for (int k = 0; k < n; k++) write_note(notes[k], out);
}

static void write_subtitle(const zero_record *r, FILE *out)
{
    fputs("<p class=\"sub\">", out);
    if (r->has_run) {
        fprintf(out, "ZeRO stage %d, ", r->stage);
        zero_escape(r->dtype, out);
        fprintf(out, ", %d rank%s on %d node%s", r->ranks, zero_text_plural(r->ranks),
                r->nodes, zero_text_plural(r->nodes));
        if (r->tp > 1) fprintf(out, ", tensor parallelism of %d", r->tp);
        fputs(", ", out);
    }
    fprintf(out, "%" PRId64 " step%s</p>\n", r->n_steps, zero_text_plural(r->n_steps));
}

void zero_page_head(const zero_record *r, FILE *out)
{
    write_subtitle(r, out);
    write_notes(r, out);
}

/* ---- figures ---- */

static void figure(const char *name, const char *value, const char *more, FILE *out)
{
    fprintf(out, "<div><dt>%s</dt><dd class=\"big\">", name);
    zero_escape(value, out);
    fputs("</dd><dd class=\"more\">", out);
    zero_escape(more, out);
    fputs("</dd></div>\n", out);
}

static void figure_of_loss(const char *name, double loss, int64_t step, FILE *out)
{
    char value[ZERO_HTML_TEXT], more[ZERO_HTML_TEXT] = "not measured";
    zero_html_number(loss, value);
    if (step > 0) snprintf(more, sizeof more, "at step %" PRId64, step);
    figure(name, value, more, out);
}

static void figure_of_memory(const zero_figures *f, FILE *out)
{
    char value[ZERO_HTML_TEXT] = "-", more[2 * ZERO_HTML_TEXT] = "the run did not end";
    if (f->planned_peak > 0) zero_cell_bytes((double)f->planned_peak, value);
    if (f->planned_peak > 0 && f->planned_peak == f->measured_peak)
        snprintf(more, sizeof more, "planned = used");
    else if (f->planned_peak > 0 && f->measured_peak > 0) {
        char used[ZERO_HTML_TEXT];
        zero_cell_bytes((double)f->measured_peak, used);
        snprintf(more, sizeof more, "planned; used DIFFERS: %s", used);
    } else if (f->planned_peak > 0)
        snprintf(more, sizeof more, "planned");
    figure("memory of rank 0", value, more, out);
}

void zero_page_figures(const zero_figures *f, FILE *out)
{
    char value[ZERO_HTML_TEXT], more[3 * ZERO_HTML_TEXT], low[ZERO_HTML_TEXT],
        high[ZERO_HTML_TEXT];
    fputs("<dl class=\"figures\">\n", out);
    figure_of_loss("loss", f->loss, f->step, out);
    figure_of_loss("validation loss", f->val_loss, f->val_step, out);
    zero_html_number(f->tokens_per_second, value);
    figure("tokens per second", value, "median", out);
    zero_cell_seconds(f->step_time.median, value);
    zero_cell_seconds(f->step_time.lower, low);
    zero_cell_seconds(f->step_time.upper, high);
    if (f->step_time.lower < f->step_time.upper)
        snprintf(more, sizeof more, "median; quartiles %s, %s", low, high);
    else
        snprintf(more, sizeof more, "median");
    figure("step", value, more, out);
    figure_of_memory(f, out);
    zero_cell_share(f->waited, value);
    figure("waited for others", value, "of the steps' time", out);
    fputs("</dl>\n", out);
}

void zero_page_numbers(const zero_figures *f, FILE *out)
{
    zero_html_section("Four numbers", NULL, out);
    fputs("<dl class=\"numbers\">\n", out);
    for (int i = 0; i < ZERO_FOUR_NUMBERS; i++) {
        double share = zero_four_numbers_value(f, i);
        char value[ZERO_HTML_TEXT];
        zero_cell_share(share, value);
        fputs("<div><dt>", out);
        zero_escape(zero_four_numbers[i].name, out);
        fprintf(out, "</dt><dd class=\"big\">%s</dd><dd class=\"more\">", value);
        zero_escape(isfinite(share)
                        ? zero_four_numbers[i].definition
                        : "The metrics do not have it: the run did not end, or an "
                          "older version wrote them.",
                    out);
        fputs("</dd></div>\n", out);
    }
    fputs("</dl>\n", out);
    zero_html_section_end(out);
}
