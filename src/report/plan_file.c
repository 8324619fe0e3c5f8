#include "report/plan_file.h"

#include <inttypes.h>
#include <math.h>

#include "report/text.h"
#include "sharding/schedule_exchange.h"

static void show_row(const char *name, const zero_file_traffic *t, FILE *out)
{
    if (t->reads + t->writes == 0) return;
    fprintf(out, "  %-20s %17" PRIu64 " %17" PRIu64 " %10" PRIu64 " %10" PRIu64 "\n", name,
            t->bytes_read, t->bytes_written, t->reads, t->writes);
}

void zero_plan_show_file(const zero_plan_stage *stage, FILE *out)
{
    const zero_offload_traffic *t = &stage->ledger.file_step;
    zero_file_traffic all = zero_offload_total(t);
    if (!zero_plan_uses_file(&stage->schedule.input)) return;
    fprintf(out, "\n%-22s %17s %17s %10s %10s\n", "the file, per step", "bytes read",
            "bytes written", "reads", "writes");
    show_row(zero_class_name(ZERO_CLASS_OPTIMIZER), &t->states, out);
    show_row(zero_class_name(ZERO_CLASS_PARAMETERS), &t->parameters, out);
    show_row(zero_class_name(ZERO_CLASS_KEPT), &t->activations, out);
    show_row("all", &all, out);
}

/* ---- the disk ---- */

/* A step computes 6 Psi flops for each token and moves 24 Psi bytes (fp32: 16 Psi); a forward pass
 * is a third of the work and must hide half of the bytes. The nodes share both, so neither Psi nor
 * the number of nodes matters. */
zero_plan_disk zero_plan_disk_of(const zero_plan_report *r, const zero_plan_stage *stage)
{
    const zero_plan_machine *m = &r->request.machine;
    const zero_plan_time *t = &stage->time;
    zero_file_traffic all = zero_offload_total(&stage->ledger.file_step);
    const zero_schedule *s = &stage->schedule;
    double bytes = s->input.type == ZERO_FP32 ? 16.0 : 24.0;
    zero_plan_disk d = {
        .tokens = (double)(r->config.global_batch * r->shape.seq),
        .sharers = zero_layout_local_size(zero_schedule_data_layout(s), s->input.rank)};
    double flops = m->flops * d.sharers;
    double mixed = 2.0 / (1.0 / m->disk_read + 1.0 / m->disk_write);
    d.hides_all = bytes / 6.0 * flops / mixed;
    d.hides_reads = bytes / 4.0 * flops / m->disk_read;
    d.hidden = d.tokens * stage->hidden_times;
    d.efficiency = stage->resident.step / t->step;
    d.daily = 86400.0 / t->step * d.sharers * (double)all.bytes_written;
    return d;
}

static void show_condition(const zero_plan_stage *stage, const zero_plan_disk *d, FILE *out)
{
    bool is_fp32 = stage->schedule.input.type == ZERO_FP32;
    bool is_lazy = stage->schedule.input.offload == ZERO_OFFLOAD_LAZY;
    zero_text_row("condition", out);
    fprintf(out, "%.0f tokens per step %s %s = %.0f, which hide the states behind the step",
            d->tokens, d->tokens < d->hides_all ? "<" : ">=", is_fp32 ? "2.7 F/B" : "4 F/B",
            d->hides_all);
    zero_text_continue(out);
    if (is_lazy)
        fprintf(out, "%.0f %s %s = %.0f, which hide their reads behind the next forward",
                d->tokens,
                d->tokens < d->hides_reads ? "<" : ">=", is_fp32 ? "4 F/R" : "6 F/R",
                d->hides_reads);
    if (is_lazy) zero_text_continue(out);
    if (isinf(d->hidden))
        fprintf(out,
                "no number of tokens makes it at most %.2f of a step without --offload\n",
                ZERO_PLAN_HIDDEN);
    else
        fprintf(out,
                "at most %.2f of a step without --offload from %.0f tokens per step on\n",
                ZERO_PLAN_HIDDEN, d->hidden);
}

void zero_plan_show_disk(const zero_plan_report *r, const zero_plan_stage *stage, FILE *out)
{
    const zero_plan_machine *m = &r->request.machine;
    const zero_plan_time *t = &stage->time;
    char daily[ZERO_PLAN_TEXT];
    if (!r->request.has_disk) return;
    zero_plan_disk d = zero_plan_disk_of(r, stage);
    zero_text_row("disk", out);
    fprintf(out, "%.4g s of transfers per step, exposed %.4g", t->disk, t->disk_exposed);
    zero_text_continue(out);
    fprintf(out, "(ideal: reads %.4g, writes %.4g bytes/s, shared by the node's %d rank%s)",
            m->disk_read, m->disk_write, d.sharers, zero_text_plural(d.sharers));
    if (t->disk_first > 0.0) {
        zero_text_continue(out);
        fprintf(out, "%.4g s of it before the first forward, where nothing hides them",
                t->disk_first);
    }
    fputc('\n', out);
    show_condition(stage, &d, out);
    zero_text_row("efficiency", out);
    fprintf(out, "%.1f %%: without --offload a step takes %.4g s\n", 100.0 * d.efficiency,
            stage->resident.step);
    zero_text_bytes(d.daily, daily);
    zero_text_row("wear", out);
    fprintf(out, "%s (%.4g bytes) written to the node's disk per day\n", daily, d.daily);
}
