/* check_metrics RANKS STEPS FILE: is this the metrics file of a whole run?
 *
 * One JSON object per line; written again with 17 digits each is the same text, so no digit was
 * lost; the first line says what the run is; steps count from 1; the loss goes down; ledgers say
 * planned = measured; the profile's classes add up to the steps; the program, the bytes from rank to
 * rank and the ranks' seconds agree with both (check_parts.c). Prints what must not depend on
 * time: step, loss, rate, norm and validation loss as bits, then the digest.
 *
 * check_metrics config FILE: prints the configuration in the first line, as a --config file.
 *
 * check_metrics step PLAN BEFORE AFTER: AFTER is the run BEFORE with one step more. Does that step
 * move what the plan says in each of its collectives, in all and between nodes?
 *
 * check_metrics json: is stdin one JSON value after the other? */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_parts.h"

enum { LINE_BYTES = 1 << 18 };

static const char *const step_keys[] = {"loss",       "lr",           "grad_norm",
                                        "loss_scale", "step_seconds", "tokens_per_second",
                                        "elapsed"};

static json_t *read_line(char *line)
{
    json_error_t at;
    line[strcspn(line, "\n")] = '\0';
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &at);
    if (!json_is_object(object)) fail("not a JSON object", line);
    char *again = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!again || strcmp(again, line) != 0) fail("not written with 17 digits", line);
    free(again);
    return object;
}

/* Prints the bits and returns the loss. */
static double check_step(const json_t *object, long step, const char *line)
{
    for (size_t i = 0; i < sizeof step_keys / sizeof step_keys[0]; i++)
        real(object, step_keys[i], line);
    if (whole(object, "step", line) != step) fail("a step is missing", line);
    if (whole(object, "tokens", line) < 1) fail("no tokens", line);
    if (real(object, "step_seconds", line) <= 0.0) fail("a step took no time", line);
    double loss = real(object, "loss", line);
    printf("%ld %a %a %a", step, loss, real(object, "lr", line),
           real(object, "grad_norm", line));
    if (json_object_get(object, "val_loss")) printf(" %a", real(object, "val_loss", line));
    printf("\n");
    return loss;
}

/* Nothing moves on one rank, and something does on several. */
static void check_traffic(const json_t *communication, const char *kind, long ranks,
                          const char *line)
{
    const json_t *t = json_object_get(communication, kind);
    json_int_t sent = whole(t, "bytes_sent", line);
    if (sent != whole(t, "planned_bytes_sent", line)) fail("planned is not sent", line);
    if (whole(t, "planned_bytes_received", line) != whole(t, "bytes_received", line))
        fail("planned is not received", line);
    if ((sent > 0) != (ranks > 1)) fail("bytes do not go with the ranks", line);
    if (whole(t, "messages_sent", line) != whole(t, "planned_messages_sent", line))
        fail("planned messages are not sent", line);
    if (ranks == 1 && whole(t, "messages_sent", line) > 0) fail("messages", line);
    bool has_device = json_object_get(t, "bytes_fetched") != NULL;
    if (has_device &&
        (whole(t, "bytes_fetched", line) != whole(t, "planned_bytes_fetched", line) ||
         whole(t, "bytes_stored", line) != whole(t, "planned_bytes_stored", line)))
        fail("planned copies are not those made", line);
    if (real(t, "exposed_seconds", line) > real(t, "seconds", line))
        fail("waited longer than it took", line);
}

/* Every class of this memory is as planned. Returns the sum over classes. `host` stands before the
 * names of a device's host memory. */
static json_int_t check_classes(const json_t *memory, const char *host, const char *line)
{
    char planned_key[40], measured_key[40];
    snprintf(planned_key, sizeof planned_key, "%splanned_bytes", host);
    snprintf(measured_key, sizeof measured_key, "%smeasured_bytes", host);
    json_int_t sum = 0;
    const json_t *measured = json_object_get(memory, measured_key);
    const char *name;
    json_t *bytes;
    json_object_foreach(json_object_get(memory, planned_key), name, bytes)
    {
        sum += json_integer_value(bytes);
        if (whole(measured, name, line) != json_integer_value(bytes))
            fail("a class of memory is not as planned", line);
    }
    return sum;
}

