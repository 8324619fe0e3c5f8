#include "base/binding.h"

#include <unistd.h>

#include <hwloc.h>

#include "base/claim.h"
#include "base/number.h"
#include "base/topology.h"

/* Whether the environment has one of those variables. */
static bool has_any(int n, const char *const *names)
{
    int i = 0;
    while (i < n && !getenv(names[i])) i++;
    return i < n;
}

static const char *const openmps[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                      "KMP_AFFINITY"};

/* Open MPI 4 binds up to two ranks to one core each, whatever their threads, unless it is
 * told otherwise. */
static const char *const wishes_to_mpirun[] = {"OMPI_MCA_hwloc_base_binding_policy",
                                               "OMPI_MCA_rmaps_base_mapping_policy",
                                               "OMPI_MCA_hwloc_base_cpu_list",
                                               "OMPI_MCA_hwloc_base_cpu_set",
                                               "OMPI_MCA_orte_rankfile",
                                               "OMPI_MCA_rmaps_rank_file_path"};

#define HAS_ANY(names) has_any(ZERO_COUNT(names), (names))

/* The core of `set` with this number, of those that share a thread with it, or NULL. */
static hwloc_obj_t core_of(hwloc_topology_t machine, hwloc_const_bitmap_t set, int number)
{
    hwloc_obj_t core = NULL;
    bool has_cores = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_CORE) > 0;
    /* Some virtual machines show threads without cores. */
    hwloc_obj_type_t type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    while ((core = hwloc_get_next_obj_by_type(machine, type, core)) != NULL)
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
    zero_print(b->text, "%s%s%s", what, set ? " " : "", list);
}

/* ---- cores that no other run keeps ---- */

/* Nobody runs on a machine that hwloc makes up. */
static bool can_claim(zero_binding *b)
{
    const bool is_made_up = !hwloc_topology_is_thissystem(b->machine);
    if (!is_made_up && b->claims < 0) b->claims = zero_claims_open();
    return is_made_up || b->claims >= 0;
}

static void release(zero_binding *b)
{
    if (b->claims >= 0) close(b->claims);
    b->claims = -1;
}

/* Narrows the set to a core for each thread, the first `before` left to other ranks if
 * possible. Runs and ranks keep different cores: each claims them by their numbers. */
static bool claim_cores(zero_binding *b, int threads, int before)
{
    hwloc_topology_t machine = b->machine;
    hwloc_bitmap_t set = b->set, own = hwloc_bitmap_alloc();
    const int n = can_claim(b) ? count_cores(machine, set) : 0;
    int taken = 0;
    for (int k = 0; own && k < n && taken < threads; k++) {
        hwloc_obj_t core = core_of(machine, set, (before + k) % n);
        const int number = hwloc_bitmap_first(core->cpuset);
        if (b->claims >= 0 && !zero_claims_take(b->claims, number)) continue;
        hwloc_bitmap_or(own, own, core->cpuset);
        taken++;
    }
    if (taken == threads) {
        hwloc_bitmap_and(set, set, own);
        b->binds = true, b->cores = threads;
        if (b->claims >= 0) zero_claims_settle(b->claims);
    } else {
        release(b);
    }
    hwloc_bitmap_free(own);
    return taken == threads;
}

/* ---- the choice ---- */

/* Narrows the set to a NUMA node that has cores for all its ranks, and says which of these
 * this rank is. Returns the node's number, or -1: no change. */
static int choose_node(zero_binding *b, int threads, int local_rank, int node_ranks,
                       int *position)
{
    hwloc_topology_t machine = b->machine;
    hwloc_bitmap_t set = b->set;
    const int nodes = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE);
    *position = local_rank;
    if (nodes < 2) return -1;
    const int node = (int)((long)local_rank * nodes / node_ranks);
    /* Ranks first to end - 1 have this NUMA node. */
    const int first = (int)(((long)node * node_ranks + nodes - 1) / nodes);
    const int end = (int)(((long)(node + 1) * node_ranks + nodes - 1) / nodes);
    hwloc_obj_t place = hwloc_get_obj_by_type(machine, HWLOC_OBJ_NUMANODE, (unsigned)node);
    hwloc_bitmap_t cores = place ? hwloc_bitmap_dup(place->cpuset) : NULL;
    if (cores) hwloc_bitmap_and(cores, cores, set);
    const bool fits = cores && count_cores(machine, cores) >= threads * (end - first);
    if (fits) hwloc_bitmap_copy(set, cores);
    if (fits) *position = local_rank - first;
    hwloc_bitmap_free(cores);
    return fits ? node : -1;
}

/* Ranks of the machine may use all of the set. */
static void choose_cores(zero_binding *b, int threads, int local_rank, int node_ranks)
{
    int position;
    char what[96];
    if (!can_claim(b)) {
        say(b, "not bound: nothing shows which cores other runs keep", NULL);
        return;
    }
    const int node = choose_node(b, threads, local_rank, node_ranks, &position);
    const bool has_cores = claim_cores(b, threads, position * threads);
    if (node < 0 && !has_cores) {
        say(b, "not bound: other runs keep the cores", NULL);
    } else if (node < 0) {
        say(b, "each on a core of its own: CPUs", b->set);
    } else {
        b->binds = true;
        zero_print(what, "%s NUMA node %d%s, CPUs",
                   has_cores ? "each on a core of its own," : "on", node,
                   has_cores ? "" : ", whose cores other runs keep");
        say(b, what, b->set);
    }
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
    if (HAS_ANY(openmps)) {
        say(b, "bound by OpenMP's own variables", NULL);
    } else if (threads * node_ranks > all) {
        say(b,
            own == all ? "not bound: there are too few cores"
                       : "not bound: there are too few cores, and the rank has CPUs",
            own == all ? NULL : set);
    } else if (own == all || (own < threads && getenv("OMPI_MCA_orte_bound_at_launch") &&
                              !HAS_ANY(wishes_to_mpirun))) {
        hwloc_bitmap_copy(set, allowed);
        choose_cores(b, threads, local_rank, node_ranks);
    } else if (own >= threads && claim_cores(b, threads, local_rank * threads % own)) {
        say(b, "each on a core of its own: CPUs", set);
    } else {
        say(b, "anywhere on what the launcher gave the rank: CPUs", set);
    }
}

zero_status zero_binding_open(zero_binding *b, int threads, int local_rank, int node_ranks)
{
    hwloc_topology_t machine = NULL;
    *b = (zero_binding){.claims = -1};
    ZERO_TRY(zero_topology_init(&machine));
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
    if (!b->machine) return;
    release(b);
    hwloc_bitmap_free(b->set);
    hwloc_topology_destroy(b->machine);
    b->machine = b->set = NULL;
}
