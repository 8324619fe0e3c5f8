/* zero_safetensors_write_header(): from tensors to the header of their file. */
#include "io/safetensors.h"

#include "base/number.h"
#include "io/json_input.h"

static zero_status add_member(json_t *object, const char *key, json_t *value)
{
    char shown[ZERO_JSON_SHOWN];
    zero_json_shown(key, shown);
    bool twice = json_object_get(object, key) != NULL;
    if (!twice && value && json_object_set_new(object, key, value) == 0) return ZERO_OK;
    if (twice) {
        json_decref(value);
        return zero_fail(ZERO_ERR_INVALID,
                         "two tensors or texts of a file have the name \"%s\"", shown);
    }
    return zero_fail(ZERO_ERR_NOMEM,
                     "no memory for \"%s\" in a safetensors header, or it is not UTF-8",
                     shown);
}

static json_t *describe(const zero_safetensors_entry *entry)
{
    json_t *shape = json_array();
    for (int i = 0; i < entry->n_dims; i++)
        if (json_array_append_new(shape, json_integer(entry->dims[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", entry->type, "shape", shape,
                     "data_offsets", (json_int_t)entry->begin, (json_int_t)entry->end);
}

zero_status zero_safetensors_write_header(int n, zero_safetensors_entry *entries,
                                          const json_t *texts, zero_bytes *header)
{
    json_auto_t *root = json_object();
    uint64_t at = 0;
    size_t begin = header->len;
    ZERO_TRY(zero_allocated(root, "no memory for a safetensors header"));
    if (texts)
        ZERO_TRY(add_member(root, ZERO_SAFETENSORS_METADATA, json_incref((json_t *)texts)));
    for (int i = 0; i < n; i++) {
        /* begin and end become offsets in the data. */
        zero_safetensors_entry *entry = &entries[i];
        uint64_t bytes = 0;
        bool many = entry->n_dims < 0 || entry->n_dims > ZERO_SAFETENSORS_DIMS;
        const char *wrong =
            many ? "expected 0 to 8 dimensions" : zero_safetensors_measure(entry, &bytes);
        entry->begin = at;
        if (!wrong && (__builtin_add_overflow(at, bytes, &at) || at > INT64_MAX))
            wrong = "expected at most 2^63 - 1 bytes in all";
        ZERO_INVALID_IF(wrong || zero_same_text(entry->name, ZERO_SAFETENSORS_METADATA),
                        "tensor \"%s\": %s", ZERO_SHOWN_SHORT(entry->name),
                        wrong ? wrong : "the format keeps this name for texts");
        entry->end = at;
        ZERO_TRY(add_member(root, entries[i].name, describe(&entries[i])));
    }
    /* Padded, so that the data begins at a multiple of 8. */
    size_t len = json_dumpb(root, NULL, 0, JSON_COMPACT);
    size_t padded = zero_round_up_size(len, 8);
    ZERO_FAIL_IF(len == 0 || padded > ZERO_SAFETENSORS_HEADER,
                 len == 0 ? ZERO_ERR_NOMEM : ZERO_ERR_INVALID,
                 "a safetensors header takes %zu bytes: expected 1 to %d", len,
                 ZERO_SAFETENSORS_HEADER);
    ZERO_TRY(zero_bytes_reserve(header, ZERO_SAFETENSORS_PREFIX + padded));
    unsigned char *to = header->bytes + header->len;
    for (int i = 0; i < ZERO_SAFETENSORS_PREFIX; i++)
        to[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    memset(to + ZERO_SAFETENSORS_PREFIX, ' ', padded);
    json_dumpb(root, (char *)to + ZERO_SAFETENSORS_PREFIX, len, JSON_COMPACT);
    header->len += ZERO_SAFETENSORS_PREFIX + padded;
    uint64_t data = header->len - begin;
    for (int i = 0; i < n; i++) {
        entries[i].begin += data;
        entries[i].end += data;
    }
    return ZERO_OK;
}
