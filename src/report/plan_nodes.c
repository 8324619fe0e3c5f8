#include "report/plan_facts.h"

#include "report/json_put.h"

/* ---- planning ---- */

static int ranks_of(const zero_plan_report *r)
{
    return r->layout.size / r->layout.n_nodes;
}

static int threads_of(const zero_plan_report *r)
{
    return (int)zero_max(r->config.plan.threads, 1);
}

/* The sums over the ranks of node 0: bytes of memory; of data of a step, without small
 * messages, what is sent to other nodes, and within the node or read there through a
 * window. */
static zero_status put_node(const zero_plan_report *r, json_t *row)
{
    zero_plan_input in = r->stages[0].schedule.input;
    const zero_plan_time *time = &r->stages[0].time;
    int64_t needed = 0, across = 0, inside = 0, messages = 0;
    for (in.rank = 0; in.rank < ranks_of(r); in.rank++) {
        zero_plan_ledger l;
        ZERO_TRY(zero_plan_measure(&in, &l));
        zero_traffic sum = zero_plan_data_of(&l).traffic;
        needed += (int64_t)l.needed;
        across += zero_traffic_sent_to(&sum, ZERO_ACROSS);
        inside += zero_traffic_sent_to(&sum, ZERO_INSIDE);
        messages += sum.messages_sent[ZERO_ACROSS];
    }
    zero_put_members(row, "{s:I, s:I, s:I, s:I, s:I}", "micro_batch",
                     r->config.plan.micro_batch, "needed", needed, "bytes_sent_to_nodes",
                     across, "messages_to_nodes", messages, "bytes_sent_within", inside);
    if (r->request.has_time)
        zero_put_members(row, "{s:f, s:f}", "step_seconds", time->step, "exposed_seconds",
                         time->exposed);
    return ZERO_OK;
}

/* A row that cannot be planned says why, beside those that can. */
static zero_status put_other(const zero_plan_report *r, int ranks, int threads, json_t *row)
{
    zero_plan_report other;
    char why[128];
    const int64_t sequences = r->config.plan.micro_batch * ranks_of(r);
    /* The same machine and sequences per node, and none of the other pictures. */
    const zero_plan_machine *m = &r->request.machine;
    const double share = (double)ranks_of(r) / (double)ranks;
    zero_plan_request o = {.config = r->request.config,
                           .n_ranks = r->layout.n_nodes * ranks,
                           .has_time = r->request.has_time,
                           .has_network = r->request.has_network,
                           .has_disk = r->request.has_disk,
                           .machine = *m};
    o.config.plan.stage = zero_plan_stage_number(&r->stages[0]);
    o.config.fake_nodes = r->layout.n_nodes;
    o.config.plan.threads = threads;
    o.config.global_batch = r->config.global_batch;
    o.config.plan.micro_batch = r->config.plan.micro_batch * ranks_of(r) / ranks;
    o.machine.flops *= (double)threads / threads_of(r);
    o.machine.bandwidth *= share;
    o.machine.node_bandwidth *= share;
    if (sequences % ranks != 0) {
        zero_print(why, "%d ranks cannot share a node's %" PRId64 " sequences", ranks,
                   sequences);
        zero_put_string(row, "not_possible", why);
        return ZERO_OK;
    }
    zero_status st = zero_plan_report_make(&other, &o);
    if (st == ZERO_OK) {
        st = put_node(&other, row);
        zero_plan_report_destroy(&other);
    }
    if (st != ZERO_ERR_INVALID) return st;
    zero_put_string(row, "not_possible", zero_last_error());
    return ZERO_OK;
}

zero_status zero_plan_nodes_make(const zero_plan_report *r, int n, const int *ranks,
                                 json_t **facts)
{
    const int cores = ranks_of(r) * threads_of(r); /* of a node */
    ZERO_INVALID_IF(r->config.tp.ranks > 1 || zero_config_has_device(&r->config),
                    "--ranks-per-node with --%s: threads do not stand for ranks "
                    "there; give one of them",
                    r->config.tp.ranks > 1 ? "tp" : "device");
    ZERO_INVALID_IF(r->layout.size % r->layout.n_nodes != 0,
                    "--ranks-per-node: %d ranks on %d nodes are not equally many on "
                    "each; choose --ranks that --fake-nodes divides",
                    r->layout.size, r->layout.n_nodes);
    for (int i = 0; i < n; i++)
        ZERO_INVALID_IF(ranks[i] < 1 || cores % ranks[i] != 0,
                        "--ranks-per-node %d: a node has %d cores (--ranks %d on %d "
                        "nodes, --threads %d); choose numbers that divide them",
                        ranks[i], cores, r->layout.size, r->layout.n_nodes, threads_of(r));
    json_t *object = zero_plan_setup_facts(r), *rows = json_array();
    zero_put_members(object, "{s:i, s:i, s:o}", "stage",
                     zero_plan_stage_number(&r->stages[0]), "cores_per_node", cores,
                     "per_node", rows);
    zero_status st = ZERO_OK;
    for (int i = -1; i < n && st == ZERO_OK; i++) {
        const int own = i < 0 ? ranks_of(r) : ranks[i], threads = cores / own;
        json_t *row = json_pack("{s:i, s:i}", "ranks_per_node", own, "threads", threads);
        json_array_append_new(rows, row);
        st = i < 0 ? put_node(r, row) : put_other(r, own, threads, row);
    }
    if (st == ZERO_OK)
        *facts = object;
    else
        json_decref(object);
    return st;
}
