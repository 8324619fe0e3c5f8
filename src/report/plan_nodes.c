#include "report/plan_nodes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/number.h"
#include "report/json_put.h"
#include "report/plan_facts.h"

/* ---- planning ---- */

static int ranks_of(const zero_plan_report *r)
{
    return r->layout.size / r->layout.n_nodes;
}

static int threads_of(const zero_plan_report *r)
{
    return (int)zero_max(r->config.plan.threads, 1);
}

/* The same machine and sequences per node, and none of the other pictures. */
static zero_plan_request request_of(const zero_plan_report *r, const zero_node_row *row)
{
    const zero_plan_machine *m = &r->request.machine;
    const double share = (double)ranks_of(r) / (double)row->ranks;
    zero_plan_request o = {.config = r->request.config,
                           .n_ranks = r->layout.n_nodes * row->ranks,
                           .has_time = r->request.has_time,
                           .has_network = r->request.has_network,
                           .has_disk = r->request.has_disk,
                           .machine = *m};
    o.config.plan.stage = zero_plan_stage_number(&r->stages[0]);
    o.config.fake_nodes = r->layout.n_nodes;
    o.config.plan.threads = row->threads;
    o.config.global_batch = r->config.global_batch;
    o.config.plan.micro_batch = row->micro_batch;
    o.machine.flops *= (double)row->threads / threads_of(r);
    o.machine.bandwidth *= share;
    o.machine.node_bandwidth *= share;
    return o;
}

static zero_status add_node(const zero_plan_report *r, zero_node_row *row)
{
    zero_plan_input in = r->stages[0].schedule.input;
    row->time = r->stages[0].time;
    row->is_possible = true;
    for (in.rank = 0; in.rank < row->ranks; in.rank++) {
        zero_plan_ledger l;
        ZERO_TRY(zero_plan_measure(&in, &l));
        zero_traffic sum = zero_plan_data_of(&l).traffic;
        row->needed += (int64_t)l.needed;
        row->across += zero_traffic_sent_to(&sum, ZERO_ACROSS);
        row->inside += zero_traffic_sent_to(&sum, ZERO_INSIDE);
        row->messages += sum.messages_sent[ZERO_ACROSS];
    }
    return ZERO_OK;
}

/* A row that cannot be planned says why, beside those that can. */
static zero_status make_row(const zero_plan_report *r, int cores, int ranks,
                            zero_node_row *row)
{
    zero_plan_report other;
    const int64_t sequences = r->config.plan.micro_batch * ranks_of(r);
    *row = (zero_node_row){
        .ranks = ranks, .threads = cores / ranks, .micro_batch = sequences / ranks};
    if (sequences % ranks != 0) {
        snprintf(row->why_not, sizeof row->why_not,
                 "%d ranks cannot share a node's %" PRId64 " sequences", ranks, sequences);
        return ZERO_OK;
    }
    const zero_plan_request o = request_of(r, row);
    zero_status st = zero_plan_report_make(&other, &o);
    if (st == ZERO_OK) {
        st = add_node(&other, row);
        zero_plan_report_destroy(&other);
    }
    if (st != ZERO_ERR_INVALID) return st;
    snprintf(row->why_not, sizeof row->why_not, "%s", zero_last_error());
    row->is_possible = false;
    return ZERO_OK;
}

zero_status zero_plan_nodes_make(const zero_plan_report *r, int n, const int *ranks,
                                 zero_plan_nodes *nodes)
{
    const int cores = ranks_of(r) * threads_of(r); /* of a node */
    *nodes = (zero_plan_nodes){.n = 1 + n, .cores = cores};
    if (r->config.tp.ranks > 1 || zero_config_has_device(&r->config))
        return zero_fail(
            ZERO_ERR_INVALID,
            "--ranks-per-node with --%s: threads do not stand for ranks there; "
            "give one of them",
            r->config.tp.ranks > 1 ? "tp" : "device");
    if (r->layout.size % r->layout.n_nodes != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--ranks-per-node: %d ranks on %d nodes are not equally many on "
                         "each; choose --ranks that --fake-nodes divides",
                         r->layout.size, r->layout.n_nodes);
    for (int i = 0; i < n; i++)
        if (ranks[i] < 1 || cores % ranks[i] != 0)
            return zero_fail(ZERO_ERR_INVALID,
                             "--ranks-per-node %d: a node has %d cores (--ranks %d on %d "
                             "nodes, --threads %d); choose numbers that divide them",
                             ranks[i], cores, r->layout.size, r->layout.n_nodes,
                             threads_of(r));
    zero_node_row *own = &nodes->rows[0];
    *own = (zero_node_row){.ranks = ranks_of(r),
                           .threads = threads_of(r),
                           .micro_batch = r->config.plan.micro_batch};
    ZERO_TRY(add_node(r, own));
    for (int i = 0; i < n; i++) ZERO_TRY(make_row(r, cores, ranks[i], &nodes->rows[1 + i]));
    return ZERO_OK;
}

/* ---- showing ---- */

zero_status zero_plan_show_nodes(const zero_plan_report *r, const zero_plan_nodes *nodes,
                                 bool json, FILE *out)
{
    json_t *object = zero_plan_setup_facts(r), *rows = json_array();
    for (int i = 0; i < nodes->n; i++) {
        const zero_node_row *row = &nodes->rows[i];
        json_t *one =
            json_pack("{s:i, s:i}", "ranks_per_node", row->ranks, "threads", row->threads);
        json_array_append_new(rows, one);
        if (!row->is_possible) {
            put_text(one, "not_possible", row->why_not);
            continue;
        }
        put_whole(one, "micro_batch", row->micro_batch);
        put_whole(one, "needed", row->needed);
        put_whole(one, "bytes_sent_to_nodes", row->across);
        put_whole(one, "messages_to_nodes", row->messages);
        put_whole(one, "bytes_sent_within", row->inside);
        if (!r->request.has_time) continue;
        put_real(one, "step_seconds", row->time.step);
        put_real(one, "exposed_seconds", row->time.exposed);
    }
    put_whole(object, "stage", zero_plan_stage_number(&r->stages[0]));
    put_whole(object, "cores_per_node", nodes->cores);
    json_object_set_new(object, "per_node", rows);
    return json ? zero_json_print(object, JSON_INDENT(2), out)
                : zero_report_print("nodes", object, out);
}
