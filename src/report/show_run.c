/* What a run prints at its start and its end: the facts of its metrics' first and last
 * line, and what only a text says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/legible.h"
#include "comm/launch.h"
#include "engine/file_ledger.h"
#include "math/backends.h"
#include "math/blas.h"
#include "nn/shape.h"
#include "report/json_put.h"
#include "report/show.h"
#include "report/text.h"
#include "sharding/checks.h"
#include "sharding/offload.h"
#include "sharding/schedule_device.h"
#include "sharding/schedule_exchange.h"

/* Any bytes: the form shows them legibly. NULL for an empty text. */
static json_t *raw(const char *text)
{
    return text && text[0] ? json_string_nocheck(text) : NULL;
}

static void print(const char *section, json_t *facts)
{
    if (zero_report_print(section, facts, stdout) != ZERO_OK)
        printf("%s\n", zero_last_error());
    fflush(stdout);
}

/* ---- the arithmetic ---- */

/* Said of 16 bits alone: runs that were saved before there was a choice had fp32. */
static const char *activations_of(const zero_config *c)
{
    return zero_config_activations(c) == ZERO_FP32 ? "" : "; activations of 16 bits";
}

static zero_products products_of(const zero_run_view *v)
{
    const zero_runner *r = &v->engine->runner;
    if (r->backend->products) return r->backend->products(&r->math, v->config->plan.type);
    return (zero_products){r->backend->memory ? "the device" : "plain loops", false};
}

bool zero_show_bits(const zero_run_view *v, char *text, size_t size)
{
    const bool is_portable = products_of(v).is_portable;
    if (is_portable)
        snprintf(text, size, "%s backend, portable bits; %s products%s", v->config->backend,
                 zero_type_name(v->config->plan.type), activations_of(v->config));
    else
        zero_show_arithmetic(v, text, size);
    return is_portable;
}

void zero_show_arithmetic(const zero_run_view *v, char *text, size_t size)
{
    const zero_config *c = v->config;
    const zero_device_about *d = v->device;
    const zero_products products = products_of(v);
    char blas[128] = "";
    if (strcmp(products.name, "BLAS") == 0) zero_blas_name(blas, sizeof blas);
    if (d->name[0])
        snprintf(text, size, "%s: %s, sm_%d; driver for CUDA %d.%d, cuBLAS %d.%d.%d",
                 c->device, d->name, d->capability, d->driver / 1000, d->driver % 1000 / 10,
                 d->products / 10000, d->products / 100 % 100, d->products % 100);
    else if (zero_config_has_device(c))
        snprintf(text, size, "%s device, %s products%s", c->device,
                 zero_type_name(c->plan.type), activations_of(c));
    else
        snprintf(text, size, "%s backend%s, %s kernels; %s products by %s%s", c->backend,
                 products.is_portable ? ", portable bits" : "", zero_cpu_kernels_name(),
                 zero_type_name(c->plan.type), blas[0] ? blas : products.name,
                 activations_of(c));
}

/* ---- what is about to run ---- */

/* The run as its command and its first line of metrics say it, but with texts as they
 * came. */
static json_t *origin_facts(const zero_run_view *v, const zero_metrics_run *run)
{
    json_t *facts = zero_metrics_run_facts(run), *hosts = json_array(),
           *kinds = json_array(), *given = json_array(), *value;
    const char *name;
    for (int i = 0; i < run->n_hosts; i++)
        json_array_append_new(hosts, json_string_nocheck(run->hosts[i].name));
    for (int k = 0; k < run->n_kinds && run->n_kinds > 1; k++)
        json_array_append_new(kinds, json_sprintf("%s: %s", run->kinds[k].ranks.chars,
                                                  ZERO_SHOWN(run->kinds[k].text)));
    /* All options, as a shell's comment, if some of them are in a file. */
    json_object_foreach((json_t *)run->options, name, value)
    {
        char *text = json_is_number(value) ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
        const char *word = json_is_string(value) ? json_string_value(value) : text;
        if (run->has_file)
            json_array_append_new(given, json_sprintf("--%s%s%s", name,
                                                      word                   ? " "
                                                      : json_is_false(value) ? "=off"
                                                                             : "",
                                                      word ? ZERO_SHOWN(word) : ""));
        free(text);
    }
    json_object_update_new(facts, json_pack("{s:o*, s:o*, s:i, s:o, s:o, s:o}", "command",
                                            raw(run->command), "data", raw(run->data),
                                            "node_ranks", v->node_ranks, "hosts", hosts,
                                            "kinds", kinds, "file_options", given));
    return facts;
}

