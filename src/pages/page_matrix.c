/* Bytes from rank to rank as squares, and their sums. */
#include <math.h>

#include "pages/page_parts.h"

#define LEFT 64.0
#define TOP  44.0
#define SIDE 340.0 /* of the matrix */
#define FITS 18.0  /* units of the picture that a number of a rank needs */

static int64_t bytes_of(const json_t *peers, const char *which, int from, int to)
{
    const json_t *row = json_array_get(json_object_get(peers, which), (size_t)from);
    return json_integer_value(json_array_get(row, (size_t)to));
}

static bool is_across(const json_t *peers, int from, int to)
{
    const json_t *nodes = json_object_get(peers, "node_of");
    return !json_equal(json_array_get(nodes, (size_t)from),
                       json_array_get(nodes, (size_t)to));
}

zero_status zero_page_matrix(const json_t *peers, FILE *out)
{
    int n = (int)json_array_size(json_object_get(peers, "node_of")), every = 1;
    double most = 1.0, cell = SIDE / n;
    json_t *squares[] = {json_array(), json_array()}, *rows = json_array(),
           *borders = json_array(), *ticks = json_array();
    while (every * cell < FITS) every *= 2;
    for (int k = 0; k < n * n; k++)
        most = fmax(most, (double)bytes_of(peers, "sent", k / n, k % n));
    for (int from = 0; from < n; from++) {
        json_int_t sums[2] = {0}, received = 0; /* inside its node, and across */
        bool is_equal = true;
        for (int to = 0; to < n; to++) {
            int64_t sent = bytes_of(peers, "sent", from, to),
                    planned = bytes_of(peers, "planned", from, to);
            bool across = is_across(peers, from, to);
            sums[across] += sent;
            received += bytes_of(peers, "sent", to, from);
            is_equal = is_equal && sent == planned;
            if (sent == 0) continue;
            /* Its area is its share of the most. */
            double side = fmax(sqrt((double)sent / most) * (cell - 2.0), 1.5);
            json_array_append_new(squares[across],
                                  json_pack("{s:f, s:f, s:f, s:i, s:i, s:I, s:I}", "x",
                                            LEFT + (to + 0.5) * cell - 0.5 * side, "y",
                                            TOP + (from + 0.5) * cell - 0.5 * side, "side",
                                            side, "from", from, "to", to, "sent",
                                            (json_int_t)sent, "planned",
                                            (json_int_t)planned));
        }
        json_array_append_new(rows, json_pack("{s:i, s:I, s:I, s:I, s:b}", "rank", from,
                                              "inside", sums[0], "across", sums[1],
                                              "received", received, "equal", is_equal));
        if (from > 0 && is_across(peers, from - 1, from))
            json_array_append_new(borders, json_real(from * cell));
        if (from % every == 0)
            json_array_append_new(ticks, json_pack("{s:i, s:f}", "rank", from, "middle",
                                                   (from + 0.5) * cell));
    }
    return zero_page_form("picture", "matrix",
                          json_pack("{s:o, s:o, s:o, s:[{s:s, s:o}, {s:s, s:o}]}", "rows",
                                    rows, "borders", borders, "ticks", ticks, "colours",
                                    "class", "inside", "squares", squares[0], "class",
                                    "across", "squares", squares[1]),
                          out);
}
