#include "pages/run_check.h"

#include "base/fail.h"
#include "engine/ranks.h"
#include "facts/facts.h"
#include "pages/expect.h"
#include "pages/forms.h"
#include "pages/run.h"

#define MOST_BYTES (INT64_MAX / (2 * ZERO_CLASSES)) /* so that sums do not overflow */
#define MOST_STEPS 1000000000                       /* instructions of a program */

/* clang-format off */
#define INSTRUCTION "peak_instruction?,instructions[]"
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
    {"schedule?/" INSTRUCTION "/name", ZERO_EXPECT_TEXT, 0, 63, NULL},
    {"schedule?/" INSTRUCTION "/op", ZERO_EXPECT_TEXT, 0, 23, NULL},
    {"schedule?/" INSTRUCTION "/bytes?", ZERO_EXPECT_WHOLE, 0, MOST_BYTES, NULL},
    {"schedule?/" INSTRUCTION "/live", ZERO_EXPECT_LIST, 0, 0, NULL},
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

/* The first line of what a section of check.form prints says what is wrong. Takes over the
 * tree. */
static zero_status check_by_form(const char *where, const char *section, json_t *tree)
{
    ZERO_FREED char *text = NULL;
    zero_status st = zero_allocated(tree, "%.500s: no memory to check it", where);
    if (st == ZERO_OK) st = zero_text_of_form("check", section, tree, &text);
    json_decref(tree);
    if (st == ZERO_OK && *text)
        st = zero_fail(ZERO_ERR_FORMAT, "%.500s: %.*s", where, (int)strcspn(text, "\n"),
                       text);
    return st;
}

/* ---- the program ---- */

static int64_t whole(const json_t *object, const char *path)
{
    return json_integer_value(zero_fact_at(object, path));
}

/* Bytes of all classes, in their order; the schedule has those that it uses. */
static json_t *describe_instruction(const json_t *schedule, const json_t *instruction,
                                    int64_t number)
{
    const json_t *names = json_object_get(schedule, "classes");
    int64_t bytes = 0;
    json_t *by_class = json_array();
    for (int c = 0; c < ZERO_CLASSES; c++) {
        const char *class = zero_class_name((zero_class)c);
        int64_t live = 0;
        for (size_t i = 0; i < json_array_size(names); i++)
            if (strcmp(class, json_string_value(json_array_get(names, i))) == 0)
                live = json_integer_value(
                    json_array_get(json_object_get(instruction, "live"), i));
        json_array_append_new(by_class, json_integer(live));
        bytes += live;
    }
    return json_pack("{s:I, s:O, s:O, s:o, s:I}", "number", number, "op",
                     json_object_get(instruction, "op"), "name",
                     json_object_get(instruction, "name"), "live", by_class, "bytes",
                     bytes);
}

json_t *zero_run_program(const json_t *schedule)
{
    const json_t *list = json_object_get(schedule, "instructions");
    const bool is_long = json_object_get(schedule, "left_out") != NULL;
    int64_t peak = whole(schedule, "peak"), n = (int64_t)json_array_size(list);
    /* Instructions that a long program leaves out, after this one. */
    int64_t left_out = whole(schedule, "left_out/count"),
            after = is_long ? whole(schedule, "left_out/after") : n;
    if (!list) return NULL;
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

/* ---- all ---- */

static zero_status check_first(const char *where, json_t *run)
{
    json_t *known = json_array();
    const json_t *schedule = json_object_get(run, "schedule");
    for (int c = 0; c < ZERO_CLASSES; c++)
        json_array_append_new(known, json_string(zero_class_name((zero_class)c)));
    json_t *tree = json_pack("{s:o, s:I}", "known", known, "most", MOST_BYTES);
    json_object_update(tree, run);
    zero_status st = zero_expect(where, run, run_rows, ZERO_COUNT(run_rows));
    if (st == ZERO_OK)
        st = check_by_form(where, "first", tree);
    else
        json_decref(tree);
    if (st != ZERO_OK || !schedule) return st;
    return check_by_form(where, "peak",
                         json_pack("{s:o, s:O}", "program", zero_run_program(schedule),
                                   "peak", json_object_get(schedule, "peak")));
}

zero_status zero_run_check_step(const char *where, const json_t *step)
{
    return zero_expect(where, step, step_rows, ZERO_COUNT(step_rows));
}

zero_status zero_run_check(const zero_metrics_file *file)
{
    char where[600];
    snprintf(where, sizeof where, "%.500s, line %" PRId64, file->path, file->run_line);
    if (file->run) ZERO_TRY(check_first(where, (json_t *)file->run));
    if (!file->final) return ZERO_OK;
    snprintf(where, sizeof where, "%.500s, line %" PRId64, file->path, file->final_line);
    ZERO_TRY(zero_expect(where, file->final, final_rows, ZERO_COUNT(final_rows)));
    json_t *tree = json_copy((json_t *)file->final);
    if (file->run) json_object_set(tree, "run", (json_t *)file->run);
    return check_by_form(where, "last", tree);
}
