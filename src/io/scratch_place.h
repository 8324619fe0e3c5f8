/* scratch_place.h - what a directory can do as a place for scratch files. */
#pragma once

#include "io/scratch_file.h"

#define ZERO_SCRATCH_FILE_SYSTEM 32

typedef struct {
    char file_system[ZERO_SCRATCH_FILE_SYSTEM]; /* as mount calls it; empty if unknown */
    uint64_t bytes_free;                        /* for this user, without the file */
    zero_scratch_file file;                     /* closed; for what it could do */
} zero_scratch_place;

/* Makes a scratch file of the least size there, and closes it. zero_scratch_file_open's
 * errors. */
zero_status zero_scratch_place_read(const char *directory, zero_scratch_place *place);
