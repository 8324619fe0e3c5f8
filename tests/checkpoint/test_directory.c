/* A directory of checkpoints is opened by all ranks, and they know that it is one. */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/directory.h"
#include "comm/watch.h"
#include "support/checkpoint_test.h"
#include "support/test_world.h"

#define PROBE ".tmp-step-00000000"

/* The warnings that rank 0 got while it opened the last directory. */
static char told[2048];

static void hear(void *arg, const char *text)
{
    size_t len = strlen(told);
    (void)arg;
    snprintf(told + len, sizeof told - len, "%s\n", text);
}

static zero_status open_within(const char *path, zero_directory_wish wish, double patience,
                               zero_checkpoint_directory *d)
{
    zero_directory_opening how = {
        .wish = wish, .patience = patience, .listener = {.tell = hear}};
    told[0] = '\0';
    return zero_checkpoint_directory_open(&world, path, &how, d);
}

static zero_status open_it(const char *path, zero_directory_wish wish,
                           zero_checkpoint_directory *d)
{
    return open_within(path, wish, 0.0, d);
}

static void says(const char *text)
{
    assert_told(text);
}

/* PLACE/NAME. */
static void in_place(const test_place *place, const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", place->path, name);
}

static void make(const test_place *place, const char *name)
{
    char path[512];
    in_place(place, name, path);
    if (test_rank == 0) assert_int_equal(mkdir(path, 0700), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static bool has(const test_place *place, const char *name)
{
    char path[512];
    MPI_Barrier(MPI_COMM_WORLD);
    in_place(place, name, path);
    return access(path, F_OK) == 0;
}

static void drop(const test_place *place, const char *name)
{
    char path[512];
    in_place(place, name, path);
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0) assert_int_equal(rmdir(path), 0);
}

TEST(all_ranks_know_what_is_published)
{
    test_place place;
    zero_checkpoint_directory d;
    test_place_open(&place);
    make(&place, "step-00000012");
    make(&place, "step-00000003");
    make(&place, ".tmp-step-00000020");
    make(&place, "step-7");
    all_ok(open_it(place.path, ZERO_DIRECTORY_MUST_EXIST, &d));
    assert_all(d.dir.is_open && d.n == 2 && d.steps[0] == 3 && d.steps[1] == 12);
    assert_all(!has(&place, PROBE));
    assert_all(!has(&place, ".tmp-step-00000020"));
    assert_all(has(&place, "step-7"));
    zero_checkpoint_directory_close(&d);
    test_place_close(&place);
}

TEST(a_missing_one_is_made_unless_it_must_exist)
{
    test_place place;
    char path[512];
    zero_checkpoint_directory d;
    test_place_open(&place);
    in_place(&place, "new", path);
    assert_all(open_it(path, ZERO_DIRECTORY_MUST_EXIST, &d) == ZERO_ERR_INVALID);
    says("new: cannot be opened as a directory: No such file or directory, so there is "
         "nothing to resume");
    assert_all(!has(&place, "new"));
    all_ok(open_it(path, ZERO_DIRECTORY_MAY_BE_NEW, &d));
    assert_all(has(&place, "new") && d.n == 0);
    zero_checkpoint_directory_close(&d);
    drop(&place, "new");
    in_place(&place, "new/deeper", path);
    assert_all(open_it(path, ZERO_DIRECTORY_MAY_BE_NEW, &d) == ZERO_ERR_INVALID);
    says("new/deeper: cannot be made");
    test_place_close(&place);
}

/* Two nodes have directories of one name: rank 0's probe is not in the other one. */
TEST(ranks_that_see_another_directory_are_found)
{
    test_place place;
    char path[512];
    zero_checkpoint_directory d;
    test_place_open(&place);
    make(&place, "first");
    make(&place, "other");
    in_place(&place, test_rank == test_size - 1 ? "other" : "first", path);
    zero_status st = open_it(path, ZERO_DIRECTORY_MAY_BE_NEW, &d);
    if (test_size == 1) {
        assert_ok(st);
        zero_checkpoint_directory_close(&d);
    } else {
        assert_all(st == ZERO_ERR_ENV && !d.dir.is_open);
        says("/other is another directory here than on rank 0: all nodes need");
    }
    assert_all(!has(&place, "first/" PROBE));
    drop(&place, "first");
    in_place(&place, test_rank == 0 ? "here" : "nowhere", path);
    st = open_it(path, ZERO_DIRECTORY_MAY_BE_NEW, &d);
    assert_all(st == (test_size == 1 ? ZERO_OK : ZERO_ERR_ENV));
    if (st == ZERO_OK) zero_checkpoint_directory_close(&d);
    assert_all(has(&place, "here") && !has(&place, "here/" PROBE));
    assert_all(!has(&place, "nowhere")); /* only rank 0 makes one */
    test_place_close(&place);
}

TEST(a_checkpoint_is_no_directory_of_them)
{
    test_place place;
    zero_checkpoint_directory d;
    test_place_open(&place);
    make(&place, "manifest.json"); /* any kind of file */
    assert_all(open_it(place.path, ZERO_DIRECTORY_MUST_EXIST, &d) == ZERO_ERR_INVALID);
    says("is a checkpoint: give the directory that it is in");
    test_place_close(&place);
}

TEST(one_group_at_a_time_has_it)
{
    test_place place;
    char holder[64];
    zero_checkpoint_directory d, second;
    test_place_open(&place);
    all_ok(open_it(place.path, ZERO_DIRECTORY_MUST_EXIST, &d));
    assert_all(has(&place, ".lock"));
    zero_status st = open_within(place.path, ZERO_DIRECTORY_MUST_EXIST, 0.6, &second);
    assert_all(st == ZERO_ERR_ENV && !second.dir.is_open);
    says(" writes checkpoints there, and did not end within 0.6 s");
    if (test_rank == 0) {
        snprintf(holder, sizeof holder, ": process %ld on ", (long)getpid());
        says(holder);
        if (!strstr(told, "waiting up to 0.6 s for process ")) fail_msg("told: %s", told);
        assert_ptr_equal(strchr(told, '\n'), told + strlen(told) - 1); /* once */
    }
    zero_checkpoint_directory_close(&d);
    assert_all(!has(&place, ".lock"));
    all_ok(open_it(place.path, ZERO_DIRECTORY_MUST_EXIST, &d));
    assert_int_equal(strlen(told), 0);
    zero_checkpoint_directory_close(&d);
    test_place_close(&place);
}

/* The holder dies while others wait. They are watched, and waiting is no stall. */
TEST(the_lock_of_one_that_ends_is_taken_over)
{
    test_place place;
    zero_checkpoint_directory d;
    zero_storage_dir dir;
    zero_lock lock;
    pid_t holder = 0;
    int has_begun[2];
    char byte = 0;
    test_place_open(&place);
    assert_int_equal(pipe(has_begun), 0);
    if (test_rank == 0) holder = fork();
    if (test_rank == 0 && holder == 0) {
        bool is_locked = zero_storage_open(place.path, &dir) == ZERO_OK &&
                         zero_lock_take(dir.fd, dir.path, &lock) == ZERO_OK &&
                         lock == ZERO_LOCK_TAKEN;
        if (write(has_begun[1], &byte, 1) == 1) sleep(is_locked ? 3 : 0);
        _exit(0); /* without a signature */
    }
    if (test_rank == 0) assert_int_equal(read(has_begun[0], &byte, 1), 1);
    close(has_begun[0]);
    close(has_begun[1]);
    all_ok(zero_watch_start(&world, 1.0));
    zero_status st = open_within(place.path, ZERO_DIRECTORY_MUST_EXIST, 60.0, &d);
    all_ok(st);
    all_ok(zero_watch_stop(&world));
    if (test_rank == 0 && !strstr(told, "waiting up to 60 s for another process, which"))
        fail_msg("told: %s", told);
    if (test_rank == 0) assert_int_equal(waitpid(holder, NULL, 0), holder);
    zero_checkpoint_directory_close(&d);
    test_place_close(&place);
}

/* Leftovers and old checkpoints that cannot be removed: a directory in them, or a link. */
TEST(what_cannot_be_removed_stays_and_is_told)
{
    test_place place;
    zero_checkpoint_directory d;
    char path[512], target[512];
    test_place_open(&place);
    make(&place, ".tmp-step-00000000"); /* the probe's name, too */
    make(&place, ".tmp-step-00000000/notes");
    make(&place, ".tmp-step-00000007");
    make(&place, ".del-step-00000004");
    make(&place, ".del-step-00000004/notes");
    make(&place, ".del-step-00000004-2");
    make(&place, "else");
    in_place(&place, ".del-step-00000005", path);
    in_place(&place, "else", target);
    if (test_rank == 0) assert_int_equal(symlink(target, path), 0);
    all_ok(open_it(place.path, ZERO_DIRECTORY_MUST_EXIST, &d));
    if (test_rank == 0) {
        assert_non_null(strstr(told, ".tmp-step-00000000/notes: cannot be removed: "));
        assert_non_null(strstr(told, ".del-step-00000004/notes: cannot be removed: "));
        assert_non_null(strstr(told, ".del-step-00000005: cannot be removed: it is a "
                                     "symbolic link"));
    }
    assert_all(!has(&place, ".tmp-step-00000007") && !has(&place, ".del-step-00000004-2"));
    assert_all(has(&place, "else") && has(&place, ".tmp-step-00000000/notes"));
    assert_all(!has(&place, ".tmp-step-00000000-2")); /* the probe's, then */
    if (test_rank == 0) assert_int_equal(unlink(path), 0);
    drop(&place, ".tmp-step-00000000/notes");
    drop(&place, ".del-step-00000004/notes");
    zero_checkpoint_directory_close(&d);
    test_place_close(&place);
}

TEST(old_checkpoints_that_stay_are_told_once)
{
    test_place place;
    char path[512];
    int64_t stuck = -1;
    zero_listener listener = {.tell = hear};
    test_place_open(&place);
    make(&place, "step-00000001");
    make(&place, "step-00000001/notes");
    make(&place, ".del-step-00000001");
    make(&place, ".del-step-00000001/notes");
    make(&place, "else");
    make(&place, "step-00000003");
    make(&place, "step-00000004");
    in_place(&place, "step-00000002", path);
    if (test_rank == 0) assert_int_equal(symlink("else", path), 0);
    told[0] = '\0';
    if (test_rank == 0) {
        assert_ok(zero_checkpoint_prune(&place.dir, 4, 1, &stuck, &listener));
        assert_non_null(strstr(told, ".del-step-00000001-2/notes: cannot be removed: "));
        assert_non_null(strstr(told, "step-00000002: cannot be removed: it is a symbolic"));
        told[0] = '\0';
        assert_ok(zero_checkpoint_prune(&place.dir, 4, 1, &stuck, &listener));
        assert_int_equal(strlen(told), 0);
        assert_int_equal(access(path, F_OK), 0); /* the link, and where it leads */
        assert_int_equal(unlink(path), 0);
    }
    assert_all(has(&place, "step-00000004") && !has(&place, "step-00000003"));
    assert_all(has(&place, ".del-step-00000001-2/notes") && !has(&place, "step-00000001"));
    drop(&place, ".del-step-00000001/notes");
    drop(&place, ".del-step-00000001-2/notes");
    test_place_close(&place);
}

/* Later names are of other runs, or of nobody: they cost none of this run's checkpoints. */
TEST(a_step_that_was_saved_stays_whatever_comes_after_it)
{
    test_place place;
    int64_t stuck = -1;
    test_place_open(&place);
    make(&place, "step-00000001");
    make(&place, "step-00000002");
    make(&place, "step-00000003");
    make(&place, "step-00000900");
    make(&place, "step-99999999");
    if (test_rank == 0) assert_ok(zero_checkpoint_prune(&place.dir, 3, 2, &stuck, NULL));
    assert_all(!has(&place, "step-00000001") && has(&place, "step-00000002") &&
               has(&place, "step-00000003"));
    assert_all(has(&place, "step-00000900") && has(&place, "step-99999999"));
    test_place_close(&place);
}

/* One rank may have no descriptors left; that is no other directory. */
TEST(a_rank_without_descriptors_says_so_once)
{
    test_place place;
    zero_checkpoint_directory d;
    struct rlimit limit, least;
    if (test_size == 1) return;
    test_place_open(&place);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    least = limit;
    least.rlim_cur = 3;
    if (test_rank == 1) assert_int_equal(setrlimit(RLIMIT_NOFILE, &least), 0);
    zero_status st = open_it(place.path, ZERO_DIRECTORY_MUST_EXIST, &d);
    if (test_rank == 1) assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_all(st == ZERO_ERR_ENV);
    says("rank 1: /");
    says(": cannot be opened as a directory: Too many open files");
    assert_null(strstr(zero_last_error(), "same directory"));
    /* Another layer adds words, and ranks agree again. */
    st = zero_agree(&world, test_rank == 0 ? ZERO_OK
                                           : zero_fail(st, "%s; more", zero_last_error()));
    assert_all(st == ZERO_ERR_ENV);
    says("rank 1: /");
    assert_null(strstr(zero_last_error(), "rank 1: rank 1"));
    test_place_close(&place);
}

/* A moved directory is noticed, and another one of its name is not taken for it. */
TEST(a_moved_directory_is_noticed)
{
    test_place place;
    char path[512], other[512];
    zero_storage_dir dir;
    test_place_open(&place);
    make(&place, "here");
    in_place(&place, "here", path);
    in_place(&place, "there", other);
    all_ok(zero_storage_open(path, &dir));
    all_ok(zero_storage_check_place(&dir));
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0) assert_int_equal(rename(path, other), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    assert_all(zero_storage_check_place(&dir) == ZERO_ERR_ENV);
    says("here: nothing is there any more: the directory that was opened");
    make(&place, "here");
    assert_all(zero_storage_check_place(&dir) == ZERO_ERR_ENV);
    says("here: it is not there any more");
    zero_storage_close(&dir);
    test_place_close(&place);
}
