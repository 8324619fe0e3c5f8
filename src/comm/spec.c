#include "comm/spec.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "comm/step.h"

#define MAX_CHUNK    ((int64_t)1 << 28) /* elements: messages of 1 GiB */
#define MAX_ELEMENTS ((int64_t)1 << 60)

static const zero_algorithm_table *const algorithms[ZERO_ALGORITHMS] = {
    [ZERO_ALGORITHM_P2P] = &zero_algorithm_p2p,
    [ZERO_ALGORITHM_MPI] = &zero_algorithm_mpi,
    [ZERO_ALGORITHM_SHM] = &zero_algorithm_shm,
    [ZERO_ALGORITHM_HIER] = &zero_algorithm_hier,
};

const char *zero_collective_kind_name(zero_collective_kind kind)
{
    static const char *const names[] = {"reduce-scatter", "all-gather", "reduce",
                                        "broadcast"};
    return names[kind];
}

const char *zero_algorithm_name(zero_algorithm algorithm)
{
    return algorithms[algorithm]->name;
}

bool zero_algorithm_find(const char *name, zero_algorithm *algorithm)
{
    for (int a = 0; a < ZERO_ALGORITHMS; a++) {
        if (strcmp(name, algorithms[a]->name) != 0) continue;
        *algorithm = (zero_algorithm)a;
        return true;
    }
    return false;
}

bool zero_algorithm_needs_window(zero_algorithm algorithm, const zero_layout *layout)
{
    bool shares = algorithm == ZERO_ALGORITHM_SHM || algorithm == ZERO_ALGORITHM_HIER;
    return shares && zero_layout_largest_node(layout) > 1;
}

zero_algorithm zero_algorithm_choose(const zero_layout *layout, const char **why)
{
    *why = "one rank per node";
    if (layout->n_nodes == layout->size) return ZERO_ALGORITHM_P2P;
    *why = "all ranks on one node";
    if (layout->n_nodes == 1) return ZERO_ALGORITHM_SHM;
    *why = "ranks are not mapped to nodes in blocks";
    if (!layout->in_blocks) return ZERO_ALGORITHM_P2P;
    *why = "several nodes with several ranks";
    return ZERO_ALGORITHM_HIER;
}

static zero_status check_sizes(const zero_collective_spec *spec, int size)
{
    bool has_root = zero_collective_has_root(spec->kind);
    int64_t stride = has_root ? spec->count : spec->stride;
    if (spec->count < 0 || spec->count > stride || stride > MAX_ELEMENTS / size)
        return zero_fail(
            ZERO_ERR_INVALID,
            "a collective over %d pieces of %" PRId64 " elements, %" PRId64
            " apart: expected 0 <= count <= stride, and no more than 2^60 in all",
            size, spec->count, stride);
    if (spec->max_chunk < 0 || spec->max_chunk > MAX_CHUNK)
        return zero_fail(ZERO_ERR_INVALID,
                         "messages of up to %" PRId64 " elements: expected 0 to %" PRId64,
                         spec->max_chunk, MAX_CHUNK);
    if (has_root && (spec->root < 0 || spec->root >= size))
        return zero_fail(ZERO_ERR_INVALID, "a %s with root %d: expected a rank below %d",
                         zero_collective_kind_name(spec->kind), spec->root, size);
    return ZERO_OK;
}

static zero_status check_types(const zero_collective_spec *spec)
{
    bool sums = zero_collective_sums(spec->kind);
    if (spec->result == spec->type || (sums && spec->result == ZERO_FP32)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "a %s of %s that results in %s: only sums may, and only in fp32",
                     zero_collective_kind_name(spec->kind), zero_type_name(spec->type),
                     zero_type_name(spec->result));
}

/* Neighbours tell each other of chunks through counters that are not endless. */
static zero_status check_phases(const zero_collective_spec *spec, const zero_layout *layout)
{
    const int64_t most = ((int64_t)1 << ZERO_PHASE_BITS) - 8;
    int64_t chunk = algorithms[spec->algorithm]->chunk(spec, layout);
    if (!zero_algorithm_needs_window(spec->algorithm, layout) || spec->count / chunk < most)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s of %" PRId64 " elements in chunks of %" PRId64
                     ": expected fewer than %" PRId64 " chunks; choose larger ones",
                     zero_algorithm_name(spec->algorithm), spec->count, chunk, most);
}

