#include "report/plan_program.h"

#include <inttypes.h>

#include "base/fail.h"
#include "report/plan_entries.h"
#include "report/plan_facts.h"
#include "report/text.h"

/* Transfers, and what replicas do, have longer names. */
static int name_width(const zero_schedule *s)
{
    if (s->input.offload != ZERO_OFFLOAD_OFF || s->shard.replicas > 1) return 16;
    if (s->pipe.n_stages > 0) return 14;
    return s->input.partition_activations ? 12 : 11;
}

/* An instruction, or a gradient that is freed. */
static void show_line(const zero_plan_entries *e, const zero_plan_entry *line, FILE *out)
{
    const zero_schedule *s = e->s;
    const zero_instruction *i = line->i;
    bool is_freed = line->at < 0;
    char number[16] = "", micro[16] = "", bytes[32] = "", operand[ZERO_PLAN_TEXT];
    zero_plan_entry_operand(e, line, operand);
    if (!is_freed) snprintf(number, sizeof number, "%d", line->at + 1);
    if (!is_freed && zero_ops[i->op].has_microbatch)
        snprintf(micro, sizeof micro, "%d", i->microbatch);
    if (line->bytes >= 0) snprintf(bytes, sizeof bytes, "%" PRId64, line->bytes);
    fprintf(out, "%6s  %-*s  %-12s %5s %17s", number, name_width(s),
            zero_plan_entry_name(line), operand, micro, bytes);
    if (!is_freed) {
        bool is_peak = e->kind == s->peak_program && line->at == s->peak_at;
        fprintf(out, " %17zu%s", i->live_bytes, is_peak ? "  peak" : "");
        /* The block of the file that a transfer moves. */
        bool has_block = i->op != ZERO_OP_UPDATE && i->file != ZERO_NO_BUFFER;
        if (has_block) fprintf(out, "  %s", zero_class_name(s->buffers[i->file].class));
        if (has_block && i->group >= 0)
            fprintf(out, ", block %d", i->file - s->groups[i->group].first_block);
        /* The host's side of a copy to or from the device. */
        if (i->host != ZERO_NO_BUFFER)
            fprintf(out, "  host: %s, %zu", zero_class_name(s->buffers[i->host].class),
                    s->buffers[i->host].bytes);
    }
    fputc('\n', out);
}

zero_status zero_plan_show_program(const zero_schedule *s, zero_program_kind kind,
                                   zero_legend *legend, FILE *out)
{
    zero_plan_entries e;
    if (s->programs[kind].length == 0) return ZERO_OK;
    ZERO_TRY(zero_plan_entries_make(&e, s, kind));
    fprintf(out, "\n%s\n%6s  %-*s  %-12s %5s %17s %17s\n", zero_program_name(kind), "",
            name_width(s), "", "", "micro", "bytes", "bytes live");
    for (int k = 0; k < e.n; k++) show_line(&e, &e.list[k], out);
    zero_legend_add(legend, &e);
    zero_plan_entries_destroy(&e);
    return ZERO_OK;
}

/* The step comes first: most readers want it. */
zero_status zero_plan_show_programs(const zero_plan_report *r, FILE *out)
{
    /* The lines above the programs name these, whether there are any or not. */
    zero_legend legend = {
        .ops = {[ZERO_OP_REDUCE] = true, [ZERO_OP_GATHER] = true, [ZERO_OP_RELEASE] = true},
        .has_freed = true};
    const zero_schedule *s = &r->stages[0].schedule;
    fprintf(out, "%-14s %d\n", "stage", s->input.stage);
    zero_plan_show_setup(r, out);
    bool is_shared = zero_share_has_parts(&r->part->share);
    fprintf(
        out,
        "bytes          that %s%sREDUCE and GATHER send, RELEASE and (freed) give back,\n",
        is_shared ? "JOIN, " : "", s->shard.replicas > 1 ? "ALL_REDUCE, " : "");
    fprintf(out, "%15s%sthe others write\n", "",
            is_shared ? "passes (on their first part) and " : "");
    fputs(
        "               of transfers: that are read from the file or written to it\n"
        "bytes live     planned memory in use while the instruction runs, of all classes\n",
        out);
    if (s->input.partition_activations)
        fputs("KEEP, COLLECT  bytes of a piece that is kept, and sent to make the whole\n",
              out);
    if (s->input.device) fputs("               on the device\n", out);
    ZERO_TRY(zero_plan_show_program(s, ZERO_PROGRAM_STEP, &legend, out));
    for (int p = 0; p < ZERO_PROGRAMS; p++)
        if (p != ZERO_PROGRAM_STEP)
            ZERO_TRY(zero_plan_show_program(s, (zero_program_kind)p, &legend, out));
    zero_legend_show(&legend, out);
    return ZERO_OK;
}
