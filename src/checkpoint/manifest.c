#include "checkpoint/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/range.h"
#include "base/type.h"
#include "checkpoint/hugging_face.h"
#include "io/json_input.h"
#include "nn/shape.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

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

/* A whole number, and the limits of others than our own. */
typedef struct {
    const char *key;
    int64_t least, most, *value;
} whole;

static zero_status take_wholes(const char *path, const json_t *object, int n,
                               const whole *rows)
{
    for (int i = 0; i < n; i++)
        ZERO_TRY(zero_json_whole(path, object, rows[i].key, rows[i].least, rows[i].most,
                                 rows[i].value));
    return ZERO_OK;
}

/* A member that is an object of these numbers and, if it is not NULL, of one other
 * member. */
static zero_status take_object(const char *path, const json_t *root, const char *key,
                               const char *other, int n, const whole *rows,
                               const json_t **object)
{
    const char *keys[8];
    for (int i = 0; i < n; i++) keys[i] = rows[i].key;
    keys[n] = other;
    ZERO_TRY(zero_json_object(path, root, key, object));
    ZERO_TRY(zero_json_only(path, *object, n + (other != NULL), keys));
    return take_wholes(path, *object, n, rows);
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

/* A later version may differ in anything, so this is checked before all else. */
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

static zero_status take_numbers(const char *path, const json_t *root, zero_manifest *m)
{
    const char *text;
    const int64_t most = INT64_C(1) << 62; /* a run counts on from there */
    const whole rows[] = {{"step", 0, most, &m->step},
                          {"samples", 0, most, &m->samples},
                          {"skipped", 0, most, &m->skipped},
                          {"updates", 0, most, &m->updates},
                          {"seed", INT64_MIN, INT64_MAX, &m->seed}};
    ZERO_TRY(take_wholes(path, root, COUNT(rows), rows));
    zero_loss_scale *scale = &m->loss_scale;
    const json_t *object;
    const char *dtype;
    double value;
    int64_t hysteresis;
    const whole of_scale[] = {
        {"clean_steps", 0, ZERO_LOSS_SCALE_WINDOW, &scale->clean_steps},
        {"hysteresis", 1, ZERO_LOSS_SCALE_HYSTERESIS, &hysteresis}};
    ZERO_TRY(zero_json_text(path, root, "dtype", &dtype));
    if (!zero_type_find(dtype, &scale->type))
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"dtype\": expected fp32, bf16 or fp16, found '%.40s'", path,
                         dtype);
    ZERO_TRY(take_object(path, root, "loss_scale", "scale", 2, of_scale, &object));
    ZERO_TRY(zero_json_real(path, object, "scale", &value));
    scale->scale = (float)value;
    scale->hysteresis = (int)hysteresis;
    if (value < (double)ZERO_LOSS_SCALE_LEAST || value > (double)ZERO_LOSS_SCALE_MOST)
        return zero_fail(ZERO_ERR_FORMAT, "%s: \"scale\": expected %g to %g, found %g",
                         path, (double)ZERO_LOSS_SCALE_LEAST, (double)ZERO_LOSS_SCALE_MOST,
                         value);
    ZERO_TRY(take_checksum(path, root, "digest", m->digest));
    ZERO_TRY(zero_json_text(path, root, "data", &text));
    if (text[0] != '\0') ZERO_TRY(take_checksum(path, root, "data", m->data));
    ZERO_TRY(take_plain(path, root, "arithmetic", &text));
    size_t len = strlen(text); /* cut within a letter it would not be UTF-8 */
    if (len >= sizeof m->arithmetic)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"arithmetic\": expected at most %zu bytes, found %zu", path,
                         sizeof m->arithmetic - 1, len);
    memcpy(m->arithmetic, text, len + 1);
    return ZERO_OK;
}

/* All options are texts. */
static zero_status take_options(const char *path, const json_t *root, zero_manifest *m)
{
    const json_t *object;
    const char *key, *text;
    json_t *value;
    if (!json_object_get(root, "options")) return ZERO_OK;
    ZERO_TRY(zero_json_object(path, root, "options", &object));
    m->options = json_deep_copy(object);
    ZERO_TRY(zero_allocated(m->options, "no memory for options"));
    json_object_foreach(m->options, key, value)
    {
        if (!is_plain(key))
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: \"options\" has a key with control characters", path);
        ZERO_TRY(take_plain(path, m->options, key, &text));
    }
    return ZERO_OK;
}

