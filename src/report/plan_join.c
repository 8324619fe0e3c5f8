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
