/* Checkpoints of shared models, whose shards TP and ZeRO groups of any sizes wrote, are read into
 * groups of any others. All ranks are in this process, and states are made of numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/range.h"
#include "checkpoint/read.h"
#include "checkpoint/shard_write.h"
#include "support/cut_model.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define DIGEST       "0123456789abcdef0123456789abcdef"

enum { TIMES = 4 }; /* tensors of several extents */

/* ---- what is read ---- */

static uint64_t bytes_read;

ssize_t __real_pread(int fd, void *data, size_t n, off_t at);
ssize_t __real_pread64(int fd, void *data, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *data, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t at);

ssize_t __wrap_pread(int fd, void *data, size_t n, off_t at)
{
    bytes_read += n;
    return __real_pread(fd, data, n, at);
}

ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t at)
{
    bytes_read += n;
    return __real_pread64(fd, data, n, at);
}

/* ---- states ---- */

/* A rank's part of the model, and how ZeRO shards it. */
struct part {
    zero_model model;
    zero_partition partitions[CUT_GROUPS];
    int d;
    int64_t received; /* elements */
};

static void part_open(struct part *part, const zero_model *whole,
                      const zero_state_layout *l, int rank)
{
    int64_t n_params[CUT_GROUPS];
    zero_share share = {l->tp, rank % l->tp, l->slices};
    *part = (struct part){.d = rank / l->tp};
    assert_int_equal(zero_model_share(whole, share, &part->model), ZERO_OK);
    for (int g = 0; g < CUT_GROUPS; g++) n_params[g] = part->model.groups[g].n_params;
    assert_int_equal(zero_partition_cut(l->scheme, l->n_ranks / l->tp, CUT_GROUPS, n_params,
                                        part->partitions),
                     ZERO_OK);
}

static float value(int tensor, int state, int64_t whole)
{
    return (float)((whole * 2654435761 + tensor * 97 + state * 31) % 1000003) / 1024.0f;
}

/* The numbers of a group's elements: out[zero_range_len(range)]. */
static void fill(const zero_model *model, int group, zero_range range, int state,
                 float *out)
{
    const zero_group *g = &model->groups[group];
    for (int i = g->first_tensor; i < g->first_tensor + g->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        zero_range here = zero_range_overlap(zero_range_of_tensor(t), range);
        for (int64_t at = here.begin; at < here.end;) {
            zero_run run = zero_share_run(t, at - t->offset, here.end - t->offset);
            for (int64_t k = 0; k < run.n; k++, at++)
                out[at - range.begin] = value(i, state, run.whole + k);
        }
    }
}

static zero_status view(void *arg, int group, zero_range range, float *room,
                        zero_state_block *block)
{
    const struct part *part = arg;
    int64_t n = zero_range_len(range);
    zero_range own = zero_partition_shard(&part->partitions[group], part->d);
    assert_true(own.begin <= range.begin && range.end <= own.end);
    for (int state = 0; state < ZERO_STATES; state++)
        fill(&part->model, group, range, state, room + state * n);
    *block = (zero_state_block){range, room, room + n, room + 2 * n};
    return ZERO_OK;
}

/* ---- writing ---- */

static char place[64], step_path[128];
static zero_storage_dir top;

