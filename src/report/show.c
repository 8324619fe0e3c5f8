#include "report/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "math/blas.h"
#include "math/cpu_kernels.h"
#include "nn/gpt2.h"
#include "report/print_text.h"
#include "report/show_profile.h"
#include "sharding/schedule_exchange.h"

static double mib(size_t bytes)
{
    return (double)bytes / 1048576.0;
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

#define INDENT 16 /* where what a row says begins */

static void row(const char *name)
{
    printf("  %-*s", INDENT - 2, name);
}

static void row_goes_on(void)
{
    printf("\n%*s", INDENT, "");
}

/* ---- before ---- */

static void show_model(const zero_run_view *v)
{
    const zero_gpt2_shape *g = v->model->shape;
    row("model");
    printf("%s: %" PRId64 " layers, %" PRId64 " hidden, %" PRId64 " heads, T %" PRId64
           ", V %" PRId64 "; %" PRId64 " parameters\n",
           v->config->model, g->layers, g->hidden, g->heads, g->seq, g->vocab,
           v->model->n_params);
    row("weights");
    if (v->has_loaded)
        printf("from the checkpoint below\n");
    else if (v->config->init_from)
        printf("from %s\n", v->config->init_from);
    else
        printf("random, seed %" PRId64 "\n", v->config->seed);
    row("data");
    printf("%s\n", v->corpus->description);
    if (v->corpus->has_entropy) {
        row("entropy");
        printf("%.4f nats per token: no model's loss can stay below it\n",
               v->corpus->entropy.nats_per_token);
    }
}

static void show_training(const zero_run_view *v)
{
    const zero_config *c = v->config;
    row("batch");
    printf("%" PRId64 " sequences = %d x %" PRId64 " x %" PRId64
           " (ranks x microbatches x sequences); %" PRId64 " tokens per step\n",
           c->global_batch, v->world->size, c->accumulation, c->micro_batch,
           c->global_batch * v->model->seq);
    row("optimizer");
    printf("AdamW, %" PRId64 " steps, lr %g after %" PRId64
           " steps, down to %g; decay %g, clip %g\n",
           c->steps, c->lr, c->warmup, c->lr_min, c->weight_decay, c->clip);
}

static void show_collectives(const zero_run_view *v)
{
    const zero_schedule *plan = &v->engine->schedule;
    zero_traffic reduced = zero_schedule_traffic(plan, ZERO_PROGRAM_STEP, ZERO_OP_REDUCE);
    zero_traffic gathered = zero_schedule_traffic(plan, ZERO_PROGRAM_STEP, ZERO_OP_GATHER);
    row("collectives");
    printf("%s", zero_algorithm_name(plan->input.collectives));
    if (v->why_collectives)
        printf(" (auto: %s)",
               v->engine->why_p2p[0] ? "the node cannot share memory" : v->why_collectives);
    printf("; %d node%s\n", v->world->layout.n_nodes, plural(v->world->layout.n_nodes));
    row("communication");
    printf("stage %d, %s: %.2f MiB reduced and %.2f MiB gathered per rank and step\n",
           plan->input.stage, zero_partition_scheme_name(plan->input.partition),
           mib((size_t)zero_traffic_total(&reduced).bytes_sent),
           mib((size_t)zero_traffic_total(&gathered).bytes_sent));
    if (v->engine->why_p2p[0])
        fprintf(stderr, "zero: warning: --collectives auto takes p2p: %s\n",
                v->engine->why_p2p);
}

static void show_ledgers(const zero_run_view *v)
{
    const zero_schedule *plan = &v->engine->schedule;
    row("memory");
    printf("%.1f MiB per rank; each class at its own peak, in MiB:",
           mib(plan->own_bytes + plan->window_bytes));
    for (int c = 0, shown = 0; c < ZERO_CLASSES; c++) {
        if (plan->class_peak[c] == 0) continue;
        if (shown > 0) putchar(',');
        if (shown++ % 4 == 0)
            row_goes_on();
        else
            putchar(' ');
        printf("%s %.1f", zero_class_name((zero_class)c), mib(plan->class_peak[c]));
    }
    printf("\n");
    show_collectives(v);
}

/* What multiplies, if it is not BLAS. */
static const char *own_products(const zero_config *c)
{
    const char *bf16 = zero_cpu_bf16_name();
    if (strcmp(c->backend, "cpu") != 0) return "plain loops";
    return strcmp(c->dtype, "bf16") == 0 && bf16 ? bf16 : zero_cpu_fp32_name();
}

void zero_show_arithmetic(const zero_run_view *v, char *text, size_t size)
{
    const char *own = own_products(v->config);
    char blas[128], threads[64] = "";
    zero_blas_name(blas, sizeof blas);
    if (!own && v->blas_threads > 0)
        snprintf(threads, sizeof threads, ", %d thread%s per rank", v->blas_threads,
                 plural(v->blas_threads));
    else if (!own)
        snprintf(threads, sizeof threads, " (its own variables set its threads)");
    snprintf(text, size, "%s backend, %s kernels; %s products by %s%s", v->config->backend,
             zero_cpu_kernels_name(), v->config->dtype, own ? own : blas, threads);
}

static void show_compute(const zero_run_view *v)
{
    char text[256];
    zero_show_arithmetic(v, text, sizeof text);
    row("compute");
    printf("%s\n", text);
}

static void show_checkpoints(const zero_run_view *v)
{
    const zero_config *c = v->config;
    if (!c->checkpoint) return;
    row("checkpoints");
    printf("%s, ", c->checkpoint);
    if (c->save_every > 0) printf("every %" PRId64 " steps and ", c->save_every);
    printf("at the end; %" PRId64 " kept\n", c->keep);
    if (!c->resume && !c->resume_older) return;
    row("resumed");
    printf("%s\n", v->from);
    if (!v->changes[0]) return;
    row("changed");
    printf("%s\n", v->changes);
}

static void warn_oversubscribed(const zero_run_view *v)
{
    int threads = v->blas_threads > 0 ? v->blas_threads : 1;
    const zero_topology *t = v->topology;
    if (threads * v->node_ranks > t->allowed_cores)
        fprintf(
            stderr,
            "zero: warning: %d rank%s x %d thread%s on this node share %d cores and take "
            "turns\n",
            v->node_ranks, plural(v->node_ranks), threads, plural(threads),
            t->allowed_cores);
    else if (threads > t->usable_cores)
        fprintf(
            stderr,
            "zero: warning: %d threads per rank, but a rank is bound to %d core%s: start "
            "with mpirun --bind-to none, or --map-by slot:PE=%d\n",
            threads, t->usable_cores, plural(t->usable_cores), threads);
}

void zero_show_setup(const zero_run_view *v)
{
    printf("zero %s, %d rank%s, %d on this node\n", ZERO_VERSION, v->world->size,
           plural(v->world->size), v->node_ranks);
    show_model(v);
    show_training(v);
    show_ledgers(v);
    show_compute(v);
    show_checkpoints(v);
    fflush(stdout);
    warn_oversubscribed(v);
}

/* ---- during ---- */

static void show_bar(const zero_run_view *v, const zero_metrics_step *step)
{
    char bar[41];
    int done = (int)(40 * step->step / v->config->steps);
    memset(bar, ' ', 40);
    memset(bar, '#', (size_t)done);
    bar[40] = '\0';
    fprintf(stderr, "\r[%s] %" PRId64 "/%" PRId64 "  loss %.4f", bar, step->step,
            v->config->steps, step->loss);
    if (step->step == v->config->steps) fputc('\n', stderr);
    fflush(stderr);
}

void zero_show_step(const zero_run_view *v, const zero_metrics_step *step, bool in_bar)
{
    if (in_bar) {
        show_bar(v, step);
        return;
    }
    printf("step %6" PRId64 "/%" PRId64
           " | loss %7.4f | norm %6.3f | lr %.2e | %8.1f ms | %8.0f tok/s\n",
           step->step, v->config->steps, step->loss, step->grad_norm, step->lr,
           1e3 * step->seconds, (double)step->tokens / step->seconds);
    if (step->skipped)
        printf("step %6" PRId64 "/%" PRId64
               " | skipped: a gradient overflowed at loss scale %g\n",
               step->step, v->config->steps, step->loss_scale);
    fflush(stdout);
}

void zero_show_evaluation(const zero_run_view *v, const zero_metrics_step *step)
{
    printf("step %6" PRId64 "/%" PRId64 " | validation loss %.4f\n", step->step,
           v->config->steps, step->val_loss);
    fflush(stdout);
}

void zero_show_sample(const zero_run_view *v, const char *title, const int32_t *tokens,
                      int64_t n)
{
    const zero_tokenizer *tokenizer = v->corpus->tokenizer;
    printf("---- %s\n", title);
    for (int64_t i = 0; !tokenizer && i < n; i++) printf("%" PRId32 " ", tokens[i]);
    /* A sample that finds no memory is not worth a run. */
    bool shown =
        !tokenizer || zero_print_tokens(tokenizer, tokens, n, false, stdout) == ZERO_OK;
    printf("%s\n----\n", shown ? "" : "(no memory)");
    fflush(stdout);
}

/* ---- after ---- */

/* The model's flops, not the machine's: what is recomputed or masked does not count. */
static void show_speed(const zero_run_view *v, const zero_run_totals *t)
{
    const zero_gpt2_shape *shape = v->model->shape;
    double rate = (double)t->tokens / t->seconds;
    row("speed");
    printf("%.0f tokens/s, %" PRId64 " tokens; %.4g Gflop/s of the model per rank:", rate,
           t->tokens, 1e-9 * rate * zero_gpt2_flops(shape) / v->world->size);
    row_goes_on();
    printf("(6 N + 6 L T C) flops per token, N = 12 L C^2 + V C = %.4g M\n",
           1e-6 * zero_gpt2_multiplied(shape));
}

static void show_time(const zero_run_view *v, const zero_run_totals *t)
{
    int64_t steps = v->config->steps - v->start; /* of this run */
    row("time");
    printf("%.1f s in %" PRId64 " steps, %.5g ms each; evaluation, samples %.1f s more\n",
           t->seconds, steps, 1e3 * t->seconds / (double)steps, t->eval_seconds);
    zero_show_profile(&t->profile, steps, t->seconds, stdout);
}

static void show_traffic(const zero_run_view *v, const char *name, zero_op op)
{
    zero_traffic plan = zero_engine_planned_traffic(v->engine, op), moved;
    zero_duration spent;
    zero_engine_measured_traffic(v->engine, op, &moved, &spent);
    zero_volume sent = zero_traffic_total(&moved), planned = zero_traffic_total(&plan);
    row(name);
    printf("%.2f MiB sent in %" PRId64 " messages (planned: %.2f MiB in %" PRId64 ")",
           mib((size_t)sent.bytes_sent), sent.messages_sent,
           mib((size_t)planned.bytes_sent), planned.messages_sent);
    row_goes_on();
    if (sent.bytes_sent > 0 && sent.messages_sent == 0)
        printf("neighbours read it in the node's shared memory");
    else
        printf("%.2f MiB of it to other nodes", mib((size_t)moved.bytes_sent[ZERO_ACROSS]));
    printf("; waited %.2f of %.2f s\n", spent.exposed, spent.total);
}

/* Neighbours' memory is mapped here, too, and the system counts it for every rank. */
static void show_resident(const zero_run_view *v)
{
    const zero_schedule *plan = &v->engine->schedule;
    size_t planned = plan->own_bytes + plan->window_bytes;
    size_t mapped = v->engine->window.bytes > plan->window_bytes
                        ? v->engine->window.bytes - plan->window_bytes
                        : 0;
    double resident = mib(zero_metrics_resident_peak());
    row("memory");
    printf("%.1f MiB planned, %.1f MiB resident at most (rank 0):", mib(planned), resident);
    row_goes_on();
    if (mapped > 0) printf("%.1f MiB of it are neighbours', ", mib(mapped));
    printf("%.1f MiB program, libraries and data\n", resident - mib(planned) - mib(mapped));
}

static void show_loss(const zero_run_view *v, const zero_run_totals *t)
{
    row("loss");
    printf("%.4f in the last step", t->loss);
    if (t->has_val_loss) printf(", validation %.4f nats per token", t->val_loss);
    if (v->corpus->has_entropy)
        printf(" (entropy %.4f)", v->corpus->entropy.nats_per_token);
    printf("\n");
}

void zero_show_totals(const zero_run_view *v, const zero_run_totals *t)
{
    printf("done\n");
    if (t->tokens > 0) {
        show_loss(v, t);
    } else {
        row("steps");
        printf("none was left: all %" PRId64 " were done before\n", v->config->steps);
    }
    if (v->engine->skipped > 0) {
        row("skipped");
        printf("%" PRId64 " of %" PRId64
               " steps: gradients overflowed; loss scale now %g\n",
               v->engine->skipped, v->config->steps, (double)v->engine->loss_scale.scale);
    }
    if (t->tokens > 0) {
        show_speed(v, t);
        show_time(v, t);
    }
    show_resident(v);
    row("traffic");
    printf("of rank 0, of all steps, evaluations and samples:\n");
    show_traffic(v, "reduced", ZERO_OP_REDUCE);
    show_traffic(v, "gathered", ZERO_OP_GATHER);
    row("polls");
    printf("collectives were left alone for %.2f ms at most\n",
           1e3 * v->world->largest_gap);
    row("digest");
    printf("%s\n", t->digest);
    fflush(stdout);
}
