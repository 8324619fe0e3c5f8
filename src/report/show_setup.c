#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/legible.h"
#include "comm/launch.h"
#include "math/backends.h"
#include "math/blas.h"
#include "nn/gpt2.h"
#include "report/show.h"
#include "report/show_warnings.h"
#include "report/text.h"
#include "sharding/checks.h"
#include "sharding/offload.h"
#include "sharding/schedule_device.h"
#include "sharding/schedule_exchange.h"
#include "train/learning_rate.h"

/* Only what differs from the last tenth of the data, in order. */
static void show_validation(const zero_run_view *v)
{
    const zero_corpus *corpus = v->corpus;
    if (!corpus->has_validation && !v->config->eval_random) return;
    zero_text_run_row("validation");
    printf("%s%s\n",
           corpus->has_validation ? ZERO_SHOWN(corpus->validation) : "the last tenth",
           v->config->eval_random ? "; random windows, the same at each evaluation" : "");
}

static void show_inputs(const zero_run_view *v)
{
    zero_text_run_row("weights");
    if (v->has_loaded)
        printf("from the checkpoint below\n");
    else if (v->config->init_from)
        printf("from %s%s%s\n", ZERO_SHOWN(v->config->init_from),
               v->import_note[0] ? ": " : "", v->import_note);
    else
        printf("random, seed %" PRId64 "\n", v->config->seed);
    zero_text_run_row("data");
    printf("%s\n", ZERO_SHOWN(v->corpus->description));
    if (v->why_own_tokens[0]) {
        zero_text_run_continue();
        printf("each rank has its own copy: %s\n", v->why_own_tokens);
    }
    show_validation(v);
    if (v->corpus->has_entropy) {
        zero_text_run_row("entropy");
        printf("%.4f nats per token: the least loss that any model can reach\n",
               v->corpus->entropy.nats_per_token);
    }
}

static void show_training(const zero_run_view *v)
{
    const zero_config *c = v->config;
    char text[2 * ZERO_PLAN_TEXT];
    zero_text_shares(c, text);
    if (text[0]) {
        zero_text_run_row("tensor");
        printf("%s\n", text);
    }
    zero_text_replicas(c, text);
    if (text[0]) {
        zero_text_run_row("replicas");
        printf("%s\n", text);
    }
    zero_text_batch(c, text);
    zero_text_run_row("batch");
    printf("%s; %" PRId64 " tokens per step", text, c->global_batch * v->model->seq);
    zero_text_run_continue();
    printf("%s\n", zero_text_scaling(c));
    if (c->plan.reproducible) {
        zero_text_run_row("reproducible");
        printf("the bits depend on both batches, not on the number of ranks\n");
    }
    zero_decay decay = zero_decay_find(c->lr_decay);
    zero_text_run_row("optimizer");
    printf("AdamW, %" PRId64 " step%s, lr %g after %" PRId64 " step%s, ", c->steps,
           zero_text_plural(c->steps), c->lr, c->warmup, zero_text_plural(c->warmup));
    if (decay == ZERO_DECAY_NONE)
        printf("constant");
    else
        printf("down to %g%s", c->lr_min,
               decay == ZERO_DECAY_LINEAR ? " along a line" : "");
    printf("; decay %g, clip %g\n", c->weight_decay, c->clip);
}

/* The traffic between replicas. */
static void show_added(const zero_schedule *plan)
{
    zero_traffic added = zero_schedule_traffic(plan, ZERO_PROGRAM_STEP, ZERO_OP_ALL_REDUCE);
    if (plan->shard.replicas == 1) return;
    zero_text_run_row("");
    printf("%s of gradients added up between replicas per rank and step\n",
           ZERO_BYTES(zero_traffic_total(&added).bytes_sent));
}

/* How the ranks' devices exchange. */
static void show_exchange(const zero_run_view *v)
{
    const zero_plan_input *in = &v->engine->schedule.input;
    const char *why = v->engine->why_staged;
    if (!in->device || in->n_ranks == 1) return;
    if (!why[0] && !zero_config_chooses_exchange(v->config))
        why = "--device-exchange";
    else if (!why[0] && zero_plan_can_reach_devices(in, &why) && !in->ipc)
        why = "other processes cannot reach this device's memory";
    zero_text_run_row("exchange");
    printf("%s (%s); MPI is %s\n",
           in->device_messages ? "mpi: messages from and to the devices' memory"
           : in->ipc           ? "ipc: devices read each other's memory"
                               : "staged: through the host",
           why, zero_launch_cuda());
}

