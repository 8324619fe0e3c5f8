/* What a run says of itself before its first step and after its last one: on stdout, and in
 * the first and the last line of its metrics. Both are one tree of facts; texts have more,
 * and texts that came from outside as they are. */
#include "cli/record.h"

#include "base/legible.h"
#include "cli/build.h"
#include "cli/output.h"
#include "comm/kinds.h"
#include "comm/launch.h"
#include "engine/file_ledger.h"
#include "math/backends.h"
#include "math/blas.h"
#include "report/json_put.h"
#include "report/text.h"
#include "sharding/schedule_exchange.h"
#include "zero/version.h"

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

static zero_products products_of(const zero_session *s)
{
    const zero_runner *r = &s->engine.runner;
    if (r->backend->products) return r->backend->products(&r->math, s->config.plan.type);
    return (zero_products){"plain loops", false};
}

/* Said of 16 bits alone: runs that were saved before there was a choice had fp32. */
static const char *activations_of(const zero_config *c)
{
    return zero_config_activations(c) == ZERO_FP32 ? "" : "; activations of 16 bits";
}

/* Backend, kernels and products, or the device, in one line. */
static void zero_record_arithmetic(const zero_session *s, char *text, size_t size)
{
    const zero_config *c = &s->config;
    const zero_device_about *d = &s->place.about;
    const zero_products products = products_of(s);
    const char *type = zero_type_name(c->plan.type);
    char blas[128] = "";
    if (zero_same_text(products.name, "BLAS")) zero_blas_name(blas, sizeof blas);
    if (d->name[0])
        snprintf(text, size, "%s: %s, sm_%d; driver for CUDA %d.%d, cuBLAS %d.%d.%d",
                 c->device, d->name, d->capability, d->driver / 1000, d->driver % 1000 / 10,
                 d->products / 10000, d->products / 100 % 100, d->products % 100);
    else if (zero_config_has_device(c))
        snprintf(text, size, "%s device, %s products%s", c->device, type,
                 activations_of(c));
    else
        snprintf(text, size, "%s backend%s, %s kernels; %s products by %s%s", c->backend,
                 products.is_portable ? ", portable bits" : "", zero_cpu_kernels_name(),
                 type, blas[0] ? blas : products.name, activations_of(c));
}

bool zero_record_bits(const zero_session *s, char *text, size_t size)
{
    const zero_config *c = &s->config;
    if (!products_of(s).is_portable) {
        zero_record_arithmetic(s, text, size);
        return false;
    }
    snprintf(text, size, "%s backend, portable bits; %s products%s", c->backend,
             zero_type_name(c->plan.type), activations_of(c));
    return true;
}

/* ---- the run ---- */

/* The first line of the metrics without its schedule. `kinds`: BLAS and arithmetic of all
 * ranks, that of rank 0 first. */
