/* Files that lie are refused although their checksums are right: forgers can compute checksums,
 * too. */
#define TEST_HAS_MAIN
#include "support/damage_test.h"
#include "support/table.h"

/* ---- manifests ---- */

#define TAIL " \"checksum\": \""
enum { TAIL_BYTES = sizeof TAIL - 1 + 32 + 4 };

/* The bytes, with the first `find` replaced. */
static zero_bytes exchange(const zero_bytes *good, size_t end, const char *find,
                           const char *replace)
{
    zero_bytes out = {0};
    size_t at = 0, len = strlen(find);
    while (at + len <= end && memcmp(good->bytes + at, find, len) != 0) at++;
    if (at + len > end) fail_msg("'%s' is missing", find);
    if (zero_bytes_append(&out, good->bytes, at) != ZERO_OK ||
        zero_bytes_append(&out, replace, strlen(replace)) != ZERO_OK ||
        zero_bytes_append(&out, good->bytes + at + len, end - at - len) != ZERO_OK)
        fail_msg("%s", zero_last_error());
    return out;
}

/* Writes a manifest of these bytes, and the last line that they lack. */
static void put_manifest(const char *path, zero_bytes *bytes)
{
    char tail[TAIL_BYTES + 1], sum[ZERO_CHECKSUM];
    zero_checksum(bytes->bytes, bytes->len, sum);
    snprintf(tail, sizeof tail, TAIL "%s\"\n}\n", sum);
    assert_ok(zero_bytes_append(bytes, tail, strlen(tail)));
    put(path, bytes->bytes, bytes->len);
}

/* Rows: what is found, what replaces it, and what the refusal says. */
static void check_lies(const char *path)
{
    for (test_table t = table_open(path); table_next(&t);) {
        victim v = choose(&run_place, 5, ZERO_MANIFEST_NAME);
        zero_bytes bytes =
            exchange(&v.good, v.good.len - TAIL_BYTES, t.field[0], t.field[1]);
        put_manifest(v.path, &bytes);
        check_refused(t.field[1], t.field[2], NULL);
        zero_bytes_destroy(&bytes);
        release(&v);
    }
}

TEST(a_manifest_with_a_right_checksum_that_lies_is_refused)
{
    check_lies("checkpoint/lies.txt");
    if (test_size == 3)
        check_lies("checkpoint/lies_of_three.txt"); /* these need more than one shard */
    check_sound(&run_place, 5);
}

/* Before and after the object, and the last line itself. */
TEST(a_manifest_ends_with_its_checksum_and_nothing_else)
{
    victim v = choose(&run_place, 5, ZERO_MANIFEST_NAME);
    zero_bytes bytes = exchange(&v.good, v.good.len, "{", " {");
    put(v.path, bytes.bytes, bytes.len);
    check_refused("a space before", "was changed after", NULL);
    zero_bytes_destroy(&bytes);
    bytes = exchange(&v.good, v.good.len, TAIL, " \"x\": 1,\n" TAIL);
    put(v.path, bytes.bytes, bytes.len);
    check_refused("another line", "was changed after", NULL);
    zero_bytes_destroy(&bytes);
    bytes = exchange(&v.good, v.good.len - TAIL_BYTES, "{",
                     "{ \"checksum\": \"00000000000000000000000000000000\",");
    put_manifest(v.path, &bytes);
    check_refused("two checksums", "duplicate", NULL);
    zero_bytes_destroy(&bytes);
    release(&v);
    check_sound(&run_place, 5);
}

/* ---- headers ---- */

/* Changes a header without its length, and its checksum in the manifest. */
static void forge_header(const char *find, const char *replace, const char *text)
{
    victim m = choose(&run_place, 5, ZERO_MANIFEST_NAME);
    victim v = choose_shard(&run_place, 5, 0, test_size);
    size_t end = header_end(&v);
    char before[ZERO_CHECKSUM], after[ZERO_CHECKSUM];
    zero_checksum(v.good.bytes, end, before);
    zero_bytes shard = exchange(&v.good, v.good.len, find, replace);
    assert_int_equal(shard.len, v.good.len);
    zero_checksum(shard.bytes, end, after);
    zero_bytes manifest = exchange(&m.good, m.good.len - TAIL_BYTES, before, after);
    put(v.path, shard.bytes, shard.len);
    put_manifest(m.path, &manifest);
    check_refused(replace, name_of(&v), text);
    zero_bytes_destroy(&shard);
    zero_bytes_destroy(&manifest);
    release(&v);
    release(&m);
}

TEST(a_header_with_a_right_checksum_that_lies_is_refused)
{
    forge_header("\"dtype\":\"F32\"", "\"dtype\":\"I32\"", "(I32, ");
    forge_header("\"dtype\":\"F32\"", "\"dtype\":\"F64\"", "bytes");
    forge_header("].master\":{", "].mastir\":{", "expected 'wte.weight[0:");
    forge_header("].master\":\"", "].mastir\":\"", "checksum in __metadata__");
    forge_header("\"data_offsets\":[0", "\"data_offsets\":[1", NULL);
    forge_header("{", "[", NULL);
    check_sound(&run_place, 5);
}

int main(int argc, char **argv)
{
    int failed = 0;
    test_begin(&argc, &argv);
    damage_begin();
    if (test_rank == 0) failed = run_here(NULL, NULL);
    damage_end();
    return test_end(failed);
}