static zero_status take_tensor(const char *path, const json_t *value, int i, bool is_shared,
                               zero_tensor *t)
{
    const char *name = json_string_value(json_array_get(value, 0));
    const json_t *numbers[3];
    bool sound = json_array_size(value) == (is_shared ? 6 : 4) && name &&
                 strlen(name) < sizeof t->name && is_plain(name);
    for (size_t k = 0; k < 3; k++) {
        numbers[k] = json_array_get(value, k + 1);
        sound = sound && json_is_integer(numbers[k]);
    }
    json_int_t group = json_integer_value(numbers[2]);
    if (!sound || group < 0 || group > i)
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: tensor %d: expected [name, rows, columns, group%s], a name of at most %zu "
            "bytes without control characters, and no group above %d",
            path, i, is_shared ? ", cut, parts" : "", sizeof t->name - 1, i);
    *t = (zero_tensor){.rows = json_integer_value(numbers[0]),
                       .cols = json_integer_value(numbers[1]),
                       .group = (int)group};
    snprintf(t->name, sizeof t->name, "%s", name);
    if (!is_shared) return ZERO_OK;
    /* Only columns have several parts. */
    const char *cut_name = json_string_value(json_array_get(value, 4));
    const json_t *parts = json_array_get(value, 5);
    json_int_t n = json_integer_value(parts);
    int cut = 0;
    while (cut < ZERO_MANIFEST_CUTS && cut_name &&
           strcmp(zero_manifest_cuts[cut], cut_name) != 0)
        cut++;
    int64_t most = cut == ZERO_CUT_COLS ? t->cols : 1;
    if (!cut_name || cut == ZERO_MANIFEST_CUTS || !json_is_integer(parts) || n < 1 ||
        n > most || n > INT32_MAX)
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: tensor %d: expected [name, rows, columns, group, cut, parts], a cut none, "
            "rows or cols, and 1 part, or as many as divide cols",
            path, i);
    t->cut = (zero_cut)cut;
    t->cut_parts = (int)n;
    return ZERO_OK;
}

/* One slice would be a model that is not shared, which is version 1. */
static zero_status take_layout(const char *path, const json_t *root, bool is_shared,
                               zero_state_layout *layout)
{
    const json_t *object;
    const char *name;
    int64_t ranks, tp = 1, slices = 1;
    const whole of_partition[] = {{"ranks", 1, ZERO_SHARDS_MOST, &ranks}};
    const whole of_tp[] = {{"size", 1, ZERO_TP_MOST, &tp},
                           {"slices", 2, ZERO_TP_MOST, &slices}};
    ZERO_TRY(take_object(path, root, "partition", "scheme", 1, of_partition, &object));
    ZERO_TRY(zero_json_text(path, object, "scheme", &name));
    const bool is_slice = strcmp(name, "slice") == 0;
    if (!is_slice && strcmp(name, "owner") != 0)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"scheme\": expected slice or owner, found '%.40s'", path,
                         name);
    if (is_shared) ZERO_TRY(take_object(path, root, "tp", NULL, 2, of_tp, &object));
    *layout = (zero_state_layout){is_slice ? ZERO_PARTITION_SLICE : ZERO_PARTITION_OWNER,
                                  (int)ranks, (int)tp, (int)slices};
    return ZERO_OK;
}

static zero_status fill_table(const char *path, const json_t *root, bool is_shared,
                              zero_tensor *tensors, zero_manifest *m)
{
    zero_state_layout layout;
    const json_t *list = json_object_get(root, "tensors");
    int n = (int)json_array_size(list);
    for (int i = 0; i < n; i++)
        ZERO_TRY(
            take_tensor(path, json_array_get(list, (size_t)i), i, is_shared, &tensors[i]));
    ZERO_TRY(take_layout(path, root, is_shared, &layout));
    zero_status st = zero_state_table_init(&m->table, n, tensors, &layout);
    return st == ZERO_ERR_FORMAT ? zero_fail(st, "%s: %s", path, zero_last_error()) : st;
}