static void show_collectives(const zero_run_view *v)
{
    const zero_schedule *plan = &v->engine->schedule;
    zero_traffic reduced = zero_schedule_traffic(plan, ZERO_PROGRAM_STEP, ZERO_OP_REDUCE);
    zero_traffic gathered = zero_schedule_traffic(plan, ZERO_PROGRAM_STEP, ZERO_OP_GATHER);
    zero_text_run_row("collectives");
    printf("%s", zero_algorithm_name(plan->input.collectives));
    if (v->why_collectives)
        printf(" (auto: %s)",
               v->engine->why_p2p[0] ? "the node cannot share memory" : v->why_collectives);
    printf("; %d %snode%s%s\n", v->world->layout.n_nodes, v->fake_nodes ? "fake " : "",
           zero_text_plural(v->world->layout.n_nodes),
           v->fake_nodes ? ": times mean nothing" : "");
    show_exchange(v);
    zero_text_run_row("communication");
    printf("stage %d, %s: ", plan->input.stage,
           zero_partition_scheme_name(plan->input.partition));
    if (plan->input.n_ranks == 1)
        printf("nothing is reduced or gathered, since one rank has it all\n");
    else
        printf("%s reduced and %s gathered per rank and step\n",
               ZERO_BYTES(zero_traffic_total(&reduced).bytes_sent),
               ZERO_BYTES(zero_traffic_total(&gathered).bytes_sent));
    show_added(plan);
    if (plan->n_joins == 0) return;
    zero_traffic joined = zero_schedule_traffic(plan, ZERO_PROGRAM_STEP, ZERO_OP_JOIN);
    zero_traffic collected =
        zero_schedule_traffic(plan, ZERO_PROGRAM_STEP, ZERO_OP_COLLECT);
    zero_text_run_row("");
    printf("%s: %s joined", zero_algorithm_name(zero_schedule_join_algorithm(plan)),
           ZERO_BYTES(zero_traffic_total(&joined).bytes_sent));
    if (plan->input.partition_activations)
        printf(", %s collected", ZERO_BYTES(zero_traffic_total(&collected).bytes_sent));
    printf(" in the TP group per rank and step\n");
}

/* Where flipped bits are looked for, and in how many steps. */
static void show_checks(const zero_schedule *plan)
{
    bool is_beside = zero_plan_updates_beside(&plan->input);
    int updates = is_beside ? plan->input.check_replicas : zero_update_period(plan);
    const struct {
        const char *what;
        int steps;
    } parts[] = {
        {"parameters", updates},
        {updates > 0 ? "their copies" : "copies of parameters",
         zero_compared_in(plan, ZERO_ARRAY_PARAMETERS)},
        {"copies of states", zero_compared_in(plan, ZERO_ARRAY_MOMENTUM)},
    };
    if (!zero_is_checked(plan)) return;
    zero_text_run_row("flipped bits");
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        if (parts[k].steps == 1) printf("%s (each step), ", parts[k].what);
        if (parts[k].steps > 1) printf("%s (every %d), ", parts[k].what, parts[k].steps);
    }
    printf("saves\n");
}

static void show_file(const zero_schedule *plan)
{
    size_t sum = 0;
    if (!zero_plan_uses_file(&plan->input)) return;
    for (int c = 0; c < ZERO_CLASSES; c++) sum += zero_offload_bytes(plan, (zero_class)c);
    zero_text_run_row("file");
    printf("%s per rank:", ZERO_BYTES(sum));
    for (int c = 0, shown = 0; c < ZERO_CLASSES; c++) {
        size_t bytes = zero_offload_bytes(plan, (zero_class)c);
        if (bytes == 0) continue;
        printf("%s %s %s", shown++ > 0 ? "," : "", zero_class_name((zero_class)c),
               ZERO_BYTES(bytes));
    }
    printf("\n");
}

/* With a device the classes are those there. */
static void show_ledgers(const zero_run_view *v)
{
    const zero_schedule *plan = &v->engine->schedule;
    size_t beside = plan->host_bytes + plan->window_bytes + plan->tp_window_bytes;
    zero_text_run_row("memory");
    if (plan->input.device)
        printf("%s per rank on the device, %s on the host;", ZERO_BYTES(plan->own_bytes),
               ZERO_BYTES(beside));
    else
        printf("%s per rank;", ZERO_BYTES(plan->own_bytes + beside));
    printf(" each class at its own peak:");
    for (int c = 0, shown = 0; c < ZERO_CLASSES; c++) {
        if (plan->class_peak[c] == 0) continue;
        if (shown > 0) putchar(',');
        if (shown++ % 3 == 0)
            zero_text_run_continue();
        else
            putchar(' ');
        printf("%s %s", zero_class_name((zero_class)c), ZERO_BYTES(plan->class_peak[c]));
    }
    printf("\n");
    show_file(plan);
    show_collectives(v);
    show_checks(&v->engine->schedule);
}