zero_status zero_collective_check(const zero_collective_spec *spec,
                                  const zero_layout *layout)
{
    ZERO_TRY(check_sizes(spec, layout->size));
    ZERO_TRY(check_types(spec));
    const zero_algorithm_table *algorithm = algorithms[spec->algorithm];
    if (algorithm->check) ZERO_TRY(algorithm->check(spec, layout));
    return check_phases(spec, layout);
}

size_t zero_collective_staging(const zero_collective_spec *spec, const zero_layout *layout)
{
    return algorithms[spec->algorithm]->staging(spec, layout);
}

zero_status zero_steps_init(zero_steps *steps, const zero_collective_spec *spec,
                            const zero_layout *layout, int rank)
{
    ZERO_TRY(zero_collective_check(spec, layout));
    const zero_algorithm_table *algorithm = algorithms[spec->algorithm];
    zero_steps new = {.spec = *spec,
                      .layout = layout,
                      .rank = rank,
                      .chunk = algorithm->chunk(spec, layout)};
    algorithm->write(&new);
    if (new.failed) {
        zero_fail(ZERO_ERR_NOMEM,
                  "no room for a %s of %" PRId64 " steps and more (%" PRId64
                  " elements in chunks of %" PRId64 "): choose larger chunks",
                  zero_collective_kind_name(spec->kind), new.n, spec->count, new.chunk);
        zero_steps_destroy(&new);
        return ZERO_ERR_NOMEM;
    }
    *steps = new;
    return ZERO_OK;
}

/* ---- what it moves ---- */

void zero_traffic_add(zero_traffic *sum, int64_t times, const zero_traffic *more)
{
    for (int reach = 0; reach < ZERO_REACHES; reach++) {
        sum->bytes_sent[reach] += times * more->bytes_sent[reach];
        sum->bytes_received[reach] += times * more->bytes_received[reach];
        sum->messages_sent[reach] += times * more->messages_sent[reach];
        sum->messages_received[reach] += times * more->messages_received[reach];
    }
}

zero_volume zero_traffic_total(const zero_traffic *traffic)
{
    zero_volume v = {0};
    for (int reach = 0; reach < ZERO_REACHES; reach++) {
        v.bytes_sent += traffic->bytes_sent[reach];
        v.bytes_received += traffic->bytes_received[reach];
        v.messages_sent += traffic->messages_sent[reach];
        v.messages_received += traffic->messages_received[reach];
    }
    return v;
}

/* Of `times` runs with a single chunk of `len` elements. */
static zero_status add_chunks(const zero_collective_spec *spec, const zero_layout *layout,
                              int rank, int64_t times, int64_t len, zero_traffic *traffic)
{
    zero_collective_spec one = *spec;
    zero_steps steps;
    zero_traffic of_one = {0};
    if (times == 0 || len == 0) return ZERO_OK;
    one.count = len;
    one.max_chunk = len;
    ZERO_TRY(zero_steps_init(&steps, &one, layout, rank));
    for (int64_t i = 0; i < steps.n; i++) zero_steps_count(&steps, &steps.list[i], &of_one);
    zero_traffic_add(traffic, times, &of_one);
    zero_steps_destroy(&steps);
    return ZERO_OK;
}

/* All chunks but the last are alike. */
zero_status zero_collective_traffic(const zero_collective_spec *spec,
                                    const zero_layout *layout, int rank,
                                    zero_traffic *traffic)
{
    zero_traffic all = {0};
    ZERO_TRY(zero_collective_check(spec, layout));
    int64_t chunk = algorithms[spec->algorithm]->chunk(spec, layout);
    ZERO_TRY(add_chunks(spec, layout, rank, spec->count / chunk, chunk, &all));
    ZERO_TRY(add_chunks(spec, layout, rank, 1, spec->count % chunk, &all));
    *traffic = all;
    return ZERO_OK;
}
