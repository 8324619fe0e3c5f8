/* The table of pipelines beside ZeRO's stages, and the programs of a pipeline stage. */
#include <inttypes.h>

#include "base/fail.h"
#include "report/plan_pipeline.h"
#include "report/plan_program.h"
#include "report/plan_setup.h"
#include "report/text.h"
#include "sharding/stages.h"

#define COLUMNS (ZERO_PIPELINE_KINDS + ZERO_STAGE_COUNT)
#define WIDTH   12
#define NAME    25

/* A number of each column. */
typedef struct {
    double of[COLUMNS];
} row;

#define NONE (-1.0) /* of a row: the column has no such number */

static void show_bytes(const char *name, const row *r, FILE *out)
{
    fprintf(out, "  %-*s", NAME - 2, name);
    for (int c = 0; c < COLUMNS; c++) {
        char text[ZERO_PLAN_TEXT] = "-";
        if (r->of[c] >= 0.0) zero_text_bytes(r->of[c], text);
        fprintf(out, "%*s", WIDTH, text);
    }
    fputc('\n', out);
}

static void show_numbers(const char *name, const char *format, const row *r, FILE *out)
{
    fprintf(out, "  %-*s", NAME - 2, name);
    for (int c = 0; c < COLUMNS; c++) {
        char text[ZERO_PLAN_TEXT] = "-";
        if (r->of[c] >= 0.0) snprintf(text, sizeof text, format, r->of[c]);
        fprintf(out, "%*s", WIDTH, text);
    }
    fputc('\n', out);
}

static bool is_empty(const row *r)
{
    for (int c = 0; c < COLUMNS; c++)
        if (r->of[c] > 0.0) return false;
    return true;
}

/* ---- memory ---- */

static const zero_pipe_ledger *worst(const zero_plan_pipeline *p)
{
    int stage = zero_plan_pipeline_extreme(&p->pipeline, true);
    return &p->pipeline.stages[stage].ledger;
}

static row class_row(const zero_plan_report *r, int class)
{
    row x;
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++)
        x.of[k] = (double)worst(&r->pipelines[k])->at_peak[class];
    for (int k = 0; k < r->n; k++)
        x.of[ZERO_PIPELINE_KINDS + k] = (double)r->stages[k].ledger.at_peak[class];
    return x;
}

static row peak_row(const zero_plan_report *r, bool most)
{
    row x;
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        const zero_pipeline *p = &r->pipelines[k].pipeline;
        int stage = zero_plan_pipeline_extreme(p, most);
        x.of[k] = (double)p->stages[stage].schedule.peak_bytes;
    }
    for (int k = 0; k < r->n; k++)
        x.of[ZERO_PIPELINE_KINDS + k] =
            most ? (double)r->stages[k].schedule.peak_bytes : NONE;
    return x;
}

static row live_row(const zero_plan_report *r)
{
    row x;
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++)
        x.of[k] = r->pipelines[k].pipeline.stages[0].ledger.live;
    for (int k = 0; k < r->n; k++) x.of[ZERO_PIPELINE_KINDS + k] = 1.0;
    return x;
}

static void show_memory(const zero_plan_report *r, FILE *out)
{
    fputs("\nmemory per rank when it peaks; of pipelines, on the stage that needs most\n",
          out);
    for (int c = 0; c < ZERO_CLASSES; c++) {
        row x = class_row(r, c);
        if (!is_empty(&x)) show_bytes(zero_class_name((zero_class)c), &x, out);
    }
    row most = peak_row(r, true), least = peak_row(r, false), live = live_row(r);
    show_bytes("overall peak", &most, out);
    show_bytes("  stage that needs least", &least, out);
    show_numbers("microbatches alive", "%.0f", &live, out);
}

/* ---- communication ---- */

static double between(const zero_pipe_ledger *l)
{
    return (double)(l->activations_sent + l->gradients_sent);
}

static double reduced(const zero_pipe_ledger *l)
{
    return (double)(l->reduced_sent + l->tied_sent);
}

static double all(const zero_pipe_ledger *l)
{
    return between(l) + reduced(l);
}