/* Names the products that replace BLAS; NULL: BLAS multiplies. */
static const char *own_products(const zero_config *c)
{
    const char *bf16 = zero_cpu_bf16_name();
    if (zero_config_has_device(c)) return "the device";
    if (strcmp(c->backend, "cpu") != 0) return "plain loops";
    return c->plan.type == ZERO_BF16 && bf16 ? bf16 : zero_cpu_fp32_name();
}

static void show_device(const zero_run_view *v, char *text, size_t size)
{
    const zero_device_about *d = v->device;
    snprintf(text, size, "%s: %s, sm_%d; driver for CUDA %d.%d, cuBLAS %d.%d.%d",
             v->config->device, d->name, d->capability, d->driver / 1000,
             d->driver % 1000 / 10, d->products / 10000, d->products / 100 % 100,
             d->products % 100);
}

/* Said of 16 bits alone: runs that were saved before there was a choice had fp32. */
static const char *activations_of(const zero_config *c)
{
    return zero_config_activations(c) == ZERO_FP32 ? "" : "; activations of 16 bits";
}

void zero_show_arithmetic(const zero_run_view *v, char *text, size_t size)
{
    if (v->device->name[0]) {
        show_device(v, text, size);
        return;
    }
    const char *own = own_products(v->config);
    char blas[128];
    zero_blas_name(blas, sizeof blas);
    if (zero_config_has_device(v->config))
        snprintf(text, size, "%s device, %s products%s", v->config->device,
                 zero_type_name(v->config->plan.type), activations_of(v->config));
    else
        snprintf(text, size, "%s backend, %s kernels; %s products by %s%s",
                 v->config->backend, zero_cpu_kernels_name(),
                 zero_type_name(v->config->plan.type), own ? own : blas,
                 activations_of(v->config));
}

#define HOSTS_SHOWN 4

static void print_option(const char *name, const json_t *value)
{
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    printf(" --%s", name);
    if (json_is_string(value)) printf(" %s", ZERO_SHOWN(json_string_value(value)));
    if (json_is_false(value)) printf("=off");
    if (json_is_number(value) && text) printf(" %s", text);
    free(text);
}

/* The command and, as a shell's comment, all options if some of them are in a file. */
static void show_command(const zero_metrics_run *run)
{
    const char *name;
    json_t *value;
    zero_text_run_row("command");
    zero_legible_print(run->command, stdout);
    if (run->has_file) printf(" #");
    json_object_foreach((json_t *)run->options, name, value)
    {
        if (run->has_file) print_option(name, value);
    }
    printf("\n");
}

/* True if the host's threads compute. */
static bool has_team(const zero_config *c)
{
    return c->plan.threads > 1 && strcmp(c->backend, "cpu") == 0 &&
           (!zero_config_has_device(c) || c->offload);
}

/* A batch script often sets OMP_NUM_THREADS for its own reasons. */
static void show_threads(const zero_run_view *v)
{
    if (v->config->plan.threads <= 1) return;
    zero_text_run_row("threads");
    printf("%d per rank, because of %s", (int)v->config->plan.threads, v->threads_from);
    if (has_team(v->config))
        printf("; %s", v->binding);
    else
        printf(": they change nothing, one computes in this run");
    printf("\n");
}

static void show_machine(const zero_metrics_run *run)
{
    zero_text_run_row("machine");
    for (int i = 0; i < run->n_hosts && i < HOSTS_SHOWN; i++)
        printf("%s%s", i > 0 ? ", " : "", ZERO_SHOWN(run->hosts[i].name));
    if (run->n_hosts > HOSTS_SHOWN) printf(" and %d more", run->n_hosts - HOSTS_SHOWN);
    printf("; %s; %s; %s; %s", run->cpu[0] ? run->cpu : "unknown CPU", run->mpi, run->blas,
           run->arithmetic);
    for (int k = 0; k < run->n_kinds && run->n_kinds > 1; k++) {
        zero_text_run_continue();
        printf("%s: %s", run->kinds[k].ranks.chars, ZERO_SHOWN(run->kinds[k].text));
    }
    printf("\n");
}