static json_t *describe(const zero_session *s, const zero_kind *kinds, int n_kinds)
{
    const zero_plan_input *plan = &s->engine.schedule.input;
    int N = plan->n_ranks, R = plan->shard_ranks > 0 ? plan->shard_ranks : N;
    char mpi[128], blas[128], arithmetic[256];
    zero_launch_library(mpi, sizeof mpi);
    zero_blas_name(blas, sizeof blas);
    zero_record_arithmetic(s, arithmetic, sizeof arithmetic);
    const zero_wire *w = &s->world.wire;
    json_t *model = json_pack("{s:s}", "name", zero_config_model(&s->config)),
           *hosts = json_array(), *of_ranks = n_kinds > 1 ? json_array() : NULL,
           *wire = w->rate > 0.0
                       ? json_pack("{s:f, s:f, s:I}", "latency_seconds", w->latency,
                                   "bytes_per_second", w->rate, "message", plan->message)
                       : NULL;
    json_object_update_new(model, zero_shape_facts(s->model.shape));
    zero_put_whole(model, "parameters", s->model.n_params);
    for (int i = 0; i < s->n_hosts; i++)
        json_array_append_new(hosts, zero_metrics_text(s->hosts[i].name));
    for (int k = 0; k < n_kinds && of_ranks; k++)
        zero_put_item(of_ranks, "{s:s, s:o}", "ranks", kinds[k].ranks.chars, "arithmetic",
                      zero_metrics_text(kinds[k].text));
    /* The configuration with what the ranks, the data and the machine decided. */
    zero_config c = s->config;
    c.shape = zero_shape_own(s->model.shape);
    if (c.shape.kind != zero_architectures) {
        c.architecture = c.shape.kind->name;
        c.tied = c.shape.tied ? "on" : "off";
    }
    c.collectives = zero_algorithm_name(s->engine.schedule.input.collectives);
    if (!c.checkpoint) c.keep = 0; /* refused without --checkpoint */
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:o, s:I, s:i, s:s, s:s, s:s, s:i, s:{s:i, s:i}, "
        "s:{s:i, s:i}, s:o*, s:o, s:o*, s:o, s:s, s:i, s:i, s:s, s:s, s:i, s:s, s:o*, s:o, "
        "s:o, "
        "s:o, s:o}",
        "version", zero_version(), "commit", zero_build_commit(), "build", ZERO_BUILD,
        "started", s->facts.started, "id", s->facts.run, "command",
        zero_metrics_text(s->facts.command), "resumed_step",
        s->saving.start, /* how it is divided */
        "stage", plan->stage, "dtype", zero_type_name(plan->type), "activations",
        zero_type_name(plan->activations), "collectives",
        zero_algorithm_name(plan->collectives), "ranks", s->world.size, "tp", "ranks",
        plan->model->share.ranks, "slices", plan->model->share.slices, "shards", "ranks", R,
        "replicas", N / R, "pp",
        zero_plan_stages(plan) > 1 ? json_pack("{s:i, s:s}", "stages", plan->pp, "schedule",
                                               zero_pipeline_name(plan->pp_schedule))
                                   : NULL,
        "nodes", zero_metrics_nodes(&s->world.layout, s->fake_nodes), "wire", wire, "hosts",
        hosts, "cpu", s->topology.cpu, "cores", s->topology.usable_cores, "node_cores",
        s->topology.allowed_cores, "arithmetic", arithmetic, "blas", blas, "blas_threads",
        zero_blas_threads(), "mpi", mpi, "rank_kinds", of_ranks, /* what is trained */
        "model", model, "data", zero_metrics_text(s->dataset.corpus.description), "options",
        json_deep_copy(s->facts.options), "config",
        zero_options_typed(zero_run_options, &c));
}

/* ---- its head ---- */

/* True if the host's threads compute. */
static bool has_team(const zero_config *c)
{
    return c->plan.threads > 1 && zero_same_text(c->backend, "cpu") &&
           (!zero_config_has_device(c) || c->offload);
}

/* The plan's memory, and what a step exchanges. With a device the classes are those
 * there. */
static void put_plan(const zero_session *session, json_t *facts)
{
    static const struct {
        const char *name;
        zero_op op;
    } ops[] = {{"reduce", ZERO_OP_REDUCE},         {"gather", ZERO_OP_GATHER},
               {"all_reduce", ZERO_OP_ALL_REDUCE}, {"join", ZERO_OP_JOIN},
               {"collect", ZERO_OP_COLLECT},       {"send", ZERO_OP_SEND}};
    const zero_schedule *s = &session->engine.schedule;
    json_t *classes = json_object(), *file = json_object(), *sent = json_object();
    for (int c = 0; c < ZERO_CLASSES; c++) {
        const char *name = zero_class_name((zero_class)c);
        int64_t bytes = (int64_t)zero_offload_bytes(s, (zero_class)c);
        if (s->class_peak[c] > 0) zero_put_whole(classes, name, (int64_t)s->class_peak[c]);
        if (zero_plan_uses_file(&s->input) && bytes > 0) zero_put_whole(file, name, bytes);
    }
    for (int i = 0; i < ZERO_COUNT(ops); i++) {
        zero_traffic t = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, ops[i].op);
        zero_put_whole(sent, ops[i].name, zero_traffic_sent(&t));
    }
    const char *why = session->why_collectives;
    if (why && session->engine.why_p2p[0]) why = "the node cannot share memory";
    zero_put_members(
        facts, "{s:o, s:o, s:o, s:b, s:b, s:I, s:I, s:i, s:s, s:b, s:s*, s:s*}",
        "class_peaks", classes, "file", file, "step_bytes_sent", sent, "has_device",
        s->input.device, "uses_file", zero_plan_uses_file(&s->input), "own_bytes",
        s->own_bytes, "beside_bytes", s->host_bytes + s->window_bytes + s->tp_window_bytes,
        "data_ranks", s->input.n_ranks, "partition",
        zero_partition_scheme_name(s->input.partition), "partition_activations",
        s->input.partition_activations != 0, "why_collectives", why, "join_collectives",
        s->n_joins > 0 ? zero_algorithm_name(zero_schedule_join_algorithm(s)) : NULL);
    /* Where flipped bits are looked for, and in how many steps. */
    int updates = zero_plan_updates_beside(&s->input) ? s->input.check_replicas
                                                      : zero_update_period(s);
    if (zero_is_checked(s))
        json_object_set_new(facts, "checks",
                            json_pack("{s:i, s:i, s:i}", "parameters", updates,
                                      updates > 0 ? "their copies" : "copies of parameters",
                                      zero_compared_in(s, ZERO_ARRAY_PARAMETERS),
                                      "copies of states",
                                      zero_compared_in(s, ZERO_ARRAY_STATES)));
}

