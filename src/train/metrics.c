#include "train/metrics.h"

#include <sys/resource.h>

#include "engine/file_ledger.h"
#include "math/peak.h"
#include "sharding/schedule_exchange.h"

#define FINAL_PATIENCE 2.0 /* seconds for the reader of a pipe */

zero_status zero_metrics_open(zero_metrics *m, const char *path, bool append)
{
    *m = (zero_metrics){.path = path, .append = append};
    return path ? zero_line_file_open(&m->file, "--metrics", path) : ZERO_OK;
}

void zero_metrics_begin(zero_metrics *m)
{
    if (m->file.is_open) zero_line_file_begin(&m->file, m->append);
}

/* Each line is written at once, so runs can be followed, and killed ones read. */
static void write_within(zero_metrics *m, json_t *line, double patience)
{
    if (line && m->file.lost > 0) zero_put_whole(line, "lost_lines", m->file.lost);
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    size_t len = text ? strlen(text) : 0;
    char *whole = text ? realloc(text, len + 2) : NULL;
    if (whole)
        strcpy(whole + len++, "\n");
    else
        free(text);
    zero_line_file_write(&m->file, whole, len, patience);
    json_decref(line);
}

/* Each line is written at once, so runs can be followed, and killed ones read. */
static void zero_metrics_write(zero_metrics *m, json_t *line)
{
    write_within(m, line, 0.0);
}

void zero_metrics_run_line(zero_metrics *m, json_t *run, const zero_schedule *schedule)
{
    if (!m->file.is_open) return;
    if (run) json_object_set_new(run, "schedule", zero_metrics_schedule(schedule));
    zero_metrics_write(m, run ? json_pack("{s:O}", "run", run) : NULL);
}

json_t *zero_metrics_text(const char *text)
{
    json_t *value = json_string(text);
    char *copy = value ? NULL : strdup(text);
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c >= 0x80) *c = '?';
    if (copy) value = json_string(copy);
    free(copy);
    return value;
}

json_t *zero_metrics_real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

void zero_metrics_step_line(zero_metrics *m, const zero_metrics_step *s)
{
    if (!m->file.is_open) return;
    double rate = s->seconds > 0.0 ? (double)s->tokens / s->seconds : 0.0;
    json_t *line = json_pack(
        "{s:I, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o*, s:o*}", "step", s->step,
        "loss", zero_metrics_real(s->loss), "lr", zero_metrics_real(s->lr), "grad_norm",
        zero_metrics_real(s->grad_norm), "loss_scale", zero_metrics_real(s->loss_scale),
        "tokens", s->tokens, "step_seconds", zero_metrics_real(s->seconds),
        "exposed_seconds", zero_metrics_real(s->exposed), "tokens_per_second",
        zero_metrics_real(rate), "elapsed", zero_metrics_real(s->elapsed), "val_loss",
        s->has_val_loss ? zero_metrics_real(s->val_loss) : NULL, "skipped",
        s->skipped ? json_true() : NULL);
    zero_metrics_write(m, line);
}

static json_t *class_bytes(const size_t bytes[ZERO_CLASSES])
{
    json_t *classes = json_object();
    for (zero_class c = 0; c < ZERO_CLASSES; c++)
        zero_put_whole(classes, zero_class_name(c), (int64_t)bytes[c]);
    return classes;
}

/* Adds members under names that begin so; takes them over. */
static void put(json_t *entry, const char *before, json_t *members)
{
    const char *name;
    json_t *value;
    json_object_foreach(members, name, value)
    {
        char key[64];
        zero_print(key, "%s%s", before, name);
        json_object_set(entry, key, value);
    }
    json_decref(members);
}

/* ---- communication ---- */

/* Inside nodes, across them, or both. */
static json_t *volume(const zero_traffic *t, int first, int last)
{
    json_int_t sent = 0, received = 0, messages = 0;
    for (int reach = first; reach <= last; reach++) {
        sent += t->bytes_sent[reach];
        received += t->bytes_received[reach];
        messages += t->messages_sent[reach];
    }
    return json_pack("{s:I, s:I, s:I}", "bytes_sent", sent, "bytes_received", received,
                     "messages_sent", messages);
}

static json_t *all_of(const zero_traffic *t)
{
    return volume(t, ZERO_INSIDE, ZERO_ACROSS);
}

