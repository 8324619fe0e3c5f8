#include "pages/run_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/type.h"
#include "engine/ranks.h"
#include "facts/facts.h"
#include "pages/expect.h"
#include "pages/run.h"

#define MOST_BYTES (INT64_MAX / (2 * ZERO_CLASSES)) /* so that sums do not overflow */
#define MOST_STEPS 1000000000                       /* instructions of a program */
#define COUNT(a)   (sizeof a / sizeof a[0])

/* clang-format off */
#define OPS "reduce,all_reduce?,gather,join?,collect?,control"
#define SPENT "rank_seconds?/step,compute,exchange,exposed,waited,transfers,in_flight,awaited"

static const zero_expected run_rows[] = {
    {"ranks", ZERO_EXPECT_WHOLE, 1, ZERO_RUN_RANKS, NULL},
    {"stage", ZERO_EXPECT_WHOLE, 0, 3, NULL},
    {"nodes/count", ZERO_EXPECT_WHOLE, 1, INT64_MAX, NULL},
    {"nodes/fake", ZERO_EXPECT_FLAG, 0, 0, NULL},
    {"tp/ranks", ZERO_EXPECT_WHOLE, 1, INT64_MAX, NULL},
    {"model/name", ZERO_EXPECT_TEXT, 0, 63, NULL},
    {"model/parameters", ZERO_EXPECT_WHOLE, 1, INT64_MAX, NULL},
    {"started", ZERO_EXPECT_TEXT, 0, 31, NULL},
    {"collectives", ZERO_EXPECT_TEXT, 0, 15, NULL},
    {"dtype", ZERO_EXPECT_TEXT, 0, 7, NULL},
    {"options,config", ZERO_EXPECT_OBJECT, 0, 0, NULL},
    {"resumed_step,id?", ZERO_EXPECT_WHOLE, 0, INT64_MAX, NULL},
    {"schedule?/length", ZERO_EXPECT_WHOLE, 1, MOST_STEPS, NULL},
    {"schedule?/peak", ZERO_EXPECT_WHOLE, 1, MOST_STEPS, NULL},
    {"schedule?/left_out?/after,count", ZERO_EXPECT_WHOLE, 0, MOST_STEPS, NULL},
    {"schedule?/classes,instructions", ZERO_EXPECT_LIST, 0, 0, NULL},
};

static const zero_expected instruction_rows[] = {
    {"name", ZERO_EXPECT_TEXT, 0, 63, NULL},
    {"op", ZERO_EXPECT_TEXT, 0, 23, NULL},
    {"bytes?", ZERO_EXPECT_WHOLE, 0, MOST_BYTES, NULL},
    {"live", ZERO_EXPECT_LIST, 0, 0, NULL},
};

static const zero_expected step_rows[] = {
    {"loss,val_loss?", ZERO_EXPECT_ANY, 0, 0, NULL},
    {"lr,grad_norm,loss_scale,step_seconds,exposed_seconds,tokens_per_second,elapsed",
     ZERO_EXPECT_NUMBER, 0, 0, NULL},
    {"tokens", ZERO_EXPECT_WHOLE, 0, INT64_C(1) << 53, NULL}, /* exact as a double */
    {"skipped?", ZERO_EXPECT_FLAG, 0, 0, NULL},
};