/* True if the host's threads compute. */
static bool has_team(const zero_config *c)
{
    return c->plan.threads > 1 && strcmp(c->backend, "cpu") == 0 &&
           (!zero_config_has_device(c) || c->offload);
}

/* The plan's memory, and what a step exchanges. With a device the classes are those
 * there. */
static void put_plan(const zero_run_view *v, json_t *facts)
{
    static const struct {
        const char *name;
        zero_op op;
    } ops[] = {{"reduce", ZERO_OP_REDUCE},
               {"gather", ZERO_OP_GATHER},
               {"all_reduce", ZERO_OP_ALL_REDUCE},
               {"join", ZERO_OP_JOIN},
               {"collect", ZERO_OP_COLLECT}};
    const zero_schedule *s = &v->engine->schedule;
    json_t *classes = json_object(), *file = json_object(), *sent = json_object();
    for (int c = 0; c < ZERO_CLASSES; c++) {
        const char *name = zero_class_name((zero_class)c);
        int64_t bytes = (int64_t)zero_offload_bytes(s, (zero_class)c);
        if (s->class_peak[c] > 0) put_whole(classes, name, (int64_t)s->class_peak[c]);
        if (zero_plan_uses_file(&s->input) && bytes > 0) put_whole(file, name, bytes);
    }
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        zero_traffic t = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, ops[i].op);
        put_whole(sent, ops[i].name, zero_traffic_sent(&t));
    }
    const char *why = v->why_collectives;
    if (why && v->engine->why_p2p[0]) why = "the node cannot share memory";
    json_object_update_new(
        facts,
        json_pack(
            "{s:o, s:o, s:o, s:b, s:b, s:I, s:I, s:i, s:s, s:b, s:s*, s:s*}", "class_peaks",
            classes, "file", file, "step_bytes_sent", sent, "has_device", s->input.device,
            "uses_file", zero_plan_uses_file(&s->input), "own_bytes", s->own_bytes,
            "beside_bytes", s->host_bytes + s->window_bytes + s->tp_window_bytes,
            "data_ranks", s->input.n_ranks, "partition",
            zero_partition_scheme_name(s->input.partition), "partition_activations",
            s->input.partition_activations != 0, "why_collectives", why, "join_collectives",
            s->n_joins > 0 ? zero_algorithm_name(zero_schedule_join_algorithm(s)) : NULL));
}

/* How the ranks' devices exchange. */
static void put_exchange(const zero_run_view *v, json_t *facts)
{
    const zero_plan_input *in = &v->engine->schedule.input;
    const char *why = v->engine->why_staged;
    if (!in->device || in->n_ranks == 1) return;
    if (!why[0] && !zero_config_chooses_exchange(v->config))
        why = "--device-exchange";
    else if (!why[0] && zero_plan_can_reach_devices(in, &why) && !in->ipc)
        why = "other processes cannot reach this device's memory";
    json_object_update_new(facts, json_pack("{s:s, s:s, s:s}", "device_exchange",
                                            zero_plan_device_exchange(in), "why_exchange",
                                            why, "mpi_cuda", zero_launch_cuda()));
}

/* How the file works depends on the file system, so a run says it. Rank 0 speaks for
 * all. */
static void put_offload(const zero_run_view *v, json_t *facts)
{
    const zero_schedule *s = &v->engine->schedule;
    const zero_scratch *scratch = v->engine->runner.tier.scratch;
    if (zero_plan_updates_beside(&s->input)) {
        zero_copied_bytes step = zero_schedule_copies(s, ZERO_PROGRAM_STEP);
        json_object_set_new(facts, "beside",
                            json_pack("{s:b, s:I, s:I}", "is_host", s->input.offload_host,
                                      "gradients", step.gradients, "parameters",
                                      step.parameters));
    }
    if (!scratch) return;
    const zero_scratch_file *file = zero_scratch_get_file(scratch);
    json_object_set_new(facts, "scratch",
                        json_pack("{s:o, s:b, s:b}", "directory",
                                  json_string_nocheck(v->config->offload), "is_direct",
                                  file->is_direct, "had_no_name", file->had_no_name));
}

