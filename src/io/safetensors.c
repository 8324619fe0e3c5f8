#include "io/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "io/json_input.h"

#define PREFIX   8 /* bytes that hold N */
#define METADATA "__metadata__"
/* Kept in each tensor's object: its place in entries[]. No file can have it there, for a
 * tensor has three keys and no other. */
#define INDEX "#"

static const struct {
    const char *name;
    int bytes;
} types[] = {{"F32", 4},     {"F16", 2},    {"BF16", 2}, {"F64", 8}, {"I8", 1},
             {"I16", 2},     {"I32", 4},    {"I64", 8},  {"U8", 1},  {"U16", 2},
             {"U32", 4},     {"U64", 8},    {"BOOL", 1}, {"C64", 8}, {"F8_E4M3", 1},
             {"F8_E5M2", 1}, {"F8_E8M0", 1}};

static uint64_t little_endian(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = PREFIX - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

/* Sets n and *bytes. Returns what is wrong, or NULL. */
static const char *measure(zero_safetensors_entry *entry, uint64_t *bytes)
{
    int item = 0;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(entry->type, types[i].name) == 0) item = types[i].bytes;
    if (item == 0)
        return "expected one of the types F32, F16, BF16, F64, I8 to I64, U8 to U64, BOOL, "
               "C64, F8_E4M3, F8_E5M2, F8_E8M0";
    entry->n = 1;
    for (int i = 0; i < entry->n_dims; i++) {
        if (entry->dims[i] < 0) return "expected dimensions of 0 or more";
        if (__builtin_mul_overflow(entry->n, entry->dims[i], &entry->n))
            return "expected at most 2^63 - 1 elements";
    }
    if (__builtin_mul_overflow((uint64_t)entry->n, (uint64_t)item, bytes))
        return "expected at most 2^64 - 1 bytes";
    return NULL;
}

/* ---- reading ---- */

static zero_status check_length(const char *path, uint64_t file_bytes, uint64_t n)
{
    if (n < 2 || n > ZERO_SAFETENSORS_HEADER)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: at byte 0: expected the length of a safetensors header, 2 to "
                         "%d bytes, found %" PRIu64,
                         path, ZERO_SAFETENSORS_HEADER, n);
    if (n > file_bytes - PREFIX)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: at byte 0: the header is said to have %" PRIu64
                         " bytes, but only %" PRIu64 " follow in this file",
                         path, n, file_bytes - PREFIX);
    return ZERO_OK;
}

/* What fstat() said may be over: a file that shrinks meanwhile ends early. */
static zero_status read_at(int fd, const char *path, size_t at, size_t len,
                           unsigned char *bytes)
{
    for (size_t have = 0; have < len;) {
        ssize_t n = pread(fd, bytes + have, len - have, (off_t)(at + have));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return zero_fail(ZERO_ERR_IO, "%s: cannot be read at byte %zu: %s", path,
                             at + have, strerror(errno));
        if (n == 0)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: expected %zu bytes of a safetensors header, but the file "
                             "now ends after %zu",
                             path, at + len, at + have);
        have += (size_t)n;
    }
    return ZERO_OK;
}

zero_status zero_safetensors_read_header(int fd, const char *path, uint64_t file_bytes,
                                         zero_bytes *header)
{
    unsigned char prefix[PREFIX];
    if (file_bytes < PREFIX)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected a safetensors file, which begins with %d bytes of "
                         "length, found %" PRIu64 " bytes in all",
                         path, PREFIX, file_bytes);
    ZERO_TRY(read_at(fd, path, 0, PREFIX, prefix));
    uint64_t n = little_endian(prefix);
    ZERO_TRY(check_length(path, file_bytes, n));
    ZERO_TRY(zero_bytes_reserve(header, PREFIX + (size_t)n));
    unsigned char *to = header->bytes + header->len;
    memcpy(to, prefix, PREFIX);
    ZERO_TRY(read_at(fd, path, PREFIX, (size_t)n, to + PREFIX));
    header->len += PREFIX + (size_t)n;
    return ZERO_OK;
}

