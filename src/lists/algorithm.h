/* algorithm.h - how collectives are done: the registry of algorithms, and what they
 * promise.
 *
 * An algorithm writes the list of steps with which one rank takes part in a collective
 * (step.h). It is one file that ends in its table, and a row in algorithm_list.h. No MPI
 * here: a plan asks the same functions for any machine.
 *
 * Algorithms that add along the tree of base/tree.h over the ranks give the same bits,
 * whatever the order of arrival, the count or the chunks. Algorithms that work in a window
 * read and write buffers of other ranks on the node (window.h). */
#pragma once

#include "lists/step.h"

typedef struct {
    /* Conditions beyond zero_collective_check_spec(); NULL: none. */
    zero_status (*check)(const zero_collective_spec *spec, const zero_layout *layout);
    /* Elements per step, and bytes of staging, at most. */
    int64_t (*chunk)(const zero_collective_spec *spec, const zero_layout *layout);
    size_t (*staging)(const zero_collective_spec *spec, const zero_layout *layout);
    /* Appends the steps of steps->rank. */
    void (*write)(zero_steps *steps);

    bool works_in_window;       /* on nodes of several ranks */
    bool adds_along_tree;       /* else in an order of its own */
    bool bounds_staging;        /* by ZERO_COLLECTIVE_STAGING, and by max_chunk */
    bool stages_on_root_only;   /* in a reduce */
    bool posts_mpi_collectives; /* has steps of the kind ZERO_STEP_MPI */
} zero_algorithm_table;

#define ZERO_ALGORITHM_DECLARE(NAME, name) \
    extern const zero_algorithm_table zero_algorithm_##name;
ZERO_ALGORITHM_LIST(ZERO_ALGORITHM_DECLARE)

const zero_algorithm_table *zero_algorithm_get(zero_algorithm algorithm);

const char *zero_algorithm_name(zero_algorithm algorithm); /* "p2p" */
/* The name of algorithm i, from 0 on; NULL past the last one. */
const char *zero_algorithm_name_at(int i);
/* The algorithm of that name; false if there is none. */
bool zero_algorithm_find(const char *name, zero_algorithm *algorithm);

/* True if it works in windows on nodes of this layout. */
bool zero_algorithm_needs_window(zero_algorithm algorithm, const zero_layout *layout);

/* The best algorithm for a group whose nodes can share memory: shm for ranks of one node,
 * hier for several nodes of which one has several ranks, p2p otherwise, and where ranks are
 * not in blocks. The size decides nothing: reading memory is faster at all sizes
 * (bench/results), and `mpi`, which small all-gathers might prefer, has other bits. *why
 * tells the user the reason. */
zero_algorithm zero_algorithm_choose(const zero_layout *layout, const char **why);

/* ZERO_ERR_INVALID, with the numbers, for sizes and types outside the bounds of spec.h,
 * arrays beyond 2^60 elements, or more chunks than neighbours can count;
 * ZERO_ERR_UNSUPPORTED for an algorithm that cannot run on this layout. */
zero_status zero_collective_check(const zero_collective_spec *spec,
                                  const zero_layout *layout);

/* Bytes of staging that begin needs, on any rank. Never less for a larger count below the
 * stride. At most ZERO_COLLECTIVE_STAGING, unless chunks would become smaller than 64
 * elements (beyond 8192 ranks) or the algorithm does not bound its staging. On a device the
 * mirrors come in addition: zero_collective_mirrors() (mirror.h) says how many bytes they
 * are. */
size_t zero_collective_staging(const zero_collective_spec *spec, const zero_layout *layout);

/* The traffic of one run on rank `rank`, in time proportional to the ranks: the steps of
 * one chunk are written and counted, and none is kept. The status of
 * zero_collective_check(), or
 * ZERO_ERR_NOMEM. */
zero_status zero_collective_traffic(const zero_collective_spec *spec,
                                    const zero_layout *layout, int rank,
                                    zero_traffic *traffic);

/* The traffic of one chunk of one element of the last collective; begins zeroed. */
typedef struct {
    zero_collective_spec spec;
    const zero_layout *layout; /* borrowed */
    int rank;
    zero_traffic unit;
} zero_traffic_memo;

/* The same, in no time if the collective differs from the memo's last one only in count,
 * stride, chunk or unit: as those of a model's groups do. Outputs are undefined after a
 * failure. */
zero_status zero_collective_traffic_again(zero_traffic_memo *memo,
                                          const zero_collective_spec *spec,
                                          const zero_layout *layout, int rank,
                                          zero_traffic *traffic);

/* Writes the steps of one rank of the layout. Borrows the layout. Local; the status of
 * zero_collective_check(), or ZERO_ERR_NOMEM. Release with zero_steps_destroy(). */
zero_status zero_steps_init(zero_steps *steps, const zero_collective_spec *spec,
                            const zero_layout *layout, int rank);