/* `room` is taken for all that the peak counts. Returns the peak. */
static json_int_t check_peak(const json_t *memory, const char *host, json_int_t room,
                             const char *line)
{
    char planned[40], measured[40];
    snprintf(planned, sizeof planned, "%splanned_peak_bytes", host);
    snprintf(measured, sizeof measured, "%smeasured_peak_bytes", host);
    json_int_t peak = whole(memory, planned, line);
    if (peak != whole(memory, measured, line)) fail("the peak is not as planned", line);
    if (peak < 1 || peak > check_classes(memory, host, line) || peak > room)
        fail("the peak is impossible", line);
    return peak;
}

/* Beside a device the window lies in the host's memory, and that is what is resident. States and the
 * slots for those in a file are in either memory. */
static void check_memory(const json_t *memory, const char *line)
{
    static const char *const classes[] = {"optimizer states", "offload slots"};
    bool has_device = json_object_get(memory, "host_planned_bytes") != NULL;
    json_int_t window = whole(memory, "window_bytes", line), states = 0;
    json_int_t peak =
        check_peak(memory, "", whole(memory, "arena_bytes", line) + window, line);
    if (has_device)
        peak = check_peak(memory, "host_", whole(memory, "host_arena_bytes", line) + window,
                          line);
    if (whole(memory, "resident_peak_bytes", line) < peak / 2) fail("resident", line);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        states += whole(json_object_get(memory, "planned_bytes"), classes[i], line);
        if (has_device)
            states +=
                whole(json_object_get(memory, "host_planned_bytes"), classes[i], line);
    }
    if (states < 1) fail("no optimizer states, and no slots for them", line);
}

/* Checks a class of instructions, or one kind of its units. Returns its seconds. */
static double check_entry(const json_t *entry, const char *line)
{
    double seconds = real(entry, "seconds", line);
    if (whole(entry, "count", line) < 1) fail("a class that did not run", line);
    if (!(seconds >= real(entry, "least_seconds", line)) ||
        !(seconds <= real(entry, "most_seconds", line)))
        fail("a rank took less than the least, or more than the most", line);
    double exchange = real(entry, "exchange_seconds", line);
    if (!(exchange >= 0.0) || !(exchange <= seconds)) fail("more exchange than time", line);
    return seconds;
}

static void check_units(const json_t *class, const char *line)
{
    json_int_t count = 0;
    double seconds = 0.0, all = real(class, "seconds", line);
    const json_t *units = json_object_get(class, "units");
    const char *name;
    json_t *entry;
    json_object_foreach((json_t *)units, name, entry)
    {
        seconds += check_entry(entry, line);
        count += whole(entry, "count", line);
    }
    if (count != whole(class, "count", line)) fail("units are missing", line);
    if (fabs(seconds - all) > 1e-9 * all) fail("units do not add up", line);
}

/* Little happens in a step outside its instructions; a rank may lose its core there. A device may
 * still compute for the last step when that is over for the host, and an emulated one executes what is
 * queued as late as between two steps. */