/* What is about to run. Its first four lines say what the run is. */
static void show_head(const zero_session *s, json_t *facts)
{
    const zero_config *c = &s->config;
    const zero_corpus *corpus = &s->dataset.corpus;
    const zero_resumed *resumed = &s->saving.resumed;
    bool resumes = zero_config_resumes(c);
    zero_put_whole(json_object_get(facts, "tp"), "data_ranks", c->plan.n_ranks);
    json_object_update_new(facts, zero_batch_facts(c, s->model.seq));
    zero_put_members(
        facts,
        "{s:o*, s:o*, s:b, s:b, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}",
        "threads_from", raw(s->threads_from), "binding", raw(s->binding.text), "has_team",
        has_team(c), "has_loaded", s->has_loaded, "init_from", raw(c->init_from),
        "import_note", raw(s->importing.note), "why_own_tokens", raw(s->dataset.why_own),
        "validation", corpus->has_validation ? raw(corpus->validation) : NULL, "entropy",
        corpus->has_entropy ? json_real(corpus->entropy.nats_per_token) : NULL,
        "checkpoint", raw(c->checkpoint), "resumed", resumes ? raw(s->saving.from) : NULL,
        "taken", resumes ? raw(resumed->taken) : NULL, "changed",
        resumes ? raw(resumed->changes) : NULL);
    put_plan(s, facts);
    /* How the ranks' devices exchange. */
    const zero_plan_input *in = &s->engine.schedule.input;
    const char *why = s->engine.why_staged;
    if (in->device && in->n_ranks != 1) {
        if (!why[0] && !zero_config_chooses_exchange(&s->config))
            why = "--device-exchange";
        else if (!why[0] && zero_plan_can_reach_devices(in, &why) && !in->ipc)
            why = "other processes cannot reach this device's memory";
        zero_put_members(facts, "{s:s, s:s, s:s}", "device_exchange",
                         zero_plan_device_exchange(in), "why_exchange", why, "mpi_cuda",
                         zero_launch_cuda());
    }
    const zero_scratch *scratch = s->engine.runner.tier.scratch;
    if (zero_plan_updates_beside(in)) {
        zero_copied_bytes step =
            zero_schedule_copies(&s->engine.schedule, ZERO_PROGRAM_STEP);
        json_object_set_new(facts, "beside",
                            json_pack("{s:b, s:I, s:I}", "is_host", in->offload_host,
                                      "gradients", step.gradients, "parameters",
                                      step.parameters));
    }
    if (scratch) {
        /* How the file works depends on the file system. Rank 0 speaks for all. */
        const zero_scratch_file *file = zero_scratch_get_file(scratch);
        json_object_set_new(facts, "scratch",
                            json_pack("{s:o, s:b, s:b}", "directory", raw(c->offload),
                                      "is_direct", file->is_direct, "had_no_name",
                                      file->had_no_name));
    }
    print("run", facts);
}

