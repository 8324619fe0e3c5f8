/* Windows. `test_window small` expects a private /dev/shm of 1 MiB (small_shm.sh). */
#define TEST_HAS_MAIN
#include "comm/window.h"

#include <dirent.h>

#include <sys/statvfs.h>
#include <unistd.h>

#include "comm/collective.h"
#include "support/test_world.h"

#define PLACE "/dev/shm"

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static unsigned char pattern(int array, int rank, size_t i)
{
    return (unsigned char)(1 + (size_t)array * 7 + (size_t)rank * 31 + i % 101);
}

/* Counts the lines of /proc/self/maps that name files in the place; *found: the one with p. */
static int count_maps(const void *p, char *found, size_t size)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        uintptr_t begin, end;
        if (!strstr(line, PLACE "/#") ||
            sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2)
            continue;
        n++;
        if (p && begin <= (uintptr_t)p && (uintptr_t)p < end)
            snprintf(found, size, "%s", line);
    }
    fclose(file);
    return n;
}

static int count_entries(const char *path)
{
    DIR *directory = opendir(path);
    int n = 0;
    assert_non_null(directory);
    for (struct dirent *e; (e = readdir(directory));) n += e->d_name[0] != '.';
    closedir(directory);
    return n;
}

/* ---- contents ---- */

static const size_t sizes[] = {1000, 0, 65536 + 8, 4096};
enum { ARRAYS = 4 };

static size_t count_wrong(const zero_window *w, bool written)
{
    size_t wrong = 0;
    for (int a = 0; a < ARRAYS; a++)
        for (int r = 0; r < w->local_size; r++)
            for (size_t i = 0; i < sizes[a]; i++) {
                const char *part = zero_window_array(w, a) + sizes[a] * (size_t)r;
                wrong += (unsigned char)part[i] != (written ? pattern(a, r, i) : 0);
            }
    return wrong;
}

static void write_own_parts(const zero_window *w)
{
    for (int a = 0; a < ARRAYS; a++)
        for (size_t i = 0; i < sizes[a]; i++)
            zero_window_array(w, a)[sizes[a] * (size_t)w->local_rank + i] =
                (char)pattern(a, w->local_rank, i);
}

TEST(parts_of_all_ranks_are_one_array_zeroed_at_first)
{
    zero_window w;
    all_ok(zero_window_init(&w, &world, ARRAYS, sizes));
    assert_all(w.local_rank == test_rank && w.local_size == test_size);
    assert_all(count_wrong(&w, false) == 0);
    write_own_parts(&w);
    barrier();
    assert_all(count_wrong(&w, true) == 0);
    zero_window_destroy(&w);
}

TEST(arrays_begin_at_pages_and_do_not_overlap)
{
    zero_window w;
    all_ok(zero_window_init(&w, &world, ARRAYS, sizes));
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int a = 0; a < ARRAYS; a++) {
        char *array = zero_window_array(&w, a), *end = array + sizes[a] * (size_t)test_size;
        assert_true((uintptr_t)array % page == 0);
        assert_true(end <= w.base + w.bytes);
        if (a + 1 < ARRAYS) assert_true(end <= zero_window_array(&w, a + 1));
    }
    barrier();
    zero_window_destroy(&w);
}

/* The wait for the window also moves a collective that began before there were counters. */
TEST(a_window_is_made_while_a_collective_is_in_flight)
{
    zero_comm comm;
    zero_window w;
    zero_collective op;
    float in[64 * 8] = {0}, out[64] = {0};
    _Alignas(64) static char staging[1 << 20];
    zero_collective_spec spec = {
        .algorithm = ZERO_ALGORITHM_HIER, .count = 64, .stride = 64};
    for (int i = 0; i < 64 * test_size; i++) in[i] = (float)test_rank;
    assert_true(test_size <= 8);
    all_ok(zero_comm_world(&comm));
    all_ok(zero_comm_pretend_blocks(&comm, comm.size));
    assert_true(zero_collective_staging(&spec, &comm.layout) <= sizeof staging);
    all_ok(zero_collective_init(&op, &comm, &spec));
    all_ok(zero_collective_begin(&op, in, out, staging));
    all_ok(zero_window_init(&w, &comm, ARRAYS, sizes));
    all_ok(zero_collective_wait(&op));
    assert_all(out[0] == (float)(test_size * (test_size - 1)) / 2 && out[63] == out[0]);
    zero_collective_destroy(&op);
    zero_window_destroy(&w);
    zero_comm_destroy(&comm);
}

TEST(nodes_have_windows_of_their_own)
{
    zero_comm comm;
    zero_window w;
    int ids[64], node = test_rank % 2; /* no blocks */
    for (int r = 0; r < test_size; r++) ids[r] = r % 2;
    all_ok(zero_comm_split(&world, 0, 0, &comm));
    all_ok(zero_comm_pretend_nodes(&comm, ids));
    all_ok(zero_window_init(&w, &comm, 1, (size_t[]){sizeof(int)}));
    assert_all(w.local_size == (test_size + 1 - node) / 2 && w.local_rank == test_rank / 2);
    int *mine = (int *)(void *)zero_window_array(&w, 0);
    mine[w.local_rank] = 100 + test_rank;
    barrier();
    int wrong = 0;
    for (int l = 0; l < w.local_size; l++) wrong += mine[l] != 100 + 2 * l + node;
    assert_all(wrong == 0);
    assert_all(zero_comm_pretend_nodes(&comm, ids) == ZERO_ERR_INVALID);
    zero_window_destroy(&w);
    zero_comm_destroy(&comm);
}

