/* Damage of a shared model's checkpoint is found by some rank of any groups, and named; manifests that
 * lie about groups and cuts are refused. */
#define TEST_HAS_MAIN
#include "support/shared_checkpoint.h"
#include "support/table.h"

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

/* Verifying finds it, and loading does on some rank. */
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

TEST(a_flipped_bit_in_any_shard_is_found_and_named)
{
    const zero_state_layout from = layouts[0];
    zero_model whole;
    assert_ok(cut_model_describe(&whole));
    write_checkpoint(&whole, &from);
    for (int rank = 0; rank < from.n_ranks; rank++) {
        const zero_shard_reader *shard;
        char name[64], tensor[ZERO_EXTENT_NAME];
        zero_checkpoint c = open_step();
        assert_ok(zero_checkpoint_shard(&c, rank, &shard));
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
    assert_ok(zero_bytes_append(&text, good->bytes, before));
    assert_ok(zero_bytes_append(&text, replace, strlen(replace)));
    assert_ok(zero_bytes_append(&text, good->bytes + skip, body - skip));
    zero_manifest_tail(text.bytes, text.len, tail);
    assert_ok(zero_bytes_append(&text, tail, sizeof tail - 1));
    zero_status st = zero_checkpoint_open(step_path, &text, &c);
    if (st == ZERO_OK) {
        st = zero_checkpoint_verify(&c);
        zero_checkpoint_close(&c);
    }
    zero_bytes_destroy(&text);
    return st;
}

/* Cuts that give shards extents of other lengths or names are noticed here; others by the digest of
 * what was loaded. */
TEST(a_forged_manifest_of_groups_is_refused)
{
    zero_model whole;
    zero_bytes good = {0};
    char path[256];
    assert_ok(cut_model_describe(&whole));
    write_checkpoint(&whole, &layouts[0]);
    snprintf(path, sizeof path, "%s/" ZERO_MANIFEST_NAME, step_path);
    assert_ok(zero_bytes_read(&good, path));
    assert_ok(verify_forged(&good, "a test's", "another's"));
    for (test_table t = table_open("checkpoint/lies_of_parts.txt"); table_next(&t);)
        assert_fails(verify_forged(&good, t.field[0], t.field[1]), ZERO_ERR_FORMAT,
                     t.field[2]);
    zero_bytes_destroy(&good);
    zero_model_destroy(&whole);
}

int main(void)
{
    return run_here(open_place, close_place);
}
