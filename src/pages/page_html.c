#include "pages/page_html.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "pages/cell.h"
#include "pages/escape.h"

#define GAP "\u202f" /* a narrow blank that does not break, between thousands */

/* ---- numbers ---- */

static void group(int64_t n, char text[ZERO_HTML_TEXT])
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%" PRId64, n), used = 0;
    for (int i = 0; i < length; i++) {
        bool is_break = i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0;
        used += snprintf(text + used, (size_t)(ZERO_HTML_TEXT - used), "%s%c",
                         is_break ? GAP : "", digits[i]);
    }
}

void zero_html_number(double value, char text[ZERO_HTML_TEXT])
{
    bool is_count = value == round(value) || fabs(value) >= 1000.0;
    if (isfinite(value) && is_count && fabs(value) < 1e15)
        group(llround(value), text);
    else
        zero_cell_number(value, text);
}

/* ---- sections ---- */

void zero_html_section(const char *title, const char *lead, FILE *out)
{
    fputs("<section>\n<h2>", out);
    zero_escape(title, out);
    fputs("</h2>\n", out);
    if (!lead) return;
    fputs("<p class=\"lead\">", out);
    zero_escape(lead, out);
    fputs("</p>\n", out);
}

void zero_html_section_end(FILE *out)
{
    fputs("</section>\n", out);
}

void zero_html_missing(const char *why, FILE *out)
{
    fputs("<p class=\"missing\">", out);
    zero_escape(why, out);
    fputs("</p>\n", out);
}

/* ---- tables ---- */

void zero_html_table(const char *caption, const char *const heads[], int n, FILE *out)
{
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"", out);
    zero_escape(caption, out);
    fputs("\"><table>\n<caption>", out);
    zero_escape(caption, out);
    fputs("</caption>\n<thead><tr>", out);
    for (int k = 0; k < n; k++) {
        fputs("<th scope=\"col\">", out);
        zero_escape(heads[k], out);
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
}

void zero_html_row(const char *name, FILE *out)
{
    fputs("<tr><th scope=\"row\">", out);
    zero_escape(name, out);
    fputs("</th>", out);
}

void zero_html_cell(const char *text, FILE *out)
{
    fputs("<td>", out);
    zero_escape(text, out);
    fputs("</td>", out);
}

void zero_html_bar(double share, const char *class, FILE *out)
{
    double percent = isfinite(share) ? 100.0 * fmin(fmax(share, 0.0), 1.0) : 0.0;
    fprintf(out, "<td class=\"bar\"><span class=\"%s\" style=\"width:%.1f%%\"></span></td>",
            class, percent);
}

void zero_html_equal(bool is_equal, FILE *out)
{
    fputs(is_equal ? "<td class=\"same\">=</td>" : "<td class=\"differs\">DIFFERS</td>",
          out);
}

void zero_html_row_end(FILE *out)
{
    fputs("</tr>\n", out);
}

void zero_html_table_end(FILE *out)
{
    fputs("</tbody></table></div>\n", out);
}

void zero_html_details(const char *summary, FILE *out)
{
    fputs("<details><summary>", out);
    zero_escape(summary, out);
    fputs("</summary>\n", out);
}

void zero_html_details_end(FILE *out)
{
    fputs("</details>\n", out);
}

/* ---- legends ---- */

void zero_html_legend(FILE *out)
{
    fputs("<ul class=\"legend\">", out);
}

void zero_html_key(const char *class, const char *name, FILE *out)
{
    fprintf(out, "<li><span class=\"key %s\"></span>", class);
    zero_escape(name, out);
    fputs("</li>", out);
}

void zero_html_legend_end(FILE *out)
{
    fputs("</ul>\n", out);
}