static const zero_expected final_rows[] = {
    {"final", ZERO_EXPECT_FLAG, 0, 0, NULL},
    {"digest", ZERO_EXPECT_TEXT, 0, 32, NULL},
    {"ranks", ZERO_EXPECT_WHOLE, 1, ZERO_RUN_RANKS, NULL},
    {"memory/planned_bytes,measured_bytes/*31", ZERO_EXPECT_WHOLE, 0, INT64_MAX, NULL},
    {"memory/planned_peak_bytes,measured_peak_bytes", ZERO_EXPECT_WHOLE, 0, INT64_MAX,
     NULL},
    {"memory/host_planned_bytes,host_measured_bytes/*31", ZERO_EXPECT_WHOLE, 0, INT64_MAX, "memory/host_planned_bytes"},
    {"memory/host_planned_peak_bytes,host_measured_peak_bytes", ZERO_EXPECT_WHOLE, 0,
     INT64_MAX, "memory/host_planned_bytes"},
    {"file?/planned,measured/*31/bytes_read,bytes_written", ZERO_EXPECT_WHOLE, 0, INT64_MAX, NULL},
    {"communication/" OPS "/planned_bytes_sent,planned_bytes_received,planned_messages_sent,bytes_sent,bytes_received,messages_sent",
     ZERO_EXPECT_WHOLE, 0, INT64_MAX, NULL},
    {"communication/control/programs_bytes_sent?", ZERO_EXPECT_WHOLE, 0, INT64_MAX, NULL},
    {"communication/control/programs_bytes_received,programs_messages_sent",
     ZERO_EXPECT_WHOLE, 0, INT64_MAX, "communication/control/programs_bytes_sent"},
    {"communication/" OPS "/seconds,exposed_seconds", ZERO_EXPECT_NUMBER, 0, 0, NULL},
    {"communication/" OPS "/inside_nodes,across_nodes/bytes_sent", ZERO_EXPECT_WHOLE, 0,
     INT64_MAX, NULL},
    {"profile", ZERO_EXPECT_OBJECT, 0, 0, NULL},
    {"profile/*23/count", ZERO_EXPECT_WHOLE, 0, INT64_MAX, NULL},
    {"profile/*23/seconds,exchange_seconds,least_seconds,most_seconds", ZERO_EXPECT_NUMBER, 0, 0, NULL},
    {"profile/*23/units?/*47/count", ZERO_EXPECT_WHOLE, 0, INT64_MAX, NULL},
    {"profile/*23/units?/*47/seconds,exchange_seconds,least_seconds,most_seconds", ZERO_EXPECT_NUMBER, 0, 0, NULL},
    {"peers?/node_of,planned,sent", ZERO_EXPECT_LIST, 0, 0, NULL},
    {"ranks", ZERO_EXPECT_WHOLE, 1, ZERO_RUN_PEERS, "peers"},
    {SPENT "/least,mean,most", ZERO_EXPECT_NUMBER, 0, 0, NULL},
};
/* clang-format on */

/* ---- the first line ---- */

/* The place of each of the schedule's classes among zero_class; -1: there is no such
 * class, -2: it is there twice. */
static int find_class(const json_t *names, size_t i)
{
    const char *name = json_string_value(json_array_get(names, i));
    for (size_t k = 0; k < i; k++)
        if (json_equal(json_array_get(names, k), json_array_get(names, i))) return -2;
    for (int c = 0; name && c < ZERO_CLASSES; c++)
        if (strcmp(name, zero_class_name((zero_class)c)) == 0) return c;
    return -1;
}

static zero_status check_classes(const char *where, const json_t *names)
{
    char shown[ZERO_JSON_SHOWN];
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        int c = find_class(names, i);
        if (c >= 0) continue;
        return zero_fail(ZERO_ERR_FORMAT, "%.500s: \"classes\": expected %s, found %s%s",
                         where, c == -1 ? "classes of memory" : "each class once",
                         name ? zero_json_shown(name, shown) : "no text",
                         c == -1 ? "" : " twice");
    }
    return ZERO_OK;
}

static zero_status check_instruction(const char *where, const json_t *instruction,
                                     int64_t number, size_t n_classes)
{
    ZERO_TRY(zero_expect(where, instruction, instruction_rows, COUNT(instruction_rows)));
    const json_t *live = json_object_get(instruction, "live");
    if (json_array_size(live) != n_classes)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"live\" of instruction %" PRId64
                         ": expected %zu numbers, found %zu",
                         where, number, n_classes, json_array_size(live));
    for (size_t i = 0; i < n_classes; i++) {
        const json_t *value = json_array_get(live, i);
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            json_integer_value(value) > MOST_BYTES)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s: \"live\" of instruction %" PRId64
                             ": expected whole numbers from 0 to %" PRId64,
                             where, number, MOST_BYTES);
    }
    return ZERO_OK;
}

static int64_t whole(const json_t *object, const char *path)
{
    return json_integer_value(zero_fact_at(object, path));
}

/* Instructions that a long program leaves out: `count` of them after number `after`. */
static void find_left_out(const json_t *schedule, int64_t *after, int64_t *count)
{
    bool is_long = json_object_get(schedule, "left_out") != NULL;
    *after = is_long ? whole(schedule, "left_out/after") : whole(schedule, "length");
    *count = whole(schedule, "left_out/count");
}

