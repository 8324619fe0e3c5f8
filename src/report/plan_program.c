#include "report/plan_program.h"

#include <inttypes.h>

#include "report/plan_setup.h"
#include "report/text.h"

/* Transfers, and what replicas do, have longer names. */
static int name_width(const zero_schedule *s)
{
    if (s->input.offload != ZERO_OFFLOAD_OFF || s->shard.replicas > 1) return 16;
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

static void show_line(const zero_schedule *s, const zero_instruction *i, int at,
                      bool is_peak, FILE *out)
{
    int64_t bytes = zero_plan_instruction_bytes(s, i);
    char operand[ZERO_PLAN_TEXT];
    zero_text_part(s->input.model, i, operand);
    fprintf(out, "%6d  %-*s  %-12s", at + 1, name_width(s), zero_op_name(i->op), operand);
    if (zero_instruction_has_microbatch(i))
        fprintf(out, " %5d", i->microbatch);
    else
        fprintf(out, " %5s", "");
    if (bytes >= 0)
        fprintf(out, " %17" PRId64, bytes);
    else
        fprintf(out, " %17s", "");
    fprintf(out, " %17zu%s", i->live_bytes, is_peak ? "  peak" : "");
    show_block(s, i, out);
    show_host(s, i, out);
    fputc('\n', out);
}

static void show_program(const zero_schedule *s, zero_program_kind kind, FILE *out)
{
    const zero_program *p = &s->programs[kind];
    if (p->length == 0) return;
    fprintf(out, "\n%s\n%6s  %-*s  %-12s %5s %17s %17s\n", zero_program_name(kind), "",
            name_width(s), "", "", "micro", "bytes", "bytes live");
    for (int at = 0; at < p->length; at++)
        show_line(s, &p->code[at], at, kind == s->peak_program && at == s->peak_at, out);
}

/* The step comes first: most readers want it. */
void zero_plan_show_programs(const zero_plan_report *r, FILE *out)
{
    const zero_schedule *s = &r->stages[0].schedule;
    fprintf(out, "%-14s %d\n", "stage", s->input.stage);
    zero_plan_show_setup(r, out);
    bool is_shared = zero_share_has_parts(&r->part->share);
    fprintf(out, "bytes          that %s%sREDUCE and GATHER send, RELEASE gives back, %s\n",
            is_shared ? "JOIN, " : "", s->shard.replicas > 1 ? "ALL_REDUCE, " : "",
            is_shared ? "passes (on their first part) and the "
                        "others write"
                      : "the others write");
    fputs(
        "               of transfers: that are read from the file or written to it\n"
        "bytes live     planned memory in use while the instruction runs, of all classes\n",
        out);
    if (s->input.partition_activations)
        fputs("KEEP, COLLECT  bytes of a piece that is kept, and sent to make the whole\n",
              out);
    if (s->input.device) fputs("               on the device\n", out);
    show_program(s, ZERO_PROGRAM_STEP, out);
    for (int p = 0; p < ZERO_PROGRAMS; p++)
        if (p != ZERO_PROGRAM_STEP) show_program(s, (zero_program_kind)p, out);
}
