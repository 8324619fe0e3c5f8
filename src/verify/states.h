/* states.h - the states of an engine and those of a step file: one into the other.
 * Collective over the engine's ranks, one verdict. */
#pragma once

#include "engine/engine.h"
#include "io/whole_file.h"
#include "verify/step_file.h"

/* Sets weights and moments of an engine to those before the step; each rank reads what it
 * holds. */
zero_status zero_step_load(zero_step_file *file, zero_engine *e);

/* A step file in the making: rank 0 writes it, from end to end. */
typedef struct {
    zero_whole_file file;
    zero_engine *e;
    const zero_model *model; /* the whole one */
    bool is_written;         /* the file is there */
} zero_step_record;

/* Takes the file's name; nothing is written. */
zero_status zero_step_record_open(zero_step_record *r, const char *path, zero_engine *e);
/* Writes the header, the samples of `source`, and the states as they are. */
zero_status zero_step_record_begin(zero_step_record *r, const zero_step_outline *outline,
                                   const zero_source *source);
/* Writes the states once more, and these numbers; the file is there then. */
zero_status zero_step_record_end(zero_step_record *r, double loss, double norm);
void zero_step_record_abandon(zero_step_record *r); /* accepts a zeroed one */
