#include "report/advice.h"

#include <inttypes.h>

#include "engine/plan.h"
#include "report/text.h"
#include "sharding/stages.h"
#include "train/config.h"

#define MOST_RANKS 16384

struct advice {
    zero_plan_input plan; /* memory does not grow beyond two microbatches */
    bool is_auto;
    size_t limit;
    FILE *out;
};

static struct advice advice_of(const zero_plan_input *plan, bool is_auto, size_t limit,
                               FILE *out)
{
    struct advice a = {*plan, is_auto, limit, out};
    if (!plan->reproducible && plan->accumulation > 2) a.plan.accumulation = 2;
    return a;
}

/* Bytes that each stage needs; 0: it cannot be planned. Returns whether one fits. */
static bool measure(const struct advice *a, zero_plan_input in,
                    size_t needed[ZERO_STAGE_COUNT])
{
    bool fits = false;
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        zero_plan_ledger l;
        in.stage = stage;
        needed[stage] = zero_plan_measure(&in, &l) == ZERO_OK ? l.needed : 0;
        fits = fits || (needed[stage] > 0 && needed[stage] <= a->limit);
    }
    return fits;
}

static void show(const struct advice *a, const char *what,
                 const size_t needed[ZERO_STAGE_COUNT])
{
    fprintf(a->out, "  %-38s", what);
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        char text[ZERO_PLAN_TEXT] = "-";
        if (needed[stage] > 0) zero_text_bytes((double)needed[stage], text);
        bool fits = needed[stage] > 0 && needed[stage] <= a->limit;
        fprintf(a->out, " %13s%s", text, fits ? "*" : " ");
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
    size_t needed[ZERO_STAGE_COUNT];
    bool fits = measure(a, in, needed);
    show(a, what, needed);
    return fits;
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
    size_t needed[ZERO_STAGE_COUNT];
    for (int64_t parts = 2; parts < a->plan.micro_batch; parts++)
        if (a->plan.micro_batch % parts == 0 &&
            measure(a, with_micro_batch(a, a->plan.micro_batch / parts), needed))
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

/* `in` on `times` the ranks, on `times` the nodes. */
static bool measure_ranks(const struct advice *a, zero_plan_input in, int times,
                          size_t needed[ZERO_STAGE_COUNT])
{
    zero_layout layout;
    const char *why;
    int nodes = in.layout ? in.layout->n_nodes : in.n_ranks;
    if (zero_layout_init_blocks(&layout, times * in.n_ranks, times * nodes) != ZERO_OK)
        return false;
    in.n_ranks = layout.size;
    in.layout = &layout;
    in.rank = 0;
    if (a->is_auto) in.collectives = zero_algorithm_choose(&layout, &why);
    bool fits = measure(a, in, needed);
    zero_layout_destroy(&layout);
    return fits;
}

/* The first number of ranks that helps `in`, if one does. `options` says how `in` differs. */
static bool show_ranks(const struct advice *a, zero_plan_input in, const char *options)
{
    for (int times = 2; times <= MOST_RANKS / in.n_ranks; times *= 2) {
        size_t needed[ZERO_STAGE_COUNT];
        char what[64];
        if (!measure_ranks(a, in, times, needed)) continue;
        snprintf(what, sizeof what, "%d ranks%s", times * in.n_ranks, options);
        show(a, what, needed);
        return true;
    }
    return false;
}

/* Tries the plan as given, then with all that saves activations. */
static void show_more_ranks(const struct advice *a)
{
    zero_plan_input least = with_micro_batch(a, 1);
    least.recompute = true;
    if (show_ranks(a, a->plan, "")) return;
    if (show_ranks(a, least, " --micro-batch 1 --recompute")) return;
    fprintf(a->out, "  no number of ranks up to %d helps\n", MOST_RANKS);
}

void zero_advice_show(const zero_plan_input *plan, bool is_auto, size_t limit, FILE *out)
{
    struct advice a = advice_of(plan, is_auto, limit, out);
    char text[ZERO_PLAN_TEXT];
    zero_text_bytes((double)limit, text);
    fprintf(out, "bytes per rank; * fits the %s; twice the ranks are on twice the nodes\n",
            text);
    show_heading(out);
    measure_and_show(&a, "as given", a.plan);
    if (!plan->recompute) {
        zero_plan_input in = a.plan;
        in.recompute = true;
        measure_and_show(&a, "--recompute", in);
    }
    show_micro_batch(&a);
    show_more_ranks(&a);
}
