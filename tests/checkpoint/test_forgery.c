/* Files that lie are refused although their checksums are right: forgers can compute checksums,
 * too. */
#include "support/test.h"

#include "support/damage_test.h"

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

typedef struct {
    const char *find, *replace, *text;
} lie;

static void check_lie(const lie *l)
{
    victim v = choose(&run_place, 5, ZERO_MANIFEST_NAME);
    zero_bytes bytes = exchange(&v.good, v.good.len - TAIL_BYTES, l->find, l->replace);
    put_manifest(v.path, &bytes);
    check_refused(l->replace, l->text, NULL);
    zero_bytes_destroy(&bytes);
    release(&v);
}

#define DEEP_10 "[[[[[[[[[["

static const lie lies[] = {
    {"zero checkpoint", "zero checkpont", "not the manifest of a checkpoint"},
    {"\"zero checkpoint\"", "7", "not the manifest of a checkpoint"},
    {"\"version\": 1", "\"version\": 2", "\"tp\" is missing"},
    {"\"version\": 1", "\"version\": 3", "\"kept\" is missing"},
    {"\"version\": 1", "\"version\": 3, \"kept\": []", "\"kept\": expected an object"},
    {"\"version\": 1", "\"version\": 3, \"kept\": {\"../x\": \"\"}",
     "\"../x\": no such key"},
    {"\"version\": 1", "\"version\": 3, \"kept\": {\"config.json\": {}}",
     "expected a text"},
    {"\"version\": 1", "\"version\": 1, \"kept\": {}", "\"kept\": no such key"},
    {"\"version\": 1", "\"version\": 4", "\"shape\" is missing"},
    {"\"version\": 1", "\"version\": 4, \"shape\": {\"architecture\": \"llama\"}",
     "\"layers\" is missing"},
    {"\"version\": 1", "\"version\": 5", "a checkpoint of version 5"},
    {"\"version\": 1", "\"version\": 9223372036854775807", "use a newer zero"},
    {"\"version\": 1", "\"version\": 0", "from 1"},
    {"\"version\": 1", "\"version\": 1.0", "whole number"},
    {"\"version\": 1", "\"version\": 92233720368547758070", "manifest.json"},
    {"\"version\": 1,", "", "\"version\" is missing"},
    {"\"step\": 5", "\"step\": 6", "is that of step 6"},
    {"\"step\": 5", "\"step\": -5", "\"step\""},
    {"\"step\": 5", "\"step\": \"5\"", "\"step\""},
    {"\"step\": 5", "\"step\": 9223372036854775807", "\"step\""},
    {"\"step\": 5,", "\"step\": 5, \"step\": 5,", "duplicate"},
    {"\"step\": 5,", "\"stepp\": 5,", "\"stepp\": no such key"},
    {"\"samples\": ", "\"samples\": 9223372036854775807, \"x\": ", "no such key"},
    {"\"samples\": ", "\"samples\": -", "\"samples\""},
    {"\"updates\": ", "\"updates\": -", "\"updates\""},
    {"\"skipped\": 0", "\"skipped\": 1e3", "\"skipped\""},
    {"\"seed\": ", "\"seed\": 1.", "\"seed\""},
    {"\"scale\":1.0", "\"scale\":0.0", "\"scale\""},
    {"\"scale\":1.0", "\"scale\":1e300", "\"scale\""},
    {"\"scale\":1.0", "\"scale\":1e999", "manifest.json"},
    {"\"clean_steps\":0", "\"clean_steps\":1001", "\"clean_steps\""},
    {"\"hysteresis\":", "\"hysteresis\":-", "\"hysteresis\""},
    {"\"dtype\": \"bf16\"", "\"dtype\": \"fp8\"", "expected fp32, bf16 or fp16"},
    {"\"digest\": \"", "\"digest\": \"0", "32 hexadecimal digits"},
    {"\"digest\": \"", "\"digest\": \"G", "32 hexadecimal digits"},
    {"\"data\": \"", "\"data\": \"1", "32 hexadecimal digits"},
    {"a test's", "a \\u001b[2J", "control characters"},
    {"a test's", "a \\u0000", "manifest.json"},
    {"a test's", "a \xff", "UTF-8"},
    {"\"layers\":1", "\"layers\":0", "\"layers\""},
    {"\"layers\":1", "\"layers\":4294967297", "\"layers\""},
    {"\"options\": {",
     "\"options\": {\"deep\": " DEEP_10 DEEP_10 DEEP_10 DEEP_10 DEEP_10 DEEP_10 DEEP_10,
     "nested at most 64 deep"},
    {"\"options\": {", "\"options\": [], \"x\": {", "manifest.json"},
    {"\"stage\":\"1\"", "\"stage\":1", "\"stage\""},
    {"\"stage\":\"1\"", "\"st\\u0007age\":\"1\"", "control characters"},
    {"\"slice\"", "\"sliced\"", "expected slice or owner"},
    {"\"tensors\": [", "\"tensors\": [5,", "tensor 0"},
    {"\"tensors\": [", "\"tensors\": [{},", "tensor 0"},
    {"\"tensors\": [", "\"tensors\": [[],", "tensor 0"},
    {"\"tensors\": [", "\"tensors\": [[\"a\",1,1,0],", "safetensors"},
    {"\"tensors\": [", "\"tensors\": [], \"x\": [", "manifest.json"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",16,8]", "tensor 0"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",16,8,0,0]", "tensor 0"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",0,8,0]", "has 0 rows"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",-16,-8,0]", "-16 rows"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",16.0,8,0]", "tensor 0"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",4294967296,4294967296,0]", "2^62"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",4611686018427387904,1,0]", "2^62"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",1,4611686018427380000,0]", "parameters"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",16,8,1]", "tensor 0"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",16,8,-1]", "tensor 0"},
    {"[\"wte.weight\",16,8,0]", "[\"wte.weight\",16,8,4294967296]", "tensor 0"},
    {"[\"wte.weight\",16,8,0]", "[\"\",16,8,0]", "has no name"},
    {"[\"wte.weight\",16,8,0]", "[\"wpe.weight\",16,8,0]", "two tensors are called"},
    {"[\"wte.weight\",16,8,0]", "[\"../../wte\",16,8,0]", "safetensors"},
    {"[\"wte.weight\",16,8,0]", "[\"w\\u001bte\",16,8,0]", "tensor 0"},
    {"[\"wte.weight\",16,8,0]",
     "[\"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww\",16,8,0]",
     "at most 63 bytes"},
    {"\"shards\": [\n  {\"bytes\":", "\"shards\": [\n  {\"bytes\":1", "has "},
    {"\"shards\": [\n  {\"bytes\":", "\"shards\": [\n  {\"bytes\":0.", "\"bytes\""},
    {"\"shards\": [\n  {\"bytes\":", "\"shards\": [\n  {\"bytes\":-", "\"bytes\""},
    {"\"shards\": [\n  {\"bytes\":", "\"shards\": [\n  {\"bytes\":1, \"b\":",
     "no such key"},
    {"\"shards\": [\n  {\"bytes\":", "\"shards\": [\n  {\"byte\":", "\"byte\""},
    {"\"shards\": [", "\"shards\": {}, \"x\": [", "manifest.json"},
    {"\"tokenizer\": {\"bytes\":", "\"tokenizer\": {\"bytes\":1", "tokenizer.json"},
    {"\"tokenizer\": {\"bytes\":", "\"tokenizer\": {\"bytes\":-", "\"bytes\""},
    {"\"tokenizer\": {", "\"tokenizer\": [], \"x\": {", "manifest.json"},
};

/* These need more than one shard. */
static const lie lies_of_three[] = {
    {"\"ranks\":3", "\"ranks\":0", "\"ranks\""},
    {"\"ranks\":3", "\"ranks\":-3", "\"ranks\""},
    {"\"ranks\":3", "\"ranks\":2", "3 shards, but \"ranks\" is 2"},
    {"\"ranks\":3", "\"ranks\":4", "3 shards, but \"ranks\" is 4"},
    {"\"ranks\":3", "\"ranks\":1048576", "3 shards"},
    {"\"ranks\":3", "\"ranks\":1000000000", "\"ranks\""},
    {"\"ranks\":3", "\"ranks\":4294967299", "\"ranks\""},
    {"\"slice\"", "\"owner\"", "safetensors"},
    {"\"shards\": [\n  {", "\"shards\": [\n  5, {", "4 shards"},
};

TEST(a_manifest_with_a_right_checksum_that_lies_is_refused)
{
    for (size_t k = 0; k < COUNT(lies); k++) check_lie(&lies[k]);
    for (size_t k = 0; k < COUNT(lies_of_three) && test_size == 3; k++)
        check_lie(&lies_of_three[k]);
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
