#define TEST_HAS_MAIN
#define _GNU_SOURCE /* sched_getaffinity */
#include "support/test.h"

#include "base/topology.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hwloc.h>

#include "base/memory_limit.h"
#include "support/within.h"

static void parts_are_not_larger_than_the_whole(void **state)
{
    (void)state;
    zero_topology t;
    assert_ok(zero_topology_read(&t));
    assert_within(t.usable_cores, 1, t.allowed_cores);
    assert_within(t.allowed_cores, 1, t.machine_cores);
    assert_within(t.allowed_cores, 1, t.allowed_threads);
    assert_within(t.usable_threads, t.usable_cores, t.allowed_threads);
    assert_within(t.allowed_threads, 1, t.machine_threads);
    assert_true(t.machine_threads >= t.machine_cores);
    assert_true(t.numa_nodes >= 1);
    assert_true(t.machine_memory > (size_t)64 << 20);
    assert_within(t.memory_available, 1, t.machine_memory);
    if (t.memory_limit) assert_true(t.memory_available <= t.memory_limit);
    assert_true(t.l2 == 0 || t.l3 == 0 || t.l2 <= t.l3);
    assert_true(strlen(t.cpu) < sizeof t.cpu);
}

static void it_counts_the_threads_that_the_system_counts(void **state)
{
    (void)state;
    zero_topology t;
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_ok(zero_topology_read(&t));
    assert_int_equal(t.usable_threads, CPU_COUNT(&set));
    assert_true(t.machine_threads >= sysconf(_SC_NPROCESSORS_ONLN));
}

static void a_process_bound_to_one_thread_may_use_one_core(void **state)
{
    (void)state;
    zero_topology whole, bound;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_ok(zero_topology_read(&whole));
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &before)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_ok(zero_topology_read(&bound));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(bound.usable_cores, 1);
    assert_int_equal(bound.usable_threads, 1);
    assert_int_equal(bound.allowed_cores, whole.allowed_cores);
    assert_int_equal(bound.allowed_threads, whole.allowed_threads);
    assert_int_equal(bound.machine_cores, whole.machine_cores);
    assert_int_equal(bound.machine_threads, whole.machine_threads);
}

/* hwloc reads the machine from a description instead. */
static void read_machine_of(const char *variable, const char *value, zero_topology *t)
{
    assert_int_equal(setenv(variable, value, 1), 0);
    assert_ok(zero_topology_read(t));
    assert_int_equal(unsetenv(variable), 0);
}

static void machines_without_cores_have_one_per_thread(void **state)
{
    (void)state;
    zero_topology t;
    read_machine_of("HWLOC_SYNTHETIC", "core:4 pu:2", &t);
    assert_true(t.machine_cores == 4 && t.allowed_cores == 4 && t.usable_cores == 4);
    assert_true(t.machine_threads == 8 && t.allowed_threads == 8 && t.usable_threads == 8);
    read_machine_of("HWLOC_SYNTHETIC", "pu:6", &t);
    assert_true(t.machine_cores == 6 && t.allowed_cores == 6 && t.usable_cores == 6);
    assert_true(t.machine_threads == 6 && t.allowed_threads == 6 && t.usable_threads == 6);
}

/* Writes a machine of four cores with two threads each, of which the first n_threads in all
 * are allowed. */
