/* The part of a manifest that says which tensors are in which shards. */
#include "checkpoint/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/range.h"
#include "io/json_input.h"

static zero_status take_tensor(const char *path, const json_t *value, int i, zero_tensor *t)
{
    const char *name = json_string_value(json_array_get(value, 0));
    const json_t *numbers[3];
    bool sound = json_array_size(value) == 4 && name && strlen(name) < sizeof t->name &&
                 zero_manifest_is_plain(name);
    for (size_t k = 0; k < 3; k++) {
        numbers[k] = json_array_get(value, k + 1);
        sound = sound && json_is_integer(numbers[k]);
    }
    json_int_t group = json_integer_value(numbers[2]);
    if (!sound || group < 0 || group > i)
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: tensor %d: expected [name, rows, columns, group], a name of at "
            "most %zu bytes without control characters, and no group above %d",
            path, i, sizeof t->name - 1, i);
    *t = (zero_tensor){.rows = json_integer_value(numbers[0]),
                       .cols = json_integer_value(numbers[1]),
                       .group = (int)group};
    snprintf(t->name, sizeof t->name, "%s", name);
    return ZERO_OK;
}

static zero_status take_layout(const char *path, const json_t *root,
                               zero_partition_scheme *scheme, int *n_ranks)
{
    static const char *const keys[] = {"scheme", "ranks"};
    const json_t *object;
    const char *name;
    int64_t ranks;
    ZERO_TRY(zero_json_object(path, root, "partition", &object));
    ZERO_TRY(zero_json_only(path, object, 2, keys));
    ZERO_TRY(zero_json_text(path, object, "scheme", &name));
    ZERO_TRY(zero_json_whole(path, object, "ranks", 1, ZERO_SHARDS_MOST, &ranks));
    *n_ranks = (int)ranks;
    *scheme = ZERO_PARTITION_SLICE;
    if (strcmp(name, "slice") == 0) return ZERO_OK;
    *scheme = ZERO_PARTITION_OWNER;
    if (strcmp(name, "owner") == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: \"scheme\": expected slice or owner, found '%.40s'", path, name);
}

static zero_status fill_table(const char *path, const json_t *root, const json_t *list,
                              zero_tensor *tensors, zero_manifest *m)
{
    zero_partition_scheme scheme;
    int n_ranks, n = (int)json_array_size(list);
    for (int i = 0; i < n; i++)
        ZERO_TRY(take_tensor(path, json_array_get(list, (size_t)i), i, &tensors[i]));
    ZERO_TRY(take_layout(path, root, &scheme, &n_ranks));
    return zero_state_table_init(&m->table, n, tensors, scheme, n_ranks);
}

zero_status zero_manifest_take_table(const char *path, const json_t *root, zero_manifest *m)
{
    const json_t *list;
    ZERO_TRY(zero_json_array(path, root, "tensors", &list));
    size_t n = json_array_size(list);
    if (n < 1 || n > INT32_MAX)
        return zero_fail(ZERO_ERR_FORMAT, "%s: \"tensors\": expected at least one", path);
    zero_tensor *tensors = calloc(n, sizeof *tensors);
    if (!tensors) return zero_fail(ZERO_ERR_NOMEM, "no memory for %zu tensors", n);
    zero_status st = fill_table(path, root, list, tensors, m);
    free(tensors);
    return st;
}

/* The layout says how many bytes a shard has at least. */
static zero_status check_shard_bytes(const char *path, const zero_manifest *m, int rank)
{
    uint64_t elements = 0;
    for (int g = 0; g < m->table.n_groups; g++)
        elements +=
            (uint64_t)zero_range_len(zero_partition_shard(&m->table.partitions[g], rank));
    uint64_t least = ZERO_STATES * sizeof(float) * elements;
    if (elements <= UINT64_MAX / (ZERO_STATES * sizeof(float)) &&
        m->shards[rank].bytes >= least)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: shard %d has %" PRIu64 " bytes, but the %" PRIu64
                     " parameters that its rank owned take %" PRIu64 " and a header",
                     path, rank, m->shards[rank].bytes, elements, least);
}

zero_status zero_manifest_take_shards(const char *path, const json_t *root,
                                      zero_manifest *m)
{
    const json_t *list;
    ZERO_TRY(zero_json_array(path, root, "shards", &list));
    size_t n = json_array_size(list);
    if (n != (size_t)m->table.n_ranks)
        return zero_fail(ZERO_ERR_FORMAT, "%s: %zu shards, but \"ranks\" is %d", path, n,
                         m->table.n_ranks);
    m->shards = calloc(n, sizeof *m->shards);
    if (!m->shards) return zero_fail(ZERO_ERR_NOMEM, "no memory for %zu shards", n);
    for (int i = 0; i < m->table.n_ranks; i++) {
        ZERO_TRY(
            zero_manifest_take_file(path, json_array_get(list, (size_t)i), &m->shards[i]));
        ZERO_TRY(check_shard_bytes(path, m, i));
    }
    return ZERO_OK;
}
