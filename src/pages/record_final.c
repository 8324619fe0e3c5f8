/* The last line of a run: its ledgers, and the profile of its steps. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "io/json_input.h"
#include "pages/fields.h"
#include "pages/record_parts.h"

static zero_status no_memory(const char *where)
{
    return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for the last line", where);
}

static zero_status read_bytes(const char *where, const json_t *object, const char *key,
                              int64_t *value)
{
    return zero_json_whole(where, object, key, 0, INT64_MAX, value);
}

/* ---- memory ---- */

/* Two objects with the same keys. */
static zero_status read_pair(const char *where, const json_t *object,
                             const char *planned_key, const char *measured_key,
                             const json_t **planned, const json_t **measured)
{
    ZERO_TRY(zero_json_object(where, object, planned_key, planned));
    ZERO_TRY(zero_json_object(where, object, measured_key, measured));
    if (json_object_size(*planned) == json_object_size(*measured)) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: expected the same classes in \"%s\" and \"%s\", found %zu "
                     "and %zu",
                     where, planned_key, measured_key, json_object_size(*planned),
                     json_object_size(*measured));
}

static zero_status read_classes(const char *where, const json_t *planned,
                                const json_t *measured, zero_record_class **classes, int *n)
{
    const char *key;
    json_t *value;
    *classes = calloc(json_object_size(planned) + 1, sizeof **classes);
    if (!*classes) return no_memory(where);
    json_object_foreach((json_t *)planned, key, value)
    {
        zero_record_class *c = &(*classes)[*n];
        ZERO_TRY(zero_field_name(where, key, c->name, sizeof c->name));
        ZERO_TRY(read_bytes(where, planned, key, &c->planned));
        ZERO_TRY(read_bytes(where, measured, key, &c->measured));
        (*n)++;
    }
    return ZERO_OK;
}

static zero_status read_host(zero_record *r, const char *where, const json_t *memory)
{
    const json_t *planned, *measured;
    if (!json_object_get(memory, "host_planned_bytes")) return ZERO_OK;
    ZERO_TRY(read_pair(where, memory, "host_planned_bytes", "host_measured_bytes", &planned,
                       &measured));
    ZERO_TRY(read_bytes(where, memory, "host_planned_peak_bytes", &r->planned_host_peak));
    ZERO_TRY(read_bytes(where, memory, "host_measured_peak_bytes", &r->host_peak));
    return read_classes(where, planned, measured, &r->host, &r->n_host);
}

static zero_status read_memory(zero_record *r, const char *where)
{
    const json_t *memory, *planned, *measured;
    ZERO_TRY(zero_json_object(where, r->file.final, "memory", &memory));
    ZERO_TRY(
        read_pair(where, memory, "planned_bytes", "measured_bytes", &planned, &measured));
    ZERO_TRY(read_bytes(where, memory, "planned_peak_bytes", &r->planned_peak));
    ZERO_TRY(read_bytes(where, memory, "measured_peak_bytes", &r->measured_peak));
    ZERO_TRY(read_classes(where, planned, measured, &r->classes, &r->n_classes));
    return read_host(r, where, memory);
}

/* ---- the scratch file ---- */

static zero_status read_moved(const char *where, const json_t *entries, const char *key,
                              int64_t *read, int64_t *written)
{
    const json_t *entry;
    ZERO_TRY(zero_json_object(where, entries, key, &entry));
    ZERO_TRY(read_bytes(where, entry, "bytes_read", read));
    return read_bytes(where, entry, "bytes_written", written);
}

static zero_status read_file(zero_record *r, const char *where)
{
    const json_t *file, *planned, *measured;
    const char *key;
    json_t *value;
    if (!json_object_get(r->file.final, "file")) return ZERO_OK;
    ZERO_TRY(zero_json_object(where, r->file.final, "file", &file));
    ZERO_TRY(read_pair(where, file, "planned", "measured", &planned, &measured));
    r->moved = calloc(json_object_size(planned) + 1, sizeof *r->moved);
    if (!r->moved) return no_memory(where);
    json_object_foreach((json_t *)planned, key, value)
    {
        zero_record_moved *m = &r->moved[r->n_moved];
        ZERO_TRY(zero_field_name(where, key, m->name, sizeof m->name));
        ZERO_TRY(read_moved(where, planned, key, &m->planned_read, &m->planned_written));
        ZERO_TRY(read_moved(where, measured, key, &m->read, &m->written));
        r->n_moved++;
    }
    return ZERO_OK;
}

/* ---- communication ---- */

static zero_status read_planned(const char *where, const json_t *entry,
                                zero_record_traffic *t)
{
    ZERO_TRY(read_bytes(where, entry, "planned_bytes_sent", &t->planned_sent));
    ZERO_TRY(read_bytes(where, entry, "planned_bytes_received", &t->planned_received));
    return read_bytes(where, entry, "planned_messages_sent", &t->planned_messages);
}

/* Control messages are planned for the programs alone; all others are as planned. */
static zero_status read_measured(const char *where, const json_t *entry,
                                 zero_record_traffic *t)
{
    bool has_programs = json_object_get(entry, "programs_bytes_sent") != NULL;
    ZERO_TRY(read_bytes(where, entry, "bytes_sent", &t->all_sent));
    ZERO_TRY(read_bytes(where, entry, has_programs ? "programs_bytes_sent" : "bytes_sent",
                        &t->sent));
    ZERO_TRY(read_bytes(where, entry,
                        has_programs ? "programs_bytes_received" : "bytes_received",
                        &t->received));
    ZERO_TRY(read_bytes(where, entry,
                        has_programs ? "programs_messages_sent" : "messages_sent",
                        &t->messages));
    ZERO_TRY(zero_field_real_or_null(where, entry, "seconds", 0.0, &t->seconds));
    return zero_field_real_or_null(where, entry, "exposed_seconds", 0.0, &t->exposed);
}

