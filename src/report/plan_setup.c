#include "report/plan_setup.h"

#include <inttypes.h>

#include "report/plan_machine.h"
#include "report/text.h"

static void show_model(const zero_plan_report *r, FILE *out)
{
    const zero_gpt2_shape *s = &r->shape;
    char shape[ZERO_PLAN_TEXT];
    zero_text_shape(s, shape);
    zero_text_row("model", out);
    fprintf(out, "%s: %s; Psi = %" PRId64 " parameters\n", r->config.model, shape,
            r->model.n_params);
    zero_text_row("vocabulary", out);
    fprintf(out, "%" PRId64 ": %s (data is not opened)\n", s->vocab, r->whose_vocab);
}

static void show_shares(const zero_plan_report *r, FILE *out)
{
    char text[2 * ZERO_PLAN_TEXT];
    zero_text_shares(&r->config, text);
    if (text[0] == '\0') return;
    zero_text_row("tensor", out);
    fprintf(out, "%s\n", text);
    if (r->part->share.ranks > 1 && !r->request.simulated)
        fprintf(out, "%15sthis rank has %" PRId64 " parameters\n", "", r->part->n_params);
}

static void show_replicas(const zero_plan_report *r, FILE *out)
{
    char text[2 * ZERO_PLAN_TEXT];
    zero_text_replicas(&r->config, text);
    if (text[0] == '\0') return;
    zero_text_row("replicas", out);
    fprintf(out, "%s\n", text);
}

static void show_collectives(const zero_plan_report *r, FILE *out)
{
    int64_t bucket = r->stages[0].schedule.input.bucket;
    zero_text_row("collectives", out);
    fprintf(out, "%s%s%s%s; staging: up to %" PRId64 " elements each\n",
            zero_algorithm_name(r->collectives), r->is_auto ? " (auto: " : "",
            r->is_auto ? r->why : "", r->is_auto ? ")" : "", bucket);
    if (bucket > r->config.bucket)
        fprintf(out,
                "%15sthe default of %" PRId64
                " is too small: this is the least that %d ranks need\n",
                "", r->config.bucket, r->config.data_ranks);
    const zero_plan_input *in = &r->stages[0].schedule.input;
    if (in->device && in->n_ranks > 1) {
        zero_text_row("exchange", out);
        fprintf(out, "%s\n",
                in->device_messages
                    ? "mpi: messages from and to the devices' memory, if MPI is CUDA-aware"
                : in->ipc
                    ? "ipc: devices read each other's memory, if they can; else staged"
                    : "staged: between devices through the host");
    }
    if (r->config.message > 0 && r->collectives != ZERO_ALGORITHM_SHM)
        fprintf(out, "%15smessages: up to %" PRId64 " bytes; ranks keep pace\n", "",
                r->config.message);
}

#define ALONE "one rank shards and sends nothing; --ranks N plans for N"

static void show_ranks(const zero_plan_report *r, FILE *out)
{
    const zero_layout *l = &r->layout;
    zero_text_row("ranks", out);
    fprintf(out, "%d on %d node%s", l->size, l->n_nodes, zero_text_plural(l->n_nodes));
    if (!r->request.simulated) fprintf(out, "; this is rank %d", r->request.rank);
    fputc('\n', out);
    if (l->size == 1) fprintf(out, "%15s%s\n", "", ALONE);
    if (r->config.fake_nodes == 0 && l->size > 1)
        fprintf(out, "%15sone node per %s; --fake-nodes K: K nodes\n", "",
                l->n_nodes < l->size ? "TP group" : "rank, as in the paper's formulas");
    show_shares(r, out);
    show_replicas(r, out);
    show_collectives(r, out);
}

static void show_batch(const zero_plan_report *r, FILE *out)
{
    const zero_config *c = &r->config;
    char text[2 * ZERO_PLAN_TEXT];
    zero_text_batch(c, text);
    zero_text_row("batch", out);
    fprintf(out, "%s; %" PRId64 " tokens per step", text, c->global_batch * r->shape.seq);
    zero_text_continue(out);
    fprintf(out, "%s\n", zero_text_scaling(c));
}

void zero_plan_show_setup(const zero_plan_report *r, FILE *out)
{
    const zero_config *c = &r->config;
    show_model(r, out);
    show_ranks(r, out);
    zero_plan_machine_show(r, out);
    show_batch(r, out);
    zero_text_row("options", out);
    fprintf(out,
            "%s%s, partition %s, prefetch %" PRId64 ", persist %" PRId64
            ", overlap %s%s%s%s%s\n",
            c->dtype,
            zero_config_activations(c) == ZERO_FP32 ? "" : ", activations of 16 bits",
            c->partition, c->prefetch, c->persist, c->overlap,
            c->recompute ? ", recompute" : "", c->partition_activations ? ", P_a" : "",
            c->reproducible ? ", reproducible" : "",
            c->node_parameters ? ", node parameters" : "");
}

void zero_plan_show_title(const zero_plan_report *r, const char *what, FILE *out)
{
    const zero_config *config = &r->config;
    fprintf(out,
            "%s a training step of %s, Psi = %" PRId64
            "\n%s, %d rank%s on %d node%s, %" PRId64 " microbatch%s of %" PRId64
            " sequence%s\n",
            what, config->model, r->model.n_params, config->dtype, r->layout.size,
            zero_text_plural(r->layout.size), r->layout.n_nodes,
            zero_text_plural(r->layout.n_nodes), config->accumulation,
            config->accumulation == 1 ? "" : "es", config->micro_batch,
            zero_text_plural(config->micro_batch));
    if (r->layout.size == 1) fprintf(out, "%s\n", ALONE);
}
