#include "report/plan_facts.h"

#include "base/fail.h"
#include "base/grow.h"
#include "sharding/compile.h"
#include "sharding/schedule_peers.h"

zero_status zero_plan_peers_make(const zero_plan_report *r, int stage, int64_t **matrix)
{
    int n = r->layout.size;
    if (n > ZERO_MOST_PEERS)
        return zero_fail(ZERO_ERR_INVALID,
                         "--peers with --ranks %d: bytes from rank to rank are shown for "
                         "up to %d ranks; give fewer",
                         n, ZERO_MOST_PEERS);
    ZERO_TRY(zero_new(matrix, (size_t)n * (size_t)n, "pairs of ranks"));
    for (int rank = 0; rank < n; rank++) {
        /* Adds what `rank` moves, by its own program: with tensor parallelism parts of the
         * model differ, and with --partition owner the ranks' pieces do. */
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
        if (st == ZERO_OK) zero_peers_add(n, *matrix, rank, &bytes);
        ZERO_TRY(st);
    }
    return ZERO_OK;
}

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
