/* requests.h - what is asked of a running job by signals.
 *
 *     SIGUSR1            save a checkpoint and go on
 *     SIGUSR2, SIGTERM   save a checkpoint and stop
 *
 * The signals are blocked and asked for between steps, so none of them interrupts anything.
 * mpirun passes on USR1 and USR2 to all ranks; SIGTERM reaches them under srun, or where its
 * mpirun gives them time. */
#pragma once

#include <stdbool.h>

/* Ordered: of several requests the last one is done. */
typedef enum { ZERO_REQUEST_NONE, ZERO_REQUEST_SAVE, ZERO_REQUEST_STOP } zero_request;

/* From now on they wait to be taken. Before threads are started, which inherit that. SIGTERM
 * keeps ending the process unless there is something to save to. */
void zero_requests_expect(bool can_save);

/* The highest request since the last call. Never blocks. */
zero_request zero_requests_take(void);
