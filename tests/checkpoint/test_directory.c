/* A directory of checkpoints is opened by all ranks, and they know that it is one. */
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/directory.h"
#include "support/checkpoint_test.h"
#include "support/test_world.h"

#define PROBE ".tmp-step-00000000"

static void says(const char *text)
{
    if (!strstr(zero_last_error(), text))
        fail_msg("'%s' lacks '%s'", zero_last_error(), text);
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

static void all_ranks_know_what_is_published(void **state)
{
    (void)state;
    test_place place;
    zero_checkpoint_directory d;
    test_place_open(&place);
    make(&place, "step-00000012");
    make(&place, "step-00000003");
    make(&place, ".tmp-step-00000020");
    make(&place, "step-7");
    assert_all(zero_checkpoint_directory_open(&world, place.path, ZERO_DIRECTORY_MUST_EXIST,
                                              &d) == ZERO_OK);
    assert_all(d.dir.is_open && d.n == 2 && d.steps[0] == 3 && d.steps[1] == 12);
    assert_all(!has(&place, PROBE));
    assert_all(!has(&place, ".tmp-step-00000020"));
    assert_all(has(&place, "step-7"));
    zero_checkpoint_directory_close(&d);
    test_place_close(&place);
}

static void a_missing_one_is_made_unless_it_must_exist(void **state)
{
    (void)state;
    test_place place;
    char path[512];
    zero_checkpoint_directory d;
    test_place_open(&place);
    in_place(&place, "new", path);
    assert_all(zero_checkpoint_directory_open(&world, path, ZERO_DIRECTORY_MUST_EXIST,
                                              &d) == ZERO_ERR_INVALID);
    says("new: cannot be opened as a directory: No such file or directory, so there is "
         "nothing to resume");
    assert_all(!has(&place, "new"));
    assert_all(zero_checkpoint_directory_open(&world, path, ZERO_DIRECTORY_MAY_BE_NEW,
                                              &d) == ZERO_OK);
    assert_all(has(&place, "new") && d.n == 0);
    zero_checkpoint_directory_close(&d);
    drop(&place, "new");
    in_place(&place, "new/deeper", path);
    assert_all(zero_checkpoint_directory_open(&world, path, ZERO_DIRECTORY_MAY_BE_NEW,
                                              &d) == ZERO_ERR_INVALID);
    says("new/deeper: cannot be made");
    test_place_close(&place);
}

/* Two nodes have directories of one name: rank 0's probe is not in the other one. */
static void ranks_that_see_another_directory_are_found(void **state)
{
    (void)state;
    test_place place;
    char path[512];
    zero_checkpoint_directory d;
    test_place_open(&place);
    make(&place, "first");
    make(&place, "other");
    in_place(&place, test_rank == test_size - 1 ? "other" : "first", path);
    zero_status st =
        zero_checkpoint_directory_open(&world, path, ZERO_DIRECTORY_MAY_BE_NEW, &d);
    if (test_size == 1) {
        assert_int_equal(st, ZERO_OK);
        zero_checkpoint_directory_close(&d);
    } else {
        assert_all(st == ZERO_ERR_ENV && !d.dir.is_open);
        says("/other is another directory here than on rank 0, or missing");
    }
    assert_all(!has(&place, "first/" PROBE));
    drop(&place, "first");
    in_place(&place, test_rank == 0 ? "here" : "nowhere", path);
    st = zero_checkpoint_directory_open(&world, path, ZERO_DIRECTORY_MAY_BE_NEW, &d);
    assert_all(st == (test_size == 1 ? ZERO_OK : ZERO_ERR_ENV));
    if (st == ZERO_OK) zero_checkpoint_directory_close(&d);
    assert_all(has(&place, "here") && !has(&place, "here/" PROBE));
    assert_all(!has(&place, "nowhere")); /* only rank 0 makes one */
    test_place_close(&place);
}

static void a_checkpoint_is_no_directory_of_them(void **state)
{
    (void)state;
    test_place place;
    zero_checkpoint_directory d;
    test_place_open(&place);
    make(&place, "manifest.json"); /* any kind of file */
    assert_all(zero_checkpoint_directory_open(&world, place.path, ZERO_DIRECTORY_MUST_EXIST,
                                              &d) == ZERO_ERR_INVALID);
    says("is a checkpoint: give the directory that it is in");
    test_place_close(&place);
}

static void one_group_at_a_time_has_it(void **state)
{
    (void)state;
    test_place place;
    zero_checkpoint_directory d, second;
    test_place_open(&place);
    assert_all(zero_checkpoint_directory_open(&world, place.path, ZERO_DIRECTORY_MUST_EXIST,
                                              &d) == ZERO_OK);
    assert_all(zero_checkpoint_directory_open(&world, place.path, ZERO_DIRECTORY_MUST_EXIST,
                                              &second) == ZERO_ERR_INVALID);
    says("another process writes checkpoints there");
    assert_all(!second.dir.is_open);
    zero_checkpoint_directory_close(&d);
    assert_all(zero_checkpoint_directory_open(&world, place.path, ZERO_DIRECTORY_MUST_EXIST,
                                              &d) == ZERO_OK);
    zero_checkpoint_directory_close(&d);
    test_place_close(&place);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_know_what_is_published),
        cmocka_unit_test(a_missing_one_is_made_unless_it_must_exist),
        cmocka_unit_test(ranks_that_see_another_directory_are_found),
        cmocka_unit_test(a_checkpoint_is_no_directory_of_them),
        cmocka_unit_test(one_group_at_a_time_has_it),
    };
    test_begin(&argc, &argv);
    return test_end(cmocka_run_group_tests(tests, set_up, tear_down));
}
