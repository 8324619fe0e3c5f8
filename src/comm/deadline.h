/* deadline.h - ends this process when it hangs where no other rank need notice.
 *
 * The watchdog of a group (watch.h) works in waits for other ranks. It does not see
 *
 *   - calls that block inside MPI: its start, the making of groups, its end
 *   - a rank that computes for ever: its threads wait for each other, or its device is
 *     gone. With one
 *     rank, or if all do, nobody waits for it
 *   - calls on files that do not return (base/waiting.h)
 *
 * So a thread looks at these, at most once a second:
 *
 *     begin "starting MPI" | MPI_Init .............. | end
 *     begin_work "step" 17 | poll  poll  poll ...... | end     a poll moves: it counts anew
 *     any thread           | fsync() ............... |
 *                   look  look  look  look ... limit: one line on stderr, _exit(code)
 *
 * It needs neither MPI nor the heap. Time in which the process is stopped has no looks, so
 * a job that is suspended as a whole and continued has not waited.
 *
 * The launcher ends the other ranks. So that one rank speaks, rank 1 allows up to 1.5 s
 * more than rank 0, and higher ranks up to 3 s. A process whose thread is in a call on a
 * frozen disk cannot end, whatever kills it, until that call returns. So the launcher is
 * told by MPI_Abort() then.
 *
 * Only a program makes a deadline: the library ends no process. */
#pragma once

#include <stdatomic.h>

#include <pthread.h>
#include <time.h>

#include "base/fail.h"

/* The longest that a rank allows more than rank 0, in seconds. */
#define ZERO_DEADLINE_APART 3.0

/* Must not move in memory while it is open. */
typedef struct zero_deadline {
    bool is_open, is_launched;
    int rank, code; /* for the message; the exit code */
    timer_t last;
    pthread_t thread;
    int closing[2];       /* a pipe; a byte in it ends the thread */
    pthread_mutex_t lock; /* of the fields below, but `moves` */
    double seconds;       /* the limit */
    bool counts;          /* between begin and end */
    const char *phase, *work;
    int64_t number;    /* of the work */
    atomic_uint moves; /* grows when this rank moves */
    unsigned seen;     /* moves at the last look */
    double waited;     /* seconds since then */
} zero_deadline;

/* Local. A process that `is_launched` has a launcher, which waits for it. `rank` is for the
 * message, and may be a guess. Without a limit (0) the deadline does nothing. ZERO_ERR_ENV
 * if the system gives no thread or no timer. */
zero_status zero_deadline_open(zero_deadline *d, double seconds, bool is_launched, int rank,
                               int code);
/* From now on another limit holds. */
void zero_deadline_set_limit(zero_deadline *d, double seconds);

/* Counts from now on; `phase` is for the message: "starting MPI"; NULL: say nothing. Each
 * begin counts anew. Texts are borrowed. Accepts NULL, like the next three: then nothing
 * limits the call. */
void zero_deadline_begin(zero_deadline *d, const char *phase);
/* The same for work that moves: "step" 17. */
void zero_deadline_begin_work(zero_deadline *d, const char *work, int64_t number);
void zero_deadline_move(zero_deadline *d); /* by the thread that works; costs nothing */
void zero_deadline_end(zero_deadline *d);

/* For a rank that is about to end: MPI no longer connects it with the others. If it were
 * stopped there, they would be gone, and the launcher would wait for it for ever. So the
 * kernel continues it 1.5 s after the limit, and it ends with `code`. Holds until the
 * process ends, whatever becomes of the deadline. A job that is suspended just then ends
 * in this way, too; its results are complete. Accepts NULL. */
void zero_deadline_until_exit(const zero_deadline *d);

/* Accepts a zeroed one. */
void zero_deadline_close(zero_deadline *d);