static int open_place(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(place, sizeof place, "%.40s/zero-test-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(place)) return -1;
    snprintf(step_path, sizeof step_path, "%s/step-00000005", place);
    return zero_storage_open(place, &top) == ZERO_OK ? 0 : -1;
}

static int close_place(void **state)
{
    (void)state;
    zero_status st = zero_storage_remove(&top, "step-00000005");
    zero_storage_close(&top);
    return st == ZERO_OK && rmdir(place) == 0 ? 0 : -1;
}

static void write_text(const zero_storage_dir *dir, const char *name,
                       const zero_bytes *text)
{
    zero_storage_file file;
    assert_int_equal(zero_storage_create(dir, name, text->len, &file), ZERO_OK);
    assert_int_equal(zero_storage_write(&file, text->bytes, text->len), ZERO_OK);
    assert_int_equal(zero_storage_finish(&file), ZERO_OK);
}

static void write_shard(const zero_storage_dir *dir, zero_manifest *m,
                        const zero_model *whole, int rank)
{
    struct part part;
    zero_shard_writer shard;
    zero_shard_source source = {rank, view, &part};
    part_open(&part, whole, &m->table.layout, rank);
    assert_int_equal(zero_shard_prepare(&source, m, &shard), ZERO_OK);
    assert_int_equal(zero_shard_write(&shard, dir), ZERO_OK);
    m->shards[rank] = zero_shard_describe(&shard);
    zero_shard_forget(&shard);
    zero_model_destroy(&part.model);
}

/* Writes step 5 as the ranks of a layout do, in place of the one before. */
static void write_checkpoint(const zero_model *whole, const zero_state_layout *layout)
{
    zero_storage_dir dir;
    zero_bytes text = {0};
    zero_manifest m = {.step = 5, .digest = DIGEST, .arithmetic = "a test's"};
    m.loss_scale.scale = 1.0f;
    m.loss_scale.hysteresis = 1;
    assert_int_equal(
        zero_state_table_init(&m.table, whole->n_tensors, whole->tensors, layout), ZERO_OK);
    m.shards = calloc((size_t)layout->n_ranks, sizeof *m.shards);
    assert_non_null(m.shards);
    assert_int_equal(zero_storage_remove(&top, "step-00000005"), ZERO_OK);
    assert_int_equal(zero_storage_make(&top, "step-00000005", &dir), ZERO_OK);
    for (int rank = 0; rank < layout->n_ranks; rank++) write_shard(&dir, &m, whole, rank);
    assert_int_equal(zero_manifest_write(&m, &text), ZERO_OK);
    write_text(&dir, ZERO_MANIFEST_NAME, &text);
    zero_bytes_destroy(&text);
    zero_manifest_destroy(&m);
    zero_storage_close(&dir);
}

/* ---- reading ---- */

static zero_status receive(void *arg, int group, zero_range range,
                           const float *const parts[ZERO_STATES])
{
    struct part *part = arg;
    int64_t n = zero_range_len(range);
    float *expected = malloc((size_t)n * sizeof *expected);
    assert_non_null(expected);
    for (int state = 0; state < ZERO_STATES; state++) {
        fill(&part->model, group, range, state, expected);
        assert_memory_equal(parts[state], expected, (size_t)n * sizeof *expected);
    }
    free(expected);
    part->received += n;
    return ZERO_OK;
}

static zero_checkpoint open_step(void)
{
    zero_checkpoint c;
    if (zero_checkpoint_open(step_path, &c) != ZERO_OK) fail_msg("%s", zero_last_error());
    return c;
}

/* A rank of other groups asks for what it holds, or for all of its part as stage 0 does. */
static zero_status read_part(const zero_model *whole, const zero_state_layout *layout,
                             int rank, bool all)
{
    struct part part;
    zero_checkpoint c = open_step();
    zero_checkpoint_wish wishes[CUT_GROUPS];
    int64_t wanted = 0;
    part_open(&part, whole, layout, rank);
    for (int g = 0; g < CUT_GROUPS; g++) {
        zero_range held = zero_partition_shard(&part.partitions[g], part.d);
        if (all) held = (zero_range){0, part.model.groups[g].n_params};
        wishes[g] = (zero_checkpoint_wish){held, {true, true, true}};
        wanted += zero_range_len(held);
    }
    zero_status st = zero_checkpoint_fetch(&c, &part.model, wishes,
                                           &(zero_checkpoint_receiver){receive, &part});
    if (st == ZERO_OK) assert_int_equal(part.received, wanted);
    zero_checkpoint_close(&c);
    zero_model_destroy(&part.model);
    return st;
}

static void check_part(const zero_model *whole, const zero_state_layout *layout, int rank,
                       bool all)
{
    if (read_part(whole, layout, rank, all) != ZERO_OK)
        fail_msg("rank %d of %d in %d: %s", rank, layout->n_ranks, layout->tp,
                 zero_last_error());
}

static void check_sound(void)
{
    zero_checkpoint c = open_step();
    if (zero_checkpoint_verify(&c) != ZERO_OK) fail_msg("%s", zero_last_error());
    zero_checkpoint_close(&c);
}

static const zero_state_layout layouts[] = {
    {ZERO_PARTITION_SLICE, 4, 2, 4}, {ZERO_PARTITION_SLICE, 1, 1, 1},
    {ZERO_PARTITION_OWNER, 4, 4, 4}, {ZERO_PARTITION_SLICE, 3, 3, 6},
    {ZERO_PARTITION_OWNER, 6, 2, 2}, {ZERO_PARTITION_SLICE, 3, 1, 1},
    {ZERO_PARTITION_SLICE, 2, 1, 8},
};

static void any_groups_read_what_any_others_wrote(void **state)
{
    (void)state;
    for (size_t from = 0; from < COUNT(layouts); from++) {
        zero_model whole;
        int64_t times = from < 2 ? TIMES : 1; /* to save time */
        assert_int_equal(cut_model_describe_long(times, &whole), ZERO_OK);
        write_checkpoint(&whole, &layouts[from]);
        check_sound();
        for (size_t to = 0; to < COUNT(layouts); to++)
            for (int rank = 0; rank < layouts[to].n_ranks; rank++)
                check_part(&whole, &layouts[to], rank, false);
        zero_model_destroy(&whole);
    }
}

/* Also where a row of columns lies in four shards, or part of a rank's row in one. */
static void each_extent_is_read_once(void **state)
{
    (void)state;
    const zero_state_layout wide = {ZERO_PARTITION_SLICE, 8, 4, 4},
                            alone = {ZERO_PARTITION_SLICE, 1, 1, 1};
    zero_model whole;
    assert_int_equal(cut_model_describe_long(TIMES, &whole), ZERO_OK);
    uint64_t data = (uint64_t)whole.n_params * ZERO_STATES * sizeof(float);
    const uint64_t headers = 1 << 20; /* and the manifest; extents are longer */
    write_checkpoint(&whole, &wide);
    bytes_read = 0;
    check_part(&whole, &alone, 0, true);
    assert_true(bytes_read > data && bytes_read < data + headers);

    write_checkpoint(&whole, &alone);
    bytes_read = 0;
    check_part(&whole, &wide, 3, true);
    assert_true(bytes_read < data + headers);
    zero_model_destroy(&whole);
}

static void whole_tensors_are_read_whatever_groups_wrote_them(void **state)
{
    (void)state;
    zero_model whole;
    assert_int_equal(cut_model_describe(&whole), ZERO_OK);
    for (size_t from = 0; from < 4; from++) {
        write_checkpoint(&whole, &layouts[from]);
        zero_checkpoint c = open_step();
        for (int i = 0; i < whole.n_tensors; i++) {
            int64_t n = whole.tensors[i].rows * whole.tensors[i].cols, begin = n / 3;
            float *got = malloc((size_t)n * sizeof *got);
            assert_non_null(got);
            assert_int_equal(
                zero_checkpoint_tensor(&c, i, ZERO_STATE_VARIANCE, begin, n, got), ZERO_OK);
            for (int64_t at = begin; at < n; at++)
                if (got[at - begin] != value(i, ZERO_STATE_VARIANCE, at))
                    fail_msg("%s: element %lld", whole.tensors[i].name, (long long)at);
            free(got);
        }
        zero_checkpoint_close(&c);
    }
    zero_model_destroy(&whole);
}

/* ---- versions ---- */

/* Where a text begins within bytes[len]; NULL: nowhere. */
static const unsigned char *find_text(const unsigned char *bytes, size_t len,
                                      const char *text)
{
    size_t n = strlen(text);
    for (size_t at = 0; at + n <= len; at++)
        if (memcmp(bytes + at, text, n) == 0) return bytes + at;
    return NULL;
}

static bool has_text(const char *text)
{
    zero_checkpoint c = open_step();
    bool has = find_text(c.text.bytes, c.text.len, text) != NULL;
    zero_checkpoint_close(&c);
    return has;
}

static void a_model_that_is_not_shared_is_written_as_version_1(void **state)
{
    (void)state;
    zero_model whole;
    assert_int_equal(cut_model_describe(&whole), ZERO_OK);
    write_checkpoint(&whole, &layouts[5]);
    assert_true(has_text("\"version\": 1,") && !has_text("\"tp\""));
    assert_true(has_text("[\"h.qkv\",300,288,1]"));
    write_checkpoint(&whole, &layouts[0]);
    assert_true(has_text("\"version\": 2,"));
    assert_true(has_text("\"tp\": {\"size\":2,\"slices\":4}"));
    assert_true(has_text("[\"h.qkv\",300,288,1,\"cols\",3]"));
    assert_true(has_text("[\"h.proj\",96,733,1,\"rows\",1]"));
    assert_true(has_text("[\"h.gain\",1,96,1,\"none\",1]"));
    zero_model_destroy(&whole);
}

/* ---- damage ---- */

static void flip(const char *name, uint64_t at)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", step_path, name);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    int byte = fgetc(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_true(fputc(byte ^ 4, f) != EOF);
    assert_int_equal(fclose(f), 0);
}