static void put_measured(json_t *entry, const zero_traffic *t, const zero_duration *d)
{
    json_object_update_new(entry, all_of(t));
    zero_put_members(
        entry, "{s:o, s:o, s:o, s:o}", "inside_nodes", volume(t, ZERO_INSIDE, ZERO_INSIDE),
        "across_nodes", volume(t, ZERO_ACROSS, ZERO_ACROSS), "seconds",
        zero_metrics_real(d->total), "exposed_seconds", zero_metrics_real(d->exposed));
}

static json_t *copies(const zero_traffic *t)
{
    return json_pack("{s:I, s:I}", "bytes_fetched", t->bytes_fetched, "bytes_stored",
                     t->bytes_stored);
}

/* The traffic of an exchange: planned by the program, and measured. With a device also
 * between it and the host: nothing if devices reach each other. */
static json_t *traffic_entry(const zero_engine *e, zero_op op)
{
    zero_traffic plan = zero_engine_planned_traffic(e, op), moved;
    zero_duration spent;
    json_t *entry = json_object();
    zero_engine_measured_traffic(e, op, &moved, &spent);
    put(entry, "planned_", all_of(&plan));
    put_measured(entry, &moved, &spent);
    if (!e->schedule.input.device) return entry;
    put(entry, "planned_", copies(&plan));
    json_object_update_new(entry, copies(&moved));
    return entry;
}

static json_t *traffic_ledger(const zero_engine *e, const zero_comm *comm)
{
    const zero_schedule *s = &e->schedule;
    /* Small messages: those of the programs, planned and measured, and all. */
    zero_traffic plan = zero_engine_planned_control(e);
    json_t *control = json_object();
    put(control, "planned_", all_of(&plan));
    put(control, "programs_", all_of(&e->runner.control));
    put_measured(control, &comm->traffic[ZERO_CONTROL], &comm->duration[ZERO_CONTROL]);
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*}", "collectives",
        zero_algorithm_name(s->input.collectives), "reduce",
        traffic_entry(e, ZERO_OP_REDUCE), "gather", traffic_entry(e, ZERO_OP_GATHER),
        "control", control, "largest_poll_gap_seconds",
        zero_metrics_real(comm->largest_gap), "device_exchange",
        s->input.device ? zero_plan_device_exchange(&s->input) : NULL, "all_reduce",
        s->shard.replicas > 1 ? traffic_entry(e, ZERO_OP_ALL_REDUCE) : NULL, "join",
        s->n_joins > 0 ? traffic_entry(e, ZERO_OP_JOIN) : NULL, "collect",
        s->input.partition_activations ? traffic_entry(e, ZERO_OP_COLLECT) : NULL, "send",
        s->n_messages > 0 ? traffic_entry(e, ZERO_OP_SEND) : NULL, "receive",
        s->n_messages > 0 ? traffic_entry(e, ZERO_OP_RECEIVE) : NULL);
}

/* ---- the scratch file ---- */

json_t *zero_metrics_moved(const zero_file_traffic *t)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "bytes_read", t->bytes_read, "bytes_written",
                     t->bytes_written, "reads", t->reads, "writes", t->writes);
}

json_t *zero_metrics_offload(const zero_offload_traffic *t)
{
    return json_pack("{s:o, s:o, s:o}", zero_class_name(ZERO_CLASS_OPTIMIZER),
                     zero_metrics_moved(&t->states), zero_class_name(ZERO_CLASS_PARAMETERS),
                     zero_metrics_moved(&t->parameters), zero_class_name(ZERO_CLASS_KEPT),
                     zero_metrics_moved(&t->activations));
}

/* This rank's transfers; planned_step is that of a step with an update. */
static json_t *file_ledger(const zero_engine *e)
{
    zero_file_ledger l = zero_runner_file_ledger(&e->runner);
    zero_offload_traffic step = zero_offload_count(&e->schedule, ZERO_PROGRAM_STEP);
    zero_file_traffic of_step = zero_offload_total(&step);
    int64_t updates = 0;
    for (int p = 0; p < ZERO_PROGRAMS; p++) updates += e->runner.updates[p];
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "planned", zero_metrics_offload(&l.planned),
        "measured", zero_metrics_offload(&l.measured), "other",
        zero_metrics_moved(&l.visits), "planned_step", zero_metrics_moved(&of_step),
        "updates", updates, "planned_bytes", class_bytes(l.planned_bytes), "measured_bytes",
        class_bytes(l.measured_bytes));
}