static zero_status take_table(const char *path, const json_t *root, bool is_shared,
                              zero_manifest *m)
{
    const json_t *list;
    ZERO_TRY(zero_json_array(path, root, "tensors", &list));
    size_t n = json_array_size(list);
    if (n < 1 || n > INT32_MAX)
        return zero_fail(ZERO_ERR_FORMAT, "%s: \"tensors\": expected at least one", path);
    zero_tensor *tensors;
    ZERO_TRY(zero_new(&tensors, n, "tensors"));
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

static zero_status check_bytes_of(const char *path, const zero_manifest *m, int p)
{
    const zero_state_layout *l = &m->table.layout;
    int n = l->n_ranks / l->tp;
    zero_state_local local = {0};
    uint64_t *elements;
    zero_status st = zero_new(&elements, n, "shards");
    if (st == ZERO_OK) st = zero_state_local_init(&local, &m->table, p);
    if (st == ZERO_OK) st = zero_state_add_elements(&m->table, &local, elements);
    for (int d = 0; st == ZERO_OK && d < n; d++)
        st = check_shard_bytes(path, m, d * l->tp + p, elements[d]);
    zero_state_local_destroy(&local);
    free(elements);
    return st;
}

static zero_status take_shards(const char *path, const json_t *root, zero_manifest *m)
{
    const json_t *list;
    ZERO_TRY(zero_json_array(path, root, "shards", &list));
    size_t n = json_array_size(list);
    const zero_state_layout *layout = &m->table.layout;
    if (n != (size_t)layout->n_ranks)
        return zero_fail(ZERO_ERR_FORMAT, "%s: %zu shards, but \"ranks\" is %d", path, n,
                         layout->n_ranks);
    ZERO_TRY(zero_new(&m->shards, n, "shards"));
    for (int i = 0; i < layout->n_ranks; i++)
        ZERO_TRY(take_file(path, json_array_get(list, (size_t)i), &m->shards[i]));
    for (int p = 0; p < layout->tp; p++) ZERO_TRY(check_bytes_of(path, m, p));
    return ZERO_OK;
}
static zero_status take_all(const char *path, const json_t *root, zero_manifest *m)
{
    int version = (int)json_integer_value(json_object_get(root, "version"));
    bool is_shared = version == 2 || json_object_get(root, "tp");
    /* The keys of version 1 come first, then "tp" of version 2, then "kept" of
     * version 3, and "shape" of version 4 in place of "gpt2". */
    static const char *const keys[] = {
        "format",   "version", "step",       "samples",   "updates", "skipped",
        "seed",     "dtype",   "loss_scale", "digest",    "data",    "arithmetic",
        "gpt2",     "options", "tokenizer",  "partition", "tensors", "shards",
        "checksum", "tp",      "kept",       "shape"};
    ZERO_TRY(
        zero_json_only(path, root, COUNT(keys) - ZERO_MANIFEST_VERSION + version, keys));
    ZERO_TRY(take_numbers(path, root, m));
    const json_t *object;
    const char *shape = version == 4 ? "shape" : "gpt2";
    m->has_shape = json_object_get(root, shape) != NULL;
    if (m->has_shape) {
        ZERO_TRY(zero_json_object(path, root, shape, &object));
        ZERO_TRY(zero_shape_read(path, object, true, &m->shape));
        m->shape.seed = m->seed;
    }
    ZERO_TRY(take_options(path, root, m));
    m->has_tokenizer = json_object_get(root, "tokenizer") != NULL;
    if (m->has_tokenizer) {
        ZERO_TRY(zero_json_object(path, root, "tokenizer", &object));
        ZERO_TRY(take_file(path, object, &m->tokenizer));
    }
    if (version == 3 || json_object_get(root, "kept")) {
        ZERO_TRY(zero_json_object(path, root, "kept", &object));
        ZERO_TRY(zero_hugging_face_check_kept(path, object));
        m->kept = json_deep_copy(object);
        ZERO_TRY(zero_allocated(m->kept, "no memory for what is kept"));
    }
    ZERO_TRY(take_table(path, root, is_shared, m));
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
    json_decref(m->kept);
    *m = (zero_manifest){0};
}
