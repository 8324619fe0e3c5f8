#include "report/advice_network.h"

#include "lists/algorithm.h"
#include "plan/plan.h"
#include "report/text.h"
#include "sharding/compile.h"
#include "sharding/stages.h"

#define WORTH_SAYING 0.05 /* of a step */

/* The ranks of a node that shard together, as a number that --shard-ranks takes. */
static int ranks_of_a_node(const zero_schedule *plan)
{
    int here = zero_layout_local_size(zero_schedule_data_layout(plan), plan->input.rank);
    int R = 1;
    while (2 * R <= here && plan->input.n_ranks % (2 * R) == 0) R *= 2;
    return R;
}

static bool may_have_replicas(const zero_schedule *plan)
{
    const zero_plan_input *in = &plan->input;
    return in->stage > 0 && in->partition != ZERO_PARTITION_OWNER && !in->device &&
           ranks_of_a_node(plan) > 1 && plan->shard.size > ranks_of_a_node(plan);
}

static bool may_keep_parameters(const zero_plan_input *in)
{
    return zero_stage_at(in->stage)->parameters == ZERO_HOLD_PIECE && !in->device &&
           !in->node_parameters && zero_algorithm_get(in->collectives)->works_in_window;
}

bool zero_advice_may_spare(const zero_schedule *plan, const zero_plan_time *time)
{
    bool is_spread = zero_schedule_layout(plan)->n_nodes > 1;
    return is_spread && time->exposed - time->join_exposed > WORTH_SAYING * time->step &&
           (may_have_replicas(plan) || may_keep_parameters(&plan->input));
}

/* Groups within a node have no rate without --node-network. */
static bool has_rate(const zero_schedule *s, const zero_plan_machine *machine)
{
    return zero_schedule_layout(s)->n_nodes > 1 || machine->node_bandwidth > 0.0;
}

/* Bytes that a rank sends to other nodes in a step. */
static double sent_across(const zero_schedule *s)
{
    zero_plan_ledger l;
    zero_plan_add_up(s, &l);
    zero_traffic sum = l.reduce.traffic;
    zero_traffic_add(&sum, 1, &l.all_reduce.traffic);
    zero_traffic_add(&sum, 1, &l.gather.traffic);
    return (double)sum.bytes_sent[ZERO_ACROSS];
}

static void show_row(const char *what, const zero_schedule *s,
                     const zero_plan_machine *machine, FILE *out)
{
    zero_plan_time time;
    char needed[ZERO_PLAN_TEXT], across[ZERO_PLAN_TEXT], step[ZERO_PLAN_TEXT] = "-";
    if (zero_plan_time_step(s, machine, &time) != ZERO_OK) return;
    if (has_rate(s, machine)) snprintf(step, sizeof step, "%.4g", time.step);
    zero_text_bytes((double)zero_plan_needed(s), needed);
    zero_text_bytes(sent_across(s), across);
    fprintf(out, "  %-20s %13s %15s %13s\n", what, needed, across, step);
    if (!has_rate(s, machine)) fputs("  (-: give --node-network)\n", out);
}

/* Shows a plan that sends less to other nodes than `most` bytes; replicas may send as much. */
static void show_other(const char *what, const zero_plan_input *in,
                       const zero_plan_machine *machine, double most, FILE *out)
{
    zero_schedule s;
    if (zero_schedule_compile(&s, in) != ZERO_OK) return;
    if (sent_across(&s) < most)
        show_row(what, &s, machine, out);
    else
        fprintf(out, "  %-20s %13s %15s\n", what, "-", "not less");
    zero_schedule_destroy(&s);
}

void zero_advice_show_network(const zero_schedule *plan, const zero_plan_machine *machine,
                              FILE *out)
{
    zero_plan_input in = plan->input;
    double most = sent_across(plan);
    char what[32];
    fprintf(out, "\n%-22s %13s %15s %13s\n", "to spare the network", "needed",
            "to other nodes", "seconds/step");
    show_row("as given", plan, machine, out);
    if (may_keep_parameters(&in)) {
        in.node_parameters = 1;
        show_other("--node-parameters", &in, machine, most, out);
        in.node_parameters = 0;
    }
    if (!may_have_replicas(plan)) return;
    in.shard_ranks = ranks_of_a_node(plan);
    in.node_parameters = 0;
    snprintf(what, sizeof what, "--shard-ranks %d", in.shard_ranks);
    show_other(what, &in, machine, most, out);
}
