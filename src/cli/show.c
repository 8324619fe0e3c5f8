#include "cli/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/print_text.h"
#include "cli/show_profile.h"
#include "math/blas.h"
#include "math/cpu_kernels.h"
#include "nn/gpt2.h"

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

static void show_model(const zero_session *s)
{
    const zero_gpt2_shape *g = s->model.shape;
    row("model");
    printf("%s: %" PRId64 " layers, %" PRId64 " hidden, %" PRId64 " heads, T %" PRId64
           ", V %" PRId64 "; %" PRId64 " parameters\n",
           s->config.model, g->layers, g->hidden, g->heads, g->seq, g->vocab,
           s->model.n_params);
    row("weights");
    if (s->saving.saved >= 0)
        printf("from the checkpoint below\n");
    else if (s->config.init_from)
        printf("from %s\n", s->config.init_from);
    else
        printf("random, seed %" PRId64 "\n", s->config.seed);
    row("data");
    printf("%s\n", s->corpus.description);
    if (s->corpus.has_entropy) {
        row("entropy");
        printf("%.4f nats per token: no model's loss can stay below it\n",
               s->corpus.entropy.nats_per_token);
    }
}

static void show_training(const zero_session *s)
{
    const zero_config *c = &s->config;
    row("batch");
    printf("%" PRId64 " sequences = %d x %" PRId64 " x %" PRId64
           " (ranks x microbatches x sequences); %" PRId64 " tokens per step\n",
           c->global_batch, s->world.size, c->accumulation, c->micro_batch,
           c->global_batch * s->model.seq);
    row("optimizer");
    printf("AdamW, %" PRId64 " steps, lr %g after %" PRId64
           " steps, down to %g; decay %g, clip %g\n",
           c->steps, c->lr, c->warmup, c->lr_min, c->weight_decay, c->clip);
}

static void show_collectives(const zero_session *s)
{
    const zero_schedule *plan = &s->engine.schedule;
    zero_traffic reduced = zero_schedule_traffic(plan, ZERO_PROGRAM_STEP, ZERO_OP_REDUCE);
    zero_traffic gathered = zero_schedule_traffic(plan, ZERO_PROGRAM_STEP, ZERO_OP_GATHER);
    row("collectives");
    printf("%s", zero_algorithm_name(plan->input.collectives));
    if (s->why_collectives)
        printf(" (auto: %s)",
               s->engine.why_p2p[0] ? "the node cannot share memory" : s->why_collectives);
    printf("; %d node%s\n", s->world.layout.n_nodes, plural(s->world.layout.n_nodes));
    row("communication");
    printf("stage %d, %s: %.2f MiB reduced and %.2f MiB gathered per rank and step\n",
           plan->input.stage, zero_partition_scheme_name(plan->input.partition),
           mib((size_t)zero_traffic_total(&reduced).bytes_sent),
           mib((size_t)zero_traffic_total(&gathered).bytes_sent));
    if (s->engine.why_p2p[0])
        fprintf(stderr, "zero: warning: --collectives auto takes p2p: %s\n",
                s->engine.why_p2p);
}

static void show_ledgers(const zero_session *s)
{
    const zero_schedule *plan = &s->engine.schedule;
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
    show_collectives(s);
}

/* What multiplies, if it is not BLAS. */
static const char *own_products(const zero_config *c)
{
    const char *bf16 = zero_cpu_bf16_name();
    if (strcmp(c->backend, "cpu") != 0) return "plain loops";
    return strcmp(c->dtype, "bf16") == 0 && bf16 ? bf16 : zero_cpu_fp32_name();
}