static void show_model(const zero_metrics_run *run)
{
    const zero_gpt2_shape *g = run->shape;
    char shape[ZERO_PLAN_TEXT];
    zero_text_shape(g, shape);
    zero_text_run_row("model");
    printf("%s: %s, V %" PRId64 "; %" PRId64 " parameters\n", run->model, shape, g->vocab,
           run->n_params);
}

/* The first four lines of a run say what the first line of its metrics says. */
static void show_origin(const zero_run_view *v, const zero_metrics_run *run)
{
    int n_nodes = run->layout->n_nodes;
    char ranks[ZERO_PLAN_TEXT];
    zero_text_ranks(v->config, ranks);
    printf("zero %s (%s): stage %d, %s, %s, %d on this node, %d %snode%s; started %s\n",
           run->version, run->commit, run->plan->stage, zero_type_name(run->plan->type),
           ranks, v->node_ranks, n_nodes, run->fake_nodes ? "fake " : "",
           zero_text_plural(n_nodes), run->started);
    show_command(run);
    show_machine(run);
    show_model(run);
}

static void show_late(const zero_config *c)
{
    if (c->plan.delayed_from == 0) return;
    zero_text_run_continue();
    printf("from step %" PRId64 " on parameters are one update late: other numbers than "
           "without --delayed-update",
           c->plan.delayed_from);
}

static const char *place_of_update(const zero_config *c)
{
    return c->plan.delayed_from > 0 ? "delayed" : zero_offload_name(c->plan.offload);
}

static void show_beside(const zero_config *c, const zero_schedule *plan)
{
    zero_copied_bytes step = zero_schedule_copies(plan, ZERO_PROGRAM_STEP);
    zero_text_run_row("offload");
    if (plan->input.offload_host)
        printf("optimizer states in the host's memory, updated by its CPU, %s",
               place_of_update(c));
    else
        printf("the host's CPU updates beside the device");
    zero_text_run_continue();
    printf("per rank and step %s of gradients to it, %s of parameters back",
           ZERO_BYTES(step.gradients), ZERO_BYTES(step.parameters));
    if (plan->input.offload_host) show_late(c);
    printf("\n");
}

/* How the file works depends on the file system, so a run says it. Rank 0 speaks for all. */
static void show_offload(const zero_run_view *v)
{
    const zero_config *c = v->config;
    const zero_schedule *plan = &v->engine->schedule;
    if (zero_plan_updates_beside(&plan->input)) show_beside(c, plan);
    const zero_scratch *scratch = v->engine->runner.tier.scratch;
    if (!scratch) return;
    const zero_scratch_file *file = zero_scratch_get_file(scratch);
    zero_text_run_row("offload");
    printf("%s, %s, %d block%s in memory; %s", ZERO_SHOWN(c->offload), place_of_update(c),
           c->plan.offload_depth, zero_text_plural(c->plan.offload_depth),
           file->is_direct ? "around the page cache"
                           : "through the page cache: no O_DIRECT there");
    if (!file->had_no_name)
        printf("; the file had a name for a moment: no O_TMPFILE there");
    show_late(c);
    printf("\n");
}

static void show_checkpoints(const zero_run_view *v)
{
    const zero_config *c = v->config;
    if (!c->checkpoint) return;
    zero_text_run_row("checkpoints");
    printf("%s, ", ZERO_SHOWN(c->checkpoint));
    if (c->save_every == 1) printf("every step, ");
    if (c->save_every > 1) printf("every %" PRId64 " steps, ", c->save_every);
    if (c->save_minutes > 0) printf("every %g minutes, ", c->save_minutes);
    printf("at the end; %" PRId64 " kept\n", c->keep);
    if (!zero_config_resumes(c)) return;
    const char *const rows[][2] = {
        {"resumed", v->from}, {"taken", v->taken}, {"changed", v->changes}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!rows[i][1][0]) continue;
        zero_text_run_row(rows[i][0]);
        zero_legible_print(rows[i][1], stdout);
        putchar('\n');
    }
}

void zero_show_setup(const zero_run_view *v, const zero_metrics_run *run)
{
    if (!v->config->quiet) {
        show_origin(v, run);
        show_threads(v);
        show_inputs(v);
        show_training(v);
        show_ledgers(v);
        show_offload(v);
        show_checkpoints(v);
    }
    fflush(stdout);
    zero_show_warnings(v, has_team(v->config) ? (int)v->config->plan.threads : 1);
}
