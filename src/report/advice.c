#include "report/advice.h"

#include <inttypes.h>

#include "base/number.h"
#include "plan/plan.h"
#include "report/text.h"
#include "sharding/schedule_places.h"
#include "sharding/stages.h"
#include "train/config.h"

#define MOST_RANKS 16384

/* The table must come at once, whatever the shape. Up to this much work plans are compiled; after
 * that only their bounds are shown. In units of one comparison; half a second's, with the bounds. */
#define MOST_WORK 1e8

/* Each block of the file is a buffer, in the bounds of a plan, too. Models with more blocks, of 26 G
 * parameters, get no row for --offload. */
#define MOST_BLOCKS 100000

struct advice {
    zero_plan_input plan; /* memory does not grow beyond two microbatches */
    bool is_auto;
    zero_advice_room room;
    FILE *out;
    double *work; /* done so far; shared by copies */
};

/* The bytes that a stage needs. */
struct need {
    size_t bytes;        /* 0: it cannot be planned */
    bool is_least;       /* only a bound from below is known */
    bool is_beyond_host; /* with a device's room: the host's is too small */
};

static struct advice advice_of(const zero_plan_input *plan, bool is_auto,
                               zero_advice_room room, FILE *out, double *work)
{
    struct advice a = {*plan, is_auto, room, out, work};
    if (!plan->reproducible && plan->accumulation > 2) a.plan.accumulation = 2;
    return a;
}

/* Compiling takes time with the square of the number of instructions while these are few
 * (schedule_places.h), then in proportion. */
static double work_of(int64_t instructions)
{
    return (double)instructions * (double)zero_min(instructions, ZERO_PLACES_AT_ONCE);
}

static bool is_affordable(const struct advice *a, int64_t instructions)
{
    double work = *a->work + work_of(instructions);
    if (work > MOST_WORK) return false;
    *a->work = work;
    return true;
}

/* With `is_row` the exact bytes are wanted of a plan that does not fit, too. */
static struct need need_of(const struct advice *a, const zero_plan_input *in, bool is_row)
{
    struct need need = {.is_least = true};
    bool of_device = a->room.of_device;
    zero_plan_bound least;
    zero_plan_ledger l;
    *a->work += in->model->n_units;
    if (*a->work > 2.0 * MOST_WORK) return (struct need){0};
    if (zero_plan_least(in, &least) != ZERO_OK) return (struct need){0};
    need.bytes = of_device ? least.device_bytes : least.bytes;
    if (need.bytes > a->room.limit && !is_row) return need;
    if (!is_affordable(a, least.instructions)) return need;
    if (zero_plan_measure(in, &l) != ZERO_OK) return (struct need){0};
    return (struct need){.bytes = of_device ? l.device_needed : l.needed,
                         .is_beyond_host =
                             of_device && a->room.host > 0 && l.needed > a->room.host};
}

static bool is_fit(const struct advice *a, const struct need *need)
{
    return need->bytes > 0 && need->bytes <= a->room.limit && !need->is_least &&
           !need->is_beyond_host;
}

/* Returns whether a stage fits. */
static bool measure(const struct advice *a, zero_plan_input in, bool is_row,
                    struct need needs[ZERO_STAGE_COUNT])
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

static void show(const struct advice *a, const char *what,
                 const struct need needs[ZERO_STAGE_COUNT])
{
    fprintf(a->out, "  %-38s", what);
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        const struct need *need = &needs[stage];
        char number[ZERO_PLAN_TEXT] = "-", text[ZERO_PLAN_TEXT + 1];
        if (need->bytes > 0) zero_text_bytes((double)need->bytes, number);
        snprintf(text, sizeof text, "%s%s", need->is_least ? ">" : "", number);
        fprintf(a->out, " %13s%s", text, is_fit(a, need) ? "*" : " ");
    }
    fputc('\n', a->out);
}

static void show_heading(FILE *out)
{
    fprintf(out, "  %-38s %13s", "", "--stage 0");
    for (int stage = 1; stage < ZERO_STAGE_COUNT; stage++) fprintf(out, " %14d", stage);
    fputc('\n', out);
}

static bool measure_and_show(const struct advice *a, const char *what, zero_plan_input in)
{
    struct need needs[ZERO_STAGE_COUNT];
    bool fits = measure(a, in, true, needs);
    show(a, what, needs);
    return fits;
}

/* The row only if a stage fits: slots take memory that a small model does not have to spare. */
static bool show_offload(const struct advice *a, zero_plan_input in, const char *what)
{
    struct need needs[ZERO_STAGE_COUNT];
    if (in.offload == ZERO_OFFLOAD_OFF) in.offload = ZERO_OFFLOAD_LAZY;
    if (!measure(a, in, false, needs)) return false;
    show(a, what, needs);
    return true;
}

/* The tiers below that of the plan: with a device first the host's memory. */
static bool show_tiers(const struct advice *a, zero_plan_input in, const char *options)
{
    char what[64];
    if (in.device && !in.offload_host) {
        in.offload_host = 1;
        snprintf(what, sizeof what, "--offload host%s", options);
        if (show_offload(a, in, what)) return true;
    }
    in.offload_host = 0;
    if (in.model->n_params / ZERO_OFFLOAD_BLOCK > MOST_BLOCKS) return false;
    snprintf(what, sizeof what, "--offload DIR%s", options);
    return show_offload(a, in, what);
}

