#include "checkpoint/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/type.h"
#include "io/json_input.h"

/* What is shown to people must not steer their terminals. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
    return true;
}

static zero_status take_plain(const char *path, const json_t *object, const char *key,
                              const char **text)
{
    ZERO_TRY(zero_json_text(path, object, key, text));
    if (is_plain(*text)) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT, "%s: \"%s\" has control characters in it", path, key);
}

static zero_status take_checksum(const char *path, const json_t *object, const char *key,
                                 char hex[ZERO_CHECKSUM])
{
    const char *text;
    ZERO_TRY(zero_json_text(path, object, key, &text));
    if (strlen(text) != ZERO_CHECKSUM - 1 ||
        strspn(text, "0123456789abcdef") != ZERO_CHECKSUM - 1)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"%s\": expected 32 hexadecimal digits, found '%.40s'", path,
                         key, text);
    memcpy(hex, text, ZERO_CHECKSUM);
    return ZERO_OK;
}

static zero_status take_file(const char *path, const json_t *object,
                             zero_manifest_file *file)
{
    static const char *const keys[] = {"bytes", "checksum"};
    int64_t bytes;
    ZERO_TRY(zero_json_only(path, object, 2, keys));
    ZERO_TRY(zero_json_whole(path, object, "bytes", 0, INT64_MAX, &bytes));
    file->bytes = (uint64_t)bytes;
    return take_checksum(path, object, "checksum", file->checksum);
}

/* What is of a later version may be anything, so this comes before all else. */
static zero_status check_format(const char *path, const json_t *root)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!format || strcmp(format, ZERO_MANIFEST_FORMAT) != 0)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: not the manifest of a checkpoint: expected \"format\": "
                         "\"" ZERO_MANIFEST_FORMAT "\"",
                         path);
    int64_t version;
    ZERO_TRY(zero_json_whole(path, root, "version", 1, INT64_MAX, &version));
    if (version <= ZERO_MANIFEST_VERSION) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: a checkpoint of version %" PRId64
                     ", and this program reads versions up to %d: use a newer zero",
                     path, version, ZERO_MANIFEST_VERSION);
}

static zero_status check_tail(const char *path, const unsigned char *bytes, size_t len)
{
    const size_t tail_len = ZERO_MANIFEST_TAIL - 1;
    char tail[ZERO_MANIFEST_TAIL];
    if (len > tail_len) {
        zero_manifest_tail(bytes, len - tail_len, tail);
        if (memcmp(bytes + len - tail_len, tail, tail_len) == 0) return ZERO_OK;
    }
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: was changed after it was written: its last line is not the "
                     "checksum of the %zu bytes before it",
                     path, len > tail_len ? len - tail_len : 0);
}

static zero_status take_loss_scale(const char *path, const json_t *root,
                                   zero_loss_scale *scale)
{
    static const char *const keys[] = {"scale", "clean_steps", "hysteresis"};
    const json_t *object;
    const char *dtype;
    double value;
    int64_t hysteresis;
    ZERO_TRY(zero_json_text(path, root, "dtype", &dtype));
    if (!zero_type_find(dtype, &scale->type))
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"dtype\": expected fp32, bf16 or fp16, found '%.40s'", path,
                         dtype);
    ZERO_TRY(zero_json_object(path, root, "loss_scale", &object));
    ZERO_TRY(zero_json_only(path, object, 3, keys));
    ZERO_TRY(zero_json_real(path, object, "scale", &value));
    ZERO_TRY(zero_json_whole(path, object, "clean_steps", 0, ZERO_LOSS_SCALE_WINDOW,
                             &scale->clean_steps));
    ZERO_TRY(zero_json_whole(path, object, "hysteresis", 1, ZERO_LOSS_SCALE_HYSTERESIS,
                             &hysteresis));
    scale->scale = (float)value;
    scale->hysteresis = (int)hysteresis;
    if (value >= (double)ZERO_LOSS_SCALE_LEAST && value <= (double)ZERO_LOSS_SCALE_MOST)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT, "%s: \"scale\": expected %g to %g, found %g", path,
                     (double)ZERO_LOSS_SCALE_LEAST, (double)ZERO_LOSS_SCALE_MOST, value);
}

static zero_status take_numbers(const char *path, const json_t *root, zero_manifest *m)
{
    const char *text;
    const int64_t most = INT64_C(1) << 62; /* so that a run can count on from there */
    ZERO_TRY(zero_json_whole(path, root, "step", 0, most, &m->step));
    ZERO_TRY(zero_json_whole(path, root, "samples", 0, most, &m->samples));
    ZERO_TRY(zero_json_whole(path, root, "skipped", 0, most, &m->skipped));
    ZERO_TRY(zero_json_whole(path, root, "updates", 0, most, &m->updates));
    ZERO_TRY(zero_json_whole(path, root, "seed", INT64_MIN, INT64_MAX, &m->seed));
    ZERO_TRY(take_loss_scale(path, root, &m->loss_scale));
    ZERO_TRY(take_checksum(path, root, "digest", m->digest));
    ZERO_TRY(zero_json_text(path, root, "data", &text));
    if (text[0] != '\0') ZERO_TRY(take_checksum(path, root, "data", m->data));
    ZERO_TRY(take_plain(path, root, "arithmetic", &text));
    size_t len = strlen(text); /* cut, it could end within a letter, and be no UTF-8 */
    if (len >= sizeof m->arithmetic)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"arithmetic\": expected at most %zu bytes, found %zu", path,
                         sizeof m->arithmetic - 1, len);
    memcpy(m->arithmetic, text, len + 1);
    return ZERO_OK;
}

