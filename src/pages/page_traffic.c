/* Bytes from rank to rank as squares, and collectives as they were planned and counted. */
#include "pages/page_parts.h"

#include <math.h>

#include "pages/cell.h"
#include "pages/page_html.h"
#include "pages/svg.h"

#define SIDE   340.0 /* of the matrix */
#define LEFT   64.0
#define TOP    44.0
#define TITLED 20  /* ranks of a matrix whose squares have titles of their own */
#define FITS   9.0 /* units of the picture that a number of a rank needs */

/* ---- the matrix ---- */

struct matrix {
    const zero_record *r;
    const int64_t *bytes; /* counted, else planned */
    double most, cell;
    FILE *out;
};

static int64_t at(const struct matrix *m, int from, int to)
{
    return m->bytes[from * m->r->n_peers + to];
}

static bool is_across(const zero_record *r, int from, int to)
{
    return r->node_of && r->node_of[from] != r->node_of[to];
}

static void describe(const struct matrix *m, int from, int to, char *title, size_t size)
{
    char bytes[ZERO_HTML_TEXT], other[ZERO_HTML_TEXT];
    int64_t planned =
        m->r->planned_peer ? m->r->planned_peer[from * m->r->n_peers + to] : -1;
    zero_cell_bytes((double)at(m, from, to), bytes);
    zero_cell_bytes((double)planned, other);
    int n = snprintf(title, size, "rank %d to rank %d, %s: %s", from, to,
                     is_across(m->r, from, to) ? "across nodes" : "inside a node", bytes);
    if (m->bytes == m->r->planned_peer || planned < 0)
        snprintf(title + n, size - (size_t)n, " planned");
    else if (planned == at(m, from, to))
        snprintf(title + n, size - (size_t)n, ", as planned");
    else
        snprintf(title + n, size - (size_t)n, "; planned %s: DIFFERS", other);
}

/* The side of a square whose area is its share of the most. */
static double side_of(const struct matrix *m, int from, int to)
{
    double share = (double)at(m, from, to) / m->most;
    return share > 0.0 ? fmax(sqrt(share) * (m->cell - 2.0), 1.5) : 0.0;
}

static void draw_titled(const struct matrix *m, bool across)
{
    for (int from = 0; from < m->r->n_peers; from++)
        for (int to = 0; to < m->r->n_peers; to++) {
            double side = side_of(m, from, to);
            if (side == 0.0 || is_across(m->r, from, to) != across) continue;
            char title[200];
            describe(m, from, to, title, sizeof title);
            zero_svg_box(LEFT + (to + 0.5) * m->cell - 0.5 * side,
                         TOP + (from + 0.5) * m->cell - 0.5 * side, side, side,
                         across ? "across" : "inside", title, m->out);
        }
}

/* All squares of a colour as one path: of many ranks they are too small for titles. */
static void draw_plain(const struct matrix *m, bool across)
{
    fprintf(m->out, "<path class=\"%s\" d=\"", across ? "across" : "inside");
    for (int from = 0; from < m->r->n_peers; from++)
        for (int to = 0; to < m->r->n_peers; to++) {
            double side = side_of(m, from, to);
            if (side == 0.0 || is_across(m->r, from, to) != across) continue;
            fprintf(m->out, "M%.1f %.1fh%.1fv%.1fh%.1fz",
                    LEFT + (to + 0.5) * m->cell - 0.5 * side,
                    TOP + (from + 0.5) * m->cell - 0.5 * side, side, side, -side);
        }
    fputs("\"/>\n", m->out);
}

static void draw_borders(const struct matrix *m)
{
    int n = m->r->n_peers;
    double end = n * m->cell;
    zero_svg_box(LEFT, TOP, end, end, "cell", NULL, m->out);
    for (int rank = 1; rank < n; rank++) {
        if (!is_across(m->r, rank - 1, rank)) continue;
        double at_border = rank * m->cell;
        zero_svg_line(LEFT + at_border, TOP, LEFT + at_border, TOP + end, "node", m->out);
        zero_svg_line(LEFT, TOP + at_border, LEFT + end, TOP + at_border, "node", m->out);
    }
}

static void draw_ranks(const struct matrix *m)
{
    int n = m->r->n_peers, every = 1;
    while (every * m->cell < 2.0 * FITS) every *= 2;
    for (int rank = 0; rank < n; rank += every) {
        char text[16];
        double middle = (rank + 0.5) * m->cell;
        snprintf(text, sizeof text, "%d", rank);
        zero_svg_text(LEFT + middle, TOP - 8.0, ZERO_SVG_MIDDLE, "tick", text, m->out);
        zero_svg_text(LEFT - 8.0, TOP + middle + 4.0, ZERO_SVG_RIGHT, "tick", text, m->out);
    }
    zero_svg_text(LEFT + 0.5 * SIDE, TOP - 28.0, ZERO_SVG_MIDDLE, "tick", "to rank",
                  m->out);
    zero_svg_text(0.0, TOP - 8.0, ZERO_SVG_LEFT, "tick", "from", m->out);
}

