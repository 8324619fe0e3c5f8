/* The part of a manifest that says which tensors are in which shards. */
#include "checkpoint/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/range.h"
#include "io/json_input.h"

static const char *const cuts[] = {
    [ZERO_CUT_NONE] = "none", [ZERO_CUT_ROWS] = "rows", [ZERO_CUT_COLS] = "cols"};
enum { CUTS = sizeof cuts / sizeof cuts[0] };

const char *zero_manifest_cut_name(zero_cut cut)
{
    return cuts[cut];
}

/* The last two members of a shared model's tensor. Only columns have several parts. */
static zero_status take_cut(const char *path, const json_t *value, int i, zero_tensor *t)
{
    const char *name = json_string_value(json_array_get(value, 4));
    const json_t *parts = json_array_get(value, 5);
    json_int_t n = json_integer_value(parts);
    int cut = 0;
    while (cut < CUTS && name && strcmp(cuts[cut], name) != 0) cut++;
    int64_t most = cut == ZERO_CUT_COLS ? t->cols : 1;
    if (!name || cut == CUTS || !json_is_integer(parts) || n < 1 || n > most ||
        n > INT32_MAX)
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: tensor %d: expected [name, rows, columns, group, cut, parts], "
            "a cut none, rows or cols, and 1 part, or as many as divide cols",
            path, i);
    t->cut = (zero_cut)cut;
    t->cut_parts = (int)n;
    return ZERO_OK;
}

static zero_status take_tensor(const char *path, const json_t *value, int i, bool is_shared,
                               zero_tensor *t)
{
    const char *name = json_string_value(json_array_get(value, 0));
    const json_t *numbers[3];
    bool sound = json_array_size(value) == (is_shared ? 6 : 4) && name &&
                 strlen(name) < sizeof t->name && zero_manifest_is_plain(name);
    for (size_t k = 0; k < 3; k++) {
        numbers[k] = json_array_get(value, k + 1);
        sound = sound && json_is_integer(numbers[k]);
    }
    json_int_t group = json_integer_value(numbers[2]);
    if (!sound || group < 0 || group > i)
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: tensor %d: expected [name, rows, columns, group%s], a name of at "
            "most %zu bytes without control characters, and no group above %d",
            path, i, is_shared ? ", cut, parts" : "", sizeof t->name - 1, i);
    *t = (zero_tensor){.rows = json_integer_value(numbers[0]),
                       .cols = json_integer_value(numbers[1]),
                       .group = (int)group};
    snprintf(t->name, sizeof t->name, "%s", name);
    return is_shared ? take_cut(path, value, i, t) : ZERO_OK;
}

static zero_status take_partition(const char *path, const json_t *root,
                                  zero_state_layout *layout)
{
    static const char *const keys[] = {"scheme", "ranks"};
    const json_t *object;
    const char *name;
    int64_t ranks;
    ZERO_TRY(zero_json_object(path, root, "partition", &object));
    ZERO_TRY(zero_json_only(path, object, 2, keys));
    ZERO_TRY(zero_json_text(path, object, "scheme", &name));
    ZERO_TRY(zero_json_whole(path, object, "ranks", 1, ZERO_SHARDS_MOST, &ranks));
    layout->n_ranks = (int)ranks;
    layout->scheme = ZERO_PARTITION_SLICE;
    if (strcmp(name, "slice") == 0) return ZERO_OK;
    layout->scheme = ZERO_PARTITION_OWNER;
    if (strcmp(name, "owner") == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: \"scheme\": expected slice or owner, found '%.40s'", path, name);
}