static zero_status take_gpt2(const char *path, const json_t *root, zero_manifest *m)
{
    static const char *const keys[] = {"layers", "hidden", "heads", "seq", "vocab"};
    int64_t *const fields[] = {&m->gpt2.layers, &m->gpt2.hidden, &m->gpt2.heads,
                               &m->gpt2.seq, &m->gpt2.vocab};
    const json_t *object;
    m->has_gpt2 = json_object_get(root, "gpt2") != NULL;
    if (!m->has_gpt2) return ZERO_OK;
    ZERO_TRY(zero_json_object(path, root, "gpt2", &object));
    ZERO_TRY(zero_json_only(path, object, 5, keys));
    for (int i = 0; i < 5; i++)
        ZERO_TRY(zero_json_whole(path, object, keys[i], 1, INT32_MAX, fields[i]));
    m->gpt2.seed = m->seed;
    return ZERO_OK;
}

/* Texts by their names. */
static zero_status take_options(const char *path, const json_t *root, zero_manifest *m)
{
    const json_t *object;
    const char *key, *text;
    json_t *value;
    if (!json_object_get(root, "options")) return ZERO_OK;
    ZERO_TRY(zero_json_object(path, root, "options", &object));
    m->options = json_deep_copy(object);
    if (!m->options) return zero_fail(ZERO_ERR_NOMEM, "no memory for options");
    json_object_foreach(m->options, key, value)
    {
        if (!is_plain(key))
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: \"options\" has a key with control characters", path);
        ZERO_TRY(take_plain(path, m->options, key, &text));
    }
    return ZERO_OK;
}

static zero_status take_choices(const char *path, const json_t *root, zero_manifest *m)
{
    const json_t *object;
    ZERO_TRY(take_gpt2(path, root, m));
    ZERO_TRY(take_options(path, root, m));
    m->has_tokenizer = json_object_get(root, "tokenizer") != NULL;
    if (!m->has_tokenizer) return ZERO_OK;
    ZERO_TRY(zero_json_object(path, root, "tokenizer", &object));
    return take_file(path, object, &m->tokenizer);
}

static zero_status take_tensor(const char *path, const json_t *value, int i, zero_tensor *t)
{
    const char *name = json_string_value(json_array_get(value, 0));
    const json_t *numbers[3];
    bool sound = json_array_size(value) == 4 && name && strlen(name) < sizeof t->name &&
                 is_plain(name);
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

static zero_status take_table(const char *path, const json_t *root, zero_manifest *m)
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

/* How long a shard's data are follows from the layout. */
static zero_status check_length(const char *path, const zero_manifest *m, int rank)
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

static zero_status take_shards(const char *path, const json_t *root, zero_manifest *m)
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
        ZERO_TRY(take_file(path, json_array_get(list, (size_t)i), &m->shards[i]));
        ZERO_TRY(check_length(path, m, i));
    }
    return ZERO_OK;
}

static zero_status take_all(const char *path, const json_t *root, zero_manifest *m)
{
    static const char *const keys[] = {
        "format",    "version",    "step",    "samples", "updates",    "skipped", "seed",
        "dtype",     "loss_scale", "digest",  "data",    "arithmetic", "gpt2",    "options",
        "tokenizer", "partition",  "tensors", "shards",  "checksum"};
    ZERO_TRY(zero_json_only(path, root, sizeof keys / sizeof keys[0], keys));
    ZERO_TRY(take_numbers(path, root, m));
    ZERO_TRY(take_choices(path, root, m));
    ZERO_TRY(take_table(path, root, m));
    return take_shards(path, root, m);
}

zero_status zero_manifest_parse(const char *path, const void *bytes, size_t len,
                                zero_manifest *m)
{
    json_t *root;
    zero_manifest made = {0};
    ZERO_TRY(zero_json_parse(path, bytes, len, &root));
    zero_status st = check_format(path, root);
    if (st == ZERO_OK) st = check_tail(path, bytes, len);
    if (st == ZERO_OK) st = take_all(path, root, &made);
    json_decref(root);
    if (st == ZERO_OK)
        *m = made;
    else
        zero_manifest_destroy(&made);
    return st;
}

void zero_manifest_destroy(zero_manifest *m)
{
    zero_state_table_destroy(&m->table);
    free(m->shards);
    json_decref(m->options);
    *m = (zero_manifest){0};
}