static void check_profile(const json_t *object, long ranks, long steps, double seconds,
                          const char *line)
{
    const json_t *profile = json_object_get(object, "profile");
    const json_t *memory = json_object_get(object, "memory");
    bool has_device = json_object_get(memory, "host_planned_bytes") != NULL;
    double sum = 0.0;
    const char *name;
    json_t *class;
    json_object_foreach((json_t *)profile, name, class) sum += check_entry(class, line);
    double most =
        has_device ? (1.0 + 3.0 / (double)steps) * seconds + 0.1 : 1.000001 * seconds;
    if (sum > most || sum < 0.9 * seconds - 0.02)
        fail("classes do not add up to the steps", line);
    if (whole(json_object_get(profile, "LOSS"), "count", line) != steps)
        fail("not one loss in a step", line);
    check_units(json_object_get(profile, "FORWARD"), line);
    check_units(json_object_get(profile, "BACKWARD"), line);
    const json_t *reduce = json_object_get(profile, "REDUCE");
    if (ranks > 1 && whole(reduce, "bytes_sent", line) < 1) fail("nothing reduced", line);
}

/* Programs send the small messages that are planned; starting and ending need some more. */
static void check_control(const json_t *control, long ranks, const char *line)
{
    static const char *const keys[] = {"bytes_sent", "bytes_received", "messages_sent"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char planned[40], programs[40];
        snprintf(planned, sizeof planned, "planned_%s", keys[i]);
        snprintf(programs, sizeof programs, "programs_%s", keys[i]);
        json_int_t moved = whole(control, programs, line);
        if (moved != whole(control, planned, line)) fail(planned, line);
        if ((moved > 0) != (ranks > 1)) fail("control traffic not of the ranks", line);
        if ((whole(control, keys[i], line) > moved) != (ranks > 1)) fail(keys[i], line);
    }
}

static void check_step_time(const json_t *time, long steps, const char *line)
{
    double median = real(time, "median", line);
    if (!(real(time, "lower_quartile", line) <= median) || !(median > 0.0) ||
        !(real(time, "upper_quartile", line) >= median))
        fail("the median is not between the quartiles", line);
    if (whole(time, "first_steps_left_out", line) != (steps > 3 ? 3 : 0) ||
        whole(time, "steps", line) != (steps > 3 ? steps - 3 : steps))
        fail("the median of other steps", line);
}

/* With --offload: each kind of transfer as planned, and every block written. */
static void check_scratch_file(const json_t *file, const char *line)
{
    if (!file) return;
    const json_t *planned = json_object_get(file, "planned");
    const json_t *bytes = json_object_get(file, "planned_bytes");
    if (json_object_size(planned) != 3 ||
        !json_equal(planned, json_object_get(file, "measured")))
        fail("other transfers than planned", line);
    if (whole(bytes, "optimizer states", line) < 1 ||
        !json_equal(bytes, json_object_get(file, "measured_bytes")))
        fail("other bytes in the file than planned", line);
    if (whole(json_object_get(file, "planned_step"), "bytes_written", line) < 1 ||
        whole(file, "updates", line) < 1)
        fail("nothing was written", line);
}

/* `seconds` are those of all steps. */
static void check_final(const json_t *object, long ranks, long steps, double seconds,
                        json_int_t peak, const char *line)
{
    if (!json_is_true(json_object_get(object, "final"))) fail("no final line", line);
    if (whole(object, "ranks", line) != ranks) fail("another number of ranks", line);
    const char *digest = json_string_value(json_object_get(object, "digest"));
    if (!digest || strlen(digest) != 32 || strspn(digest, "0123456789abcdef") != 32)
        fail("not a digest of 128 bits", line);
    const json_t *communication = json_object_get(object, "communication");
    check_traffic(communication, "reduce", ranks, line);
    check_traffic(communication, "gather", ranks, line);
    if (json_object_get(communication, "all_reduce"))
        check_traffic(communication, "all_reduce", ranks, line);
    check_control(json_object_get(communication, "control"), ranks, line);
    check_step_time(json_object_get(object, "step_time"), steps, line);
    check_memory(json_object_get(object, "memory"), line);
    if (peak > whole(json_object_get(object, "memory"), "planned_peak_bytes", line))
        fail("the program has a higher peak than the ledger", line);
    check_scratch_file(json_object_get(object, "file"), line);
    check_profile(object, ranks, steps, seconds, line);
    check_peers(object, ranks, line);
    check_rank_seconds(object, ranks, line);
    printf("digest %s\n", digest);
}

