#include "report/simulation_report.h"

#include <inttypes.h>
#include <math.h>

#include "report/plan_facts.h"
#include "report/text.h"

/* ---- the network ---- */

void zero_simulation_link(const zero_link_use *link, char text[ZERO_LINK_TEXT])
{
    static const char *const forms[] = {
        [ZERO_LINK_RANK_OUT] = "rank %d, out",
        [ZERO_LINK_RANK_IN] = "rank %d, in",
        [ZERO_LINK_INSIDE_OUT] = "rank %d, out, within its node",
        [ZERO_LINK_INSIDE_IN] = "rank %d, in, within its node",
        [ZERO_LINK_NODE_OUT] = "adapter of node %d, out",
        [ZERO_LINK_NODE_IN] = "adapter of node %d, in",
        [ZERO_LINK_SWITCH_UP] = "uplink of switch %d, up",
        [ZERO_LINK_SWITCH_DOWN] = "uplink of switch %d, down",
    };
    snprintf(text, ZERO_LINK_TEXT, forms[link->kind], link->which);
}

static void show_ranks(const zero_simulation_report *r, FILE *out)
{
    const zero_simulate_input *in = &r->input;
    zero_text_row("computing", out);
    fprintf(out, "%.4g flops/s of a rank\n", in->machine.flops);
    for (int k = 0; k < in->n_slow; k++)
        fprintf(out, "%15srank %d: %.4g times that\n", "", in->slow[k].rank,
                in->slow[k].factor);
    if (!isinf(in->memory_bandwidth))
        fprintf(out, "%15ssums: %.4g bytes/s of a rank\n", "", in->memory_bandwidth);
    if (in->poll > 0.0)
        fprintf(out, "%15smessages are looked at every %.4g s while a rank computes\n", "",
                in->poll);
    if (!r->plan.request.has_disk) return;
    zero_text_row("disk", out);
    fprintf(out, "reads %.4g, writes %.4g bytes/s of a node\n", in->machine.disk_read,
            in->machine.disk_write);
}

/* ---- one stage ---- */

static void show_rank(const char *whose, const zero_simulated_rank *k, bool has_disk,
                      FILE *out)
{
    fprintf(out, "%15s%-14s compute %.4g + sums %.4g + exposed %.4g + waiting %.4g", "",
            whose, k->compute, k->sums, k->exposed, k->waiting);
    if (has_disk) fprintf(out, " + disk %.4g", k->disk);
    fputc('\n', out);
}

static void show_busiest(const zero_simulated *s, FILE *out)
{
    char link[ZERO_LINK_TEXT], bytes[ZERO_PLAN_TEXT];
    if (s->busiest.busy <= 0.0) {
        fputs("none was used\n", out);
        return;
    }
    zero_simulation_link(&s->busiest, link);
    zero_text_bytes((double)s->busiest.bytes, bytes);
    fprintf(out, "%s: busy for %.1f %% of the step, %s\n", link,
            100.0 * zero_simulation_busy(s), bytes);
}

#define ALIKE 1e-3 /* of the step */

static void show_stage(const zero_simulation_report *r, FILE *out)
{
    const zero_simulated *s = &r->results[0];
    bool has_disk = r->plan.request.has_disk;
    char whose[ZERO_PLAN_TEXT];
    zero_text_row("simulated", out);
    fprintf(out, "%.4g s per step; %.4g tokens/s (step %d of %d)\n", s->step,
            zero_simulation_tokens(r, s), r->input.steps, r->input.steps);
    snprintf(whose, sizeof whose, "rank %d:", s->slowest);
    show_rank(whose, &s->of_slowest, has_disk, out);
    show_rank("mean of ranks:", &s->mean, has_disk, out);
    const zero_plan_time *t = &s->plan;
    zero_text_row("alpha-beta", out);
    fprintf(out, "%.4g s per step = compute %.4g + exposed %.4g", t->step, t->compute,
            t->exposed);
    if (r->plan.request.has_disk) fprintf(out, " + disk %.4g", t->disk_exposed);
    fprintf(out, "\n%15ssimulated / alpha-beta = %.4f\n", "", zero_simulation_ratio(s));
    double others = s->mean.exposed + s->mean.waiting;
    double least = s->of_slowest.exposed + s->of_slowest.waiting;
    zero_text_row("slowest rank", out);
    if (others - least < ALIKE * s->step)
        fputs("none: all wait alike\n", out);
    else if (s->as_slow > 1)
        fprintf(out, "%d and %d more: they wait least\n", s->slowest, s->as_slow - 1);
    else
        fprintf(out, "%d: it waits least\n", s->slowest);
    zero_text_row("busiest link", out);
    show_busiest(s, out);
    zero_text_row("messages", out);
    fprintf(out, "%" PRId64 ", %" PRId64 " events in %d steps\n", s->messages, s->events,
            r->input.steps);
}