static void show_offloads(const struct advice *a)
{
    zero_plan_input in = a->plan;
    if (zero_plan_uses_file(&in) || in.forward_only) return;
    if (show_tiers(a, in, "") || in.recompute) return;
    in.recompute = true;
    show_tiers(a, in, " --recompute");
}

/* The same global batch in smaller pieces. */
static zero_plan_input with_micro_batch(const struct advice *a, int64_t micro)
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

/* The largest that fits in some stage, else 1. */
static int64_t smaller_micro_batch(const struct advice *a)
{
    struct need needs[ZERO_STAGE_COUNT];
    for (int64_t parts = 2; parts < a->plan.micro_batch; parts++)
        if (a->plan.micro_batch % parts == 0 &&
            measure(a, with_micro_batch(a, a->plan.micro_batch / parts), false, needs))
            return a->plan.micro_batch / parts;
    return 1;
}

static void show_micro_batch(const struct advice *a)
{
    char what[64];
    if (a->plan.micro_batch == 1) return;
    zero_plan_input in = with_micro_batch(a, smaller_micro_batch(a));
    snprintf(what, sizeof what, "--micro-batch %" PRId64, in.micro_batch);
    measure_and_show(a, what, in);
    if (in.recompute) return;
    in.recompute = true;
    snprintf(what, sizeof what, "--micro-batch %" PRId64 " --recompute", in.micro_batch);
    measure_and_show(a, what, in);
}

/* As zero_algorithm_choose() on all ranks: a node has TP groups, so several ranks. */
static zero_algorithm choose(const zero_plan_input *in, const zero_layout *layout)
{
    const char *why;
    bool is_shared = in->model->share.ranks > 1 && layout->n_nodes > 1;
    if (is_shared && in->collectives != ZERO_ALGORITHM_P2P) return ZERO_ALGORITHM_HIER;
    return zero_algorithm_choose(layout, &why);
}

static bool has_replicas(const zero_plan_input *in)
{
    return in->shard_ranks > 0 && in->shard_ranks < in->n_ranks;
}

/* Both options spend memory to spare the network. */
static void show_without_copies(const struct advice *a)
{
    zero_plan_input in = a->plan;
    in.node_parameters = 0;
    if (a->plan.node_parameters) measure_and_show(a, "without --node-parameters", in);
    in.shard_ranks = 0;
    if (has_replicas(&a->plan))
        measure_and_show(
            a, a->plan.node_parameters ? "without both" : "without --shard-ranks", in);
}

/* `in` on `times` the ranks, on `times` the nodes. */
static bool measure_ranks(const struct advice *a, zero_plan_input in, int times,
                          struct need needs[ZERO_STAGE_COUNT])
{
    zero_layout layout;
    int nodes = in.layout ? in.layout->n_nodes : in.n_ranks;
    if (zero_layout_init_blocks(&layout, times * in.n_ranks, times * nodes) != ZERO_OK)
        return false;
    in.n_ranks = layout.size;
    in.layout = &layout;
    in.world_layout = NULL; /* as even as the blocks */
    in.rank = 0;
    if (a->is_auto) in.collectives = choose(&in, &layout);
    bool fits = measure(a, in, false, needs);
    zero_layout_destroy(&layout);
    return fits;
}

/* The first number of ranks that helps `in`, if one does. `options` says how `in` differs. */
static bool show_ranks(const struct advice *a, zero_plan_input in, const char *options)
{
    for (int times = 2; times <= MOST_RANKS / in.n_ranks; times *= 2) {
        struct need needs[ZERO_STAGE_COUNT];
        char what[64];
        if (!measure_ranks(a, in, times, needs)) continue;
        snprintf(what, sizeof what, "%d ranks%s",
                 times * in.n_ranks * in.model->share.ranks, options);
        show(a, what, needs);
        return true;
    }
    return false;
}

/* Tries the plan as given, then with all that saves activations. */
static void show_more_ranks(const struct advice *a)
{
    zero_plan_input plan = a->plan, least = with_micro_batch(a, 1);
    plan.shard_ranks = least.shard_ranks = 0; /* more replicas are no smaller */
    least.recompute = true;
    if (has_replicas(&a->plan)) fputs("  also without --shard-ranks:\n", a->out);
    if (show_ranks(a, plan, "")) return;
    if (show_ranks(a, least, " --micro-batch 1 --recompute")) return;
    fprintf(a->out, "  no number of ranks up to %d is known to help\n", MOST_RANKS);
}

void zero_advice_show(const zero_plan_input *plan, bool is_auto, zero_advice_room room,
                      FILE *out)
{
    double work = 0.0;
    struct advice a = advice_of(plan, is_auto, room, out, &work);
    char text[ZERO_PLAN_TEXT];
    zero_text_bytes((double)room.limit, text);
    fprintf(out,
            "bytes %s; * fits the %s; > at least; twice the ranks are on twice the "
            "nodes\n",
            room.of_device ? "of the device" : "per rank", text);
    show_heading(out);
    measure_and_show(&a, "as given", a.plan);
    if (!plan->recompute) {
        zero_plan_input in = a.plan;
        in.recompute = true;
        measure_and_show(&a, "--recompute", in);
    }
    show_offloads(&a);
    show_micro_batch(&a);
    show_without_copies(&a);
    show_more_ranks(&a);
}
