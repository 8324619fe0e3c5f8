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

/* The block of the file that a transfer moves. */
static void show_block(const zero_schedule *s, const zero_instruction *i, FILE *out)
{
    if (i->op == ZERO_OP_UPDATE || i->file == ZERO_NO_BUFFER) return;
    fprintf(out, "  %s", zero_class_name(s->buffers[i->file].class));
    if (i->group >= 0)
        fprintf(out, ", block %d", i->file - s->groups[i->group].first_block);
}

/* The host's side of a copy to or from the device. */
static void show_host(const zero_schedule *s, const zero_instruction *i, FILE *out)
{
    if (i->host == ZERO_NO_BUFFER) return;
    fprintf(out, "  host: %s, %zu", zero_class_name(s->buffers[i->host].class),
            s->buffers[i->host].bytes);
}

static void show_bytes(int64_t bytes, FILE *out)
{
    if (bytes >= 0)
        fprintf(out, " %17" PRId64, bytes);
    else
        fprintf(out, " %17s", "");
}

static void show_instruction(const zero_plan_entries *e, const zero_plan_entry *line,
                             FILE *out)
{
    const zero_schedule *s = e->s;
    const zero_instruction *i = line->i;
    bool is_peak = e->kind == s->peak_program && line->at == s->peak_at;
    char operand[ZERO_PLAN_TEXT];
    zero_plan_entry_operand(e, line, operand);
    fprintf(out, "%6d  %-*s  %-12s", line->at + 1, name_width(s),
            zero_plan_entry_name(line), operand);
    if (zero_ops[i->op].has_microbatch)
        fprintf(out, " %5d", i->microbatch);
    else
        fprintf(out, " %5s", "");
    show_bytes(line->bytes, out);
    fprintf(out, " %17zu%s", i->live_bytes, is_peak ? "  peak" : "");
    show_block(s, i, out);
    show_host(s, i, out);
    fputc('\n', out);
}

static void show_freed(const zero_plan_entries *e, const zero_plan_entry *line, FILE *out)
{
    char operand[ZERO_PLAN_TEXT];
    zero_plan_entry_operand(e, line, operand);
    fprintf(out, "%6s  %-*s  %-12s %5s", "", name_width(e->s), zero_plan_entry_name(line),
            operand, "");
    show_bytes(line->bytes, out);
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
    for (int k = 0; k < e.n; k++)
        if (e.list[k].at >= 0)
            show_instruction(&e, &e.list[k], out);
        else
            show_freed(&e, &e.list[k], out);
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