/* ---- all stages ---- */

static void show_row(const zero_simulation_report *r, int k, FILE *out)
{
    const zero_simulated *s = &r->results[k];
    const zero_simulated_rank *of = &s->of_slowest;
    fprintf(out, "  %5d %10.4g %9.4g %9.4g %9.4g %9.4g",
            zero_plan_stage_number(&r->plan.stages[k]), s->step, of->compute, of->sums,
            of->exposed, of->waiting);
    if (r->plan.request.has_disk) fprintf(out, " %9.4g", of->disk);
    fprintf(out, " %8d %10.4g %7.4f\n", s->slowest, s->plan.step, zero_simulation_ratio(s));
}

void zero_simulation_show(const zero_simulation_report *r, FILE *out)
{
    bool is_one = r->plan.n == 1;
    if (is_one)
        fprintf(out, "%-14s %d\n", "stage", zero_plan_stage_number(&r->plan.stages[0]));
    zero_plan_show_setup(&r->plan, out);
    const zero_simulate_input *in = &r->input;
    const zero_plan_machine *m = &in->machine;
    bool has_nodes = r->plan.layout.n_nodes > 1;
    zero_text_row("network", out);
    fprintf(out, "%.4g s per message, %.4g bytes/s of a rank%s\n", m->latency, m->bandwidth,
            has_nodes ? " between nodes" : "");
    if (has_nodes && m->node_bandwidth > 0.0)
        fprintf(out, "%15sin a node: %.4g s per message, %.4g bytes/s of a rank\n", "",
                m->node_latency, m->node_bandwidth);
    if (!isinf(in->adapter))
        fprintf(out, "%15sadapters: %.4g bytes/s of a node\n", "", in->adapter);
    if (in->switch_nodes > 0)
        fprintf(out, "%15sswitches: %d node%s each, oversubscribed %.4g : 1\n", "",
                in->switch_nodes, zero_text_plural(in->switch_nodes), in->switch_ratio);
    show_ranks(r, out);
    if (is_one)
        show_stage(r, out);
    else {
        fprintf(out,
                "\nsimulated, seconds (step %d of %d); parts of the slowest rank, which "
                "waits least\n",
                r->input.steps, r->input.steps);
        fprintf(out, "  stage %10s %9s %9s %9s %9s", "step", "compute", "sums", "exposed",
                "waiting");
        if (r->plan.request.has_disk) fprintf(out, " %9s", "disk");
        fprintf(out, " %8s %10s %7s\n", "slowest", "alpha-beta", "ratio");
        for (int k = 0; k < r->plan.n; k++) show_row(r, k, out);
        fputs("\nbusiest link, messages\n", out);
        for (int k = 0; k < r->plan.n; k++) {
            fprintf(out, "  %5d ", zero_plan_stage_number(&r->plan.stages[k]));
            show_busiest(&r->results[k], out);
            fprintf(out, "%8s%" PRId64 " messages, %" PRId64 " events in %d steps\n", "",
                    r->results[k].messages, r->results[k].events, r->input.steps);
        }
    }
}