void zero_show_setup(const zero_run_view *v, const zero_metrics_run *run)
{
    if (!v->config->quiet) {
        json_t *facts = origin_facts(v, run);
        const zero_config *c = v->config;
        const zero_corpus *corpus = v->corpus;
        bool resumes = zero_config_resumes(c);
        json_object_set_new(json_object_get(facts, "tp"), "data_ranks",
                            json_integer(c->plan.n_ranks));
        json_object_update_new(facts, zero_batch_facts(c, v->model->seq));
        json_object_update_new(
            facts,
            json_pack(
                "{s:o*, s:o*, s:b, s:b, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, "
                "s:o*}",
                "threads_from", raw(v->threads_from), "binding", raw(v->binding),
                "has_team", has_team(c), "has_loaded", v->has_loaded, "init_from",
                raw(c->init_from), "import_note", raw(v->import_note), "why_own_tokens",
                raw(v->why_own_tokens), "validation",
                corpus->has_validation ? raw(corpus->validation) : NULL, "entropy",
                corpus->has_entropy ? json_real(corpus->entropy.nats_per_token) : NULL,
                "checkpoint", raw(c->checkpoint), "resumed", resumes ? raw(v->from) : NULL,
                "taken", resumes ? raw(v->taken) : NULL, "changed",
                resumes ? raw(v->changes) : NULL));
        put_plan(v, facts);
        put_exchange(v, facts);
        /* Where flipped bits are looked for, and in how many steps. */
        bool is_beside = zero_plan_updates_beside(&v->engine->schedule.input);
        int updates = is_beside ? v->engine->schedule.input.check_replicas
                                : zero_update_period(&v->engine->schedule);
        if (zero_is_checked(&v->engine->schedule))
            json_object_set_new(
                facts, "checks",
                json_pack("{s:i, s:i, s:i}", "parameters", updates,
                          updates > 0 ? "their copies" : "copies of parameters",
                          zero_compared_in(&v->engine->schedule, ZERO_ARRAY_PARAMETERS),
                          "copies of states",
                          zero_compared_in(&v->engine->schedule, ZERO_ARRAY_MOMENTUM)));
        put_offload(v, facts);
        print("run", facts);
    }
    fflush(stdout);
    const zero_config *c = v->config;
    const zero_engine *e = v->engine;
    double scratch = zero_config_scratch_rate(c);
    /* Rates for fine-tuning are about a tenth of those for random weights: the released
     * GPT-2 with its 6e-4 loses in a few steps what it knows. */
    bool is_fast = c->init_from && v->start == 0 && c->lr >= 0.5 * scratch;
    json_t *facts =
        json_pack("{s:o*, s:o*, s:o*, s:f, s:I, s:i, s:i, s:i}", "why_p2p", raw(e->why_p2p),
                  "why_staged", raw(e->why_staged), "lr", is_fast ? json_real(c->lr) : NULL,
                  "scratch_lr", scratch, "threads", has_team(c) ? c->plan.threads : 1,
                  "node_ranks", v->node_ranks, "allowed_cores", v->topology->allowed_cores,
                  "usable_cores", v->topology->usable_cores);
    if (zero_report_print("warnings", facts, stderr) != ZERO_OK)
        fprintf(stderr, "%s\n", zero_last_error());
}

/* ---- what has run ---- */

#define LEAST_SHARE 1e-3