TEST(several_windows_of_a_group_do_not_overlap)
{
    zero_window a, b;
    all_ok(zero_window_init(&a, &world, ARRAYS, sizes));
    all_ok(zero_window_init(&b, &world, ARRAYS, sizes));
    write_own_parts(&a);
    barrier();
    assert_all(count_wrong(&a, true) == 0 && count_wrong(&b, false) == 0);
    zero_window_destroy(&a);
    assert_all(count_wrong(&b, false) == 0);
    zero_window_destroy(&b);
    zero_window_destroy(&b); /* zeroed */
}

/* Bytes of shared memory that this process has mapped and touched. */
static size_t touched_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    size_t kib = SIZE_MAX;
    assert_non_null(file);
    while (kib == SIZE_MAX && fgets(line, sizeof line, file))
        if (sscanf(line, "RssShmem: %zu", &kib) != 1) kib = SIZE_MAX;
    fclose(file);
    return kib == SIZE_MAX ? kib : kib << 10;
}

/* Mapping the pages of all ranks at once would be a pass over gigabytes before the first step. */
TEST(a_window_is_not_walked_through_when_it_is_made)
{
    zero_window w;
    const size_t part = (size_t)16 << 20;
    size_t before = touched_bytes();
    if (before == SIZE_MAX) skip(); /* a kernel that does not say */
    all_ok(zero_window_init(&w, &world, 1, &part));
    assert_all(touched_bytes() < before + part / 4);
    memset(zero_window_array(&w, 0) + part * (size_t)test_rank, 1, part);
    assert_all(touched_bytes() >= before + part);
    zero_window_destroy(&w);
}

/* ---- leftovers ---- */

TEST(a_window_has_no_name_and_is_freed_when_destroyed)
{
    zero_window w;
    char line[512] = "";
    all_ok(zero_window_init(&w, &world, ARRAYS, sizes));
    int files = count_entries("/proc/self/fd"),
        maps = count_maps(w.base, line, sizeof line);
    assert_all(strstr(line, "(deleted)") != NULL);
    zero_window_destroy(&w);
    assert_all(count_maps(NULL, NULL, 0) == maps - 1);
    all_ok(zero_window_init(&w, &world, ARRAYS, sizes));
    assert_all(count_entries("/proc/self/fd") == files);
    zero_window_destroy(&w);
}

static bool is_refused_and_forgotten(size_t bytes, zero_status expected)
{
    zero_window w = {.n_arrays = 42};
    int maps = count_maps(NULL, NULL, 0), files = count_entries("/proc/self/fd");
    zero_status st = zero_window_init(&w, &world, 2, (size_t[]){64, bytes});
    const char *text = zero_last_error();
    return st == expected && w.n_arrays == 42 && strpbrk(text, "123456789") &&
           count_maps(NULL, NULL, 0) == maps && count_entries("/proc/self/fd") == files;
}

TEST(more_than_the_free_space_fails_on_all_ranks_with_numbers)
{
    zero_window w;
    struct statvfs fs;
    all_ok(zero_window_init(&w, &world, ARRAYS, sizes));
    zero_window_destroy(&w);
    assert_int_equal(statvfs(PLACE, &fs), 0);
    size_t all = (size_t)fs.f_blocks * (size_t)fs.f_frsize;
    if (all == 0 || all > (size_t)1 << 43) skip(); /* no limit, or one beyond ours */
    assert_all(is_refused_and_forgotten(all + ((size_t)1 << 20), ZERO_ERR_ENV));
    assert_all(strstr(zero_last_error(), PLACE) && strstr(zero_last_error(), "MiB"));
    all_ok(zero_window_init(&w, &world, ARRAYS, sizes));
    zero_window_destroy(&w);
}

TEST(sizes_beyond_all_machines_are_refused)
{
    assert_all(is_refused_and_forgotten(SIZE_MAX, ZERO_ERR_INVALID));
    assert_all(is_refused_and_forgotten(((size_t)1 << 46) + 1, ZERO_ERR_INVALID));
}

/* ---- a small /dev/shm without other users ---- */

static size_t free_bytes(void)
{
    struct statvfs fs;
    barrier(); /* all ranks have unmapped */
    assert_int_equal(statvfs(PLACE, &fs), 0);
    barrier(); /* no rank has mapped again */
    return (size_t)fs.f_bavail * (size_t)fs.f_frsize;
}

static void a_small_place_gives_what_it_has_and_gets_it_back(void **state)
{
    (void)state;
    zero_comm comm;
    zero_window w;
    const size_t all = (size_t)1 << 20, most = (size_t)160 << 10;
    assert_all(free_bytes() == all);
    all_ok(zero_comm_split(&world, 0, 0, &comm));
    all_ok(zero_window_init(&w, &comm, 1, &most));
    assert_all(free_bytes() <= all - most * (size_t)test_size);
    assert_all(count_entries(PLACE) == 0);
    memset(zero_window_array(&w, 0) + most * (size_t)test_rank, 1, most);
    zero_window_destroy(&w);
    size_t left = free_bytes();
    size_t more = left / (size_t)test_size + 8192; /* too much on one rank, or several */
    all_fail(zero_window_init(&w, &comm, 1, &more), ZERO_ERR_ENV, "MiB are free");
    assert_all(free_bytes() == left);
    all_ok(zero_window_init(&w, &comm, 1, &most));
    zero_window_destroy(&w);
    zero_comm_destroy(&comm);
    assert_all(free_bytes() == all);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest small[] = {
        cmocka_unit_test(a_small_place_gives_what_it_has_and_gets_it_back),
    };
    test_begin(&argc, &argv);
    bool is_small = argc > 1 && strcmp(argv[1], "small") == 0;
    return test_end(is_small ? cmocka_run_group_tests(small, set_up, tear_down)
                             : run_here(set_up, tear_down));
}
