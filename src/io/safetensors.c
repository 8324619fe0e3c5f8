#include "io/safetensors.h"

#include "base/legible.h"
#include "base/number.h"
#include "io/json_input.h"
#include "io/little_endian.h"

#define PREFIX   ZERO_SAFETENSORS_PREFIX
#define METADATA ZERO_SAFETENSORS_METADATA
#define PLACE    ZERO_SAFETENSORS_PLACE

static const struct {
    const char *name;
    int bytes;
} types[] = {{"F32", 4},     {"F16", 2},    {"BF16", 2}, {"F64", 8}, {"I8", 1},
             {"I16", 2},     {"I32", 4},    {"I64", 8},  {"U8", 1},  {"U16", 2},
             {"U32", 4},     {"U64", 8},    {"BOOL", 1}, {"C64", 8}, {"F8_E4M3", 1},
             {"F8_E5M2", 1}, {"F8_E8M0", 1}};

const char *zero_safetensors_measure(zero_safetensors_entry *entry, uint64_t *bytes)
{
    int item = 0;
    for (int i = 0; i < ZERO_COUNT(types); i++)
        if (zero_same_text(entry->type, types[i].name)) item = types[i].bytes;
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

/* ---- the header as bytes ---- */

/* A file of another kind is shown as it begins: a number tells nobody what it is. */
static zero_status read_length(const char *path, uint64_t file_bytes,
                               const unsigned char prefix[PREFIX], uint64_t *n)
{
    char begin[12 * PREFIX + 1];
    *n = zero_little_endian(prefix, PREFIX);
    zero_legible((const char *)prefix, PREFIX, begin, sizeof begin);
    ZERO_FORMAT_IF(*n < 2 || *n > ZERO_SAFETENSORS_HEADER,
                   "%s: at byte 0: expected the length of a safetensors header, 2 to %d "
                   "bytes, found %" PRIu64 ": the file begins with \"%s\"",
                   path, ZERO_SAFETENSORS_HEADER, *n, begin);
    ZERO_FORMAT_IF(*n > file_bytes - PREFIX,
                   "%s: at byte 0: the header claims %" PRIu64 " bytes, but only %" PRIu64
                   " follow in this file",
                   path, *n, file_bytes - PREFIX);
    return ZERO_OK;
}

zero_status zero_safetensors_read_header(const zero_file *file, zero_bytes *header)
{
    unsigned char prefix[PREFIX];
    ZERO_FORMAT_IF(file->bytes < PREFIX,
                   "%s: expected a safetensors file, which begins with %d bytes of length, "
                   "found %" PRIu64 " bytes in all",
                   file->path, PREFIX, file->bytes);
    ZERO_TRY(zero_file_read(file, 0, prefix, PREFIX));
    uint64_t n;
    ZERO_TRY(read_length(file->path, file->bytes, prefix, &n));
    ZERO_TRY(zero_bytes_reserve(header, PREFIX + (size_t)n));
    unsigned char *to = header->bytes + header->len;
    memcpy(to, prefix, PREFIX);
    ZERO_TRY(zero_file_read(file, PREFIX, to + PREFIX, (size_t)n));
    header->len += PREFIX + (size_t)n;
    return ZERO_OK;
}

/* ---- from JSON to a table ---- */

static zero_status check_metadata(const char *path, json_t *metadata)
{
    const char *key;
    json_t *value;
    ZERO_FORMAT_IF(!json_is_object(metadata),
                   "%s: \"" METADATA "\": expected an object of texts", path);
    json_object_foreach(metadata, key, value)
    {
        ZERO_FORMAT_IF(!json_is_string(value),
                       "%s: \"" METADATA
                       "\": expected a text as \"%s\", found another type",
                       path, ZERO_SHOWN_SHORT(key));
    }
    return ZERO_OK;
}

static zero_status take_member(const char *path, const char *name, json_t *value,
                               uint64_t data, uint64_t file_bytes, zero_safetensors *table)
{
    char where[600];
    if (zero_same_text(name, METADATA)) return check_metadata(path, value);
    zero_print(where, "%.480s: tensor \"%s\"", path, ZERO_SHOWN_SHORT(name));
    ZERO_FORMAT_IF(!json_is_object(value),
                   "%s: expected an object of dtype, shape and data_offsets", where);
    zero_safetensors_entry entry = {.name = name};
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    uint64_t bytes = 0;
    ZERO_TRY(zero_json_text(where, value, "dtype", &entry.type));
    const json_t *shape = NULL;
    ZERO_TRY(zero_json_array(where, value, "shape", &shape));
    size_t n = json_array_size(shape);
    ZERO_FORMAT_IF(n > ZERO_SAFETENSORS_DIMS,
                   "%s: expected at most %d dimensions, found %zu", where,
                   ZERO_SAFETENSORS_DIMS, n);
    entry.n_dims = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *dim = json_array_get(shape, i);
        ZERO_FORMAT_IF(!json_is_integer(dim),
                       "%s: expected whole numbers in \"shape\", but [%zu] is not one",
                       where, i);
        entry.dims[i] = json_integer_value(dim);
    }
    /* Turns offsets in the data into bytes of the file. */
    const json_t *offsets = NULL;
    ZERO_TRY(zero_json_array(where, value, "data_offsets", &offsets));
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    ZERO_FORMAT_IF(json_array_size(offsets) != 2 || !json_is_integer(begin) ||
                       !json_is_integer(end),
                   "%s: expected two whole numbers in \"data_offsets\"", where);
    int64_t from = json_integer_value(begin), to = json_integer_value(end);
    ZERO_FORMAT_IF(from < 0 || to < from || (uint64_t)to > file_bytes - data,
                   "%s: \"data_offsets\": expected 0 <= begin <= end <= %" PRIu64
                   " (the bytes after the header), found [%" PRId64 ", %" PRId64 "]",
                   where, file_bytes - data, from, to);
    entry.begin = data + (uint64_t)from;
    entry.end = data + (uint64_t)to;
    ZERO_TRY(zero_json_only(where, value, 3, keys));
    const char *wrong = zero_safetensors_measure(&entry, &bytes);
    ZERO_FORMAT_IF(wrong, "%s, dtype \"%s\": %s", where, ZERO_SHOWN_SHORT(entry.type),
                   wrong);
    ZERO_FORMAT_IF(bytes != entry.end - entry.begin,
                   "%s: %" PRId64 " elements of %s make %" PRIu64
                   " bytes, but \"data_offsets\" leave %" PRIu64,
                   where, entry.n, entry.type, bytes, entry.end - entry.begin);
    table->entries[table->n++] = entry;
    return ZERO_OK;
}

