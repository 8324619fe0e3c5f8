/* The contents of a checkpoint's files, and refusals that all ranks share. */
#include "support/resume_test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "io/bytes.h"

/* ---- what is in the files ---- */

/* Every group fits into one granule: all ranks but the first own nothing. */
static const zero_shape smallest = {
    .layers = 1, .hidden = 1, .heads = 1, .seq = 2, .vocab = 3, .seed = 5};

TEST(ranks_that_own_nothing_write_valid_empty_shards)
{
    for (int scheme = ZERO_PARTITION_SLICE; scheme <= ZERO_PARTITION_OWNER; scheme++) {
        test_place place;
        test_run run;
        char path[400];
        test_setup setup = test_setup_of(2, ZERO_BF16);
        setup.shape = smallest;
        setup.plan.partition = (zero_partition_scheme)scheme;
        setup.plan.collectives = ZERO_ALGORITHM_P2P;
        test_place_open(&place);
        course expected = never_stopped(&setup, test_size, &place);
        setup.plan.stage = 3;
        check_resumed(&setup, test_size, &place, &expected);
        setup = as_loader(setup);
        test_run_open(&run, &setup, 1);
        test_load(&run, &place, SAVED);
        assert_all(test_same(test_run_digest(&run), expected.at_save));
        test_run_close(&run);

        zero_checkpoint c;
        test_step_path(&place, SAVED, path);
        all_ok(zero_checkpoint_open(path, NULL, &c));
        all_ok(zero_checkpoint_verify(&c));
        assert_all(c.manifest.table.layout.n_ranks == test_size);
        if (scheme == ZERO_PARTITION_SLICE && test_rank > 0) {
            const zero_shard_reader *shard;
            assert_ok(zero_checkpoint_shard(&c, test_rank, &shard));
            assert_int_equal(shard->header.n, 0);
        }
        zero_checkpoint_close(&c);
        test_place_close(&place);
    }
}

static const char leak[] = "padding!";

static void fill_padding(const test_run *run, int g, int buffer)
{
    const zero_buffer *b = &run->engine.schedule.buffers[buffer];
    char *x = zero_runner_buffer(&run->engine.runner, buffer);
    int64_t held = (int64_t)b->bytes / (int64_t)sizeof(float);
    int64_t inside = run->model.groups[g].n_params - b->begin;
    if (inside < 0) inside = 0;
    for (int64_t i = inside; i < held; i++) memcpy(x + 4 * i, leak + 4 * (i % 2), 4);
}

static zero_status look_for_leak(void *arg, const char *name)
{
    const zero_storage_dir *dir = arg;
    zero_file file;
    zero_bytes text = {0};
    ZERO_TRY(zero_file_open_in(dir, name, &file));
    ZERO_TRY(zero_bytes_reserve(&text, file.bytes));
    ZERO_TRY(zero_file_read(&file, 0, text.bytes, file.bytes));
    assert_true(file.bytes > 64);
    for (uint64_t i = 0; i + 4 <= file.bytes; i++)
        if (memcmp(text.bytes + i, leak, 4) == 0 ||
            memcmp(text.bytes + i, leak + 4, 4) == 0)
            fail_msg("%s: padding at byte %d", file.path, (int)i);
    zero_bytes_destroy(&text);
    zero_file_close(&file);
    return ZERO_OK;
}

TEST(no_byte_of_padding_is_in_any_file)
{
    for (size_t k = 0; k < COUNT(layouts); k++) {
        test_place place;
        test_run run;
        char name[ZERO_CHECKPOINT_NAME];
        zero_storage_dir inner;
        test_setup setup = with_layout(&layouts[k], ZERO_BF16);
        test_place_open(&place);
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, SAVED);
        all_ok(zero_engine_settle(&run.engine));
        test_digest before = test_run_digest(&run);
        for (int g = 0; g < run.model.n_groups; g++) {
            const zero_group_state *s = &run.engine.schedule.groups[g];
            fill_padding(&run, g, s->master);
            fill_padding(&run, g, s->state[0]);
            fill_padding(&run, g, s->state[1]);
        }
        assert_all(test_same(test_run_digest(&run), before));
        test_save(&run, &place, SAVED);
        zero_checkpoint_name(SAVED, name);
        all_ok(zero_storage_enter(&place.dir, name, &inner));
        all_ok(zero_storage_list(&inner, look_for_leak, &inner));
        zero_storage_close(&inner);
        test_run_close(&run);
        test_place_close(&place);
    }
}