static void warn(const zero_session *s, int n_kinds)
{
    const zero_config *c = &s->config;
    double scratch = zero_config_scratch_rate(c);
    /* Rates for fine-tuning are about a tenth of those for random weights: the released
     * GPT-2 with its 6e-4 loses in a few steps what it knows. */
    bool is_fast = c->init_from && s->saving.start == 0 && c->lr >= 0.5 * scratch;
    json_t *facts = json_pack(
        "{s:o*, s:o*, s:o*, s:f, s:I, s:i, s:i, s:i}", "why_p2p", raw(s->engine.why_p2p),
        "why_staged", raw(s->engine.why_staged), "lr", is_fast ? json_real(c->lr) : NULL,
        "scratch_lr", scratch, "threads", has_team(c) ? c->plan.threads : 1, "node_ranks",
        s->node_ranks, "allowed_cores", s->topology.allowed_cores, "usable_cores",
        s->topology.usable_cores);
    if (zero_report_print("warnings", facts, stderr) != ZERO_OK)
        fprintf(stderr, "%s\n", zero_last_error());
    char bits[256];
    if (n_kinds > 1)
        fprintf(stderr,
                zero_record_bits(s, bits, sizeof bits)
                    ? "zero: note: ranks have %d kinds of kernels or BLAS; their bits are "
                      "equal\n"
                    : "zero: warning: ranks have %d kinds of kernels or BLAS: bits may "
                      "depend on which rank computes what\n",
                n_kinds);
}

zero_status zero_record_begin(zero_session *s)
{
    char blas[128], arithmetic[256], mine[sizeof blas + sizeof arithmetic + 2];
    zero_kind *kinds = NULL;
    int n_kinds;
    zero_blas_name(blas, sizeof blas);
    zero_record_arithmetic(s, arithmetic, sizeof arithmetic);
    /* Ranks on nodes of several kinds may compute other bits. */
    zero_print(mine, "%s; %s", blas, arithmetic);
    ZERO_TRY(zero_comm_kinds(&s->world, mine, &kinds, &n_kinds));
    if (zero_comm_is_root(&s->world)) {
        json_t *run = describe(s, kinds, n_kinds);
        bool has_steps = s->saving.start < s->config.steps;
        if (!s->config.quiet) {
            json_t *facts = json_deep_copy(run);
            /* The run with texts as they came. */
            json_t *given = json_array(), *value;
            const char *name;
            /* All options, as a shell's comment, if some of them are in a file. */
            json_object_foreach(s->facts.options, name, value)
            {
                char *text =
                    json_is_number(value) ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
                const char *word = json_is_string(value) ? json_string_value(value) : text;
                if (s->given->file)
                    json_array_append_new(given,
                                          json_sprintf("--%s%s%s", name,
                                                       word                   ? " "
                                                       : json_is_false(value) ? "=off"
                                                                              : "",
                                                       word ? ZERO_SHOWN(word) : ""));
                free(text);
            }
            zero_put_members(facts, "{s:o*, s:o*, s:i, s:o}", "command",
                             raw(s->facts.command), "data",
                             raw(s->dataset.corpus.description), "node_ranks",
                             s->node_ranks, "file_options", given);
            show_head(s, facts);
        }
        fflush(stdout);
        warn(s, n_kinds);
        zero_run_options_note(s->given, &s->config, s->engine.schedule.input.collectives,
                              s->n_hosts);
        if (has_steps) zero_metrics_begin(&s->metrics);
        if (has_steps) zero_metrics_run_line(&s->metrics, run, &s->engine.schedule);
        json_decref(run);
    }
    free(kinds);
    return zero_agree(&s->world, zero_output_check());
}

/* ---- what has run ---- */

#define LEAST_SHARE 1e-3

