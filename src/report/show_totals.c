#include <inttypes.h>
#include <stdio.h>

#include "engine/file_ledger.h"
#include "nn/gpt2.h"
#include "report/show.h"
#include "report/show_profile.h"
#include "report/text.h"

/* The model's flops, not the machine's: recomputed and masked products do not count. */
static void show_speed(const zero_run_view *v, const zero_run_totals *t)
{
    const zero_gpt2_shape *shape = v->model->shape;
    double rate = (double)t->tokens / t->seconds;
    zero_text_run_row("speed");
    printf("%.0f tokens/s, %" PRId64 " tokens; %.4g Gflop/s of the model per rank:", rate,
           t->tokens, 1e-9 * rate * zero_gpt2_flops(shape) / v->world->size);
    zero_text_run_continue();
    printf("(6 N + 6 L T C) flops per token, N = 12 L C^2 + V C = %.4g M\n",
           1e-6 * zero_gpt2_multiplied(shape));
}

/* The first steps are slower: they touch memory for the first time. */
static void show_step_time(const zero_step_time *t)
{
    zero_text_run_row("step time");
    printf("%.5g ms, the median of %" PRId64 " step%s (quartiles %.5g and %.5g ms)",
           1e3 * t->median, t->n, zero_text_plural(t->n), 1e3 * t->lower, 1e3 * t->upper);
    if (t->first > 0) printf(", without the first %" PRId64, t->first);
    if (t->before > 0) printf(" and %" PRId64 " more", t->before);
    printf("\n");
}

static void show_time(const zero_run_view *v, const zero_run_totals *t)
{
    int64_t steps = v->config->steps - v->start; /* of this run */
    zero_text_run_row("time");
    printf("%.1f s in %" PRId64 " step%s, %.5g ms on average; evaluation, samples %.1f s "
           "more\n",
           t->seconds, steps, zero_text_plural(steps), 1e3 * t->seconds / (double)steps,
           t->eval_seconds);
    show_step_time(&t->step_time);
    zero_show_profile(&t->profile, steps, t->seconds, stdout);
}

static void show_traffic(const zero_run_view *v, const char *name, zero_op op)
{
    zero_traffic plan = zero_engine_planned_traffic(v->engine, op), moved;
    zero_duration spent;
    zero_engine_measured_traffic(v->engine, op, &moved, &spent);
    zero_volume sent = zero_traffic_total(&moved), planned = zero_traffic_total(&plan);
    if (sent.bytes_sent == 0 && planned.bytes_sent == 0 && op != ZERO_OP_COLLECT) return;
    zero_text_run_row(name);
    printf("%s sent in %" PRId64 " messages (planned: %s in %" PRId64 ")",
           ZERO_BYTES(sent.bytes_sent), sent.messages_sent, ZERO_BYTES(planned.bytes_sent),
           planned.messages_sent);
    zero_text_run_continue();
    if (op == ZERO_OP_COLLECT && sent.bytes_sent == 0)
        printf("kept where all ranks read it: once in the node's shared memory");
    else if (v->engine->schedule.input.ipc || v->engine->schedule.input.device_messages)
        printf("%s, %s through the host",
               v->engine->schedule.input.ipc ? "neighbours' devices read it"
                                             : "between devices' memory",
               ZERO_BYTES(moved.bytes_fetched + moved.bytes_stored));
    else if (sent.bytes_sent > 0 && sent.messages_sent == 0)
        printf("neighbours read it in the node's shared memory");
    else
        printf("%s of it to other %snodes", ZERO_BYTES(moved.bytes_sent[ZERO_ACROSS]),
               v->fake_nodes ? "fake " : "");
    printf("; waited %.2f of %.2f s\n", spent.exposed, spent.total);
}

/* MPI chooses how small messages travel, so they count as if sent directly. */
static void show_control(const zero_run_view *v)
{
    zero_traffic plan = zero_engine_planned_control(v->engine);
    zero_traffic moved = zero_engine_measured_control(v->engine);
    zero_traffic rest = v->world->traffic[ZERO_CONTROL];
    zero_traffic_add(&rest, -1, &moved);
    zero_volume p = zero_traffic_total(&plan), m = zero_traffic_total(&moved);
    zero_volume r = zero_traffic_total(&rest);
    zero_text_run_row("control");
    printf("%s sent in %" PRId64 " messages (planned: %s in %" PRId64
           "): losses, norms, votes;",
           ZERO_BYTES(m.bytes_sent), m.messages_sent, ZERO_BYTES(p.bytes_sent),
           p.messages_sent);
    zero_text_run_continue();
    printf("%s in %" PRId64 " more to start, save, sample and end; waited %.2f s\n",
           ZERO_BYTES(r.bytes_sent), r.messages_sent,
           v->world->duration[ZERO_CONTROL].exposed);
}

/* Bytes of a window that are not this rank's. */
static size_t of_neighbours(const zero_window *window, size_t own)
{
    return window->bytes > own ? window->bytes - own : 0;
}

