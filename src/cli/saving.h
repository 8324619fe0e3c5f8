/* saving.h - when a training run saves, and where it goes on from.
 *
 * With --checkpoint a run saves every --save-every steps, when it is asked to (requests.h),
 * and at its end. What cannot be saved is one warning and the run goes on, and a stop that was
 * asked for is tried again; but a run does not end well without its last checkpoint, and
 * --save-required ends it at once. All ranks save after the same step. */
#pragma once

#include "checkpoint/directory.h"
#include "io/checksum.h"

typedef struct zero_session zero_session;

typedef struct {
    zero_checkpoint_directory directory; /* --checkpoint; not open without it */
    int64_t start;                       /* steps that were done before this run */
    int64_t saved;                       /* the newest step that is safe; -1: none */
    int64_t asked;    /* how often this rank was asked for a checkpoint */
    int64_t answered; /* how often the first of all ranks was */
    int64_t stop_at;  /* the step after which a stop that was asked for is tried; 0: none */
    int64_t stop_gap; /* steps from there to the next try */
    char data[ZERO_CHECKSUM]; /* of the tokens */
    char from[256];           /* in words, where the run goes on */
    char changes[512];        /* options that differ from the saved run's, in words */
} zero_saving;

/* Opens the directory, clears away what dead runs have left there, and with --resume loads the
 * newest checkpoint into the engine and the loader. Collective, one verdict: ZERO_ERR_INVALID
 * if options do not fit what is there, ZERO_ERR_IO and ZERO_ERR_FORMAT if a checkpoint is
 * unreadable. Without --checkpoint nothing is done. */
ZERO_NODISCARD zero_status zero_saving_open(zero_session *s);

/* After each step: does what is due or requested. ZERO_STOPPED after a checkpoint that was
 * to be the last; ZERO_ERR_ENV if one that is required cannot be written. Collective. */
ZERO_NODISCARD zero_status zero_saving_step(zero_session *s, int64_t step);

void zero_saving_close(zero_session *s);
