/* step_cases.h - random cases for the step machine. */
#pragma once

#include "support/collective_cases.h"
#include "support/step_machine.h"

/* Counts the maximal subtrees of the tree over [begin, begin + size) in [first, first + n). */
static inline int count_subtrees(int begin, int size, int first, int n)
{
    if (first + n <= begin || begin + size <= first) return 0;
    if (first <= begin && begin + size <= first + n) return 1;
    int left = 1;
    while (2 * left < size) left *= 2;
    return count_subtrees(begin, left, first, n) +
           count_subtrees(begin + left, size - left, first, n);
}

static inline int count_node_subtrees(const zero_layout *layout, int node)
{
    int first = layout->first[node];
    return count_subtrees(0, layout->size, first, layout->first[node + 1] - first);
}

/* The pairwise exchange needs two messages in flight. Between nodes a rank posts all subtrees of
 * one node, and then one more. */
static inline int least_requests(const zero_collective_spec *spec,
                                 const zero_layout *layout)
{
    int most = 1;
    bool sums = zero_collective_sums(spec->kind);
    for (int node = 0; node < layout->n_nodes && layout->in_blocks; node++)
        if (sums && count_node_subtrees(layout, node) > most)
            most = count_node_subtrees(layout, node);
    return most + 1;
}

static inline machine_case vary_case(zero_algorithm algorithm, zero_collective_kind kind,
                                     const zero_layout *layout, uint64_t trial)
{
    machine_case c = {.layout = layout, .trial = trial};
    uint64_t random = oracle_mix(trial);
    c.spec = vary_spec(algorithm, kind, layout->size, &random);
    c.in_place = c.spec.result == c.spec.type && toss(&random);
    c.eager = toss(&random);
    int64_t requests[] = {least_requests(&c.spec, layout), 7, 32};
    c.requests = (int)pick(&random, 3, requests);
    if (c.requests < requests[0]) c.requests = (int)requests[0];
    if (toss(&random)) c.trial += ORACLE_SPECIAL;
    return c;
}