/* Adds a line to the profile, the longest first, if it is long enough; else to the rest. */
static void add_line(json_t *lines, json_t *rest, double least, const char *op,
                     const char *kind, const json_t *entry)
{
    static const char *const sums[] = {"count", "seconds", "exchange_seconds"};
    double seconds = json_number_value(json_object_get(entry, "seconds"));
    size_t at = json_array_size(lines);
    if (seconds < least) {
        for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
            double x = json_number_value(json_object_get(entry, sums[i]));
            put_real(rest, sums[i], x + json_number_value(json_object_get(rest, sums[i])));
        }
        return;
    }
    while (at > 0 && json_number_value(json_object_get(json_array_get(lines, at - 1),
                                                       "seconds")) < seconds)
        at--;
    char name[21];
    snprintf(name, sizeof name, "%s%s%s", op, kind[0] ? " " : "", kind);
    json_t *line = json_deep_copy(entry);
    put_text(line, "name", name);
    json_array_insert_new(lines, at, line);
}

/* Classes of instructions that took a thousandth of the steps' time or more, the longest
 * first, and the rest in one line. Instructions that name units get a line per kind of
 * unit. */
static void put_profile(const json_t *profile, double seconds, json_t *facts)
{
    json_t *lines = json_array(), *entry, *unit;
    json_t *rest =
        json_pack("{s:f, s:f, s:f}", "count", 0.0, "seconds", 0.0, "exchange_seconds", 0.0);
    const char *op, *kind;
    json_object_foreach((json_t *)profile, op, entry)
    {
        json_t *units = json_object_get(entry, "units");
        if (!units) add_line(lines, rest, LEAST_SHARE * seconds, op, "", entry);
        json_object_foreach(units, kind, unit)
            add_line(lines, rest, LEAST_SHARE * seconds, op, kind, unit);
    }
    json_object_set_new(facts, "lines", lines);
    json_object_set_new(facts, "rest", rest);
}

/* Bytes of a window that are not this rank's. */
static int64_t of_neighbours(const zero_window *window, size_t own)
{
    return window->bytes > own ? (int64_t)(window->bytes - own) : 0;
}

void zero_show_totals(const zero_run_view *v, const zero_run_totals *t, json_t *final)
{
    const zero_engine *e = v->engine;
    const zero_schedule *s = &e->schedule;
    const zero_profile *profile = t->profile.profile;
    zero_file_ledger file = zero_runner_file_ledger(&e->runner);
    int64_t steps = v->config->steps - v->start; /* of this run */
    json_t *of_file = json_object_get(final, "file");
    int64_t mapped = of_neighbours(&e->window, s->window_bytes) +
                     of_neighbours(&e->tp_window, s->tp_window_bytes);
    /* The losses as texts: they may be infinite. The flops are the model's, not the
     * machine's: recomputed and masked products do not count. The system counts neighbours'
     * memory, which is mapped here too, for every rank. */
    json_object_update_new(
        final,
        json_pack(
            "{s:b, s:o, s:o*, s:o*, s:I, s:I, s:f, s:I, s:I, s:f, s:f, s:f, s:f, s:s, s:I, "
            "s:o*}",
            "quiet", v->config->quiet, "loss", json_sprintf("%.4f", t->loss), "val_loss",
            t->has_val_loss ? json_sprintf("%.4f", t->val_loss) : NULL, "entropy",
            v->corpus->has_entropy ? json_real(v->corpus->entropy.nats_per_token) : NULL,
            "skipped", e->skipped, "all_steps", v->config->steps, "loss_scale",
            (double)e->loss_scale.scale, "steps", steps, "tokens", t->tokens, "run_seconds",
            t->seconds, "eval_seconds", t->eval_seconds, "flops",
            zero_shape_flops(v->model->shape), "multiplied",
            zero_shape_multiplied(v->model->shape), "ms",
            t->seconds < 1e-2 * (double)steps ? ".4f" : ".2f", "mapped_bytes", mapped,
            "exposed_seconds",
            profile->is_of_device
                ? json_real(zero_profile_exposed(profile, ZERO_PROGRAM_STEP))
                : NULL));
    put_profile(json_object_get(final, "profile"), t->seconds, final);
    if (of_file) put_flag(of_file, "as_planned", zero_file_ledger_is_as_planned(&file));
    print("totals", final);
}

void zero_show_finished(const zero_run_view *v, const char *digest)
{
    print("finished", json_pack("{s:I, s:s}", "steps", v->config->steps, "digest", digest));
}