static const char *const run_texts[] = {"version",     "commit", "build", "command",
                                        "started",     "dtype",  "cpu",   "arithmetic",
                                        "collectives", "blas",   "mpi",   "data"};
static const char *const run_objects[] = {"nodes", "model", "options", "config"};

static void check_first(const json_t *object, long ranks, long steps, const char *line)
{
    const json_t *run = json_object_get(object, "run");
    for (size_t i = 0; i < sizeof run_texts / sizeof run_texts[0]; i++)
        if (!json_string_length(json_object_get(run, run_texts[i])))
            fail(run_texts[i], line);
    for (size_t i = 0; i < sizeof run_objects / sizeof run_objects[0]; i++)
        if (!json_is_object(json_object_get(run, run_objects[i])))
            fail(run_objects[i], line);
    if (whole(run, "ranks", line) != ranks) fail("another number of ranks", line);
    if (json_array_size(json_object_get(run, "hosts")) < 1) fail("no hosts", line);
    if (whole(run, "cores", line) < 1) fail("no cores", line);
    if (whole(run, "node_cores", line) < whole(run, "cores", line)) fail("cores", line);
    if (whole(json_object_get(run, "config"), "steps", line) != steps) fail("steps", line);
    if (whole(json_object_get(run, "model"), "parameters", line) < 1) fail("empty", line);
    const char *started = json_string_value(json_object_get(run, "started"));
    if (strlen(started) != strlen("2026-11-22T08:18:50Z")) fail("not a time", line);
}

static json_t *read_first(FILE *file, char line[LINE_BYTES])
{
    if (!fgets(line, LINE_BYTES, file)) fail("the file is empty", "");
    return read_line(line);
}

static void print_config(FILE *file)
{
    char line[LINE_BYTES];
    json_t *first = read_first(file, line), *value;
    json_t *config = json_object_get(json_object_get(first, "run"), "config");
    const char *name;
    void *next;
    json_object_foreach_safe(config, next, name, value)
    {
        if (json_is_null(value)) json_object_del(config, name);
    }
    if (json_dumpf(config, stdout, JSON_INDENT(2)) != 0) fail("no configuration", line);
    json_decref(first);
}

/* Unknown on a device, whose times are read after the last step. */
static void check_exposed(const json_t *object, const char *line)
{
    const json_t *exposed = json_object_get(object, "exposed_seconds");
    if (json_is_null(exposed)) return;
    if (!json_is_real(exposed) || json_real_value(exposed) < 0.0 ||
        json_real_value(exposed) > real(object, "step_seconds", line))
        fail("a step waited longer than it took", line);
}

static void check_run(FILE *file, long ranks, long steps)
{
    char line[LINE_BYTES];
    double first = 0.0, last = 0.0, seconds = 0.0, elapsed = 0.0;
    json_t *run = read_first(file, line);
    check_first(run, ranks, steps, line);
    json_int_t peak = check_schedule(json_object_get(run, "run"), line);
    json_decref(run);
    for (long step = 1; step <= steps; step++) {
        if (!fgets(line, sizeof line, file)) fail("the file ends early", "");
        json_t *object = read_line(line);
        last = check_step(object, step, line);
        seconds += real(object, "step_seconds", line);
        check_exposed(object, line);
        if (real(object, "elapsed", line) < elapsed + real(object, "step_seconds", line))
            fail("less time has elapsed than the step took", line);
        elapsed = real(object, "elapsed", line);
        if (step == 1) first = last;
        json_decref(object);
    }
    if (!fgets(line, sizeof line, file)) fail("no final line", "");
    json_t *object = read_line(line);
    check_final(object, ranks, steps, seconds, peak, line);
    json_decref(object);
    if (fgets(line, sizeof line, file)) fail("more than a final line", line);
    if (!(last < first)) fail("the loss did not go down", line);
}

