#include "pages/run_check.h"

#include "pages/expect.h"
#include "pages/forms.h"
#include "pages/run.h"

/* So that sums do not overflow; expect.form says it, too. */
#define MOST_BYTES INT64_C(329406144173384850)
_Static_assert(MOST_BYTES <= INT64_MAX / (2 * ZERO_CLASSES), "sums of classes overflow");

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
            if (zero_same_text(class, json_string_value(json_array_get(names, i))))
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
    zero_status st = zero_expect(where, run, "first line of a run");
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
    return zero_expect(where, step, "step of a run");
}

zero_status zero_run_check(const zero_metrics_file *file)
{
    char where[600];
    zero_print(where, "%.500s, line %" PRId64, file->path, file->run_line);
    if (file->run) ZERO_TRY(check_first(where, (json_t *)file->run));
    if (!file->final) return ZERO_OK;
    zero_print(where, "%.500s, line %" PRId64, file->path, file->final_line);
    ZERO_TRY(zero_expect(where, file->final, "last line of a run"));
    json_t *tree = json_copy((json_t *)file->final);
    if (file->run) json_object_set(tree, "run", (json_t *)file->run);
    return check_by_form(where, "last", tree);
}

/* ---- the ledgers, planned and measured, picked from the last line ---- */

json_t *zero_run_pick(const json_t *entry, const char *spec, const char *key,
                      const char *name, const char *second_key, const char *second)
{
    json_t *names = json_pack("{s:s, s:s}", key, name, second_key, second);
    const zero_scope outer = {.node = entry}, scope = {.node = names, .outer = &outer};
    json_t *picked = zero_facts_pick(&scope, spec);
    json_decref(names);
    return picked;
}

/* Control messages are planned for the programs alone; all others are as planned. Where
 * nothing was sent nothing was hidden, whatever the bookkeeping of collectives took. */
static const char traffic_spec[] =
    "collective; planned_bytes_sent; bytes_sent = or(programs_bytes_sent, bytes_sent); "
    "planned_bytes_received; bytes_received = or(programs_bytes_received, bytes_received); "
    "planned_messages_sent; messages_sent = or(programs_messages_sent, messages_sent); "
    "bytes_sent_inside_nodes = inside_nodes/bytes_sent; bytes_sent_across_nodes = "
    "across_nodes/bytes_sent; seconds; exposed_seconds; hidden_share = "
    "or(programs_bytes_sent, bytes_sent) + or(programs_bytes_received, bytes_received) > 0 "
    "? 1 - exposed_seconds / seconds : 0 / 0; all_bytes_sent = bytes_sent; equal? = "
    "planned_bytes_sent == or(programs_bytes_sent, bytes_sent)";

static const char profile_spec[] =
    "op; unit; count; seconds; exchange_seconds; least_seconds; most_seconds";

static const char class_spec[] =
    "class = key; planned_bytes = item; measured_bytes = at(final/memory/measured_bytes, "
    "key); equal? = item == at(final/memory/measured_bytes, key)";
static const char host_spec[] = "class = key; planned_bytes = item; measured_bytes = "
                                "at(final/memory/host_measured_bytes, key); equal? = item "
                                "== at(final/memory/host_measured_bytes, key)";
static const char file_spec[] =
    "class = key; planned_bytes_read = bytes_read; bytes_read = at(at(final/file/measured, "
    "key), \"bytes_read\"); planned_bytes_written = bytes_written; bytes_written = "
    "at(at(final/file/measured, key), \"bytes_written\")";

void zero_run_add_ledgers(json_t *tree)
{
    static const char *const names[] = {"reduce", "all_reduce", "gather",
                                        "join",   "collect",    "control"};
    json_t *traffic = json_array(), *profile = json_array(), *entry, *part;
    json_t *final = json_incref(json_object_get(tree, "final"));
    const char *op, *unit;
    json_object_set_new(tree, "memory",
                        zero_facts_each(tree, "final/memory/planned_bytes", class_spec));
    if (json_object_size(zero_fact_at(tree, "final/memory/host_planned_bytes")) > 0)
        json_object_set_new(
            tree, "host_memory",
            zero_facts_each(tree, "final/memory/host_planned_bytes", host_spec));
    if (json_object_size(zero_fact_at(tree, "final/file/planned")) > 0)
        json_object_set_new(tree, "file",
                            zero_facts_each(tree, "final/file/planned", file_spec));
    for (int i = 0; i < ZERO_COUNT(names); i++) {
        entry = json_object_get(json_object_get(final, "communication"), names[i]);
        if (entry)
            json_array_append_new(traffic, zero_run_pick(entry, traffic_spec, "collective",
                                                         names[i], "", ""));
    }
    json_object_foreach(json_object_get(final, "profile"), op, entry)
    {
        json_array_append_new(profile,
                              zero_run_pick(entry, profile_spec, "op", op, "unit", ""));
        json_object_foreach(json_object_get(entry, "units"), unit, part)
            json_array_append_new(
                profile, zero_run_pick(part, profile_spec, "op", op, "unit", unit));
    }
    json_object_set_new(tree, "communication", traffic);
    json_object_set_new(tree, "profile", profile);
    json_object_del(tree, "final"); /* it comes last */
    json_object_set_new(tree, "final", final);
}
