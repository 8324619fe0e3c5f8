#include "report/plan_peers.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/grow.h"
#include "report/plan_facts.h"
#include "report/text.h"
#include "sharding/compile.h"
#include "sharding/schedule_peers.h"

#define NUMBERS 6  /* ranks whose bytes are written as numbers; more are squares */
#define COLUMNS 80 /* of the picture */
#define LABEL   8  /* columns of what stands to the left of it */
#define SHADES  4

static const char shades[SHADES + 1] = ".o0#";

/* ---- counting ---- */

/* Adds what `rank` moves, by its own program: with tensor parallelism parts of the model
 * differ, and with --partition owner the ranks' pieces do. */
static zero_status count_rank(const zero_plan_report *r, int stage, int rank,
                              int64_t *matrix)
{
    static const int64_t once[ZERO_PROGRAMS] = {[ZERO_PROGRAM_STEP] = 1};
    zero_tp_place place;
    zero_model made;
    const zero_model *part;
    zero_schedule s;
    zero_peer_bytes bytes = {0};
    ZERO_TRY(zero_tp_find_place(&r->config.tp, &r->layout, rank, &place));
    zero_status st = zero_tp_cut(&r->config.tp, &r->model, rank, &made, &part);
    if (st == ZERO_OK) {
        zero_plan_input in = zero_plan_report_input(r, part, &place, stage);
        st = zero_schedule_compile(&s, &in);
    }
    if (st == ZERO_OK) {
        st = zero_schedule_peers(&s, once, &bytes);
        zero_schedule_destroy(&s);
    }
    zero_model_destroy(&made);
    zero_tp_place_destroy(&place);
    if (st == ZERO_OK) zero_peers_add(r->layout.size, matrix, rank, &bytes);
    return st;
}

zero_status zero_plan_peers_make(const zero_plan_report *r, int stage, int64_t **matrix)
{
    int n = r->layout.size;
    zero_status st = ZERO_OK;
    if (n > ZERO_MOST_PEERS)
        return zero_fail(ZERO_ERR_INVALID,
                         "--peers with --ranks %d: bytes from rank to rank are shown for "
                         "up to %d ranks; give fewer",
                         n, ZERO_MOST_PEERS);
    ZERO_TRY(zero_new(matrix, (size_t)n * (size_t)n, "pairs of ranks"));
    for (int rank = 0; st == ZERO_OK && rank < n; rank++)
        st = count_rank(r, stage, rank, *matrix);
    return st;
}

/* ---- the picture ---- */

/* Sums over a matrix, and how it is drawn. */
typedef struct {
    int64_t inside, across;                   /* of nodes */
    int64_t least_sent, most_sent, most_pair; /* of a rank; of a cell */
    int width;                                /* columns of a cell, its border apart */
    bool has_borders;
} matrix_view;

/* True if a line between nodes stands before this rank. */
static bool begins_node(const zero_layout *l, int rank)
{
    return rank > 0 && l->n_nodes < l->size && l->node_of[rank] != l->node_of[rank - 1];
}

static matrix_view view_of(const zero_layout *l, const int64_t *matrix)
{
    const int room = COLUMNS - LABEL;
    int borders = 0;
    matrix_view v = {.least_sent = INT64_MAX};
    for (int from = 0; from < l->size; from++) {
        int64_t row = 0;
        borders += begins_node(l, from);
        for (int to = 0; to < l->size; to++) {
            int64_t bytes = matrix[(int64_t)from * l->size + to];
            bool is_near = l->node_of[from] == l->node_of[to];
            *(is_near ? &v.inside : &v.across) += bytes;
            if (bytes > v.most_pair) v.most_pair = bytes;
            row += bytes;
        }
        if (row < v.least_sent) v.least_sent = row;
        if (row > v.most_sent) v.most_sent = row;
    }
    v.has_borders =
        l->size <= NUMBERS || 2 * (l->size + borders) <= room || l->size + borders <= room;
    v.width = l->size <= NUMBERS                                      ? 11
              : 2 * (l->size + (v.has_borders ? borders : 0)) <= room ? 2
                                                                      : 1;
    return v;
}

static void print_matrix(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    const zero_layout *l = &r->layout;
    const matrix_view v = view_of(l, stage->peers);
    const int border = v.width > 1 ? 2 : 1;
    fprintf(out, "\nstage %d\n%*s ", zero_plan_stage_number(stage), LABEL - 1, "from\\to");
    /* Numbers of ranks above the columns: all of a table, each eighth of squares. */
    for (int to = 0, room = 0; to < l->size; to++) {
        room += v.width + (v.has_borders && begins_node(l, to) ? border : 0);
        if (v.width < 3 && to % 8 != 0) continue;
        fprintf(out, "%*d", room, to);
        room = 0;
    }
    fputc('\n', out);
    for (int from = 0; from < l->size; from++) {
        fprintf(out, "%*d ", LABEL - 1, from);
        for (int to = 0; to < l->size; to++) {
            if (v.has_borders && begins_node(l, to)) fprintf(out, "%*c", border, '|');
            /* A number, or a square's shade: the quarter of the most that its bytes
             * reach. */
            int64_t bytes = stage->peers[(int64_t)from * l->size + to];
            bool is_own = to == from;
            char text[ZERO_PLAN_TEXT] = "-";
            if (v.width > 2) {
                if (bytes > 0) zero_text_bytes((double)bytes, text);
            } else if (bytes == 0) {
                text[0] = ' ';
            } else {
                int quarter =
                    (int)((double)SHADES * (double)(bytes - 1) / (double)v.most_pair);
                text[0] = shades[quarter < SHADES ? quarter : SHADES - 1];
            }
            fprintf(out, "%*s", v.width, is_own ? "\\" : text);
        }
        fputc('\n', out);
    }
    fprintf(out, "a rank sends %s to %s\n", ZERO_BYTES(v.least_sent),
            ZERO_BYTES(v.most_sent));
    fprintf(out, "all send %s inside nodes, %s across\n", ZERO_BYTES(v.inside),
            ZERO_BYTES(v.across));
    if (l->size > NUMBERS && v.most_pair > 0)
        fprintf(out, "# is up to %s (%" PRId64 " bytes) from rank to rank\n",
                ZERO_BYTES(v.most_pair), v.most_pair);
}

zero_status zero_plan_show_peers(const zero_plan_report *r, FILE *out)
{
    ZERO_TRY(zero_plan_show_title(r, "bytes between ranks in", out));
    fputs(
        "\nbytes of data that a rank (row) sends to another (column) in a step; what one\n"
        "reads in another's memory counts as sent to it. Left out: losses, norms, votes.\n",
        out);
    if (r->layout.size > NUMBERS)
        fputs(
            "squares: . up to a quarter of the most, o a half, 0 three quarters, # more;\n"
            "blank: nothing; \\ the rank itself; | a border of nodes\n",
            out);
    for (int k = 0; k < r->n; k++) print_matrix(r, &r->stages[k], out);
    return ZERO_OK;
}

/* ---- JSON ---- */

json_t *zero_plan_peers_json(const zero_plan_report *r, const zero_plan_stage *stage)
{
    int n = r->layout.size;
    json_t *nodes = json_array(), *rows = json_array();
    for (int from = 0; from < n; from++) {
        json_t *row = json_array();
        for (int to = 0; to < n; to++)
            json_array_append_new(row, json_integer(stage->peers[(int64_t)from * n + to]));
        json_array_append_new(rows, row);
        json_array_append_new(nodes, json_integer(r->layout.node_of[from]));
    }
    return json_pack("{s:o, s:o}", "node_of", nodes, "bytes_sent", rows);
}
