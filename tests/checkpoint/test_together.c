/* The ranks of a node read each extent of a checkpoint once, whatever they hold of it, and all hear
 * of damage that one of them finds. pread() and zero_window_init() are wrapped (CMakeLists.txt). */
#define TEST_HAS_MAIN
#include "support/resume_test.h"

#include <fcntl.h>

#include "comm/window.h"

/* ---- what is read ---- */

static int64_t bytes_read; /* of extents: a header is read at 0 and at 8 */

ssize_t __real_pread(int fd, void *data, size_t n, off_t at);
ssize_t __real_pread64(int fd, void *data, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *data, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t at);

ssize_t __wrap_pread(int fd, void *data, size_t n, off_t at)
{
    ssize_t got = __real_pread(fd, data, n, at);
    if (at > 8) bytes_read += got;
    return got;
}

ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t at)
{
    ssize_t got = __real_pread64(fd, data, n, at);
    if (at > 8) bytes_read += got;
    return got;
}

/* ---- a node without shared memory ---- */

static int windows_left = -1; /* that can still be made; -1: all can */

zero_status __real_zero_window_init(zero_window *window, zero_comm *comm, int n,
                                    const size_t bytes[]);
zero_status __wrap_zero_window_init(zero_window *window, zero_comm *comm, int n,
                                    const size_t bytes[]);

zero_status __wrap_zero_window_init(zero_window *window, zero_comm *comm, int n,
                                    const size_t bytes[])
{
    if (windows_left == 0) return zero_fail(ZERO_ERR_ENV, "no memory to share");
    if (windows_left > 0) windows_left--;
    return __real_zero_window_init(window, comm, n, bytes);
}

/* ---- loads ---- */

static const int any_windows = -1;

/* The first n ranks load the checkpoint, and can make this many windows. Returns the bytes of
 * extents that they read, all together. */
static int64_t load_with(const test_setup *setup, int n, int windows,
                         const test_place *place, const course *saved)
{
    test_run run;
    int64_t all;
    test_setup other = as_loader(*setup);
    other.awaits_states = true;
    test_run_open(&run, &other, n);
    bytes_read = 0;
    windows_left = windows;
    test_load(&run, place, SAVED);
    windows_left = any_windows;
    MPI_Allreduce(&bytes_read, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    assert_all(test_same(test_run_digest(&run), saved->at_save));
    test_run_close(&run);
    return all;
}

static int64_t bytes_of(const test_setup *setup)
{
    zero_model model;
    assert_ok(zero_model_build(&setup->shape, &model));
    int64_t n = model.n_params;
    zero_model_destroy(&model);
    return ZERO_STATES * (int64_t)sizeof(float) * n;
}

TEST(every_extent_is_read_once_per_node_in_any_stage)
{
    for (int from = 1; from <= test_size; from++)
        for (size_t k = 0; k < COUNT(layouts); k++) {
            test_place place;
            test_place_open(&place);
            test_setup setup = with_layout(&layouts[k], ZERO_BF16);
            course saved = never_stopped(&setup, from, &place);
            for (int n = 1; n <= test_size; n++)
                for (int stage = 0; stage <= 3; stage++) {
                    test_setup to = test_setup_of(stage, ZERO_FP32);
                    int64_t once = bytes_of(&to);
                    assert_all(load_with(&to, n, any_windows, &place, &saved) == once);
                    if (n < 2) continue;
                    to.fake_nodes = 2;
                    to.plan.collectives = ZERO_ALGORITHM_P2P;
                    int64_t twice = load_with(&to, n, any_windows, &place, &saved);
                    assert_all(stage > 0 ? twice >= once : twice == 2 * once);
                }
            test_place_close(&place);
        }
}

/* Several extents of a tensor, more batches than readers, and batches as long as a slot. */
TEST(a_long_tensor_is_read_once_too)
{
    test_place place;
    test_place_open(&place);
    test_setup setup = test_setup_of(3, ZERO_FP32);
    setup.shape = (zero_shape){
        .layers = 1, .hidden = 64, .heads = 2, .seq = 4, .vocab = 80000, .seed = 5};
    setup.plan.micro_batch = 1;
    course saved = never_stopped(&setup, test_size - 1, &place);
    for (int stage = 0; stage <= 3; stage += 3)
        for (int n = 1; n <= test_size; n++) {
            setup.plan.stage = stage;
            assert_all(load_with(&setup, n, any_windows, &place, &saved) ==
                       bytes_of(&setup));
        }
    test_place_close(&place);
}

/* Without the window of wishes, or without that of slots, each rank reads what it holds. */
TEST(a_node_that_cannot_share_memory_loads_the_same)
{
    test_place place;
    test_place_open(&place);
    test_setup setup = test_setup_of(0, ZERO_FP32);
    setup.plan.collectives = ZERO_ALGORITHM_P2P;
    course saved = never_stopped(&setup, test_size, &place);
    for (int windows = 0; windows <= 1; windows++)
        assert_all(load_with(&setup, test_size, windows, &place, &saved) ==
                   test_size * bytes_of(&setup));
    test_place_close(&place);
}

/* ---- damage ---- */

static void flip_last_byte(const test_place *place, int rank)
{
    char path[400], name[64];
    unsigned char byte;
    test_step_path(place, SAVED, path);
    zero_shard_name(rank, test_size, name);
    strcat(strcat(path, "/"), name);
    int fd = open(path, O_RDWR);
    off_t at = lseek(fd, -1, SEEK_END);
    assert_true(fd >= 0 && __real_pread(fd, &byte, 1, at) == 1);
    byte ^= 4;
    assert_true(pwrite(fd, &byte, 1, at) == 1 && close(fd) == 0);
}

/* Whichever rank reads it, and whoever takes it. */
TEST(all_ranks_hear_of_damage_that_one_reads)
{
    test_place place;
    char path[400], text[500];
    test_place_open(&place);
    test_setup setup = test_setup_of(3, ZERO_FP32);
    course saved = never_stopped(&setup, test_size, &place);
    test_step_path(&place, SAVED, path);
    for (int victim = 0; victim < test_size; victim++)
        for (int stage = 0; stage <= 3; stage++) {
            test_run run;
            setup.plan.stage = stage;
            test_run_open(&run, &setup, test_size);
            if (test_rank == 0) flip_last_byte(&place, victim);
            MPI_Barrier(MPI_COMM_WORLD);
            assert_all(test_try_load(&run, path) == ZERO_ERR_FORMAT);
            snprintf(text, sizeof text, "rank %d: %s/shard-0000%d-of-0000%d", victim, path,
                     victim, test_size);
            if (!strstr(zero_last_error(), text)) print_error("%s\n", zero_last_error());
            assert_all(strstr(zero_last_error(), text) &&
                       strstr(zero_last_error(), "was changed after it was written"));
            MPI_Barrier(MPI_COMM_WORLD);
            if (test_rank == 0) flip_last_byte(&place, victim);
            test_load(&run, &place, SAVED);
            assert_all(test_same(test_run_digest(&run), saved.at_save));
            test_run_close(&run);
        }
    test_place_close(&place);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    return test_end(run_here(NULL, NULL));
}