static void check_names(const char *file, const char *tensor)
{
    if (!strstr(zero_last_error(), file) || !strstr(zero_last_error(), tensor))
        fail_msg("expected %s and %s in: %s", file, tensor, zero_last_error());
}

/* Some rank that loads finds it, and so does who verifies. */
static void check_damage(const zero_model *whole, const zero_state_layout *to,
                         const char *file, const char *tensor)
{
    int found = 0;
    zero_checkpoint c = open_step();
    assert_int_equal(zero_checkpoint_verify(&c), ZERO_ERR_FORMAT);
    check_names(file, tensor);
    zero_checkpoint_close(&c);
    for (int rank = 0; rank < to->n_ranks; rank++) {
        zero_status st = read_part(whole, to, rank, false);
        if (st == ZERO_OK) continue;
        assert_int_equal(st, ZERO_ERR_FORMAT);
        check_names(file, tensor);
        found++;
    }
    assert_true(found > 0);
}

static void a_flipped_bit_in_any_shard_is_found_and_named(void **state)
{
    (void)state;
    const zero_state_layout from = layouts[0];
    zero_model whole;
    assert_int_equal(cut_model_describe(&whole), ZERO_OK);
    write_checkpoint(&whole, &from);
    for (int rank = 0; rank < from.n_ranks; rank++) {
        const zero_shard_reader *shard;
        char name[64], tensor[ZERO_EXTENT_NAME];
        zero_checkpoint c = open_step();
        assert_int_equal(zero_checkpoint_shard(&c, rank, &shard), ZERO_OK);
        const zero_safetensors_entry *e =
            &shard->header.entries[rank * 5 % shard->header.n];
        uint64_t at = (e->begin + e->end) / 2;
        snprintf(tensor, sizeof tensor, "%s", e->name);
        zero_checkpoint_close(&c);
        zero_shard_name(rank, from.n_ranks, name);
        flip(name, at);
        for (size_t to = 0; to < 4; to++) check_damage(&whole, &layouts[to], name, tensor);
        flip(name, at);
    }
    check_sound();
    zero_model_destroy(&whole);
}