static zero_status read_reach(const char *where, const json_t *entry, const char *key,
                              int64_t *sent)
{
    const json_t *reach;
    ZERO_TRY(zero_json_object(where, entry, key, &reach));
    return read_bytes(where, reach, "bytes_sent", sent);
}

static zero_status read_traffic(const char *where, const json_t *ledger, const char *name,
                                zero_record_traffic *t)
{
    const json_t *entry;
    zero_record_where inside;
    snprintf(inside.text, sizeof inside.text, "%.560s: \"%s\"", where, name);
    snprintf(t->name, sizeof t->name, "%s", name);
    ZERO_TRY(zero_json_object(where, ledger, name, &entry));
    ZERO_TRY(read_planned(inside.text, entry, t));
    ZERO_TRY(read_measured(inside.text, entry, t));
    ZERO_TRY(read_reach(inside.text, entry, "inside_nodes", &t->sent_inside));
    return read_reach(inside.text, entry, "across_nodes", &t->sent_across);
}

static zero_status read_communication(zero_record *r, const char *where)
{
    static const char *const names[] = {"reduce", "all_reduce", "gather",
                                        "join",   "collect",    "control"};
    const size_t n = sizeof names / sizeof names[0];
    const json_t *ledger;
    ZERO_TRY(zero_json_object(where, r->file.final, "communication", &ledger));
    r->traffic = calloc(n, sizeof *r->traffic);
    if (!r->traffic) return no_memory(where);
    for (size_t i = 0; i < n; i++) {
        bool is_always = i == 0 || i == 2 || i == n - 1;
        if (!is_always && !json_object_get(ledger, names[i])) continue;
        ZERO_TRY(read_traffic(where, ledger, names[i], &r->traffic[r->n_traffic]));
        r->n_traffic++;
    }
    return ZERO_OK;
}

/* ---- the profile ---- */

static size_t count_rows(const json_t *profile)
{
    const char *key;
    json_t *entry;
    size_t n = 0;
    json_object_foreach((json_t *)profile, key, entry) n +=
        1 + json_object_size(json_object_get(entry, "units"));
    return n;
}

static zero_status read_row(const char *where, const json_t *entry, const char *op,
                            const char *unit, zero_record_profile *p)
{
    zero_record_where inside;
    snprintf(inside.text, sizeof inside.text, "%.560s: \"%.30s\"", where, op);
    ZERO_TRY(zero_field_name(where, op, p->op, sizeof p->op));
    ZERO_TRY(zero_field_name(inside.text, unit, p->unit, sizeof p->unit));
    ZERO_TRY(read_bytes(inside.text, entry, "count", &p->count));
    ZERO_TRY(zero_field_real_or_null(inside.text, entry, "seconds", 0.0, &p->seconds));
    ZERO_TRY(
        zero_field_real_or_null(inside.text, entry, "exchange_seconds", 0.0, &p->exchange));
    ZERO_TRY(zero_field_real_or_null(inside.text, entry, "least_seconds", 0.0, &p->least));
    return zero_field_real_or_null(inside.text, entry, "most_seconds", 0.0, &p->most);
}

static zero_status read_units(zero_record *r, const char *where, const char *op,
                              const json_t *entry)
{
    const json_t *units;
    const char *unit;
    json_t *value;
    if (!json_object_get(entry, "units")) return ZERO_OK;
    ZERO_TRY(zero_json_object(where, entry, "units", &units));
    json_object_foreach((json_t *)units, unit, value)
    {
        ZERO_TRY(read_row(where, value, op, unit, &r->profile[r->n_profile]));
        r->n_profile++;
    }
    return ZERO_OK;
}

static zero_status read_profile(zero_record *record, const char *where,
                                const json_t *profile)
{
    const char *op;
    json_t *entry;
    record->profile = calloc(count_rows(profile) + 1, sizeof *record->profile);
    if (!record->profile) return no_memory(where);
    json_object_foreach((json_t *)profile, op, entry)
    {
        ZERO_TRY(read_row(where, entry, op, "", &record->profile[record->n_profile]));
        record->n_profile++;
        ZERO_TRY(read_units(record, where, op, entry));
    }
    return ZERO_OK;
}

/* ---- the line ---- */

static zero_status check_ranks(const zero_record *r, const char *where)
{
    int64_t ranks;
    ZERO_TRY(zero_json_whole(where, r->file.final, "ranks", 1, ZERO_RECORD_RANKS, &ranks));
    if (!r->has_run || ranks == r->ranks) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: \"ranks\": expected %d as in the first line, found %" PRId64,
                     where, r->ranks, ranks);
}

zero_status zero_record_read_final(zero_record *record)
{
    zero_record_where where;
    const json_t *profile;
    bool is_final;
    zero_record_line_name(record, record->file.final_line, &where);
    if (!record->file.final) return ZERO_OK;
    ZERO_TRY(zero_json_flag(where.text, record->file.final, "final", &is_final));
    ZERO_TRY(zero_field_text(where.text, record->file.final, "digest", record->digest,
                             sizeof record->digest));
    ZERO_TRY(check_ranks(record, where.text));
    ZERO_TRY(read_memory(record, where.text));
    ZERO_TRY(read_communication(record, where.text));
    ZERO_TRY(read_file(record, where.text));
    ZERO_TRY(zero_json_object(where.text, record->file.final, "profile", &profile));
    ZERO_TRY(read_profile(record, where.text, profile));
    return zero_record_read_ranks(record, where.text);
}