/* ---- the profile ---- */

static json_t *profile_entry(const zero_profile_row *row)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "count", row->own.count, "seconds",
                     zero_metrics_real(row->own.seconds), "least_seconds",
                     zero_metrics_real(row->least), "most_seconds",
                     zero_metrics_real(row->most), "exchange_seconds",
                     zero_metrics_real(row->own.exchange));
}

static json_t *profile(const zero_engine *e, const zero_profile_ranks *ranks)
{
    json_t *classes = json_object();
    for (zero_op op = 0; op < ZERO_OP_KINDS; op++) {
        const zero_profile_row *row = zero_profile_row_at(ranks, op, ZERO_ALL_UNITS);
        if (row->own.count == 0) continue;
        json_t *entry = profile_entry(row), *units = json_object();
        /* The same by kinds of units, for FORWARD, RECOMPUTE and BACKWARD. */
        for (int k = ZERO_ALL_UNITS + 1; k < ranks->profile->n_columns; k++) {
            char kind[ZERO_UNIT_NAME];
            row = zero_profile_row_at(ranks, op, k);
            zero_profile_kind(ranks->profile, k, kind);
            if (row->own.count > 0) json_object_set_new(units, kind, profile_entry(row));
        }
        if (json_object_size(units) > 0) json_object_set(entry, "units", units);
        json_decref(units);
        if (zero_ops[op].kind == ZERO_WORK_EXCHANGE) {
            /* The bytes and messages of an exchange in all steps. */
            zero_traffic step = zero_schedule_traffic(&e->schedule, ZERO_PROGRAM_STEP, op);
            zero_volume v = zero_traffic_total(&step);
            int64_t steps = e->runner.walks[ZERO_PROGRAM_STEP];
            zero_put_members(entry, "{s:I, s:I}", "bytes_sent", (steps * v.bytes_sent),
                             "bytes_received", (steps * v.bytes_received));
        }
        json_object_set_new(classes, zero_op_name(op), entry);
    }
    return classes;
}

json_t *zero_metrics_nodes(const zero_layout *layout, bool fake)
{
    return json_pack("{s:i, s:b, s:s*}", "count", layout->n_nodes, "fake", fake, "note",
                     fake ? "times mean nothing" : NULL);
}

/* ---- all ranks beside each other ---- */

static json_t *matrix(const int64_t *cells, int n)
{
    json_t *rows = json_array(), *row = NULL;
    for (int i = 0; i < n * n; i++) {
        if (i % n == 0) json_array_append_new(rows, row = json_array());
        json_array_append_new(row, json_integer(cells[i]));
    }
    return rows;
}

static json_t *peers(const zero_rank_bytes *bytes, const zero_layout *layout)
{
    json_t *nodes = json_array();
    for (int r = 0; r < layout->size; r++)
        json_array_append_new(nodes, json_integer(layout->node_of[r]));
    return json_pack("{s:o, s:o, s:o}", "node_of", nodes, "planned",
                     matrix(bytes->planned, bytes->n), "sent",
                     matrix(bytes->sent, bytes->n));
}

json_t *zero_metrics_rank_seconds(const zero_rank_seconds *s)
{
    json_t *object = json_object();
    for (zero_rank_time t = 0; t < ZERO_RANK_TIMES; t++) {
        json_t *list = s->n <= ZERO_METRICS_RANKS ? json_array() : NULL;
        for (int r = 0; r < s->n && list; r++)
            json_array_append_new(
                list, zero_metrics_real(s->of_rank[(int64_t)r * ZERO_RANK_TIMES + t]));
        json_object_set_new(object, zero_rank_time_name(t),
                            json_pack("{s:o, s:o, s:o, s:o*}", "least",
                                      zero_metrics_real(s->least[t]), "mean",
                                      zero_metrics_real(s->mean[t]), "most",
                                      zero_metrics_real(s->most[t]), "ranks", list));
    }
    return object;
}

/* ---- the last line ---- */

/* The peak of this rank's cores, and the share of it that the model's flops reach in the
 * median step; NULL on a device, whose peak is not known. */
