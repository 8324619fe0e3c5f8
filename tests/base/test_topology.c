#define _GNU_SOURCE /* sched_getaffinity */
#include "support/test.h"

#include "base/topology.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hwloc.h>

#include "base/memory_limit.h"
#include "support/within.h"

TEST(parts_are_not_larger_than_the_whole)
{
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

TEST(it_counts_the_threads_that_the_system_counts)
{
    zero_topology t;
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_ok(zero_topology_read(&t));
    assert_int_equal(t.usable_threads, CPU_COUNT(&set));
    assert_true(t.machine_threads >= sysconf(_SC_NPROCESSORS_ONLN));
}

TEST(a_process_bound_to_one_thread_may_use_one_core)
{
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

TEST(machines_without_cores_have_one_per_thread)
{
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

TEST(a_core_is_allowed_if_one_of_its_threads_is)
{
    char path[] = "/tmp/zero-machine-XXXXXX";
    assert_int_equal(close(mkstemp(path)), 0);
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
    unlink(path);
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

/* The files of a row lie in a folder of their own. */
TEST(the_tightest_control_group_above_us_decides)
{
    static const struct {
        const char *files[6][2];
        size_t limit, available;
    } rows[] = {
        {{{NULL}}, 0, 0},
        {{{"proc/self/cgroup", "0::/job\nrubbish\n:\n"},
          {"sys/fs/cgroup/job/memory.max", "max\n"}},
         0,
         0},
        {{{"proc/self/cgroup", "5:memory:/job\n"},
          {"sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n"}},
         0,
         0},
        /* The job has less left, though a higher limit. */
        {{{"proc/self/cgroup", "0::/job/step/task\n"},
          {"sys/fs/cgroup/job/memory.max", "1000000\n"},
          {"sys/fs/cgroup/job/memory.current", "900000\n"},
          {"sys/fs/cgroup/job/step/memory.max", "max\n"},
          {"sys/fs/cgroup/job/step/task/memory.max", "800000\n"},
          {"sys/fs/cgroup/job/step/task/memory.current", "100000\n"}},
         800000,
         100000},
        /* An idle file cache counts as available. */
        {{{"proc/self/cgroup", "0::/\n"},
          {"sys/fs/cgroup/memory.max", "1000000\n"},
          {"sys/fs/cgroup/memory.current", "900000\n"},
          {"sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 500000\nfile 7\n"}},
         1000000,
         600000},
        /* Version 1, where it is mounted. */
        {{{"proc/self/cgroup", "9:cpu:/other\n5:hugetlb,memory:/slurm/job\n0::/user\n"},
          {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
          {"sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "700000\n"},
          {"sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "200000\n"}},
         700000,
         500000},
        /* Docker shows the host's path, but mounts the container's group as the root. */
        {{{"proc/self/cgroup", "4:memory:/docker/0123abcd\n"},
          {"sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n"}},
         600000,
         600000},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char root[] = "/tmp/zero-topology-XXXXXX", command[64];
        zero_memory_limit limit = {.limit = 1, .available = 1};
        assert_non_null(mkdtemp(root));
        for (int k = 0; k < 6 && rows[i].files[k][0]; k++)
            put(root, rows[i].files[k][0], rows[i].files[k][1]);
        zero_memory_limit_read(root, &limit);
        snprintf(command, sizeof command, "rm -rf '%s'", root);
        assert_int_equal(system(command), 0);
        assert_int_equal(limit.limit, rows[i].limit);
        assert_int_equal(limit.available, rows[i].available);
    }
}
