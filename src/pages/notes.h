/* notes.h - sentences about what a run's file has not: an end, some lines, times that mean
 * something. A report without them would pass for that of a whole run. */
#pragma once

#include "pages/record.h"

#define ZERO_NOTES_MOST 10
#define ZERO_NOTE_BYTES 240

/* Returns how many there are. */
int zero_notes_of(const zero_record *record, char notes[ZERO_NOTES_MOST][ZERO_NOTE_BYTES]);

/* Steps that the run was to take; 0: unknown. */
int64_t zero_record_wanted_steps(const zero_record *record);
/* Steps between the first and the last that the file has not. */
int64_t zero_record_missing_steps(const zero_record *record);
