#include "report/plan_facts.h"

#include "sharding/compile.h"
#include "sharding/schedule_peers.h"

zero_status zero_plan_rank_open(const zero_plan_report *r, int stage, int rank,
                                zero_plan_rank *of)
{
    const zero_model *part;
    *of = (zero_plan_rank){0};
    ZERO_TRY(zero_tp_find_place(&r->config.tp, zero_plan_stages(&r->config.plan),
                                &r->layout, rank, &of->place));
    zero_status st = zero_tp_cut(&r->config.tp, &r->model, rank, &of->made, &part);
    if (st == ZERO_OK) {
        zero_plan_input in = zero_plan_report_input(r, part, &of->place, stage);
        st = zero_schedule_compile(&of->schedule, &in);
    }
    if (st != ZERO_OK) zero_plan_rank_close(of);
    return st;
}

void zero_plan_rank_close(zero_plan_rank *of)
{
    zero_schedule_destroy(&of->schedule);
    zero_model_destroy(&of->made);
    zero_tp_place_destroy(&of->place);
}

zero_status zero_plan_peers_make(const zero_plan_report *r, int stage, int64_t **matrix)
{
    int n = r->layout.size;
    ZERO_INVALID_IF(n > ZERO_MOST_PEERS,
                    "--peers with --ranks %d: bytes from rank to rank are shown for "
                    "up to %d ranks; give fewer",
                    n, ZERO_MOST_PEERS);
    ZERO_TRY(zero_new(matrix, (size_t)n * (size_t)n, "pairs of ranks"));
    for (int rank = 0; rank < n; rank++) {
        /* Adds what `rank` moves, by its own program: with tensor parallelism parts of the
         * model differ, and with --partition owner the ranks' pieces do. */
        static const int64_t once[ZERO_PROGRAMS] = {[ZERO_PROGRAM_STEP] = 1};
        ZERO_AT_END(zero_plan_rank_close) zero_plan_rank of;
        zero_peer_bytes bytes = {0};
        ZERO_TRY(zero_plan_rank_open(r, stage, rank, &of));
        ZERO_TRY(zero_schedule_peers(&of.schedule, once, &bytes));
        zero_peers_add(n, *matrix, rank, &bytes);
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
