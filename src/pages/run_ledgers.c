/* The ledgers of a run, planned and measured, picked from its last line. */
#include "base/number.h"
#include "facts/facts.h"
#include "pages/run_check.h"

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