static zero_status check_header(const char *path, uint64_t file_bytes,
                                const zero_bytes *header)
{
    if (header->len < PREFIX || file_bytes < header->len)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected a safetensors header of at least %d bytes within a "
                         "file of %" PRIu64 ", found %zu",
                         path, PREFIX, file_bytes, header->len);
    uint64_t n = little_endian(header->bytes);
    ZERO_TRY(check_length(path, file_bytes, n));
    if (n != header->len - PREFIX)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: at byte 0: the header is said to have %" PRIu64
                         " bytes, but it has %zu",
                         path, n, header->len - PREFIX);
    if (header->bytes[PREFIX] != '{')
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: at byte %d: expected the { of a safetensors header, found the "
            "byte 0x%02x",
            path, PREFIX, header->bytes[PREFIX]);
    size_t last = header->len - 1;
    while (header->bytes[last] == ' ') last--;
    if (header->bytes[last] == '}') return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: at byte %zu: expected the } of the header and only spaces behind "
                     "it, found the byte 0x%02x",
                     path, last, header->bytes[last]);
}

static zero_status take_shape(const char *where, const json_t *tensor,
                              zero_safetensors_entry *entry)
{
    const json_t *shape = NULL;
    ZERO_TRY(zero_json_array(where, tensor, "shape", &shape));
    size_t n = json_array_size(shape);
    if (n > ZERO_SAFETENSORS_DIMS)
        return zero_fail(ZERO_ERR_FORMAT, "%s: expected at most %d dimensions, found %zu",
                         where, ZERO_SAFETENSORS_DIMS, n);
    entry->n_dims = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim))
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: expected whole numbers in \"shape\", but [%zu] is none",
                             where, i);
        entry->dims[i] = json_integer_value(dim);
    }
    return ZERO_OK;
}

/* From offsets in the data to bytes of the file. */
static zero_status take_offsets(const char *where, const json_t *tensor, uint64_t data,
                                uint64_t file_bytes, zero_safetensors_entry *entry)
{
    const json_t *offsets = NULL;
    ZERO_TRY(zero_json_array(where, tensor, "data_offsets", &offsets));
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected two whole numbers in \"data_offsets\"", where);
    int64_t from = json_integer_value(begin), to = json_integer_value(end);
    if (from < 0 || to < from || (uint64_t)to > file_bytes - data)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"data_offsets\": expected 0 <= begin <= end <= %" PRIu64
                         " (the bytes behind the header), found [%" PRId64 ", %" PRId64 "]",
                         where, file_bytes - data, from, to);
    entry->begin = data + (uint64_t)from;
    entry->end = data + (uint64_t)to;
    return ZERO_OK;
}

static zero_status take_tensor(const char *where, const json_t *tensor, uint64_t data,
                               uint64_t file_bytes, zero_safetensors_entry *entry)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    uint64_t bytes = 0;
    char shown[ZERO_JSON_SHOWN];
    ZERO_TRY(zero_json_text(where, tensor, "dtype", &entry->type));
    ZERO_TRY(take_shape(where, tensor, entry));
    ZERO_TRY(take_offsets(where, tensor, data, file_bytes, entry));
    ZERO_TRY(zero_json_only(where, tensor, 3, keys));
    const char *wrong = measure(entry, &bytes);
    if (wrong)
        return zero_fail(ZERO_ERR_FORMAT, "%s, dtype \"%s\": %s", where,
                         zero_json_shown(entry->type, shown), wrong);
    if (bytes != entry->end - entry->begin)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: %" PRId64 " elements of %s make %" PRIu64
                         " bytes, but \"data_offsets\" leave %" PRIu64,
                         where, entry->n, entry->type, bytes, entry->end - entry->begin);
    return ZERO_OK;
}

static zero_status check_metadata(const char *path, json_t *metadata)
{
    const char *key;
    json_t *value;
    char shown[ZERO_JSON_SHOWN];
    if (!json_is_object(metadata))
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"" METADATA "\": expected an object of texts", path);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: \"" METADATA
                             "\": expected a text as \"%s\", found another "
                             "type",
                             path, zero_json_shown(key, shown));
    }
    return ZERO_OK;
}

