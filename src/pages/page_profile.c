/* Instructions by kind: seconds of rank 0, least and most of all ranks. */
#include "pages/page_parts.h"

#include <math.h>

#include "pages/cell.h"
#include "pages/escape.h"
#include "pages/page_html.h"
#include "pages/page_kind.h"

#define SCALE 150.0 /* units of the picture of a row */

/* From the least to the most of all ranks, and a mark where rank 0 is; a dash if one is unknown. */
static void write_range(const zero_record_profile *p, double most, FILE *out)
{
    double from = SCALE * p->least / most, to = SCALE * p->most / most;
    double here = SCALE * p->seconds / most;
    const char *class = zero_kind_class(zero_kind_of(p->op));
    if (!isfinite(from + to + here)) {
        zero_html_cell("-", out);
        return;
    }
    fprintf(
        out,
        "<td class=\"bar\"><svg viewBox=\"0 0 %.0f 12\" aria-hidden=\"true\"><rect "
        "class=\"%s\" fill-opacity=\".35\" x=\"0\" y=\"2\" width=\"%.1f\" height=\"8\"/>"
        "<rect class=\"%s\" x=\"%.1f\" y=\"2\" width=\"%.1f\" height=\"8\"/>"
        "<rect class=\"mark\" x=\"%.1f\" y=\"0\" width=\"1.5\" height=\"12\"/></svg></td>",
        SCALE, class, from, class, from, fmax(to - from, 1.0), here);
}

static void write_row(const zero_record_profile *p, double most, double all, FILE *out)
{
    char text[160];
    snprintf(text, sizeof text, p->unit[0] ? "%s %s" : "%s", p->op, p->unit);
    zero_html_row(text, out);
    zero_html_number((double)p->count, text);
    zero_html_cell(text, out);
    zero_cell_seconds(p->seconds, text);
    zero_html_cell(text, out);
    zero_cell_share(p->seconds / all, text);
    zero_html_cell(text, out);
    zero_cell_seconds(p->least, text);
    zero_html_cell(text, out);
    zero_cell_seconds(p->most, text);
    zero_html_cell(text, out);
    write_range(p, most, out);
    zero_html_row_end(out);
}

/* Kinds of units are parts of their instruction. */
static void sum_up(const zero_record *r, double *most, double *all)
{
    *most = *all = 1e-12;
    for (int k = 0; k < r->n_profile; k++) {
        if (r->profile[k].unit[0]) continue;
        *most = fmax(*most, r->profile[k].most);
        *all += r->profile[k].seconds;
    }
}

void zero_page_profile(const zero_record *r, FILE *out)
{
    static const char *const heads[] = {"Instruction", "Count", "Rank 0",       "Share",
                                        "Least",       "Most",  "Least to most"};
    double most, all;
    zero_html_section(
        "Instructions",
        "Seconds in all steps: of rank 0 (the mark), and the least and the most of "
        "all ranks (the strong part of the bar).",
        out);
    if (r->n_profile > 0) {
        sum_up(r, &most, &all);
        zero_html_table("Time by kind of instruction", heads, 7, out);
        for (int k = 0; k < r->n_profile; k++) write_row(&r->profile[k], most, all, out);
        zero_html_table_end(out);
    } else {
        zero_html_missing(
            "Times of instructions stand in the last line of the metrics, and this "
            "run has none: it did not end.",
            out);
    }
    zero_html_section_end(out);
}