/* ---- a step of a run beside its plan ---- */

static json_t *read_last(const char *path)
{
    static char line[LINE_BYTES], last[LINE_BYTES];
    FILE *file = fopen(path, "r");
    if (!file) fail("no such file", path);
    while (fgets(line, sizeof line, file)) memcpy(last, line, sizeof last);
    fclose(file);
    return read_line(last);
}

static json_int_t in_run(const json_t *final, const char *op, const char *part,
                         const char *key)
{
    const json_t *t = json_object_get(json_object_get(final, "communication"), op);
    return whole(part ? json_object_get(t, part) : t, key, op);
}

static void compare_op(const json_t *plan, const json_t *before, const json_t *after,
                       const char *op)
{
    static const struct {
        const char *planned, *part, *key;
    } rows[] = {{"bytes_sent", NULL, "bytes_sent"},
                {"bytes_received", NULL, "bytes_received"},
                {"messages_sent", NULL, "messages_sent"},
                {"bytes_sent_across", "across_nodes", "bytes_sent"},
                {"bytes_received_across", "across_nodes", "bytes_received"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_int_t moved = in_run(after, op, rows[i].part, rows[i].key) -
                           in_run(before, op, rows[i].part, rows[i].key);
        json_int_t planned = whole(plan, rows[i].planned, op);
        if (moved == planned) continue;
        fprintf(stderr,
                "check_metrics: %s: %s: a step moves %" JSON_INTEGER_FORMAT
                ", planned %" JSON_INTEGER_FORMAT "\n",
                op, rows[i].planned, moved, planned);
        exit(1);
    }
    printf("%s %" JSON_INTEGER_FORMAT " %" JSON_INTEGER_FORMAT "\n", op,
           whole(plan, "bytes_sent", op), whole(plan, "bytes_sent_across", op));
}

/* Prints each collective's bytes sent, in all and to other nodes. */
static void compare_step(const char *plan_path, const char *before_path,
                         const char *after_path)
{
    static const char *const ops[] = {"reduce", "all_reduce", "gather", "join", "collect"};
    json_error_t at;
    json_t *file = json_load_file(plan_path, 0, &at);
    json_t *before = read_last(before_path), *after = read_last(after_path);
    const json_t *stage = json_array_get(json_object_get(file, "stages"), 0);
    const json_t *planned = json_object_get(stage, "communication");
    if (!planned) fail("not a plan", plan_path);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        const json_t *ran =
            json_object_get(json_object_get(after, "communication"), ops[i]);
        const json_t *op = json_object_get(planned, ops[i]);
        if (!op != !ran) fail("in the plan or in the run alone", ops[i]);
        if (op) compare_op(op, before, after, ops[i]);
    }
    compare_peers(json_object_get(stage, "peers"), before, after);
    json_decref(file);
    json_decref(before);
    json_decref(after);
}

static void check_json(void)
{
    json_error_t at;
    int n = 0, c;
    while ((c = getchar()) != EOF) {
        if (c == '\n' || c == ' ') continue;
        ungetc(c, stdin);
        json_t *object = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, &at);
        if (!json_is_object(object)) fail("not JSON", at.text);
        json_decref(object);
        n++;
    }
    if (n == 0) fail("empty", "stdin");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "json") == 0) {
        check_json();
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "step") == 0) {
        compare_step(argv[2], argv[3], argv[4]);
        return 0;
    }
    bool is_config = argc == 3 && strcmp(argv[1], "config") == 0;
    FILE *file = argc == 4 || is_config ? fopen(argv[argc - 1], "r") : NULL;
    if (!file) fail("usage: check_metrics RANKS STEPS FILE", argc > 3 ? argv[3] : "");
    if (is_config)
        print_config(file);
    else
        check_run(file, strtol(argv[1], NULL, 10), strtol(argv[2], NULL, 10));
    fclose(file);
    return 0;
}