/* ---- forgery ---- */

static const struct {
    const char *find, *replace, *text;
} lies[] = {
    {"\"version\": 2", "\"version\": 1", "tp"},
    {"\"version\": 2", "\"version\": 3", "a checkpoint of version 3"},
    {" \"tp\": {\"size\":2,\"slices\":4},\n", "", "\"tp\" is missing"},
    {"\"size\":2", "\"size\":1", "bytes, but the"},
    {"\"size\":2", "\"size\":4", "bytes, but the"},
    {"\"size\":2", "\"size\":3", "TP groups of 3 ranks"},
    {"\"size\":2", "\"size\":0", "\"size\""},
    {"\"size\":2", "\"size\":-2", "\"size\""},
    {"\"size\":2", "\"size\":4294967298", "\"size\""},
    {"\"slices\":4", "\"slices\":1", "\"slices\""},
    {"\"slices\":4", "\"slices\":3", "3 slices"},
    {"\"slices\":4", "\"slices\":6", "6 slices"},
    {"\"slices\":4", "\"slices\":4096", "cannot be cut"},
    {"\"slices\":4", "\"slices\":9223372036854775807", "\"slices\""},
    {"\"slices\":4", "\"slices\":4,\"x\":1", "no such key"},
    {"288,1,\"cols\",3]", "288,1]", "cut, parts"},
    {"288,1,\"cols\",3]", "288,1,\"cols\",3,0]", "cut, parts"},
    {"288,1,\"cols\",3]", "288,1,\"cols\",\"3\"]", "cut, parts"},
    {"288,1,\"cols\",3]", "288,1,\"diagonals\",3]", "cut, parts"},
    {"288,1,\"cols\",3]", "288,1,null,3]", "cut, parts"},
    {"288,1,\"cols\",3]", "288,1,\"rows\",3]", "cut, parts"},
    {"288,1,\"cols\",3]", "288,1,\"cols\",0]", "cut, parts"},
    {"288,1,\"cols\",3]", "288,1,\"cols\",-3]", "cut, parts"},
    {"288,1,\"cols\",3]", "288,1,\"cols\",5]", "'h.qkv'"},
    {"288,1,\"cols\",3]", "288,1,\"cols\",144]", "'h.qkv'"},
    {"288,1,\"cols\",3]", "288,1,\"cols\",4294967299]", "cut, parts"},
    {"288,1,\"cols\",3]", "288,1,\"none\",1]", NULL},
    {"\"h.qkv\"", "\"h@0/2\"", "an '@'"},
    {"[\"z\",1003,96", "[\"z\",4611686018427387,96", "cannot be cut by rows"},
};

