#include "report/plan_setup.h"

#include <inttypes.h>

#include "report/text.h"

static void show_model(const zero_plan_report *r, FILE *out)
{
    const zero_gpt2_shape *s = &r->shape;
    zero_text_row("model", out);
    fprintf(out,
            "%s: %" PRId64 " layers, %" PRId64 " hidden, %" PRId64 " heads, T %" PRId64
            "; Psi = %" PRId64 " parameters\n",
            r->config.model, s->layers, s->hidden, s->heads, s->seq, r->model.n_params);
    zero_text_row("vocabulary", out);
    fprintf(out, "%" PRId64 ": %s (data is not opened)\n", s->vocab, r->whose_vocab);
}

static void show_ranks(const zero_plan_report *r, FILE *out)
{
    const zero_layout *l = &r->layout;
    zero_text_row("ranks", out);
    fprintf(out, "%d on %d node%s; this is rank %d\n", l->size, l->n_nodes,
            zero_text_plural(l->n_nodes), r->request.rank);
    if (r->config.fake_nodes == 0 && l->size > 1)
        fprintf(
            out,
            "%15sone node per rank, as in the paper's formulas; --fake-nodes K: K nodes\n",
            "");
    zero_text_row("collectives", out);
    fprintf(out, "%s%s%s%s; staging: up to %" PRId64 " elements each\n",
            zero_algorithm_name(r->collectives), r->is_auto ? " (auto: " : "",
            r->is_auto ? r->why : "", r->is_auto ? ")" : "", r->config.bucket);
}

static void show_batch(const zero_plan_report *r, FILE *out)
{
    const zero_config *c = &r->config;
    zero_text_row("batch", out);
    fprintf(out,
            "%" PRId64 " sequences = %d x %" PRId64 " x %" PRId64
            " (ranks x microbatches x sequences); %" PRId64 " tokens per step",
            c->global_batch, r->request.n_ranks, c->accumulation, c->micro_batch,
            c->global_batch * r->shape.seq);
    zero_text_continue(out);
    fprintf(out, "%s\n", zero_text_scaling(c));
}

void zero_plan_show_setup(const zero_plan_report *r, FILE *out)
{
    const zero_config *c = &r->config;
    show_model(r, out);
    show_ranks(r, out);
    show_batch(r, out);
    zero_text_row("options", out);
    fprintf(out,
            "%s, partition %s, prefetch %" PRId64 ", persist %" PRId64 ", overlap %s%s%s\n",
            c->dtype, c->partition, c->prefetch, c->persist, c->overlap,
            c->recompute ? ", recompute" : "", c->reproducible ? ", reproducible" : "");
}
