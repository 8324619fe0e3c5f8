/* Numbers of all ranks, which the last line has: bytes from rank to rank, and seconds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "io/json_input.h"
#include "pages/fields.h"
#include "pages/record_parts.h"

static zero_status no_memory(const char *where)
{
    return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for the numbers of its ranks",
                     where);
}

/* A list of n values. */
static zero_status read_list(const char *where, const json_t *list, const char *name,
                             size_t n)
{
    if (json_is_array(list) && json_array_size(list) == n) return ZERO_OK;
    if (!json_is_array(list))
        return zero_fail(ZERO_ERR_FORMAT, "%.500s: \"%s\": expected a list of %zu numbers",
                         where, name, n);
    return zero_fail(ZERO_ERR_FORMAT, "%.500s: \"%s\": expected %zu, found %zu", where,
                     name, n, json_array_size(list));
}

static zero_status read_whole(const char *where, const json_t *list, size_t i,
                              const char *name, int64_t most, int64_t *value)
{
    const json_t *found = json_array_get(list, i);
    *value = json_integer_value(found);
    if (json_is_integer(found) && *value >= 0 && *value <= most) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: \"%s\": expected whole numbers from 0 to %lld", where, name,
                     (long long)most);
}

/* ---- bytes from rank to rank ---- */

static zero_status read_matrix(const zero_record *r, const char *where, const json_t *peers,
                               const char *name, int64_t **to)
{
    const json_t *rows;
    size_t n = (size_t)r->n_peers;
    ZERO_TRY(zero_json_array(where, peers, name, &rows));
    ZERO_TRY(read_list(where, rows, name, n));
    *to = calloc(n * n, sizeof **to);
    if (!*to) return no_memory(where);
    for (size_t i = 0; i < n * n; i++) {
        const json_t *row = json_array_get(rows, i / n);
        if (i % n == 0) ZERO_TRY(read_list(where, row, name, n));
        ZERO_TRY(
            read_whole(where, row, i % n, name, INT64_MAX / ZERO_RECORD_PEERS, &(*to)[i]));
    }
    return ZERO_OK;
}

static zero_status read_nodes(zero_record *r, const char *where, const json_t *peers)
{
    const json_t *nodes;
    ZERO_TRY(zero_json_array(where, peers, "node_of", &nodes));
    ZERO_TRY(read_list(where, nodes, "node_of", (size_t)r->n_peers));
    r->node_of = calloc((size_t)r->n_peers, sizeof *r->node_of);
    if (!r->node_of) return no_memory(where);
    for (int i = 0; i < r->n_peers; i++) {
        int64_t node;
        ZERO_TRY(read_whole(where, nodes, (size_t)i, "node_of", r->n_peers - 1, &node));
        r->node_of[i] = (int)node;
    }
    return ZERO_OK;
}

static zero_status read_peers(zero_record *r, const char *where)
{
    const json_t *peers;
    int64_t ranks;
    if (!json_object_get(r->file.final, "peers")) return ZERO_OK;
    ZERO_TRY(zero_json_object(where, r->file.final, "peers", &peers));
    ZERO_TRY(zero_json_whole(where, r->file.final, "ranks", 1, ZERO_RECORD_PEERS, &ranks));
    r->n_peers = (int)ranks;
    ZERO_TRY(read_nodes(r, where, peers));
    ZERO_TRY(read_matrix(r, where, peers, "planned", &r->planned_peer));
    return read_matrix(r, where, peers, "sent", &r->peer);
}

/* ---- seconds of the ranks ---- */

/* Lists have all ranks, or none of a run with very many. */
static zero_status read_each(zero_record *r, const char *where, const json_t *entry,
                             zero_record_seconds *to)
{
    const json_t *list = json_object_get(entry, "ranks");
    int64_t ranks;
    if (!list) return ZERO_OK;
    ZERO_TRY(zero_json_whole(where, r->file.final, "ranks", 1, ZERO_RECORD_RANKS, &ranks));
    ZERO_TRY(read_list(where, list, "ranks", (size_t)ranks));
    to->ranks = calloc((size_t)ranks, sizeof *to->ranks);
    if (!to->ranks) return no_memory(where);
    for (int64_t i = 0; i < ranks; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        to->ranks[i] = json_is_null(value) ? NAN : json_number_value(value);
        if (!(json_is_null(value) || json_is_number(value)) || to->ranks[i] < 0.0)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s: \"ranks\": expected numbers of at least 0 or null",
                             where);
    }
    r->n_rank_seconds = (int)ranks;
    return ZERO_OK;
}

static zero_status read_spent(zero_record *r, const char *where, const json_t *all,
                              zero_record_spent spent)
{
    zero_record_seconds *to = &r->rank_seconds[spent];
    const char *name = zero_record_spent_name(spent);
    zero_record_where inside;
    const json_t *entry;
    snprintf(inside.text, sizeof inside.text, "%.560s: \"%s\"", where, name);
    ZERO_TRY(zero_json_object(where, all, name, &entry));
    ZERO_TRY(zero_field_real_or_null(inside.text, entry, "least", 0.0, &to->least));
    ZERO_TRY(zero_field_real_or_null(inside.text, entry, "mean", 0.0, &to->mean));
    ZERO_TRY(zero_field_real_or_null(inside.text, entry, "most", 0.0, &to->most));
    return read_each(r, inside.text, entry, to);
}

static zero_status read_seconds(zero_record *r, const char *where)
{
    const json_t *all;
    if (!json_object_get(r->file.final, "rank_seconds")) return ZERO_OK;
    ZERO_TRY(zero_json_object(where, r->file.final, "rank_seconds", &all));
    for (int i = 0; i < ZERO_SPENT; i++)
        ZERO_TRY(read_spent(r, where, all, (zero_record_spent)i));
    r->has_rank_seconds = true;
    return ZERO_OK;
}

zero_status zero_record_read_ranks(zero_record *record, const char *where)
{
    ZERO_TRY(read_peers(record, where));
    return read_seconds(record, where);
}
