/* Whatever happens to a checkpoint's files: it is refused, the message names the file and what
 * is wrong with it, and nothing crashes. All ranks write a few checkpoints; then rank 0 does
 * the damage and reads. */
#include "base/fail.h"
#include "support/checkpoint_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "io/bytes.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* With the sanitizer a reading takes a hundred times as long: then every so many bytes. */
#ifdef __SANITIZE_ADDRESS__
enum { EVERY = 16 };
#else
enum { EVERY = 1 };
#endif

/* Three directories: two steps of a run, a step of one with another seed, and the first run's
 * on one rank. */
static test_place run_place, other_place, single_place;
static uint64_t random_state = 11;

static uint64_t draw(uint64_t n)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST, .step = random_state++};
    return zero_rng_bits(&rng, 0) % n;
}

/* ---- files ---- */

typedef struct {
    char path[500];
    int name; /* where it begins in path */
    zero_bytes good;
} victim;

static void put(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_true(write(fd, bytes, len) == (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

static victim choose(const test_place *place, int64_t step, const char *name)
{
    char dir[400];
    victim v = {.path = ""};
    test_step_path(place, step, dir);
    v.name = (int)strlen(dir) + 1;
    snprintf(v.path, sizeof v.path, "%s/%s", dir, name);
    if (zero_bytes_read(&v.good, v.path) != ZERO_OK) fail_msg("%s", zero_last_error());
    return v;
}

static victim choose_shard(const test_place *place, int64_t step, int rank, int n_ranks)
{
    char name[64];
    zero_shard_name(rank, n_ranks, name);
    return choose(place, step, name);
}

static const char *name_of(const victim *v)
{
    return v->path + v->name;
}

static void restore(const victim *v)
{
    put(v->path, v->good.bytes, v->good.len);
}

static void release(victim *v)
{
    restore(v);
    zero_bytes_destroy(&v->good);
}

/* Exchanges a byte in place: much faster than writing the file anew. */
static void put_byte(int fd, size_t at, unsigned char byte)
{
    assert_true(pwrite(fd, &byte, 1, (off_t)at) == 1);
}

/* ---- verdicts ---- */

static zero_status verify(const char *path)
{
    zero_checkpoint c;
    ZERO_TRY(zero_checkpoint_open(path, &c));
    zero_status st = zero_checkpoint_verify(&c);
    zero_checkpoint_close(&c);
    return st;
}

static zero_status verify_step(const test_place *place, int64_t step)
{
    char path[400];
    test_step_path(place, step, path);
    return verify(path);
}

static void check_sound(const test_place *place, int64_t step)
{
    if (verify_step(place, step) != ZERO_OK) fail_msg("%s", zero_last_error());
}

/* Step 5 of the run is refused, with all of these words; NULL: none. */
static void check_refused(const char *what, const char *a, const char *b)
{
    zero_status st = verify_step(&run_place, 5);
    if (st != ZERO_ERR_FORMAT && st != ZERO_ERR_IO)
        fail_msg("%s: status %d (%s), expected a refusal", what, (int)st,
                 zero_last_error());
    if ((a && !strstr(zero_last_error(), a)) || (b && !strstr(zero_last_error(), b)))
        fail_msg("%s: expected '%s' and '%s' in: %s", what, a ? a : "", b ? b : "",
                 zero_last_error());
}

/* ---- one bit ---- */

static void flip(const victim *v, int fd, size_t at, const char *tensor)
{
    char what[80];
    unsigned char bit = (unsigned char)(1u << draw(8));
    put_byte(fd, at, v->good.bytes[at] ^ bit);
    snprintf(what, sizeof what, "bit 0x%02x of byte %zu", bit, at);
    check_refused(what, name_of(v), tensor);
    put_byte(fd, at, v->good.bytes[at]);
}

static int open_victim(const victim *v)
{
    int fd = open(v->path, O_WRONLY);
    assert_true(fd >= 0);
    return fd;
}

static void flip_every_byte(victim *v, size_t begin, size_t end)
{
    int fd = open_victim(v);
    for (size_t at = begin; at < end; at += 1 + draw(2 * EVERY - 1)) flip(v, fd, at, NULL);
    close(fd);
}

static void a_flipped_bit_in_a_small_file_is_found_and_the_file_named(void **state)
{
    (void)state;
    const char *const names[] = {ZERO_MANIFEST_NAME, ZERO_TOKENIZER_NAME};
    for (size_t k = 0; k < COUNT(names); k++) {
        victim v = choose(&run_place, 5, names[k]);
        flip_every_byte(&v, 0, v.good.len);
        release(&v);
    }
    check_sound(&run_place, 5);
}

static size_t header_end(const victim *shard)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--) n = n << 8 | shard->good.bytes[i];
    return 8 + (size_t)n;
}

/* Its length, its JSON, its spaces. */
static void a_flipped_bit_in_a_header_is_found_and_the_file_named(void **state)
{
    (void)state;
    for (int rank = 0; rank < test_size; rank++) {
        victim v = choose_shard(&run_place, 5, rank, test_size);
        flip_every_byte(&v, 0, header_end(&v));
        release(&v);
    }
    check_sound(&run_place, 5);
}

/* The first byte, the last, and one between. */
static void flip_in_tensors(const victim *v, const zero_checkpoint *c)
{
    int fd = open_victim(v);
    for (int i = 0; i < c->shard.header.n; i++) {
        const zero_safetensors_entry *e = &c->shard.header.entries[i];
        uint64_t bytes = e->end - e->begin;
        flip(v, fd, e->begin, e->name);
        flip(v, fd, e->begin + draw(bytes), e->name);
        flip(v, fd, e->end - 1, e->name);
    }
    close(fd);
}

static void a_flipped_bit_of_data_is_found_and_file_and_tensor_named(void **state)
{
    (void)state;
    char path[400];
    zero_checkpoint c;
    test_step_path(&run_place, 5, path);
    assert_int_equal(zero_checkpoint_open(path, &c), ZERO_OK);
    for (int rank = 0; rank < test_size; rank++) {
        victim v = choose_shard(&run_place, 5, rank, test_size);
        assert_int_equal(zero_checkpoint_look(&c, rank), ZERO_OK);
        assert_true(c.shard.header.n > 0);
        assert_int_equal(c.shard.header.entries[0].begin, header_end(&v));
        assert_int_equal(c.shard.header.entries[c.shard.header.n - 1].end, v.good.len);
        flip_in_tensors(&v, &c);
        release(&v);
    }
    zero_checkpoint_close(&c);
    check_sound(&run_place, 5);
}

/* ---- lengths ---- */

static void check_length(const victim *v, size_t len)
{
    char what[80];
    assert_int_equal(truncate(v->path, (off_t)len), 0);
    snprintf(what, sizeof what, "cut to %zu bytes", len);
    check_refused(what, name_of(v), NULL);
}

/* From the longest down, so that each cut is only a cut. */
static void cut(victim *v, size_t all_below)
{
    for (size_t len = v->good.len; len-- > 0;)
        if (draw(len < all_below ? EVERY : 50 * EVERY) == 0) check_length(v, len);
    restore(v);
    check_length(v, v->good.len + 1); /* longer by a zero */
    check_length(v, v->good.len + 1000000);
}

static void a_file_cut_at_any_header_byte_empty_or_longer_is_refused(void **state)
{
    (void)state;
    victim v = choose(&run_place, 5, ZERO_MANIFEST_NAME);
    cut(&v, v.good.len);
    release(&v);
    v = choose(&run_place, 5, ZERO_TOKENIZER_NAME);
    cut(&v, v.good.len);
    release(&v);
    for (int rank = 0; rank < test_size; rank++) {
        v = choose_shard(&run_place, 5, rank, test_size);
        cut(&v, header_end(&v));
        release(&v);
    }
    check_sound(&run_place, 5);
}

/* ---- somebody else's ---- */

static void check_foreign(const char *what, victim *v, victim *foreign)
{
    put(v->path, foreign->good.bytes, foreign->good.len);
    check_refused(what, name_of(v), NULL);
    restore(v);
    release(foreign);
}

static void shards_of_another_rank_step_run_or_rank_count_are_refused(void **state)
{
    (void)state;
    for (int rank = 0; rank < test_size; rank++) {
        victim v = choose_shard(&run_place, 5, rank, test_size), foreign;
        foreign = choose_shard(&run_place, 10, rank, test_size);
        check_foreign("of another step", &v, &foreign);
        foreign = choose_shard(&other_place, 5, rank, test_size);
        check_foreign("of another run", &v, &foreign);
        if (test_size > 1) {
            foreign = choose_shard(&single_place, 5, 0, 1);
            check_foreign("of one rank", &v, &foreign);
            foreign = choose_shard(&run_place, 5, (rank + 1) % test_size, test_size);
            check_foreign("of another rank", &v, &foreign);
        }
        release(&v);
    }
    check_sound(&run_place, 5);
}

/* Its sums say that it is a manifest, but not of these shards, or not of this step. */
static void manifests_of_others_are_refused(void **state)
{
    (void)state;
    victim v = choose(&run_place, 5, ZERO_MANIFEST_NAME), foreign;
    foreign = choose(&run_place, 10, ZERO_MANIFEST_NAME);
    put(v.path, foreign.good.bytes, foreign.good.len);
    check_refused("of another step", "its manifest is that of step 10", NULL);
    release(&foreign);
    foreign = choose(&other_place, 5, ZERO_MANIFEST_NAME);
    put(v.path, foreign.good.bytes, foreign.good.len);
    check_refused("of another run", "shard-00000-of", "is not the one that was written");
    release(&foreign);
    if (test_size > 1) {
        foreign = choose(&single_place, 5, ZERO_MANIFEST_NAME);
        put(v.path, foreign.good.bytes, foreign.good.len);
        check_refused("of one rank", "shard-00000-of-00001.safetensors", "No such file");
        release(&foreign);
    }
    release(&v);
    check_sound(&run_place, 5);
}

static void swap_steps(void)
{
    char a[400], b[400], c[400];
    test_step_path(&run_place, 5, a);
    test_step_path(&run_place, 10, b);
    test_step_path(&run_place, 7, c);
    assert_true(rename(a, c) == 0 && rename(b, a) == 0 && rename(c, b) == 0);
}

static void directories_that_were_swapped_are_refused(void **state)
{
    (void)state;
    char path[400];
    swap_steps();
    check_refused("swapped", "its manifest is that of step 10", "was renamed");
    test_step_path(&run_place, 5, path);
    strcat(path, "//");
    assert_int_equal(verify(path), ZERO_ERR_FORMAT);
    swap_steps();
    assert_int_equal(verify(path), ZERO_OK);
}

/* ---- no file at all ---- */

static void check_instead(victim *v, int (*make)(const char *path), const char *text)
{
    assert_int_equal(unlink(v->path), 0);
    if (make) assert_int_equal(make(v->path), 0);
    time_t start = time(NULL);
    check_refused(text, name_of(v), text);
    assert_true(time(NULL) - start < 5);
    if (make) assert_int_equal(remove(v->path), 0);
    restore(v);
}

static int make_pipe(const char *path)
{
    return mkfifo(path, 0600);
}

static int make_directory(const char *path)
{
    return mkdir(path, 0700);
}

static int make_link(const char *path)
{
    return symlink("/dev/zero", path);
}

static int make_loop(const char *path)
{
    return symlink(path, path);
}

static void what_is_no_file_is_refused_at_once(void **state)
{
    (void)state;
    char shard[64];
    zero_shard_name(test_size - 1, test_size, shard);
    const char *const names[] = {ZERO_MANIFEST_NAME, ZERO_TOKENIZER_NAME, shard};
    for (size_t k = 0; k < COUNT(names); k++) {
        victim v = choose(&run_place, 5, names[k]);
        check_instead(&v, NULL, "No such file");
        check_instead(&v, make_pipe, "pipe");
        check_instead(&v, make_directory, "directory");
        check_instead(&v, make_link, "found a link");
        check_instead(&v, make_loop, "found a link");
        release(&v);
    }
    check_sound(&run_place, 5);
}

/* ---- files that lie, with right checksums ---- */

#define TAIL " \"checksum\": \""
enum { TAIL_BYTES = sizeof TAIL - 1 + 32 + 4 };

/* The bytes with the first `find` exchanged. */
static zero_bytes exchange(const zero_bytes *good, size_t end, const char *find,
                           const char *replace)
{
    zero_bytes out = {0};
    size_t at = 0, len = strlen(find);
    while (at + len <= end && memcmp(good->bytes + at, find, len) != 0) at++;
    if (at + len > end) fail_msg("'%s' is not there", find);
    if (zero_bytes_append(&out, good->bytes, at) != ZERO_OK ||
        zero_bytes_append(&out, replace, strlen(replace)) != ZERO_OK ||
        zero_bytes_append(&out, good->bytes + at + len, end - at - len) != ZERO_OK)
        fail_msg("%s", zero_last_error());
    return out;
}

/* Writes a manifest of these bytes, which are without their last line. */
static void put_manifest(const char *path, zero_bytes *bytes)
{
    char tail[TAIL_BYTES + 1], sum[ZERO_CHECKSUM];
    zero_checksum(bytes->bytes, bytes->len, sum);
    snprintf(tail, sizeof tail, TAIL "%s\"\n}\n", sum);
    assert_int_equal(zero_bytes_append(bytes, tail, strlen(tail)), ZERO_OK);
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
    {"\"version\": 1", "\"version\": 2", "a checkpoint of version 2"},
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
     "64 lists and objects"},
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

/* What needs more than one shard. */
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

static void a_manifest_with_a_right_checksum_that_lies_is_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(lies); k++) check_lie(&lies[k]);
    for (size_t k = 0; k < COUNT(lies_of_three) && test_size == 3; k++)
        check_lie(&lies_of_three[k]);
    check_sound(&run_place, 5);
}

