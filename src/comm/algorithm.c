#include "comm/algorithm.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "comm/device_steps.h"
#include "comm/mirror.h"

/* ---- the registry ---- */

#define TABLE(NAME, name) [ZERO_ALGORITHM_##NAME] = &zero_algorithm_##name,
static const zero_algorithm_table *const tables[] = {ZERO_ALGORITHM_LIST(TABLE)};

#define WORD(NAME, name) [ZERO_ALGORITHM_##NAME] = #name,
static const char *const names[] = {ZERO_ALGORITHM_LIST(WORD)};

const zero_algorithm_table *zero_algorithm_get(zero_algorithm algorithm)
{
    return tables[algorithm];
}

const char *zero_algorithm_name(zero_algorithm algorithm)
{
    return names[algorithm];
}

const char *zero_algorithm_name_at(int i)
{
    return i < ZERO_ALGORITHMS ? names[i] : NULL;
}

bool zero_algorithm_find(const char *name, zero_algorithm *algorithm)
{
    for (int a = 0; a < ZERO_ALGORITHMS; a++) {
        if (strcmp(name, names[a]) != 0) continue;
        *algorithm = (zero_algorithm)a;
        return true;
    }
    return false;
}

/* ---- choice ---- */

bool zero_algorithm_needs_window(zero_algorithm algorithm, const zero_layout *layout)
{
    return tables[algorithm]->works_in_window && zero_layout_largest_node(layout) > 1;
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

/* ---- requirements ---- */

/* Neighbours count chunks in the few bits that a signal has for phases. */
static zero_status check_phases(const zero_collective_spec *spec, const zero_layout *layout)
{
    const int64_t most = ((int64_t)1 << ZERO_PHASE_BITS) - 8;
    int64_t chunk = tables[spec->algorithm]->chunk(spec, layout);
    if (!zero_algorithm_needs_window(spec->algorithm, layout) || spec->count / chunk < most)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s of %" PRId64 " elements in chunks of %" PRId64
                     ": expected fewer than %" PRId64 " chunks; choose larger ones",
                     names[spec->algorithm], spec->count, chunk, most);
}

zero_status zero_collective_check(const zero_collective_spec *spec,
                                  const zero_layout *layout)
{
    ZERO_TRY(zero_collective_check_spec(spec, layout->size));
    const zero_algorithm_table *algorithm = tables[spec->algorithm];
    if (algorithm->check) ZERO_TRY(algorithm->check(spec, layout));
    return check_phases(spec, layout);
}

size_t zero_collective_staging(const zero_collective_spec *spec, const zero_layout *layout)
{
    zero_collective_spec mirrored = zero_collective_mirrored(spec);
    return zero_collective_mirrors(spec, layout->size, 0).staged +
           tables[spec->algorithm]->staging(&mirrored, layout);
}

/* ---- steps and traffic ---- */

zero_status zero_steps_init(zero_steps *steps, const zero_collective_spec *spec,
                            const zero_layout *layout, int rank)
{
    ZERO_TRY(zero_collective_check(spec, layout));
    const zero_algorithm_table *algorithm = tables[spec->algorithm];
    zero_steps new = {
        .spec = zero_collective_mirrored(spec), .layout = layout, .rank = rank};
    new.chunk = algorithm->chunk(&new.spec, layout);
    algorithm->write(&new);
    if (spec->message > 0) zero_steps_pace(&new);
    if (spec->on_device) zero_steps_add_copies(&new, spec->stride);
    new.spec = *spec;
    if (new.failed) {
        zero_fail(ZERO_ERR_NOMEM,
                  "no memory for a %s of %" PRId64 " steps and more (%" PRId64
                  " elements in chunks of %" PRId64 "): choose larger chunks",
                  zero_collective_kind_name(spec->kind), new.n, spec->count, new.chunk);
        zero_steps_destroy(&new);
        return ZERO_ERR_NOMEM;
    }
    *steps = new;
    return ZERO_OK;
}

/* Adds the traffic of `times` runs with a single chunk of `len` elements. */
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
    int64_t chunk = tables[spec->algorithm]->chunk(spec, layout);
    ZERO_TRY(add_chunks(spec, layout, rank, spec->count / chunk, chunk, &all));
    ZERO_TRY(add_chunks(spec, layout, rank, 1, spec->count % chunk, &all));
    *traffic = all;
    return ZERO_OK;
}
