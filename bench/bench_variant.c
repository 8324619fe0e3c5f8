#include "bench_variant.h"

#include <stddef.h>

const char *bench_memory_name(bench_memory memory)
{
    static const char *const names[BENCH_MEMORIES] = {"private", "window to private",
                                                      "window", "in place"};
    return names[memory];
}

typedef struct {
    bench_variant *variants;
    int n;
} variant_list;

static void add(variant_list *list, bench_variant variant)
{
    if (variant.name) list->variants[list->n++] = variant;
}

static void add_mpi(variant_list *list, zero_collective_kind kind, zero_algorithm algorithm)
{
    static const char *const blocking[ZERO_COLLECTIVE_KINDS] = {
        [ZERO_REDUCE_SCATTER] = "MPI_Reduce_scatter_block",
        [ZERO_ALL_GATHER] = "MPI_Allgather",
        [ZERO_ALL_REDUCE] = "MPI_Allreduce",
    };
    static const char *const names[ZERO_COLLECTIVE_KINDS] = {
        [ZERO_REDUCE_SCATTER] = "MPI_Ireduce_scatter_block",
        [ZERO_ALL_GATHER] = "MPI_Iallgather",
        [ZERO_REDUCE] = "MPI_Ireduce",
        [ZERO_BROADCAST] = "MPI_Ibcast",
        [ZERO_ALL_REDUCE] = "MPI_Iallreduce",
    };
    add(list, (bench_variant){blocking[kind], kind, algorithm, BENCH_PRIVATE, true});
    add(list, (bench_variant){names[kind], kind, algorithm, BENCH_PRIVATE, false});
}

/* Sums read `in` in the window, and broadcasts write `out` there; all-reduces do both. */
static bool makes_sense(zero_collective_kind kind, bench_memory memory)
{
    if (memory == BENCH_FROM_WINDOW) return kind != ZERO_BROADCAST;
    if (memory == BENCH_WINDOW) return !zero_collective_sums(kind);
    return memory == BENCH_IN_PLACE && kind == ZERO_ALL_GATHER;
}

/* True if the algorithm finds what it needs in the window. */
static bool suffices(zero_algorithm algorithm, zero_collective_kind kind,
                     bench_memory memory, const zero_layout *layout)
{
    const size_t apart = 64;
    zero_collective_spec spec = {.kind = kind,
                                 .algorithm = algorithm,
                                 .count = 1,
                                 .stride = 1,
                                 .in_apart = apart,
                                 .out_apart = memory == BENCH_WINDOW ? apart : 0,
                                 .one_out = memory == BENCH_IN_PLACE,
                                 .unit = ZERO_NO_UNIT};
    return zero_collective_check(&spec, layout) != ZERO_ERR_INVALID;
}

static void add_own(variant_list *list, zero_collective_kind kind, zero_algorithm algorithm,
                    const zero_layout *layout)
{
    const char *name = zero_algorithm_name(algorithm);
    if (!zero_algorithm_get(algorithm)->works_in_window) {
        add(list, (bench_variant){name, kind, algorithm, BENCH_PRIVATE, false});
        return;
    }
    for (bench_memory m = BENCH_FROM_WINDOW; m < BENCH_MEMORIES; m++)
        if (makes_sense(kind, m) && suffices(algorithm, kind, m, layout))
            add(list, (bench_variant){name, kind, algorithm, m, false});
}

static bool is_mpi(zero_algorithm algorithm)
{
    return zero_algorithm_get(algorithm)->posts_mpi_collectives;
}

static void add_kind(variant_list *list, zero_collective_kind kind,
                     const zero_layout *layout)
{
    for (zero_algorithm a = 0; a < ZERO_ALGORITHMS; a++)
        if (is_mpi(a)) add_mpi(list, kind, a);
    for (zero_algorithm a = 0; a < ZERO_ALGORITHMS; a++)
        if (!is_mpi(a)) add_own(list, kind, a, layout);
}

int bench_variants(const zero_layout *layout, bench_variant variants[BENCH_MAX_VARIANTS])
{
    variant_list list = {.variants = variants};
    for (zero_collective_kind k = 0; k < ZERO_COLLECTIVE_KINDS; k++)
        add_kind(&list, k, layout);
    return list.n;
}
