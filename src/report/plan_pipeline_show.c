/* The table of pipelines beside ZeRO's stages, and the programs of a pipeline stage. */
#include <inttypes.h>
#include <math.h>

#include "base/fail.h"
#include "report/plan_facts.h"
#include "report/plan_pipeline.h"
#include "report/plan_program.h"
#include "report/text.h"
#include "sharding/stages.h"

#define COLUMNS (ZERO_PIPELINE_KINDS + ZERO_STAGE_COUNT)
#define WIDTH   12
#define NAME    25
#define NONE    (-1.0) /* the column has no such number */

/* A number of each column: of pipelines, on the stage that needs most memory; then ZeRO's
 * stages. */
typedef struct {
    double of[COLUMNS];
} row;

/* NULL: bytes. */
static void show_row(const char *name, const char *format, const row *x, FILE *out)
{
    fprintf(out, "  %-*s", NAME - 2, name);
    for (int c = 0; c < COLUMNS; c++) {
        char text[ZERO_PLAN_TEXT] = "-";
        if (x->of[c] >= 0.0 && format)
            snprintf(text, sizeof text, format, x->of[c]);
        else if (x->of[c] >= 0.0)
            zero_text_bytes(x->of[c], text);
        fprintf(out, "%*s", WIDTH, text);
    }
    fputc('\n', out);
}

static void show_memory(const zero_plan_report *r, FILE *out)
{
    row most = {0}, least = most, live = most;
    const zero_pipe_stage *worst[ZERO_PIPELINE_KINDS];
    for (int k = 0; k < COLUMNS; k++) least.of[k] = NONE;
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        const zero_pipeline *p = &r->pipelines[k].pipeline;
        worst[k] = &p->stages[zero_plan_pipeline_extreme(p, true)];
        most.of[k] = (double)worst[k]->schedule.peak_bytes;
        least.of[k] =
            (double)p->stages[zero_plan_pipeline_extreme(p, false)].schedule.peak_bytes;
        live.of[k] = p->stages[0].ledger.live;
    }
    for (int k = 0; k < r->n; k++) {
        most.of[ZERO_PIPELINE_KINDS + k] = (double)r->stages[k].schedule.peak_bytes;
        live.of[ZERO_PIPELINE_KINDS + k] = 1.0;
    }
    fputs("\nmemory per rank when it peaks; of pipelines, on the stage that needs most\n",
          out);
    for (int c = 0; c < ZERO_CLASSES; c++) {
        row x = {0};
        double sum = 0.0;
        for (int k = 0; k < COLUMNS; k++) {
            const size_t *at_peak = k < ZERO_PIPELINE_KINDS
                                        ? worst[k]->ledger.at_peak
                                        : r->stages[k - ZERO_PIPELINE_KINDS].ledger.at_peak;
            x.of[k] = (double)at_peak[c];
            sum += x.of[k];
        }
        if (sum > 0.0) show_row(zero_class_name((zero_class)c), NULL, &x, out);
    }
    show_row("overall peak", NULL, &most, out);
    show_row("  stage that needs least", NULL, &least, out);
    show_row("microbatches alive", "%.0f", &live, out);
}

static void show_time(const zero_plan_report *r, FILE *out)
{
    const zero_plan_machine *m = &r->request.machine;
    row bubble = {0}, formula = bubble, step = bubble, compute = bubble, waits = bubble,
        rate = bubble;
    for (int c = 0; c < COLUMNS; c++) {
        const zero_plan_pipeline *p = c < ZERO_PIPELINE_KINDS ? &r->pipelines[c] : NULL;
        const zero_plan_stage *stage = &r->stages[p ? 0 : c - ZERO_PIPELINE_KINDS];
        bubble.of[c] = p ? 100.0 * p->bubble : NONE;
        formula.of[c] = p ? 100.0 * zero_pipeline_bubble_formula(
                                        p->pipeline.n_stages, p->pipeline.plan.accumulation)
                          : NONE;
        step.of[c] = p ? p->time.step : stage->time.step;
        compute.of[c] = p ? p->time.compute : stage->time.compute;
        waits.of[c] = step.of[c] - compute.of[c];
        rate.of[c] = (double)(r->config.global_batch * r->shape.seq) / step.of[c];
    }
    fputs("\nshare of a step in which ranks have nothing to compute, without messages\n",
          out);
    show_row("bubble", "%.1f %%", &bubble, out);
    show_row("  (P-1) / (m+P-1)", "%.1f %%", &formula, out);
    fputs("  the formula is for stages that compute equally long; logits make the last one "
          "longer\n",
          out);
    if (!r->request.has_time) return;
    if (r->request.has_network)
        fprintf(out, "\ntime, ideal: %.4g s per message, %.4g bytes/s, %.4g flops/s\n",
                m->latency, m->bandwidth, m->flops);
    else
        fprintf(out, "\ntime, ideal: messages take no time, %.4g flops/s\n", m->flops);
    show_row("seconds per step", "%.4g", &step, out);
    show_row("  computing, the most", "%.4g", &compute, out);
    show_row("  bubble and exposed", "%.4g", &waits, out);
    show_row("tokens/s", "%.4g", &rate, out);
}

