#include <fcntl.h>
#include <unistd.h>

#include "support/table.h"

#include "io/safetensors.h"

#define F "model.safetensors"

static void assert_says(const char *text)
{
    assert_told(text);
    assert_told(F);
}

static void append(zero_bytes *text, const void *bytes, size_t len)
{
    assert_ok(zero_bytes_append(text, bytes, len));
}

static zero_bytes header_of(uint64_t n, const char *json, size_t len)
{
    zero_bytes header = {0};
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++) prefix[i] = (unsigned char)(n >> (8 * i));
    append(&header, prefix, sizeof prefix);
    append(&header, json, len);
    return header;
}

/* The status of a file with this header and `n` bytes of data. */
static zero_status parse(const char *json, uint64_t data, zero_safetensors *table)
{
    size_t len = strlen(json);
    zero_bytes header = header_of(len, json, len);
    zero_status st = zero_safetensors_parse(F, header.len + data, &header, table);
    zero_bytes_destroy(&header);
    return st;
}

static void refused(const char *json, uint64_t data, const char *reason)
{
    zero_safetensors table = {.n = 42};
    if (parse(json, data, &table) != ZERO_ERR_FORMAT)
        fail_msg("%.100s: expected '%s'", json, reason);
    assert_says(reason);
    assert_true(table.n == 42 && !table.entries && !table.root);
}

/* ---- good tables ---- */

TEST(a_table_is_in_the_order_of_the_data)
{
    zero_safetensors table;
    const char *json =
        "{\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[2,26]},"
        "\"__metadata__\":{\"format\":\"pt\",\"#\":\"no index\"},"
        "\"empty\":{\"dtype\":\"I64\",\"shape\":[4,0],\"data_offsets\":[2,2]},"
        "\"one\":{\"data_offsets\":[0,2],\"shape\":[],\"dtype\":\"BF16\"}}   ";
    assert_ok(parse(json, 26, &table));
    uint64_t data = 8 + strlen(json);
    assert_int_equal(table.n, 3);
    const zero_safetensors_entry *e = table.entries;
    assert_string_equal(e[0].name, "one");
    assert_true(e[0].n == 1 && e[0].n_dims == 0 && e[0].begin == data);
    assert_string_equal(e[1].name, "empty");
    assert_true(e[1].n == 0 && e[1].begin == data + 2 && e[1].end == data + 2);
    assert_string_equal(e[2].type, "F32");
    assert_true(e[2].n == 6 && e[2].n_dims == 2 && e[2].dims[0] == 2 && e[2].dims[1] == 3);
    assert_true(e[2].begin == data + 2 && e[2].end == data + 26);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(zero_safetensors_find(&table, e[i].name), &e[i]);
    assert_null(zero_safetensors_find(&table, "c"));
    assert_null(zero_safetensors_find(&table, "__metadata__"));
    assert_string_equal(zero_safetensors_metadata(&table, "format"), "pt");
    assert_null(zero_safetensors_metadata(&table, "version"));
    zero_safetensors_destroy(&table);
    zero_safetensors_destroy(&table);
}

TEST(a_file_may_hold_no_tensor)
{
    zero_safetensors table;
    assert_ok(parse("{}", 0, &table));
    assert_int_equal(table.n, 0);
    assert_null(zero_safetensors_find(&table, "a"));
    assert_null(zero_safetensors_metadata(&table, "a"));
    zero_safetensors_destroy(&table);
    refused("{}", 1, "the tensors end at byte 10, but the file has 11 bytes");
}