/* An empty tensor has the offset of the next one, and comes before it. */
static int by_place(const void *a, const void *b)
{
    const zero_safetensors_entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

zero_status zero_safetensors_parse(const char *path, uint64_t file_bytes,
                                   const zero_bytes *header, zero_safetensors *table)
{
    ZERO_AT_END(zero_safetensors_destroy) zero_safetensors t = {0};
    const char *name;
    json_t *value;
    ZERO_FORMAT_IF(
        header->len < PREFIX || file_bytes < header->len,
        "%s: expected a safetensors header of at least %d bytes within a file of %" PRIu64
        ", found %zu",
        path, PREFIX, file_bytes, header->len);
    uint64_t n;
    ZERO_TRY(read_length(path, file_bytes, header->bytes, &n));
    ZERO_FORMAT_IF(n != header->len - PREFIX,
                   "%s: at byte 0: the header claims %" PRIu64 " bytes, but it has %zu",
                   path, n, header->len - PREFIX);
    ZERO_FORMAT_IF(
        header->bytes[PREFIX] != '{',
        "%s: at byte %d: expected the { of a safetensors header, found the byte 0x%02x",
        path, PREFIX, header->bytes[PREFIX]);
    size_t last = header->len - 1;
    while (header->bytes[last] == ' ') last--;
    ZERO_FORMAT_IF(
        header->bytes[last] != '}',
        "%s: at byte %zu: expected the } of the header and only spaces after it, "
        "found the byte 0x%02x",
        path, last, header->bytes[last]);
    ZERO_TRY(zero_json_parse(path, header->bytes + PREFIX, header->len - PREFIX, &t.root));
    ZERO_TRY(zero_new(&t.entries, json_object_size(t.root), "tensors of a file"));
    json_object_foreach(t.root, name, value)
    {
        ZERO_TRY(take_member(path, name, value, header->len, file_bytes, &t));
    }
    zero_sort(t.entries, t.n, by_place);
    uint64_t at = header->len;
    for (int i = 0; i < t.n; i++) {
        const zero_safetensors_entry *entry = &t.entries[i];
        ZERO_FORMAT_IF(
            entry->begin != at,
            "%s: tensor \"%s\" begins at byte %" PRIu64 " of the file, %s byte %" PRIu64
            ", where the one before it ends",
            path, ZERO_SHOWN_SHORT(entry->name), entry->begin,
            entry->begin < at ? "overlapping: expected" : "leaving a hole: expected", at);
        at = entry->end;
    }
    ZERO_FORMAT_IF(at != file_bytes,
                   "%s: the tensors end at byte %" PRIu64 ", but the file has %" PRIu64
                   " bytes",
                   path, at, file_bytes);
    for (int i = 0; i < t.n; i++) {
        json_t *tensor = json_object_get(t.root, t.entries[i].name);
        ZERO_TRY(zero_allocated(json_object_set_new(tensor, PLACE, json_integer(i)) == 0,
                                "no memory for a table of %d tensors", t.n));
    }
    ZERO_GIVE(table, t);
    return ZERO_OK;
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
    const json_t *place = json_object_get(json_object_get(table->root, name), PLACE);
    return json_is_integer(place) ? &table->entries[json_integer_value(place)] : NULL;
}

const char *zero_safetensors_metadata(const zero_safetensors *table, const char *key)
{
    return zero_get_string(json_object_get(table->root, METADATA), key);
}
