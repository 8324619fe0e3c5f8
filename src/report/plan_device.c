#include "report/plan_device.h"

#include "report/plan_columns.h"
#include "report/text.h"

static void show_classes(const zero_schedule *s, const zero_plan_ledger *l, FILE *out)
{
    char text[ZERO_PLAN_TEXT];
    zero_plan_show_columns(s, l,
                           &(zero_plan_columns){"on the device, own peak", "at its peak",
                                                "on the host", s->host_class_peak,
                                                s->host_peak_bytes},
                           out);
    zero_text_peak(s, text);
    fprintf(out, "  the device's peak is at %s\n", text);
}

static void show_device(const zero_plan_ledger *l, size_t context, FILE *out)
{
    char all[ZERO_PLAN_TEXT], arena[ZERO_PLAN_TEXT], library[ZERO_PLAN_TEXT];
    zero_text_bytes((double)(l->device_needed + context), all);
    zero_text_bytes((double)l->device_needed, arena);
    zero_text_bytes((double)context, library);
    zero_text_row("device", out);
    fprintf(out, "%s = arena %s + the device's library %s", all, arena, library);
    fputs(context > 0 ? " (as on an H200)\n" : "\n", out);
}

static void show_host(const zero_schedule *s, const zero_plan_ledger *l, FILE *out)
{
    char all[ZERO_PLAN_TEXT], arena[ZERO_PLAN_TEXT], window[ZERO_PLAN_TEXT];
    char process[ZERO_PLAN_TEXT];
    zero_text_bytes((double)l->needed, all);
    zero_text_bytes((double)s->host_bytes, arena);
    zero_text_bytes((double)s->window_bytes, window);
    zero_text_bytes((double)zero_plan_process(s), process);
    zero_text_row("host", out);
    fprintf(out, "%s = arena %s + node's window %s + process %s\n", all, arena, window,
            process);
}

void zero_plan_show_both(const zero_schedule *s, const zero_plan_ledger *l, size_t context,
                         FILE *out)
{
    show_classes(s, l, out);
    show_device(l, context, out);
    show_host(s, l, out);
}

void zero_plan_show_device_limit(const zero_plan_report *r, const zero_plan_stage *stage,
                                 FILE *out)
{
    char limit[ZERO_PLAN_TEXT];
    if (r->config.device_memory == 0) return;
    zero_text_bytes((double)r->config.device_memory, limit);
    zero_text_row("device limit", out);
    fprintf(out, "%s: %s\n", limit,
            zero_plan_fits_device(r, stage) ? "it fits" : "it does not fit");
}

static void show_copy(const char *name, size_t stored, size_t fetched, FILE *out)
{
    fprintf(out, "  %-20s %17zu %17zu\n", name, stored, fetched);
}

void zero_plan_show_copies(const zero_plan_stage *stage, FILE *out)
{
    const zero_copied_bytes *c = &stage->ledger.copies;
    const zero_traffic *reduced = &stage->ledger.reduce.traffic;
    const zero_traffic *gathered = &stage->ledger.gather.traffic;
    if (!stage->schedule.input.device) return;
    fprintf(out, "\n%-22s %17s %17s\n", "copies per step", "to the device", "from it");
    show_copy("REDUCE", (size_t)reduced->bytes_stored, (size_t)reduced->bytes_fetched, out);
    show_copy("GATHER", (size_t)gathered->bytes_stored, (size_t)gathered->bytes_fetched,
              out);
    show_copy("tokens", c->tokens, 0, out);
    show_copy("losses", 0, c->row_losses, out);
    show_copy("squares of gradients", 0, c->squares, out);
    if (zero_plan_updates_beside(&stage->schedule.input)) {
        show_copy("gradients", 0, c->gradients, out);
        show_copy("updated parameters", c->parameters, 0, out);
    }
    show_copy("each token generated", 0, c->logits, out);
}
