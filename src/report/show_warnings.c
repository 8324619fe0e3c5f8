#include "report/show_warnings.h"

#include <stdio.h>

#include "report/text.h"

static void warn_of_p2p(const zero_run_view *v)
{
    if (v->engine->why_p2p[0])
        fprintf(stderr, "zero: warning: --collectives auto takes p2p: %s\n",
                v->engine->why_p2p);
    if (v->engine->why_staged[0])
        fprintf(stderr, "zero: warning: --device-exchange auto takes staged: %s\n",
                v->engine->why_staged);
}

static void warn_oversubscribed(const zero_run_view *v, int threads)
{
    const zero_topology *t = v->topology;
    char each[32] = "";
    if (threads > 1) snprintf(each, sizeof each, " x %d threads", threads);
    if (threads * v->node_ranks > t->allowed_cores)
        fprintf(stderr,
                "zero: warning: %d rank%s%s share %d core%s (oversubscribed): timings mean "
                "little\n",
                v->node_ranks, zero_text_plural(v->node_ranks), each, t->allowed_cores,
                zero_text_plural(t->allowed_cores));
    else if (threads > t->usable_cores)
        fprintf(
            stderr,
            "zero: warning: %d threads per rank, but a rank is bound to %d core%s: start "
            "with mpirun --bind-to none, or --map-by slot:PE=%d\n",
            threads, t->usable_cores, zero_text_plural(t->usable_cores), threads);
}

/* Rates for fine-tuning are about a tenth of those for random weights: the released GPT-2 with its
 * 6e-4 loses in a few steps what it knows. */
static void warn_of_rate(const zero_run_view *v)
{
    const zero_config *c = v->config;
    double scratch = zero_config_scratch_rate(c);
    if (!c->init_from || v->start > 0 || c->lr < 0.5 * scratch) return;
    fprintf(stderr,
            "zero: warning: --lr %g is a rate for random weights, and imported ones may "
            "forget in a few steps what they know: try --lr %g\n",
            c->lr, scratch / 10.0);
}

void zero_show_warnings(const zero_run_view *v, int threads)
{
    warn_of_p2p(v);
    warn_of_rate(v);
    warn_oversubscribed(v, threads);
}