static zero_status take_member(const char *path, const char *name, json_t *value,
                               uint64_t data, uint64_t file_bytes, zero_safetensors *table)
{
    char shown[ZERO_JSON_SHOWN], where[600];
    if (strcmp(name, METADATA) == 0) return check_metadata(path, value);
    snprintf(where, sizeof where, "%.480s: tensor \"%s\"", path,
             zero_json_shown(name, shown));
    if (!json_is_object(value))
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected an object of dtype, shape and data_offsets", where);
    zero_safetensors_entry entry = {.name = name};
    ZERO_TRY(take_tensor(where, value, data, file_bytes, &entry));
    table->entries[table->n++] = entry;
    return ZERO_OK;
}

/* Empty tensors share their offset with the next one, and come before it. */
static int by_place(const void *a, const void *b)
{
    const zero_safetensors_entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static zero_status check_tiling(const char *path, uint64_t data, uint64_t file_bytes,
                                const zero_safetensors *table)
{
    char shown[ZERO_JSON_SHOWN];
    uint64_t at = data;
    for (int i = 0; i < table->n; i++) {
        const zero_safetensors_entry *entry = &table->entries[i];
        if (entry->begin != at)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: tensor \"%s\" begins at byte %" PRIu64 " of the file, %s "
                             "byte %" PRIu64 ", where the one before it ends",
                             path, zero_json_shown(entry->name, shown), entry->begin,
                             entry->begin < at ? "overlapping: expected"
                                               : "leaving a hole: expected",
                             at);
        at = entry->end;
    }
    if (at == file_bytes) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: the tensors end at byte %" PRIu64 ", but the file has %" PRIu64
                     " bytes",
                     path, at, file_bytes);
}

static zero_status number_entries(zero_safetensors *table)
{
    for (int i = 0; i < table->n; i++) {
        json_t *tensor = json_object_get(table->root, table->entries[i].name);
        if (json_object_set_new(tensor, INDEX, json_integer(i)) != 0)
            return zero_fail(ZERO_ERR_NOMEM, "no room for a table of %d tensors", table->n);
    }
    return ZERO_OK;
}

static zero_status fill(const char *path, uint64_t file_bytes, const zero_bytes *header,
                        zero_safetensors *table)
{
    const char *name;
    json_t *value;
    ZERO_TRY(check_header(path, file_bytes, header));
    ZERO_TRY(
        zero_json_parse(path, header->bytes + PREFIX, header->len - PREFIX, &table->root));
    size_t n = json_object_size(table->root);
    table->entries = calloc(n + 1, sizeof *table->entries);
    if (!table->entries)
        return zero_fail(ZERO_ERR_NOMEM, "%s: no room for a table of %zu tensors", path, n);
    json_object_foreach(table->root, name, value)
    {
        ZERO_TRY(take_member(path, name, value, header->len, file_bytes, table));
    }
    qsort(table->entries, (size_t)table->n, sizeof *table->entries, by_place);
    ZERO_TRY(check_tiling(path, header->len, file_bytes, table));
    return number_entries(table);
}

zero_status zero_safetensors_parse(const char *path, uint64_t file_bytes,
                                   const zero_bytes *header, zero_safetensors *table)
{
    zero_safetensors read = {0};
    zero_status st = fill(path, file_bytes, header, &read);
    if (st == ZERO_OK)
        *table = read;
    else
        zero_safetensors_destroy(&read);
    return st;
}

void zero_safetensors_destroy(zero_safetensors *table)
{
    free(table->entries);
    json_decref(table->root);
    *table = (zero_safetensors){0};
}

const zero_safetensors_entry *zero_safetensors_find(const zero_safetensors *table,
                                                    const char *name)
{
    const json_t *index = json_object_get(json_object_get(table->root, name), INDEX);
    return json_is_integer(index) ? &table->entries[json_integer_value(index)] : NULL;
}

const char *zero_safetensors_metadata(const zero_safetensors *table, const char *key)
{
    return json_string_value(json_object_get(json_object_get(table->root, METADATA), key));
}

/* ---- writing ---- */