/* ---- the table ---- */

static void show_shape(const zero_plan_report *r, FILE *out)
{
    const zero_pipeline *p = &r->pipelines[0].pipeline;
    zero_text_row("pipelines", out);
    fprintf(out, "P = %d stages x D = %d replicas; rank s*D + d is stage s of replica d",
            p->n_stages, p->plan.n_ranks);
    zero_text_continue(out);
    fprintf(out, "m = %d microbatches of %" PRId64 " sequence%s per replica and step\n",
            p->plan.accumulation, p->plan.micro_batch,
            zero_text_plural(p->plan.micro_batch));
}

zero_status zero_plan_show_pipelines(const zero_plan_report *r, FILE *out)
{
    int stage = zero_plan_pipeline_stage(r);
    zero_legend legend = {.has_freed = true};
    zero_plan_show_setup(r, out);
    show_shape(r, out);
    if (!r->request.show_schedule) {
        fprintf(out, "\n%-*s%*s%*s%*s\n", NAME, "", WIDTH, "pipeline", WIDTH, "", WIDTH,
                "ZeRO");
        fprintf(out, "%-*s", NAME, "");
        for (int k = 0; k < ZERO_PIPELINE_KINDS; k++)
            fprintf(out, "%*s", WIDTH, zero_pipeline_name((zero_pipeline_kind)k));
        for (int k = 0; k < r->n; k++)
            fprintf(out, "%*s %d", WIDTH - 2, "stage",
                    zero_plan_stage_number(&r->stages[k]));
        fputc('\n', out);
        show_memory(r, out);
        row between = {0}, states = between, most = between, mean = between;
        for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
            const zero_pipeline *p = &r->pipelines[k].pipeline;
            for (int s = 0; s < p->n_stages; s++) {
                const zero_pipe_ledger *l = &p->stages[s].ledger;
                double sent = (double)(l->activations_sent + l->gradients_sent);
                double reduced = (double)(l->reduced_sent + l->tied_sent);
                between.of[k] = fmax(between.of[k], sent);
                states.of[k] = fmax(states.of[k], reduced);
                most.of[k] = fmax(most.of[k], sent + reduced);
                mean.of[k] += sent + reduced;
            }
            mean.of[k] /= p->n_stages;
        }
        for (int k = 0; k < r->n; k++) {
            int c = ZERO_PIPELINE_KINDS + k;
            zero_traffic t = r->stages[k].ledger.reduce.traffic;
            zero_traffic_add(&t, 1, &r->stages[k].ledger.gather.traffic);
            states.of[c] = most.of[c] = mean.of[c] =
                (double)zero_traffic_total(&t).bytes_sent;
            between.of[c] = NONE;
        }
        fputs("\nbytes that a rank sends per step; of pipelines, in each line the stage "
              "that sends most\n",
              out);
        show_row("between stages", NULL, &between, out);
        show_row("gradients, parameters", NULL, &states, out);
        show_row("all", NULL, &most, out);
        show_row("  mean over ranks", NULL, &mean, out);
        show_time(r, out);
        return ZERO_OK;
    }
    fputs("bytes live     the most while the instruction runs, of all classes\n", out);
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        const zero_pipeline *p = &r->pipelines[k].pipeline;
        fprintf(out, "\n%s, stage %d of %d\n", zero_pipeline_name(p->kind), stage,
                p->n_stages);
        ZERO_TRY(zero_plan_show_program(&p->stages[stage].schedule, ZERO_PROGRAM_STEP,
                                        &legend, out));
    }
    zero_legend_show(&legend, out);
    return ZERO_OK;
}