static void draw(const struct matrix *m)
{
    zero_svg_frame frame = {"Bytes from rank to rank; the area of a square is their number",
                            LEFT + SIDE + 8.0, TOP + SIDE + 8.0, false};
    zero_svg_begin(&frame, m->out);
    draw_borders(m);
    draw_ranks(m);
    for (int across = 0; across < 2; across++)
        if (m->r->n_peers <= TITLED)
            draw_titled(m, across);
        else
            draw_plain(m, across);
    zero_svg_end(&frame, m->out);
}

static void write_rank(const struct matrix *m, int rank)
{
    char text[ZERO_HTML_TEXT];
    double inside = 0.0, across = 0.0, received = 0.0;
    bool is_equal = true;
    for (int peer = 0; peer < m->r->n_peers; peer++) {
        *(is_across(m->r, rank, peer) ? &across : &inside) += (double)at(m, rank, peer);
        received += (double)at(m, peer, rank);
        if (m->r->planned_peer)
            is_equal &=
                m->r->planned_peer[rank * m->r->n_peers + peer] == at(m, rank, peer);
    }
    snprintf(text, sizeof text, "%d", rank);
    zero_html_row(text, m->out);
    zero_cell_bytes(inside, text);
    zero_html_cell(text, m->out);
    zero_cell_bytes(across, text);
    zero_html_cell(text, m->out);
    zero_cell_bytes(received, text);
    zero_html_cell(text, m->out);
    if (m->bytes != m->r->planned_peer && m->r->planned_peer)
        zero_html_equal(is_equal, m->out);
    else
        zero_html_cell("planned", m->out);
    zero_html_row_end(m->out);
}

static void write_ranks(const struct matrix *m)
{
    static const char *const heads[] = {"Rank", "Sent inside its node", "Across",
                                        "Received", "As planned"};
    zero_html_table("Bytes by rank", heads, 5, m->out);
    for (int rank = 0; rank < m->r->n_peers; rank++) write_rank(m, rank);
    zero_html_table_end(m->out);
}

static void write_matrix(const zero_record *r, FILE *out)
{
    struct matrix m = {.r = r, .bytes = r->peer ? r->peer : r->planned_peer, .out = out};
    if (r->n_peers == 0 || !m.bytes) {
        zero_html_missing(
            "Bytes from rank to rank stand in the last line of the metrics, for up "
            "to 64 ranks. This file has none: the run did not end, it had more "
            "ranks, or an older version wrote it.",
            out);
        return;
    }
    for (int k = 0; k < r->n_peers * r->n_peers; k++)
        m.most = fmax(m.most, (double)m.bytes[k]);
    m.most = fmax(m.most, 1.0);
    m.cell = SIDE / r->n_peers;
    zero_html_legend(out);
    zero_html_key("inside", "inside a node", out);
    zero_html_key("across", "across nodes", out);
    zero_html_legend_end(out);
    fputs("<div class=\"pair matrix\">\n", out);
    draw(&m);
    fputs("<div>\n", out);
    if (r->n_peers > 8) zero_html_details("Ranks as a table", out);
    write_ranks(&m);
    if (r->n_peers > 8) zero_html_details_end(out);
    fputs("</div></div>\n", out);
}

/* ---- collectives ---- */

static void write_traffic(const zero_record_traffic *t, FILE *out)
{
    char text[ZERO_HTML_TEXT];
    double hidden = zero_traffic_hidden(t);
    zero_html_row(t->name, out);
    zero_cell_bytes((double)t->planned_sent, text);
    zero_html_cell(text, out);
    zero_html_equal(t->planned_sent == t->sent && t->planned_received == t->received, out);
    zero_cell_bytes((double)t->sent, text);
    zero_html_cell(text, out);
    zero_cell_bytes((double)t->received, text);
    zero_html_cell(text, out);
    zero_html_number((double)t->messages, text);
    zero_html_cell(text, out);
    zero_cell_seconds(t->seconds, text);
    zero_html_cell(text, out);
    zero_cell_share(hidden, text);
    zero_html_cell(text, out);
    zero_html_bar(hidden, "measured", out);
    zero_html_row_end(out);
}

static void write_collectives(const zero_record *r, FILE *out)
{
    static const char *const heads[] = {"Collective", "Planned",  "",
                                        "Sent",       "Received", "Messages",
                                        "In flight",  "Hidden",   ""};
    if (r->n_traffic == 0) {
        zero_html_missing("Collectives, planned and counted, stand in the last line of the "
                          "metrics, and this run has none: it did not end.",
                          out);
        return;
    }
    zero_html_table("Of rank 0, in all steps", heads, 9, out);
    for (int k = 0; k < r->n_traffic; k++) write_traffic(&r->traffic[k], out);
    zero_html_table_end(out);
}

void zero_page_traffic(const zero_record *r, FILE *out)
{
    zero_html_section(
        "Bytes from rank to rank",
        "What each rank sent to each other one in the whole run; the area of a "
        "square is the number of bytes.",
        out);
    write_matrix(r, out);
    zero_html_section_end(out);
    zero_html_section("Collectives",
                      "Hidden: the share of the time in flight that computing covered.",
                      out);
    write_collectives(r, out);
    zero_html_section_end(out);
}
