/* algorithm_list.h - the algorithms of collectives, one row each.
 *
 *     ROW(NAME, name)   ZERO_ALGORITHM_NAME in code; "name" in options, files and messages;
 *                       zero_algorithm_name, its table (algorithm.h)
 *
 * The enumeration, the names and the registry come from this list alone. */
#pragma once

/* clang-format off */
#define ZERO_ALGORITHM_LIST(ROW) \
    ROW(P2P,  p2p)  /* pairwise messages; between nodes */ \
    ROW(MPI,  mpi)  /* MPI's own collectives, as a baseline; adds in the type of the result */ \
    ROW(SHM,  shm)  /* through the node's window: owners read their peers' memory; one node */ \
    ROW(HIER, hier) /* shm within nodes, messages between them */ \
    /* the next one */

#define ZERO_ALGORITHM_ENUMERATOR(NAME, name) ZERO_ALGORITHM_##NAME,
typedef enum { ZERO_ALGORITHM_LIST(ZERO_ALGORITHM_ENUMERATOR) ZERO_ALGORITHMS } zero_algorithm;
/* clang-format on */
