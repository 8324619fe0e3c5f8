#include "base/topology.h"

#include <sys/statvfs.h>

#include <hwloc.h>

#include "base/memory_limit.h"

static size_t shm_available(void)
{
    struct statvfs fs;
    if (statvfs("/dev/shm", &fs) != 0) return 0;
    return (size_t)fs.f_bavail * (size_t)fs.f_frsize;
}

/* Objects of one type that share a thread with `set`; all of them if it is NULL. */
static int count_objects(hwloc_topology_t machine, hwloc_obj_type_t type,
                         hwloc_const_cpuset_t set)
{
    int n = 0;
    hwloc_obj_t o = NULL;
    while ((o = hwloc_get_next_obj_by_type(machine, type, o)) != NULL)
        if (!set || hwloc_bitmap_intersects(o->cpuset, set)) n++;
    return n;
}

static size_t cache_size(hwloc_topology_t machine, hwloc_obj_type_t level)
{
    hwloc_obj_t cache = hwloc_get_next_obj_by_type(machine, level, NULL);
    return cache ? (size_t)cache->attr->cache.size : 0;
}

zero_status zero_topology_init(hwloc_topology_t *machine)
{
    ZERO_FAIL_IF(hwloc_topology_init(machine) != 0, ZERO_ERR_ENV,
                 "hwloc does not start: %s", strerror(errno));
    /* Without the flag hwloc hides cores that a container forbids. */
    hwloc_topology_set_flags(*machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    return ZERO_OK;
}

zero_status zero_topology_read(zero_topology *topology)
{
    hwloc_topology_t machine;
    ZERO_TRY(zero_topology_init(&machine));
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    bool ok = set && hwloc_topology_load(machine) == 0;
    int error = errno;
    if (ok) {
        zero_topology *t = topology;
        *t = (zero_topology){0};
        hwloc_obj_t package = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PACKAGE, NULL);
        hwloc_obj_t holder = package ? package : hwloc_get_root_obj(machine);
        const char *name = hwloc_obj_get_info_by_name(holder, "CPUModel");
        zero_print(t->cpu, "%s", name ? name : "");
        t->machine_cores = count_objects(machine, HWLOC_OBJ_CORE, NULL);
        t->machine_threads = count_objects(machine, HWLOC_OBJ_PU, NULL);
        /* Usable is allowed and bound; allowed if the system does not tell the binding. */
        if (hwloc_get_cpubind(machine, set, HWLOC_CPUBIND_PROCESS) != 0)
            hwloc_bitmap_fill(set);
        hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(machine);
        t->allowed_cores = count_objects(machine, HWLOC_OBJ_CORE, allowed);
        t->allowed_threads = count_objects(machine, HWLOC_OBJ_PU, allowed);
        hwloc_bitmap_and(set, set, allowed);
        t->usable_cores = count_objects(machine, HWLOC_OBJ_CORE, set);
        t->usable_threads = count_objects(machine, HWLOC_OBJ_PU, set);
        hwloc_bitmap_list_snprintf(t->usable_list, sizeof t->usable_list, set);
        t->numa_nodes = count_objects(machine, HWLOC_OBJ_NUMANODE, NULL);
        t->l2 = cache_size(machine, HWLOC_OBJ_L2CACHE);
        t->l3 = cache_size(machine, HWLOC_OBJ_L3CACHE);
        zero_memory_limit group;
        zero_memory_limit_read("", &group);
        /* hwloc's sum over NUMA nodes may be too small: on virtual machines whose memory
         * grew after the start, nodes still show the old size (5 of 25 GB). */
        t->machine_memory = zero_memory_line("MemTotal");
        if (t->machine_memory == 0)
            t->machine_memory = (size_t)hwloc_get_root_obj(machine)->total_memory;
        t->memory_limit = group.limit;
        t->memory_available = zero_memory_available();
        t->shm_available = shm_available();

        /* Some virtual machines show threads without cores. */
        if (t->machine_cores == 0) {
            t->machine_cores = t->machine_threads;
            t->allowed_cores = t->allowed_threads;
            t->usable_cores = t->usable_threads;
        }
    }
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(machine);
    ZERO_FAIL_IF(!ok, ZERO_ERR_ENV,
                 "hwloc cannot read this machine's topology: %s. `lstopo` shows whether "
                 "hwloc works here; HWLOC_XMLFILE can name a topology saved elsewhere.",
                 strerror(error));
    return ZERO_OK;
}
