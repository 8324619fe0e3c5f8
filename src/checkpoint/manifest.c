#include "checkpoint/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/type.h"
#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

bool zero_manifest_is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
    return true;
}

static zero_status take_plain(const char *path, const json_t *object, const char *key,
                              const char **text)
{
    ZERO_TRY(zero_json_text(path, object, key, text));
    if (zero_manifest_is_plain(*text)) return ZERO_OK;
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

zero_status zero_manifest_take_file(const char *path, const json_t *object,
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
    const int64_t most = INT64_C(1) << 62; /* a run counts on from there */
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
    size_t len = strlen(text); /* cut within a letter it would not be UTF-8 */
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

/* All options are texts. */
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
        if (!zero_manifest_is_plain(key))
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: \"options\" has a key with control characters", path);
        ZERO_TRY(take_plain(path, m->options, key, &text));
    }
    return ZERO_OK;
}

static zero_status take_kept(const char *path, const json_t *root, zero_manifest *m)
{
    const json_t *object;
    ZERO_TRY(zero_json_object(path, root, "kept", &object));
    ZERO_TRY(zero_hugging_face_check_kept(path, object));
    m->kept = json_deep_copy(object);
    return m->kept ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for what is kept");
}

static zero_status take_all(const char *path, const json_t *root, zero_manifest *m)
{
    int version = (int)json_integer_value(json_object_get(root, "version"));
    bool is_shared = version == 2 || json_object_get(root, "tp");
    /* The keys of version 1 come first, then "tp" of version 2, then "kept" of
     * version 3. */
    static const char *const keys[] = {
        "format",    "version",    "step",    "samples", "updates",    "skipped", "seed",
        "dtype",     "loss_scale", "digest",  "data",    "arithmetic", "gpt2",    "options",
        "tokenizer", "partition",  "tensors", "shards",  "checksum",   "tp",      "kept"};
    const int n = sizeof keys / sizeof keys[0];
    ZERO_TRY(zero_json_only(path, root, n - ZERO_MANIFEST_VERSION + version, keys));
    ZERO_TRY(take_numbers(path, root, m));
    const json_t *object;
    ZERO_TRY(take_gpt2(path, root, m));
    ZERO_TRY(take_options(path, root, m));
    m->has_tokenizer = json_object_get(root, "tokenizer") != NULL;
    if (m->has_tokenizer) {
        ZERO_TRY(zero_json_object(path, root, "tokenizer", &object));
        ZERO_TRY(zero_manifest_take_file(path, object, &m->tokenizer));
    }
    if (version == 3) ZERO_TRY(take_kept(path, root, m));
    ZERO_TRY(zero_manifest_take_table(path, root, is_shared, m));
    return zero_manifest_take_shards(path, root, m);
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
