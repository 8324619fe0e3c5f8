#include "report/plan_peers.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
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

static zero_plan_input input_of(const zero_plan_report *r, const zero_model *part,
                                const zero_tp_place *p, int stage)
{
    const zero_layout *group = p->group.size > 1 ? &p->group : NULL;
    zero_config_place place = {p->rank, &p->data, group, &r->layout};
    zero_plan_input in = zero_config_plan(&r->config, part, r->collectives, place);
    in.stage = stage;
    return in;
}

static zero_status count_part(const zero_plan_input *in, zero_peer_bytes *bytes)
{
    static const int64_t once[ZERO_PROGRAMS] = {[ZERO_PROGRAM_STEP] = 1};
    zero_schedule s;
    ZERO_TRY(zero_schedule_compile(&s, in));
    zero_status st = zero_schedule_peers(&s, once, bytes);
    zero_schedule_destroy(&s);
    return st;
}

/* Adds what `rank` moves, by its own program: with tensor parallelism parts of the model
 * differ, and with --partition owner the ranks' pieces do. */
static zero_status count_rank(const zero_plan_report *r, int stage, int rank,
                              int64_t *matrix)
{
    zero_tp_place place;
    zero_model made;
    const zero_model *part;
    zero_peer_bytes bytes = {0};
    ZERO_TRY(zero_tp_find_place(&r->config.tp, &r->layout, rank, &place));
    zero_status st = zero_tp_cut(&r->config.tp, &r->model, rank, &made, &part);
    if (st == ZERO_OK) {
        zero_plan_input in = input_of(r, part, &place, stage);
        st = count_part(&in, &bytes);
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
        return zero_fail(
            ZERO_ERR_INVALID,
            "--peers with --ranks %d: bytes from rank to rank are shown for up "
            "to %d ranks; give fewer",
            n, ZERO_MOST_PEERS);
    int64_t *made = calloc((size_t)n * (size_t)n, sizeof *made);
    if (!made) return zero_fail(ZERO_ERR_NOMEM, "no memory for %d ranks", n);
    for (int rank = 0; st == ZERO_OK && rank < n; rank++)
        st = count_rank(r, stage, rank, made);
    if (st == ZERO_OK)
        *matrix = made;
    else
        free(made);
    return st;
}

/* ---- the picture ---- */

/* Sums over a matrix. */
typedef struct {
    int64_t inside, across;                   /* of nodes */
    int64_t least_sent, most_sent, most_pair; /* of a rank; of a cell */
} sums;

static sums add_up(const zero_plan_report *r, const int64_t *matrix)
{
    const zero_layout *l = &r->layout;
    sums s = {.least_sent = INT64_MAX};
    for (int from = 0; from < l->size; from++) {
        int64_t row = 0;
        for (int to = 0; to < l->size; to++) {
            int64_t bytes = matrix[(int64_t)from * l->size + to];
            bool is_near = l->node_of[from] == l->node_of[to];
            *(is_near ? &s.inside : &s.across) += bytes;
            if (bytes > s.most_pair) s.most_pair = bytes;
            row += bytes;
        }
        if (row < s.least_sent) s.least_sent = row;
        if (row > s.most_sent) s.most_sent = row;
    }
    return s;
}

/* True if a line between nodes stands before this rank. */
static bool begins_node(const zero_layout *l, int rank)
{
    return rank > 0 && l->n_nodes < l->size && l->node_of[rank] != l->node_of[rank - 1];
}

static int borders(const zero_layout *l)
{
    int n = 0;
    for (int r = 1; r < l->size; r++) n += begins_node(l, r);
    return n;
}

/* Columns of a cell, its border apart. */
static int width_of(const zero_layout *l, bool *has_borders)
{
    int room = COLUMNS - LABEL, n = borders(l);
    if (l->size <= NUMBERS) {
        *has_borders = true;
        return 11;
    }
    *has_borders = 2 * l->size + 2 * n <= room || l->size + n <= room;
    if (2 * l->size + (*has_borders ? 2 * n : 0) <= room) return 2;
    return 1;
}

/* A square's shade: the quarter of the most that its bytes reach. */
static char shade(int64_t bytes, int64_t most)
{
    if (bytes == 0) return ' ';
    int k = (int)((double)SHADES * (double)(bytes - 1) / (double)most);
    return shades[k < SHADES ? k : SHADES - 1];
}

static void print_cell(int64_t bytes, bool is_own, const sums *s, int width, FILE *out)
{
    char text[ZERO_PLAN_TEXT] = "-";
    if (width > 2 && bytes > 0) zero_text_bytes((double)bytes, text);
    if (width > 2)
        fprintf(out, "%*s", width, is_own ? "\\" : text);
    else
        fprintf(out, "%*c", width, is_own ? '\\' : shade(bytes, s->most_pair));
}

static void print_row(const zero_plan_report *r, const int64_t *row, int from,
                      const sums *s, FILE *out)
{
    const zero_layout *l = &r->layout;
    bool has_borders;
    int width = width_of(l, &has_borders);
    fprintf(out, "%*d ", LABEL - 1, from);
    for (int to = 0; to < l->size; to++) {
        if (has_borders && begins_node(l, to)) fprintf(out, "%*c", width > 1 ? 2 : 1, '|');
        print_cell(row[to], to == from, s, width, out);
    }
    fputc('\n', out);
}

/* Numbers of ranks above the columns: all of a table, each eighth of squares. */
static void print_heading(const zero_plan_report *r, FILE *out)
{
    const zero_layout *l = &r->layout;
    bool has_borders;
    int width = width_of(l, &has_borders), room = 0;
    fprintf(out, "%*s ", LABEL - 1, "from\\to");
    for (int to = 0; to < l->size; to++) {
        room += width;
        if (has_borders && begins_node(l, to)) room += width > 1 ? 2 : 1;
        if (width < 3 && to % 8 != 0) continue;
        fprintf(out, "%*d", room, to);
        room = 0;
    }
    fputc('\n', out);
}

static void print_matrix(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    int n = r->layout.size;
    sums s = add_up(r, stage->peers);
    char texts[5][ZERO_PLAN_TEXT];
    const int64_t values[] = {s.least_sent, s.most_sent, s.inside, s.across, s.most_pair};
    for (int k = 0; k < 5; k++) zero_text_bytes((double)values[k], texts[k]);
    fprintf(out, "\nstage %d\n", zero_plan_stage_number(stage));
    print_heading(r, out);
    for (int from = 0; from < n; from++)
        print_row(r, stage->peers + (int64_t)from * n, from, &s, out);
    fprintf(out, "a rank sends %s to %s\n", texts[0], texts[1]);
    fprintf(out, "all send %s inside nodes, %s across\n", texts[2], texts[3]);
    if (n > NUMBERS && s.most_pair > 0)
        fprintf(out, "# is up to %s (%" PRId64 " bytes) from rank to rank\n", texts[4],
                s.most_pair);
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
