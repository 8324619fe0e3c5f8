/* inspect.h - the host looks at what the backend has computed, or writes there.
 *
 * Without a device this is the memory itself; with one, pieces pass through two chunks of
 * the host's memory (schedule.h). Between walks, or in an instruction that may wait. Not
 * from a visitor of states (visit.h), which uses the same chunks.
 *
 * Both return the backend's failure; pieces may hold anything then. */
#pragma once

#include "state/runner.h"

/* Bytes of a piece: all pieces but the last are as long. A multiple of 1 MiB. */
#define ZERO_INSPECT_PIECE ((size_t)3 << 20)

typedef void zero_inspect_look(void *arg, const void *piece, size_t bytes);
typedef void zero_inspect_fill(void *arg, void *piece, size_t bytes);

/* Calls `look` for consecutive pieces of memory[bytes], or for all of it at once. */
zero_status zero_inspect(zero_runner *r, const void *memory, size_t bytes,
                         zero_inspect_look *look, void *arg);
/* Calls `fill`, which writes all of a piece, likewise. */
zero_status zero_overwrite(zero_runner *r, void *memory, size_t bytes,
                           zero_inspect_fill *fill, void *arg);
