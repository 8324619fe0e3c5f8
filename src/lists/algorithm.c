#include "lists/algorithm.h"

#include "lists/device_steps.h"
#include "lists/mirror.h"

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
        if (!zero_same_text(name, names[a])) continue;
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

zero_status zero_collective_check(const zero_collective_spec *spec,
                                  const zero_layout *layout)
{
    ZERO_TRY(zero_collective_check_spec(spec, layout->size));
    const zero_algorithm_table *algorithm = tables[spec->algorithm];
    if (algorithm->check) ZERO_TRY(algorithm->check(spec, layout));
    /* Neighbours count chunks in the few bits that a signal has for phases. */
    const int64_t most = ((int64_t)1 << ZERO_PHASE_BITS) - 8;
    int64_t chunk = tables[spec->algorithm]->chunk(spec, layout);
    ZERO_INVALID_IF(!(!zero_algorithm_needs_window(spec->algorithm, layout) ||
                      spec->count / chunk < most),
                    "%s of %" PRId64 " elements in chunks of %" PRId64
                    ": expected fewer than %" PRId64 " chunks; choose larger ones",
                    names[spec->algorithm], spec->count, chunk, most);
    return ZERO_OK;
}

size_t zero_collective_staging(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (zero_collective_is_nothing(spec, layout->size)) return 0;
    if (!spec->on_device) return tables[spec->algorithm]->staging(spec, layout);
    zero_collective_spec mirrored = zero_collective_mirrored(spec);
    return zero_collective_mirrors(spec, layout->size, 0).staged +
           tables[spec->algorithm]->staging(&mirrored, layout);
}

/* ---- steps ---- */

static void write_steps(zero_steps *steps)
{
    const zero_algorithm_table *algorithm = tables[steps->spec.algorithm];
    steps->chunk = algorithm->chunk(&steps->spec, steps->layout);
    if (zero_collective_is_nothing(&steps->spec, steps->layout->size)) return;
    if (steps->spec.direct) zero_steps_mark(steps);
    algorithm->write(steps);
}

static zero_status check_written(const zero_steps *steps)
{
    const zero_collective_spec *spec = &steps->spec;
    ZERO_FAIL_IF(steps->failed, ZERO_ERR_NOMEM,
                 "no memory for a %s of %" PRId64 " steps and more (%" PRId64
                 " elements in chunks of %" PRId64 "): choose larger chunks",
                 zero_collective_kind_name(spec->kind), steps->n, spec->count,
                 steps->chunk);
    return ZERO_OK;
}

zero_status zero_steps_init(zero_steps *steps, const zero_collective_spec *spec,
                            const zero_layout *layout, int rank)
{
    ZERO_TRY(zero_collective_check(spec, layout));
    ZERO_AT_END(zero_steps_destroy)
    zero_steps new = {
        .spec = zero_collective_mirrored(spec), .layout = layout, .rank = rank};
    write_steps(&new);
    if (spec->message > 0) zero_steps_pace(&new);
    if (zero_collective_stages_on_device(spec))
        zero_steps_message_late(&new);
    else if (spec->direct)
        zero_steps_signal_late(&new);
    else if (spec->on_device)
        zero_steps_add_copies(&new, spec->stride);
    new.spec = *spec;
    ZERO_TRY(check_written(&new));
    ZERO_GIVE(steps, new);
    return ZERO_OK;
}

/* ---- traffic ---- */

/* Adds to *traffic what the algorithm's steps move, as they are written. */
static zero_status count_steps(const zero_collective_spec *spec, const zero_layout *layout,
                               int rank, zero_traffic *traffic)
{
    if (spec->on_device && !spec->direct) {
        /* With a device, copies are put between the steps of a finished list. */
        zero_steps steps;
        ZERO_TRY(zero_steps_init(&steps, spec, layout, rank));
        for (int64_t i = 0; i < steps.n; i++)
            zero_steps_count(&steps, &steps.list[i], traffic);
        zero_steps_destroy(&steps);
        return ZERO_OK;
    }
    zero_steps steps = {.spec = *spec, .layout = layout, .rank = rank, .counted = traffic};
    write_steps(&steps);
    if (steps.n > 0) zero_steps_count(&steps, &steps.last, traffic);
    zero_status st = check_written(&steps);
    zero_steps_destroy(&steps);
    return st;
}

/* All chunks take the same steps, but in an all-reduce, whose bytes are proportional to the
 * chunk's length. So the steps of one chunk of one element tell all. */
static zero_status take_unit(zero_traffic_memo *memo, const zero_collective_spec *spec,
                             const zero_layout *layout, int rank)
{
    zero_collective_spec unit = *spec;
    zero_traffic traffic = {0};
    unit.count = unit.stride = unit.max_chunk = 1;
    unit.message = 0;
    unit.in_apart = unit.in_apart > 0;
    unit.out_apart = unit.out_apart > 0;
    unit.in_turn = false;
    unit.unit = ZERO_NO_UNIT;
    if (memo->layout == layout && memo->rank == rank &&
        memcmp(&memo->spec, &unit, sizeof unit) == 0)
        return ZERO_OK;
    ZERO_TRY(count_steps(&unit, layout, rank, &traffic));
    *memo = (zero_traffic_memo){unit, layout, rank, traffic};
    return ZERO_OK;
}

zero_status zero_collective_traffic_again(zero_traffic_memo *memo,
                                          const zero_collective_spec *spec,
                                          const zero_layout *layout, int rank,
                                          zero_traffic *traffic)
{
    *traffic = (zero_traffic){0};
    ZERO_TRY(zero_collective_check(spec, layout));
    if (spec->kind == ZERO_ALL_REDUCE) return count_steps(spec, layout, rank, traffic);
    if (spec->count == 0) return ZERO_OK;
    ZERO_TRY(take_unit(memo, spec, layout, rank));
    int64_t chunk = tables[spec->algorithm]->chunk(spec, layout);
    int64_t chunks = zero_divide_up(spec->count, chunk);
    zero_traffic_add(traffic, spec->count, &memo->unit);
    for (int reach = 0; reach < ZERO_REACHES; reach++) {
        traffic->messages_sent[reach] = chunks * memo->unit.messages_sent[reach];
        traffic->messages_received[reach] = chunks * memo->unit.messages_received[reach];
    }
    return ZERO_OK;
}

zero_status zero_collective_traffic(const zero_collective_spec *spec,
                                    const zero_layout *layout, int rank,
                                    zero_traffic *traffic)
{
    zero_traffic_memo memo = {0};
    zero_traffic all;
    ZERO_TRY(zero_collective_traffic_again(&memo, spec, layout, rank, &all));
    *traffic = all;
    return ZERO_OK;
}
