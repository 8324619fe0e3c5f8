#include "pages/page_html.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "pages/escape.h"
#include "report/text.h"

#define GAP     "\u202f" /* a narrow blank that does not break, between thousands */
#define NOTHING "\u2013"

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

/* Four digits; zeros at the end of a fraction say nothing. */
static void fraction(double value, char text[ZERO_HTML_TEXT])
{
    int places = 3 - (int)floor(log10(fabs(value)));
    snprintf(text, ZERO_HTML_TEXT, "%.*f", places < 0 ? 0 : places, value);
    size_t n = strlen(text);
    if (!strchr(text, '.')) return;
    while (text[n - 1] == '0') text[--n] = '\0';
    if (text[n - 1] == '.') text[n - 1] = '\0';
}

void zero_html_number(double value, char text[ZERO_HTML_TEXT])
{
    double size = fabs(value);
    if (!isfinite(value))
        strcpy(text, NOTHING);
    else if (size >= 1e15 || (size < 1e-3 && size > 0.0))
        snprintf(text, ZERO_HTML_TEXT, "%.3g", value);
    else if (size >= 1000.0 || value == 0.0)
        group(llround(value), text);
    else
        fraction(value, text);
}

void zero_html_seconds(double seconds, char text[ZERO_HTML_TEXT])
{
    double size = fabs(seconds);
    if (!isfinite(seconds))
        strcpy(text, NOTHING);
    else if (size >= 3.6e7)
        snprintf(text, ZERO_HTML_TEXT, "%.3g h", seconds / 3600.0);
    else if (size >= 7200.0)
        snprintf(text, ZERO_HTML_TEXT, "%.1f h", seconds / 3600.0);
    else if (size >= 120.0)
        snprintf(text, ZERO_HTML_TEXT, "%.1f min", seconds / 60.0);
    else if (size >= 1.0)
        snprintf(text, ZERO_HTML_TEXT, "%.2f s", seconds);
    else if (size >= 1e-3)
        snprintf(text, ZERO_HTML_TEXT, "%.*f ms",
                 size >= 0.1    ? 0
                 : size >= 0.01 ? 1
                                : 2,
                 1e3 * seconds);
    else
        snprintf(text, ZERO_HTML_TEXT, "%.*f µs", size >= 1e-5 || size == 0.0 ? 0 : 1,
                 1e6 * seconds);
}

void zero_html_share(double share, char text[ZERO_HTML_TEXT])
{
    if (isfinite(share))
        snprintf(text, ZERO_HTML_TEXT, "%.1f %%", 100.0 * share);
    else
        strcpy(text, NOTHING);
}

void zero_html_bytes(double bytes, char text[ZERO_HTML_TEXT])
{
    char plan[ZERO_PLAN_TEXT];
    zero_text_bytes(bytes, plan);
    snprintf(text, ZERO_HTML_TEXT, "%.*s", ZERO_HTML_TEXT - 1, plan);
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