void zero_show_arithmetic(const zero_session *s, char *text, size_t size)
{
    const char *own = own_products(&s->config);
    char blas[128], threads[64] = "";
    zero_blas_name(blas, sizeof blas);
    if (!own && s->blas_threads > 0)
        snprintf(threads, sizeof threads, ", %d thread%s per rank", s->blas_threads,
                 plural(s->blas_threads));
    else if (!own)
        snprintf(threads, sizeof threads, " (its own variables set its threads)");
    snprintf(text, size, "%s backend, %s kernels; %s products by %s%s", s->config.backend,
             zero_cpu_kernels_name(), s->config.dtype, own ? own : blas, threads);
}

static void show_compute(const zero_session *s)
{
    char text[256];
    zero_show_arithmetic(s, text, sizeof text);
    row("compute");
    printf("%s\n", text);
}

static void show_checkpoints(const zero_session *s)
{
    const zero_config *c = &s->config;
    if (!c->checkpoint) return;
    row("checkpoints");
    printf("%s, ", c->checkpoint);
    if (c->save_every > 0) printf("every %" PRId64 " steps and ", c->save_every);
    printf("at the end; %" PRId64 " kept\n", c->keep);
    if (!c->resume && !c->resume_older) return;
    row("resumed");
    printf("%s\n", s->saving.from);
    if (!s->saving.changes[0]) return;
    row("changed");
    printf("%s\n", s->saving.changes);
}

static void warn_oversubscribed(const zero_session *s)
{
    int threads = s->blas_threads > 0 ? s->blas_threads : 1;
    const zero_topology *t = &s->topology;
    if (threads * s->node_ranks > t->allowed_cores)
        fprintf(
            stderr,
            "zero: warning: %d rank%s x %d thread%s on this node share %d cores and take "
            "turns\n",
            s->node_ranks, plural(s->node_ranks), threads, plural(threads),
            t->allowed_cores);
    else if (threads > t->usable_cores)
        fprintf(
            stderr,
            "zero: warning: %d threads per rank, but a rank is bound to %d core%s: start "
            "with mpirun --bind-to none, or --map-by slot:PE=%d\n",
            threads, t->usable_cores, plural(t->usable_cores), threads);
}

void zero_show_setup(const zero_session *s)
{
    printf("zero %s, %d rank%s, %d on this node\n", ZERO_VERSION, s->world.size,
           plural(s->world.size), s->node_ranks);
    show_model(s);
    show_training(s);
    show_ledgers(s);
    show_compute(s);
    show_checkpoints(s);
    fflush(stdout);
    warn_oversubscribed(s);
}

/* ---- during ---- */

static void show_bar(const zero_session *s, const zero_metrics_step *step)
{
    char bar[41];
    int done = (int)(40 * step->step / s->config.steps);
    memset(bar, ' ', 40);
    memset(bar, '#', (size_t)done);
    bar[40] = '\0';
    fprintf(stderr, "\r[%s] %" PRId64 "/%" PRId64 "  loss %.4f", bar, step->step,
            s->config.steps, step->loss);
    if (step->step == s->config.steps) fputc('\n', stderr);
    fflush(stderr);
}

void zero_show_step(const zero_session *s, const zero_metrics_step *step, bool in_bar)
{
    if (in_bar) {
        show_bar(s, step);
        return;
    }
    printf("step %6" PRId64 "/%" PRId64
           " | loss %7.4f | norm %6.3f | lr %.2e | %8.1f ms | %8.0f tok/s\n",
           step->step, s->config.steps, step->loss, step->grad_norm, step->lr,
           1e3 * step->seconds, (double)step->tokens / step->seconds);
    if (step->skipped)
        printf("step %6" PRId64 "/%" PRId64
               " | skipped: a gradient overflowed at loss scale %g\n",
               step->step, s->config.steps, step->loss_scale);
    fflush(stdout);
}

void zero_show_evaluation(const zero_session *s, const zero_metrics_step *step)
{
    printf("step %6" PRId64 "/%" PRId64 " | validation loss %.4f\n", step->step,
           s->config.steps, step->val_loss);
    fflush(stdout);
}