static json_t *peak(const zero_engine *e, const zero_step_time *t)
{
    const zero_plan_input *in = &e->schedule.input;
    const int threads = (int)zero_plan_threads(in);
    if (e->runner.backend->memory || !(t->median > 0.0)) return NULL;
    const zero_cpu_rate could = zero_cpu_peak(in->type, threads);
    if (!(could.flops > 0.0)) return NULL; /* no time has passed: a simulation's clock */
    return json_pack("{s:f, s:s, s:i, s:f}", "flops_per_second", could.flops, "by",
                     could.by, "threads", threads, "share",
                     t->flops / t->median / could.flops);
}

zero_status zero_metrics_final_facts(zero_engine *e, zero_comm *comm, bool fake_nodes,
                                     const zero_step_time *t, const char *digest,
                                     json_t **facts)
{
    const zero_schedule *s = &e->schedule;
    ZERO_AT_END(zero_profile_ranks_destroy) zero_profile_ranks profiles = {0};
    ZERO_AT_END(zero_rank_bytes_destroy) zero_rank_bytes bytes = {0};
    ZERO_AT_END(zero_rank_seconds_destroy) zero_rank_seconds seconds = {0};
    zero_peak planned, measured;
    *facts = NULL;
    ZERO_TRY(zero_profile_gather(&e->runner.profile, ZERO_PROGRAM_STEP, comm, &profiles));
    ZERO_TRY(zero_rank_bytes_gather(e, &bytes));
    ZERO_TRY(zero_rank_seconds_gather(e, &seconds));
    if (!zero_comm_is_root(comm)) return ZERO_OK;
    ZERO_TRY(zero_runner_memory(&e->runner, &planned, &measured));
    json_t *memory = json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "planned_bytes",
                               class_bytes(planned.of_class), "measured_bytes",
                               class_bytes(measured.of_class), "planned_peak_bytes",
                               planned.bytes, "measured_peak_bytes", measured.bytes,
                               "arena_bytes", s->own_bytes, "window_bytes", s->window_bytes,
                               "resident_peak_bytes", zero_metrics_resident_peak());
    if (s->n_joins > 0)
        zero_put_whole(memory, "tp_window_bytes", (int64_t)s->tp_window_bytes);
    if (s->input.device) {
        /* The members before are the device's, but for window and resident memory. */
        put(memory, "host_",
            json_pack("{s:o, s:o, s:I, s:I, s:I}", "planned_bytes",
                      class_bytes(planned.host_of_class), "measured_bytes",
                      class_bytes(measured.host_of_class), "planned_peak_bytes",
                      planned.host_bytes, "measured_peak_bytes", measured.host_bytes,
                      "arena_bytes", s->host_bytes));
    }
    *facts = json_pack("{s:b, s:s, s:i, s:o, s:{s:o, s:o, s:o, s:I, s:I, s:I}, s:o*, s:o, "
                       "s:o, s:o, s:o*, s:o*, s:o}",
                       "final", 1, "digest", digest, "ranks", comm->size, "nodes",
                       zero_metrics_nodes(&comm->layout, fake_nodes), "step_time", "median",
                       zero_metrics_real(t->median), "lower_quartile",
                       zero_metrics_real(t->lower), "upper_quartile",
                       zero_metrics_real(t->upper), "steps", t->n, "first_steps_left_out",
                       t->first, "later_steps_left_out", t->before, "peak", peak(e, t),
                       "memory", memory, "communication", traffic_ledger(e, comm),
                       "profile", profile(e, &profiles), "file",
                       zero_plan_uses_file(&e->schedule.input) ? file_ledger(e) : NULL,
                       "peers", bytes.n > 0 ? peers(&bytes, &comm->layout) : NULL,
                       "rank_seconds", zero_metrics_rank_seconds(&seconds));
    return zero_allocated(*facts, "no memory for the last line");
}

void zero_metrics_final_line(zero_metrics *m, json_t *facts)
{
    if (m->file.is_open) write_within(m, json_incref(facts), FINAL_PATIENCE);
}

void zero_metrics_close(zero_metrics *m)
{
    zero_line_file_close(&m->file);
}

size_t zero_metrics_resident_peak(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (size_t)usage.ru_maxrss * 1024; /* Linux counts KiB */
}