static zero_status check_schedule(const char *where, const json_t *schedule)
{
    const json_t *list = json_object_get(schedule, "instructions"), *peak_instruction;
    int64_t after, left_out, length = whole(schedule, "length"), most = 0, at = 0, value;
    int64_t peak = whole(schedule, "peak"), n = (int64_t)json_array_size(list);
    size_t n_classes = json_array_size(json_object_get(schedule, "classes")), i;
    json_t *instruction;
    find_left_out(schedule, &after, &left_out);
    ZERO_TRY(zero_json_whole(where, schedule, "peak", 1, length, &value));
    ZERO_TRY(check_classes(where, json_object_get(schedule, "classes")));
    if (n != length - left_out || after > n)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"instructions\": expected %" PRId64 ", found %" PRId64,
                         where, length - left_out, n);
    json_array_foreach((json_t *)list, i, instruction)
    {
        int64_t k = (int64_t)i, number = k < after ? k + 1 : k + 1 + left_out;
        ZERO_TRY(check_instruction(where, instruction, number, n_classes));
    }
    if (peak > after && peak <= after + left_out) {
        ZERO_TRY(zero_json_object(where, schedule, "peak_instruction", &peak_instruction));
        ZERO_TRY(check_instruction(where, peak_instruction, peak, n_classes));
    }
    json_t *program = zero_run_program(schedule);
    if (!program)
        return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for its program", where);
    json_array_foreach(program, i, instruction)
    {
        if (whole(instruction, "number") == peak) most = whole(instruction, "bytes");
    }
    json_array_foreach(program, i, instruction)
    {
        if (at == 0 && whole(instruction, "bytes") > most)
            at = whole(instruction, "number");
    }
    json_decref(program);
    if (at == 0) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_FORMAT,
        "%.500s: \"peak\": expected the instruction with the most bytes, found %" PRId64
        ", and more at %" PRId64,
        where, peak, at);
}

static json_t *describe_instruction(const json_t *schedule, const json_t *instruction,
                                    int64_t number)
{
    const json_t *names = json_object_get(schedule, "classes");
    int64_t live[ZERO_CLASSES] = {0}, bytes = 0;
    json_t *by_class = json_array();
    for (size_t i = 0; i < json_array_size(names); i++) {
        int64_t here =
            json_integer_value(json_array_get(json_object_get(instruction, "live"), i));
        live[find_class(names, i)] = here;
        bytes += here;
    }
    for (int c = 0; c < ZERO_CLASSES; c++)
        json_array_append_new(by_class, json_integer(live[c]));
    return json_pack("{s:I, s:O, s:O, s:o, s:I}", "number", (json_int_t)number, "op",
                     json_object_get(instruction, "op"), "name",
                     json_object_get(instruction, "name"), "live", by_class, "bytes",
                     (json_int_t)bytes);
}

json_t *zero_run_program(const json_t *schedule)
{
    const json_t *list = json_object_get(schedule, "instructions");
    int64_t after, left_out, peak = whole(schedule, "peak"),
                             n = (int64_t)json_array_size(list);
    if (!list) return NULL;
    find_left_out(schedule, &after, &left_out);
    json_t *program = json_array();
    for (int64_t i = 0; i <= n; i++) {
        if (i == after && peak > after && peak <= after + left_out)
            json_array_append_new(
                program,
                describe_instruction(schedule,
                                     json_object_get(schedule, "peak_instruction"), peak));
        if (i < n)
            json_array_append_new(
                program, describe_instruction(schedule, json_array_get(list, (size_t)i),
                                              i < after ? i + 1 : i + 1 + left_out));
    }
    return program;
}

static zero_status check_first(const char *where, const json_t *run)
{
    zero_type type;
    int64_t value;
    const json_t *schedule = json_object_get(run, "schedule");
    ZERO_TRY(zero_expect(where, run, run_rows, COUNT(run_rows)));
    ZERO_TRY(zero_json_whole(where, json_object_get(run, "nodes"), "count", 1,
                             whole(run, "ranks"), &value));
    ZERO_TRY(zero_json_whole(where, json_object_get(run, "tp"), "ranks", 1,
                             whole(run, "ranks"), &value));
    const char *dtype = json_string_value(json_object_get(run, "dtype"));
    if (!zero_type_find(dtype, &type))
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"dtype\": expected fp32, bf16 or fp16, found %s", where,
                         dtype);
    return schedule ? check_schedule(where, schedule) : ZERO_OK;
}

/* ---- the last line ---- */