static zero_status check_private(void *arg, const char *name)
{
    const zero_storage_dir *dir = arg;
    struct stat info;
    assert_int_equal(fstatat(dir->fd, name, &info, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    return ZERO_OK;
}

/* Root may do anything, so root does this as the user nobody. */
TEST(files_are_private_whatever_the_umask)
{
    const uid_t nobody = 65534;
    bool is_root = geteuid() == 0;
    static const mode_t masks[] = {0, 022, 0777};
    test_place place;
    test_run run;
    test_setup setup = test_setup_of(1, ZERO_FP32);
    test_place_open(&place);
    test_run_open(&run, &setup, test_size);
    if (is_root) assert_all(chown(place.path, nobody, (gid_t)-1) == 0);
    for (size_t k = 0; k < COUNT(masks); k++) {
        char name[ZERO_CHECKPOINT_NAME];
        zero_storage_dir inner;
        struct stat info;
        mode_t old = umask(masks[k]);
        if (is_root) assert_int_equal(seteuid(nobody), 0);
        test_save(&run, &place, (int64_t)k);
        if (is_root) assert_int_equal(seteuid(0), 0);
        umask(old);
        zero_checkpoint_name((int64_t)k, name);
        all_ok(zero_storage_enter(&place.dir, name, &inner));
        assert_all(fstat(inner.fd, &info) == 0 && (info.st_mode & 07777) == 0700);
        all_ok(zero_storage_list(&inner, check_private, &inner));
        zero_storage_close(&inner);
    }
    test_run_close(&run);
    test_place_close(&place);
}

/* ---- what is refused, on all ranks alike ---- */

static void refuses_load(test_run *run, const char *path, zero_status code,
                         const char *text)
{
    zero_status st = test_try_load(run, path);
    assert_all(st == code);
    assert_told(text);
}

TEST(another_model_is_refused_naming_the_first_tensor_that_differs)
{
    test_place place;
    test_run run;
    char path[400];
    test_setup setup = test_setup_of(1, ZERO_FP32);
    test_place_open(&place);
    test_step_path(&place, SAVED, path);
    never_stopped(&setup, test_size, &place);

    setup.shape.vocab++;
    test_run_open(&run, &setup, test_size);
    refuses_load(&run, path, ZERO_ERR_INVALID,
                 "its tensor 0 is 'wte.weight' [50, 24] of group 0, this model's "
                 "'wte.weight' [51, 24]");
    test_run_close(&run);
    setup.shape.vocab--;
    setup.shape.layers++;
    test_run_open(&run, &setup, test_size);
    refuses_load(&run, path, ZERO_ERR_INVALID, "of another model");
    test_run_close(&run);
    test_place_close(&place);
}

TEST(a_step_is_saved_once_and_what_is_there_stays)
{
    test_place place;
    test_run run;
    int64_t *steps;
    int n;
    test_setup setup = test_setup_of(2, ZERO_FP32);
    test_place_open(&place);
    test_run_open(&run, &setup, test_size);
    test_save(&run, &place, 1);
    test_digest saved = test_run_digest(&run);
    test_run_steps(&run, 0, 1);
    assert_all(test_try_save(&run, &place, 1) == ZERO_ERR_INVALID);
    assert_told("exists: nothing was written");
    test_save(&run, &place, 2);
    all_ok(zero_checkpoint_list(&place.dir, &steps, &n));
    assert_all(n == 2 && steps[0] == 1 && steps[1] == 2);
    free(steps);
    test_load(&run, &place, 1);
    assert_all(test_same(test_run_digest(&run), saved));
    test_run_close(&run);
    test_place_close(&place);
}

static void spoil(const char *path, off_t at)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 0x10;
    assert_true(pwrite(fd, &byte, 1, at) == 1 && close(fd) == 0);
}

/* Damage in a shard that one rank reads is the verdict of all ranks, in the same words. */
TEST(a_shard_that_one_rank_finds_broken_is_refused_by_all)
{
    test_setup setup = test_setup_of(2, ZERO_FP32);
    for (int rank = 0; rank < test_size; rank++) {
        test_place place;
        test_run run;
        struct stat info;
        char path[400], shard[64], file[500];
        test_place_open(&place);
        test_step_path(&place, SAVED, path);
        never_stopped(&setup, test_size, &place);
        zero_shard_name(rank, test_size, shard);
        snprintf(file, sizeof file, "%s/%s", path, shard);
        assert_all(stat(file, &info) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (test_rank == 0) spoil(file, info.st_size - 1);
        MPI_Barrier(MPI_COMM_WORLD);
        test_run_open(&run, &setup, test_size);
        refuses_load(&run, path, ZERO_ERR_FORMAT, shard);
        assert_told(".variance (bytes ");
        test_run_close(&run);
        test_place_close(&place);
    }
}
