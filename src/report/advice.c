#include "report/advice.h"

#include "report/plan_report.h"
#include "report/text.h"
#include "sharding/compile.h"
#include "sharding/schedule_memory.h"
#include "sharding/stages.h"

#define MOST_RANKS 16384

/* The table must come at once, whatever the shape. Up to this much work plans are compiled;
 * after that only their bounds are shown. In units of one comparison; half a second's, with
 * the bounds. */
#define MOST_WORK 1e8

/* Each block of the file is a buffer, in the bounds of a plan, too. Models with more
 * blocks, of 26 G parameters, get no row for --offload. */
#define MOST_BLOCKS 100000

/* What is shown, and what it may cost. */
typedef struct {
    zero_plan_input plan; /* memory does not grow beyond two microbatches */
    bool is_auto;
    zero_advice_room room;
    FILE *out;
    double *work; /* done so far; shared by copies */
} advice;

/* The bytes that a stage needs. */
typedef struct {
    size_t bytes;        /* 0: it cannot be planned */
    bool is_least;       /* only a bound from below is known */
    bool is_beyond_host; /* with a device's room: the host's is too small */
} need;

/* With `is_row` the exact bytes are wanted of a plan that does not fit, too. Compiling
 * takes time with the square of the number of instructions while these are few
 * (schedule_memory.h), then in proportion. */
static need need_of(const advice *a, const zero_plan_input *in, bool is_row)
{
    const zero_advice_room *room = &a->room;
    zero_plan_bound least;
    zero_plan_ledger l;
    *a->work += in->model->n_units;
    if (*a->work > 2.0 * MOST_WORK) return (need){0};
    if (zero_plan_least(in, &least) != ZERO_OK) return (need){0};
    const need bound = {room->of_device ? least.device_bytes : least.bytes, true, false};
    int64_t n = least.instructions;
    double work = *a->work + (double)n * (double)zero_min(n, ZERO_PLACES_AT_ONCE);
    if ((bound.bytes > room->limit && !is_row) || work > MOST_WORK) return bound;
    *a->work = work;
    if (zero_plan_measure(in, &l) != ZERO_OK) return (need){0};
    return (need){room->of_device ? l.device_needed : l.needed, false,
                  room->of_device && room->host > 0 && l.needed > room->host};
}

static bool is_fit(const advice *a, const need *n)
{
    return n->bytes > 0 && n->bytes <= a->room.limit && !n->is_least && !n->is_beyond_host;
}

/* Returns whether a stage fits. */
static bool measure(const advice *a, zero_plan_input in, bool is_row,
                    need needs[ZERO_STAGE_COUNT])
{
    bool fits = false;
    int keeps = in.node_parameters;
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        in.stage = stage;
        in.node_parameters = keeps && zero_stage_at(stage)->parameters == ZERO_HOLD_PIECE;
        needs[stage] = need_of(a, &in, is_row);
        fits = fits || is_fit(a, &needs[stage]);
    }
    return fits;
}

static void show(const advice *a, const char *what, const need needs[ZERO_STAGE_COUNT])
{
    fprintf(a->out, "  %-38s", what);
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        const need *n = &needs[stage];
        char text[ZERO_PLAN_TEXT + 1];
        zero_print(text, "%s%s", n->is_least ? ">" : "",
                   n->bytes > 0 ? ZERO_BYTES(n->bytes) : "-");
        fprintf(a->out, " %13s%s", text, is_fit(a, n) ? "*" : " ");
    }
    fputc('\n', a->out);
}

static void measure_and_show(const advice *a, zero_plan_input in, const char *what)
{
    need needs[ZERO_STAGE_COUNT];
    measure(a, in, true, needs);
    show(a, what, needs);
}

/* The row only if a stage fits: slots take memory that a small model does not have to
 * spare. */
static bool show_offload(const advice *a, zero_plan_input in, bool recompute, bool to_host)
{
    need needs[ZERO_STAGE_COUNT];
    char what[64];
    in.recompute = recompute;
    in.offload_host = to_host;
    if (in.offload == ZERO_OFFLOAD_OFF) in.offload = ZERO_OFFLOAD_LAZY;
    if (!to_host && in.model->n_params / ZERO_OFFLOAD_BLOCK > MOST_BLOCKS) return false;
    if (!measure(a, in, false, needs)) return false;
    zero_print(what, "--offload %s%s", to_host ? "host" : "DIR",
               recompute && !a->plan.recompute ? " --recompute" : "");
    show(a, what, needs);
    return true;
}

/* The first tier that helps below that of the plan: with a device first the host's
 * memory. */
static void show_offloads(const advice *a)
{
    const zero_plan_input *in = &a->plan;
    bool may_host = in->device && !in->offload_host;
    if (zero_plan_uses_file(in) || in->forward_only) return;
    for (int recompute = in->recompute; recompute <= 1; recompute++)
        if ((may_host && show_offload(a, *in, recompute, true)) ||
            show_offload(a, *in, recompute, false))
            return;
}

/* The same global batch in smaller pieces. */
static zero_plan_input with_micro_batch(const advice *a, int64_t micro)
{
    zero_plan_input in = a->plan;
    int64_t times = in.micro_batch / micro, all = in.accumulation * times;
    in.micro_batch = micro;
    if (in.reproducible)
        in.accumulation = all <= ZERO_CONFIG_ACCUMULATION ? (int)all : 0; /* 0: refused */
    else if (times > 1)
        in.accumulation = 2;
    return in;
}