/* Adds a line to the profile, the longest first, if it is long enough; else to the rest. */
static void add_line(json_t *lines, json_t *rest, double least, const char *op,
                     const char *kind, const json_t *entry)
{
    static const char *const sums[] = {"count", "seconds", "exchange_seconds"};
    double seconds = zero_get_number(entry, "seconds");
    size_t at = json_array_size(lines);
    if (seconds < least) {
        for (int i = 0; i < ZERO_COUNT(sums); i++) {
            double x = zero_get_number(entry, sums[i]);
            zero_put_real(rest, sums[i], x + zero_get_number(rest, sums[i]));
        }
        return;
    }
    while (at > 0 && zero_get_number(json_array_get(lines, at - 1), "seconds") < seconds)
        at--;
    char name[21];
    zero_print(name, "%s%s%s", op, kind[0] ? " " : "", kind);
    json_t *line = json_deep_copy(entry);
    zero_put_string(line, "name", name);
    json_array_insert_new(lines, at, line);
}

/* Bytes of a window that are not this rank's. */
static int64_t of_neighbours(const zero_window *window, size_t own)
{
    return window->bytes > own ? (int64_t)(window->bytes - own) : 0;
}

void zero_record_totals(const zero_session *session, const zero_totals *t, json_t *final)
{
    const zero_engine *e = &session->engine;
    const zero_schedule *s = &e->schedule;
    const zero_profile *profile = &e->runner.profile;
    const zero_corpus *corpus = &session->dataset.corpus;
    zero_file_ledger file = zero_runner_file_ledger(&e->runner);
    int64_t steps = session->config.steps - session->saving.start; /* of this run */
    json_t *of_file = json_object_get(final, "file");
    int64_t mapped = of_neighbours(&e->window, s->window_bytes) +
                     of_neighbours(&e->tp_window, s->tp_window_bytes);
    /* The losses as texts: they may be infinite. The flops are the model's, not the
     * machine's: recomputed and masked products do not count. The system counts neighbours'
     * memory, which is mapped here too, for every rank. */
    zero_put_members(
        final,
        "{s:b, s:o, s:o*, s:o*, s:I, s:I, s:f, s:I, s:I, s:f, s:f, s:f, s:f, "
        "s:s, s:I, s:o*}",
        "quiet", session->config.quiet, "loss", json_sprintf("%.4f", t->loss), "val_loss",
        t->has_val_loss ? json_sprintf("%.4f", t->val_loss) : NULL, "entropy",
        corpus->has_entropy ? json_real(corpus->entropy.nats_per_token) : NULL, "skipped",
        e->skipped, "all_steps", session->config.steps, "loss_scale",
        (double)e->loss_scale.scale, "steps", steps, "tokens", t->tokens, "run_seconds",
        t->seconds, "eval_seconds", t->eval_seconds, "flops",
        zero_shape_flops(session->model.shape), "multiplied",
        zero_shape_multiplied(session->model.shape), "ms",
        t->seconds < 1e-2 * (double)steps ? ".4f" : ".2f", "mapped_bytes", mapped,
        "exposed_seconds",
        profile->is_of_device ? json_real(zero_profile_exposed(profile, ZERO_PROGRAM_STEP))
                              : NULL);
    /* Classes of instructions that took a thousandth of the steps' time or more, the
     * longest first, and the rest in one line. Instructions that name units get a line per
     * kind of unit. */
    json_t *lines = json_array(), *entry, *unit;
    json_t *rest =
        json_pack("{s:f, s:f, s:f}", "count", 0.0, "seconds", 0.0, "exchange_seconds", 0.0);
    const char *op, *kind;
    json_object_foreach(json_object_get(final, "profile"), op, entry)
    {
        json_t *units = json_object_get(entry, "units");
        if (!units) add_line(lines, rest, LEAST_SHARE * t->seconds, op, "", entry);
        json_object_foreach(units, kind, unit)
            add_line(lines, rest, LEAST_SHARE * t->seconds, op, kind, unit);
    }
    json_object_set_new(final, "lines", lines);
    json_object_set_new(final, "rest", rest);
    if (of_file)
        zero_put_flag(of_file, "as_planned", zero_file_ledger_is_as_planned(&file));
    print("totals", final);
}

void zero_record_finished(const zero_session *s, const char *digest)
{
    print("finished", json_pack("{s:I, s:s}", "steps", s->config.steps, "digest", digest));
}