/* Two objects with the same names. */
static zero_status check_pair(const char *where, const json_t *object, const char *planned,
                              const char *measured)
{
    const json_t *a = json_object_get(object, planned),
                 *b = json_object_get(object, measured);
    const char *key;
    json_t *value;
    if (json_object_size(a) != json_object_size(b))
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%.500s: expected the same classes in \"%s\" and \"%s\", found %zu and %zu",
            where, planned, measured, json_object_size(a), json_object_size(b));
    json_object_foreach((json_t *)a, key, value)
    {
        if (!json_object_get(b, key))
            return zero_fail(ZERO_ERR_FORMAT, "%.500s: \"%.60s\" is missing in \"%s\"",
                             where, key, measured);
    }
    return ZERO_OK;
}

/* A list of n values: whole numbers up to `most`, or with most < 0 numbers and null. */
static zero_status check_list(const char *where, const json_t *list, const char *name,
                              size_t n, int64_t most)
{
    if (!json_is_array(list))
        return zero_fail(ZERO_ERR_FORMAT, "%.500s: \"%s\": expected a list of %zu numbers",
                         where, name, n);
    if (json_array_size(list) != n)
        return zero_fail(ZERO_ERR_FORMAT, "%.500s: \"%s\": expected %zu, found %zu", where,
                         name, n, json_array_size(list));
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, i);
        double number = json_number_value(value);
        if (most >= 0 &&
            !(json_is_integer(value) && number >= 0.0 && json_integer_value(value) <= most))
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s: \"%s\": expected whole numbers from 0 to %" PRId64,
                             where, name, most);
        if (most < 0 && !json_is_null(value) && !(json_is_number(value) && number >= 0.0))
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s: \"%s\": expected numbers of at least 0 or null",
                             where, name);
    }
    return ZERO_OK;
}

static zero_status check_last(const char *where, const json_t *final, const json_t *run)
{
    ZERO_TRY(zero_expect(where, final, final_rows, COUNT(final_rows)));
    const json_t *memory = json_object_get(final, "memory");
    int64_t ranks = whole(final, "ranks");
    if (run && ranks != whole(run, "ranks"))
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"ranks\": expected %" PRId64
                         " as in the first line, found %" PRId64,
                         where, whole(run, "ranks"), ranks);
    ZERO_TRY(check_pair(where, memory, "planned_bytes", "measured_bytes"));
    ZERO_TRY(check_pair(where, memory, "host_planned_bytes", "host_measured_bytes"));
    ZERO_TRY(check_pair(where, json_object_get(final, "file"), "planned", "measured"));
    if (json_object_get(final, "peers")) {
        const json_t *peers = json_object_get(final, "peers");
        size_t n = (size_t)ranks;
        static const char *const names[] = {"planned", "sent"};
        ZERO_TRY(check_list(where, json_object_get(peers, "node_of"), "node_of", n,
                            (int64_t)n - 1));
        for (int k = 0; k < 2; k++) {
            const json_t *rows = json_object_get(peers, names[k]);
            if (json_array_size(rows) != n)
                return zero_fail(ZERO_ERR_FORMAT, "%.500s: \"%s\": expected %zu, found %zu",
                                 where, names[k], n, json_array_size(rows));
            for (size_t r = 0; r < n; r++)
                ZERO_TRY(check_list(where, json_array_get(rows, r), names[k], n,
                                    INT64_MAX / ZERO_RUN_PEERS));
        }
    }
    for (int t = 0; t < ZERO_RANK_TIMES; t++) {
        char inside[700];
        const char *name = zero_rank_time_name((zero_rank_time)t);
        const json_t *list = json_object_get(
            json_object_get(json_object_get(final, "rank_seconds"), name), "ranks");
        snprintf(inside, sizeof inside, "%.560s: \"%s\"", where, name);
        if (list) ZERO_TRY(check_list(inside, list, "ranks", (size_t)ranks, -1));
    }
    return ZERO_OK;
}

/* ---- all ---- */

zero_status zero_run_check_step(const char *where, const json_t *step)
{
    return zero_expect(where, step, step_rows, COUNT(step_rows));
}

zero_status zero_run_check(const zero_metrics_file *file)
{
    char where[600];
    snprintf(where, sizeof where, "%.500s, line %" PRId64, file->path, file->run_line);
    if (file->run) ZERO_TRY(check_first(where, file->run));
    snprintf(where, sizeof where, "%.500s, line %" PRId64, file->path, file->final_line);
    return file->final ? check_last(where, file->final, file->run) : ZERO_OK;
}
