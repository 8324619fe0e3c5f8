/* disk_trial.h - how fast a disk moves the blocks of a scratch file.
 *
 * Threads read or write whole blocks and do nothing else. zero_disk_move() does it in an
 * open file; zero_disk_trial() makes one, measures reads, writes and both for about a
 * second, and leaves nothing. Nothing here is collective: ranks that measure at once share
 * the disk. */
#pragma once

#include "io/scratch_file.h"

#define ZERO_DISK_BLOCK         ((size_t)3 << 20) /* states of 2^18 parameters in 16-bit runs */
#define ZERO_DISK_THREADS       64                /* at most */
#define ZERO_DISK_TRIAL_THREADS 4  /* as many as a run has blocks in flight */
#define ZERO_DISK_TRIAL_BLOCKS  84 /* 252 MiB; fewer where space is short */
#define ZERO_DISK_LEAST_BLOCKS  16 /* the least that a trial accepts */

typedef enum {
    ZERO_DISK_READ,
    ZERO_DISK_WRITE,
    ZERO_DISK_MIXED, /* a block is read, then written as it was */
} zero_disk_work;

typedef struct {
    zero_disk_work work;
    int n_blocks;   /* of ZERO_DISK_BLOCK bytes, from the file's begin; `threads` or more */
    int threads;    /* 1 to ZERO_DISK_THREADS, one block in flight each */
    double seconds; /* no block is begun after them, but each thread moves one; INFINITY */
    bool repeats;   /* begins again after the last block; else each is moved at most once */
} zero_disk_load;

typedef struct {
    uint64_t bytes; /* read and written */
    double seconds;
} zero_disk_moved;

/* Blocks that were moved are the first ones of the file. ZERO_ERR_INVALID if a number is
 * out of its range; ZERO_ERR_NOMEM; ZERO_ERR_ENV if a thread cannot be started or a block
 * cannot be moved. */
zero_status zero_disk_move(const zero_scratch_file *file, const zero_disk_load *load,
                           zero_disk_moved *moved);

typedef struct {
    double read, write; /* bytes per second, alone */
    double mixed;       /* half reads, half writes: bytes of both per second */
    uint64_t bytes;     /* of the file */
} zero_disk_rates;

/* Takes up to a second more where a slow disk is written for the first time. Errors are
 * those of zero_scratch_file_open() and zero_disk_move(); ZERO_ERR_ENV if there is too
 * little space. */
zero_status zero_disk_trial(const char *directory, zero_disk_rates *rates);