TEST(what_is_written_is_read_back)
{
    zero_safetensors_entry entries[] = {
        {.name = "z \"quoted\" \xc3\xa9\n", .type = "F32", .n_dims = 2, .dims = {3, 5}},
        {.name = "none", .type = "F32", .n_dims = 1, .dims = {0}},
        {.name = "a", .type = "BF16", .n_dims = 8, .dims = {1, 2, 1, 2, 1, 1, 1, 7}},
        {.name = "scalar", .type = "U8"}};
    json_t *texts = json_pack("{s:s, s:s}", "format", "pt", "step", "100");
    zero_bytes header = {0};
    zero_safetensors table;
    append(&header, "before", 6); /* the header is appended */
    assert_ok(zero_safetensors_write_header(4, entries, texts, &header));
    json_decref(texts);
    assert_memory_equal(header.bytes, "before", 6);
    header.len -= 6;
    memmove(header.bytes, header.bytes + 6, header.len);
    assert_int_equal(header.len % 8, 0);
    assert_int_equal(entries[0].begin, header.len);
    assert_int_equal(entries[3].end, header.len + 60 + 56 + 1);
    assert_ok(zero_safetensors_parse(F, entries[3].end, &header, &table));
    assert_int_equal(table.n, 4);
    for (int i = 0; i < 4; i++) {
        const zero_safetensors_entry *e = zero_safetensors_find(&table, entries[i].name);
        assert_non_null(e);
        assert_string_equal(e->type, entries[i].type);
        assert_true(e->n == entries[i].n && e->n_dims == entries[i].n_dims);
        assert_true(e->begin == entries[i].begin && e->end == entries[i].end);
        assert_memory_equal(e->dims, entries[i].dims, sizeof e->dims);
    }
    assert_string_equal(zero_safetensors_metadata(&table, "step"), "100");
    zero_safetensors_destroy(&table);
    zero_bytes_destroy(&header);
}

TEST(what_cannot_be_written_is_refused)
{
    static const struct {
        zero_safetensors_entry tensors[2];
        const char *reason;
    } wishes[] = {
        {{{.name = "a", .type = "F33"}, {.name = "b", .type = "F32"}}, "one of the types"},
        {{{.name = "a", .type = "F32"}, {.name = "a", .type = "F32"}},
         "have the name \"a\""},
        {{{.name = "a", .type = "F32"}, {.name = "\xff", .type = "F32"}}, "not UTF-8"},
        {{{.name = "a", .type = "F32"}, {.name = "__metadata__", .type = "F32"}},
         "for texts"},
        {{{.name = "a", .type = "F32", .n_dims = 1, .dims = {-1}}, {0}}, "0 or more"},
        {{{.name = "a", .type = "F32", .n_dims = 9}, {0}}, "8 dimensions"},
        {{{.name = "a", .type = "F32", .n_dims = 2, .dims = {INT64_C(1) << 40, 1 << 23}},
          {0}},
         "elements"},
        {{{.name = "a", .type = "F32", .n_dims = 1, .dims = {INT64_C(1) << 62}}, {0}},
         "bytes"},
    };
    for (size_t i = 0; i < COUNT(wishes); i++) {
        zero_safetensors_entry tensors[2];
        zero_bytes header = {0};
        memcpy(tensors, wishes[i].tensors, sizeof tensors);
        int n = tensors[1].name ? 2 : 1;
        if (zero_safetensors_write_header(n, tensors, NULL, &header) == ZERO_OK)
            fail_msg("written: %s", wishes[i].reason);
        assert_told(wishes[i].reason);
        assert_int_equal(header.len, 0);
        zero_bytes_destroy(&header);
    }
}

/* ---- attacks ---- */

TEST(attacks_on_the_table_are_refused)
{
    for (test_table t = table_open("io/attacks.txt"); table_next(&t);)
        refused(t.field[0], strtoull(t.field[1], NULL, 10), t.field[2]);
}

TEST(attacks_on_the_length_are_refused)
{
    static const struct {
        uint64_t n, file_bytes;
        const char *reason;
    } attacks[] = {{0, 10, "2 to 100000000 bytes, found 0: the file begins with"},
                   {1, 10, "found 1"},
                   {3, 10, "3 bytes, but only 2 follow"},
                   {3, 11, "3 bytes, but it has 2"},
                   {2, 9, "within a file of 9"},
                   {100000001, UINT64_MAX, "found 100000001"},
                   {UINT64_C(1) << 63, 10, "found 9223372036854775808"},
                   {UINT64_MAX - 7, 10, "found 18446744073709551608"}};
    for (size_t i = 0; i < COUNT(attacks); i++) {
        zero_safetensors table;
        zero_bytes header = header_of(attacks[i].n, "{}", 2);
        assert_int_equal(zero_safetensors_parse(F, attacks[i].file_bytes, &header, &table),
                         ZERO_ERR_FORMAT);
        assert_says(attacks[i].reason);
        zero_bytes_destroy(&header);
    }
    zero_bytes empty = {0};
    zero_safetensors table;
    assert_int_equal(zero_safetensors_parse(F, 0, &empty, &table), ZERO_ERR_FORMAT);
}

