/* optimizer.h - the inside of zero/optimizer.h: two collectives on the program's own
 * memory.
 *
 * Collectives need N equal pieces, and the program's arrays have no padding. So there are
 * two parts: SHARDS, cut in place into N shards of whole granules, and the REST, less than
 * a granule per rank, which goes through a padded copy. */
#pragma once

#include "base/arena.h"
#include "comm/collective.h"
#include "math/backend.h"
#include "zero/optimizer.h"

enum { SHARDS, REST, PARTS };

struct part {
    int64_t begin;  /* of all ranks' pieces, in the flat space */
    int64_t stride; /* of one rank's piece; elements */
    zero_range own; /* this rank's piece without padding, in the flat space */
    float *master, *momentum, *variance; /* [stride] */
    char *params, *grads;                /* the rest: the padded copies, [N][stride] */
    zero_collective collectives[2];      /* reduces; gathers */
    void *staging;
};

struct zero_optimizer {
    zero_optimizer_spec spec;
    zero_range *no_decay; /* owned */
    zero_comm *comm;      /* kept from ending */
    const zero_backend *backend;
    zero_math math;
    struct part parts[PARTS];
    zero_arena arena;
    int64_t updates;
};

/* Bytes of n elements of the arrays. */
size_t zero_optimizer_bytes(const zero_optimizer *o, int64_t n);
