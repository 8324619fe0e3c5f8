#include "report/plan_file.h"

#include <inttypes.h>

#include "report/text.h"

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
    if (stage->schedule.input.offload == ZERO_OFFLOAD_OFF) return;
    fprintf(out, "\n%-22s %17s %17s %10s %10s\n", "the file, per step", "bytes read",
            "bytes written", "reads", "writes");
    show_row(zero_class_name(ZERO_CLASS_OPTIMIZER), &t->states, out);
    show_row(zero_class_name(ZERO_CLASS_PARAMETERS), &t->parameters, out);
    show_row(zero_class_name(ZERO_CLASS_ACTIVATIONS), &t->activations, out);
    show_row("all", &all, out);
}
