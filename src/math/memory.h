/* memory.h - memory of a device, which the host cannot touch: taken, copied, shared. A
 * backend that computes in such memory has a zero_memory in its table (backend.h). */
#pragma once

#include "base/fail.h"
#include "base/tree.h"
#include "zero/math.h"

/* A copy in flight between the host's memory and a device's; 0: one that has ended. */
typedef uint64_t zero_ticket;

/* A place among the calls of a backend: all made before it. 0: all made so far, whenever
 * that is. */
typedef uint64_t zero_call_place;

/* By which another process of this machine opens a piece of device memory. */
typedef struct {
    unsigned char bytes[96];
} zero_memory_handle;

/* out[len] = the sum of n pieces x[len] along the tree of base/tree.h, with the CPU's
 * bits. */
typedef struct {
    int n; /* 1 to ZERO_MEMORY_TERMS */
    const zero_tree_term
        *terms; /* leaves 0 to n - 1, all of one type; read before sum() returns */
    int64_t len;
    zero_type type; /* of `out`: that of the terms, or fp32 */
    void *out;      /* it may be one of the pieces if the types are equal */
} zero_memory_sum;

#define ZERO_MEMORY_TERMS 64 /* ranks of a node, or with messages of a group, at most */

/* Memory that devices of this machine reach in each other, or processes in one device,
 * without the host.
 *
 *     share     a handle of a piece that take() gave; it holds until give_back()
 *     open      that piece in another process, until close(). ZERO_ERR_UNSUPPORTED, with
 *               the reason, if this device cannot reach it; nothing else fails then
 *     mark      copies nothing
 *     copy      from memory of this device, or that was opened, to memory of this device,
 *               or of the host if it was pinned
 *     sum       likewise
 *
 * The last three are queued as stores are, in their order: they wait for calls as stores
 * do, and have tickets as theirs. Other processes may read what a device has written once
 * its ticket has ended, and nothing orders them but the host. */
typedef struct {
    zero_status (*share)(zero_math *math, void *memory, zero_memory_handle *handle);
    zero_status (*open)(zero_math *math, const zero_memory_handle *handle, void **memory);
    void (*close)(zero_math *math, void *memory);
    zero_status (*mark)(const zero_math *math, zero_ticket *ticket);
    zero_status (*copy)(const zero_math *math, void *to, const void *from, size_t bytes,
                        zero_ticket *ticket);
    zero_status (*sum)(const zero_math *math, const zero_memory_sum *sum,
                       zero_ticket *ticket);
} zero_memory_sharing;

/* Code that can read and write memory of a device, beside the device's own calls and
 * copies. */
typedef enum {
    ZERO_MEMORY_CLOSED,  /* none */
    ZERO_MEMORY_OF_CUDA, /* libraries that know CUDA's memory, such as some MPIs */
    ZERO_MEMORY_OPEN,    /* all code of this process */
} zero_memory_access;

/* Memory that the host cannot touch. A copy begins, like begin of a collective, without
 * blocking:
 *
 *     fetch or store -> ended ... ended          the host waits for it, or
 *                    -> after                    calls and copies made later do
 *
 * Calls of the backend, fetches and stores are three queues. A copy waits for all calls
 * made before it, and for what was given to after() before it. Until it has ended, or
 * after() was called, nobody uses what it touches: neither the host the host's memory, nor
 * a later call the device's. Copies of one direction end in their order.
 *
 * place() notes a place among the calls, for copies that begin one by one later. Copies
 * begun after since(place) wait for the calls before that place alone, so they run beside
 * calls made after it. since(0) ends that.
 *
 * Errors are sticky: once a call has failed, every later one returns the first failure, and
 * ended() tells it. It is such a failure if a pointer is not the device's memory, or if a
 * copy's ranges are not inside one piece that take() gave and one that was pinned.
 * give_back() and unpin() wait for what is queued, which may use the memory; after a
 * failure nothing runs any more. close() never waits: it drops what is queued and frees all
 * memory. */
typedef struct {
    /* Zeroed, aligned to ZERO_MEMORY_ALIGN, or ZERO_ERR_NOMEM. At set-up: never while a
     * program is walked. */
    zero_status (*take)(zero_math *math, size_t bytes, void **memory);
    void (*give_back)(zero_math *math, void *memory);
    /* Host memory that copies may use, and no other. Whole pages, each once. */
    zero_status (*pin)(zero_math *math, void *host, size_t bytes);
    void (*unpin)(zero_math *math, void *host);
    zero_status (*fetch)(const zero_math *math, void *host, const void *memory,
                         size_t bytes, zero_ticket *ticket);
    zero_status (*store)(const zero_math *math, void *memory, const void *host,
                         size_t bytes, zero_ticket *ticket);
    zero_status (*ended)(const zero_math *math, zero_ticket ticket, bool *ended);
    zero_status (*after)(const zero_math *math, zero_ticket ticket);
    zero_status (*place)(const zero_math *math, zero_call_place *place);
    void (*since)(const zero_math *math, zero_call_place place);
    const zero_memory_sharing *sharing; /* NULL: no other process reaches this memory */
    /* Asked of a piece that take() gave. NULL: ZERO_MEMORY_CLOSED. */
    zero_memory_access (*access)(const zero_math *math, const void *memory);
} zero_memory;

#define ZERO_MEMORY_ALIGN 256 /* bytes: of buffers on a device */
