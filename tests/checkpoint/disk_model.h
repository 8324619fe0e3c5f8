/* disk_model.h - the states of a disk after a power loss that POSIX allows.
 *
 *   - Data of a file are safe once the file was synced; until then each block of 512 bytes may be
 *     the old or the new one, and the length anything in between.
 *   - A name that was made, renamed or removed is safe once its directory was synced; until then
 *     each such change may be kept or not, whatever came later. Syncing a file does not save its
 *     name, nor does syncing a directory save its own.
 *
 * Kinder file systems keep more (ext4 changes names in order, and keeps those of a synced file), so
 * a writer that is safe here is safe there. The model reads the log of storage_shim.c. A call that
 * it does not know ends the program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define DISK_PATH 256

typedef struct { /* one line of the log */
    int rank;
    long number;
    char name[16], path[DISK_PATH], other[DISK_PATH];
    long a, b, at;
    int error;
} disk_call;

typedef struct disk disk;

disk *disk_new(void); /* an empty directory, synced */
void disk_free(disk *d);
/* `data` is the shim's file of written bytes. */
void disk_apply(disk *d, const disk_call *call, FILE *data);

typedef enum {
    DISK_KEPT,  /* everything unsynced is there */
    DISK_LOST,  /* none of it */
    DISK_ZEROS, /* names are there, data are zeros: a file was longer before it had blocks */
    DISK_SHORT,  /* names are there, files end where they were synced */
    DISK_RANDOM, /* any of it: by block, by change of a name; see disk_model.c */
    DISK_LOSSES
} disk_loss;

/* A number for each of the possible states; the same for states that look alike. */
uint64_t disk_fingerprint(const disk *d, disk_loss loss, uint64_t seed);
/* Makes the same state below `root`, which must be an empty directory. */
void disk_write_out(const disk *d, disk_loss loss, uint64_t seed, const char *root);

/* Prints the message and ends the program with 2. */
__attribute__((format(printf, 1, 2), noreturn)) void disk_stop(const char *fmt, ...);