static zero_status fill_table(const char *path, const json_t *root, bool is_shared,
                              zero_tensor *tensors, zero_manifest *m)
{
    zero_state_layout layout = {.tp = 1, .slices = 1};
    const json_t *list = json_object_get(root, "tensors");
    int n = (int)json_array_size(list);
    for (int i = 0; i < n; i++)
        ZERO_TRY(
            take_tensor(path, json_array_get(list, (size_t)i), i, is_shared, &tensors[i]));
    ZERO_TRY(take_partition(path, root, &layout));
    if (is_shared) {
        /* One slice would be a model that is not shared, which is version 1. */
        static const char *const keys[] = {"size", "slices"};
        const json_t *object;
        int64_t tp, slices;
        ZERO_TRY(zero_json_object(path, root, "tp", &object));
        ZERO_TRY(zero_json_only(path, object, 2, keys));
        ZERO_TRY(zero_json_whole(path, object, "size", 1, ZERO_TP_MOST, &tp));
        ZERO_TRY(zero_json_whole(path, object, "slices", 2, ZERO_TP_MOST, &slices));
        layout.tp = (int)tp;
        layout.slices = (int)slices;
    }
    zero_status st = zero_state_table_init(&m->table, n, tensors, &layout);
    return st == ZERO_ERR_FORMAT ? zero_fail(st, "%s: %s", path, zero_last_error()) : st;
}

zero_status zero_manifest_take_table(const char *path, const json_t *root, bool is_shared,
                                     zero_manifest *m)
{
    const json_t *list;
    ZERO_TRY(zero_json_array(path, root, "tensors", &list));
    size_t n = json_array_size(list);
    if (n < 1 || n > INT32_MAX)
        return zero_fail(ZERO_ERR_FORMAT, "%s: \"tensors\": expected at least one", path);
    zero_tensor *tensors = calloc(n, sizeof *tensors);
    if (!tensors) return zero_fail(ZERO_ERR_NOMEM, "no memory for %zu tensors", n);
    zero_status st = fill_table(path, root, is_shared, tensors, m);
    free(tensors);
    return st;
}

/* The layout says how many bytes a shard has at least. */
static zero_status check_shard_bytes(const char *path, const zero_manifest *m, int rank,
                                     uint64_t elements)
{
    uint64_t least = ZERO_STATES * sizeof(float) * elements;
    if (elements <= UINT64_MAX / (ZERO_STATES * sizeof(float)) &&
        m->shards[rank].bytes >= least)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: shard %d has %" PRIu64 " bytes, but the %" PRIu64
                     " parameters that its rank owned take %" PRIu64 " and a header",
                     path, rank, m->shards[rank].bytes, elements, least);
}

static zero_status add_elements(const zero_state_table *t, int p, uint64_t *elements)
{
    zero_state_local local;
    ZERO_TRY(zero_state_local_init(&local, t, p));
    zero_status st = zero_state_add_elements(t, &local, elements);
    zero_state_local_destroy(&local);
    return st;
}

static zero_status check_bytes_of(const char *path, const zero_manifest *m, int p)
{
    const zero_state_layout *l = &m->table.layout;
    int n = l->n_ranks / l->tp;
    uint64_t *elements = calloc((size_t)n, sizeof *elements);
    zero_status st = elements ? add_elements(&m->table, p, elements)
                              : zero_fail(ZERO_ERR_NOMEM, "no memory for %d shards", n);
    for (int d = 0; st == ZERO_OK && d < n; d++)
        st = check_shard_bytes(path, m, d * l->tp + p, elements[d]);
    free(elements);
    return st;
}

zero_status zero_manifest_take_shards(const char *path, const json_t *root,
                                      zero_manifest *m)
{
    const json_t *list;
    ZERO_TRY(zero_json_array(path, root, "shards", &list));
    size_t n = json_array_size(list);
    const zero_state_layout *layout = &m->table.layout;
    if (n != (size_t)layout->n_ranks)
        return zero_fail(ZERO_ERR_FORMAT, "%s: %zu shards, but \"ranks\" is %d", path, n,
                         layout->n_ranks);
    m->shards = calloc(n, sizeof *m->shards);
    if (!m->shards) return zero_fail(ZERO_ERR_NOMEM, "no memory for %zu shards", n);
    for (int i = 0; i < layout->n_ranks; i++)
        ZERO_TRY(
            zero_manifest_take_file(path, json_array_get(list, (size_t)i), &m->shards[i]));
    for (int p = 0; p < layout->tp; p++) ZERO_TRY(check_bytes_of(path, m, p));
    return ZERO_OK;
}