void zero_show_sample(const zero_session *s, const char *title, const int32_t *tokens,
                      int64_t n)
{
    const zero_tokenizer *tokenizer = s->corpus.tokenizer;
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
static void show_speed(const zero_session *s, const zero_run_totals *t)
{
    const zero_gpt2_shape *shape = s->model.shape;
    double rate = (double)t->tokens / t->seconds;
    row("speed");
    printf("%.0f tokens/s, %" PRId64 " tokens; %.4g Gflop/s of the model per rank:", rate,
           t->tokens, 1e-9 * rate * zero_gpt2_flops(shape) / s->world.size);
    row_goes_on();
    printf("(6 N + 6 L T C) flops per token, N = 12 L C^2 + V C = %.4g M\n",
           1e-6 * zero_gpt2_multiplied(shape));
}

static void show_time(const zero_session *s, const zero_run_totals *t)
{
    int64_t steps = s->config.steps - s->saving.start; /* of this run */
    row("time");
    printf("%.1f s in %" PRId64 " steps, %.5g ms each; evaluation, samples %.1f s more\n",
           t->seconds, steps, 1e3 * t->seconds / (double)steps, t->eval_seconds);
    zero_show_profile(&t->profile, steps, t->seconds, stdout);
}

static void show_traffic(const zero_session *s, const char *name, zero_op op,
                         const zero_collective_kind kinds[2])
{
    zero_traffic plan = zero_engine_planned_traffic(&s->engine, op), moved = {0};
    zero_duration spent = {0};
    for (int k = 0; k < 2; k++) {
        zero_traffic_add(&moved, 1, &s->world.traffic[kinds[k]]);
        spent.total += s->world.duration[kinds[k]].total;
        spent.exposed += s->world.duration[kinds[k]].exposed;
    }
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
static void show_resident(const zero_session *s)
{
    const zero_schedule *plan = &s->engine.schedule;
    size_t planned = plan->own_bytes + plan->window_bytes;
    size_t mapped = s->engine.window.bytes > plan->window_bytes
                        ? s->engine.window.bytes - plan->window_bytes
                        : 0;
    double resident = mib(zero_metrics_resident_peak());
    row("memory");
    printf("%.1f MiB planned, %.1f MiB resident at most (rank 0):", mib(planned), resident);
    row_goes_on();
    if (mapped > 0) printf("%.1f MiB of it are neighbours', ", mib(mapped));
    printf("%.1f MiB program, libraries and data\n", resident - mib(planned) - mib(mapped));
}

static void show_loss(const zero_session *s, const zero_run_totals *t)
{
    row("loss");
    printf("%.4f in the last step", t->loss);
    if (t->has_val_loss) printf(", validation %.4f nats per token", t->val_loss);
    if (s->corpus.has_entropy) printf(" (entropy %.4f)", s->corpus.entropy.nats_per_token);
    printf("\n");
}

void zero_show_totals(const zero_session *s, const zero_run_totals *t)
{
    printf("done\n");
    if (t->tokens > 0) {
        show_loss(s, t);
    } else {
        row("steps");
        printf("none was left: all %" PRId64 " were done before\n", s->config.steps);
    }
    if (s->engine.skipped > 0) {
        row("skipped");
        printf("%" PRId64 " of %" PRId64
               " steps: gradients overflowed; loss scale now %g\n",
               s->engine.skipped, s->config.steps, (double)s->engine.loss_scale.scale);
    }
    if (t->tokens > 0) {
        show_speed(s, t);
        show_time(s, t);
    }
    show_resident(s);
    row("traffic");
    printf("of rank 0, of all steps, evaluations and samples:\n");
    show_traffic(s, "reduced", ZERO_OP_REDUCE, zero_kinds_that_reduce);
    show_traffic(s, "gathered", ZERO_OP_GATHER, zero_kinds_that_gather);
    row("polls");
    printf("collectives were left alone for %.2f ms at most\n", 1e3 * s->world.largest_gap);
    row("digest");
    printf("%s\n", t->digest);
    fflush(stdout);
}