/* The system counts neighbours' memory, which is mapped here too, for every rank. */
static void show_resident(const zero_run_view *v)
{
    const zero_schedule *plan = &v->engine->schedule;
    size_t arena = plan->input.device ? plan->host_bytes : plan->own_bytes;
    size_t planned = arena + plan->window_bytes + plan->tp_window_bytes;
    size_t mapped = of_neighbours(&v->engine->window, plan->window_bytes) +
                    of_neighbours(&v->engine->tp_window, plan->tp_window_bytes);
    double resident = (double)zero_metrics_resident_peak();
    zero_text_run_row("memory");
    printf("%s planned, %s resident at most (rank 0):", ZERO_BYTES(planned),
           ZERO_BYTES(resident));
    zero_text_run_continue();
    if (mapped > 0) printf("%s mapped from neighbours, ", ZERO_BYTES(mapped));
    printf("%s program, libraries and data\n",
           ZERO_BYTES(resident - (double)planned - (double)mapped));
}

/* "per step" is a step with an update. */
static void show_file(const zero_run_view *v)
{
    const zero_schedule *s = &v->engine->schedule;
    if (!zero_plan_uses_file(&s->input)) return;
    zero_file_ledger l = zero_runner_file_ledger(&v->engine->runner);
    zero_offload_traffic step = zero_offload_count(s, ZERO_PROGRAM_STEP);
    zero_file_traffic all = zero_offload_total(&l.measured),
                      one = zero_offload_total(&step);
    zero_file_traffic planned = zero_offload_total(&l.planned);
    zero_text_run_row("file");
    printf("%s read and %s written; %s and %s per step", ZERO_BYTES(all.bytes_read),
           ZERO_BYTES(all.bytes_written), ZERO_BYTES(one.bytes_read),
           ZERO_BYTES(one.bytes_written));
    zero_text_run_continue();
    if (zero_file_ledger_is_as_planned(&l))
        printf("as planned, to the byte\n");
    else
        printf("planned: %" PRIu64 " bytes read, %" PRIu64 " written; moved: %" PRIu64
               ", %" PRIu64 "\n",
               planned.bytes_read, planned.bytes_written, all.bytes_read,
               all.bytes_written);
}

static void show_loss(const zero_run_view *v, const zero_run_totals *t)
{
    zero_text_run_row("loss");
    printf("%.4f in the last step", t->loss);
    if (t->has_val_loss) printf(", validation %.4f nats per token", t->val_loss);
    if (v->corpus->has_entropy)
        printf(" (entropy %.4f)", v->corpus->entropy.nats_per_token);
    printf("\n");
}

static void show_fake_nodes(const zero_run_view *v)
{
    if (!v->fake_nodes) return;
    zero_text_run_row("nodes");
    printf("%d fake ones: the times below mean nothing\n", v->world->layout.n_nodes);
}

static void show_digest(const char *digest)
{
    zero_text_run_row("digest");
    printf("%s\n", digest);
}

/* Operations that move nothing in this run are left out. */
static void show_all_traffic(const zero_run_view *v)
{
    zero_text_run_row("traffic");
    printf("of rank 0, over all steps, evaluations and samples:\n");
    show_traffic(v, "reduced", ZERO_OP_REDUCE);
    show_traffic(v, "all-reduced", ZERO_OP_ALL_REDUCE);
    show_traffic(v, "gathered", ZERO_OP_GATHER);
    show_traffic(v, "joined", ZERO_OP_JOIN);
    if (v->engine->schedule.input.partition_activations)
        show_traffic(v, "collected", ZERO_OP_COLLECT);
    show_control(v);
    zero_text_run_row("polls");
    printf("longest time between polls: %.2f ms\n", 1e3 * v->world->largest_gap);
}

static void show_work(const zero_run_view *v, const zero_run_totals *t)
{
    if (v->engine->skipped > 0) {
        zero_text_run_row("skipped");
        printf("%" PRId64 " of %" PRId64
               " steps: gradients overflowed; loss scale now %g\n",
               v->engine->skipped, v->config->steps, (double)v->engine->loss_scale.scale);
    }
    show_fake_nodes(v);
    show_speed(v, t);
    show_time(v, t);
    show_resident(v);
    if (v->world->size > 1) show_all_traffic(v);
    show_file(v);
}

void zero_show_totals(const zero_run_view *v, const zero_run_totals *t)
{
    bool quiet = v->config->quiet;
    if (!quiet) printf("done\n");
    show_loss(v, t);
    if (!quiet) show_work(v, t);
    show_digest(t->digest);
    fflush(stdout);
}

void zero_show_finished(const zero_run_view *v, const char *digest)
{
    char done[ZERO_PLAN_TEXT] = "the only step was done before";
    if (v->config->steps > 1)
        snprintf(done, sizeof done, "all %" PRId64 " steps were done before",
                 v->config->steps);
    if (v->config->steps == 0)
        printf("nothing to do: --steps 0\n");
    else
        printf("nothing to do: %s\n", done);
    show_digest(digest);
    fflush(stdout);
}
