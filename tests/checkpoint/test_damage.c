/* A checkpoint with any damaged file is refused, the message names the file and the damage, and
 * nothing crashes. */
#define TEST_HAS_MAIN
#include "support/damage_test.h"

#include <sys/stat.h>

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

static void flip_bytes(victim *v, size_t begin, size_t end)
{
    int fd = open_victim(v);
    for (size_t at = begin; at < end; at += 1 + draw(2 * every() - 1))
        flip(v, fd, at, NULL);
    close(fd);
}

TEST(a_flipped_bit_in_a_small_file_is_found_and_the_file_named)
{
    const char *const names[] = {ZERO_MANIFEST_NAME, ZERO_TOKENIZER_NAME};
    for (size_t k = 0; k < COUNT(names); k++) {
        victim v = choose(&run_place, 5, names[k]);
        flip_bytes(&v, 0, v.good.len);
        release(&v);
    }
    check_sound(&run_place, 5);
}

/* The header's length, its JSON, its spaces. */
TEST(a_flipped_bit_in_a_header_is_found_and_the_file_named)
{
    for (int rank = 0; rank < test_size; rank++) {
        victim v = choose_shard(&run_place, 5, rank, test_size);
        flip_bytes(&v, 0, header_end(&v));
        release(&v);
    }
    check_sound(&run_place, 5);
}

/* The first byte, the last, and one between. */
static void flip_in_tensors(const victim *v, const zero_shard_reader *shard)
{
    int fd = open_victim(v);
    for (int i = 0; i < shard->header.n; i++) {
        const zero_safetensors_entry *e = &shard->header.entries[i];
        uint64_t bytes = e->end - e->begin;
        flip(v, fd, e->begin, e->name);
        flip(v, fd, e->begin + draw(bytes), e->name);
        flip(v, fd, e->end - 1, e->name);
    }
    close(fd);
}

TEST(a_flipped_bit_of_data_is_found_and_file_and_tensor_named)
{
    char path[400];
    zero_checkpoint c;
    test_step_path(&run_place, 5, path);
    assert_ok(zero_checkpoint_open(path, NULL, &c));
    for (int rank = 0; rank < test_size; rank++) {
        const zero_shard_reader *shard;
        victim v = choose_shard(&run_place, 5, rank, test_size);
        assert_ok(zero_checkpoint_shard(&c, rank, &shard));
        assert_true(shard->header.n > 0);
        assert_int_equal(shard->header.entries[0].begin, header_end(&v));
        assert_int_equal(shard->header.entries[shard->header.n - 1].end, v.good.len);
        flip_in_tensors(&v, shard);
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

/* Lengths fall, because truncating never has to write. */
static void cut(victim *v, size_t all_below)
{
    for (size_t len = v->good.len; len-- > 0;)
        if (draw(len < all_below ? every() : 50 * every()) == 0) check_length(v, len);
    restore(v);
    check_length(v, v->good.len + 1); /* longer by a zero */
    check_length(v, v->good.len + 1000000);
}

TEST(a_file_cut_at_any_header_byte_empty_or_longer_is_refused)
{
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

/* ---- files of other checkpoints ---- */

static void check_foreign(const char *what, victim *v, victim *foreign)
{
    put(v->path, foreign->good.bytes, foreign->good.len);
    check_refused(what, name_of(v), NULL);
    restore(v);
    release(foreign);
}

TEST(shards_of_another_rank_step_run_or_rank_count_are_refused)
{
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

/* A whole manifest with right checksums, but of other shards or another step. */
TEST(manifests_of_others_are_refused)
{
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

TEST(directories_that_were_swapped_are_refused)
{
    char path[400];
    swap_steps();
    check_refused("swapped", "its manifest is that of step 10", "was renamed");
    test_step_path(&run_place, 5, path);
    strcat(path, "//");
    assert_int_equal(verify(path), ZERO_ERR_FORMAT);
    swap_steps();
    assert_ok(verify(path));
}

/* ---- anything but a file ---- */

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

TEST(anything_but_a_file_is_refused_at_once)
{
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

int main(int argc, char **argv)
{
    int failed = 0;
    test_begin(&argc, &argv);
    damage_begin();
    if (test_rank == 0) failed = run_here(NULL, NULL);
    damage_end();
    return test_end(failed);
}