static void write_machine(const char *path, int n_threads)
{
    hwloc_topology_t machine;
    hwloc_cpuset_t allowed = hwloc_bitmap_alloc();
    assert_non_null(allowed);
    hwloc_bitmap_set_range(allowed, 0, n_threads - 1);
    assert_int_equal(hwloc_topology_init(&machine), 0);
    hwloc_topology_set_flags(machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    assert_int_equal(hwloc_topology_set_synthetic(machine, "core:4 pu:2"), 0);
    assert_int_equal(hwloc_topology_load(machine), 0);
    assert_int_equal(hwloc_topology_allow(machine, allowed, NULL, HWLOC_ALLOW_FLAG_CUSTOM),
                     0);
    assert_int_equal(hwloc_topology_export_xml(machine, path, 0), 0);
    hwloc_topology_destroy(machine);
    hwloc_bitmap_free(allowed);
}

static void a_core_is_allowed_if_one_of_its_threads_is(void **state)
{
    char path[256];
    snprintf(path, sizeof path, "%s/machine.xml", (char *)*state);
    for (int n = 1; n <= 8; n++) {
        zero_topology t;
        write_machine(path, n);
        read_machine_of("HWLOC_XMLFILE", path, &t);
        assert_true(t.machine_cores == 4 && t.machine_threads == 8);
        assert_int_equal(t.allowed_threads, n);
        assert_int_equal(t.allowed_cores, (n + 1) / 2);
        assert_int_equal(t.usable_threads, n);
        assert_int_equal(t.usable_cores, (n + 1) / 2);
    }
}

/* A small tree of control groups in a temporary folder. */
static void put(const char *root, const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s/%s", root, path);
    for (char *slash = name + strlen(root); (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        mkdir(name, 0700);
        *slash = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state)
{
    char name[] = "/tmp/zero-topology-XXXXXX";
    if (!mkdtemp(name)) return -1;
    *state = strdup(name);
    return *state ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
    free(*state);
    return system(command);
}

static void no_control_group_is_no_limit(void **state)
{
    zero_memory_limit limit = {.limit = 1, .available = 1};
    zero_memory_limit_read(*state, &limit);
    assert_true(limit.limit == 0 && limit.available == 0);
    put(*state, "proc/self/cgroup", "0::/job\nrubbish\n:\n");
    put(*state, "sys/fs/cgroup/job/memory.max", "max\n");
    zero_memory_limit_read(*state, &limit);
    assert_true(limit.limit == 0 && limit.available == 0);
    put(*state, "proc/self/cgroup", "5:memory:/job\n");
    put(*state, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    zero_memory_limit_read(*state, &limit);
    assert_true(limit.limit == 0 && limit.available == 0);
}

static void the_tightest_group_above_us_decides(void **state)
{
    zero_memory_limit limit;
    put(*state, "proc/self/cgroup", "0::/job/step/task\n");
    put(*state, "sys/fs/cgroup/job/memory.max", "1000000\n");
    put(*state, "sys/fs/cgroup/job/memory.current", "900000\n");
    put(*state, "sys/fs/cgroup/job/step/memory.max", "max\n");
    put(*state, "sys/fs/cgroup/job/step/task/memory.max", "800000\n");
    put(*state, "sys/fs/cgroup/job/step/task/memory.current", "100000\n");
    zero_memory_limit_read(*state, &limit);
    assert_int_equal(limit.limit, 800000);
    /* The job has less left, though a higher limit. */
    assert_int_equal(limit.available, 100000);
}

static void idle_file_cache_counts_as_available(void **state)
{
    zero_memory_limit limit;
    put(*state, "proc/self/cgroup", "0::/\n");
    put(*state, "sys/fs/cgroup/memory.max", "1000000\n");
    put(*state, "sys/fs/cgroup/memory.current", "900000\n");
    put(*state, "sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 500000\nfile 7\n");
    zero_memory_limit_read(*state, &limit);
    assert_int_equal(limit.available, 600000);
}

static void version_1_is_read_where_it_is_mounted(void **state)
{
    zero_memory_limit limit;
    put(*state, "proc/self/cgroup",
        "9:cpu:/other\n5:hugetlb,memory:/slurm/job\n0::/user\n");
    put(*state, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(*state, "sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "700000\n");
    put(*state, "sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "200000\n");
    zero_memory_limit_read(*state, &limit);
    assert_int_equal(limit.limit, 700000);
    assert_int_equal(limit.available, 500000);
}

/* Docker shows the host's path, but mounts the container's group as the root. */
static void a_path_that_is_not_mounted_here_ends_at_the_mount(void **state)
{
    zero_memory_limit limit;
    put(*state, "proc/self/cgroup", "4:memory:/docker/0123abcd\n");
    put(*state, "sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n");
    zero_memory_limit_read(*state, &limit);
    assert_int_equal(limit.limit, 600000);
    assert_int_equal(limit.available, 600000);
}

#define in_a_folder(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_not_larger_than_the_whole),
        cmocka_unit_test(it_counts_the_threads_that_the_system_counts),
        cmocka_unit_test(a_process_bound_to_one_thread_may_use_one_core),
        cmocka_unit_test(machines_without_cores_have_one_per_thread),
        in_a_folder(a_core_is_allowed_if_one_of_its_threads_is),
        in_a_folder(no_control_group_is_no_limit),
        in_a_folder(the_tightest_group_above_us_decides),
        in_a_folder(idle_file_cache_counts_as_available),
        in_a_folder(version_1_is_read_where_it_is_mounted),
        in_a_folder(a_path_that_is_not_mounted_here_ends_at_the_mount),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