TEST(deep_and_long_headers_are_refused)
{
    enum { DEEP = 200000 };
    char *json = malloc(2 * DEEP);
    assert_non_null(json);
    size_t len = (size_t)sprintf(json, "{\"__metadata__\":");
    memset(json + len, '[', DEEP);
    sprintf(json + len + DEEP, "}");
    refused(json, 0, "expected lists and objects nested at most 64 deep");

    len = (size_t)sprintf(json, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1");
    for (int i = 1; i < 400; i++) len += (size_t)sprintf(json + len, ",1");
    sprintf(json + len, "],\"data_offsets\":[0,1]}}");
    refused(json, 1, "at most 8 dimensions, found 400");

    len = (size_t)sprintf(json, "{\"");
    memset(json + len, 'x', 5000);
    sprintf(json + len + 5000, "\":0}");
    refused(json, 0, "xxx...\": expected an object");
    free(json);
}

/* ---- several files ---- */

#define MAP(members) "{\"metadata\":{\"total_size\":8},\"weight_map\":{" members "}}"

static zero_status read_index(const char *json, zero_safetensors_index *index)
{
    zero_bytes text = {0};
    append(&text, json, strlen(json));
    zero_status st = zero_safetensors_read_index(F, &text, index);
    zero_bytes_destroy(&text);
    return st;
}

/* The status of files "one" and "two", with these tensors, beside such an index. */
static zero_status join(const char *json, const char *one, const char *two,
                        zero_safetensors *all)
{
    zero_safetensors_index index;
    zero_safetensors parts[2];
    *all = (zero_safetensors){0};
    assert_ok(read_index(json, &index));
    assert_ok(parse(one, 4, &parts[0]));
    assert_ok(parse(two, 4, &parts[1]));
    zero_status st = zero_safetensors_add(F, &parts[0], 0, all);
    if (st == ZERO_OK) st = zero_safetensors_add(F, &parts[1], 1, all);
    if (st == ZERO_OK) st = zero_safetensors_check_index(F, &index, all);
    zero_safetensors_destroy(&parts[0]);
    zero_safetensors_destroy(&parts[1]);
    zero_safetensors_destroy_index(&index);
    return st;
}

#define NAMED(name) "{\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"
#define A           NAMED("a")

TEST(tensors_of_several_files_make_one_table)
{
    zero_safetensors all;
    zero_safetensors_index index;
    assert_ok(read_index(MAP("\"b\":\"two\",\"a\":\"one\",\"c\":\"two\""), &index));
    assert_int_equal(index.n_files, 2);
    assert_string_equal(index.files[0], "one");
    assert_string_equal(index.files[1], "two");
    zero_safetensors_destroy_index(&index);
    assert_ok(join(MAP("\"b\":\"two\",\"a\":\"one\""), A, NAMED("b"), &all));
    assert_int_equal(all.n, 2);
    const zero_safetensors_entry *a = zero_safetensors_find(&all, "a"),
                                 *b = zero_safetensors_find(&all, "b");
    assert_true(a == &all.entries[0] && b == &all.entries[1]);
    assert_true(a->file == 0 && b->file == 1 && b->end - b->begin == 4);
    assert_string_equal(b->name, "b");
    assert_string_equal(b->type, "U8");
    zero_safetensors_destroy(&all);
}

TEST(an_index_that_lies_is_refused)
{
    static const struct {
        const char *json, *reason;
    } indexes[] = {
        {"[]", "expected an object with \"weight_map\""},
        {"{\"weight_map\":[]}", "\"weight_map\": expected an object"},
        {"{\"weight_map\":{}}", "expected 1 to 1000 files, found 0"},
        {MAP("\"a\":1"), "\"a\": expected a text"},
        {MAP("\"a\":\"\""), "the name of a file beside the index"},
        {MAP("\"a\":\"..\""), "the name of a file beside the index"},
        {MAP("\"a\":\"../b\""), "found \"../b\""},
        {MAP("\"a\":\"/etc/passwd\""), "found \"/etc/passwd\""},
        {MAP("\"a\":\"b\",\"a\":\"c\""), "duplicate object key"},
    };
    static const struct {
        const char *json, *two, *reason;
    } pairs[] = {
        {MAP("\"a\":\"one\",\"b\":\"two\""), A, "tensor \"a\" is in another file, too"},
        {MAP("\"a\":\"two\",\"b\":\"one\""), NAMED("b"),
         "the file \"two\" does not have the tensor \"a\""},
        {MAP("\"a\":\"one\",\"c\":\"two\""), NAMED("b"),
         "the file \"two\" does not have the tensor \"c\""},
        {MAP("\"a\":\"one\""), NAMED("b"), "expected the 2 tensors of its files, found 1"},
    };
    for (size_t i = 0; i < COUNT(indexes); i++) {
        zero_safetensors_index index = {.n_files = 42};
        assert_int_equal(read_index(indexes[i].json, &index), ZERO_ERR_FORMAT);
        assert_says(indexes[i].reason);
        assert_int_equal(index.n_files, 42);
    }
    for (size_t i = 0; i < COUNT(pairs); i++) {
        zero_safetensors all;
        assert_int_equal(join(pairs[i].json, A, pairs[i].two, &all), ZERO_ERR_FORMAT);
        assert_says(pairs[i].reason);
        zero_safetensors_destroy(&all);
    }
}

/* ---- files ---- */

/* read_header's verdict on a file with these bytes, whose length is said to be `promised`. */
static zero_status read_file(const zero_bytes *content, uint64_t promised,
                             zero_bytes *header)
{
    char path[] = "/tmp/zero_test_safetensors_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write(fd, content->bytes, content->len), content->len);
    zero_file file = {.fd = fd, .is_open = true, .bytes = promised, .path = F};
    zero_status st = zero_safetensors_read_header(&file, header);
    zero_file_close(&file);
    return st;
}

TEST(headers_are_read_from_files)
{
    zero_bytes header = {0};
    append(&header, "x", 1);
    zero_bytes file = header_of(5, "{}   data", 9);
    assert_ok(read_file(&file, file.len, &header));
    assert_int_equal(header.len, 14);
    assert_memory_equal(header.bytes + 1, file.bytes, 13);
    zero_bytes_destroy(&header);
    for (size_t len = 0; len < 13; len++) { /* the file is cut off, and its size known */
        file.len = len;
        assert_int_equal(read_file(&file, len, &header), ZERO_ERR_FORMAT);
        assert_says(len < 8 ? "8 bytes of length" : "5 bytes, but only");
        assert_int_equal(header.len, 0);
    }
    zero_bytes page = {0}; /* what a failed download leaves */
    append(&page, "<!doctype html>", 15);
    assert_int_equal(read_file(&page, page.len, &header), ZERO_ERR_FORMAT);
    assert_says("the file begins with \"<!doctyp\"");
    memcpy(page.bytes, "\x1b[31mPK\x03", 8);
    assert_int_equal(read_file(&page, page.len, &header), ZERO_ERR_FORMAT);
    assert_says("begins with \"\\u{1B}[31mPK\\u{3}\"");
    zero_bytes_destroy(&page);
    for (size_t len = 0; len < 13; len++) { /* it shrinks while it is read */
        file.len = len;
        assert_int_equal(read_file(&file, 17, &header), ZERO_ERR_IO);
        assert_says("the file ends after");
        assert_int_equal(header.len, 0);
    }
    zero_bytes_destroy(&file);
    zero_bytes_destroy(&header);
}

/* Memory is taken only for what the file can hold: these would be 100 MB or more. */
TEST(lengths_are_checked_before_memory_is_taken)
{
    static const uint64_t lengths[] = {100000000, UINT64_C(1) << 40, UINT64_MAX};
    for (int i = 0; i < 3; i++) {
        zero_bytes header = {0};
        zero_bytes file = header_of(lengths[i], "{}", 2);
        assert_int_equal(read_file(&file, file.len, &header), ZERO_ERR_FORMAT);
        assert_null(header.bytes);
        zero_bytes_destroy(&file);
    }
}