/* The manifest with the first `find` replaced and a right last line, read and verified. */
static zero_status verify_forged(const zero_bytes *good, const char *find,
                                 const char *replace)
{
    size_t body = good->len - (ZERO_MANIFEST_TAIL - 1);
    const unsigned char *at = find_text(good->bytes, body, find);
    char tail[ZERO_MANIFEST_TAIL];
    zero_bytes text = {0};
    zero_checkpoint c;
    if (!at) fail_msg("'%s' is missing", find);
    size_t before = (size_t)(at - good->bytes), skip = before + strlen(find);
    assert_int_equal(zero_bytes_append(&text, good->bytes, before), ZERO_OK);
    assert_int_equal(zero_bytes_append(&text, replace, strlen(replace)), ZERO_OK);
    assert_int_equal(zero_bytes_append(&text, good->bytes + skip, body - skip), ZERO_OK);
    zero_manifest_tail(text.bytes, text.len, tail);
    assert_int_equal(zero_bytes_append(&text, tail, sizeof tail - 1), ZERO_OK);
    zero_status st = zero_checkpoint_open_told(step_path, text.bytes, text.len, &c);
    if (st == ZERO_OK) {
        st = zero_checkpoint_verify(&c);
        zero_checkpoint_close(&c);
    }
    zero_bytes_destroy(&text);
    return st;
}

/* Cuts that give shards extents of other lengths or names are noticed here; others by the digest of
 * what was loaded. */
static void a_forged_manifest_of_groups_is_refused(void **state)
{
    (void)state;
    zero_model whole;
    zero_bytes good = {0};
    char path[256];
    assert_int_equal(cut_model_describe(&whole), ZERO_OK);
    write_checkpoint(&whole, &layouts[0]);
    snprintf(path, sizeof path, "%s/" ZERO_MANIFEST_NAME, step_path);
    assert_int_equal(zero_bytes_read(&good, path), ZERO_OK);
    assert_int_equal(verify_forged(&good, "a test's", "another's"), ZERO_OK);
    for (size_t i = 0; i < COUNT(lies); i++) {
        zero_status st = verify_forged(&good, lies[i].find, lies[i].replace);
        if (st != ZERO_ERR_FORMAT) fail_msg("%s: status %d", lies[i].replace, (int)st);
        if (lies[i].text && !strstr(zero_last_error(), lies[i].text))
            fail_msg("%s: expected '%s' in: %s", lies[i].replace, lies[i].text,
                     zero_last_error());
    }
    zero_bytes_destroy(&good);
    zero_model_destroy(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_groups_read_what_any_others_wrote),
        cmocka_unit_test(each_extent_is_read_once),
        cmocka_unit_test(whole_tensors_are_read_whatever_groups_wrote_them),
        cmocka_unit_test(a_model_that_is_not_shared_is_written_as_version_1),
        cmocka_unit_test(a_flipped_bit_in_any_shard_is_found_and_named),
        cmocka_unit_test(a_forged_manifest_of_groups_is_refused),
    };
    return cmocka_run_group_tests(tests, open_place, close_place);
}
