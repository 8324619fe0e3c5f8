#include "report/plan_join.h"

#include "report/text.h"
#include "sharding/formula.h"

/* JOINs carry fp32. */
static double bytes_of(const zero_schedule *s, int sums)
{
    const zero_plan_input *in = &s->input;
    const zero_gpt2_shape *shape = in->model->units->shape;
    int64_t elements = in->micro_batch * in->seq * shape->hidden;
    double one = zero_formula_tp_volume(elements, sums, in->model->share.ranks);
    return (double)shape->layers * in->accumulation * one * (double)sizeof(float);
}

zero_plan_blocks zero_plan_blocks_of(const zero_schedule *s)
{
    int sums = zero_formula_tp_sums(s->input.recompute),
        papers = zero_formula_tp_sums_of_paper(s->input.recompute);
    return (zero_plan_blocks){.elements = 2 * sums,
                              .papers_elements = 2 * papers,
                              .ours = bytes_of(s, sums),
                              .papers = bytes_of(s, papers)};
}

void zero_plan_show_blocks(const zero_schedule *s, FILE *out)
{
    char ours[ZERO_PLAN_TEXT], papers[ZERO_PLAN_TEXT];
    zero_plan_blocks b = zero_plan_blocks_of(s);
    if (s->n_joins == 0) return;
    zero_text_bytes(b.ours, ours);
    zero_text_bytes(b.papers, papers);
    zero_text_row("blocks", out);
    fprintf(out, "%d b s h (T-1)/T floats each by messages = %s; the paper's %d = %s\n",
            b.elements, ours, b.papers_elements, papers);
    if (!s->input.recompute) return;
    fprintf(out, "%15s(ours does not recompute a block's last product, nor join it)\n", "");
}

zero_plan_kept_parts zero_plan_kept_parts_of(const zero_schedule *s)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    int ranks = s->input.model->share.ranks;
    zero_plan_kept_parts k = {.pieces = 0};
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        if (i->op != ZERO_OP_KEEP) continue;
        size_t piece = (size_t)zero_range_len(i->range) * sizeof(float);
        if (i->microbatch == 0) k.pieces += piece;
        k.added += zero_formula_tp_collected((int64_t)piece * ranks, ranks);
    }
    k.wholes = k.pieces * (size_t)ranks;
    return k;
}

void zero_plan_show_kept_parts(const zero_schedule *s, const zero_plan_ledger *l, FILE *out)
{
    char pieces[ZERO_PLAN_TEXT], wholes[ZERO_PLAN_TEXT], added[ZERO_PLAN_TEXT];
    zero_plan_kept_parts k = zero_plan_kept_parts_of(s);
    zero_plan_blocks b = zero_plan_blocks_of(s);
    if (!s->input.partition_activations) return;
    zero_text_bytes((double)k.pieces, pieces);
    zero_text_bytes((double)k.wholes, wholes);
    zero_text_bytes(k.added, added);
    zero_text_row("P_a", out);
    fprintf(out, "%s of activations wait for their backward pass, 1/%d of %s%s\n", pieces,
            s->input.model->share.ranks, wholes,
            s->input.offload_activations ? "; all but one go to the file" : "");
    if (zero_traffic_total(&l->collect.traffic).bytes_sent == 0) {
        fprintf(out, "%15sCOLLECT moves nothing: they lie once in the node's memory\n", "");
        fprintf(out, "%15sby messages it would add 1/%d to the blocks' JOINs = %s\n", "",
                b.elements, added);
    } else {
        fprintf(out, "%15sCOLLECT adds b s h (T-1)/T floats to each block = %s\n", "",
                added);
        fprintf(out, "%15s1/%d of the block's JOINs; of the paper's, 1/%d\n", "",
                b.elements, b.papers_elements);
    }
}
