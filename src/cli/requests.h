/* requests.h - requests to a running job, made by signals.
 *
 *     SIGUSR1                            save a checkpoint and continue
 *     SIGUSR2, SIGTERM, SIGINT, SIGHUP   save a checkpoint and stop
 *
 * The signals are blocked and polled between steps, so they interrupt nothing. mpirun
 * forwards USR1 and USR2 to all ranks; SIGTERM reaches them under srun, or if mpirun gives
 * them time. SIGHUP is a terminal or a connection that has gone; where it is ignored, as
 * under nohup, it stays so. SIGINT, a Ctrl-C, reaches a rank without mpirun; a second one
 * ends the process at once. */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* Ordered: the highest of several requests is acted on. */
typedef enum { ZERO_REQUEST_NONE, ZERO_REQUEST_SAVE, ZERO_REQUEST_STOP } zero_request;

/* Keeps signals pending for the main thread, which calls this; other threads forward theirs
 * to it. SIGTERM, SIGINT and SIGHUP still end the process unless `can_save`; then SIGPIPE
 * is ignored. */
void zero_requests_expect(bool can_save);

/* The highest request since the last call. Never blocks. */
zero_request zero_requests_take(void);

/* From now on a line may be drawn on the terminal of the standard error: signals that end
 * the process and the answer to SIGINT erase it first. Call it after
 * zero_requests_expect(). */
void zero_requests_keep_line_clean(void);

/* Keeps these signals pending for the main thread, which calls this, whatever thread they
 * reach; it fetches them with sigtimedwait(). */
void zero_requests_hold(const sigset_t *set);

/* True if a signal is ignored, as whoever started this process may have wished. */
bool zero_requests_ignore(int signal);
