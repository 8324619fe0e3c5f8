/* The ledger of collectives: bytes and messages of all programs walked, planned and
 * measured. */
#include "engine/engine.h"
#include "sharding/schedule_exchange.h"

zero_traffic zero_engine_planned_traffic(const zero_engine *e, zero_op op)
{
    zero_traffic sum = {0};
    for (zero_program_kind p = 0; p < ZERO_PROGRAMS; p++) {
        zero_traffic one = zero_schedule_traffic(&e->schedule, p, op);
        zero_traffic_add(&sum, e->runner.walks[p], &one);
    }
    return sum;
}

zero_traffic zero_engine_planned_control(const zero_engine *e)
{
    zero_traffic sum = {0};
    for (zero_program_kind p = 0; p < ZERO_PROGRAMS; p++) {
        zero_traffic one = zero_schedule_control_traffic(&e->schedule, p);
        zero_traffic_add(&sum, e->runner.walks[p], &one);
    }
    zero_traffic compare = zero_schedule_compare_traffic(&e->schedule);
    zero_traffic_add(&sum, e->runner.compares, &compare);
    return sum;
}

/* A replica group has no collectives but those of ALL_REDUCEs. */
static bool is_kind_of(zero_collective_kind kind, zero_op op)
{
    if (zero_ops[op].among == ZERO_REPLICA_GROUP) return true;
    const zero_collective_kind *kinds =
        op == ZERO_OP_REDUCE ? zero_reduce_kinds : zero_gather_kinds;
    for (int k = 0; k < ZERO_PARTITION_SCHEMES; k++)
        if (kinds[k] == kind) return true;
    return false;
}

static void add_measured(const zero_traffic *moved, const zero_duration *spent,
                         zero_traffic *traffic, zero_duration *duration)
{
    zero_traffic_add(traffic, 1, moved);
    duration->total += spent->total;
    duration->exposed += spent->exposed;
}

void zero_engine_measured_traffic(const zero_engine *e, zero_op op, zero_traffic *traffic,
                                  zero_duration *duration)
{
    const zero_runner *r = &e->runner;
    *traffic = (zero_traffic){0};
    *duration = (zero_duration){0};
    /* The collectives of JOINs or of COLLECTs, of SENDs or of RECEIVEs. Their group has
     * both, so its sums do not tell them apart. */
    bool is_by_form =
        zero_ops[op].among == ZERO_TP_GROUP || zero_ops[op].among == ZERO_PIPE_GROUP;
    for (int j = 0; is_by_form && j < zero_exchange_count(r->schedule, op); j++) {
        const zero_runner_exchange *join = &r->exchanges[op][j];
        if (!zero_exchange_is_used(r->schedule, op, j)) continue;
        for (int k = 0; k < join->n; k++)
            add_measured(&join->ops[k].traffic, &join->ops[k].duration, traffic, duration);
    }
    /* ALL_REDUCE works in the replica group, REDUCE and GATHER in the shard group.
     * NULL without replicas. */
    const zero_comm *group = is_by_form ? NULL : r->groups[zero_ops[op].among];
    for (int k = 0; group && k < ZERO_COLLECTIVE_KINDS; k++)
        if (is_kind_of((zero_collective_kind)k, op))
            add_measured(&group->traffic[k], &group->duration[k], traffic, duration);
}