/* The largest smaller one that fits in some stage, else 1. */
static void show_micro_batch(const advice *a)
{
    need needs[ZERO_STAGE_COUNT];
    char what[64];
    int64_t parts = 2, all = a->plan.micro_batch;
    if (all == 1) return;
    for (; parts < all; parts++)
        if (all % parts == 0 && measure(a, with_micro_batch(a, all / parts), false, needs))
            break;
    zero_plan_input in = with_micro_batch(a, all / parts);
    zero_print(what, "--micro-batch %" PRId64, in.micro_batch);
    measure_and_show(a, in, what);
    if (in.recompute) return;
    in.recompute = true;
    zero_print(what, "--micro-batch %" PRId64 " --recompute", in.micro_batch);
    measure_and_show(a, in, what);
}

static bool has_replicas(const zero_plan_input *in)
{
    return in->shard_ranks > 0 && in->shard_ranks < in->n_ranks;
}

/* The first number of ranks that helps `in`, on as many times the nodes, if one does.
 * `options` says how `in` differs. */
static bool show_ranks(const advice *a, zero_plan_input in, const char *options)
{
    const int ranks = in.n_ranks, nodes = in.layout ? in.layout->n_nodes : ranks;
    in.world_layout = NULL; /* as even as the blocks */
    in.rank = 0;
    for (int times = 2; times <= MOST_RANKS / ranks; times *= 2) {
        need needs[ZERO_STAGE_COUNT];
        zero_plan_input more = in;
        char what[64];
        const char *why;
        zero_layout layout;
        if (zero_layout_init_blocks(&layout, times * ranks, times * nodes) != ZERO_OK)
            continue;
        more.n_ranks = layout.size;
        more.layout = &layout;
        /* As on all ranks: a node has TP groups, so several ranks. */
        bool is_shared = in.model->share.ranks > 1 && layout.n_nodes > 1;
        if (a->is_auto)
            more.collectives = is_shared && in.collectives != ZERO_ALGORITHM_P2P
                                   ? ZERO_ALGORITHM_HIER
                                   : zero_algorithm_choose(&layout, &why);
        bool fits = measure(a, more, false, needs);
        zero_layout_destroy(&layout);
        if (!fits) continue;
        zero_print(what, "%d ranks%s", times * ranks * in.model->share.ranks, options);
        show(a, what, needs);
        return true;
    }
    return false;
}

void zero_advice_show(const zero_plan_input *plan, bool is_auto, zero_advice_room room,
                      FILE *out)
{
    double work = 0.0;
    advice a = {*plan, is_auto, room, out, &work};
    if (!plan->reproducible && plan->accumulation > 2) a.plan.accumulation = 2;
    fprintf(out,
            "bytes %s; * fits the %s; > at least; twice the ranks are on twice the nodes\n "
            " %-38s %13s",
            room.of_device ? "of the device" : "per rank", ZERO_BYTES(room.limit), "",
            "--stage 0");
    for (int stage = 1; stage < ZERO_STAGE_COUNT; stage++) fprintf(out, " %14d", stage);
    fputc('\n', out);
    zero_plan_input recomputed = a.plan;
    recomputed.recompute = true;
    measure_and_show(&a, a.plan, "as given");
    if (!plan->recompute) measure_and_show(&a, recomputed, "--recompute");
    show_offloads(&a);
    show_micro_batch(&a);
    /* Both options spend memory to spare the network. */
    zero_plan_input in = a.plan;
    in.node_parameters = 0;
    if (a.plan.node_parameters) measure_and_show(&a, in, "without --node-parameters");
    in.shard_ranks = 0;
    if (has_replicas(&a.plan))
        measure_and_show(&a, in,
                         a.plan.node_parameters ? "without both" : "without --shard-ranks");
    /* More ranks: the plan as given, then with all that saves activations. */
    zero_plan_input given = a.plan, few = with_micro_batch(&a, 1);
    given.shard_ranks = few.shard_ranks = 0; /* more replicas are no smaller */
    few.recompute = true;
    if (has_replicas(&a.plan)) fputs("  also without --shard-ranks:\n", out);
    if (!show_ranks(&a, given, "") && !show_ranks(&a, few, " --micro-batch 1 --recompute"))
        fprintf(out, "  no number of ranks up to %d is known to help\n", MOST_RANKS);
}

/* ---- the network ---- */

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
    zero_plan_exchange data = zero_plan_data_of(&l);
    return (double)zero_traffic_sent_to(&data.traffic, ZERO_ACROSS);
}

static void show_row(const char *what, const zero_schedule *s,
                     const zero_plan_machine *machine, FILE *out)
{
    zero_plan_time time;
    char needed[ZERO_PLAN_TEXT], across[ZERO_PLAN_TEXT], step[ZERO_PLAN_TEXT] = "-";
    if (zero_plan_time_step(s, machine, &time) != ZERO_OK) return;
    if (has_rate(s, machine)) zero_print(step, "%.4g", time.step);
    zero_text_bytes((double)zero_plan_needed(s), needed);
    zero_text_bytes(sent_across(s), across);
    fprintf(out, "  %-20s %13s %15s %13s\n", what, needed, across, step);
    if (!has_rate(s, machine)) fputs("  (-: give --node-network)\n", out);
}

/* Shows a plan that sends less to other nodes than `most` bytes; replicas may send as
 * much. */
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
        fputs("  (as FCDP, arXiv 2602.06499; ZeRO++'s hpZ gathers again inside the node)\n",
              out);
        in.node_parameters = 0;
    }
    if (!may_have_replicas(plan)) return;
    in.shard_ranks = ranks_of_a_node(plan);
    in.node_parameters = 0;
    zero_print(what, "--shard-ranks %d", in.shard_ranks);
    show_other(what, &in, machine, most, out);
}
