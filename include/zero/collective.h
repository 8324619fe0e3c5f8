/* collective.h - collectives on any data, begun and waited for by any thread.
 *
 *     zero_work *work;
 *     zero_reduce_scatter_begin(comm, ZERO_SUM, ZERO_NUMBER_FP32, n, in, out, &work);
 *     ... compute ...
 *     zero_work_wait(work, 0.0, &done);
 *     zero_work_close(&work);
 *
 * N is the size of the group, and `count` any number from 0 on. All ranks of a group begin
 * the same operations in the same order; those of different groups in any order. Any number
 * may be in flight, and be waited for in any order. A call to begin never blocks: it checks
 * its arguments here and leaves *work alone if it refuses them.
 *
 * Whoever waits moves all that is in flight, on all groups that were opened from the same
 * one; while nobody waits, a thread of the library does. So MPI must run at level
 * SERIALIZED or higher (else ZERO_ERR_UNSUPPORTED), and at MULTIPLE if the program itself
 * calls MPI meanwhile. A group serves either these functions or a trainer.
 *
 * An operation that a rank leaves out, or begins with another kind, type, count or root,
 * stalls. No message is ever taken for another one's. If the group has a watchdog, it names
 * the rank, the group and both operations: ZERO_ERR_STALLED. After this or ZERO_ERR_MPI all
 * work on all groups fails with that text, and buffers still belong to MPI: keep them, and
 * end all ranks with MPI_Abort (zero_world_abort). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zero/comm.h"
#include "zero/number.h"

ZERO_API_BEGIN

/* ---- groups ---- */

/* For programs that do not call MPI themselves: starts it at level SERIALIZED, unless it is
 * up, and opens the group of all ranks. Once per process. ZERO_ERR_ENV if the launcher
 * started several ranks and each finds itself alone. */
zero_status zero_world_open(double watchdog, zero_comm **world);
/* Changes the limit of the group's watchdog, in seconds. Local; all ranks should give the
 * same limit. Any thread. ZERO_ERR_INVALID unless `watchdog` is more than 0 and the group
 * was opened with a watchdog. */
zero_status zero_world_set_watchdog(zero_comm *world, double watchdog);
/* Closes the group, after all others, and ends MPI if zero_world_open() started it.
 * Collective: ZERO_ERR_STALLED if a rank does not come, and any failure of works before;
 * then only an abort is left. Accepts NULL and the address of a NULL. */
zero_status zero_world_close(zero_comm **world);
/* Ends all ranks at once with this exit code. Any thread, at any time; does not return. */
void zero_world_abort(int code);

/* A group of the ranks ranks[n] of `world`, in this order. Collective over these ranks
 * only, and blocks; what is in flight here ends first. `world` was not opened from another
 * group, and must be closed after this one. `name`, of up to 63 bytes, is the same on all
 * of them and tells groups of the same ranks apart; errors name the group by it.
 * ZERO_ERR_INVALID: this rank is not among the ranks, or one is twice or out of range. */
zero_status zero_comm_open_ranks(zero_comm *world, int n, const int ranks[],
                                 const char *name, zero_comm **comm);

/* What this rank has moved in a group since it was opened. Bytes that a neighbour reads
 * from this rank's memory count as sent, in no message. On N ranks, of `bytes` of a whole
 * array whose count N divides: reduce-scatter and all-gather bytes (N-1)/N each, all-reduce
 * twice that. The count mod N elements left in an all-reduce go to each other rank. */
typedef struct {
    int64_t bytes_sent, bytes_received, messages_sent, messages_received;
} zero_moved;
typedef struct {
    zero_moved reduce_scatter, all_gather, reduce, broadcast, all_reduce, exchange;
} zero_comm_bytes;
void zero_comm_traffic(const zero_comm *comm, zero_comm_bytes *out);

/* A rank that computes tells the others where, when they ask because nothing moves: `tell`
 * writes one line into text[size], such as "load_batch, train.py:57". A thread of the
 * library calls it. NULL: no more. */
typedef void zero_tell(void *arg, char *text, size_t size);
zero_status zero_comm_on_question(zero_comm *world, zero_tell *tell, void *arg);

/* ---- memory that neighbours read ---- */

/* Gives each rank `bytes` of memory that the other ranks of the group read directly:
 * reduce-scatter, all-gather and all-reduce whose data lie there on all ranks need no
 * messages. Collective, blocks; once per group. ZERO_ERR_UNSUPPORTED if the ranks are on
 * several nodes; ZERO_ERR_ENV if /dev/shm is too small. */
zero_status zero_comm_share(zero_comm *comm, size_t bytes);
/* Takes a part of it, aligned to 4096 bytes, and gives it back. Local; any thread. NULL if
 * there is none free: then memory of your own does. */
void *zero_comm_allocate(zero_comm *comm, size_t bytes);
void zero_comm_free(zero_comm *comm, void *memory);

/* ---- operations ---- */

typedef struct zero_work zero_work; /* owned by the caller until zero_work_close() */

/* out[count] = the reduction of in[N * count], piece `rank`. `out` may be that piece. */
zero_status zero_reduce_scatter_begin(zero_comm *comm, zero_reduction reduction,
                                      zero_number number, int64_t count, const void *in,
                                      void *out, zero_work **work);
/* out[N * bytes] = the in[bytes] of all ranks. `in` may be piece `rank` of `out`. */
zero_status zero_all_gather_begin(zero_comm *comm, size_t bytes, const void *in, void *out,
                                  zero_work **work);
/* data[count] = its reduction over the ranks. */
zero_status zero_all_reduce_begin(zero_comm *comm, zero_reduction reduction,
                                  zero_number number, int64_t count, void *data,
                                  zero_work **work);
/* The same on rank `root` alone; data of other ranks stay as they are. */
zero_status zero_reduce_begin(zero_comm *comm, zero_reduction reduction, zero_number number,
                              int64_t count, int root, void *data, zero_work **work);
zero_status zero_broadcast_begin(zero_comm *comm, size_t bytes, int root, void *data,
                                 zero_work **work);

/* One message to or from a rank. Those between two ranks that are equal in tag and bytes
 * meet in the order in which they are begun; others do not meet. */
typedef struct {
    int peer;
    bool receives; /* else sends */
    int tag;    /* 0 to 32767; or -1 in all messages of an operation that all ranks of the
                    * group begin, as a gather or an all-to-all: it counts as one in their order */
    void *data; /* sends: not changed */
    size_t bytes;
} zero_message;

/* Gather, scatter, all-to-all with any sizes, send, receive. messages[n] is copied; with
 * n = 0 it takes part in an operation of all ranks. */
zero_status zero_exchange_begin(zero_comm *comm, int n, const zero_message messages[],
                                zero_work **work);
/* Ends when all ranks have begun it. */
zero_status zero_barrier_begin(zero_comm *comm, zero_work **work);

/* ---- ends ---- */

/* *done: whether it has ended, also when asked again. Moves what is in flight; does not
 * block. */
zero_status zero_work_test(zero_work *work, bool *done);
/* Waits until it has ended, or for so many seconds; 0: without a limit but the watchdog's.
 * The first spins and yields the processor; the second, for threads beside one that
 * computes, sleeps between looks while that one does. */
zero_status zero_work_wait(zero_work *work, double seconds, bool *done);
zero_status zero_work_wait_beside(zero_work *work, double seconds, bool *done);
/* Frees it, and before that waits if it is in flight. Accepts NULL and the address of a
 * NULL. */
void zero_work_close(zero_work **work);

ZERO_API_END
