/* Bytes from rank to rank as squares. */
#include <math.h>

#include "base/fail.h"
#include "pages/page_parts.h"
#include "pages/svg.h"

#define SIDE   340.0 /* of the matrix */
#define LEFT   64.0
#define TOP    44.0
#define TITLED 20  /* ranks of a matrix whose squares have titles of their own */
#define FITS   9.0 /* units of the picture that a number of a rank needs */

struct matrix {
    const json_t *peers; /* of the last line */
    int n;               /* ranks */
    double most, cell;
    FILE *out;
};

static int64_t bytes_of(const struct matrix *m, const char *which, int from, int to)
{
    const json_t *row = json_array_get(json_object_get(m->peers, which), (size_t)from);
    return json_integer_value(json_array_get(row, (size_t)to));
}

static bool is_across(const struct matrix *m, int from, int to)
{
    const json_t *nodes = json_object_get(m->peers, "node_of");
    return !json_equal(json_array_get(nodes, (size_t)from),
                       json_array_get(nodes, (size_t)to));
}

/* The side of a square whose area is its share of the most. */
static double side_of(const struct matrix *m, int from, int to)
{
    double share = (double)bytes_of(m, "sent", from, to) / m->most;
    return share > 0.0 ? fmax(sqrt(share) * (m->cell - 2.0), 1.5) : 0.0;
}

static void draw_titled(const struct matrix *m, bool across)
{
    for (int from = 0; from < m->n; from++)
        for (int to = 0; to < m->n; to++) {
            double side = side_of(m, from, to);
            if (side == 0.0 || is_across(m, from, to) != across) continue;
            char title[200];
            size_t size = sizeof title;
            char bytes[ZERO_PAGE_TEXT], other[ZERO_PAGE_TEXT];
            int64_t planned = bytes_of(m, "planned", from, to),
                    sent = bytes_of(m, "sent", from, to);
            int n = snprintf(title, size, "rank %d to rank %d, %s: %s", from, to,
                             is_across(m, from, to) ? "across nodes" : "inside a node",
                             zero_page_number((double)sent, "bytes", bytes));
            snprintf(title + n, size - (size_t)n,
                     planned == sent ? ", as planned" : "; planned %s: DIFFERS",
                     zero_page_number((double)planned, "bytes", other));
            zero_svg_box(LEFT + (to + 0.5) * m->cell - 0.5 * side,
                         TOP + (from + 0.5) * m->cell - 0.5 * side, side, side,
                         across ? "across" : "inside", title, m->out);
        }
}

/* All squares of a colour as one path: of many ranks they are too small for titles. */
static void draw_plain(const struct matrix *m, bool across)
{
    fprintf(m->out, "<path class=\"%s\" d=\"", across ? "across" : "inside");
    for (int from = 0; from < m->n; from++)
        for (int to = 0; to < m->n; to++) {
            double side = side_of(m, from, to);
            if (side == 0.0 || is_across(m, from, to) != across) continue;
            fprintf(m->out, "M%.1f %.1fh%.1fv%.1fh%.1fz",
                    LEFT + (to + 0.5) * m->cell - 0.5 * side,
                    TOP + (from + 0.5) * m->cell - 0.5 * side, side, side, -side);
        }
    fputs("\"/>\n", m->out);
}

static void draw_ranks(const struct matrix *m)
{
    int n = m->n, every = 1;
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

/* The sums of each rank. */
static json_t *sums_of(const struct matrix *m)
{
    json_t *rows = json_array();
    for (int rank = 0; rank < m->n; rank++) {
        int64_t inside = 0, across = 0, received = 0;
        bool is_equal = true;
        for (int peer = 0; peer < m->n; peer++) {
            int64_t sent = bytes_of(m, "sent", rank, peer);
            *(is_across(m, rank, peer) ? &across : &inside) += sent;
            received += bytes_of(m, "sent", peer, rank);
            is_equal = is_equal && sent == bytes_of(m, "planned", rank, peer);
        }
        json_array_append_new(rows, json_pack("{s:i, s:I, s:I, s:I, s:b}", "rank", rank,
                                              "inside", (json_int_t)inside, "across",
                                              (json_int_t)across, "received",
                                              (json_int_t)received, "equal", is_equal));
    }
    return json_pack("{s:o}", "rows", rows);
}

zero_status zero_page_matrix(const json_t *peers, FILE *out)
{
    struct matrix m = {.peers = peers, .most = 1.0, .out = out};
    m.n = (int)json_array_size(json_object_get(peers, "node_of"));
    m.cell = SIDE / m.n;
    for (int k = 0; k < m.n * m.n; k++)
        m.most = fmax(m.most, (double)bytes_of(&m, "sent", k / m.n, k % m.n));
    fputs("<ul class=\"legend\">", out);
    zero_svg_key("inside", -1, "inside a node", out);
    zero_svg_key("across", -1, "across nodes", out);
    fputs("</ul>\n<div class=\"pair matrix\">\n", out);
    zero_svg_frame frame = {"Bytes from rank to rank; the area of a square is their number",
                            LEFT + SIDE + 8.0, TOP + SIDE + 8.0, false};
    zero_svg_begin(&frame, m.out);
    int n = m.n;
    double end = n * m.cell;
    zero_svg_box(LEFT, TOP, end, end, "cell", NULL, m.out);
    for (int rank = 1; rank < n; rank++) {
        if (!is_across(&m, rank - 1, rank)) continue;
        double at_border = rank * m.cell;
        zero_svg_line(LEFT + at_border, TOP, LEFT + at_border, TOP + end, "node", m.out);
        zero_svg_line(LEFT, TOP + at_border, LEFT + end, TOP + at_border, "node", m.out);
    }
    draw_ranks(&m);
    for (int across = 0; across < 2; across++)
        if (m.n <= TITLED)
            draw_titled(&m, across);
        else
            draw_plain(&m, across);
    zero_svg_end(&frame, m.out);
    fputs(m.n > 8 ? "<div>\n<details><summary>Ranks as a table</summary>\n" : "<div>\n",
          out);
    ZERO_TRY(zero_page_form("run", "page_peers", sums_of(&m), out));
    fputs(m.n > 8 ? "</details>\n</div></div>\n" : "</div></div>\n", out);
    return ZERO_OK;
}