/* What comes before and behind the object, and the last line itself. */
static void a_manifest_ends_with_its_checksum_and_nothing_else(void **state)
{
    (void)state;
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

/* A header of the same length, whose checksum the manifest then has. */
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

static void a_header_with_a_right_checksum_that_lies_is_refused(void **state)
{
    (void)state;
    forge_header("\"dtype\":\"F32\"", "\"dtype\":\"I32\"", "(I32, ");
    forge_header("\"dtype\":\"F32\"", "\"dtype\":\"F64\"", "bytes");
    forge_header("].master\":{", "].mastir\":{", "expected 'wte.weight[0:");
    forge_header("].master\":\"", "].mastir\":\"", "checksum in __metadata__");
    forge_header("\"data_offsets\":[0", "\"data_offsets\":[1", NULL);
    forge_header("{", "[", NULL);
    check_sound(&run_place, 5);
}

/* ---- the checkpoints ---- */

static void write_step(test_run *run, const test_place *place, int64_t step)
{
    static const unsigned char text[] = "to be or not to be that is the question to be";
    zero_tokenizer tokenizer;
    uint64_t bytes;
    assert_all(zero_tokenizer_init(&tokenizer, "bpe:260", text, sizeof text - 1) ==
               ZERO_OK);
    json_t *options = json_pack("{s:s, s:s}", "stage", "1", "lr", "0.001");
    zero_checkpoint_input in = {.step = step,
                                .samples = 6 * step,
                                .arithmetic = "a test's",
                                .data = "0123456789abcdef0123456789abcdef",
                                .gpt2 = run->model.shape,
                                .tokenizer = &tokenizer,
                                .options = options};
    zero_status st = ZERO_OK;
    if (test_run_member(run))
        st = zero_checkpoint_save(&run->engine, &place->dir, &in, &bytes);
    if (st != ZERO_OK) print_error("%s\n", zero_last_error());
    assert_all(st == ZERO_OK);
    json_decref(options);
    zero_tokenizer_destroy(&tokenizer);
}

static void write_run(int64_t seed, int n, const test_place *place)
{
    test_run run;
    test_setup setup = test_standard;
    setup.shape = (zero_gpt2_shape){
        .layers = 1, .hidden = 8, .heads = 2, .seq = 4, .vocab = 16, .seed = seed};
    setup.seed = seed;
    setup.plan.stage = 1;
    setup.plan.type = ZERO_BF16;
    test_run_open(&run, &setup, n);
    test_run_steps(&run, 0, 2);
    write_step(&run, place, 5);
    test_run_steps(&run, 2, 1);
    write_step(&run, place, 10);
    test_run_close(&run);
}

/* Rank 0 has the machine to itself. */
static void wait_for_rank_0(void)
{
    MPI_Request all;
    int here = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    while (MPI_Test(&all, &here, MPI_STATUS_IGNORE) == MPI_SUCCESS && !here)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_bit_in_a_small_file_is_found_and_the_file_named),
        cmocka_unit_test(a_flipped_bit_in_a_header_is_found_and_the_file_named),
        cmocka_unit_test(a_flipped_bit_of_data_is_found_and_file_and_tensor_named),
        cmocka_unit_test(a_file_cut_at_any_header_byte_empty_or_longer_is_refused),
        cmocka_unit_test(shards_of_another_rank_step_run_or_rank_count_are_refused),
        cmocka_unit_test(manifests_of_others_are_refused),
        cmocka_unit_test(directories_that_were_swapped_are_refused),
        cmocka_unit_test(what_is_no_file_is_refused_at_once),
        cmocka_unit_test(a_manifest_with_a_right_checksum_that_lies_is_refused),
        cmocka_unit_test(a_manifest_ends_with_its_checksum_and_nothing_else),
        cmocka_unit_test(a_header_with_a_right_checksum_that_lies_is_refused),
    };
    int failed = 0;
    test_begin(&argc, &argv);
    test_place_open(&run_place);
    test_place_open(&other_place);
    test_place_open(&single_place);
    write_run(5, test_size, &run_place);
    write_run(6, test_size, &other_place);
    write_run(5, 1, &single_place);
    if (test_rank == 0) failed = cmocka_run_group_tests(tests, NULL, NULL);
    wait_for_rank_0();
    test_place_close(&single_place);
    test_place_close(&other_place);
    test_place_close(&run_place);
    return test_end(failed);
}
