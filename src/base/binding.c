#include "base/binding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hwloc.h>

#include "base/fail.h"

static bool openmp_binds(void)
{
    const char *const names[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                 "KMP_AFFINITY"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i])) return true;
    return false;
}

/* Some virtual machines show threads without cores. */
static hwloc_obj_type_t core_type(hwloc_topology_t machine)
{
    return hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE
                                                                 : HWLOC_OBJ_PU;
}

/* The core of `set` with this number, of those that share a thread with it, or NULL. */
static hwloc_obj_t core_of(hwloc_topology_t machine, hwloc_const_bitmap_t set, int number)
{
    hwloc_obj_t core = NULL;
    while ((core = hwloc_get_next_obj_by_type(machine, core_type(machine), core)) != NULL)
        if (hwloc_bitmap_intersects(core->cpuset, set) && number-- == 0) return core;
    return NULL;
}

static int count_cores(hwloc_topology_t machine, hwloc_const_bitmap_t set)
{
    int n = 0;
    while (core_of(machine, set, n)) n++;
    return n;
}

static void say(zero_binding *b, const char *what, hwloc_const_bitmap_t set)
{
    char list[64] = "";
    if (set) hwloc_bitmap_list_snprintf(list, sizeof list, set);
    snprintf(b->text, sizeof b->text, "%s%s%s", what, set ? " " : "", list);
}

/* Keeps to a NUMA node that has enough cores for its share of ranks. */
static void choose_node(zero_binding *b, int threads, int local_rank, int node_ranks)
{
    hwloc_topology_t machine = b->machine;
    hwloc_bitmap_t set = b->set;
    const int nodes = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE);
    say(b, "not bound: the system places them", NULL);
    if (nodes < 2) return;
    const int node = (int)((long)local_rank * nodes / node_ranks);
    const int sharers = (node_ranks + nodes - 1) / nodes;
    hwloc_obj_t place = hwloc_get_obj_by_type(machine, HWLOC_OBJ_NUMANODE, (unsigned)node);
    hwloc_bitmap_t cores = place ? hwloc_bitmap_dup(place->cpuset) : NULL;
    if (cores) hwloc_bitmap_and(cores, cores, set);
    if (cores && count_cores(machine, cores) >= threads * sharers) {
        char what[64];
        snprintf(what, sizeof what, "on NUMA node %d, CPUs", node);
        hwloc_bitmap_copy(set, cores);
        b->binds = true;
        say(b, what, set);
    }
    hwloc_bitmap_free(cores);
}

static void choose(zero_binding *b, int threads, int local_rank, int node_ranks)
{
    hwloc_topology_t machine = b->machine;
    hwloc_bitmap_t set = b->set;
    hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_cpuset(machine);
    if (hwloc_get_cpubind(machine, set, HWLOC_CPUBIND_PROCESS) != 0)
        hwloc_bitmap_copy(set, allowed);
    hwloc_bitmap_and(set, set, allowed);
    const int all = count_cores(machine, allowed), own = count_cores(machine, set);
    if (openmp_binds()) {
        say(b, "bound by OpenMP's own variables", NULL);
    } else if (threads * node_ranks > all) {
        say(b, "not bound: there are too few cores", NULL);
    } else if (own == all) {
        choose_node(b, threads, local_rank, node_ranks);
    } else if (own == threads) {
        b->binds = true, b->cores = own;
        say(b, "each on a core of its own: CPUs", set);
    } else {
        say(b, "anywhere on what the launcher gave the rank: CPUs", set);
    }
}

zero_status zero_binding_open(zero_binding *b, int threads, int local_rank, int node_ranks)
{
    hwloc_topology_t machine = NULL;
    *b = (zero_binding){0};
    if (hwloc_topology_init(&machine) != 0)
        return zero_fail(ZERO_ERR_ENV, "hwloc does not start: %s", strerror(errno));
    hwloc_topology_set_flags(machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    b->machine = machine;
    b->set = hwloc_bitmap_alloc();
    if (!b->set || hwloc_topology_load(machine) != 0) {
        zero_binding_close(b);
        return zero_fail(ZERO_ERR_ENV, "hwloc cannot read this machine's topology");
    }
    choose(b, threads, local_rank, node_ranks);
    return ZERO_OK;
}

bool zero_binding_take(const zero_binding *b, int index)
{
    hwloc_topology_t machine = b->machine;
    hwloc_const_bitmap_t set = b->set;
    if (!b->binds) return true;
    hwloc_obj_t core = b->cores > 0 ? core_of(machine, set, index % b->cores) : NULL;
    hwloc_bitmap_t own = hwloc_bitmap_dup(set);
    if (core && own) hwloc_bitmap_and(own, own, core->cpuset);
    const bool ok = own && hwloc_set_cpubind(machine, own, HWLOC_CPUBIND_THREAD) == 0;
    hwloc_bitmap_free(own);
    return ok;
}

void zero_binding_close(zero_binding *b)
{
    hwloc_bitmap_free(b->set);
    if (b->machine) hwloc_topology_destroy(b->machine);
    b->machine = b->set = NULL;
}