static zero_status add_member(json_t *object, const char *key, json_t *value)
{
    char shown[ZERO_JSON_SHOWN];
    zero_json_shown(key, shown);
    bool twice = json_object_get(object, key) != NULL;
    if (!twice && value && json_object_set_new(object, key, value) == 0) return ZERO_OK;
    if (twice) {
        json_decref(value);
        return zero_fail(ZERO_ERR_INVALID,
                         "two tensors or texts of a file have the name "
                         "\"%s\"",
                         shown);
    }
    return zero_fail(ZERO_ERR_NOMEM,
                     "no room for \"%s\" in a safetensors header, or it is not UTF-8",
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

/* Leaves offsets in the data in begin and end. */
static zero_status lay_out(zero_safetensors_entry *entry, uint64_t *at)
{
    char shown[ZERO_JSON_SHOWN];
    uint64_t bytes = 0;
    bool many = entry->n_dims < 0 || entry->n_dims > ZERO_SAFETENSORS_DIMS;
    const char *wrong = many ? "expected 0 to 8 dimensions" : measure(entry, &bytes);
    entry->begin = *at;
    if (!wrong && (__builtin_add_overflow(*at, bytes, at) || *at > INT64_MAX))
        wrong = "expected at most 2^63 - 1 bytes in all";
    if (wrong || strcmp(entry->name, METADATA) == 0)
        return zero_fail(ZERO_ERR_INVALID, "tensor \"%s\": %s",
                         zero_json_shown(entry->name, shown),
                         wrong ? wrong : "the format keeps this name for texts");
    entry->end = *at;
    return ZERO_OK;
}

static zero_status add_texts(json_t *root, int n, const char *const (*texts)[2])
{
    if (n == 0) return ZERO_OK;
    json_t *metadata = json_object();
    ZERO_TRY(add_member(root, METADATA, metadata));
    for (int i = 0; i < n; i++)
        ZERO_TRY(add_member(metadata, texts[i][0], json_string(texts[i][1])));
    return ZERO_OK;
}

/* Padded, so that the data begins at a multiple of 8. */
static zero_status append_header(const json_t *root, zero_bytes *header)
{
    size_t len = json_dumpb(root, NULL, 0, JSON_COMPACT);
    size_t padded = (len + 7) / 8 * 8;
    if (len == 0 || padded > ZERO_SAFETENSORS_HEADER)
        return zero_fail(len == 0 ? ZERO_ERR_NOMEM : ZERO_ERR_INVALID,
                         "a safetensors header takes %zu bytes: expected 1 to %d", len,
                         ZERO_SAFETENSORS_HEADER);
    ZERO_TRY(zero_bytes_reserve(header, PREFIX + padded));
    unsigned char *to = header->bytes + header->len;
    for (int i = 0; i < PREFIX; i++) to[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    memset(to + PREFIX, ' ', padded);
    json_dumpb(root, (char *)to + PREFIX, len, JSON_COMPACT);
    header->len += PREFIX + padded;
    return ZERO_OK;
}

static zero_status write_to(json_t *root, int n, zero_safetensors_entry *entries,
                            int n_texts, const char *const (*texts)[2], zero_bytes *header)
{
    uint64_t at = 0;
    size_t begin = header->len;
    ZERO_TRY(add_texts(root, n_texts, texts));
    for (int i = 0; i < n; i++) {
        ZERO_TRY(lay_out(&entries[i], &at));
        ZERO_TRY(add_member(root, entries[i].name, describe(&entries[i])));
    }
    ZERO_TRY(append_header(root, header));
    uint64_t data = header->len - begin;
    for (int i = 0; i < n; i++) {
        entries[i].begin += data;
        entries[i].end += data;
    }
    return ZERO_OK;
}

zero_status zero_safetensors_write_header(int n, zero_safetensors_entry *entries,
                                          int n_texts, const char *const (*texts)[2],
                                          zero_bytes *header)
{
    json_t *root = json_object();
    if (!root) return zero_fail(ZERO_ERR_NOMEM, "no room for a safetensors header");
    zero_status st = write_to(root, n, entries, n_texts, texts, header);
    json_decref(root);
    return st;
}
