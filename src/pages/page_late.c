/* Late ranks: a collective moves on when its last rank has begun it, so all others wait for that. */
#include "pages/page_parts.h"

#include <inttypes.h>
#include <math.h>

#include "base/fail.h"
#include "base/number.h"
#include "pages/breakdown.h"
#include "pages/cell.h"
#include "pages/page_html.h"

#define LISTED 16 /* ranks of a table that is open */
#define WORST  5  /* collectives that are named */

static void write_rank(const zero_breakdown_late *late, int64_t most, FILE *out)
{
    char text[ZERO_HTML_TEXT];
    snprintf(text, sizeof text, "%d", late->rank);
    zero_html_row(text, out);
    zero_html_number((double)late->joined, text);
    zero_html_cell(text, out);
    zero_html_number((double)late->last, text);
    zero_html_cell(text, out);
    zero_cell_seconds((double)late->delay * 1e-9, text);
    zero_html_cell(text, out);
    zero_html_bar((double)late->delay / (double)most, "wait", out);
    zero_html_row_end(out);
}

static void write_ranks(const zero_breakdown *b, FILE *out)
{
    static const char *const heads[] = {"Rank", "Collectives", "Began last", "Delay", ""};
    int64_t n = b->trace->n_ranks, most = 1;
    for (int64_t r = 0; r < n; r++) most = zero_max(most, b->late[r].delay);
    if (n > LISTED) zero_html_details("Late ranks as a table", out);
    zero_html_table(
        "Late ranks: how often each began a collective last, and how long after the "
        "last but one",
        heads, 5, out);
    for (int64_t r = 0; r < n; r++) write_rank(&b->late[r], most, out);
    zero_html_table_end(out);
    if (n > LISTED) zero_html_details_end(out);
}

static void write_collective(const zero_breakdown_collective *c, FILE *out)
{
    char text[ZERO_HTML_TEXT];
    zero_html_row(c->name, out);
    snprintf(text, sizeof text, "%" PRId64, c->step);
    zero_html_cell(text, out);
    snprintf(text, sizeof text, "%d", c->last);
    zero_html_cell(text, out);
    zero_cell_seconds((double)c->delay * 1e-9, text);
    zero_html_cell(text, out);
    zero_cell_seconds((double)c->duration * 1e-9, text);
    zero_html_cell(text, out);
    zero_html_row_end(out);
}

/* The collective with the longest delay after `before` in the order of delays, and then of places. */
static int64_t next_worst(const zero_breakdown *b, int64_t before)
{
    int64_t next = -1;
    for (int64_t i = 0; i < b->n_collectives; i++) {
        int64_t delay = b->collectives[i].delay;
        if (b->collectives[i].n_ranks < 2 || delay <= 0) continue;
        if (before >= 0) {
            int64_t limit = b->collectives[before].delay;
            if (delay > limit || (delay == limit && i <= before)) continue;
        }
        if (next < 0 || delay > b->collectives[next].delay) next = i;
    }
    return next;
}

static void write_worst(const zero_breakdown *b, FILE *out)
{
    static const char *const heads[] = {"Collective", "Step", "Last rank", "Delay",
                                        "In flight"};
    int64_t worst = next_worst(b, -1);
    if (worst < 0) return;
    zero_html_table("The longest delays", heads, 5, out);
    for (int k = 0; k < WORST && worst >= 0; k++, worst = next_worst(b, worst))
        write_collective(&b->collectives[worst], out);
    zero_html_table_end(out);
}

zero_status zero_page_late(const zero_traced *trace, FILE *out)
{
    zero_breakdown breakdown;
    ZERO_TRY(zero_breakdown_of(trace, &breakdown));
    if (breakdown.n_collectives > 0) {
        fputs("<div class=\"pair\">\n", out);
        write_ranks(&breakdown, out);
        write_worst(&breakdown, out);
        fputs("</div>\n", out);
    }
    zero_breakdown_destroy(&breakdown);
    return ZERO_OK;
}
