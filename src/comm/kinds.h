/* kinds.h - what ranks say of themselves: those that say the same are of one kind. */
#pragma once

#include "comm/comm.h"
#include "comm/sentence.h"

#define ZERO_KIND_BYTES 512 /* longer texts are cut */

typedef struct {
    zero_sentence ranks; /* "ranks 0-2,5" */
    char text[ZERO_KIND_BYTES];
} zero_kind;

/* The kinds of the group's ranks, that of rank 0 first: (*kinds)[*n], the caller's (free).
 * Collective, one verdict; ZERO_ERR_NOMEM. */
zero_status zero_comm_kinds(zero_comm *comm, const char *mine, zero_kind **kinds, int *n);