/* The most, or the mean, over the stages of pipelines; `zero`: the row is ZeRO's, too. */
static row sent_row(const zero_plan_report *r, double (*sent)(const zero_pipe_ledger *),
                    bool mean, bool zero)
{
    row x;
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        const zero_pipeline *p = &r->pipelines[k].pipeline;
        double sum = 0.0, most = 0.0;
        for (int s = 0; s < p->n_stages; s++) {
            double bytes = sent(&p->stages[s].ledger);
            sum += bytes;
            if (bytes > most) most = bytes;
        }
        x.of[k] = mean ? sum / p->n_stages : most;
    }
    for (int k = 0; k < r->n; k++) {
        zero_traffic t = r->stages[k].ledger.reduce.traffic;
        zero_traffic_add(&t, 1, &r->stages[k].ledger.gather.traffic);
        double bytes = (double)zero_traffic_total(&t).bytes_sent;
        x.of[ZERO_PIPELINE_KINDS + k] = zero ? bytes : NONE;
    }
    return x;
}

static void show_traffic(const zero_plan_report *r, FILE *out)
{
    row stages = sent_row(r, between, false, false),
        states = sent_row(r, reduced, false, true);
    row most = sent_row(r, all, false, true), mean = sent_row(r, all, true, true);
    fputs("\nbytes that a rank sends per step; of pipelines, in each line the stage that "
          "sends "
          "most\n",
          out);
    show_bytes("between stages", &stages, out);
    show_bytes("gradients, parameters", &states, out);
    show_bytes("all", &most, out);
    show_bytes("  mean over ranks", &mean, out);
}

/* ---- time ---- */

static void show_bubble(const zero_plan_report *r, FILE *out)
{
    row bubble, formula;
    for (int c = 0; c < COLUMNS; c++) bubble.of[c] = formula.of[c] = NONE;
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        const zero_pipeline *p = &r->pipelines[k].pipeline;
        bubble.of[k] = 100.0 * r->pipelines[k].bubble;
        formula.of[k] =
            100.0 * zero_pipeline_bubble_formula(p->n_stages, p->plan.accumulation);
    }
    fputs("\nshare of a step in which ranks have nothing to compute, without messages\n",
          out);
    show_numbers("bubble", "%.1f %%", &bubble, out);
    show_numbers("  (P-1) / (m+P-1)", "%.1f %%", &formula, out);
    fputs("  the formula is for stages that compute equally long; logits make the last one "
          "longer\n",
          out);
}

static void show_time(const zero_plan_report *r, FILE *out)
{
    const zero_plan_machine *m = &r->request.machine;
    double tokens = (double)(r->config.global_batch * r->shape.seq);
    row step, compute, waits, rate;
    if (!r->request.has_time) return;
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        step.of[k] = r->pipelines[k].time.step;
        compute.of[k] = r->pipelines[k].time.compute;
    }
    for (int k = 0; k < r->n; k++) {
        step.of[ZERO_PIPELINE_KINDS + k] = r->stages[k].time.step;
        compute.of[ZERO_PIPELINE_KINDS + k] = r->stages[k].time.compute;
    }
    for (int c = 0; c < COLUMNS; c++) {
        waits.of[c] = step.of[c] - compute.of[c];
        rate.of[c] = tokens / step.of[c];
    }
    if (r->request.has_network)
        fprintf(out, "\ntime, ideal: %.4g s per message, %.4g bytes/s, %.4g flops/s\n",
                m->latency, m->bandwidth, m->flops);
    else
        fprintf(out, "\ntime, ideal: messages take no time, %.4g flops/s\n", m->flops);
    show_numbers("seconds per step", "%.4g", &step, out);
    show_numbers("  computing, the most", "%.4g", &compute, out);
    show_numbers("  bubble and exposed", "%.4g", &waits, out);
    show_numbers("tokens/s", "%.4g", &rate, out);
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

static void show_table(const zero_plan_report *r, FILE *out)
{
    fprintf(out, "\n%-*s%*s%*s%*s\n", NAME, "", WIDTH, "pipeline", WIDTH, "", WIDTH,
            "ZeRO");
    fprintf(out, "%-*s", NAME, "");
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++)
        fprintf(out, "%*s", WIDTH, zero_pipeline_name((zero_pipeline_kind)k));
    for (int k = 0; k < r->n; k++)
        fprintf(out, "%*s %d", WIDTH - 2, "stage", zero_plan_stage_number(&r->stages[k]));
    fputc('\n', out);
    show_memory(r, out);
    show_traffic(r, out);
    show_bubble(r, out);
    show_time(r, out);
}

zero_status zero_plan_show_pipelines(const zero_plan_report *r, FILE *out)
{
    int stage = zero_plan_pipeline_stage(r);
    zero_legend legend = {.has_freed = true};
    zero_plan_show_setup(r, out);
    show_shape(r, out);
    if (!r->request.show_schedule) {
        show_table(r, out);
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
